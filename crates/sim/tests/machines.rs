//! What machines do besides serving: pauses, looks, and the processor of a sender.

use sim::scenario::Plan;
use sim::{run, Outcome};

const MS: u64 = 1_000_000;

fn play(cluster: &str, rest: &str) -> Outcome {
    let text = format!(
        "seed = 5\nduration = \"20s\"\nwarm_up = \"1s\"\n[cluster]\nnoise = \"none\"\norder = \"arrival\"\n{cluster}\n{rest}"
    );
    run(&Plan::from_text(&text, "machines.toml").expect("good").spec)
}

fn closed(name: &str, connections: u32) -> String {
    format!("[[tenant]]\nname = {name:?}\n[[tenant.load]]\nloop = \"closed\"\nconnections = {connections}\n")
}

/// Part of the latencies above a bound.
fn above(outcome: &Outcome, bound_ns: u64) -> f64 {
    let latencies = &outcome.tenants[0].latency_ns;
    1.0 - latencies.quantile_below(bound_ns)
}

#[test]
fn who_comes_in_a_pause_waits_for_its_end() {
    let open = "[[tenant]]\nname = \"open\"\n[[tenant.load]]\nrate = \"1000/s\"\n";
    let cluster = "operation = \"10us\"\none_way = \"10us\"\nreply = \"1us\"";
    for of in ["nodes", "senders"] {
        let pause = format!("[[pause]]\nof = {of:?}\nevery = \"500ms\"\nlength = \"50ms\"\n");
        let paused = play(cluster, &format!("{pause}{open}"));
        let whole = play(cluster, open);
        assert_eq!(whole.tenants[0].requests, paused.tenants[0].requests);
        assert!(above(&whole, MS) < 0.001, "{of}");
        // A tenth of the time, of which a fiftieth is the last millisecond.
        let waited = above(&paused, MS);
        assert!((0.07..0.13).contains(&waited), "{of}: {waited}");
    }
}

#[test]
fn replies_wait_for_the_processor_of_their_sender() {
    let cluster = "permits = 10\noperation = \"1ms\"\none_way = \"0s\"\n";
    let free = play(cluster, &closed("ten", 10));
    let bound = play(&format!("{cluster}reply = \"2ms\"\n"), &closed("ten", 10));
    let [free, bound] = [free, bound].map(|outcome| outcome.tenants[0].requests as f64 / 20.0);
    assert!((9_990.0..10_010.0).contains(&free), "{free}");
    assert!((499.0..501.0).contains(&bound), "{bound}");
}

#[test]
fn a_busy_node_sees_what_comes_when_it_looks() {
    let tenants = closed("many", 50) + &closed("one", 1);
    let of_one = |look: &str| {
        let cluster = format!("operation = \"1ms\"\none_way = \"0s\"\nlook = {look:?}\n");
        play(&cluster, &tenants).tenants[1].requests as f64 / 20.0
    };
    // Served in turn with the others' first at once; seen every 10 ms otherwise.
    let (at_once, seldom) = (of_one("0s"), of_one("10ms"));
    assert!(at_once > 300.0, "{at_once}");
    assert!((80.0..110.0).contains(&seldom), "{seldom}");
}

#[test]
fn what_a_dead_node_had_not_looked_at_is_sent_elsewhere() {
    let cluster = "nodes = 2\nreplicas = 2\noperation = \"1ms\"\nlook = \"50ms\"\n";
    let fault = "[[fault]]\nnode = 0\nat = \"5s\"\nlength = \"1s\"\ndead = true\n";
    let rate_at_the_end = |rest: String| {
        let outcome = play(cluster, &rest);
        outcome.tenants[0].latency_ns.len() as f64 / 20.0
    };
    let [whole, lost] =
        [String::new(), fault.into()].map(|fault| rate_at_the_end(fault + &closed("all", 100)));
    // One of two nodes away for one of 20 seconds, and no client with it.
    let part = lost / whole;
    assert!((0.965..0.985).contains(&part), "{part}");
}
