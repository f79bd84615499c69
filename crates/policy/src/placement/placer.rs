//! When partitions move: not for what passes, and not to and fro.

use super::plan::{excess, plan, Node, Partition, Planned};
use super::price::{Moves, Price};
use crate::Nanos;
use std::collections::BTreeMap;

/// A node that is asked for twice what it can serve is certain to be so after three seconds, and
/// one that is asked for a tenth too much after half a minute. Chance alone came to about two
/// before real nodes that other work held up (`placement-cluster`).
const EVIDENCE_S: f64 = 3.0;

/// How a placer decides.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlacerOptions {
    /// Partitions move when the most used node is this much above the mean, as a part of it.
    pub imbalance_max: f64,
    /// And at least so much of a node. On nodes that have little to do it does not matter who does
    /// it.
    pub excess_min: f64,
    /// They move as well when a node is asked for so much more than it can serve, as a part of it,
    /// and others are not: its tenants have so much less than their shares, also elsewhere, for
    /// their clients wait there. Infinite: that is no reason by itself.
    pub short_min: f64,
    /// In looks after moves so much is a reason: what they show is what the look before them could
    /// not.
    pub mend_min: f64,
    /// So often what a plan has left uneven is mended at once. More than once gains something where
    /// each look adds to what is known of parts of demands ([`super::Parts`]): it is surer then
    /// than the one before.
    pub mends_max: u32,
    /// What is more than that must add up to so much of a node for so long, node seconds; 0: at
    /// once.
    pub evidence_s: f64,
    /// Moves of one step.
    pub moves_max: usize,
    /// What a move costs; none: nothing.
    pub price: Option<Price>,
    /// Moves of one step take a node's time for so long, s, where they are made one after the
    /// other; a node is in one at least. 0: in one, where moves are made at once.
    pub turn_s: f64,
    /// A partition that has moved stays for so long.
    pub rest_ns: Nanos,
}

impl Default for PlacerOptions {
    /// 5 % imbalance, at once, any number of moves, which cost nothing.
    fn default() -> Self {
        PlacerOptions {
            imbalance_max: 0.05,
            excess_min: 0.0,
            short_min: f64::INFINITY,
            mend_min: f64::INFINITY,
            mends_max: 0,
            evidence_s: 0.0,
            moves_max: usize::MAX,
            price: None,
            turn_s: 0.0,
            rest_ns: 0,
        }
    }
}

impl PlacerOptions {
    /// Where moves cost something: a twentieth of a node, or three hundredths that are missing,
    /// seen until it is certain, are worth a look, and a partition that has moved stays until what
    /// that gained has been had.
    #[must_use]
    pub fn priced(price: Price) -> Self {
        PlacerOptions {
            excess_min: 0.05,
            short_min: 0.03,
            mend_min: 0.01,
            mends_max: 1,
            evidence_s: EVIDENCE_S,
            price: Some(price),
            rest_ns: (price.horizon_s * 1e9) as Nanos,
            ..PlacerOptions::default()
        }
    }
}

/// What the placer looks at, beside where partitions are.
#[derive(Clone, Copy, Debug)]
pub struct Looked<'l, const R: usize> {
    /// When.
    pub now: Nanos,
    /// Of how long before that this is the mean, s.
    pub seen_s: f64,
    /// Nodes, with what each can serve.
    pub nodes: &'l [Node<R>],
    /// Of each partition; what is missing has none.
    pub bytes: &'l [u64],
    /// Partitions that stay in any case; what is missing may move.
    pub stays: &'l [bool],
    /// Nodes that take part in a move that is not at its end; what is missing does not.
    pub busy: &'l [bool],
}

/// Decides whether partitions move, step after step.
#[derive(Clone, Debug)]
pub struct Placer {
    options: PlacerOptions,
    /// By how much of a node the fullest was too full, and for how long, node seconds.
    evidence_s: f64,
    /// How often what partitions that have moved left uneven may still be mended; 0 once a look has
    /// shown nodes even.
    mends: u32,
    /// When partitions last moved, as far as they rest.
    moved: BTreeMap<u32, Nanos>,
}

