//! A device whose mixes were measured by three sizes and three proportions.

use policy::cost::device::{Flow, Mix, Seen, Sweep};
use proptest::prelude::*;

pub const MAX: f64 = 40e3;
pub const FLOOR: f64 = 18e3;
/// Sizes of the sweep, KiB.
pub const SIZES: [u64; 3] = [4, 16, 64];

pub fn flow(vops: f64, kib: f64) -> Flow {
    Flow {
        ios: vops,
        bytes: vops * kib * 1024.0,
        vops,
    }
}

/// A mix by its part of reads and mean sizes in KiB.
pub fn mix(reads_part: f64, read_kib: f64, write_kib: f64) -> Mix {
    Mix {
        reads: flow(1000.0 * reads_part, read_kib),
        writes: flow(1000.0 * (1.0 - reads_part), write_kib),
        ..Mix::default()
    }
}

pub fn seen(reads_part: f64, read_kib: u64, write_kib: u64, vop_per_s: f64) -> Seen {
    Seen {
        reads_part,
        read_bytes: read_kib << 10,
        write_bytes: write_kib << 10,
        vop_per_s,
    }
}

/// All sizes by a tenth, half and nine tenths of reads, with the rates in that order.
pub fn sweep(rates: &[f64]) -> (Sweep, Vec<Seen>) {
    let mut rates = rates.iter().copied();
    let mut loads = Vec::new();
    for read in SIZES {
        for write in SIZES {
            for part in [0.1, 0.5, 0.9] {
                loads.push(seen(part, read, write, rates.next().expect("a rate")));
            }
        }
    }
    (Sweep::new(MAX, FLOOR, 1.0, loads.clone()), loads)
}

pub fn rates() -> impl Strategy<Value = Vec<f64>> {
    prop::collection::vec(FLOOR..MAX, 27)
}
