//! The load client against a real server.

mod support;

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use clap::Parser;
use support::Redis;
use workload::client::plan::{KeyText, Pace, Period, Plan, Stream};
use workload::client::preload::{self, Keyspace};
use workload::client::{drive, Goal, Identity};
use workload::draw::{Asks, Class, Counts, Mixture, Shares, Sizes};
use workload::replay::{self, Settings};
use workload::rng::Rng;
use workload::source::{Curve, CurveSource};
use workload::{cli::LoadArgs, WorkloadError};

static RUNNING: AtomicBool = AtomicBool::new(false);

fn identity(tenant: &str, password: &str) -> Identity {
    Identity {
        credentials: Some((tenant.into(), password.into())),
        tag: "test".into(),
        ..Identity::default()
    }
}

const DRAIN: Duration = Duration::from_secs(5);

fn closed_stream(identity: Identity, shares: Shares) -> Stream {
    let asks = Asks {
        shares,
        multiget: Counts::Constant(5),
        ..Asks::gets(100)
    };
    let pace = Pace::closed(Mixture::new(7, 1, asks), 4);
    let period = Period::new(4, KeyText::new(7, 24), pace);
    Stream::new(identity, period)
}

fn closed_plan(redis: &Redis, streams: Vec<Stream>, threads: usize) -> Plan {
    Plan {
        goal: redis.address.into(),
        streams,
        warm_up: Duration::from_millis(50),
        duration: Duration::from_millis(300),
        drain: DRAIN,
        threads,
        spin: false,
    }
}

#[test]
fn a_closed_loop_of_two_tenants_over_two_threads() {
    let Some(redis) = Redis::start() else { return };
    let keyspaces = ["web", "batch"].map(|tenant| {
        let entries: Vec<(u64, u32)> = (0..100).map(|key| (key, 1024)).collect();
        let text = KeyText::new(7, 24);
        Keyspace::new(&identity(tenant, "secret"), text, entries.into_iter())
    });
    let (stored, bytes) =
        preload::run(&redis.address.into(), keyspaces.into(), &RUNNING).expect("preload");
    assert_eq!(stored, 200);
    assert!(bytes > 200 * 1024);
    let mixed = Shares {
        get: 0.5,
        put: 0.3,
        multiget: 0.2,
        ..Shares::default()
    };
    let streams = vec![
        closed_stream(identity("web", "secret"), mixed),
        closed_stream(identity("batch", "secret"), Shares::GETS),
    ];
    let outcome = drive::run(closed_plan(&redis, streams, 2), &RUNNING, &mut |_| {}).expect("run");
    let (web, batch) = (&outcome.tenants[0], &outcome.tenants[1]);
    assert_eq!(outcome.failed(), 0);
    assert_eq!(
        web.total().missed + batch.total().missed,
        0,
        "every key was loaded"
    );
    assert_eq!(batch.class(Class::Get).completed, batch.total().completed);
    assert!(batch.total().bytes_in >= batch.total().completed * 1024);
    let share = web.class(Class::Multiget).completed as f64 / web.total().completed as f64;
    assert!((share - 0.2).abs() < 0.1, "{share}");
    assert!(web.class(Class::Put).latency().percentile_ns(50.0) > 0);
}

#[test]
fn clients_are_dealt_out_to_servers() {
    let (Some(one), Some(other)) = (Redis::start(), Redis::start()) else {
        return;
    };
    let streams =
        [Shares::GETS, Shares::GETS].map(|shares| closed_stream(identity("web", "secret"), shares));
    let plan = Plan {
        goal: Goal::Servers(vec![one.address, other.address]),
        ..closed_plan(&one, streams.into(), 1)
    };
    let outcome = drive::run(plan, &RUNNING, &mut |_| {}).expect("run");
    assert_eq!(outcome.failed(), 0);
    // Two streams of four connections, and one that looked whether the password is right.
    for server in [&one, &other] {
        let said = server.ask("INFO commandstats");
        assert!(said.contains("cmdstat_auth:calls=5,"), "{said}");
    }
}

