//! Small work of a tenant passes its large work, and that is all that changes.

use policy::dispatch::{
    Allocation, Discipline, Dispatch, DispatchOptions, LaneAllocation, LaneId, Next, Terms, Ticket,
};
use policy::multiget::{level_of, Levels, Rates, LEVELS_MAX};
use policy::{Cost, Nanos, PrincipalId};
use proptest::prelude::*;
use std::collections::{BTreeMap, VecDeque};

const KEY_NS: Nanos = 10_000;

fn handlers(tenants: u32, permits: u32, discipline: Discipline) -> Dispatch<u64, 1> {
    let options = DispatchOptions {
        discipline,
        queue_max: usize::MAX,
        ..DispatchOptions::handlers(permits)
    };
    let mut dispatch = Dispatch::new(options);
    for id in 0..tenants {
        dispatch.configure(0, PrincipalId(id), &Allocation::share(f64::from(id + 1)));
    }
    dispatch
}

fn sized(size: u64) -> Terms {
    Terms {
        level: level_of(size),
        ..Terms::default()
    }
}

#[derive(Clone, Debug)]
enum Step {
    Comes { tenant: u32, lane: u8, size: u64 },
    Goes,
    Ends { took_ns: Nanos },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let size = prop_oneof![Just(1u64), 1u64..200, 1u64..100_000];
    let comes = (0u32..3, 0u8..2, size);
    let comes = comes.prop_map(|(tenant, lane, size)| Step::Comes { tenant, lane, size });
    let ends = (0u64..5_000_000).prop_map(|took_ns| Step::Ends { took_ns });
    prop::collection::vec(
        prop_oneof![3 => comes, 3 => Just(Step::Goes), 2 => ends],
        1..300,
    )
}

/// Plays steps; without `levels`, as if all were of one size. Says who was served when.
fn play(steps: &[Step], levels: bool, discipline: Discipline) -> Vec<(PrincipalId, LaneId, u64)> {
    let mut dispatch = handlers(3, 2, discipline);
    for id in 0..3 {
        let lane = LaneAllocation::default();
        dispatch.configure_lane(0, PrincipalId(id), LaneId(1), &lane);
    }
    let (mut now, mut item) = (1, 0);
    let mut out: VecDeque<Ticket> = VecDeque::new();
    let mut served = Vec::new();
    for step in steps {
        now += 1_000;
        match *step {
            Step::Comes { tenant, lane, size } => {
                let terms = Terms {
                    lane: LaneId(lane),
                    ..sized(if levels { size } else { 1 })
                };
                item += 1;
                let queued = dispatch.enqueue_on(now, PrincipalId(tenant), terms, item);
                assert!(queued.is_ok());
            }
            Step::Goes => {
                if let Next::Grant(grant) = dispatch.next(now) {
                    served.push((grant.principal, grant.ticket.lane(), grant.item));
                    out.push_back(grant.ticket);
                }
            }
            Step::Ends { took_ns } => {
                if let Some(ticket) = out.pop_front() {
                    dispatch.settle(now, ticket, Cost([took_ns]));
                }
            }
        }
    }
    served
}

