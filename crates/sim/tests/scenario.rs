//! Scenarios: what they become, what is wrong with them, and that a seed fixes the result to the
//! byte.

use policy::dispatch::Discipline;
use sim::cli::{run, SimArgs};
use sim::scenario::Plan;
use sim::{run as simulate, Arrivals, FaultKind, Summary};
use std::path::{Path, PathBuf};

const TWO: &str = r#"
name = "two"
seed = 3
duration = "2s"
warm_up = "500ms"

[cluster]
nodes = 4
replicas = 2
permits = 2
one_way = "20us"
operation = "1ms"
noise = "none"

[[fault]]
node = 1
at = "1s"
length = "200ms"
slow = 3.0

[[tenant]]
name = "open"
weight = 3
reserve = { get = "100/s" }
limit = { requests = "5000/s" }
  [[tenant.load]]
  rate = "1000/s"
  mix = { get = 3, multiget = 1 }
  multiget = { keys = 5 }
    [[tenant.load.phase]]
    at = "1s"
    rate = "2000/s"

[[tenant]]
name = "closed"
  [[tenant.load]]
  loop = "closed"
  connections = 2
  depth = 2
  from = "500ms"
  until = "1s"
  mix = { get = 1 }
"#;

#[test]
fn a_scenario_becomes_a_spec() {
    let spec = Plan::from_text(TWO, "two.toml").expect("good").spec;
    assert_eq!(
        (
            spec.cluster.nodes,
            spec.cluster.replicas,
            spec.cluster.routers
        ),
        (4, 2, 4)
    );
    assert_eq!(
        (spec.warm_up_ns, spec.duration_ns),
        (500_000_000, 2_500_000_000)
    );
    let [open, closed] = &spec.tenants[..] else {
        panic!("two tenants")
    };
    assert_eq!(
        (open.promise.weight, open.promise.requests_per_s()),
        (3.0, 100.0)
    );
    assert_eq!(open.promise.limit.requests_per_s, Some(5_000.0));
    assert_eq!(open.streams.len(), 2);
    assert!((open.streams[0].requests.keys.mean() - 2.0).abs() < 1e-9);
    assert_eq!(open.streams[0].until_ns, open.streams[1].from_ns);
    assert_eq!(
        open.streams[1].arrivals,
        Arrivals::Poisson { per_s: 2_000.0 }
    );
    assert_eq!(closed.streams[0].arrivals, Arrivals::Closed { clients: 4 });
    assert_eq!(
        (closed.streams[0].from_ns, closed.streams[0].until_ns),
        (1_000_000_000, 1_500_000_000)
    );
    assert_eq!(
        (spec.faults[0].from_ns, spec.faults[0].kind),
        (1_500_000_000, FaultKind::Slow(3.0))
    );
}

#[test]
fn phases_and_stays_are_played() {
    let plan = Plan::from_text(TWO, "two.toml").expect("good");
    let summary = Summary::new(&plan, &simulate(&plan.spec));
    // 1 s at 1,000/s and 1 s at 2,000/s.
    let open = &summary.tenants[0];
    assert!(
        (open.total.rate_per_s - 1_500.0).abs() < 120.0,
        "{}",
        open.total.rate_per_s
    );
    // Four clients for half a second, each at most once in 1.04 ms.
    let closed = summary.tenants[1].total.rate_per_s * 2.0;
    assert!((900.0..=1_924.0).contains(&closed), "{closed}");
}

/// A job of two loads, one of which changes, beside a stream without an end.
const JOB: &str = "
duration = '20s'
warm_up = '1s'
[cluster]
operation = '1ms'
noise = 'none'
[[tenant]]
name = 'job'
[[tenant.load]]
loop = 'closed'
connections = 2
from = '0s'
requests = 1_000
phase = [{ at = '100ms', connections = 1 }]
[[tenant.load]]
rate = '100/s'
requests = 20
[[tenant]]
name = 'web'
[[tenant.load]]
rate = '10/s'
";

#[test]
fn a_run_ends_when_so_many_requests_are_answered() {
    let plan = Plan::from_text(JOB, "job.toml").expect("good");
    let outcome = simulate(&plan.spec);
    let [job, web] = &outcome.tenants[..] else {
        panic!("two tenants")
    };
    // Those of the open loop come in the warm-up, all but a few.
    assert!((1_000..=1_020).contains(&job.answered), "{}", job.answered);
    assert_eq!((job.unanswered(), outcome.left), (0, Some(0)));
    // One at a time on one processor, 1.1 ms each at most, and what web wants besides.
    let took_s = outcome.measured_ns as f64 / 1e9;
    assert!((1.0..1.3).contains(&took_s), "{took_s}");
    assert!(web.answered > 0 && web.series.seconds().len() == 2);

    let short = JOB.replace("'20s'", "'500ms'");
    let plan = Plan::from_text(&short, "job.toml").expect("good");
    let outcome = simulate(&plan.spec);
    let left = outcome.left.expect("a job");
    assert!((400..600).contains(&left), "{left}");
    assert_eq!(outcome.measured_ns, 500_000_000);
}

#[test]
fn everything_wrong_is_said_at_once() {
    let text = TWO
        .replace(
            "replicas = 2\npermits = 2",
            "replicas = 9\npermits = 0\nnods = 3",
        )
        .replace("node = 1", "node = 7");
    let error = Plan::from_text(&text, "two.toml")
        .expect_err("wrong")
        .to_string();
    for part in [
        "two.toml",
        "replicas",
        "is more than 4 nodes",
        "nods",
        "node",
        "is not among 4 nodes",
    ] {
        assert!(error.contains(part), "{part} is not in\n{error}");
    }
    let text = TWO
        .replace("mix = { get = 1 }", "mix = { get = 1, range = 1 }")
        .replace("get = 3, multiget = 1", "get = 3, ping = 1");
    let error = Plan::from_text(&text, "two.toml")
        .expect_err("wrong")
        .to_string();
    assert!(
        error.contains("tenant \"open\"") && error.contains("tenant \"closed\""),
        "{error}"
    );
    let error = Plan::from_text("name = ", "x.toml")
        .expect_err("wrong")
        .to_string();
    assert!(error.starts_with("x.toml cannot be simulated"), "{error}");
}

