//! The command line. Exit status: 0 ok, 1 failed, 2 usage.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use settings::address;

use crate::cluster::ClusterArgs;
use crate::config::Overrides;
use crate::explain::ExplainArgs;
use crate::export::ExportArgs;
use crate::plan::PlanArgs;
use crate::top::TopArgs;

/// The package's version, and the commit where it was built from one.
pub const VERSION: &str = env!("ENTREMET_VERSION");

/// A shared key-value server that keeps tenants apart: it speaks the Redis protocol, stores on
/// RocksDB, and gives every tenant its share.
#[derive(Debug, Parser)]
#[command(name = "entremet", version = VERSION, arg_required_else_help = true, after_help = EXAMPLES)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

const EXAMPLES: &str = "\
Examples:
  entremet serve                              a server with defaults on 127.0.0.1:6380
  entremet check entremet.toml                is this configuration good, and what does it mean?
  entremet serve --config entremet.toml
  redis-cli -p 6380 --user web --askpass ping

Exit status: 0 ok, 1 failed, 2 wrong usage.";

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the server
    #[command(after_help = SERVE)]
    Serve(ServeArgs),
    /// Check a configuration file and say in words what it means
    #[command(after_help = CHECK)]
    Check(CheckArgs),
    /// Measure the disk under a directory and write its profile
    #[command(after_help = CALIBRATE)]
    Calibrate(CalibrateArgs),
    /// Load a server from a scenario or with real workloads, several tenants at once
    Load(workload::cli::LoadArgs),
    /// Write all data of tenants as lines of JSON, beside everything else that the server does
    #[command(after_help = EXPORT)]
    Export(ExportArgs),
    /// Run published results again, and judge them
    Experiment(experiment::cli::ExperimentArgs),
    /// Show tenants and stages live in the terminal
    #[command(after_help = TOP)]
    Top(TopArgs),
    /// Say where the time of a tenant's requests goes, and who delays them
    #[command(after_help = EXPLAIN)]
    Explain(ExplainArgs),
    /// Ask a running server what would come of a change
    Plan(PlanArgs),
    /// Look after a Redis Cluster behind fronts, or run a small one to try it out
    Cluster(ClusterArgs),
    /// Simulate a cluster under a scenario
    Sim(sim::cli::SimArgs),
    /// Hash a password for password_hash in the configuration
    #[command(after_help = HASH)]
    HashPassword,
    /// Print the completion script of a shell
    #[command(after_help = COMPLETIONS)]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Write the manual pages, one for each subcommand
    #[command(after_help = MAN)]
    Man {
        /// The directory for them
        #[arg(value_name = "DIR")]
        directory: PathBuf,
    },
}

const SERVE: &str = "\
Prints one line with its addresses when it is ready. SIGTERM or SIGINT shuts it down: it finishes the
requests under way (server.drain); a second signal ends it at once. SIGHUP reads the configuration again.
If that has errors, the server refuses all of it and keeps the old one.

After its first start in a data directory it measures the disk for some seconds, in the background, so that I/O can be
shared by tenant, and keeps the result there (device.toml). docs/reference/device.md tells more.

Examples:
  entremet serve --data /var/lib/entremet
  entremet serve --engine redis://127.0.0.1:6379          before a Redis that is there
  entremet serve --engine redis-cluster://127.0.0.1:7000  before the cluster that this is a node of
  entremet serve --config entremet.toml --listen 127.0.0.1:0 --admin 127.0.0.1:0";

const CHECK: &str = "\
Reports all errors and warnings at once, with line and column. The exit status is 1 if there is an error,
and 0 if there are only warnings. It reads the files that the configuration names as `entremet serve` does:
certificates, a token, a profile of the disk, and the profile that a server keeps in its data directory.

Example:
  entremet check entremet.toml && kill -HUP \"$(pidof entremet)\"";

const CALIBRATE: &str = "\
Measures the disk under DIR with a scratch file that bypasses the page cache: how many reads and writes of each size it
does, and what is left when they mix. It touches no other file, and its own is gone afterwards. It takes some minutes
(--quick: less than one), and the disk should have nothing else to do. Results that no disk can have are refused.
A server without a profile measures its disk itself, in seconds. This measurement is the exact one: put its result in
the place of device.toml in the data directory, or name it in device.profile. docs/reference/device.md explains it.

Examples:
  entremet calibrate /var/lib/entremet --out /etc/entremet/device.toml
  entremet calibrate . --quick";

const TOP: &str = "\
Shows what happened in the last 3 seconds, once a second: who asks, waits, is served and is throttled, and
where. Keys: q end, p pause, / filter, s sort, r reverse, j k Enter a tenant's page, i idle, ? all keys.
If the output is not a terminal, it prints one table and ends.

