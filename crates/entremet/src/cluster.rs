//! `entremet cluster`: a Redis Cluster with fronts, to try one out.

mod dev;
mod engines;

use std::error::Error;
use std::path::PathBuf;

use clap::{Args, Subcommand};

/// `entremet cluster`.
#[derive(Args, Clone, Debug)]
pub struct ClusterArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: ClusterCommand,
}

/// Its subcommands.
#[derive(Clone, Debug, Subcommand)]
pub enum ClusterCommand {
    /// Run a small cluster on this machine, engines and fronts, until it is told to stop
    #[command(after_help = DEV)]
    Dev(DevArgs),
}

const DEV: &str = "\
Starts redis-server or valkey-server processes that are a cluster, and before it one front for each master. To clients
that know of clusters the fronts are one, too. All listen on free ports of the loopback address. It prints one line with
the fronts' addresses when all is ready. Data are kept in memory, and in a folder that goes with it. SIGTERM or SIGINT
ends all of it.

An engine that is killed stays away: with --replicas 1 another takes its place after 2 seconds.

Examples:
  entremet cluster dev --nodes 4 --replicas 1
  entremet cluster dev --config tenants.toml       with these tenants; [engine] is left out there";

/// `entremet cluster dev`.
#[derive(Args, Clone, Debug)]
pub struct DevArgs {
    /// Masters, and as many fronts
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub nodes: u16,

    /// Replicas of each master
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u16).range(0..=4))]
    pub replicas: u16,

    /// The engine's program [default: valkey-server or redis-server, whichever is found]
    #[arg(long, value_name = "PROGRAM")]
    pub engine: Option<PathBuf>,

    /// Configuration file of the fronts; without it they have one core each, and the tenant
    /// "default", who need not log in
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

/// Does what was asked.
///
/// # Errors
/// What kept it from that.
pub fn run(args: &ClusterArgs) -> Result<(), Box<dyn Error>> {
    match &args.command {
        ClusterCommand::Dev(args) => dev::run(args),
    }
}
