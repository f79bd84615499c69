//! Permits, work conservation, determinism, and that nothing is lost, under random use of
//! everything.

mod common;

use common::{options, out, Backlogged, MS, R, US};
use policy::dispatch::{
    Allocation, Consumed, Discipline, Dispatch, DispatchOptions, LaneAllocation, LaneId, Limit,
    Next, Others, Terms, Ticket, Verdict,
};
use policy::words::Words;
use policy::{Charge, Cost, PrincipalId};
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Step {
    Configure(u32, u8, u32),
    Remove(u32),
    Enqueue(u32),
    Next,
    Settle(usize, u64),
    Abandon(usize),
    Charge(u32, u64),
    Absorb(u32, u64),
    Wait(u64),
    Discipline(usize),
    Permits(u32),
    EnqueueOn(u32, u8, Option<u64>),
    Lane(u32, u8, u8),
    RemoveLane(u32, u8),
    Others(u8),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let who = 0u32..6;
    let step = prop_oneof![
        1 => (who.clone(), any::<u8>(), 0u32..3).prop_map(|(p, k, r)| Step::Configure(p, k, r)),
        1 => who.clone().prop_map(Step::Remove),
        8 => who.clone().prop_map(Step::Enqueue),
        8 => Just(Step::Next),
        6 => (any::<usize>(), 0u64..200_000).prop_map(|(t, c)| Step::Settle(t, c)),
        1 => any::<usize>().prop_map(Step::Abandon),
        1 => (who.clone(), 0u64..1_000_000).prop_map(|(p, c)| Step::Charge(p, c)),
        1 => (who, 0u64..1_000_000).prop_map(|(p, c)| Step::Absorb(p, c)),
        3 => (0u64..2_000_000).prop_map(Step::Wait),
        1 => (0..Discipline::ALL.len()).prop_map(Step::Discipline),
        1 => (1u32..6).prop_map(Step::Permits),
        6 => (0u32..6, 0u8..4, prop::option::of(0u64..2_000_000))
            .prop_map(|(p, l, due)| Step::EnqueueOn(p, l, due)),
        1 => (0u32..6, 0u8..3, any::<u8>()).prop_map(|(p, l, k)| Step::Lane(p, l, k)),
        1 => (0u32..6, 0u8..3).prop_map(|(p, l)| Step::RemoveLane(p, l)),
        1 => any::<u8>().prop_map(Step::Others),
    ];
    prop::collection::vec(step, 1..300)
}

fn allocation(kind: u8, reserved: u32) -> Allocation {
    let some = |bit: u8, rate: f64| (kind & bit != 0).then_some(rate);
    Allocation {
        weight: [0.001, 1.0, 3.7, 1000.0][usize::from(kind % 4)],
        reserved_permits: if kind & 64 != 0 { reserved } else { 0 },
        reservation_per_s: some(4, 2000.0),
        contract_per_s: some(8, 500.0),
        limit: Limit {
            requests_per_s: some(16, 1000.0),
            bytes_per_s: some(32, 1e6),
            burst_ns: MS,
            max_wait_ns: 3 * MS,
        },
    }
}

fn others(kind: u8) -> Others {
    let number = |bits: u8| [u32::MAX, 1, 2, 0][usize::from(bits % 4)];
    Others {
        permits: number(kind),
        beside: number(kind >> 2),
        kept: u32::from(kind >> 1 & 3),
        floor: f64::from(kind >> 4 & 3) / 10.0,
        first: kind & 128 != 0,
        between: kind & 64 != 0,
        linger_ns: u64::from(kind >> 6) * 100_000,
        run_ns: u64::from(kind >> 5 & 1) * 5_000_000,
    }
}

/// Runs the steps, checking what must hold after each; returns a trace of every answer.
fn run(steps: &[Step], seed: u64) -> Vec<String> {
    let mut o = options();
    o.permits = 3;
    o.queue_max = 8;
    o.seed = seed;
    let mut world = World {
        d: Dispatch::new(o),
        permits: 3,
        ..World::default()
    };
    for step in steps {
        world.step(step);
    }
    world.drain();
    world.trace
}

