//! What requests are found to cost, and what reservations of them become.

use policy::cost::device::{Calibration, CostModel, Curve, Op, Point, Rule, Vop};
use policy::profile::{Done, Internal, Interval, Profile, Request};
use policy::provision::{Pricing, Provision, Provisioned, Provisioner};
use proptest::prelude::*;
use std::fmt::Write as _;
use std::path::Path;

/// 1 KiB: read 1 VOP, write 3; 256 KiB: read 64, write 96.
fn costs() -> CostModel {
    let curve = |op, small: f64, large: f64| {
        let point = |bytes, per_s| Point { bytes, per_s };
        Curve::new(op, vec![point(1 << 10, small), point(256 << 10, large)]).expect("rates")
    };
    let (read, write) = (curve(Op::Read, 36e3, 562.5), curve(Op::Write, 12e3, 375.0));
    let calibration = Calibration::new(read, write, 10e3, 10e3).expect("rates");
    CostModel::new(Rule::Exact, &calibration)
}

const GET: usize = Request::Get as usize;
const PUT: usize = Request::Put as usize;

/// Requests of one size, at a cost each.
fn done(requests: u64, kib: u64, vop_each: f64, writes: bool) -> Done {
    // A key and the protocol come with each.
    let bytes = requests * (kib * 1024 + 64);
    Done {
        requests,
        bytes,
        direct: Vop::new(requests as f64 * vop_each),
        written_bytes: if writes { bytes } else { 0 },
    }
}

fn puts(requests: u64, kib: u64, vop_each: f64, flush: f64, compaction: f64) -> Interval {
    let put = done(requests, kib, vop_each, true);
    Interval {
        done: [Done::default(), put],
        written_bytes: put.written_bytes,
        internal: [Vop::new(flush), Vop::new(compaction)],
        ..Interval::default()
    }
}

#[test]
fn direct_cost_is_of_a_normalised_request() {
    let mut profile = Profile::default();
    assert_eq!(profile.cost(Request::Get), None, "none was seen");
    let mut interval = Interval::default();
    interval.done[GET] = done(100, 4, 2.0, false);
    profile.step(&interval);
    let cost = profile.cost(Request::Get).expect("seen");
    // Four units each.
    assert!((cost.direct - 0.5).abs() < 1e-9, "{cost:?}");
    assert_eq!(cost.later(), 0.0, "a get writes nothing");
    assert_eq!(profile.cost(Request::Put), None);
}

#[test]
fn an_operation_is_paid_by_all_that_was_written_since_the_last_one() {
    let mut profile = Profile::default();
    // Ten seconds of 100 KiB/s, then a second in which a flush of 500 VOPs runs; over and over.
    for _ in 0..20 {
        for second in 0..10 {
            let flush = if second == 9 { 500.0 } else { 0.0 };
            profile.step(&puts(100, 1, 3.0, flush, 0.0));
            let cost = profile.cost(Request::Put).expect("seen");
            assert!(
                cost.indirect[Internal::Flush as usize] <= 0.51 + 1e-9,
                "{cost:?}"
            );
        }
    }
    let cost = profile.cost(Request::Put).expect("seen");
    let flush = cost.indirect[Internal::Flush as usize];
    assert!(
        (0.45..0.51).contains(&flush),
        "500 VOPs for 1,000 KiB: {cost:?}"
    );
    assert!((cost.direct - 3.0).abs() < 1e-9);
}

#[test]
fn an_operation_under_way_counts_before_it_ends() {
    let mut profile = Profile::default();
    profile.step(&puts(100, 1, 3.0, 0.0, 0.0));
    let mut last = 0.0;
    for _ in 0..3 {
        profile.step(&puts(100, 1, 3.0, 0.0, 800.0));
        let now = profile.cost(Request::Put).expect("seen").later();
        assert!(now > last, "{now} after {last}");
        last = now;
    }
}

/// What a KiB of puts costs later, after a burst and a compaction that goes on for `seconds` while
/// little is written.
fn after_a_burst(
    burst_s: u32,
    compacted_meanwhile: bool,
    seconds: u32,
    trickle_kib: u64,
) -> Profile {
    let mut profile = Profile::default();
    for _ in 0..burst_s {
        let compaction = if compacted_meanwhile { 1000.0 } else { 0.0 };
        profile.step(&puts(100 << 10, 1, 0.01, 0.0, compaction));
    }
    for _ in 0..seconds {
        profile.step(&puts(trickle_kib, 1, 0.01, 0.0, 1000.0));
    }
    profile
}

/// Ten seconds of 100 MiB/s, then a minute in which they are compacted at 1,000 VOP/s.
const BURST_PRICE: f64 = 60_000.0 / (10.0 * 100.0 * 1024.0);

