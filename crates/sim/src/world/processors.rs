//! Processors that a node's operations share: each has an equal part of them, and at most a whole
//! one.

use super::{Event, World};
use policy::Nanos;
use std::collections::BTreeSet;

/// What sums of parts of nanoseconds are off by, at most.
const ROUNDING_NS: f64 = 1e-3;

/// What runs on a node's processors.
///
/// Work is conserved: with more operations than processors all of these are at work, whoever began
/// when. So what an operation takes follows from everything that begins and ends beside it, and is
/// not known when it begins.
#[derive(Clone, Debug)]
pub(super) struct Processors {
    count: f64,
    /// What each operation has had that has been there since the beginning, ns of a processor.
    had_ns: f64,
    /// Until when that is known.
    known_at: Nanos,
    /// By what `had_ns` is when it ends (as bits: times are not negative, and sort as their bits
    /// do), then place.
    running: BTreeSet<(u64, u32)>,
    /// Told apart from earlier answers to "when does the next one end?".
    asked: u32,
}

impl Processors {
    pub(super) fn new(count: u32) -> Self {
        Processors {
            count: f64::from(count),
            had_ns: 0.0,
            known_at: 0,
            running: BTreeSet::new(),
            asked: 0,
        }
    }

    /// What each operation has of a processor.
    fn part(&self) -> f64 {
        (self.count / self.running.len().max(1) as f64).min(1.0)
    }

    fn catch_up(&mut self, now: Nanos) {
        self.had_ns += (now - self.known_at) as f64 * self.part();
        self.known_at = now;
    }

    /// An operation that needs a processor for this long begins.
    pub(super) fn begin(&mut self, now: Nanos, place: u32, work_ns: Nanos) {
        self.catch_up(now);
        let ends = self.had_ns + work_ns as f64;
        self.running.insert((ends.to_bits(), place));
    }

    /// When the next one ends if nothing begins before, and the number of that answer.
    pub(super) fn next_end(&mut self) -> Option<(Nanos, u32)> {
        let (ends, _) = self.running.first()?;
        let left_ns = (f64::from_bits(*ends) - self.had_ns).max(0.0) / self.part();
        self.asked = self.asked.wrapping_add(1);
        Some((self.known_at + left_ns.ceil() as Nanos, self.asked))
    }

    /// Takes one that has ended. `asked`: the answer that this is the time of; an older one says
    /// nothing.
    pub(super) fn ended(&mut self, now: Nanos, asked: u32) -> Option<u32> {
        if asked != self.asked {
            return None;
        }
        self.catch_up(now);
        let (ends, place) = *self.running.first()?;
        if f64::from_bits(ends) > self.had_ns + ROUNDING_NS {
            return None;
        }
        self.running.remove(&(ends, place));
        Some(place)
    }
}

impl World<'_> {
    /// Asks when a node's processors have done with the next operation.
    pub(super) fn ask_processors(&mut self, node: u32) {
        let now = self.agenda.now();
        let processors = self.nodes[node as usize].processors.as_mut();
        if let Some((at, asked)) = processors.and_then(Processors::next_end) {
            self.agenda
                .after(at.saturating_sub(now), Event::Processed { node, asked });
        }
    }

    /// A node's processors may have done with operations.
    pub(super) fn processed(&mut self, node: u32, asked: u32) {
        let now = self.agenda.now();
        let mut any = false;
        while let Some(place) = self.nodes[node as usize]
            .processors
            .as_mut()
            .and_then(|processors| processors.ended(now, asked))
        {
            any = true;
            self.move_bytes(node, place, now);
        }
        if any {
            self.ask_processors(node);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// When each of these ends: (begins at, needs).
    fn ends(count: u32, work: &[(Nanos, Nanos)]) -> Vec<Nanos> {
        let mut processors = Processors::new(count);
        let mut ends = vec![0; work.len()];
        let (mut begun, mut left) = (0, work.len());
        while left > 0 {
            let next = processors.next_end();
            let begins = work.get(begun).map(|(at, _)| *at);
            match (next, begins) {
                (Some((at, asked)), begins) if begins.is_none_or(|begins| at < begins) => {
                    while let Some(place) = processors.ended(at, asked) {
                        ends[place as usize] = at;
                        left -= 1;
                    }
                }
                (_, Some(at)) => {
                    processors.begin(at, begun as u32, work[begun].1);
                    begun += 1;
                }
                _ => unreachable!("what runs ends"),
            }
        }
        ends
    }

    #[test]
    fn one_that_began_last_speeds_up_as_the_others_end() {
        // Alone on one processor for 100, then two share it: 100 of each are left, and end at 300.
        // The third begins as the second has half of its time left.
        assert_eq!(ends(1, &[(0, 200), (100, 100)]), [300, 300]);
        assert_eq!(ends(4, &[(0, 100), (0, 200), (50, 100)]), [100, 200, 150]);
        // Eight on four: each has half of one until four are done at 200; the others then have all.
        let work: Vec<_> = (0..8).map(|n| (0, if n < 4 { 100 } else { 200 })).collect();
        assert_eq!(ends(4, &work), [200, 200, 200, 200, 300, 300, 300, 300]);
    }

    #[test]
    fn work_is_conserved() {
        // Whatever begins when, one busy processor ends all of it in the sum of its work.
        let work: Vec<_> = (0..50u64).map(|n| (n * 7, 10 + n * n % 37)).collect();
        let sum: Nanos = work.iter().map(|(_, work)| work).sum();
        let last = ends(1, &work).into_iter().max().unwrap_or(0);
        assert!(last.abs_diff(sum) <= 2, "{last} {sum}");
    }

    #[test]
    fn who_waits_for_bytes_that_others_use_is_not_charged_for_the_wait() {
        let text = r#"
name = "charges"
duration = "2s"
warm_up = "0s"
[cluster]
permits = 8
processors = 8
operation = "100us"
noise = "none"
requests = "1M/s"
bandwidth_in = "10MB/s"
[[tenant]]
name = "small"
load = [{ loop = "closed", connections = 32, mix = { put = 1 }, values = { size = "100B" } }]
[[tenant]]
name = "large"
load = [{ loop = "closed", connections = 32, mix = { put = 1 }, values = { size = "100kB" } }]
"#;
        let plan = crate::scenario::Plan::from_text(text, "charges.toml").expect("good");
        let mut world = World::new(&plan.spec);
        while world.step() {}
        let (now, node) = (world.now(), &mut world.nodes[0]);
        for principal in [policy::PrincipalId(0), policy::PrincipalId(1)] {
            let [_, requests_ns, _, permit_ns] = node.since(now, principal).used_ns;
            // Behind large ones each waits for milliseconds.
            let each_ns = permit_ns * 8.0 / (requests_ns / 1e3);
            assert!((each_ns - 100_000.0).abs() < 1_000.0, "{each_ns}");
        }
    }
}