struct World {
    d: Dispatch<u64, R>,
    now: u64,
    permits: u32,
    tickets: Vec<Ticket>,
    item: u64,
    queued: std::collections::BTreeSet<u64>,
    trace: Vec<String>,
}

impl Default for World {
    fn default() -> Self {
        World {
            d: Dispatch::new(options()),
            now: 0,
            permits: 1,
            tickets: Vec::new(),
            item: 0,
            queued: Default::default(),
            trace: Vec::new(),
        }
    }
}

impl World {
    fn step(&mut self, step: &Step) {
        let now = self.now;
        match *step {
            Step::Configure(p, kind, reserved) => {
                self.d
                    .configure(now, PrincipalId(p), &allocation(kind, reserved));
            }
            Step::Remove(p) => {
                for item in self.d.remove(now, PrincipalId(p)) {
                    assert!(self.queued.remove(&item));
                }
            }
            Step::Enqueue(p) => {
                self.item += 1;
                if self.d.enqueue(now, PrincipalId(p), self.item).is_ok() {
                    self.queued.insert(self.item);
                }
            }
            Step::Next => {
                self.next();
            }
            Step::Settle(at, cost) if !self.tickets.is_empty() => {
                let ticket = self.tickets.swap_remove(at % self.tickets.len());
                self.d
                    .settle(now, ticket, Cost([cost / 20_000, cost / 3, cost, 0]));
            }
            Step::Abandon(at) if !self.tickets.is_empty() => {
                let ticket = self.tickets.swap_remove(at % self.tickets.len());
                self.d.abandon(now, ticket);
            }
            Step::Charge(p, cost) => self.d.charge(now, PrincipalId(p), out(cost)),
            Step::Absorb(p, ns) => {
                let consumed = Consumed {
                    lane: LaneId(p as u8 % 3),
                    charge: Charge::from_ns(ns),
                    requests: 3,
                    bytes: ns,
                    in_contract: 2,
                    timed: 1,
                    ..Consumed::of(PrincipalId(p))
                };
                self.d.absorb(now, &[consumed]);
            }
            Step::Wait(ns) => self.now += ns,
            Step::Discipline(rule) => {
                let (rule, _) = Discipline::ALL[rule];
                self.d.set_discipline(now, rule);
            }
            Step::Permits(n) => {
                self.permits = n;
                self.d.set_permits(n);
            }
            Step::Settle(..) | Step::Abandon(..) => {}
            _ => self.step_of_lanes(step),
        }
        assert_eq!(self.d.queued(), self.queued.len() as u64);
        let of_each = (0..=u32::from(u8::MAX)).map(|id| self.d.queued_of(PrincipalId(id)));
        assert_eq!(of_each.sum::<u64>(), self.d.queued());
        assert_eq!(self.d.in_flight() as usize, self.tickets.len());
    }

    fn step_of_lanes(&mut self, step: &Step) {
        let now = self.now;
        match *step {
            Step::EnqueueOn(p, lane, due_in) => {
                self.item += 1;
                let terms = Terms {
                    lane: LaneId(lane),
                    due_at: due_in.map(|ns| now + ns),
                    stream: due_in.map_or(self.item as u32 % 4, |_| 0),
                    level: self.item as u8 % 3,
                };
                let taken = self.d.enqueue_on(now, PrincipalId(p), terms, self.item);
                if taken.is_ok() {
                    self.queued.insert(self.item);
                }
            }
            Step::Lane(p, lane, kind) => {
                let allocation = LaneAllocation {
                    weight: f64::from(kind % 4) + 0.5,
                    contract_per_s: [None, Some(0.0), Some(100.0), Some(5000.0)]
                        [usize::from(kind / 64)],
                };
                self.d
                    .configure_lane(now, PrincipalId(p), LaneId(lane), &allocation);
            }
            Step::RemoveLane(p, lane) => self.d.remove_lane(now, PrincipalId(p), LaneId(lane)),
            Step::Others(kind) => self.d.set_others(now, others(kind)),
            _ => unreachable!("a step of lanes"),
        }
    }