#[test]
fn a_compaction_that_outlives_its_writes_is_paid_by_them() {
    // "By the total number of requests executed since the last trigger" (6.3.1), whatever trickles
    // in meanwhile.
    for trickle_kib in [0, 1, 16, 256] {
        for seconds in [20, 30, 60] {
            let profile = after_a_burst(10, false, seconds, trickle_kib);
            let price = profile.cost(Request::Put).expect("seen").later();
            let is = f64::from(seconds) * 1000.0;
            let expected = is / (10.0 * 100.0 * 1024.0 + f64::from(seconds) * trickle_kib as f64);
            assert!(
                (price / expected - 1.0).abs() < 0.1,
                "{price} instead of {expected} after {seconds} s beside {trickle_kib} KiB/s"
            );
        }
    }
}

#[test]
fn a_compaction_that_is_always_behind_does_not_make_the_last_writes_dear() {
    // An hour without pause, then the debt of the last seconds is worked off. What it costs for
    // each KiB is known within a factor, not to the KiB that happens to be written while it ends.
    let steady = 1000.0 / (100.0 * 1024.0);
    for trickle_kib in [0, 1, 256] {
        let profile = after_a_burst(3600, true, 20, trickle_kib);
        let price = profile.cost(Request::Put).expect("seen").later();
        assert!(
            (steady * 0.99..steady * 2.5).contains(&price),
            "{price} for {steady}, beside {trickle_kib} KiB/s"
        );
    }
}

#[test]
fn what_is_found_after_a_burst_does_not_stay_whatever_is_written() {
    let mut profile = after_a_burst(10, false, 60, 1);
    profile.step(&puts(1, 1, 0.01, 0.0, 0.0));
    // From now on each KiB costs a tenth of that.
    for _ in 0..100 {
        profile.step(&puts(
            100 << 10,
            1,
            0.01,
            0.0,
            BURST_PRICE / 10.0 * 102_400.0,
        ));
    }
    let price = profile.cost(Request::Put).expect("seen").later();
    assert!((price / (BURST_PRICE / 10.0) - 1.0).abs() < 0.1, "{price}");
}

#[test]
fn a_neighbours_burst_does_not_scale_an_innocent_tenants_reservation_away() {
    let mut provisioner = Provisioner::new(costs(), Pricing::Profiles);
    provisioner.reserve(0, [0.0, 1000.0]);
    provisioner.reserve(1, [4000.0, 0.0]);
    let mut gets = Interval::default();
    gets.done[GET] = done(4000, 1, 1.0, false);
    let (mut scale, mut foreground) = (1.0f64, 1.0f64);
    for second in 0..70 {
        let (burst, compaction) = if second < 10 {
            (100 << 10, 0.0)
        } else {
            (1, 1000.0)
        };
        provisioner.observe(0, &puts(burst, 1, 0.1, 0.0, compaction));
        provisioner.observe(1, &gets);
        let provision = provisioner.provision(18e3);
        scale = scale.min(provision.scale);
        foreground = foreground.min(1.0 - provision.tenants[&0].later_part.unwrap_or(0.0));
    }
    assert_eq!(scale, 1.0, "both fit: 4,000 and 160 of 18,000");
    assert!(
        foreground > 0.5,
        "{foreground}: a put of .1 costs .06 later"
    );
}

#[test]
fn others_pay_for_what_they_wrote() {
    // Half of what is flushed was written by requests of another class.
    let mut alone = Profile::default();
    let mut shared = Profile::default();
    for _ in 0..30 {
        let interval = puts(100, 1, 3.0, 50.0, 0.0);
        alone.step(&interval);
        shared.step(&Interval {
            written_bytes: 2 * interval.written_bytes,
            ..interval
        });
    }
    let [alone, shared] = [alone, shared].map(|p| p.cost(Request::Put).expect("seen").later());
    assert!((alone - 2.0 * shared).abs() < 1e-9, "{alone} {shared}");
}

#[test]
fn without_profiles_a_request_is_one_io_of_its_size() {
    let mut profile = Profile::default();
    let unknown = profile.object_cost(Request::Put, &costs());
    assert!((unknown.total() - 3.0).abs() < 1e-3, "{unknown:?}");
    // Whatever they really cost.
    profile.step(&puts(10, 256, 1000.0, 5000.0, 5000.0));
    let known = profile.object_cost(Request::Put, &costs());
    assert!((known.total() - 96.0 / 256.0).abs() < 1e-3, "{known:?}");
}

