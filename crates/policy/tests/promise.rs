//! What a promise comes to at each stage.

use policy::dispatch::{Allocation, Limit};
use policy::portion::Portions;
use policy::Promise;

fn promise() -> Promise {
    Promise {
        weight: 2.5,
        reserved_permits: 5,
        reserved_per_s: [2_000.0, 500.0],
        limit: Limit {
            requests_per_s: Some(4_000.0),
            bytes_per_s: Some(1e6),
            burst_ns: 7,
            max_wait_ns: 9,
        },
        contract_per_s: Some(3_000.0),
    }
}

#[test]
fn rates_are_kept_where_requests_come_in_and_permits_at_handlers() {
    let promise = promise();
    let wanted = Allocation {
        weight: 2.5,
        reserved_permits: 0,
        reservation_per_s: Some(2_500.0),
        limit: promise.limit,
        contract_per_s: Some(3_000.0),
    };
    assert_eq!(promise.at_requests(), wanted);
    let wanted = Allocation {
        reserved_permits: 5,
        ..Allocation::share(2.5)
    };
    assert_eq!(promise.at_handlers(0, 1), wanted);
}

#[test]
fn a_share_is_an_allocation_of_nothing_else() {
    let share = Promise::share(1.0);
    assert_eq!(share.at_requests(), Allocation::default());
    assert_eq!(share.at_handlers(0, 3), Allocation::default());
}

#[test]
fn reserved_permits_are_divided_without_loss() {
    for reserved_permits in 0..9 {
        for cores in 1..5 {
            let promise = Promise {
                reserved_permits,
                ..promise()
            };
            let at = |seat| promise.at_handlers(seat, cores).reserved_permits;
            let parts: Vec<u32> = (0..cores).map(at).collect();
            assert_eq!(parts.iter().sum::<u32>(), reserved_permits);
            assert!(reserved_permits == 0 || parts[0] >= 1);
        }
    }
}

#[test]
fn a_front_keeps_its_portions_of_a_promise() {
    let here = promise().portions(&Portions {
        limit: 0.25,
        promised: 0.5,
        reserved: [0.5, 0.1],
        weight: 2.0,
    });
    assert_eq!((here.weight, here.reserved_permits), (5.0, 5));
    assert_eq!(here.reserved_per_s, [1_000.0, 50.0]);
    assert_eq!(here.contract_per_s, Some(1_500.0));
    let wanted = Limit {
        requests_per_s: Some(1_000.0),
        bytes_per_s: Some(250_000.0),
        ..promise().limit
    };
    assert_eq!(here.limit, wanted);
    assert_eq!(promise().portions(&Portions::default()), promise());
    assert!(promise().has_rates() && !Promise::share(1.0).has_rates());
}
