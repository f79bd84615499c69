//! `entremet load`: the command line of the load client.

mod ending;
mod interrupt;
mod played;
mod progress;
mod replayed;
#[cfg(test)]
mod tests;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use settings::units::Time;

use crate::client::{resolve, Goal};
use crate::error::WorkloadError;
use crate::replay::{self, ReplayName};

const AFTER_HELP: &str = "\
A scenario says who asks what, when, and what changes on the way; docs/reference/scenario.md describes the
language and scenarios/ has examples. Its tenants log in with the passwords of the scenario, of --tenant or of
--password. What it says of weights, reservations, limits and SLOs is the server's work: it is left alone, unless
--provision makes the tenants on the server (ENTREMET TENANT SET, as --operator or, without it, as the untagged
default tenant). Its [server] table is for who starts a server, as experiments do.

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

With --cluster the server is any front of a cluster (or a node of a Redis Cluster). Each tenant is asked for its own
map (CLUSTER SLOTS), and MOVED is followed: such a request is sent again, with its old start time, and counts as
`moved` and not as failed. Of 16 MOVED it fails. A closed loop has `depth` requests out over all fronts; while a front
is away its clients wait until it is back or out of the map. Only requests of one key can be sent: get, put, delete,
increment, bitcount.

Latency counts from the moment a request was due, not from when it could be sent.

The first Ctrl-C (or SIGTERM) ends a run: its last replies are awaited and there is a table and a result of what
there was, with exit status 1 because it is not all that was asked for. A second one ends it at once (130).

Exit status: 0 the run is complete, whatever the server answered; 1 the scenario is wrong, the server is not there,
or the run was cut short; 2 wrong usage.

Examples:
  entremet load scenarios/half-at-twice.toml --check
  entremet load scenarios/half-at-twice.toml --provision --out load-result
  entremet load --replay twitter@2880 mooncake --tenant web:secret --tenant batch:secret \\
      --preload --duration 30s --out load-result";

/// Load from a scenario or from real workloads, several tenants at once.
#[derive(Args, Clone, Debug)]
#[command(after_help = AFTER_HELP)]
pub struct LoadArgs {
    /// Scenario to play (TOML)
    #[arg(value_name = "SCENARIO", conflicts_with_all = [
        "replay", "speed_up", "rate_scale", "connections", "keys", "preload"])]
    pub scenario: Option<PathBuf>,

    /// Only check the scenario and say in words what it means
    #[arg(long, requires = "scenario", conflicts_with_all = ["provision", "out"])]
    pub check: bool,

    /// Make the scenario's tenants on the server first, or change them to what it says, passwords
    /// too
    #[arg(long, requires = "scenario")]
    pub provision: bool,

    /// Who provisions: a tenant that may administer the server
    #[arg(long, value_name = "NAME:PASSWORD", value_parser = parse_tenant, requires = "provision")]
    pub operator: Option<(String, String)>,

    /// Password of tenants of which nobody says one
    #[arg(long, value_name = "PASSWORD", requires = "scenario")]
    pub password: Option<String>,

    /// Nobody logs in: all load comes from the untagged default tenant (for servers without
    /// tenants)
    #[arg(long, requires = "scenario", conflicts_with_all = ["provision", "password", "tenant"])]
    pub anonymous: bool,

    /// Do not store the scenario's keys first: they are there from an earlier run
    #[arg(long, requires = "scenario")]
    pub no_preload: bool,

    /// Workloads to replay, all at once: NAME or NAME@SPEEDUP
    #[arg(long, value_name = "NAME", num_args = 1.., value_delimiter = ',',
          default_value = "twitter,mooncake,kosarak")]
    pub replay: Vec<ReplayName>,

    /// Server to load, host:port; of several, with commas between, each serves all keys, and
    /// connections go to them in turn
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:6380")]
    pub target: String,

    /// The server is one front of several: each connection of a load becomes a client that knows of
    /// their cluster, with a connection to every front, and sends each request to the home of its
    /// key
    #[arg(long)]
    pub cluster: bool,

    /// Tenant and its password, repeated. Of a scenario: for NAME, or all NAME-1, NAME-2, …. For
    /// --replay: the first one plays the first workload, and round again when there are more
    /// workloads; without any, all play the untagged default tenant
    #[arg(long, value_name = "NAME:PASSWORD", value_parser = parse_tenant)]
    pub tenant: Vec<(String, String)>,

    /// How many times faster trace time passes
    #[arg(long, value_name = "N", default_value = "60", value_parser = replay::speed_up)]
    pub speed_up: f64,

    /// Multiplies the rates of workloads that have a rate curve
    #[arg(long, value_name = "F", default_value = "1", value_parser = replay::speed_up)]
    pub rate_scale: f64,

    /// How long to measure: 500ms, 30s, 2min, 1h [default: the scenario's; 30s for --replay]
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub duration: Option<Duration>,

    /// Fixes everything random: the same seed sends the same requests [default: the scenario's; 1
    /// for --replay]
    #[arg(long)]
    pub seed: Option<u64>,

    /// Connections per workload
    #[arg(long, value_name = "N", default_value = "8", value_parser = clap::value_parser!(u16).range(1..))]
    pub connections: u16,

    /// Keys per workload that is drawn from a popularity, at most
    #[arg(long, value_name = "N", default_value = "100000", value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    pub keys: u64,

    /// Store every key of the workloads first, so that reads find something
    #[arg(long)]
    pub preload: bool,

    /// Folder for result.json
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,

    /// Write the raw latency histograms beside it (latency.hlog, for the tools of HdrHistogram)
    #[arg(long, requires = "out")]
    pub histograms: bool,
}

impl LoadArgs {
    /// Where the load goes.
    fn goal(&self) -> Result<Goal, WorkloadError> {
        let servers = self.target.split(',').map(resolve);
        let servers: Vec<SocketAddr> = servers.collect::<Result<_, _>>()?;
        match (self.cluster, &servers[..]) {
            (false, _) => Ok(Goal::Servers(servers)),
            (true, [front]) => Ok(Goal::Cluster(*front)),
            (true, _) => Err(WorkloadError::Usage(
                "with --cluster one --target is enough: that front names the others".into(),
            )),
        }
    }
}

fn parse_tenant(text: &str) -> Result<(String, String), String> {
    match text.split_once(':') {
        Some((name, password)) if !name.is_empty() => Ok((name.into(), password.into())),
        _ => Err("expected NAME:PASSWORD".into()),
    }
}

/// Parses `500ms`, `30s`, `2min`, `1h`; above zero, at most a week.
///
/// # Errors
/// What is wrong with it.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let time: Time = text.parse()?;
    match time.duration() {
        Duration::ZERO => Err("expected more than nothing".into()),
        time if time > Duration::from_secs(7 * 86_400) => Err("expected at most a week".into()),
        time => Ok(time),
    }
}

/// Runs `entremet load`: prints progress to standard error, the final table to standard output.
///
/// # Errors
/// See [`WorkloadError`]; every one is meant to be shown to the user as it is.
pub fn run(args: LoadArgs) -> Result<(), WorkloadError> {
    match &args.scenario {
        Some(file) => played::run(&args, file),
        None => replayed::run(&args),
    }
}
