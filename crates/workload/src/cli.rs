//! `entremet load`: the command line of the load client.

use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use serde_json::json;

use crate::client::open::{OpenPlan, OpenStream, Progress};
use crate::client::{open, preload, resolve, Identity};
use crate::error::WorkloadError;
use crate::replay::{self, Replay, ReplayName, Settings};
use crate::rng::mix64;
use crate::stats::Outcome;
use crate::{report, trace};

/// How long the last replies are waited for.
const DRAIN: Duration = Duration::from_secs(5);

const AFTER_HELP: &str = "\
Replays:
  twitter   three tenants: request rates and mixes of three of Twitter's cache clusters over a week,
            with value sizes and popularity measured at Meta
  mooncake  multi-key reads of a production LLM service, at their own arrival times
  kosarak   key lists of a news portal's sessions, single gets mixed in
  meta      a sample of requests to one of Meta's key-value caches, repeated

Time passes --speed-up times faster: requests with arrival times (mooncake, meta) arrive so many times
as often; rate curves (twitter, kosarak) keep their height (times --rate-scale) and their hours pass
faster. Traces are read from $ENTREMET_TRACES (default ../shared/data); where one is absent, an
equivalent is made from its published statistics and the output says so.

Latency counts from the moment a request was due, not from when it could be sent.

Example: two tenants, a day of Twitter's curve in half a minute, data loaded before:
  entremet load --replay twitter@2880 mooncake --tenant web:secret --tenant batch:secret \\
      --preload --duration 30s --out load-result";

/// Open-loop load from real workloads, several tenants at once.
#[derive(Args, Clone, Debug)]
#[command(after_help = AFTER_HELP)]
pub struct LoadArgs {
    /// Workloads to replay, all at once: NAME or NAME@SPEEDUP
    #[arg(long, value_name = "NAME", num_args = 1.., value_delimiter = ',',
          default_value = "twitter,mooncake,kosarak")]
    pub replay: Vec<ReplayName>,

    /// Server to load, host:port
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:6380")]
    pub target: String,

    /// Tenant that plays a workload, repeated: the first one plays the first, and round again when
    /// there are more workloads. Without any, all play the untagged default tenant
    #[arg(long, value_name = "NAME:PASSWORD", value_parser = parse_tenant)]
    pub tenant: Vec<(String, String)>,

    /// How many times faster trace time passes
    #[arg(long, value_name = "N", default_value = "60", value_parser = replay::speed_up)]
    pub speed_up: f64,

    /// Multiplies the rates of workloads that have a rate curve
    #[arg(long, value_name = "F", default_value = "1", value_parser = replay::speed_up)]
    pub rate_scale: f64,

    /// How long to send: 500ms, 30s, 2m, 1h
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = parse_duration)]
    pub duration: Duration,

    /// Fixes everything random: the same seed sends the same requests
    #[arg(long, default_value = "1")]
    pub seed: u64,

    /// Connections per workload
    #[arg(long, value_name = "N", default_value = "8", value_parser = clap::value_parser!(u16).range(1..))]
    pub connections: u16,

    /// Keys per workload that is drawn from a popularity, at most
    #[arg(long, value_name = "N", default_value = "100000", value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    pub keys: u64,

    /// Store every key first, so that reads find something
    #[arg(long)]
    pub preload: bool,

    /// Folder for result.json
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

fn parse_tenant(text: &str) -> Result<(String, String), String> {
    match text.split_once(':') {
        Some((name, password)) if !name.is_empty() => Ok((name.into(), password.into())),
        _ => Err("expected NAME:PASSWORD".into()),
    }
}

/// Parses `500ms`, `30s`, `2m`, `1h`; above zero, at most a week.
///
/// # Errors
/// What is wrong with it.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let digits = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let unit_s = match unit {
        "ms" => 1e-3,
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return Err("expected a time with its unit: 500ms, 30s, 2m, 1h".into()),
    };
    let seconds = number
        .parse::<f64>()
        .map_err(|_| format!("`{number}` is not a number"))?
        * unit_s;
    if seconds > 0.0 && seconds <= 7.0 * 86_400.0 {
        Ok(Duration::from_secs_f64(seconds))
    } else {
        Err("expected more than nothing and at most a week".into())
    }
}

