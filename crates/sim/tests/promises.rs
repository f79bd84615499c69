//! What tenants are promised is kept in the simulator as on a server: read whole, at the stage that
//! keeps it, and charged.

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
    let limit = plan(LIMITED).spec.tenants[0].promise.limit;
    assert_eq!(limit.requests_per_s, Some(1_000.0));
    assert_eq!(
        (limit.burst_ns, limit.max_wait_ns),
        (20_000_000, 10_000_000)
    );
    let default = policy::dispatch::Limit::default();
    let other = plan(LIMITED).spec.tenants[1].promise.limit;
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
    // Puts of 10 kB come in whether they are refused or not, and a node takes 10 MB/s. So the one
    // that is refused nine times of ten has used as much of that as the other when both are served.
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

/// A tenant of little weight that reserves handlers and reads at a rate, beside one that has all
/// others at work.
fn beside_many(reserved_permits: u32, rate: &str, handlers: u32, depth: u32) -> Summary {
    let (summary, _) = play(&format!(
        r#"
name = "beside-many"
duration = "30s"
warm_up = "1s"
[cluster]
permits = 64
operation = "10us"
device = "ssd"
depth = {depth}
handlers = {handlers}
[[tenant]]
name = "light"
weight = 0.01
reserved_permits = {reserved_permits}
  [[tenant.load]]
  rate = "{rate}"
[[tenant]]
name = "many"
  [[tenant.load]]
  loop = "closed"
  connections = 32
"#
    ));
    summary
}

#[test]
fn reserved_permits_are_handlers_kept_free() {
    let mean_ms = |reserved| {
        let light = &beside_many(reserved, "200/s", 4, 32).tenants[0];
        light.total.latency_ms.mean
    };
    let (without, with) = (mean_ms(0), mean_ms(2));
    assert!(with < 0.5 * without, "{with} ms with, {without} ms without");
}

#[test]
fn reserved_permits_keep_nothing_of_the_device_free() {
    // As on a server: its permits are few, and those of a tenant that wants nothing would be
    // missing to all others.
    let rate = |reserved| {
        beside_many(reserved, "0/s", 64, 4).tenants[1]
            .total
            .rate_per_s
    };
    let (without, with) = (rate(0), rate(3));
    assert!(
        with >= 0.99 * without,
        "{with}/s beside, {without}/s before"
    );
}

#[test]
fn reserved_permits_without_handlers_are_refused() {
    for device in ["", "device = \"ssd\"\n"] {
        let text = LIMITED.replace("name = \"other\"", "name = \"other\"\nreserved_permits = 1");
        let text = text.replace("[cluster]\n", &format!("[cluster]\n{device}"));
        let error = Plan::from_text(&text, "promises.toml").expect_err("nothing to reserve");
        let error = error.to_string();
        assert!(
            error.contains("reserved_permits") && error.contains("cluster.handlers"),
            "{error}"
        );
    }
}

#[test]
fn more_reserved_permits_than_there_are_are_refused() {
    let text = |handlers: u32| {
        let device = format!("device = \"ssd\"\nhandlers = {handlers}\n[[tenant]]\nname = \"limited\"\nreserved_permits = 4");
        LIMITED.replacen("[[tenant]]\nname = \"limited\"", &device, 1)
    };
    plan(&text(5));
    let error = Plan::from_text(&text(4), "promises.toml").expect_err("one is shared");
    let error = error.to_string();
    assert!(
        error.contains("come to 4, and with 4 handlers") && error.contains("cluster.handlers to 5"),
        "{error}"
    );
}

#[test]
fn who_sends_twice_takes_the_copy_that_was_served() {
    // Reads of one key use up the limit at the two nodes of its partition. Reads of most other keys
    // find room at one of their two nodes at least.
    let (_, outcome) = play(
        r#"
name = "twice"
duration = "5s"
warm_up = "1s"
[cluster]
nodes = 6
replicas = 2
partitions = 6
permits = 8
operation = "1ms"
noise = "none"
again = "at-once"
[[tenant]]
name = "twice"
limit = { requests = "500/s", burst = "20ms", max_wait = "0s" }
  [[tenant.load]]
  name = "one"
  rate = "2000/s"
  keys = { count = 1 }
  [[tenant.load]]
  name = "all"
  rate = "600/s"
"#,
    );
    let tenant = &outcome.tenants[0];
    // What a reply carries has been served: it took a millisecond, and 50 us on either way.
    let least = tenant.latency_ns.min();
    assert!(least >= 1_098_000, "answered after {least} ns");
    // 884/s were answered when the copy that a node had looked at last spoke for both.
    let per_s = tenant.answered as f64 / 5.0;
    assert!(per_s >= 980.0, "{per_s}/s");
}

#[test]
fn a_limit_of_tenants_whose_weights_are_exchanged_is_one_of_all_nodes() {
    let played = play(
        r#"
name = "whole"
duration = "6s"
warm_up = "3s"
[cluster]
nodes = 4
partitions = 16
permits = 2
operation = "100us"
weights = "exchange"
interval = "500ms"
[[tenant]]
name = "limited"
limit = { requests = "2000/s", burst = "20ms", max_wait = "10ms" }
  [[tenant.load]]
  rate = "8000/s"
[[tenant]]
name = "other"
  [[tenant.load]]
  rate = "4000/s"
"#,
    );
    let served = played.0.tenants[0].total.rate_per_s;
    assert!((1_700.0..=2_100.0).contains(&served), "{served} of 2,000/s");
}
