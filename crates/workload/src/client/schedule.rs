//! Whose turn is next: a thousand tenants must not cost a look at each of them every time one is
//! due.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// When each lane has something to do, soonest first. A lane is in it once, or not at all while it
/// is being looked at.
#[derive(Default)]
pub(crate) struct Schedule(BinaryHeap<Reverse<(u64, usize)>>);

impl Schedule {
    /// `lane`, which is not in the schedule, has something to do at `at_ns`; at `u64::MAX`: never.
    pub(crate) fn enter(&mut self, lane: usize, at_ns: u64) {
        if at_ns < u64::MAX {
            self.0.push(Reverse((at_ns, lane)));
        }
    }

    /// When the next lane has something to do, ns; `u64::MAX`: none ever.
    pub(crate) fn next_ns(&self) -> u64 {
        self.0.peek().map_or(u64::MAX, |next| next.0 .0)
    }

    /// Moves the lanes that have something to do by `now_ns` to `lanes`, the longest due first.
    pub(crate) fn take_due(&mut self, now_ns: u64, lanes: &mut Vec<usize>) {
        while self.next_ns() <= now_ns {
            let Some(Reverse((_, lane))) = self.0.pop() else {
                return;
            };
            lanes.push(lane);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    /// What a look at every lane would find.
    #[test]
    fn whoever_is_due_is_found_and_nobody_else() {
        let mut rng = Rng::new(7, 0);
        let mut at_ns: Vec<u64> = (0..50).map(|_| rng.below(1_000)).collect();
        at_ns[7] = u64::MAX;
        let mut schedule = Schedule::default();
        for (lane, at_ns) in at_ns.iter().enumerate() {
            schedule.enter(lane, *at_ns);
        }
        let mut due = Vec::new();
        for now_ns in (0..5_000).step_by(13) {
            let soonest = at_ns.iter().min().copied();
            assert_eq!(Some(schedule.next_ns()), soonest);
            due.clear();
            schedule.take_due(now_ns, &mut due);
            assert!(due.is_sorted_by_key(|lane| at_ns[*lane]));
            let mut found = due.clone();
            found.sort_unstable();
            let looked: Vec<usize> = (0..at_ns.len()).filter(|i| at_ns[*i] <= now_ns).collect();
            assert_eq!(found, looked);
            for lane in &due {
                at_ns[*lane] = now_ns + 1 + rng.below(500);
                schedule.enter(*lane, at_ns[*lane]);
            }
        }
    }
}
