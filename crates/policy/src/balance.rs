//! Which connections should move from a busy core to an idle one.
//!
//! Exchanged consumption keeps shares right only as far as a core can give them: a tenant whose
//! connections all sit on one core cannot have more than that core ([`crate::dispatch`]). So once
//! in a while, far more seldom than rounds pass, connections move. A move costs cold caches and a
//! hand-over, and load that was measured a moment ago may be gone, so the step moves few, only what
//! narrows the gap for certain, only after the gap has stood for a while, and nothing twice in a
//! row.

use crate::cost::Nanos;
use std::collections::BTreeMap;

/// When to move, and how much. Loads are in thousandths of one core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BalanceOptions {
    /// The busiest core must be at least this loaded: below, nobody waits for it. Range: 1 to 1000.
    pub busy_permille: u64,
    /// Difference between the busiest and the idlest core above which connections move.
    pub start_permille: u64,
    /// Difference below which they stop; less than `start_permille`, so that it does not swing.
    pub stop_permille: u64,
    /// Intervals in a row that the difference must have stood.
    pub patience: u32,
    /// Most moves in one step.
    pub moves_max: usize,
    /// Intervals a moved connection stays where it is.
    pub rest: u64,
}

impl Default for BalanceOptions {
    /// Above 80 % load and a gap of 20 % for 3 intervals, at most 4 moves, until the gap is 5 %; a
    /// connection rests for 20 intervals. With an interval of 100 ms that follows a shift of load
    /// within half a second, and moves no connection more often than every 2 s.
    fn default() -> Self {
        BalanceOptions {
            busy_permille: 800,
            start_permille: 200,
            stop_permille: 50,
            patience: 3,
            moves_max: 4,
            rest: 20,
        }
    }
}

/// What one core did in the interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CoreLoad {
    /// Time spent on turns.
    pub busy_ns: Nanos,
    /// Estimated time that the work queued at the end of the interval will take: it tells two cores
    /// apart that were both busy all the time.
    pub backlog_ns: Nanos,
}

/// A connection (or a queue) that can move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Movable {
    /// The caller's name for it.
    pub id: u64,
    /// Where it is, an index into the loads.
    pub core: usize,
    /// Time spent on its turns in the interval.
    pub load_ns: Nanos,
}

/// One connection goes to another core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    /// Which.
    pub id: u64,
    /// From this core.
    pub from: usize,
    /// To this one.
    pub to: usize,
}

/// Why the step did what it did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// No core is busy, or the gap is small.
    Even,
    /// The gap has not stood long enough.
    Waiting {
        /// Intervals it has stood, this one included.
        intervals: u32,
    },
    /// There is a gap, but no connection that may move and would narrow it.
    NothingFits,
    /// Connections move.
    Moved,
}

/// What to do, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The moves, in order.
    pub moves: Vec<Move>,
    /// Why these.
    pub reason: Reason,
    /// Difference between the busiest and the idlest core before the moves, in thousandths of a
    /// core.
    pub gap_permille: u64,
}

/// The state between steps.
#[derive(Clone, Debug)]
pub struct Balancer {
    options: BalanceOptions,
    interval: u64,
    stood: u32,
    /// Until which interval a moved connection rests.
    resting: BTreeMap<u64, u64>,
}

impl Balancer {
    /// A balancer that has seen nothing yet.
    #[must_use]
    pub fn new(options: BalanceOptions) -> Self {
        Balancer {
            options,
            interval: 0,
            stood: 0,
            resting: BTreeMap::new(),
        }
    }

    /// A connection came from elsewhere: it stays for as long as one that this balancer moved.
    pub fn rests(&mut self, id: u64) {
        let until = self.interval + self.options.rest;
        self.resting.insert(id, until);
    }

    /// One interval of `interval_ns` (not zero) is over: who should move? Connections on cores that
    /// `cores` does not list are left alone.
    pub fn step(
        &mut self,
        interval_ns: Nanos,
        cores: &[CoreLoad],
        movable: &[Movable],
    ) -> Decision {
        self.interval += 1;
        let now = self.interval;
        self.resting.retain(|_, until| *until > now);
        let mut loads: Vec<u64> = cores
            .iter()
            .map(|core| permille(core.busy_ns.saturating_add(core.backlog_ns), interval_ns))
            .collect();
        let gap_permille = gap(&loads).map_or(0, |(_, _, gap)| gap);
        let busiest = loads.iter().copied().max().unwrap_or(0);
        let decide = |moves, reason| Decision {
            moves,
            reason,
            gap_permille,
        };
        if busiest < self.options.busy_permille || gap_permille <= self.options.start_permille {
            self.stood = 0;
            return decide(Vec::new(), Reason::Even);
        }
        self.stood += 1;
        if self.stood < self.options.patience {
            return decide(
                Vec::new(),
                Reason::Waiting {
                    intervals: self.stood,
                },
            );
        }
        let moves = self.choose(interval_ns, &mut loads, movable);
        if moves.is_empty() {
            return decide(moves, Reason::NothingFits);
        }
        self.stood = 0;
        decide(moves, Reason::Moved)
    }

