//! Several cores, each with its own dispatch, in lock step: shares of the whole machine.

mod common;

use common::{mmr, options, out, request, MS, R, S, US};
use policy::dispatch::{Allocation, Consumed, Dispatch, Limit, Next, Verdict};
use policy::{Cost, Nanos, PrincipalId};
use proptest::prelude::*;

/// Cores that serve who is placed on them, and exchange consumption every `every` nanoseconds.
struct Machine {
    cores: Vec<Core>,
    every: Nanos,
    exchanged: Nanos,
    used: Vec<u64>,
}

struct Core {
    dispatch: Dispatch<(), R>,
    /// Who has connections here.
    here: Vec<usize>,
    now: Nanos,
}

impl Machine {
    /// `placement[tenant]` lists its cores.
    fn new(allocations: &[Allocation], placement: &[&[usize]], cores: usize) -> Self {
        let core = |number: usize| {
            let mut dispatch = Dispatch::new(options());
            for (id, allocation) in allocations.iter().enumerate() {
                dispatch.configure(S, PrincipalId(id as u32), allocation);
            }
            let here = (0..allocations.len()).filter(|t| placement[*t].contains(&number));
            Core {
                dispatch,
                here: here.collect(),
                now: S,
            }
        };
        Machine {
            cores: (0..cores).map(core).collect(),
            every: MS,
            exchanged: S,
            used: vec![0; allocations.len()],
        }
    }

    /// Runs each core's turns up to the next exchange, then exchanges; until `until`.
    fn run(&mut self, until: Nanos, cost: impl Fn(usize) -> Cost<R>) {
        while self.exchanged < until {
            self.exchanged += self.every;
            for core in &mut self.cores {
                while core.now < self.exchanged {
                    core.turn(&cost, &mut self.used);
                }
            }
            self.exchange();
        }
    }

    fn exchange(&mut self) {
        let mut reports: Vec<Vec<Consumed>> = Vec::new();
        for core in &mut self.cores {
            let mut report = Vec::new();
            core.dispatch.report(&mut report);
            reports.push(report);
        }
        for (to, core) in self.cores.iter_mut().enumerate() {
            for (from, report) in reports.iter().enumerate() {
                if from != to {
                    core.dispatch.absorb(core.now, report);
                }
            }
        }
    }
}

impl Core {
    fn turn(&mut self, cost: impl Fn(usize) -> Cost<R>, used: &mut [u64]) {
        for &id in &self.here {
            let principal = PrincipalId(id as u32);
            if self
                .dispatch
                .observe(self.now, principal)
                .is_some_and(|o| o.queued < 2)
            {
                self.dispatch
                    .enqueue(self.now, principal, ())
                    .expect("room");
            }
        }
        match self.dispatch.next(self.now) {
            Next::Grant(grant) => {
                let id = grant.principal.0 as usize;
                let cost = if grant.verdict == Verdict::Serve {
                    cost(id)
                } else {
                    Cost([0, 0, 100, 0])
                };
                self.now += cost.0[2].max(cost.0[3]).max(100);
                if grant.verdict == Verdict::Serve {
                    used[id] += cost.0[2].max(cost.0[3]);
                }
                self.dispatch.settle(self.now, grant.ticket, cost);
            }
            Next::At(at) => self.now = at,
            Next::Idle => self.now += 10 * US,
        }
    }
}

/// Runs a while to settle and half a second to measure; what each got in the latter, in seconds of
/// a core.
fn shares(weights: &[f64], placement: &[&[usize]], cores: usize) -> Vec<f64> {
    let list: Vec<_> = weights.iter().map(|&w| Allocation::share(w)).collect();
    let mut machine = Machine::new(&list, placement, cores);
    machine.run(S + 300 * MS, |id| out((10 + 3 * id as u64) * US));
    let before = machine.used.clone();
    machine.run(S + 800 * MS, |id| out((10 + 3 * id as u64) * US));
    let gained = machine.used.iter().zip(before);
    gained
        .map(|(used, before)| (used - before) as f64 / 1e9)
        .collect()
}

#[test]
fn a_tenant_on_one_core_gets_its_share_of_the_machine() {
    let got = shares(&[1.0, 1.0], &[&[0], &[0, 1]], 2);
    assert!(mmr(&got, &[1.0, 1.0]) >= 0.98, "{got:?}");
}

#[test]
fn three_tenants_chained_over_two_cores() {
    // Equal shares are possible: the one in the middle takes a third of each core.
    let got = shares(&[1.0, 1.0, 1.0], &[&[0], &[0, 1], &[1]], 2);
    assert!(mmr(&got, &[1.0, 1.0, 1.0]) >= 0.98, "{got:?}");
}

