//! What requests were charged for compactions, at the prices of their time, beside what these cost.

use policy::cost::device::Vop;
use policy::profile::{Done, Internal, Interval, Profile, Request};
use proptest::prelude::*;

/// What is written in an interval, KiB, and what compactions cost in it, VOP.
type Step = (u64, f64);

/// What compactions of the intervals from `from` on cost, and what puts were charged for them.
fn cost_and_charged(steps: &[Step], from: usize) -> (f64, f64) {
    let mut profile = Profile::default();
    let (mut cost, mut charged) = (0.0, 0.0);
    for (at, &(kib, compaction)) in steps.iter().enumerate() {
        let price = compaction_price(&profile);
        profile.step(&interval(kib, compaction));
        if at >= from {
            cost += compaction;
            charged += price * kib as f64;
        }
    }
    (cost, charged)
}

fn compaction_price(profile: &Profile) -> f64 {
    let cost = profile.cost(Request::Put).unwrap_or_default();
    cost.indirect[Internal::Compaction as usize]
}

/// Puts of 1 KiB that write so much.
fn interval(kib: u64, compaction: f64) -> Interval {
    let bytes = kib * 1024;
    let mut interval = Interval {
        written_bytes: bytes,
        internal: [Vop::ZERO, Vop::new(compaction)],
        ..Interval::default()
    };
    interval.done[Request::Put as usize] = Done {
        requests: kib,
        bytes,
        direct: Vop::ZERO,
        written_bytes: bytes,
    };
    interval
}

/// Intervals of writing that are remembered, half a piece, and the interval that is priced before
/// it ends.
const BEHIND: f64 = 12.0 + 1.5 + 1.0;
const MINUTE: usize = 60;

proptest! {
    /// A cost that grows evenly is charged but for what its price rises, times what is remembered:
    /// where it rises by 3 % in a minute, .7 % is missing.
    #[test]
    fn of_growth_what_is_remembered_is_missing(kib in 100u64..50_000, price in 0.01..5.0f64, grows in 0.0..1.0f64) {
        let cost = |at: usize| price * (1.0 + grows * at as f64 / MINUTE as f64) * kib as f64;
        let steps: Vec<Step> = (0..3 * MINUTE).map(|at| (kib, cost(at))).collect();
        let (cost, charged) = cost_and_charged(&steps, 2 * MINUTE);
        let rise = price * grows * kib as f64;
        let missing = (cost - charged) / rise.max(1e-6);
        prop_assert!(charged <= cost * 1.000_01, "{charged} of {cost}");
        prop_assert!(missing <= BEHIND + 0.5, "what it rises, times {missing} intervals of writing");
    }

    /// A database is filled, then overwritten more slowly, and compactions cost several times as
    /// much. A minute later all is charged, whether they run without pause or now and then: within
    /// 3 %: 1 % of what the device does, of which they are about a third.
    #[test]
    fn a_filled_database_is_charged_a_minute_later(
        fill_s in 3usize..15,
        kib in 1000u64..20_000,
        faster in 1.0..4.0f64,
        price in 0.2..2.0f64,
        every in 1usize..5,
    ) {
        let fill = (kib as f64 * faster) as u64;
        let filled = (0..fill_s).map(|_| (fill, 0.2 * price * fill as f64));
        let overwritten = (0..2 * MINUTE).map(|at| {
            let lump = if at % every == every - 1 { every as f64 } else { 0.0 };
            (kib, lump * price * kib as f64)
        });
        let steps: Vec<Step> = filled.chain(overwritten).collect();
        let (cost, charged) = cost_and_charged(&steps, fill_s + MINUTE);
        prop_assert!((charged / cost - 1.0).abs() < 0.03, "{charged} of {cost}");
    }
}