    /// The moves that narrow the gap, and the loads after them.
    fn choose(&mut self, interval_ns: Nanos, loads: &mut [u64], movable: &[Movable]) -> Vec<Move> {
        let mut rest: Vec<(u64, &Movable)> = movable
            .iter()
            .filter(|m| m.load_ns > 0 && m.core < loads.len() && !self.resting.contains_key(&m.id))
            .map(|m| (permille(m.load_ns, interval_ns), m))
            .collect();
        // Largest first: fewest moves. Ties by name, so that the decision is reproducible.
        rest.sort_by_key(|(load, m)| (u64::MAX - load, m.id));
        let mut moves = Vec::new();
        while moves.len() < self.options.moves_max {
            let Some((from, to, gap)) = gap(loads) else {
                break;
            };
            // Half the gap at most: more would only turn it round.
            let fits =
                |(load, m): &(u64, &Movable)| m.core == from && *load > 0 && *load <= gap / 2;
            let Some(at) = rest
                .iter()
                .position(fits)
                .filter(|_| gap > self.options.stop_permille)
            else {
                break;
            };
            let (load, chosen) = rest.remove(at);
            loads[from] -= load.min(loads[from]);
            loads[to] += load;
            self.rests(chosen.id);
            moves.push(Move {
                id: chosen.id,
                from,
                to,
            });
        }
        moves
    }
}

fn permille(ns: Nanos, of_ns: Nanos) -> u64 {
    ns.saturating_mul(1000) / of_ns.max(1)
}

/// The busiest core, the idlest, and the difference of their loads; the first of equals.
fn gap(loads: &[u64]) -> Option<(usize, usize, u64)> {
    let busiest = (0..loads.len()).max_by_key(|&i| (loads[i], usize::MAX - i))?;
    let idlest = (0..loads.len()).min_by_key(|&i| (loads[i], i))?;
    Some((busiest, idlest, loads[busiest] - loads[idlest]))
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: Nanos = 100_000_000;

    fn load(percent: u64) -> CoreLoad {
        CoreLoad {
            busy_ns: INTERVAL / 100 * percent,
            backlog_ns: 0,
        }
    }

    fn on(core: usize, percents: &[u64]) -> Vec<Movable> {
        let each = percents.iter().enumerate();
        each.map(|(i, p)| Movable {
            id: (core * 100 + i) as u64,
            core,
            load_ns: INTERVAL / 100 * p,
        })
        .collect()
    }

    fn settled(cores: &[CoreLoad], movable: &[Movable]) -> Decision {
        let mut balancer = Balancer::new(BalanceOptions::default());
        balancer.step(INTERVAL, cores, movable);
        balancer.step(INTERVAL, cores, movable);
        balancer.step(INTERVAL, cores, movable)
    }

    #[test]
    fn a_gap_is_closed_with_few_moves() {
        let decision = settled(&[load(100), load(20)], &on(0, &[10, 35, 5, 50]));
        assert_eq!(decision.reason, Reason::Moved);
        assert_eq!(decision.gap_permille, 800);
        // 35 of the 40 that would make it even, then the 5.
        let ids: Vec<u64> = decision.moves.iter().map(|m| m.id).collect();
        assert_eq!(ids, [1, 2]);
        assert!(decision.moves.iter().all(|m| (m.from, m.to) == (0, 1)));
    }

    #[test]
    fn a_short_gap_and_idle_cores_are_left_alone() {
        let movable = on(0, &[30, 30]);
        let mut balancer = Balancer::new(BalanceOptions::default());
        let uneven = [load(90), load(10)];
        let first = balancer.step(INTERVAL, &uneven, &movable);
        assert_eq!(first.reason, Reason::Waiting { intervals: 1 });
        assert_eq!(
            balancer
                .step(INTERVAL, &[load(90), load(80)], &movable)
                .reason,
            Reason::Even
        );
        let again = balancer.step(INTERVAL, &uneven, &movable);
        assert_eq!(again.reason, Reason::Waiting { intervals: 1 });
        assert_eq!(settled(&[load(60), load(0)], &movable).reason, Reason::Even);
        assert_eq!(settled(&[], &[]).reason, Reason::Even);
    }

    #[test]
    fn one_large_connection_is_not_thrown_back_and_forth() {
        let decision = settled(&[load(100), load(0)], &on(0, &[100]));
        assert_eq!(
            (decision.moves.len(), decision.reason),
            (0, Reason::NothingFits)
        );
    }

    #[test]
    fn backlog_tells_two_busy_cores_apart() {
        let behind = CoreLoad {
            busy_ns: INTERVAL,
            backlog_ns: INTERVAL / 2,
        };
        let decision = settled(&[load(100), behind], &on(1, &[20, 20, 60]));
        assert_eq!(
            decision.moves,
            [Move {
                id: 100,
                from: 1,
                to: 0
            }]
        );
    }

    #[test]
    fn what_came_from_elsewhere_rests() {
        let mut balancer = Balancer::new(BalanceOptions::default());
        balancer.rests(0);
        let rested = (0..30).position(|_| {
            let decision = balancer.step(INTERVAL, &[load(100), load(0)], &on(0, &[40]));
            decision.reason == Reason::Moved
        });
        assert_eq!(rested, Some(19), "the first interval after its rest of 20");
    }

    #[test]
    fn what_has_moved_rests() {
        let mut balancer = Balancer::new(BalanceOptions::default());
        let mut moved = 0;
        for _ in 0..20 {
            let decision = balancer.step(INTERVAL, &[load(100), load(0)], &on(0, &[40]));
            moved += decision.moves.len();
        }
        assert_eq!(moved, 1, "even if it still seems to be there");
    }
}