#[test]
fn the_baseline_differs_by_the_price_alone() {
    let [profiles, objects] = [Pricing::Profiles, Pricing::Objects].map(|pricing| {
        let mut provisioner = Provisioner::new(costs(), pricing);
        provisioner.reserve(0, [0.0, 1000.0]);
        for _ in 0..30 {
            provisioner.observe(0, &puts(1000, 1, 3.0, 500.0, 1500.0));
        }
        provisioner.provision(18e3).tenants[&0]
    });
    assert_eq!(profiles.later_part, objects.later_part);
    // One write of a KiB each, and nothing for what follows.
    assert!((objects.wanted.total() - 3000.0).abs() < 1.0, "{objects:?}");
    assert!(profiles.wanted.total() > 4800.0, "{profiles:?}");
    let part = |got: &Provisioned| got.wanted.background / got.wanted.total();
    assert!((part(&profiles) - part(&objects)).abs() < 1e-9);
}

fn reserved(provision: &Provision, tenant: u32) -> f64 {
    provision.tenants[&tenant].allocated.total()
}

#[test]
fn what_is_done_later_is_reserved_for_background_work() {
    let mut provisioner = Provisioner::new(costs(), Pricing::Profiles);
    provisioner.reserve(0, [0.0, 1000.0]);
    for _ in 0..30 {
        provisioner.observe(0, &puts(1000, 1, 3.0, 500.0, 1500.0));
    }
    let got = provisioner.provision(10e3).tenants[&0];
    assert!((got.wanted.foreground - 3000.0).abs() < 1.0, "{got:?}");
    assert!((got.wanted.background - 2000.0).abs() < 200.0, "{got:?}");
    let more = got.allocated.background / got.wanted.background;
    assert!((more - 1.1).abs() < 1e-9, "{got:?}");
    assert!(
        (got.later_part.expect("known") - 0.4).abs() < 0.02,
        "{got:?}"
    );
    assert_eq!(got.measured, [false, true]);
}

#[test]
fn overbooking_that_lasts_is_reported() {
    let mut provisioner = Provisioner::new(costs(), Pricing::Objects);
    provisioner.reserve(0, [0.0, 1000.0]);
    provisioner.reserve(1, [3000.0, 0.0]);
    let told: Vec<f64> = (0..4)
        .map(|_| provisioner.provision(3e3).overbooked_per_s)
        .collect();
    assert_eq!(told[..2], [0.0, 0.0], "not at once");
    assert!(
        (told[2] - 3000.0).abs() < 1.0 && told[3] == told[2],
        "{told:?}"
    );
    let now = provisioner.provision(3e3);
    assert!(
        (reserved(&now, 0) - reserved(&now, 1)).abs() < 1.0,
        "{now:?}"
    );
    let would_take = |tenant, reservation| {
        let demand = provisioner.would_take(tenant, reservation);
        demand.vops_per_s()
    };
    assert!((would_take(Some(1), [0.0; 2]) - 3e3).abs() < 1.0);
    assert!((would_take(None, [1000.0, 0.0]) - 7e3).abs() < 1.0);
    provisioner.remove(0);
    assert_eq!(provisioner.provision(3e3).overbooked_per_s, 0.0);
}

fn an_interval() -> impl Strategy<Value = Interval> {
    let done = || {
        (
            0u64..5000,
            0u64..1 << 26,
            0u64..40_000_000_000,
            0u64..1 << 26,
        )
            .prop_map(|(requests, bytes, direct, written_bytes)| Done {
                requests,
                bytes,
                direct: Vop(direct),
                written_bytes,
            })
    };
    let internal = || prop_oneof![Just(0u64), 0u64..40_000_000_000];
    (done(), done(), 0u64..1 << 26, internal(), internal()).prop_map(
        |(get, put, others, flush, compaction)| Interval {
            done: [get, put],
            written_bytes: get.written_bytes + put.written_bytes + others,
            internal: [Vop(flush), Vop(compaction)],
            ..Interval::default()
        },
    )
}

