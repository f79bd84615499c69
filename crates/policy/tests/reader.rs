//! Reads that may be stale: how far behind a replica is known to be, and who is asked.

use policy::replica::{reader, Load, Standing, Written, LOOKED_NS_MAX};
use policy::Nanos;
use proptest::prelude::*;

const SECOND_NS: Nanos = 1_000_000_000;

fn written(said: &[(Nanos, u64)]) -> Written {
    let mut written = Written::default();
    for (asked_at, offset) in said {
        written.said(*asked_at, "a", *offset);
    }
    written
}

#[test]
fn a_replica_has_what_was_answered_before_its_master_was_asked() {
    let written = written(&[(10, 100), (20, 150), (30, 150), (40, 300)]);
    for (offset, as_of) in [
        (99, None),
        (100, Some(10)),
        (149, Some(10)),
        (150, Some(30)),
    ] {
        assert_eq!(written.as_of("a", offset), as_of, "{offset}");
    }
    assert_eq!(written.as_of("a", 1_000), Some(40));
    assert_eq!(written.as_of("b", 1_000), None, "other writes");
}

#[test]
fn another_history_begins_anew() {
    let mut written = written(&[(10, 100), (20, 150)]);
    written.said(30, "b", 150);
    assert_eq!(written.as_of("a", 150), None);
    assert_eq!(written.as_of("b", 150), Some(30));
    // It has lost some of its own: a restart.
    written.said(40, "b", 20);
    assert_eq!(written.as_of("b", 19), None);
    assert_eq!(written.as_of("b", 150), Some(40));
    assert_eq!(written.since(), Some(40));
    written.said(50, "b", 20);
    assert_eq!(
        (written.since(), written.as_of("b", 20)),
        (Some(40), Some(50))
    );
    written.forget();
    assert_eq!((written.since(), written.as_of("b", 150)), (None, None));
}

#[test]
fn a_replica_that_says_nothing_grows_old() {
    let standing = Standing {
        as_of: 5 * SECOND_NS,
        looked_at: 7 * SECOND_NS,
    };
    let may = |now, lag_max, since| standing.may_be_read(now, lag_max, since);
    assert_eq!(standing.lag_ns(7 * SECOND_NS), Some(2 * SECOND_NS));
    assert!(may(7 * SECOND_NS, 2 * SECOND_NS, 0));
    assert!(
        !may(7 * SECOND_NS, 2 * SECOND_NS - 1, 0),
        "beyond the bound"
    );
    // What somebody has written himself he must see.
    assert!(may(7 * SECOND_NS, 2 * SECOND_NS, 5 * SECOND_NS - 1));
    assert!(!may(7 * SECOND_NS, 2 * SECOND_NS, 5 * SECOND_NS));
    // Its master is away, or gives keys away by now.
    assert!(may(7 * SECOND_NS + LOOKED_NS_MAX, 60 * SECOND_NS, 0));
    assert!(!may(7 * SECOND_NS + LOOKED_NS_MAX + 1, 60 * SECOND_NS, 0));
    assert!(!Standing::default().may_be_read(0, 60 * SECOND_NS, 0));
    assert_eq!(Standing::default().lag_ns(7), None);
}

fn load(requests: u64, permits: u64) -> Load {
    Load { requests, permits }
}

#[test]
fn replicas_are_asked_while_one_has_room() {
    let idle = load(0, 8);
    assert_eq!(reader(idle, &[], 0), None);
    assert_eq!(
        reader(idle, &[load(7, 8)], 0),
        Some(0),
        "the master is idle"
    );
    assert_eq!(reader(idle, &[load(3, 8), load(2, 8)], 0), Some(1));
    // Alike: in turn.
    let alike = [load(1, 8), load(1, 8), load(1, 8)];
    assert_eq!(
        [0, 1, 2, 3].map(|turn| reader(idle, &alike, turn)),
        [0, 1, 2, 0].map(Some)
    );
    // One that hangs is full soon.
    assert_eq!(reader(idle, &[load(8, 8)], 0), None);
    assert_eq!(reader(idle, &[load(8, 8), load(9, 32)], 0), Some(1));
    // All are full: the one that is least so.
    assert_eq!(reader(load(9, 8), &[load(40, 8), load(9, 8)], 0), Some(1));
    assert_eq!(reader(load(9, 8), &[load(40, 8), load(10, 8)], 0), None);
}

proptest! {
    /// Whatever is written and copied when, no replica is taken to be newer than it is.
    #[test]
    fn no_replica_is_taken_for_newer_than_it_is(steps in prop::collection::vec((0u8..4, 0u64..50), 1..200)) {
        let (mut master, mut replica, mut now) = (1, 1, 1);
        let mut written = Written::default();
        // When each offset was answered.
        let mut answered = vec![(0, 1)];
        for (what, much) in steps {
            now += 1;
            match what {
                0 => {
                    master += much;
                    answered.push((now, master));
                }
                1 => replica = (replica + much).min(master),
                2 => written.said(now, "a", master),
                _ => {
                    if let Some(as_of) = written.as_of("a", replica) {
                        let before = answered.iter().filter(|(at, _)| *at < as_of);
                        prop_assert!(before.map(|(_, offset)| *offset).all(|offset| offset <= replica));
                    }
                }
            }
        }
    }
}