Examples:
  entremet top
  entremet top --admin 10.0.0.7:9380 web        one tenant: where its time goes, and who else is there
  entremet top --admin 10.0.0.7:9380 --token-file token --ca ca.pem --name entremet.example.org
  entremet top --once --sort p99 | head";

const EXPLAIN: &str = "\
Says for each class and each promise of a tenant how fast it is answered, where the time of late requests went in the last
minutes, behind whom they waited, and which requests of the last hour were slowest. ENTREMET EXPLAIN and ENTREMET SLOWEST
say the same to a client.

Example:
  entremet explain web --slowest 10";

const EXPORT: &str = "\
Writes DIR/NAME.ndjson for each tenant: a line for each key, with its type, value and expiry time; docs/guide/export.md
describes the lines. DIR/progress.json says how far it is. If it is ended in the middle, by whatever, the same command
goes on: each key that is there all the time is then in the file once. Keys that are written meanwhile may be in it
or not; each line is as its key was at some moment, of a large collection as its elements were.

Its connections call themselves entremet-export (--client). A workload of that name ([[tenant.workload]]) has a share
of its own, so that requests of the same tenant go before it.

Exit status: 0 all is written; 1 something is missing, and the same command goes on with it; 2 wrong usage.

Examples:
  entremet export backup --tenant web:web-demo --tenant batch:batch-demo --rate 20MB/s
  jq -r 'select(.type == \"string\") | .key' backup/web.ndjson | head";

const HASH: &str = "\
Asks for the password twice on a terminal, else reads one line from standard input. Prints an Argon2id hash.

Example:
  printf '%s\\n' \"$PASSWORD\" | entremet hash-password";

const COMPLETIONS: &str = "\
Examples:
  entremet completions bash > /etc/bash_completion.d/entremet
  entremet completions zsh > \"${fpath[1]}/_entremet\"
  entremet completions fish > ~/.config/fish/completions/entremet.fish";

const MAN: &str = "\
Example:
  entremet man ~/.local/share/man/man1 && man entremet-serve";

/// `entremet serve`.
#[derive(Args, Clone, Debug)]
pub struct ServeArgs {
    /// Configuration file (TOML); without it, all settings have their defaults
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// Stand before this Redis or Valkey, as redis://HOST:PORT, or before a cluster, as
    /// redis-cluster://HOST:PORT,HOST:PORT, and keep no data here; rediss:// and rediss-cluster://
    /// for TLS, with [engine.tls] in the file [config: engine.kind, engine.url]
    #[arg(long, value_name = "URL")]
    pub engine: Option<String>,

    /// Be one of several fronts before a cluster, and take cluster-aware clients without TLS at
    /// this address [config: server.cluster.listen]
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    pub cluster_listen: Option<SocketAddr>,

    /// The node of the cluster before which this front stands [config: server.cluster.node]
    #[arg(long, value_name = "HOST:PORT")]
    pub node: Option<String>,

    /// Data directory [config: engine.path]
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,

    /// Address for clients without TLS; may be repeated [config: server.listen]
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    pub listen: Vec<SocketAddr>,

    /// Address for metrics, health and JSON [config: server.admin]
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    pub admin: Option<SocketAddr>,
}

impl ServeArgs {
    /// What the command line says instead of the file.
    pub fn overrides(&self) -> Overrides {
        Overrides {
            listen: self.listen.clone(),
            admin: self.admin,
            cluster_listen: self.cluster_listen,
            node: self.node.clone(),
            engine: self.engine.clone(),
            data: self.data.clone(),
        }
    }
}

/// `entremet check`.
#[derive(Args, Clone, Debug)]
pub struct CheckArgs {
    /// Configuration file (TOML)
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
}

/// `entremet calibrate`.
#[derive(Args, Clone, Debug)]
pub struct CalibrateArgs {
    /// A directory on the disk to be measured: where the data will be
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,

    /// Where to write the profile
    #[arg(long, value_name = "FILE", default_value = "device.toml")]
    pub out: PathBuf,

    /// Take less than a minute: shorter tries, fewer mixes
    #[arg(long)]
    pub quick: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn addresses_are_checked_by_the_command_line() {
        let wrong = Cli::try_parse_from(["entremet", "serve", "--listen", ":6380"])
            .expect_err("no address");
        assert_eq!(wrong.exit_code(), 2);
        assert!(
            wrong
                .to_string()
                .contains("has no address; write 127.0.0.1"),
            "{wrong}"
        );
        let good = [
            "entremet",
            "serve",
            "--listen",
            "localhost:1",
            "--listen",
            "[::1]:1",
            "--data",
            "d",
        ];
        let Command::Serve(args) = Cli::try_parse_from(good).expect("good").command else {
            panic!("serve")
        };
        assert_eq!(args.overrides().listen.len(), 2);
    }
}
