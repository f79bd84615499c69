//! Scenarios against a real server: the examples, the ways to misbehave, phases, and what a seed
//! fixes.

mod support;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use support::Redis;
use workload::client::drive::Progress;
use workload::client::Target;
use workload::draw::Class;
use workload::report::{figures, Figures};
use workload::scenario::{misbehave, run, Event, RunOptions, Scenario};
use workload::stats::Outcome;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

fn anonymous(redis: &Redis) -> Target {
    Target {
        anonymous: true,
        ..Target::new(redis.address.into())
    }
}

/// Plays a scenario; `hear` hears its progress.
fn play(redis: &Redis, text: &str, hear: &mut dyn FnMut(&Progress)) -> Outcome {
    let scenario = Scenario::from_text(text, "test.toml")
        .expect("a good scenario")
        .scenario;
    let mut tell = |event: Event<'_>| {
        if let Event::Running(progress) = event {
            hear(progress);
        }
    };
    let mut options = RunOptions::new(&mut tell);
    options.traces = PathBuf::from("/nonexistent");
    run(
        &scenario,
        &anonymous(redis),
        &mut options,
        &AtomicBool::new(false),
    )
    .expect("it runs")
}

fn one(load: &str) -> String {
    format!(
        "duration = '600ms'\nwarm_up = '100ms'\ndrain = '2s'\n[[tenant]]\nname = 'one'\n[[tenant.load]]\n{load}\n"
    )
}

/// A number of redis-server's INFO.
fn info(redis: &Redis, name: &str) -> u64 {
    let text = redis.ask("INFO");
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.and_then(|value| value.trim().parse().ok())
        .unwrap_or_else(|| panic!("{name} in {text}"))
}

#[test]
fn the_examples_play() {
    let Some(redis) = Redis::start() else { return };
    let mut played = 0;
    for entry in std::fs::read_dir(format!("{ROOT}/scenarios")).expect("scenarios/") {
        let path = entry.expect("entry").path();
        if path.extension().is_none_or(|extension| extension != "toml") {
            continue;
        }
        let loaded = Scenario::load(&path).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(loaded.report.problems().len(), 0, "{}", loaded.report);
        assert!(workload::scenario::words(&loaded.scenario).contains("Tenant"));
        // The same scenario in fast motion.
        let text = std::fs::read_to_string(&path).expect("text");
        let fast = |line: &str| match line.trim_start() {
            l if l.starts_with("duration") => "duration = '1500ms'".into(),
            l if l.starts_with("warm_up") => "warm_up = '200ms'".into(),
            l if l.starts_with("at = ") => {
                let seconds: String = l.chars().filter(char::is_ascii_digit).collect();
                format!("at = '{}ms'", seconds.parse::<u32>().expect("seconds") * 50)
            }
            _ => line.to_string(),
        };
        let text: Vec<String> = text.lines().map(fast).collect();
        let outcome = play(&redis, &text.join("\n"), &mut |_| {});
        for tenant in &outcome.tenants {
            assert!(
                tenant.total().completed > 0,
                "{}: {}",
                path.display(),
                tenant.tenant
            );
        }
        played += 1;
    }
    assert!(played >= 3);
}

#[test]
fn every_way_to_misbehave_is_one() {
    let Some(redis) = Redis::start() else { return };
    for way in misbehave::WAYS {
        let before = info(&redis, "total_connections_received");
        // Small keyspaces, because they are stored before.
        let keys = match *way {
            "expiry-storm" => "",
            _ => "keys = { count = 16 }\n",
        };
        let (mut connected, mut outstanding) = (0, 0);
        let outcome = play(
            &redis,
            &one(&format!("{keys}misbehave = '{way}'")),
            &mut |progress| {
                connected = connected.max(info(&redis, "connected_clients"));
                outstanding = outstanding.max(progress.outstanding);
            },
        );
        let total = outcome.tenants[0].total();
        let made = info(&redis, "total_connections_received") - before;
        let mean_reply = total.bytes_in / total.answered.max(1);
        match *way {
            "half-open" => {
                assert_eq!(total.offered, 0);
                assert!(connected >= 200, "{connected}");
                continue;
            }
            "error-storm" => {
                assert_eq!((total.completed, outcome.tenants[0].errors.len()), (0, 1));
                assert!(outcome.tenants[0].errors["ERR"].count > 100);
                continue;
            }
            // redis-server has no such command.
            "scans" => {
                let said = &outcome.tenants[0].errors["ERR"].example;
                assert!(said.contains("ENTREMET.RANGE"), "{said}");
                continue;
            }
            "reconnect-storm" => assert!(made > total.completed, "{made}"),
            "unauthenticated" => assert!(made > 20, "{made}"),
            "huge-values" => assert!(mean_reply > 1 << 20 || total.bytes_out > 4 << 20),
            "slow-reader" => {
                // 32 connections of 20 kB/s, and what the kernel takes at first.
                let most = 32.0 * (20e3 * outcome.elapsed_s + 20e3);
                assert!((total.bytes_in as f64) < most, "{}", total.bytes_in);
            }
            "expiry-storm" => {
                assert!(redis.ask("INFO keyspace").contains("expires=") && total.completed > 100)
            }
            "big-multigets" => assert!(mean_reply > 5_000 * 1_000, "{mean_reply}"),
            "deep-pipelines" => assert!(outstanding > 4 * 4_096, "{outstanding}"),
            "write-bursts" => assert_eq!(
                total.completed,
                outcome.tenants[0].class(Class::Put).completed
            ),
            _ => {}
        }
        assert!(total.answered > 0, "{way}: {:?}", outcome.tenants[0].errors);
    }
}