impl Placer {
    /// One that has seen nothing.
    #[must_use]
    pub fn new(options: PlacerOptions) -> Self {
        Placer {
            options,
            evidence_s: 0.0,
            mends: 0,
            moved: BTreeMap::new(),
        }
    }

    /// This partition has moved at that time, or cannot move: it stays for a while.
    pub fn rest(&mut self, partition: u32, now: Nanos) {
        self.moved.insert(partition, now);
    }

    /// It did not move after all.
    pub fn wake(&mut self, partition: u32) {
        self.moved.remove(&partition);
    }

    /// Partitions that stay for a while, and since when.
    pub fn resting(&self) -> impl Iterator<Item = (u32, Nanos)> + '_ {
        self.moved.iter().map(|(partition, at)| (*partition, *at))
    }

    /// What is there of [`PlacerOptions::evidence_s`]; 0: nodes are even enough.
    #[must_use]
    pub fn evidence_s(&self) -> f64 {
        self.evidence_s
    }

    /// Nothing can be told from this step: what was uneven before must be seen anew.
    pub fn forget(&mut self) {
        self.evidence_s = 0.0;
        self.mends = 0;
    }

    /// By how much of a node the fullest is too full; below 0: it is not.
    fn over<const R: usize>(&self, nodes: &[Node<R>], partitions: &[Partition<R>]) -> f64 {
        let options = &self.options;
        let (excess, mean) = excess(nodes, partitions);
        let uneven = excess - (options.imbalance_max * mean).max(options.excess_min);
        let short_min = match self.mends {
            0 => options.short_min,
            _ => options.mend_min,
        };
        let short = excess.min(mean + excess - 1.0) - short_min;
        uneven.max(short)
    }

    /// Adds up what a look of so long has shown to be too much.
    fn look(&mut self, over: f64, seen_s: f64) {
        if self.mends == 0 {
            // A cumulative sum (Page 1954): of all tests that are as seldom wrong, the one that
            // sees a change soonest. What is much too full is certain soon, and what is a little
            // later.
            self.evidence_s = (self.evidence_s + over * seen_s).max(0.0);
        } else if over <= 0.0 {
            self.forget();
        }
        // Or else it stays as certain as it was: what a move does to what requests cost is seen
        // afterwards, and what is uneven now is what was before, and not mended.
    }

    /// Gives a node to what has none; where nodes have been uneven for long enough, and `evens`,
    /// moves what is worth it. `None`: there is nothing to do.
    pub fn step<const R: usize>(
        &mut self,
        looked: &Looked<'_, R>,
        partitions: &mut [Partition<R>],
        evens: bool,
    ) -> Option<Planned> {
        let options = self.options;
        let missing = partitions.iter().any(|partition| {
            let alive = |node: &&u32| looked.nodes[**node as usize].is_able();
            partition.nodes.iter().filter(alive).count() < partition.replicas
        });
        let over = self.over(looked.nodes, partitions);
        match evens {
            true => self.look(over, looked.seen_s),
            false => self.forget(),
        }
        let moves = evens && over > 0.0 && self.evidence_s >= options.evidence_s;
        if !missing && !moves {
            return None;
        }
        let rest_ns = options.rest_ns;
        self.moved
            .retain(|_, at| looked.now.saturating_sub(*at) < rest_ns);
        let mut stays = looked.stays.to_vec();
        stays.resize(partitions.len(), false);
        for partition in self.moved.keys() {
            if let Some(stays) = stays.get_mut(*partition as usize) {
                *stays = true;
            }
        }
        let may = Moves {
            most: if moves { options.moves_max } else { 0 },
            price: options.price,
            turn_s: options.turn_s,
            bytes: looked.bytes,
            stays: &stays,
            busy: looked.busy,
            // One look is not as sure as that, and moves that it has shown needless take time.
            fine: self.mends > 0,
        };
        let planned = plan(looked.nodes, partitions, &may);
        if moves && !planned.moved.is_empty() {
            // Not for ever: what is uneven after that, too, may be chance.
            match self.mends {
                0 => self.mends = options.mends_max,
                1 => self.forget(),
                _ => self.mends -= 1,
            }
        }
        if rest_ns > 0 {
            for moved in &planned.moved {
                self.rest(moved.partition, looked.now);
            }
        }
        Some(planned)
    }
}
