//! Frictions: late messages and counters, clocks that differ, deaths that nobody was told of, moves
//! that cost.

use sim::scenario::Plan;
use sim::{run, Outcome};

const MS: u64 = 1_000_000;

fn play(cluster: &str, rest: &str) -> Outcome {
    play_with("none", cluster, rest)
}

fn play_with(noise: &str, cluster: &str, rest: &str) -> Outcome {
    play_after(1, noise, cluster, rest)
}

fn play_after(warm_up_s: u64, noise: &str, cluster: &str, rest: &str) -> Outcome {
    let text = format!(
        "seed = 5\nduration = \"20s\"\nwarm_up = \"{warm_up_s}s\"\n[cluster]\nnoise = {noise:?}\n{cluster}\n{rest}"
    );
    run(&Plan::from_text(&text, "friction.toml").expect("good").spec)
}

const OPEN: &str = "[[tenant]]\nname = \"open\"\n[[tenant.load]]\nrate = \"1000/s\"\n";

fn closed(name: &str, connections: u32, more: &str) -> String {
    format!("[[tenant]]\nname = {name:?}\n[[tenant.load]]\nloop = \"closed\"\nconnections = {connections}\n{more}\n")
}

fn mean_ms(outcome: &Outcome) -> f64 {
    outcome.tenants[0].latency_ns.mean() / MS as f64
}

#[test]
fn messages_are_late_both_ways() {
    let cluster = "nodes = 4\noperation = \"1us\"\none_way = \"1ms\"\n";
    let even = play(cluster, OPEN);
    let late = play(&format!("{cluster}jitter = \"2ms\"\n"), OPEN);
    assert!((mean_ms(&even) - 2.0).abs() < 0.01, "{}", mean_ms(&even));
    assert!((mean_ms(&late) - 6.0).abs() < 0.1, "{}", mean_ms(&late));
    assert_eq!(even.tenants[0].requests, late.tenants[0].requests);
}

/// One of two senders is ahead of the other by more than any request waits: the stretched order is
/// no order of arrival any more, and whoever's clock is late passes the others.
#[test]
fn clocks_that_differ_change_who_goes_first() {
    let cluster = "senders = 8\noperation = \"1ms\"\norder = \"stretched\"\n";
    let busy = "[[tenant]]\nname = \"busy\"\n[[tenant.load]]\nrate = \"900/s\"\n";
    let p99 = |more: &str| play(&format!("{cluster}{more}"), busy).tenants[0].quantile_ns(0.99);
    let (right, wrong) = (p99(""), p99("skew = \"100ms\"\n"));
    assert!(wrong > 2 * right, "{right} {wrong}");
}

#[test]
fn a_death_is_noticed_when_a_reply_has_taken_too_long() {
    let fault = "[[fault]]\nnode = 0\nat = \"5s\"\nlength = \"5s\"\ndead = true\n";
    let cluster = "nodes = 2\nreplicas = 2\noperation = \"100us\"\nreplica = \"in-turn\"\n";
    let load = format!("{fault}{OPEN}");
    for notice_ms in [0, 300] {
        let outcome = play(&format!("{cluster}notice = \"{notice_ms}ms\"\n"), &load);
        let tenant = &outcome.tenants[0];
        assert_eq!((tenant.requests, tenant.unanswered()), (tenant.offered, 0));
        let late = 1.0 - tenant.latency_ns.quantile_below(100 * MS);
        // Half of what is sent before all know goes to the dead node, and waits to be given up.
        let wanted = notice_ms as f64 / 1e3 / 2.0 / 20.0;
        assert!((late - wanted).abs() < 0.002, "{late}, wanted {wanted}");
        assert!(tenant.latency_ns.max() / MS <= notice_ms + 10);
    }
}

/// All writes of a tenant are of one key, so that its node has twice the work of the other.
#[test]
fn a_partition_that_moves_is_copied_first() {
    let load = closed(
        "hot",
        64,
        "keys = { count = 1_000 }\nvalues = { size = \"1MiB\" }",
    );
    let load = format!("{load}popularity = {{ kind = \"zipf\", alpha = 0.99 }}\n");
    let moved = |more: &str| {
        let cluster = format!(
            "nodes = 4\npartitions = 32\noperation = \"200us\"\nplacement = \"demand\"\n{more}"
        );
        let outcome = play(&cluster, &load);
        let rate = outcome.tenants[0].answered as f64 / 20.0;
        (outcome.moves, rate)
    };
    let (moves, at_once) = moved("");
    // 31 MiB a partition: a second each.
    let (_, copied) = moved("copy = \"32MB/s\"\n");
    let (_, never) = moved("copy = \"1kB/s\"\n");
    let (_, costly) = moved("copy = \"1kB/s\"\ncopy_load = 0.5\n");
    assert!(moves > 0);
    assert!(never < 0.97 * at_once, "{never} {at_once}");
    assert!(
        never < copied && copied <= 1.001 * at_once,
        "{never} {copied} {at_once}"
    );
    assert!(costly < 0.8 * never, "{costly} {never}");
}