/// One that changes its demand, then its kind of loop, and one that comes and goes.
const CHANGES: &str = "duration = '3s'\nwarm_up = '200ms'
        [[tenant]]
        name = 'steady'
        [[tenant.load]]
        arrivals = 'constant'
        rate = '100/s'
        [[tenant.load.phase]]
        at = '1s'
        rate = '400/s'
        connections = 2
        [[tenant.load.phase]]
        at = '2s'
        loop = 'closed'
        depth = 3
        mix = { put = 1 }
        [[tenant]]
        name = 'guest'
        tag = 'visit'
        [[tenant.load]]
        from = '1s'
        until = '2s'
        rate = '500/s'";

#[test]
fn loads_join_change_and_leave() {
    let Some(redis) = Redis::start() else { return };
    let mut news = Vec::new();
    let outcome = play(&redis, CHANGES, &mut |progress| {
        news.extend(progress.news.clone())
    });
    let got: Figures = figures(&outcome, |_| 1.0);
    assert_eq!(got.cut_short, None);
    let [steady, guest] = &got.tenants[..] else {
        panic!("{got:?}")
    };
    let [first, second] = [0, 1].map(|second| steady.series.offered_per_s[second]);
    assert!(
        first.abs_diff(100) <= 1 && second.abs_diff(400) <= 1,
        "{first}, {second}"
    );
    assert!(steady.series.offered_per_s[2] > 500, "{:?}", steady.series);
    let classes: Vec<&str> = steady
        .classes
        .iter()
        .map(|class| class.class.as_str())
        .collect();
    assert_eq!(classes, ["get", "put"]);
    assert_eq!((guest.tag.as_str(), guest.series.t_s.len()), ("visit", 3));
    assert_eq!(
        (guest.series.offered_per_s[0], guest.series.offered_per_s[2]),
        (0, 0)
    );
    assert!(
        (300..700).contains(&guest.series.offered_per_s[1]),
        "{:?}",
        guest.series
    );
    assert!(guest.series.p99_ms[0].is_none() && guest.series.p99_ms[1].is_some());
    // What happens in the same moment may be told in either order.
    news.chunks_mut(2).for_each(|moment| moment.sort());
    assert_eq!(
        news,
        [
            "guest joins",
            "steady changes",
            "guest leaves",
            "steady changes"
        ]
    );
    for tenant in &got.tenants {
        assert_eq!(
            (tenant.total.failed, tenant.total.missed),
            (0, 0),
            "{:?}",
            tenant.errors
        );
    }
}

#[test]
fn a_seed_fixes_the_requests() {
    let Some(redis) = Redis::start() else { return };
    let offered = |seed: u32| {
        let load = "rate = '2000/s'\nmix = { get = 1, put = 1, delete = 1, increment = 1, bitcount = 1, ping = 1 }\nspike = { at = '100ms', length = '100ms', times = 3 }";
        let outcome = play(
            &redis,
            &format!("seed = {seed}\n{}", one(load)),
            &mut |_| {},
        );
        let tenant = &outcome.tenants[0];
        assert_eq!(tenant.total().failed, 0, "{:?}", tenant.errors);
        Class::ALL.map(|class| (tenant.class(class).offered, tenant.class(class).bytes_out))
    };
    let first = offered(1);
    assert!(first[Class::Increment as usize].0 > 100);
    assert!(first[Class::Bitcount as usize].0 > 100);
    assert_eq!(first, offered(1));
    assert_ne!(first, offered(2));
}