/// Runs `entremet load`: prints progress to standard error, the final table to standard output.
///
/// # Errors
/// See [`WorkloadError`]; every one is meant to be shown to the user as it is.
pub fn run(args: LoadArgs) -> Result<(), WorkloadError> {
    let target = resolve(&args.target)?;
    let settings = Settings {
        folder: trace::folder(),
        speed_up: args.speed_up,
        rate_scale: args.rate_scale,
        keys: args.keys,
        seed: args.seed,
    };
    let mut replays = Vec::new();
    for name in &args.replay {
        replays.extend(replay::build(name, &settings)?);
    }
    let identities: Vec<Identity> = replays
        .iter()
        .enumerate()
        .map(|(i, replay)| identity(&args, i, replay))
        .collect();
    introduce(&args, &replays, &identities);
    let stop = Arc::new(AtomicBool::new(false));
    watch_interrupt(&stop)?;
    if args.preload {
        load_data(&args, target, &replays, &identities, &stop)?;
    }
    let streams = replays
        .into_iter()
        .zip(identities)
        .enumerate()
        .map(|(i, (replay, identity))| OpenStream {
            identity,
            connections: usize::from(args.connections),
            key_bytes: replay.key_bytes,
            key_seed: key_seed(args.seed, i),
            source: replay.source,
        })
        .collect();
    let plan = OpenPlan {
        target,
        streams,
        duration: args.duration,
        drain: DRAIN,
    };
    let mut teller = Teller::new(args.duration);
    let outcome = open::run(plan, &stop, &mut |progress| teller.tell(progress));
    teller.finish();
    conclude(&args, &outcome?)
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
        args.target, args.duration, args.seed
    );
}

fn watch_interrupt(stop: &Arc<AtomicBool>) -> Result<(), WorkloadError> {
    // The second interrupt ends the process, should the first one not be enough.
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(stop))
            .and_then(|_| signal_hook::flag::register(signal, Arc::clone(stop)))
            .map_err(WorkloadError::system("watching for Ctrl-C"))?;
    }
    Ok(())
}

fn load_data(
    args: &LoadArgs,
    target: std::net::SocketAddr,
    replays: &[Replay],
    identities: &[Identity],
    stop: &AtomicBool,
) -> Result<(), WorkloadError> {
    for identity in identities {
        crate::client::control::Control::connect(target, identity, Duration::from_secs(5))?;
    }
    let keyspace = |(i, (replay, identity)): (usize, (&Replay, &Identity))| preload::Keyspace {
        identity: identity.clone(),
        entries: Box::new(replay.source.population().into_iter()),
        key_bytes: replay.key_bytes,
        seed: key_seed(args.seed, i),
    };
    let keyspaces = replays
        .iter()
        .zip(identities)
        .enumerate()
        .map(keyspace)
        .collect();
    let started = std::time::Instant::now();
    let (keys, bytes) = preload::run(target, keyspaces, stop)?;
    println!(
        "loaded {} keys, {:.1} MB, in {:.1} s",
        report::rate(keys as f64),
        bytes as f64 / 1e6,
        started.elapsed().as_secs_f64()
    );
    Ok(())
}

fn conclude(args: &LoadArgs, outcome: &Outcome) -> Result<(), WorkloadError> {
    println!("\n{}", report::table(outcome));
    if let Some(why) = &outcome.cut_short {
        println!("cut short: {why}");
    }
    let generator = &outcome.generator;
    println!(
        "generator: CPU {:.0} % busy, p99 send lag {}",
        generator.busy * 100.0,
        report::duration(generator.lag.percentile_ns(99.0))
    );
    if let Some(complaint) = generator.complaint() {
        println!("NOTE: {complaint}");
    }
    if let Some(folder) = &args.out {
        let mut figures = report::figures(outcome);
        figures["arguments"] = json!({
            "replay": args.replay.iter().map(|r| r.name.clone()).collect::<Vec<_>>(),
            "speed_up": args.speed_up,
            "rate_scale": args.rate_scale,
            "duration_s": args.duration.as_secs_f64(),
            "connections": args.connections,
            "keys": args.keys,
        });
        report::write(
            folder,
            &report::result("load", Vec::new(), figures, args.seed),
        )?;
        println!("wrote {}", folder.join("result.json").display());
    }
    Ok(())
}

/// The progress line.
struct Teller {
    terminal: bool,
    duration: Duration,
    last: Progress,
    every_s: f64,
}

impl Teller {
    fn new(duration: Duration) -> Self {
        let terminal = std::io::stderr().is_terminal();
        // A log file does not want a line a second.
        let every_s = if terminal { 0.5 } else { 5.0 };
        Self {
            terminal,
            duration,
            last: Progress::default(),
            every_s,
        }
    }

    fn tell(&mut self, now: &Progress) {
        let span_s = now.at_s - self.last.at_s;
        if span_s < self.every_s {
            return;
        }
        let rate = |n: u64, before: u64| report::rate((n - before) as f64 / span_s);
        let line = format!(
            "{:.0} of {:.0} s: offered {}/s, done {}/s, outstanding {}, failed {}",
            now.at_s,
            self.duration.as_secs_f64(),
            rate(now.offered, self.last.offered),
            rate(now.completed, self.last.completed),
            now.outstanding,
            now.failed
        );
        let mut stderr = std::io::stderr();
        // Progress that cannot be shown is no reason to stop.
        let _ = if self.terminal {
            write!(stderr, "\r{line}\x1b[K").and_then(|()| stderr.flush())
        } else {
            writeln!(stderr, "{line}")
        };
        self.last = *now;
    }

    fn finish(&self) {
        if self.terminal {
            let _ = writeln!(std::io::stderr());
        }
    }
}

#[cfg(test)]
#[path = "cli_tests.rs"]
mod tests;