proptest! {
    /// Whatever is seen, allocations fit into what there is, are scaled evenly, and none is
    /// negative or no number.
    #[test]
    fn allocations_fit_and_are_scaled_alike(
        seen in prop::collection::vec((0u32..5, an_interval()), 0..60),
        promised in prop::collection::vec([0.0..20e3f64, 0.0..20e3], 5),
        profiles: bool,
        available in 1.0..100e3f64,
    ) {
        let pricing = if profiles { Pricing::Profiles } else { Pricing::Objects };
        let mut provisioner = Provisioner::new(costs(), pricing);
        for (tenant, reservation) in (0..).zip(&promised) {
            provisioner.reserve(tenant, *reservation);
        }
        for (tenant, interval) in &seen {
            provisioner.observe(*tenant, interval);
        }
        let provision = provisioner.provision(available);
        let sum: f64 = provision.tenants.values().map(|t| t.allocated.total()).sum();
        prop_assert!(sum <= available * (1.0 + 1e-9), "{} of {}", sum, available);
        prop_assert!(provision.scale > 0.0 && provision.scale <= 1.0);
        prop_assert!(provision.wanted_per_s <= available || (sum - available).abs() < available * 1e-9);
        prop_assert!(sum >= provision.wanted_per_s.min(available) * (1.0 - 1e-9));
        for tenant in provision.tenants.values() {
            let (wanted, allocated) = (tenant.wanted, tenant.allocated);
            for (want, get) in [(wanted.foreground, allocated.foreground), (wanted.background, allocated.background)] {
                prop_assert!(get >= 0.0 && get.is_finite() && get <= want * 1.1);
                prop_assert!(get >= want * provision.scale * (1.0 - 1e-9));
                prop_assert!((get * wanted.total() - want * allocated.total()).abs() <= want * wanted.total() * 1e-9);
            }
        }
    }

    /// Under a workload that stays as it is, the price becomes what is used, whenever and however
    /// often it is flushed. That takes longest where a tenant that wrote 64 MiB/s writes 10 KiB/s
    /// and is flushed without pause: for minutes that could be the work of before.
    #[test]
    fn profiles_converge(
        before in prop::collection::vec(an_interval(), 0..10),
        requests in 10u64..1000,
        kib in 1u64..64,
        vop_each in 0.1..100.0f64,
        every in 1usize..9,
        flush_each in 0.0..50.0f64,
    ) {
        let mut profile = Profile::default();
        for interval in &before {
            profile.step(interval);
        }
        let mut cost = None;
        for second in 0..1500 {
            let flush = if second % every == 0 { flush_each * (requests * every as u64) as f64 } else { 0.0 };
            profile.step(&puts(requests, kib, vop_each, flush, 0.0));
            cost = profile.cost(Request::Put);
        }
        let cost = cost.expect("seen");
        let near = |got: f64, wanted: f64| (got - wanted).abs() <= 0.03 * wanted + 1e-3;
        prop_assert!(near(cost.direct, vop_each / kib as f64), "{cost:?}");
        prop_assert!(near(cost.indirect[Internal::Flush as usize], flush_each / kib as f64), "{cost:?} {}", flush_each / kib as f64);
    }
}

/// Scripted: a line for each command, and below it what everybody gets. `UPDATE_SCENARIOS=1` writes
/// what it gives.
#[test]
fn the_scenario_gives_what_it_says() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios/provision.script");
    let text = std::fs::read_to_string(&path).expect("the scenario");
    let mut provisioner = Provisioner::new(costs(), Pricing::Profiles);
    let mut out = String::new();
    for line in text.lines().filter(|line| !line.starts_with("  ")) {
        let _ = writeln!(out, "{line}");
        let words: Vec<&str> = line.split_whitespace().collect();
        let number = |at: usize| words[at].parse::<f64>().expect("a number");
        match words.first().copied() {
            Some("reserve") => provisioner.reserve(number(1) as u32, [number(2), number(3)]),
            Some("seconds") => {
                let mut interval = puts(
                    number(4) as u64,
                    number(5) as u64,
                    number(6),
                    number(7),
                    number(8),
                );
                interval.done[GET] = done(number(3) as u64, 4, 1.2, false);
                let provisions = (0..number(1) as u32).map(|_| {
                    provisioner.observe(number(2) as u32, &interval);
                    provisioner.provision(18e3)
                });
                let _ = write!(out, "{}", told(&provisions.last().expect("a second")));
            }
            _ => {}
        }
    }
    if std::env::var_os("UPDATE_SCENARIOS").is_some() {
        return std::fs::write(&path, &out).expect("written");
    }
    assert_eq!(text, out);
}

fn told(provision: &Provision) -> String {
    let (wanted, scale, over) = (
        provision.wanted_per_s,
        provision.scale,
        provision.overbooked_per_s,
    );
    let mut text = format!("  wanted {wanted:.0} scale {scale:.3} overbooked {over:.0}\n");
    for (name, tenant) in &provision.tenants {
        let (got, put) = (tenant.allocated, tenant.costs[PUT]);
        let _ = writeln!(
            text,
            "  tenant {name}: foreground {:.0} background {:.0}; get {:.3}, put {:.3} + {:.3} + {:.3}",
            got.foreground, got.background, tenant.costs[GET].direct, put.direct, put.indirect[0], put.indirect[1]
        );
    }
    text
}
