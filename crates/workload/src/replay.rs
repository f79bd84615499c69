//! The workloads that `--replay` knows: which trace, which sizes and keys, how fast.

use std::path::{Path, PathBuf};

use crate::draw::{Asks, Mixture, Sizes, Ttl};
use crate::error::WorkloadError;
use crate::rng::Rng;
use crate::source::{Curve, CurveSource, PacedLists, SampleSource, Source, TimedLists};
use crate::trace::meta::{self, Distribution};
use crate::trace::multiget::{self, MOONCAKE_STEP_MS};
use crate::trace::{synthetic, twitter};

/// The single streams of requests in them, for a tenant of a scenario to replay.
pub const STREAMS: &[&str] = &[
    "twitter-1",
    "twitter-2",
    "twitter-10",
    "mooncake",
    "kosarak",
    "meta",
];

/// Names that [`build`] knows.
pub const NAMES: [&str; 4] = ["twitter", "mooncake", "kosarak", "meta"];

/// Share of SoundCloud's multigets (Rein, section 2) with more than one key: single gets are mixed
/// into the Kosarak sessions until they have it too.
const KOSARAK_MULTI: f64 = 0.4;
/// Length of the keys of the multiget traces, which are numbers in the source, bytes.
const MULTIGET_KEY_BYTES: u16 = 24;

/// A replay by name, with its own speed-up if it has one.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplayName {
    /// One of [`NAMES`].
    pub name: String,
    /// Overrides the common speed-up.
    pub speed_up: Option<f64>,
}

impl std::str::FromStr for ReplayName {
    type Err = String;

    /// `NAME` or `NAME@SPEEDUP`.
    fn from_str(text: &str) -> Result<Self, String> {
        let (name, speed_up) = match text.split_once('@') {
            None => (text, None),
            Some((name, n)) => (name, Some(speed_up(n)?)),
        };
        if NAMES.contains(&name) {
            Ok(Self {
                name: name.into(),
                speed_up,
            })
        } else {
            Err(format!(
                "there is no replay `{name}`; known are {}",
                NAMES.join(", ")
            ))
        }
    }
}

/// Parses a speed-up: a number above zero.
///
/// # Errors
/// What is wrong with it.
pub fn speed_up(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(n) if n > 0.0 && n.is_finite() => Ok(n),
        _ => Err(format!("`{text}` is not a number above zero")),
    }
}

/// What all replays share.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The trace collection.
    pub folder: PathBuf,
    /// How many times faster trace time passes.
    pub speed_up: f64,
    /// Multiplies the rate of those replays that have a rate curve rather than arrival times.
    pub rate_scale: f64,
    /// Keys of each keyspace that is drawn from a popularity, at most.
    pub keys: u64,
    /// Fixes everything random.
    pub seed: u64,
}

/// One tenant's workload, ready to run.
pub struct Replay {
    /// Workload tag.
    pub tag: String,
    /// One line about it: where it is from, how fast it runs.
    pub about: String,
    /// Made from published statistics because the trace is absent.
    pub synthesised: bool,
    /// Length of keys, bytes.
    pub key_bytes: u16,
    /// The requests.
    pub source: Box<dyn Source>,
}

/// Makes one of [`STREAMS`].
///
/// # Errors
/// As [`build`].
pub fn stream(name: &str, settings: &Settings) -> Result<Replay, WorkloadError> {
    match name {
        "mooncake" => mooncake(settings),
        "kosarak" => kosarak(settings),
        "meta" => meta_replay(settings),
        cluster => {
            let number = cluster.rsplit('-').next().and_then(|n| n.parse().ok());
            twitter_replay(number.unwrap_or(twitter::CLUSTERS[0]), settings)
        }
    }
}

/// Makes the workloads of one name (three for `twitter`, one for the others).
///
/// # Errors
/// [`WorkloadError::TraceFile`] or [`WorkloadError::TraceLine`] if a trace is there and cannot be
/// used. A folder that is absent is no error: its synthesised equivalent is used.
pub fn build(name: &ReplayName, settings: &Settings) -> Result<Vec<Replay>, WorkloadError> {
    let mut settings = settings.clone();
    settings.speed_up = name.speed_up.unwrap_or(settings.speed_up);
    match name.name.as_str() {
        "twitter" => twitter::CLUSTERS
            .iter()
            .map(|n| twitter_replay(*n, &settings))
            .collect(),
        "mooncake" => mooncake(&settings).map(|replay| vec![replay]),
        "kosarak" => kosarak(&settings).map(|replay| vec![replay]),
        _ => meta_replay(&settings).map(|replay| vec![replay]),
    }
}

fn present(folder: &Path, sub: &str) -> bool {
    folder.join(sub).is_dir()
}

fn distribution(settings: &Settings, workload: &str) -> Result<Distribution, WorkloadError> {
    if present(&settings.folder, "kv-meta-cachelib") {
        meta::read(&settings.folder, workload)
    } else {
        Ok(synthetic::meta(workload))
    }
}

fn cluster(settings: &Settings, number: u32) -> Result<(twitter::Cluster, bool), WorkloadError> {
    if present(&settings.folder, "kv-twitter-hourly") {
        Ok((twitter::read(&settings.folder, number)?, false))
    } else {
        Ok((synthetic::twitter(number), true))
    }
}

/// The hours of a cluster, each 3600 / speed-up seconds long, at their own rates.
fn week(cluster: &twitter::Cluster, settings: &Settings) -> Curve {
    let mut curve = cluster.curve();
    curve.step_s /= settings.speed_up;
    for rate in &mut curve.rates_per_s {
        *rate *= settings.rate_scale;
    }
    curve
}