fn open_plan(redis: &Redis, rate_per_s: f64, duration: Duration) -> Plan {
    let shares = Shares {
        get: 0.8,
        put: 0.1,
        delete: 0.1,
        ..Shares::default()
    };
    let asks = Asks {
        shares,
        sizes: Sizes::Constant(100),
        ..Asks::gets(1_000)
    };
    let mixture = Mixture::new(3, 1, asks);
    let curve = Curve {
        rates_per_s: vec![rate_per_s],
        step_s: 1.0,
    };
    let source = Box::new(CurveSource::new(
        curve,
        vec![shares],
        mixture,
        Rng::new(3, 2),
    ));
    let period = Period::new(3, KeyText::new(1, 16), Pace::open(source));
    Plan {
        goal: redis.address.into(),
        streams: vec![Stream::new(identity("web", "secret"), period)],
        warm_up: Duration::ZERO,
        duration,
        drain: DRAIN,
        threads: 1,
        spin: false,
    }
}

#[test]
fn an_open_loop_sends_what_is_due_and_gets_it_all_back() {
    let Some(redis) = Redis::start() else { return };
    let mut told = 0;
    let plan = open_plan(&redis, 5_000.0, Duration::from_millis(500));
    let outcome = drive::run(plan, &RUNNING, &mut |_| told += 1).expect("run");
    let total = outcome.tenants[0].total();
    assert!(
        (total.offered as f64 - 2_500.0).abs() < 5.0 * 50.0,
        "{}",
        total.offered
    );
    assert_eq!((total.completed, total.failed), (total.offered, 0));
    assert!(outcome.tenants[0].class(Class::Delete).completed > 0);
    assert!(total.missed > 0, "nothing was loaded");
    assert!(told >= 2);
    assert_eq!(outcome.cut_short, None);
}

#[test]
fn an_interrupt_ends_a_run_with_what_there_is() {
    let Some(redis) = Redis::start() else { return };
    let stop = AtomicBool::new(false);
    let plan = open_plan(&redis, 2_000.0, Duration::from_secs(600));
    let outcome = drive::run(plan, &stop, &mut |progress| {
        if progress.completed > 100 {
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
        }
    })
    .expect("run");
    assert!(outcome
        .cut_short
        .expect("cut short")
        .contains("interrupted"));
    assert!(outcome.tenants[0].total().completed > 100);
    assert!(outcome.elapsed_s < 60.0);
}

#[test]
fn a_server_that_goes_away_is_reported() {
    let Some(mut redis) = Redis::start() else {
        return;
    };
    let plan = open_plan(&redis, 2_000.0, Duration::from_secs(600));
    let mut killed = false;
    let error = drive::run(plan, &RUNNING, &mut |progress| {
        if progress.completed > 100 && !killed {
            redis.kill();
            killed = true;
        }
    })
    .expect_err("the server is gone");
    assert!(
        matches!(error, WorkloadError::ServerGone { completed, .. } if completed > 100),
        "{error}"
    );
    let target = redis.address.to_string();
    let error = workload::run(arguments(&["--target", &target])).expect_err("nobody there");
    assert!(
        error.to_string().contains("is the server running"),
        "{error}"
    );
}

#[test]
fn broken_connections_are_made_again() {
    let Some(redis) = Redis::start() else { return };
    let plan = open_plan(&redis, 2_000.0, Duration::from_secs(2));
    let (mut cuts, address) = (0, redis.address);
    let outcome = drive::run(plan, &RUNNING, &mut |progress| {
        if progress.at_s > 0.3 && cuts == 0 {
            cuts += 1;
            let mut control = workload::client::control::Control::connect(
                address,
                &Identity::default(),
                Duration::from_secs(5),
            )
            .expect("control");
            let kill: [&[u8]; 4] = [b"CLIENT", b"KILL", b"USER", b"web"];
            assert_eq!(control.command(&kill).expect("kill"), None);
        }
    })
    .expect("run");
    let total = outcome.tenants[0].total();
    assert_eq!(cuts, 1);
    assert_eq!(total.completed + total.failed, total.offered);
    assert!(
        total.completed > total.offered / 2,
        "{} of {}",
        total.completed,
        total.offered
    );
}

