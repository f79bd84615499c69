//! What a large system takes: a tenth of each side of 1,000 nodes and 10,000 tenants, held to what
//! the whole may have.
//!
//! One test, so that nothing else is in the process that is weighed.

use sim::scenario::Plan;
use sim::World;

/// All four mechanisms; each tenant has 24 nodes, each sender a window at each of them.
const SYSTEM: &str = r#"
name = "large"
duration = "1s"
warm_up = "500ms"

[cluster]
nodes = 100
replicas = 3
partitions = 8
senders = 16
operation = "1ms"
replica = "windows"
placement = "demand"
weights = "exchange"
interval = "500ms"

[[tenant]]
name = "tenant"
count = 1_000
  [[tenant.load]]
  rate = "80/s"
  mix = { get = 0.9, multiget = 0.1 }
  multiget = { kind = "log-normal", mean = 4, sigma = 1.0, max = 100 }
  keys = { count = 10_000 }
  popularity = { kind = "zipf", alpha = 0.99 }
"#;

/// Bytes for each tenant: its part of 4 GiB for 10,000 of them, less a tenth for what nodes take by
/// themselves.
const TENANT_BYTES_MAX: u64 = (4 << 30) / 10_000 * 9 / 10;

/// The most that the process has had resident, in bytes.
fn resident_max_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux tells it");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|rest| rest.trim().strip_suffix(" kB"));
    kib.and_then(|kib| kib.parse::<u64>().ok()).expect("in KiB") * 1024
}

#[test]
fn ten_thousand_tenants_on_a_thousand_nodes_fit_in_4_gib() {
    let before = resident_max_bytes();
    let plan = Plan::from_text(SYSTEM, "test.toml").expect("good");
    let mut world = World::new(&plan.spec);
    while world.step() {}
    let outcome = world.outcome();
    let each = (resident_max_bytes() - before) / outcome.tenants.len() as u64;
    assert!(each <= TENANT_BYTES_MAX, "{each} bytes for each tenant");
    let answered: u64 = outcome.tenants.iter().map(|tenant| tenant.answered).sum();
    assert!(
        answered > 50_000,
        "{answered}: little was served, and little had to be kept"
    );
}
