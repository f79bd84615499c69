//! A promise beside scans whose reads lie a way of the arm apart, as a server's ranges do: the more
//! time it leaves, the more scans there are.

use sim::scenario::Plan;
use sim::{run, Outcome};

const MS: u64 = 1_000_000;

/// What a server on four hard disks does with 100 gets a second beside 32 scanners.
fn played(at_most: &str, policy: &str) -> Outcome {
    let text = format!(
        r#"
duration = "60s"
warm_up = "120s"

[cluster]
permits = 256
processors = 2
one_way = "50us"
operation = "100us"
noise = "none"
device = "hdd"
disks = 4
span = "5GB"
handlers = 64
control = "{policy}"
follow_depth = true
cached = 0.05
file = "64MiB"
other_files = 8
range_reads = 4
wake = "450us"
piece = "250us"

[[tenant]]
name = "front"
[[tenant.slo]]
class = "get"
latency = {{ p = 99, at_most = "{at_most}", window = "10s" }}
[[tenant.load]]
arrivals = "poisson"
rate = "100/s"
mix = {{ get = 1 }}
keys = {{ count = 40_000 }}
values = {{ size = "8KiB" }}

[[tenant]]
name = "batch"
[[tenant.load]]
loop = "closed"
connections = 32
mix = {{ range = 1 }}
range = {{ keys = 256 }}
keys = {{ count = 80_000 }}
values = {{ size = "8KiB" }}
"#
    );
    let plan = Plan::from_text(&text, "scattered").expect("a good scenario");
    run(&plan.spec)
}

fn scans_per_s(out: &Outcome) -> f64 {
    out.tenants[1].answered as f64 * 1e9 / out.measured_ns as f64
}

/// Windows in which the p99 was within so many ms, and all of them.
fn kept(out: &Outcome, at_most_ms: u64) -> (usize, usize) {
    let windows = &out.tenants[0].windows;
    let within = |ns: Option<u64>| ns.is_none_or(|ns| ns <= at_most_ms * MS);
    let kept = windows.iter().filter(|window| within(window.latency_ns));
    (kept.count(), windows.len())
}

#[test]
fn the_more_time_a_promise_leaves_the_more_scans_there_are() {
    let equal = played("300ms", "static");
    let of_equal = scans_per_s(&equal);
    let mut before = 0.0;
    for (at_most, at_most_ms, part) in [("100ms", 100, 0.6), ("300ms", 300, 0.85)] {
        let out = played(at_most, "auto");
        let scans = scans_per_s(&out);
        let (kept, all) = kept(&out, at_most_ms);
        assert_eq!((kept, all), (6, 6), "{at_most}");
        assert!(scans > part * of_equal, "{at_most}: {scans} of {of_equal}");
        assert!(scans > 1.1 * before, "{at_most}: {scans}, {before}");
        before = scans;
    }
    assert!(
        kept(&equal, 100).0 < 6,
        "it is no promise that holds by itself"
    );
}