proptest! {
    /// Which tenant goes when is decided without a look at sizes: only which of its items it is
    /// differs. In order of arrival nothing differs.
    #[test]
    fn sizes_change_nothing_between_tenants(steps in steps()) {
        let of_whom = |served: Vec<(PrincipalId, LaneId, u64)>| -> Vec<_> {
            served.into_iter().map(|(principal, lane, _)| (principal, lane)).collect()
        };
        let [with, without] = [true, false].map(|levels| play(&steps, levels, Discipline::Fair));
        prop_assert_eq!(of_whom(with), of_whom(without));
        let [with, without] = [true, false].map(|levels| play(&steps, levels, Discipline::Fifo));
        prop_assert_eq!(with, without);
    }

    /// Each item goes once, and of a lane's items of one level the oldest.
    #[test]
    fn one_level_keeps_the_order_of_arrival(steps in steps()) {
        let (mut levels, mut item) = (BTreeMap::new(), 0);
        for step in &steps {
            if let Step::Comes { tenant, size, .. } = step {
                item += 1;
                levels.insert(item, (*tenant, level_of(*size)));
            }
        }
        let mut last = BTreeMap::new();
        for (principal, lane, item) in play(&steps, true, Discipline::Fair) {
            let (tenant, level) = levels.remove(&item).expect("each once");
            prop_assert_eq!(principal, PrincipalId(tenant));
            let before = last.insert((tenant, lane, level), item);
            prop_assert!(before.is_none_or(|before| before < item), "{before:?} {item}");
        }
    }

    /// While work of several sizes waits, each level has its part of the time, whatever its turns
    /// take from a microsecond on: 16 parts for the smallest, one for the largest. So nothing
    /// starves. (Parts are counted in whole nanoseconds, which are too coarse for turns of a few.)
    #[test]
    fn each_level_has_its_part_of_the_time(
        levels in prop::collection::btree_map(0u8..16, 1_000u64..5_000_000, 2..6),
        permits in 1u32..5,
    ) {
        let mut dispatch = handlers(1, permits, Discipline::Fair);
        let largest = *levels.values().max().expect("some");
        let mut now = 1;
        for level in levels.keys() {
            // As many as can be out, and one to wait.
            for _ in 0..=2 * permits {
                let terms = Terms { level: *level, ..Terms::default() };
                let queued = dispatch.enqueue_on(now, PrincipalId(0), terms, u64::from(*level));
                prop_assert!(queued.is_ok());
            }
        }
        let mut served: BTreeMap<u8, u64> = BTreeMap::new();
        let (mut out, mut total) = (VecDeque::new(), 0);
        while total < 400 * largest {
            while let Next::Grant(grant) = dispatch.next(now) {
                out.push_back((grant.ticket, grant.item as u8));
            }
            let (ticket, level) = out.pop_front().expect("work");
            now += levels[&level];
            total += levels[&level];
            *served.entry(level).or_default() += levels[&level];
            dispatch.settle(now, ticket, Cost([levels[&level]]));
            let terms = Terms { level, ..Terms::default() };
            let queued = dispatch.enqueue_on(now, PrincipalId(0), terms, u64::from(level));
            prop_assert!(queued.is_ok());
        }
        let rate = |level: &u8| 16.0 - f64::from(*level);
        let rates: f64 = levels.keys().map(rate).sum();
        // A turn of each, and of what is out.
        let slack = 16.0 * f64::from(permits + 2) * largest as f64;
        for level in levels.keys() {
            let wanted = total as f64 * rate(level) / rates;
            let had = served.get(level).copied().unwrap_or(0) as f64;
            prop_assert!((had - wanted).abs() <= slack, "level {level}: {had}, wanted {wanted}");
        }
    }

    /// The levels are Rein's, with K 16 and R 2.
    #[test]
    fn levels_are_those_of_the_paper(size in prop_oneof![0u64..100_000, any::<u64>()]) {
        let levels = Levels::exponential(LEVELS_MAX, 2.0, 1, Rates::Linear);
        prop_assert_eq!(usize::from(level_of(size)), levels.of(size));
    }
}

/// A get does not wait behind ten multigets of 1,000 keys of its own tenant, of which there are
/// always more: only for what is being served.
#[test]
fn a_get_waits_for_what_is_served_and_for_nothing_else() {
    let mut dispatch = handlers(1, 1, Discipline::Fair);
    let mut now = 1;
    for item in 0..10 {
        let queued = dispatch.enqueue_on(now, PrincipalId(0), sized(1_000), item);
        assert!(queued.is_ok());
    }
    let mut multigets = 0;
    for round in 0..100 {
        let Next::Grant(grant) = dispatch.next(now) else {
            panic!("a multiget")
        };
        assert!(grant.item < 10, "nothing else waits");
        multigets += 1;
        let get = 10 + round;
        let queued = dispatch.enqueue_on(now + 1, PrincipalId(0), sized(1), get);
        assert!(queued.is_ok());
        now += 500 * KEY_NS;
        dispatch.settle(now, grant.ticket, Cost([500 * KEY_NS]));
        let queued = dispatch.enqueue_on(now, PrincipalId(0), sized(1_000), grant.item);
        assert!(queued.is_ok());
        let Next::Grant(grant) = dispatch.next(now) else {
            panic!("the get")
        };
        assert_eq!(grant.item, get);
        now += KEY_NS;
        dispatch.settle(now, grant.ticket, Cost([KEY_NS]));
    }
    assert_eq!(multigets, 100, "each round one: they do not starve");
}

/// What a level has out counts, also while nothing of it waits: both gets that have come meanwhile
/// go before the next multiget of a tenant that sends them one after the other.
#[test]
fn what_is_out_counts_when_nothing_waits() {
    let mut dispatch = handlers(1, 1, Discipline::Fair);
    let (mut now, mut order) = (1, Vec::new());
    let ask = |dispatch: &mut Dispatch<u64, 1>, now: Nanos, size: u64| {
        let queued = dispatch.enqueue_on(now, PrincipalId(0), sized(size), size);
        assert!(queued.is_ok());
    };
    ask(&mut dispatch, now, 1_000);
    for _ in 0..30 {
        let Next::Grant(grant) = dispatch.next(now) else {
            panic!("work")
        };
        let size = grant.item;
        order.push(size);
        if size > 1 {
            for size in [1_000, 1, 1] {
                ask(&mut dispatch, now, size);
            }
        }
        now += size * KEY_NS;
        dispatch.settle(now, grant.ticket, Cost([size * KEY_NS]));
    }
    let rounds: Vec<&[u64]> = order.chunks(3).collect();
    assert!(
        rounds.iter().all(|round| *round == [1_000, 1, 1]),
        "{order:?}"
    );
}