#[test]
fn settings_that_cannot_take_effect_are_refused() {
    let wrong = [
        (
            "scheduler = \"fifo\"\nweights = \"exchange\"",
            "follows weights",
        ),
        (
            "again = \"late\"\nreplica = \"windows\"",
            "cannot be held to windows",
        ),
        ("depth = 8", "is of a device, and nodes have none"),
        ("cached = 0.5", "is of a device, and nodes have none"),
    ];
    for (keys, what) in wrong {
        let text = TWO.replace("permits = 2", &format!("permits = 2\n{keys}"));
        let error = Plan::from_text(&text, "two.toml")
            .expect_err("wrong")
            .to_string();
        assert!(error.contains(what), "{what} is not in\n{error}");
    }
    let wrong = [
        (("senders", "1s", "1ms"), "names senders"),
        (("nodes", "1ms", "1ms"), "leaves no time between pauses"),
    ];
    for ((of, every, length), what) in wrong {
        let pause = format!("of = {of:?}\nevery = {every:?}\nlength = {length:?}");
        let error = Plan::from_text(&format!("{TWO}\n[[pause]]\n{pause}\n"), "two.toml")
            .expect_err("wrong")
            .to_string();
        assert!(error.contains(what), "{what} is not in\n{error}");
    }
    let text = TWO.replace("slow = 3.0", "slow = 3.0\ndead = true");
    let error = Plan::from_text(&text, "two.toml")
        .expect_err("wrong")
        .to_string();
    assert!(
        error.contains("means nothing at a node that is dead"),
        "{error}"
    );
}

/// As an experiment has it for a real server; of the simulator it only says how fast a node is.
const OF_A_SERVER: &str = r#"
duration = "2s"
[cluster]
handlers = 8
[server.device]
model = "hdd"
disks = 4
span = "5GB"
[server.engine]
handlers = 64
[server.control]
policy = "auto"
[server.scheduler]
request = "fifo"
[[tenant]]
name = "batch"
[[tenant.slo]]
class = "scan"
throughput = "1/s"
[[tenant.load]]
loop = "closed"
connections = 4
mix = { range = 1 }
range = { keys = 256, values = false }
keys = { count = 80_000 }
values = { size = "8KiB" }
"#;

#[test]
fn a_scenario_for_a_server_is_played_as_it_is() {
    let spec = Plan::from_text(OF_A_SERVER, "server.toml")
        .expect("good")
        .spec;
    let disk = spec.cluster.device.as_ref().expect("disks");
    let is = (disk.disks, disk.span_bytes, disk.handlers);
    // What the cluster says goes before what the server says.
    assert_eq!(is, (4, 5_000_000_000, Some(8)));
    assert_eq!(spec.scheduler.discipline, Discipline::Fifo);
    let requests = &spec.tenants[0].streams[0].requests;
    assert!(requests.range && spec.keeper.is_some());
    assert_eq!(requests.bytes(7, 256, 0), 2 << 20);
    let outcome = simulate(&spec);
    let batch = &outcome.tenants[0];
    assert!(batch.answered > 0);
    assert_eq!(batch.bytes[0] % (2 << 20), 0, "whole ranges");
    // Without emulated disks nothing of it is of use.
    let other = OF_A_SERVER
        .replace("model = \"hdd\"", "")
        .replace("handlers = 8", "");
    let spec = Plan::from_text(&other, "server.toml").expect("good").spec;
    assert!(spec.cluster.device.is_none() && spec.keeper.is_none());
}

#[test]
fn a_seed_fixes_the_result_to_the_byte() {
    let folder = tempfile::tempdir().expect("folder");
    let scenario = folder.path().join("two.toml");
    std::fs::write(&scenario, TWO).expect("written");
    let result = |name: &str, seed: Option<u64>| {
        let out = folder.path().join(name);
        let args = SimArgs {
            scenario: scenario.clone(),
            seed,
            out: Some(out.clone()),
        };
        run(&args, &|_, _, text| text.into()).expect("simulated");
        std::fs::read(out.join("result.json")).expect("written")
    };
    let first = result("a", None);
    assert_eq!(first, result("b", Some(3)));
    assert_ne!(first, result("c", Some(4)));
    let missing = SimArgs {
        scenario: PathBuf::from("no/such.toml"),
        seed: None,
        out: None,
    };
    assert!(run(&missing, &|_, _, text| text.into())
        .expect_err("missing")
        .to_string()
        .contains("no/such.toml"));
}

#[test]
fn the_examples_can_be_simulated() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/simulated");
    let files = std::fs::read_dir(folder).expect("examples");
    let mut played = 0;
    for file in files {
        let path = file.expect("example").path();
        let (plan, _) = Plan::load(&path).expect("good");
        let outcome = simulate(&plan.spec);
        let silent = outcome.tenants.iter().find(|tenant| tenant.requests == 0);
        assert!(silent.is_none(), "{path:?}: {silent:?}");
        played += 1;
    }
    assert!(played >= 5, "{played}");
}

#[test]
fn the_reference_is_written_from_the_code() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/simulator.md");
    let wanted = sim::scenario::reference::reference();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&file, &wanted).expect("a writable page");
    }
    let found = std::fs::read_to_string(&file).expect("the page");
    assert!(found == wanted, "run with UPDATE_DOCS=1");
}
