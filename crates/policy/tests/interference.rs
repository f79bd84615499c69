//! What may be promised of a device to a mix of reads and writes.

#[path = "common/sweep.rs"]
mod common;

use common::{flow, mix, rates, seen, sweep, FLOOR, MAX, SIZES};
use policy::cost::device::{Mix, Seen, Sweep};
use proptest::prelude::*;

/// Whether a load's sizes are next to these.
fn beside(load: &Seen, read_kib: f64, write_kib: f64) -> bool {
    let of = |bytes: u64, kib: f64| {
        let own = (bytes >> 10) as f64;
        let between = |size: &u64| {
            let size = *size as f64;
            (own < size && size <= kib) || (kib <= size && size < own)
        };
        !SIZES.iter().any(between)
    };
    of(load.read_bytes, read_kib) && of(load.write_bytes, write_kib)
}

proptest! {
    /// Never below the floor, and never more than any pair of sizes around the mix has under its
    /// own best load around it.
    #[test]
    fn a_promise_is_between_the_floor_and_the_loads_around(
        rates in rates(), reads_part in 0.001..0.999f64,
        read_kib in 4.0..64.0f64, write_kib in 4.0..64.0f64,
    ) {
        let (sweep, loads) = sweep(&rates);
        let promised = sweep.promisable_per_s(&mix(reads_part, read_kib, write_kib));
        prop_assert!((FLOOR..=MAX).contains(&promised));
        for read in SIZES {
            for write in SIZES {
                let pair = |load: &&Seen| load.read_bytes == read << 10 && load.write_bytes == write << 10;
                let loads: Vec<&Seen> = loads.iter().filter(pair).collect();
                if !beside(loads[0], read_kib, write_kib) {
                    continue;
                }
                let below = loads.iter().rev().find(|load| load.reads_part <= reads_part);
                let above = loads.iter().find(|load| load.reads_part >= reads_part);
                let rate = |load: Option<&&Seen>| load.map_or(MAX, |load| load.vop_per_s);
                let (below, above) = (rate(below), rate(above));
                prop_assert!(promised <= below.max(above).max(FLOOR), "{} {} {}", promised, below, above);
                // A few reads can cost writes all of that at once.
                prop_assert!(below < above || promised <= above.max(FLOOR));
            }
        }
    }

    /// What a load of the sweep did is never promised whole to the same load.
    #[test]
    fn a_load_of_the_sweep_is_promised_no_more_than_it_did(rates in rates()) {
        let (sweep, loads) = sweep(&rates);
        for load in loads {
            let [read, write] = [load.read_bytes, load.write_bytes].map(|bytes| (bytes >> 10) as f64);
            let promised = sweep.promisable_per_s(&mix(load.reads_part, read, write));
            prop_assert!(promised <= load.vop_per_s, "{} {:?}", promised, load);
        }
    }

    /// A load that did less, or a smaller part to be relied on, never raises a promise; nor does a
    /// load more at one of the sizes.
    #[test]
    fn knowing_worse_promises_no_more(
        rates in rates(), at in 0usize..27, less in 0.5..1.0f64, part in 0.5..1.0f64,
        reads_part in 0.0..=1.0f64, read_kib in 1.0..100.0f64, write_kib in 1.0..100.0f64,
    ) {
        let mix = mix(reads_part, read_kib, write_kib);
        let (better, loads) = sweep(&rates);
        let mut worse = loads.clone();
        worse[at].vop_per_s *= less;
        let worse = Sweep::new(MAX, FLOOR, 1.0, worse).promisable_per_s(&mix);
        let brief = Sweep::new(MAX, FLOOR, part, loads).promisable_per_s(&mix);
        let better = better.promisable_per_s(&mix);
        prop_assert!(worse <= better && brief <= better, "{} {} {}", worse, brief, better);
    }
}

#[test]
fn what_is_not_known_gets_the_floor() {
    let (sweep, _) = sweep(&[30e3; 27]);
    let known = mix(0.5, 8.0, 8.0);
    assert!(sweep.promisable_per_s(&known) > 1.5 * FLOOR);
    let unknown = Mix {
        unknown: 1.0,
        ..known
    };
    let sized = |mix: Mix| sweep.promisable_per_s(&mix);
    assert_eq!(sized(unknown), FLOOR);
    assert_eq!(sized(mix(0.5, 100.0, 8.0)), FLOOR, "larger than any load");
    assert_eq!(sized(mix(0.5, 8.0, 100.0)), FLOOR);
    assert!(sized(mix(0.5, 1.0, 8.0)) > FLOOR, "smaller is the smallest");
    assert_eq!(sized(Mix::default()), FLOOR, "nothing has no mix");
    let synced = Mix {
        reads: flow(1.0, 4.0),
        others: 1.0,
        ..Mix::default()
    };
    assert_eq!(sized(synced), FLOOR, "no load syncs without a write");
    assert_eq!(
        Sweep::floor(FLOOR).promisable_per_s(&mix(1.0, 4.0, 4.0)),
        FLOOR
    );
}

#[test]
fn one_kind_alone_has_what_the_curves_say_but_for_what_is_uncertain() {
    let (sweep, _) = sweep(&[FLOOR; 27]);
    for reads_part in [0.0, 1.0] {
        let promised = sweep.promisable_per_s(&mix(reads_part, 500.0, 500.0));
        assert!(promised > 0.9 * MAX && promised < MAX, "{promised}");
    }
    // A few reads are enough to lose that; a few writes are not.
    assert_eq!(sweep.promisable_per_s(&mix(0.01, 4.0, 4.0)), FLOOR);
    assert!(sweep.promisable_per_s(&mix(0.99, 4.0, 4.0)) > 0.8 * MAX);
}

#[test]
fn sizes_that_were_tried_once_do_not_part_the_grid() {
    let (_, mut loads) = sweep(&[30e3; 27]);
    loads.push(seen(0.5, 8, 16, FLOOR));
    let sweep = Sweep::new(MAX, FLOOR, 1.0, loads);
    let at = |read_kib| sweep.promisable_per_s(&mix(0.5, read_kib, 10.0));
    assert_eq!([at(6.0), at(12.0)], [FLOOR; 2], "it counts in its cell");
    assert!(at(32.0) > FLOOR);
    let larger = sweep.promisable_per_s(&mix(0.5, 32.0, 40.0));
    assert!(larger > FLOOR, "the other sizes are still of the grid");
}