/// Twitter's rates and mixes with Meta's value sizes and popularity.
fn twitter_replay(number: u32, settings: &Settings) -> Result<Replay, WorkloadError> {
    let (cluster, mut synthesised) = cluster(settings, number)?;
    let workload = match number {
        1 => "kvcache_reg",
        2 => "graph_cache_follower_assocs",
        _ => "graph_cache_leader_fbobj",
    };
    synthesised |= !present(&settings.folder, "kv-meta-cachelib");
    let measured = distribution(settings, workload)?;
    let (seed, stream) = (settings.seed, u64::from(number));
    let shares = cluster
        .hours
        .iter()
        .map(|hour| hour.shares)
        .collect::<Vec<_>>();
    let popularity = measured.popularity(settings.keys);
    let ttl_ms = (cluster.ttl_s / settings.speed_up * 1e3).ceil() as u64;
    let asks = Asks {
        shares: shares[0],
        popularity,
        sizes: measured.sizes(),
        ttl: if ttl_ms > 0 {
            Ttl::Ms(ttl_ms)
        } else {
            Ttl::None
        },
        ..Asks::gets(1)
    };
    let mixture = Mixture::new(seed, stream, asks);
    let about = format!(
        "Twitter cluster {number}: {:.0} requests/s on average, an hour of its week in {}; values \
         and popularity of Meta's {workload} ({:.0} B on average)",
        cluster.rate_per_s() * settings.rate_scale,
        lasting(3600.0 / settings.speed_up),
        measured.mean_bytes(),
    );
    let rng = Rng::new(seed, 0x7457 + stream);
    let source = Box::new(CurveSource::new(
        week(&cluster, settings),
        shares,
        mixture,
        rng,
    ));
    let key_bytes = cluster.key_bytes.round() as u16;
    Ok(Replay {
        tag: format!("twitter-{number}"),
        about,
        synthesised,
        key_bytes,
        source,
    })
}

fn values(settings: &Settings) -> Result<Sizes, WorkloadError> {
    Ok(distribution(settings, "kvcache_reg")?.sizes())
}

fn mooncake(settings: &Settings) -> Result<Replay, WorkloadError> {
    let synthesised = !present(&settings.folder, "multiget-mooncake");
    let timed = if synthesised {
        synthetic::mooncake()
    } else {
        multiget::mooncake(&settings.folder)?
    };
    let span_s = timed.at_ms.last().map_or(0.0, |ms| *ms as f64 / 1e3);
    let about = format!(
        "Mooncake conversations: {:.1} multigets/s of {:.1} keys on average, {} of trace in {}",
        timed.lists.len() as f64 / span_s.max(1.0) * settings.speed_up,
        timed.lists.mean_keys(),
        lasting(span_s),
        lasting(span_s / settings.speed_up),
    );
    let (sizes, seed) = (values(settings)?, settings.seed);
    let source = TimedLists::new(timed, MOONCAKE_STEP_MS, settings.speed_up, sizes, seed);
    let source = Box::new(source);
    let key_bytes = MULTIGET_KEY_BYTES;
    Ok(Replay {
        tag: "mooncake".into(),
        about,
        synthesised,
        key_bytes,
        source,
    })
}

/// Sessions have no times of their own: they arrive at the rates of Twitter's smallest cluster.
fn kosarak(settings: &Settings) -> Result<Replay, WorkloadError> {
    let synthesised = !present(&settings.folder, "multiget-kosarak");
    let lists = if synthesised {
        synthetic::kosarak()
    } else {
        multiget::kosarak(&settings.folder)?
    };
    let (cluster, _) = cluster(settings, 10)?;
    let about = format!(
        "Kosarak sessions: {:.1} keys on average, single gets mixed in until {:.0} % have more than \
         one key; arrivals of Twitter cluster 10, {:.0}/s on average",
        lists.mean_keys(),
        KOSARAK_MULTI * 100.0,
        cluster.rate_per_s() * settings.rate_scale,
    );
    let curve = week(&cluster, settings);
    let source = PacedLists::new(
        lists,
        curve,
        KOSARAK_MULTI,
        values(settings)?,
        settings.seed,
    );
    let source = Box::new(source);
    let key_bytes = MULTIGET_KEY_BYTES;
    Ok(Replay {
        tag: "kosarak".into(),
        about,
        synthesised,
        key_bytes,
        source,
    })
}

fn meta_replay(settings: &Settings) -> Result<Replay, WorkloadError> {
    let synthesised = !present(&settings.folder, "kv-meta-cachelib");
    let rows = if synthesised {
        synthetic::meta_sample()
    } else {
        meta::sample(&settings.folder)?
    };
    let requests: u64 = rows.iter().map(|row| u64::from(row.count)).sum();
    let key_bytes: u64 = rows
        .iter()
        .map(|r| u64::from(r.key_bytes) * u64::from(r.count))
        .sum();
    let span_s = rows.last().map_or(0, |row| row.at_s) + 1;
    let about = format!(
        "Meta key-value cache sample: {requests} requests repeated every {}",
        lasting(span_s as f64 / settings.speed_up),
    );
    let key_bytes = (key_bytes / requests.max(1)) as u16;
    let source = Box::new(SampleSource::new(rows, settings.speed_up, settings.seed));
    Ok(Replay {
        tag: "meta".into(),
        about,
        synthesised,
        key_bytes,
        source,
    })
}

fn lasting(seconds: f64) -> String {
    match seconds {
        s if s >= 3600.0 => format!("{:.1} h", s / 3600.0),
        s if s >= 60.0 => format!("{:.1} min", s / 60.0),
        s if s >= 1.0 => format!("{s:.1} s"),
        s => format!("{:.1} ms", s * 1e3),
    }
}