/// What a partition is asked for differs from second to second. Whoever counts what its copy takes
/// leaves more of them where they are; shares are as even, and a little less is served. It takes
/// half a minute until what is uneven by a tenth of a node is certain.
#[test]
fn moves_that_are_weighed_are_fewer_and_shares_as_even() {
    let keys = "keys = { count = 4_000 }\nvalues = { size = \"64KiB\" }";
    let zipf = format!("{keys}\npopularity = {{ kind = \"zipf\", alpha = 0.99 }}");
    let load = closed("one", 64, &zipf) + &closed("two", 64, &zipf);
    let moved = |more: &str| {
        let cluster = format!(
            "nodes = 4\npartitions = 64\noperation = \"2ms\"\nplacement = \"demand\"\nweights = \"exchange\"\ncopy = \"50MB/s\"\ncopy_load = 0.5\n{more}"
        );
        let outcome = play_after(60, "exponential", &cluster, &load);
        let rates = [0, 1].map(|tenant: usize| outcome.tenants[tenant].answered as f64);
        (outcome.moves, rates)
    };
    let (free, at_once) = moved("");
    let (weighed, rates) = moved("horizon = \"60s\"\n");
    assert!(0 < weighed && 2 * weighed <= free, "{weighed} of {free}");
    let mmr = rates[0].min(rates[1]) / rates[0].max(rates[1]);
    assert!(mmr > 0.97, "{rates:?}");
    let sum = |rates: [f64; 2]| rates.iter().sum::<f64>();
    assert!(sum(rates) > 0.97 * sum(at_once), "{rates:?} {at_once:?}");
}

#[test]
fn late_reports_make_shares_follow_later() {
    let cluster = "nodes = 4\nreplicas = 2\npartitions = 16\noperation = \"200us\"\norder = \"arrival\"\nplacement = \"demand\"\nweights = \"exchange\"\nreplica = \"windows\"\n";
    let zipf = "keys = { count = 10_000 }\npopularity = { kind = \"zipf\", alpha = 0.99 }";
    let load = closed("one", 64, zipf) + &closed("two", 64, zipf);
    let rates = |more: &str| {
        let outcome = play(&format!("{cluster}{more}"), &load);
        [0, 1].map(|tenant: usize| outcome.tenants[tenant].answered)
    };
    let (at_once, late) = (rates(""), rates("late = \"400ms\"\n"));
    assert_ne!(at_once, late);
    for [one, two] in [at_once, late] {
        let mmr = one.min(two) as f64 / one.max(two) as f64;
        assert!(mmr > 0.97, "{mmr}");
    }
}

#[test]
fn probes_take_time_of_the_nodes_and_wait_to_be_seen() {
    let cluster = "nodes = 8\nreplicas = 2\npermits = 2\noperation = \"1ms\"\nprobe = true\n";
    let load = "[[tenant]]\nname = \"many\"\n[[tenant.load]]\nrate = \"100/s\"\nmix = { multiget = 1 }\nmultiget = { keys = 80 }\n";
    let busy = |more: &str| {
        let outcome = play(&format!("{cluster}{more}"), load);
        (outcome.utilisation, outcome.tenants[0].requests)
    };
    let (free, costly) = (busy(""), busy("probe_work = \"1ms\"\n"));
    // Each request asks all eight nodes, a tenth of the work of its operations.
    assert_eq!(free.1, costly.1);
    let more = costly.0 / free.0;
    assert!((1.05..1.15).contains(&more), "{more}");
}

#[test]
fn what_cannot_take_effect_is_refused() {
    for (cluster, word) in [
        ("copy_load = 0.5", "copy_load"),
        ("late = \"600ms\"", "late"),
    ] {
        let text = format!("duration = \"1s\"\n[cluster]\n{cluster}\n{OPEN}");
        let refused = Plan::from_text(&text, "x.toml").expect_err(cluster);
        assert!(refused.to_string().contains(word), "{refused}");
    }
}