    fn next(&mut self) -> bool {
        let before = self.d.in_flight();
        match self.d.next(self.now) {
            Next::Grant(grant) => {
                assert!(before < self.permits, "never more than the permits");
                assert!(self.queued.remove(&grant.item), "each item once");
                let serve = grant.verdict == Verdict::Serve;
                self.trace
                    .push(format!("{} {:?} {serve}", grant.item, grant.principal));
                self.tickets.push(grant.ticket);
                return true;
            }
            Next::At(at) => {
                assert!(at > self.now, "a time to come");
                self.trace.push(format!("at {at}"));
            }
            Next::Idle => self.trace.push("idle".into()),
        }
        false
    }

    /// Everything queued comes out in bounded time, and nothing twice.
    fn drain(&mut self) {
        for _ in 0..10_000 {
            while let Some(ticket) = self.tickets.pop() {
                self.d.settle(self.now, ticket, out(US));
            }
            if self.queued.is_empty() {
                return;
            }
            if !self.next() {
                match self.d.next(self.now) {
                    Next::At(at) => self.now = at,
                    other => panic!("{} items stuck: {other:?}", self.queued.len()),
                }
            }
        }
        panic!("not drained: {:?}", self.queued);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Permits are never exceeded, no item is lost or granted twice, everything comes out in the
    /// end; and the same steps give the same answers.
    #[test]
    fn anything_goes_and_nothing_is_lost(steps in steps(), seed: u64) {
        let first = run(&steps, seed);
        prop_assert_eq!(first, run(&steps, seed));
    }

    /// Work conservation: with a shared permit free and no limits, something queued is something
    /// granted.
    #[test]
    fn no_permit_is_idle_while_there_is_work(
        rule in 0..Discipline::ALL.len(),
        permits in 1u32..5,
        moves in prop::collection::vec((0u32..5, 0u8..3, 0u64..100_000), 1..300),
    ) {
        let mut options = options();
        options.permits = permits;
        options.discipline = Discipline::ALL[rule].0;
        let mut dispatch = Dispatch::<(), R>::new(options);
        for id in 0..5 {
            dispatch.configure(0, PrincipalId(id), &Allocation::share(f64::from(id) + 0.5));
        }
        let mut tickets = Vec::new();
        let mut now = 0;
        for (id, kind, ns) in moves {
            now += ns / 10;
            match kind {
                0 => drop(dispatch.enqueue(now, PrincipalId(id), ())),
                1 => while let Next::Grant(grant) = dispatch.next(now) { tickets.push(grant.ticket); },
                _ => if let Some(ticket) = tickets.pop() { dispatch.settle(now, ticket, out(ns)); },
            }
            if kind == 1 {
                prop_assert!(dispatch.queued() == 0 || tickets.len() == permits as usize);
            }
        }
    }
}

#[test]
fn the_seed_decides_the_lottery() {
    let draws = |seed| {
        let mut options = options();
        options.discipline = Discipline::Lottery;
        options.seed = seed;
        let shares = [1.0, 2.0, 3.0].map(Allocation::share);
        let mut world = Backlogged::new(options, &shares);
        (0..100)
            .filter_map(|_| world.turn(|_, _| out(US)))
            .collect::<Vec<_>>()
    };
    assert_eq!(draws(1), draws(1));
    assert_ne!(draws(1), draws(2));
}

#[test]
fn a_lottery_gives_turns_by_weight_whatever_they_cost() {
    let mut options = options();
    options.discipline = Discipline::Lottery;
    let mut world = Backlogged::new(options, &[1.0, 3.0].map(Allocation::share));
    for _ in 0..40_000 {
        world.turn(|id, _| out(if id == 0 { 50 * US } else { US }));
    }
    let ratio = world.turns[1] as f64 / world.turns[0] as f64;
    assert!((2.9..3.1).contains(&ratio), "{ratio}");
}

#[test]
fn fifo_is_arrival_order() {
    let mut options = options();
    options.discipline = Discipline::Fifo;
    let mut dispatch = Dispatch::<u32, R>::new(options);
    for id in 0..3 {
        dispatch.configure(0, PrincipalId(id), &Allocation::share(f64::from(id) + 1.0));
    }
    for item in [2, 0, 0, 1, 2, 1, 0] {
        dispatch.enqueue(0, PrincipalId(item), item).expect("room");
    }
    let mut order = Vec::new();
    while let Next::Grant(grant) = dispatch.next(0) {
        order.push(grant.item);
        dispatch.settle(0, grant.ticket, out(50 * US));
    }
    assert_eq!(order, [2, 0, 0, 1, 2, 1, 0]);
}

#[test]
fn reserved_permits_are_kept_free_and_the_rest_is_shared() {
    let mut options = options();
    options.permits = 4;
    let front = Allocation {
        reserved_permits: 1,
        ..Allocation::default()
    };
    let mut dispatch = Dispatch::<(), R>::new(options);
    let (front_end, batch) = (PrincipalId(0), PrincipalId(1));
    dispatch.configure(0, front_end, &front);
    dispatch.configure(0, batch, &Allocation::share(1000.0));
    for _ in 0..10 {
        dispatch.enqueue(0, batch, ()).expect("room");
    }
    let mut grant = || match dispatch.next(0) {
        Next::Grant(grant) => Some(grant),
        _ => None,
    };
    let batch_turns: Vec<_> = std::iter::from_fn(&mut grant).collect();
    assert_eq!(batch_turns.len(), 3, "one permit stays free");
    dispatch.enqueue(0, front_end, ()).expect("room");
    let Next::Grant(first) = dispatch.next(0) else {
        panic!("its own permit is free")
    };
    assert_eq!(first.principal, front_end);
    // Its second item competes for the shared ones.
    dispatch.enqueue(0, front_end, ()).expect("room");
    assert!(matches!(dispatch.next(0), Next::Idle));
    for grant in batch_turns {
        dispatch.settle(0, grant.ticket, out(US));
    }
    assert!(matches!(dispatch.next(0), Next::Grant(_)));
}

#[test]
fn a_removed_principal_takes_its_permits_to_the_end() {
    let mut dispatch = Dispatch::<u8, R>::new(options());
    let id = PrincipalId(3);
    dispatch.configure(0, id, &Allocation::default());
    dispatch.enqueue(0, id, 1).expect("room");
    dispatch.enqueue(0, id, 2).expect("room");
    let Next::Grant(grant) = dispatch.next(0) else {
        panic!("work")
    };
    assert_eq!(dispatch.remove(0, id), [2]);
    assert_eq!((dispatch.in_flight(), dispatch.queued()), (1, 0));
    assert_eq!(dispatch.enqueue(0, id, 3), Err(3));
    // Another under the same number is not charged for it.
    dispatch.configure(0, id, &Allocation::default());
    dispatch.settle(0, grant.ticket, out(MS));
    assert_eq!(dispatch.in_flight(), 0);
    assert_eq!(
        dispatch.observe(0, id).map(|o| (o.charged_ns, o.in_flight)),
        Some((0, 0))
    );
}

#[test]
fn what_was_set_aside_and_refunded_is_what_was_used() {
    // One resource, so the charge of a turn is its cost: nothing of the estimates may remain.
    let options: DispatchOptions<R> = options();
    let mut world = Backlogged::new(options, &[Allocation::share(0.7), Allocation::share(1.9)]);
    let mut costs = (0..).map(|i: u64| i * 7919 % 99_991);
    for _ in 0..20_000 {
        world.turn(|_, _| out(costs.next().unwrap_or(0)));
    }
    for id in 0..2 {
        let seen = world
            .dispatch
            .observe(world.now, PrincipalId(id))
            .expect("known");
        assert_eq!(seen.charged_ns, world.used[id as usize].0[2]);
        assert_eq!((seen.in_flight, seen.forgiven_ns), (0, 0));
    }
}