#[test]
fn whoever_reads_finds_keys() {
    for class in Class::ALL.into_iter().filter(|class| class.has_home()) {
        let Some(redis) = Redis::start() else { return };
        let mix = format!("mix = {{ {} = 1 }}", class.name());
        let load = format!("rate = '100/s'\nkeys = {{ count = 500 }}\n{mix}");
        let outcome = play(&redis, &one(&load), &mut |_| {});
        assert_eq!(outcome.tenants[0].total().failed, 0, "{}", class.name());
        // A counter begins by itself, and what is deleted was there.
        let least = match class {
            Class::Increment => 1,
            Class::Delete => 400,
            _ => 500,
        };
        let text = redis.ask("INFO");
        let keys = text.split("db0:keys=").nth(1);
        let keys = keys.and_then(|keys| keys.split(',').next()?.parse().ok());
        let keys: u64 = keys.unwrap_or_else(|| panic!("no keys in {text}"));
        assert!(keys >= least, "{}: {keys} keys", class.name());
    }
}

#[test]
fn an_interrupt_leaves_what_there_is() {
    let Some(redis) = Redis::start() else { return };
    let text = "duration = '10min'\nwarm_up = '100ms'\n[[tenant]]\nname = 'one'\n[[tenant.load]]\nloop = 'closed'";
    let scenario = Scenario::from_text(text, "test.toml")
        .expect("good")
        .scenario;
    let stop = AtomicBool::new(false);
    let mut tell = |event: Event<'_>| {
        if matches!(event, Event::Running(progress) if progress.at_s > 0.1) {
            stop.store(true, Ordering::Relaxed);
        }
    };
    let mut options = RunOptions::new(&mut tell);
    let outcome = run(&scenario, &anonymous(&redis), &mut options, &stop).expect("it runs");
    assert!(outcome
        .cut_short
        .expect("cut")
        .starts_with("interrupted after"));
    assert!(outcome.tenants[0].total().completed > 0 && outcome.elapsed_s < 60.0);
    assert_eq!(
        outcome.tenants[0].total().failed,
        0,
        "the last replies are awaited"
    );
}

/// Either loop, on two threads, beside a load without an end.
#[test]
fn a_run_ends_when_so_many_requests_are_answered() {
    let Some(redis) = Redis::start() else { return };
    for sends in [
        "loop = 'closed'\nconnections = 6\ndepth = 4",
        "rate = '4000/s'\nconnections = 2",
    ] {
        let text = format!(
            "duration = '1min'\nwarm_up = '0s'\nthreads = 2\n\
             [[tenant]]\nname = 'job'\n[[tenant.load]]\nrequests = 1_001\n{sends}\n\
             [[tenant.load]]\nrequests = 10\nloop = 'closed'\nconnections = 3\n\
             [[tenant]]\nname = 'web'\n[[tenant.load]]\nrate = '200/s'"
        );
        let got = play(&redis, &text, &mut |_| {});
        let [job, web] = &got.tenants[..] else {
            panic!("two tenants")
        };
        assert_eq!(job.total().completed, 1_011, "{sends}");
        assert!(web.total().completed > 0, "{sends}");
        assert_eq!((got.left, &got.cut_short), (Some(0), &None), "{sends}");
        assert!(got.elapsed_s < 60.0, "{sends}: {} s", got.elapsed_s);
    }
    let endless = one("requests = 100\nconnections = 0\nloop = 'closed'");
    assert_eq!(play(&redis, &endless, &mut |_| {}).left, Some(100));
    let without = one("loop = 'closed'");
    assert_eq!(play(&redis, &without, &mut |_| {}).left, None);
}

#[test]
fn wrong_passwords_are_found_before_anything_is_sent() {
    let Some(redis) = Redis::start() else { return };
    let text = "[[tenant]]\nname = 'web'\n[[tenant.load]]\nloop = 'closed'";
    let scenario = Scenario::from_text(text, "test.toml")
        .expect("good")
        .scenario;
    let mut tell = |_: Event<'_>| {};
    let mut options = RunOptions::new(&mut tell);
    let mut target = Target::new(redis.address.into());
    let mut said = |target: &Target| {
        let outcome = run(&scenario, target, &mut options, &AtomicBool::new(false));
        outcome.expect_err("refused").to_string()
    };
    assert!(said(&target).contains("tenant web has no password"));
    target.password = Some("guess".into());
    let refused = said(&target);
    assert!(
        refused.contains("the server refused AUTH: WRONGPASS"),
        "{refused}"
    );
}
