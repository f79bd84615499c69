//! Who had a resource when, and so behind whom somebody waited for it.
//!
//! Each turn leaves a mark. Only a request that was late or among the slowest is asked about, and
//! then the marks of the time that it waited are added up. So telling who delayed whom costs a mark
//! a turn, whoever waits; turns of the same one after another, without a pause, are one mark.

use std::collections::VecDeque;

use policy::Nanos;
use smallvec::SmallVec;

/// Marks that are kept: some tens of milliseconds of the shortest turns, seconds of a disk's.
const MARKS: usize = 8_192;

/// Somebody had the resource.
#[derive(Clone, Copy, Debug)]
struct Mark {
    who: u32,
    begin: Nanos,
    end: Nanos,
}

/// Who had one resource, of late.
#[derive(Debug, Default)]
pub struct Trail(VecDeque<Mark>);

/// Who had it, and how long one waited for that, ns.
pub type Behind = SmallVec<[(u32, Nanos); 4]>;

impl Trail {
    /// `who` had it from `begin` to `end`. Turns are told of in the order of their ends, almost.
    #[inline]
    pub fn note(&mut self, who: u32, begin: Nanos, end: Nanos) {
        if let Some(last) = self.0.back_mut() {
            if last.who == who && last.end == begin {
                last.end = end;
                return;
            }
        }
        if self.0.len() == MARKS {
            self.0.pop_front();
        }
        self.0.push_back(Mark { who, begin, end });
    }

    /// Behind whom somebody waited from `from` to `until`: that time, divided among those who had
    /// the resource in it by how long each had it. What happened before the oldest mark is divided
    /// likewise. Empty: nobody had it.
    pub fn behind(&self, from: Nanos, until: Nanos) -> Behind {
        let mut held = Behind::new();
        for mark in self.0.iter().rev() {
            let (begin, end) = (mark.begin.max(from), mark.end.min(until));
            if end > begin {
                match held.iter_mut().find(|(who, _)| *who == mark.who) {
                    Some((_, ns)) => *ns += end - begin,
                    None => held.push((mark.who, end - begin)),
                }
            }
            // The turns before it ended earlier still.
            if mark.end < from {
                break;
            }
        }
        let all: Nanos = held.iter().map(|(_, ns)| ns).sum();
        let waited = u128::from(until.saturating_sub(from));
        for (_, ns) in &mut held {
            *ns = (waited * u128::from(*ns) / u128::from(all.max(1))) as Nanos;
        }
        held
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn behind(trail: &Trail, from: Nanos, until: Nanos) -> Vec<(u32, Nanos)> {
        let mut behind = trail.behind(from, until).to_vec();
        behind.sort_unstable();
        behind
    }

    #[test]
    fn a_wait_is_divided_among_those_who_had_the_resource_in_it() {
        let mut trail = Trail::default();
        for (who, begin, end) in [(1, 0, 10), (2, 10, 40), (1, 40, 50), (3, 50, 90)] {
            trail.note(who, begin, end);
        }
        assert_eq!(behind(&trail, 10, 50), [(1, 10), (2, 30)]);
        assert_eq!(behind(&trail, 30, 60), [(1, 10), (2, 10), (3, 10)]);
        assert_eq!(behind(&trail, 95, 99), []);
    }

    #[test]
    fn several_at_a_time_share_the_wait() {
        let mut trail = Trail::default();
        trail.note(1, 0, 100);
        trail.note(2, 0, 100);
        trail.note(2, 50, 100);
        assert_eq!(behind(&trail, 0, 100), [(1, 40), (2, 60)]);
    }

    #[test]
    fn old_marks_go() {
        let mut trail = Trail::default();
        let whole = 2 * MARKS as u64;
        (0..whole).for_each(|at| trail.note((at % 2) as u32, at, at + 1));
        assert_eq!(trail.0.len(), MARKS);
        let each = MARKS as u64;
        assert_eq!(behind(&trail, 0, whole), [(0, each), (1, each)]);
    }

    #[test]
    fn turns_of_one_without_a_pause_are_one_mark() {
        let mut trail = Trail::default();
        for (who, begin, end) in [
            (1, 0, 10),
            (1, 10, 20),
            (1, 25, 30),
            (2, 30, 40),
            (1, 40, 50),
        ] {
            trail.note(who, begin, end);
        }
        assert_eq!(trail.0.len(), 4);
        assert_eq!(behind(&trail, 5, 20), [(1, 15)]);
        assert_eq!(behind(&trail, 28, 45), [(1, 7), (2, 10)]);
    }
}
