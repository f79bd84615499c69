//! `entremet load --replay`.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use serde_json::json;

use super::ending::{conclude, json, Output};
use super::progress::Teller;
use super::{interrupt, LoadArgs};
use crate::client::control::Control;
use crate::client::plan::{KeyText, Pace, Period, Plan, Stream};
use crate::client::preload::Keyspace;
use crate::client::{drive, preload, Goal, Identity};
use crate::error::WorkloadError;
use crate::replay::{self, Replay, Settings};
use crate::report::{self, figures};
use crate::trace;
use policy::generator::mix64;

/// How long the last replies are waited for.
const DRAIN: Duration = Duration::from_secs(5);
/// How long is measured when nobody says.
const DURATION: Duration = Duration::from_secs(30);
/// What fixes everything random when nobody says.
const SEED: u64 = 1;

pub(super) fn run(args: &LoadArgs) -> Result<(), WorkloadError> {
    let goal = args.goal()?;
    let (seed, duration) = (args.seed.unwrap_or(SEED), args.duration.unwrap_or(DURATION));
    let settings = Settings {
        folder: trace::folder(),
        speed_up: args.speed_up,
        rate_scale: args.rate_scale,
        keys: args.keys,
        seed,
    };
    let mut replays = Vec::new();
    for name in &args.replay {
        replays.extend(replay::build(name, &settings)?);
    }
    let identities: Vec<Identity> = replays
        .iter()
        .enumerate()
        .map(|(i, replay)| identity(args, i, replay))
        .collect();
    introduce(args, &replays, &identities);
    let stop = interrupt::flag()?;
    if args.preload {
        load_data(args, &goal, &replays, &identities, &stop)?;
    }
    let connections = usize::from(args.connections);
    let streams = replays.into_iter().zip(identities).enumerate();
    let streams = streams
        .map(|(i, (replay, identity))| {
            let text = KeyText::new(key_seed(seed, i), replay.key_bytes);
            Stream::new(
                identity,
                Period::new(connections, text, Pace::open(replay.source)),
            )
        })
        .collect();
    let plan = Plan {
        goal,
        streams,
        warm_up: Duration::ZERO,
        duration,
        drain: DRAIN,
        threads: 1,
        spin: false,
    };
    let mut teller = Teller::new(Duration::ZERO, duration);
    let outcome = drive::run(plan, &stop, &mut |progress| teller.tell(progress));
    teller.finish();
    let outcome = outcome?;
    let mut figures = json(&figures(&outcome, |_| 1.0));
    figures["arguments"] = json!({
        "replay": args.replay.iter().map(|r| r.name.clone()).collect::<Vec<_>>(),
        "speed_up": args.speed_up,
        "rate_scale": args.rate_scale,
        "duration_s": duration.as_secs_f64(),
        "connections": args.connections,
        "keys": args.keys,
    });
    let output = Output {
        folder: args.out.as_deref(),
        histograms: args.histograms,
    };
    conclude(&outcome, &output, "load", seed, figures)
}

/// Streams that share a tenant never meet in a key.
fn key_seed(seed: u64, stream: usize) -> u64 {
    mix64(seed ^ mix64(stream as u64))
}

fn identity(args: &LoadArgs, index: usize, replay: &Replay) -> Identity {
    let credentials = match args.tenant.len() {
        0 => None,
        n => Some(args.tenant[index % n].clone()),
    };
    Identity {
        credentials,
        tag: replay.tag.clone(),
        ..Identity::default()
    }
}

fn introduce(args: &LoadArgs, replays: &[Replay], identities: &[Identity]) {
    for (replay, identity) in replays.iter().zip(identities) {
        println!("{} as {}: {}", replay.tag, identity.tenant(), replay.about);
    }
    if replays.iter().any(|replay| replay.synthesised) {
        let which: Vec<&str> = replays
            .iter()
            .filter(|r| r.synthesised)
            .map(|r| r.tag.as_str())
            .collect();
        println!(
            "SYNTHESISED from published statistics, because {} holds no such trace: {}",
            trace::folder().display(),
            which.join(", ")
        );
    }
    let connections = usize::from(args.connections) * replays.len();
    println!(
        "{} for {:?}, {connections} connections, seed {}",
        args.target,
        args.duration.unwrap_or(DURATION),
        args.seed.unwrap_or(SEED)
    );
}

fn load_data(
    args: &LoadArgs,
    goal: &Goal,
    replays: &[Replay],
    identities: &[Identity],
    stop: &AtomicBool,
) -> Result<(), WorkloadError> {
    let seed = args.seed.unwrap_or(SEED);
    for identity in identities {
        Control::connect(goal.first(), identity, Duration::from_secs(5))?;
    }
    let keyspace = |(i, (replay, identity)): (usize, (&Replay, &Identity))| {
        let text = KeyText::new(key_seed(seed, i), replay.key_bytes);
        Keyspace::new(identity, text, replay.source.population().into_iter())
    };
    let keyspaces = replays
        .iter()
        .zip(identities)
        .enumerate()
        .map(keyspace)
        .collect();
    let started = std::time::Instant::now();
    let (keys, bytes) = preload::run(goal, keyspaces, stop)?;
    println!(
        "loaded {} keys, {:.1} MB, in {:.1} s",
        report::rate(keys as f64),
        bytes as f64 / 1e6,
        started.elapsed().as_secs_f64()
    );
    Ok(())
}
