//! What it costs that a partition moves, and which may move at all.

/// What a move costs, and for how long what it gains counts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Price {
    /// Bytes that go over in a second.
    pub bytes_per_s: f64,
    /// The part of the time of either node that a move takes while it lasts.
    pub load: f64,
    /// A move of nothing takes so long, s.
    pub least_s: f64,
    /// What a move gains counts for so long, s: by then tenants may do something else.
    pub horizon_s: f64,
}

impl Price {
    /// How long a move of so many bytes takes, s.
    #[must_use]
    pub fn takes_s(&self, bytes: u64) -> f64 {
        self.least_s + bytes as f64 / self.bytes_per_s
    }

    /// What the fuller of both nodes must win, as a part of it, for a move of so many bytes to give
    /// it more of its time than it takes.
    #[must_use]
    pub fn of(&self, bytes: u64) -> f64 {
        self.takes_s(bytes) * self.load / self.horizon_s
    }
}

/// What may move in one plan.
#[derive(Clone, Copy, Debug, Default)]
pub struct Moves<'m> {
    /// Moves and promotions at most.
    pub most: usize,
    /// What a move costs; none: nothing, and a node takes part in any number of moves.
    pub price: Option<Price>,
    /// Of each partition; what is missing has none.
    pub bytes: &'m [u64],
    /// Partitions that stay where they are; what is missing may move.
    pub stays: &'m [bool],
    /// With a price a node takes part in moves until these take so long together, s, but in one at
    /// least.
    pub turn_s: f64,
    /// Nodes that take part in no move; what is missing may.
    pub busy: &'m [bool],
    /// With a price two partitions may change places, for differences that are smaller than any of
    /// them; if not, only where nothing else can move.
    pub fine: bool,
}

impl Moves<'_> {
    /// So many, which cost nothing.
    #[must_use]
    pub fn free(most: usize) -> Self {
        Moves {
            most,
            ..Moves::default()
        }
    }

    /// Whether this partition may move.
    pub(super) fn may(&self, partition: u32) -> bool {
        !self.stays.get(partition as usize).copied().unwrap_or(false)
    }

    /// Whether this node may not take part in a move.
    pub(super) fn is_busy(&self, node: u32) -> bool {
        self.busy.get(node as usize).copied().unwrap_or(false)
    }

    fn bytes(&self, partition: u32) -> u64 {
        self.bytes.get(partition as usize).copied().unwrap_or(0)
    }

    /// What a move of this partition must gain.
    pub(super) fn cost(&self, partition: u32) -> f64 {
        let bytes = self.bytes(partition);
        self.price.map_or(0.0, |price| price.of(bytes))
    }

    /// How long a move of this partition takes, s.
    pub(super) fn takes_s(&self, partition: u32) -> f64 {
        let bytes = self.bytes(partition);
        self.price.map_or(0.0, |price| price.takes_s(bytes))
    }
}

/// A move may take so many times what the tenants of the fuller node miss. In all it takes the same
/// of both nodes, fast or slow, and the sooner it is done, the less they miss. With once as much,
/// the last five moves of nineteen took as long as the first ten (`placement-cluster`, on a busy
/// machine).
const HASTE: f64 = 4.0;

/// A replica that a plan gave another node.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Move {
    /// The place of its partition.
    pub partition: u32,
    /// The node that had it.
    pub from: u32,
    /// The node that has it.
    pub to: u32,
    /// The use of both nodes before, 1 is all of what they can serve.
    pub before: [f64; 2],
    /// And after; of two that change places, after both.
    pub after: [f64; 2],
    /// It changes places with the partition of the move before, without which it gains nothing.
    pub follows: bool,
}

impl Move {
    /// The part of the time of both nodes that this move may take while it lasts, from `least` to
    /// `most`. As long as one is so much fuller than the other, its tenants miss something in any
    /// case; where both have room nobody is to feel the move.
    #[must_use]
    pub fn part(&self, least: f64, most: f64) -> f64 {
        let missing = self.before[0].max(1.0) - self.before[1].max(1.0);
        (missing * HASTE).clamp(least, most)
    }

    /// By how much the fuller of both nodes is less full.
    #[must_use]
    pub fn gain(&self) -> f64 {
        let most = |uses: [f64; 2]| uses[0].max(uses[1]);
        most(self.before) - most(self.after)
    }
}
