//! Tags: what an operation carries to its server, and how a sender chooses it.

use super::levels::Levels;
use super::opset::{bottleneck, Opset};
use crate::cost::Nanos;

/// What every operation of an opset carries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tag {
    /// For exact order: the smallest goes first.
    pub priority: u64,
    /// For levels: the queue, 0 the fastest. Of [`Strategy::Deadline`]: 1 for the few that are put
    /// off.
    pub level: u8,
}

impl Tag {
    /// Whether the operation is one of those that others need not wait for.
    #[must_use]
    pub fn puts_off(self) -> bool {
        self.level > 0
    }
}

/// How tags are chosen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Strategy {
    /// All alike: servers keep arrival order.
    Agnostic,
    /// All operations by the cost of the bottleneck: "shortest bottleneck first" (Rein 3.2.1).
    ShortestBottleneck,
    /// As [`Strategy::ShortestBottleneck`], but each opset later by what it could wait: the cost of
    /// the bottleneck and the opset's own slack, added. It is for who knows both well (Rein 5.3's
    /// oracle).
    BottleneckAndSlack,
    /// The bottleneck first, others the later the more slack they have (Rein 3.2.1).
    SlackDriven,
    /// The bottleneck by its cost, others later by their slack (Rein 3.3.1, algorithm 1).
    Rein,
    /// In order of arrival, but later by `stretch` times the cost of the bottleneck, so that small
    /// multigets pass large ones, by `slack` times what an opset could wait without delaying its
    /// multiget, and by [`TAIL_STRETCH`] times the bottleneck more if it is beyond `tail`. An
    /// operation is overtaken only by what arrives within that time after it, so nobody starves.
    /// Costs must be in nanoseconds.
    ///
    /// With a large stretch it is shortest bottleneck first, which suits a heavy tail of sizes;
    /// with none it is slack-driven arrival order, which suits equal sizes (of those, serving the
    /// shortest first only delays the tail: Wierman and Zwart, Operations Research 60(5), 2012).
    Deadline {
        /// Times the bottleneck, in quarters (4: once).
        stretch_quarters: u32,
        /// Times the slack, in quarters.
        slack_quarters: u32,
        /// Cost of a bottleneck from which on a multiget is one of the few that nobody should wait
        /// for; `u64::MAX`: none is.
        tail: u64,
    },
}

/// How much later than the others the tail of sizes goes, in bottlenecks. The largest multigets are
/// a seventh of the work of log-normal sizes, and most of what others wait for; they themselves
/// take so long that waiting is a small part of it ("delaying very large requests has no negative
/// impact on the 99th percentile", Rein 5.1). From 16 on it hardly matters how much it is
/// (`rein-synthetic`).
pub const TAIL_STRETCH: u32 = 64;

/// Unit of a ratio in a priority, so that ratios of costs keep their order as integers.
const RATIO: u128 = 1 << 10;

/// Tags each opset of one multiget, in their order; `tags` is emptied first. `now` is when the
/// multiget was sent; only [`Strategy::Deadline`] uses it.
pub fn tag(strategy: Strategy, now: Nanos, opsets: &[Opset], levels: &Levels, tags: &mut Vec<Tag>) {
    tags.clear();
    let Some(place) = bottleneck(opsets) else {
        return;
    };
    let finish = opsets[place].finish();
    let level = levels.of(finish);
    let largest = opsets.iter().map(|opset| opset.cost).max().unwrap_or(0);
    tags.extend(opsets.iter().map(|opset| {
        let (own, last) = (opset.finish().max(1), finish.max(1));
        match strategy {
            Strategy::Agnostic => Tag::default(),
            Strategy::ShortestBottleneck => tagged(u128::from(last) * RATIO, level),
            Strategy::BottleneckAndSlack => {
                tagged((2 * u128::from(last) - u128::from(own)) * RATIO, level)
            }
            // (cost(x) + slack(x)) / size(O), read for the opset: cost(O) + slack(O) is the
            // bottleneck's cost, and its size stands for its cost. So the bottleneck has 1, and an
            // opset of half its cost 2, as "a queue that is twice as slow" in 3.3.1.
            Strategy::SlackDriven => tagged(ratio(last, own), levels.slacked(0, own, last)),
            Strategy::Rein => {
                let slacked = levels.slacked(level, own, last);
                tagged(u128::from(last) * ratio(last, own), slacked)
            }
            Strategy::Deadline {
                stretch_quarters,
                slack_quarters,
                tail,
            } => {
                let quarters = |cost: u64, by: u32| u128::from(cost) * u128::from(by) / 4;
                let put_off = if largest < tail { 0 } else { 4 * TAIL_STRETCH };
                let later = quarters(largest, stretch_quarters + put_off)
                    + quarters(finish - opset.finish(), slack_quarters);
                tagged(u128::from(now) + later, usize::from(put_off > 0))
            }
        }
    }));
}

fn ratio(last: u64, own: u64) -> u128 {
    u128::from(last) * RATIO / u128::from(own)
}

fn tagged(priority: u128, level: usize) -> Tag {
    Tag {
        priority: u64::try_from(priority).unwrap_or(u64::MAX),
        level: level as u8,
    }
}