#[test]
fn refusals_and_errors_are_told_apart() {
    let Some(redis) = Redis::start() else { return };
    let wrong = closed_stream(identity("web", "wrong"), Shares::GETS);
    let plan = |stream| closed_plan(&redis, vec![stream], 1);
    let error = drive::run(plan(wrong), &RUNNING, &mut |_| {})
        .expect_err("refused")
        .to_string();
    assert!(
        error.contains("tenant `web`: the server refused AUTH: WRONGPASS"),
        "{error}"
    );
    let mut control = workload::client::control::Control::connect(
        redis.address,
        &Identity::default(),
        Duration::from_secs(5),
    )
    .expect("control");
    let readers: [&[u8]; 4] = [b"ACL", b"SETUSER", b"web", b"-set"];
    assert_eq!(control.command(&readers).expect("acl"), None);
    let puts = closed_stream(identity("web", "secret"), Shares::PUTS);
    let outcome = drive::run(plan(puts), &RUNNING, &mut |_| {}).expect("run");
    let total = outcome.tenants[0].total();
    assert_eq!(total.completed, 0);
    assert_eq!(outcome.tenants[0].errors["NOPERM"].count, total.failed);
}

#[test]
fn a_server_without_a_cluster_says_so() {
    let Some(redis) = Redis::start() else { return };
    let streams = vec![closed_stream(identity("web", "secret"), Shares::GETS)];
    let plan = Plan {
        goal: Goal::Cluster(redis.address),
        ..closed_plan(&redis, streams, 1)
    };
    let error = drive::run(plan, &RUNNING, &mut |_| {}).expect_err("refused");
    let expected = "tenant `web`: the server refused CLUSTER SLOTS: ERR This instance has cluster";
    assert!(error.to_string().contains(expected), "{error}");
}

#[derive(Parser)]
struct Arguments {
    #[command(flatten)]
    load: LoadArgs,
}

fn arguments(words: &[&str]) -> LoadArgs {
    Arguments::parse_from([&["load"], words].concat()).load
}

#[test]
fn every_replay_runs_and_writes_its_result() {
    let Some(redis) = Redis::start() else { return };
    let out = tempfile::tempdir().expect("folder");
    let target = redis.address.to_string();
    let words = [
        "--replay",
        "twitter,mooncake,kosarak,meta",
        "--target",
        &target,
        "--duration",
        "1s",
        "--tenant",
        "web:secret",
        "--tenant",
        "batch:secret",
        "--keys",
        "1000",
        "--preload",
        "--rate-scale",
        "0.1",
        "--out",
        out.path().to_str().expect("path"),
    ];
    workload::run(arguments(&words)).expect("run");
    let text = std::fs::read_to_string(out.path().join("result.json")).expect("result");
    let result: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let tenants = result["figures"]["tenants"].as_array().expect("tenants");
    let tags: Vec<_> = tenants
        .iter()
        .map(|t| t["tag"].as_str().unwrap_or("?"))
        .collect();
    assert_eq!(
        tags,
        [
            "twitter-1",
            "twitter-2",
            "twitter-10",
            "mooncake",
            "kosarak",
            "meta"
        ]
    );
    assert_eq!(tenants[1]["name"], "batch");
    for tenant in tenants {
        assert_eq!(
            tenant["errors"].as_array().map(Vec::len),
            Some(0),
            "{tenant}"
        );
    }
    let rate = &tenants[0]["classes"][0]["offered_per_s"];
    assert!(
        rate.as_f64()
            .is_some_and(|rate| (900.0..1_300.0).contains(&rate)),
        "{rate}"
    );
}

#[test]
fn replays_without_traces_are_synthesised() {
    let settings = Settings {
        folder: PathBuf::from("/nonexistent"),
        speed_up: 1.0,
        rate_scale: 1.0,
        keys: 100,
        seed: 1,
    };
    for name in replay::NAMES {
        for mut made in replay::build(&name.parse().expect("known"), &settings).expect("made") {
            assert!(made.synthesised);
            let mut keys = Vec::new();
            assert!((0..1_000).all(|_| {
                made.source.next(&mut keys);
                !keys.is_empty()
            }));
            assert!(!made.source.population().is_empty());
        }
    }
}
