//! Order inside a tenant under fairness between tenants.

mod common;

use common::{options, out, MS, R};
use policy::dispatch::{Allocation, Next, Ordered};
use policy::multiget::{Levels, Options, Order, Rates, Tag};
use policy::PrincipalId;
use proptest::prelude::*;

fn ordered(order: Order) -> Ordered<u64, R> {
    let levels = Levels::exponential(4, 3.0, 1, Rates::Linear);
    let mut dispatch = Ordered::new(
        options(),
        Options {
            order,
            levels,
            guard_ns: None,
        },
    );
    for id in 0..2 {
        dispatch.configure(0, PrincipalId(id), &Allocation::share(1.0));
    }
    dispatch
}

proptest! {
    /// A tenant that tags all its work as urgent gets what it would have got without.
    #[test]
    fn tags_change_nobodys_share(tags in prop::collection::vec((0u64..100, 0u8..4), 64)) {
        let service = |order: Order| {
            let mut dispatch = ordered(order);
            let mut now = 0;
            let mut used = [0u64; 2];
            for turn in 0..400u64 {
                for id in 0..2 {
                    // Tenant 0 claims urgency, tenant 1 the contrary.
                    let (priority, level) = tags[turn as usize % tags.len()];
                    let tag = if id == 0 { Tag { priority, level } } else { Tag { priority: 1_000, level: 3 } };
                    let _ = dispatch.enqueue(now, PrincipalId(id), tag, 1, turn);
                }
                let Next::Grant(grant) = dispatch.next(now) else { panic!("work is queued") };
                let ns = 20_000 + 30_000 * (turn % 3);
                now += ns;
                used[grant.principal.0 as usize] += ns;
                dispatch.settle(now, grant.ticket, out(ns));
            }
            used
        };
        let plain = service(Order::Arrival);
        prop_assert_eq!(service(Order::Levels), plain);
        prop_assert_eq!(service(Order::Exact), plain);
        prop_assert!(plain[0].abs_diff(plain[1]) <= 200_000);
    }
}

#[test]
fn each_tenants_own_order_holds() {
    let mut dispatch = ordered(Order::Exact);
    for (id, priority, item) in [(0, 3, 30), (0, 1, 10), (1, 2, 21), (1, 1, 11), (0, 2, 20)] {
        let tag = Tag { priority, level: 0 };
        dispatch
            .enqueue(0, PrincipalId(id), tag, 5, item)
            .expect("room");
    }
    assert_eq!(dispatch.backlog_up_to(PrincipalId(0), 0), 15);
    let mut served = [Vec::new(), Vec::new()];
    while let Next::Grant(grant) = dispatch.next(MS) {
        assert_eq!(grant.waited_ns, MS);
        served[grant.principal.0 as usize].push(grant.item);
        dispatch.settle(MS, grant.ticket, out(1_000));
    }
    assert_eq!(served, [vec![10, 20, 30], vec![11, 21]]);
    assert_eq!(dispatch.backlog_up_to(PrincipalId(0), 3), 0);
    assert!(dispatch
        .enqueue(0, PrincipalId(9), Tag::default(), 1, 1)
        .is_err());
}

#[test]
fn a_removed_tenant_gives_its_items_back_in_order() {
    let mut dispatch = ordered(Order::Exact);
    for (priority, item) in [(3, 30), (1, 10), (2, 20)] {
        let tag = Tag { priority, level: 0 };
        dispatch
            .enqueue(0, PrincipalId(0), tag, 1, item)
            .expect("room");
    }
    assert_eq!(dispatch.remove(5, PrincipalId(0)), [10, 20, 30]);
    assert!(matches!(dispatch.next(5), Next::Idle));
}
