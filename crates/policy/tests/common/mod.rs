//! Helpers of the property tests: a dispatch over (requests, bytes in, bytes out, CPU), and
//! principals that always have work.
#![allow(dead_code, reason = "each test file uses its part")]

pub mod promised;

use policy::dispatch::{Allocation, Dispatch, DispatchOptions, Grant, Meter, Next};
use policy::{Cost, Nanos, PrincipalId};

/// Requests, bytes in, bytes out, nanoseconds of CPU.
pub const R: usize = 4;
pub const US: Nanos = 1_000;
pub const MS: Nanos = 1_000_000;
pub const S: Nanos = 1_000_000_000;
/// A turn's budget in the default options.
pub const QUANTUM_NS: Nanos = 100 * US;

/// A million requests, and a gigabyte each way, a second: a byte takes 1 ns, a request 1 µs.
pub fn options() -> DispatchOptions<R> {
    let meter = Meter {
        requests: 0,
        bytes: [false, true, true, false],
    };
    DispatchOptions::new([1_000_000, S, S, S], meter)
}

/// A turn that keeps the outgoing side busy for `ns`.
pub fn out(ns: Nanos) -> Cost<R> {
    Cost([0, 0, ns, 0])
}

/// One request, small, that takes `ns` of CPU.
pub fn request(ns: Nanos) -> Cost<R> {
    Cost([1, 40, 10, ns])
}

/// One core that serves principals which always have something queued.
pub struct Backlogged {
    pub dispatch: Dispatch<(), R>,
    pub now: Nanos,
    pub turns: Vec<u64>,
    pub used: Vec<Cost<R>>,
    /// Principals that keep coming back.
    pub keep: Vec<bool>,
}

impl Backlogged {
    pub fn new(options: DispatchOptions<R>, allocations: &[Allocation]) -> Self {
        let mut world = Backlogged {
            dispatch: Dispatch::new(options),
            now: 0,
            turns: vec![0; allocations.len()],
            used: vec![Cost::ZERO; allocations.len()],
            keep: vec![true; allocations.len()],
        };
        for (id, allocation) in allocations.iter().enumerate() {
            world
                .dispatch
                .configure(0, PrincipalId(id as u32), allocation);
        }
        world
    }

    pub fn weights(weights: &[f64]) -> Self {
        let shares: Vec<_> = weights.iter().map(|&w| Allocation::share(w)).collect();
        Backlogged::new(options(), &shares)
    }

    /// Everybody who keeps coming has two items queued.
    pub fn fill(&mut self) {
        for id in 0..self.keep.len() {
            let principal = PrincipalId(id as u32);
            while self.keep[id] && self.queued(principal) < 2 {
                self.dispatch
                    .enqueue(self.now, principal, ())
                    .expect("room");
            }
        }
    }

    fn queued(&self, principal: PrincipalId) -> usize {
        self.dispatch
            .observe(self.now, principal)
            .map_or(0, |o| o.queued)
    }

    /// One turn that costs `cost(principal, budget)`, and takes as long as its slowest resource.
    /// `None` if nobody may go now.
    pub fn turn(&mut self, cost: impl FnOnce(usize, &Grant<(), R>) -> Cost<R>) -> Option<usize> {
        self.fill();
        let Next::Grant(grant) = self.dispatch.next(self.now) else {
            return None;
        };
        let id = grant.principal.0 as usize;
        let cost = cost(id, &grant);
        self.now += cost.0[1..].iter().copied().fold(cost.0[0] * US, u64::max);
        self.turns[id] += 1;
        self.used[id] = self.used[id].plus(cost);
        self.dispatch.settle(self.now, grant.ticket, cost);
        Some(id)
    }

    /// Turns of the same cost until `until`.
    pub fn run(&mut self, until: Nanos, cost: impl Fn(usize) -> Cost<R>) {
        while self.now < until {
            assert!(
                self.turn(|id, _| cost(id)).is_some(),
                "there is always work"
            );
        }
    }
}

/// Smallest over largest of `got / wanted`: 1 is perfectly fair.
pub fn mmr(got: &[f64], wanted: &[f64]) -> f64 {
    let ratios: Vec<f64> = got.iter().zip(wanted).map(|(g, w)| g / w).collect();
    let least = ratios.iter().copied().fold(f64::INFINITY, f64::min);
    least / ratios.iter().copied().fold(0.0, f64::max)
}
