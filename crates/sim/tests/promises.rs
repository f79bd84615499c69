//! What tenants are promised is kept in the simulator as on a server: read whole, at the stage that keeps it, and charged.

use sim::scenario::Plan;
use sim::{run, Outcome, Summary};

fn plan(text: &str) -> Plan {
    Plan::from_text(text, "promises.toml").expect("a good scenario")
}

fn play(text: &str) -> (Summary, Outcome) {
    let plan = plan(text);
    let outcome = run(&plan.spec);
    (Summary::new(&plan, &outcome), outcome)
}

const LIMITED: &str = r#"
name = "limited"
duration = "4s"
warm_up = "1s"
[cluster]
permits = 2
operation = "100us"
noise = "none"
[[tenant]]
name = "limited"
limit = { requests = "1000/s", burst = "20ms", max_wait = "10ms" }
  [[tenant.load]]
  rate = "3000/s"
[[tenant]]
name = "other"
  [[tenant.load]]
  rate = "1000/s"
"#;

#[test]
fn a_limit_is_read_with_its_burst_and_its_longest_wait() {
    let limit = plan(LIMITED).spec.tenants[0].allocation.limit;
    assert_eq!(limit.requests_per_s, Some(1_000.0));
    assert_eq!(
        (limit.burst_ns, limit.max_wait_ns),
        (20_000_000, 10_000_000)
    );
    let default = policy::dispatch::Limit::default();
    let other = plan(LIMITED).spec.tenants[1].allocation.limit;
    assert_eq!(other, default, "what is not given is as on a server");
}

#[test]
fn a_limit_holds_and_what_it_refuses_has_failed() {
    let (summary, _) = play(LIMITED);
    let [limited, other] = &summary.tenants[..] else {
        panic!("two tenants")
    };
    let served = limited.total.rate_per_s;
    assert!((970.0..=1_030.0).contains(&served), "{served} of 1,000/s");
    let failed = limited.total.failed as f64 / 4.0;
    assert!((1_900.0..=2_100.0).contains(&failed), "{failed} of 2,000/s");
    let latency = limited.total.latency_ms;
    assert!(
        latency.p99 <= 10.0 + 0.5,
        "{latency:?}: nobody waits longer"
    );
    assert_eq!(
        limited.series.failed_per_s.iter().sum::<u64>(),
        limited.total.failed
    );
    assert_eq!(other.total.failed, 0);
}

#[test]
fn what_is_refused_is_charged_for_what_it_used() {
    // Puts of 10 kB come in whether they are refused or not, and a node takes 10 MB/s. So the one that is refused nine
    // times of ten has used as much of that as the other when both are served.
    let text = |limit: &str| {
        format!(
            r#"
name = "flood"
duration = "4s"
warm_up = "1s"
[cluster]
permits = 8
operation = "1us"
noise = "none"
bandwidth_in = "10MB/s"
[[tenant]]
name = "flood"
{limit}
  [[tenant.load]]
  loop = "closed"
  connections = 64
  mix = {{ put = 1 }}
  values = {{ size = "10kB" }}
[[tenant]]
name = "other"
  [[tenant.load]]
  loop = "closed"
  connections = 64
  mix = {{ put = 1 }}
  values = {{ size = "10kB" }}
"#
        )
    };
    let of_other = |limit: &str| play(&text(limit)).0.tenants[1].total.rate_per_s;
    let free = of_other("");
    let beside = of_other("limit = { requests = \"50/s\", max_wait = \"1ms\" }");
    assert!((470.0..=530.0).contains(&free), "{free} of 1,000/s");
    assert!(
        beside >= 0.95 * free,
        "{beside} beside refused ones, {free} before"
    );
}

fn seeking(reserved_permits: u32) -> f64 {
    let (summary, _) = play(&format!(
        r#"
name = "seeking"
duration = "30s"
warm_up = "1s"
[cluster]
permits = 64
operation = "10us"
device = "hdd"
depth = 4
[[tenant]]
name = "rare"
reserved_permits = {reserved_permits}
  [[tenant.load]]
  rate = "10/s"
[[tenant]]
name = "many"
  [[tenant.load]]
  loop = "closed"
  connections = 32
"#
    ));
    summary.tenants[0].total.latency_ms.mean
}

#[test]
fn reserved_permits_are_kept_free_at_the_device() {
    // As on a server: what is outstanding below is what a rare read waits for.
    let (without, with) = (seeking(0), seeking(3));
    assert!(with < 0.8 * without, "{with} ms with, {without} ms without");
}

#[test]
fn reserved_permits_without_a_stage_to_keep_them_are_refused() {
    let text = LIMITED.replace("name = \"other\"", "name = \"other\"\nreserved_permits = 1");
    let error = Plan::from_text(&text, "promises.toml").expect_err("nothing to reserve");
    let error = error.to_string();
    assert!(
        error.contains("reserved_permits") && error.contains("cluster.device"),
        "{error}"
    );
}
