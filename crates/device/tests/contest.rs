//! Tenants that share an emulated device in emulated time.

use device::contest::{Arena, Sizes, StageOptions, Sweep, Tenant};
use device::{calibrate, EmulatedDisk, Mix};
use policy::cost::device::Rule;
use std::time::Duration;

const KIB: u64 = 1 << 10;

fn sweep() -> Sweep {
    let disk = EmulatedDisk::named("ssd").expect("a model");
    let mut bench = disk.clone();
    let measured = calibrate(&mut bench, &disk.plan(), &mut |_, _| {}).expect("calibrated");
    Sweep::new(disk, measured, Duration::from_secs(2), 1)
}

fn least(values: impl Iterator<Item = f64>) -> f64 {
    values.fold(f64::INFINITY, f64::min)
}

#[test]
fn calibrated_prices_share_the_device_and_a_price_a_byte_does_not() {
    let sweep = sweep();
    let sizes = [4 * KIB, 64 * KIB];
    let of = |rule| sweep.pairs(rule, &sizes, &sizes).expect("prices");
    let exact = of(Rule::Exact);
    assert_eq!(exact.len(), 4);
    assert!(least(exact.iter().map(|pair| pair.mmr)) > 0.95, "{exact:?}");
    let constant = of(Rule::Constant);
    assert!(
        least(constant.iter().map(|pair| pair.mmr)) < 0.5,
        "{constant:?}"
    );
    // The scheduler keeps to whatever prices it is told.
    let told = exact.iter().chain(&constant).map(|pair| pair.vop_mmr);
    assert!(least(told) > 0.98, "{exact:?} {constant:?}");
}

#[test]
fn the_floor_is_below_what_mixes_leave() {
    let sweep = sweep();
    let max_per_s = sweep.costs(Rule::Exact).expect("prices").max_per_s();
    // Small reads beside medium writes are the thesis's valley.
    let valley = sweep
        .capacity(Mix::Reads(75), &[KIB], &[32 * KIB, 64 * KIB], 0)
        .expect("prices");
    assert!(
        least(valley.iter().copied()) >= sweep.measured().floor_per_s,
        "{valley:?}"
    );
    assert!(
        least(valley.iter().copied()) < 0.8 * max_per_s,
        "{valley:?}"
    );
    let calm = sweep
        .capacity(Mix::Halves, &[4 * KIB], &[4 * KIB], 0)
        .expect("prices");
    assert!(calm[0] > 0.9 * max_per_s, "{calm:?}");
}

#[test]
fn a_request_in_pieces_counts_once_and_sizes_spread_around_their_mean() {
    let sweep = sweep();
    let (disk, costs) = (
        EmulatedDisk::named("ssd").expect("a model"),
        sweep.costs(Rule::Exact),
    );
    let costs = costs.expect("prices");
    let of = |read: Sizes| {
        let stage = StageOptions {
            costs: &costs,
            floor_per_s: sweep.measured().floor_per_s,
            depth: 8,
            chunk_bytes: 64 * KIB,
        };
        let tenant = Tenant {
            workers: 8,
            reads_percent: 100,
            read,
            write: read,
        };
        disk.contest(&stage, &[tenant; 2], Duration::from_secs(2), 3)
            .expect("an emulated device")
    };
    let (small, large) = (of(Sizes::of(64 * KIB)), of(Sizes::of(256 * KIB)));
    assert!(
        (small[0].per_s / large[0].per_s - 4.0).abs() < 0.1,
        "{small:?} {large:?}"
    );
    let spread = Sizes {
        mean_bytes: 16 * KIB,
        sigma_bytes: 16 * KIB,
    };
    // The same bytes a second, as far as prices follow bytes; the same run from the same seed.
    assert_eq!(of(spread), of(spread));
    let ratio = of(spread)[0].vop_per_s / of(Sizes::of(16 * KIB))[0].vop_per_s;
    assert!((0.9..1.1).contains(&ratio), "{ratio}");
}