#[test]
fn weights_hold_over_four_cores() {
    let all: &[usize] = &[0, 1, 2, 3];
    let got = shares(&[4.0, 3.0, 2.0, 1.0], &[all, all, &[0, 1], &[2]], 4);
    assert!(mmr(&got, &[4.0, 3.0, 2.0, 1.0]) >= 0.98, "{got:?}");
}

#[test]
fn a_share_that_one_core_cannot_give_is_max_min() {
    // Weight 3 to 1, but the heavy one sits on one core: it gets all of that, the other the rest.
    let got = shares(&[3.0, 1.0], &[&[0], &[0, 1]], 2);
    assert!(mmr(&got, &[1.0, 1.0]) >= 0.97, "{got:?}");
}

#[test]
fn skewed_weights_over_two_cores() {
    let weights: Vec<f64> = [(100.0, 4), (10.0, 20), (1.0, 40)]
        .iter()
        .flat_map(|&(w, n)| vec![w; n])
        .collect();
    let placement: Vec<&[usize]> = (0..64)
        .map(|id| [&[0, 1][..], &[0][..], &[1][..]][if id < 4 { 0 } else { 1 + id % 2 }])
        .collect();
    let list: Vec<_> = weights.iter().map(|&w| Allocation::share(w)).collect();
    let mut machine = Machine::new(&list, &placement, 2);
    machine.run(S + 500 * MS, |_| out(5 * US));
    let before = machine.used.clone();
    machine.run(3 * S + 500 * MS, |_| out(5 * US));
    let got: Vec<f64> = machine
        .used
        .iter()
        .zip(before)
        .map(|(u, b)| (u - b) as f64)
        .collect();
    let fair = mmr(&got, &weights);
    assert!(fair >= 0.98, "{fair}");
}

#[test]
fn a_limit_holds_over_all_cores() {
    let limit = Limit {
        requests_per_s: Some(10_000.0),
        max_wait_ns: S,
        ..Limit::default()
    };
    let list = [
        Allocation {
            limit,
            ..Allocation::default()
        },
        Allocation::default(),
    ];
    let mut machine = Machine::new(&list, &[&[0, 1], &[0, 1]], 2);
    let turn = |_| request(10 * US);
    machine.run(2 * S, turn);
    let requests = machine.used[0] / (10 * US);
    // A second's worth, one burst of 100 ms, and what the other core can do between exchanges.
    assert!((10_990..=11_110).contains(&requests), "{requests}");
}

#[test]
fn a_reservation_holds_over_all_cores_and_is_not_given_twice() {
    let reserved = Allocation {
        weight: 0.001,
        reservation_per_s: Some(20_000.0),
        ..Allocation::default()
    };
    let list = [reserved, Allocation::share(1000.0)];
    let mut machine = Machine::new(&list, &[&[0, 1], &[0, 1]], 2);
    let turn = |_| request(10 * US);
    machine.run(2 * S, turn);
    let got = machine.used[0] / (10 * US);
    assert!((19_800..=22_000).contains(&got), "{got}");
}

#[test]
fn idle_here_busy_elsewhere_is_a_bounded_debt() {
    let mut here: Dispatch<(), R> = Dispatch::new(options());
    for id in 0..2 {
        here.configure(0, PrincipalId(id), &Allocation::default());
    }
    let remote = Consumed {
        charge: policy::Charge::from_ns(MS),
        ..Consumed::of(PrincipalId(0))
    };
    for ms in 0..10_000 {
        here.absorb(ms * MS, &[remote]);
    }
    let seen = here.observe(10 * S, PrincipalId(0)).expect("known");
    assert_eq!(seen.debt_ns, 100 * MS);
    assert!(seen.forgiven_ns > 9 * S);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// Everybody on every core: shares follow weights whatever they are.
    #[test]
    fn shares_converge(logs in prop::collection::vec(-0.7f64..0.7, 2..6), cores in 2usize..5) {
        let weights: Vec<f64> = logs.iter().map(|l| 10f64.powf(*l)).collect();
        let everywhere: Vec<usize> = (0..cores).collect();
        let placement: Vec<&[usize]> = weights.iter().map(|_| everywhere.as_slice()).collect();
        let got = shares(&weights, &placement, cores);
        let fair = mmr(&got, &weights);
        prop_assert!(fair >= 0.98, "{fair}: {got:?} for {weights:?}");
    }
}
