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
fn the_depth_of_a_disk_follows_what_it_does() {
    let served = |cluster: &str| {
        let cluster = format!("device = \"ssd\"\ndepth = 1\noperation = \"1us\"\n{cluster}");
        play(&cluster, &closed("many", 64)).tenants[0].requests
    };
    // One at a time leaves most of its dies idle.
    let (one, followed) = (served(""), served("follow_depth = true"));
    assert!(2 * followed > 3 * one, "{one} {followed}");
}

#[test]
fn tenants_come_to_a_disk_in_order_if_that_is_said() {
    let requests = |cluster: &str| {
        let cluster =
            format!("device = \"ssd\"\ndepth = 1\noperation = \"1us\"\npermits = 64\n{cluster}");
        let outcome = play(&cluster, &(closed("few", 4) + &closed("many", 40)));
        [0, 1].map(|tenant: usize| outcome.tenants[tenant].requests as f64)
    };
    let ([few, many], [of_few, of_many]) = (requests(""), requests("device_scheduler = \"fifo\""));
    assert!((0.9..1.1).contains(&(few / many)), "{few} {many}");
    assert!(
        (9.0..11.0).contains(&(of_many / of_few)),
        "{of_few} {of_many}"
    );
}

#[test]
fn what_was_reserved_of_requests_is_provided_at_the_disk() {
    let late = |reserve: &str| {
        let small = "[[tenant]]\nname = \"small\"\n";
        let load = "[[tenant.load]]\nrate = \"2000/s\"\n";
        let large = closed("large", 64).replace("[[tenant.load]]", "weight = 100\n[[tenant.load]]");
        let rest = format!("{small}{reserve}{load}{large}");
        above(
            &play("device = \"ssd\"\noperation = \"1us\"\n", &rest),
            100 * MS,
        )
    };
    // Its share is some 270 a second. Nothing is provided in the first second; it is made good.
    let (shared, reserved) = (late(""), late("reserve = { get = \"3000/s\" }\n"));
    assert!(shared > 0.9, "{shared}");
    assert!(reserved < 0.3, "{reserved}");
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
fn a_slow_node_is_slow_in_all_that_it_does() {
    let fault = "[[fault]]\nnode = 0\nat = \"0s\"\nlength = \"30s\"\nslow = 4.0\n";
    for cluster in [
        "operation = \"1ms\"\n",
        "operation = \"1ns\"\nrequests = \"1000/s\"\n",
    ] {
        let rate = |rest: &str| {
            let outcome = play(cluster, &format!("{rest}{}", closed("all", 10)));
            outcome.tenants[0].requests as f64 / 20.0
        };
        let slower = rate("") / rate(fault);
        assert!((3.9..4.1).contains(&slower), "{cluster}: {slower}");
    }
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

/// Requests a second of each tenant.
fn rates(outcome: &Outcome) -> Vec<f64> {
    let rate = |tenant: &sim::TenantOutcome| tenant.latency_ns.len() as f64 / 20.0;
    outcome.tenants.iter().map(rate).collect()
}

#[test]
fn gets_that_are_not_in_memory_go_at_the_pace_of_the_device() {
    let readers = closed("readers", 64);
    let of = |more: &str| rates(&play(&format!("operation = \"1us\"\n{more}"), &readers))[0];
    // The controller of the SSD: 22.5 us a read, and 4 KiB at 280 MB/s.
    let ssd = of("device = \"ssd\"");
    assert!((26_400.0..27_200.0).contains(&ssd), "{ssd}");
    // Half of them: the device does as many, the others come on top.
    let half = of("device = \"ssd\"\ncached = 0.5");
    assert!((1.9..2.1).contains(&(half / ssd)), "{half}");
    let all = of("device = \"ssd\"\ncached = 1.0");
    assert!(all > 10.0 * ssd, "{all}");
    // Values of 1 KiB are too large for such a memory.
    let none = of("device = \"ssd\"\ncached = 1.0\ncached_up_to = \"1023B\"");
    assert!((26_400.0..27_200.0).contains(&none), "{none}");
    // An arm over a fifteenth of its disk that takes what its head reaches first: a turn is 8.3 ms,
    // three or four a turn.
    let hdd = of("device = \"hdd\"");
    assert!((300.0..500.0).contains(&hdd), "{hdd}");
}

#[test]
fn devices_are_shared_by_weight_and_by_what_requests_cost() {
    let cluster = "operation = \"1us\"\ndevice = \"ssd\"\n";
    let tenant = |name: &str, weight: u32, rest: &str| {
        let tenant = closed(name, 128).replace(
            "[[tenant.load]]",
            &format!("weight = {weight}\n[[tenant.load]]"),
        );
        tenant + rest
    };
    let same = "values = { size = \"4KiB\" }\n";
    let [three, one] = rates(&play(
        cluster,
        &(tenant("three", 3, same) + &tenant("one", 1, same)),
    ))[..] else {
        panic!("two tenants")
    };
    assert!((2.9..3.1).contains(&(three / one)), "{three} {one}");
    // 64 KiB cost a read 256 us of the controller, 4 KiB 37 us.
    let large = "values = { size = \"64KiB\" }\n";
    let [small, large] = rates(&play(
        cluster,
        &(tenant("small", 1, same) + &tenant("large", 1, large)),
    ))[..] else {
        panic!("two tenants")
    };
    assert!((6.3..7.5).contains(&(small / large)), "{small} {large}");
}

#[test]
fn what_waits_for_the_device_of_a_dead_node_is_sent_elsewhere() {
    let fault = "[[fault]]\nnode = 0\nat = \"5s\"\nlength = \"1s\"\ndead = true\n";
    // With so few handlers nearly all of it waits for one, and what the dead node's had begun must
    // not keep them.
    for handlers in ["", "handlers = 8\n"] {
        let cluster =
            format!("nodes = 2\nreplicas = 2\noperation = \"1us\"\ndevice = \"ssd\"\n{handlers}");
        let [whole, lost] = [String::new(), fault.to_string()]
            .map(|fault| rates(&play(&cluster, &(fault + &closed("all", 200))))[0]);
        assert!((0.965..0.985).contains(&(lost / whole)), "{lost} {whole}");
    }
}
