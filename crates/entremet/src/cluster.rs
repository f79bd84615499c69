//! `entremet cluster`: a Redis Cluster behind fronts: what is where, what is wrong, and moving
//! partitions from node to node; or a small one of one's own, to try it out.
//!
//! A move does what is left to be done, and knows that from what nodes ([`nodes`]) and the
//! catalogue ([`intent`], [`book`]) show: [`plan`] says what is next, [`mover`] does it, a batch of
//! keys after the other ([`pace`]), after [`survey`] has looked whether it may.
//!
//! [`control`] moves by itself: one process at a time ([`lead`]) reads what is asked for
//! ([`figures`]), has the policy decide ([`decide`]), and moves as the command does. So do
//! [`drain`], which empties a node, and [`add`], which fills one: many moves ([`series`]) of what
//! policy says who gets ([`places`]).

mod add;
mod asked;
mod book;
mod check;
mod control;
mod decide;
mod dev;
mod drain;
mod engines;
mod figures;
mod first;
mod intent;
mod lead;
mod leaving;
mod mover;
mod moving;
mod nodes;
mod pace;
mod places;
mod plan;
mod reach;
mod say;
mod series;
mod settled;
mod slots;
mod status;
mod strays;
mod survey;
mod weights;
mod what;

use std::error::Error;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use settings::units::Time;

use first::Place;
use moving::Allow;
use reach::AtArgs;
use what::What;

type Failure = Box<dyn Error>;

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
    /// Move partitions to another node, while their tenants use them
    #[command(after_help = MOVE)]
    Move(MoveArgs),
    /// Move partitions by itself, to where what they are asked for can be served
    #[command(after_help = CONTROL)]
    Control(ControlArgs),
    /// Move all that a node has to the others, so that it can be taken away
    #[command(after_help = DRAIN)]
    Drain(DrainArgs),
    /// Take a node in that has nothing yet, or that was emptied
    #[command(after_help = ADD)]
    Add(AddArgs),
    /// Show nodes, fronts, where tenants' partitions are, and what tenants weigh there
    #[command(after_help = STATUS)]
    Status(AtArgs),
    /// Say what is wrong: slots that nobody has or that were left in the middle of a move, nodes
    /// that do not agree
    #[command(after_help = CHECK)]
    Check(AtArgs),
    /// Run a small cluster on this machine, engines and fronts, until it is told to stop
    #[command(after_help = DEV)]
    Dev(DevArgs),
}

const MOVE: &str = "\
Moves the hash slot of each partition, with all keys in it, a batch after the other. Clients that come through fronts see
no error and wait for a batch at most; but a request with several keys of the partition, or a transaction, waits while
its keys are at both nodes. Partitions that have the same slot move together; it says which.

What is to be done is written down at the cluster first. If a move is ended in the middle, by whatever, --resume goes on
with it; so does the same command. To undo one of which no key has gone yet, name the node where the slot is with --to.

It is refused if a node is away or nodes do not agree; if the target has no room (maxmemory); if another move at one of
the two nodes is not at its end; and if a key is so large that both nodes would answer nobody for longer than
--allow-stall.

Each second it says on standard error how far it is, and for each slot one line on standard output at its end.

Exit status: 0 all is where it is to be; 1 something is not, and it says what to do; 2 wrong usage.

Examples:
  entremet cluster move --at redis-cluster://10.0.0.1:6379 web:3 --to 10.0.0.4:6379
  entremet cluster move --at redis-cluster://:SECRET@10.0.0.1:6379 web:3 web:4 --to 10.0.0.4:6379 --dry-run
  entremet cluster move --at redis-cluster://10.0.0.1:6379 --resume";

const CONTROL: &str = "\
Runs until it is told to stop. Fronts with [server.cluster] tell what each partition takes of the time of its node, and
nodes how busy they are. While the most used node is asked for much more than the mean, three times in a row, partitions
go from it to others, one at a time, as `entremet cluster move` moves them. A move must give the node more of its time than
it takes, counted over --horizon; and what has moved stays for so long.

Nothing moves, and it says why, while a front or a node is away, nodes or fronts do not agree, a node is being emptied
(`entremet cluster drain`), or a slot is in the middle of a move by another tool. A move that was begun and that nobody is
at any more is brought to its end first. To a node that was emptied nothing moves until it is added again.

One process at a time does this for a cluster; others wait until it is gone. On standard output there is a line for each
decision and for each move at its end, on standard error why nothing moves. SIGTERM or SIGINT ends it; a move that is under
way stops between two batches of keys, and whoever comes next goes on with it.

Exit status: 0 it was told to stop, or has decided --once; 1 another has taken its place, or --once nothing could be
decided; 2 wrong usage.

Examples:
  entremet cluster control --at redis-cluster://10.0.0.1:6379,10.0.0.2:6379
  entremet cluster control --at redis-cluster://10.0.0.1:6379 --dry-run --once --every 10s
  entremet cluster control --at redis-cluster://10.0.0.1:6379 --except billing --horizon 30min";

const DRAIN: &str = "\
Moves everything from a master to others while tenants use it: partitions one after the other, as `entremet cluster move`
does, each to where what it is asked for can be served, if fronts tell that, else so that all have as many bytes; and the
slots that no partition has, many at once. It says beforehand what will go, and whether it may.

From then on nothing is moved to that node, by nobody, until `entremet cluster add` takes it in again. `entremet cluster
control` makes room for this process, and goes on when it has ended.

If it is ended in the middle, by whatever, nothing is lost, and the same command goes on. It is refused, before anything
has moved, if a key is so large that nodes would answer nobody for longer than --allow-stall, and if the others have no
room (maxmemory).

On standard output there is a line for each move at its end, and at last what is left to be done by hand; on standard
error how far it is.

Exit status: 0 the node has nothing any more, or --dry-run says what would go; 1 something has not gone, and it says why;
2 wrong usage.

Examples:
  entremet cluster drain --at redis-cluster://10.0.0.1:6379,10.0.0.2:6379 10.0.0.4:6379 --dry-run
  entremet cluster drain --at redis-cluster://10.0.0.1:6379,10.0.0.2:6379 10.0.0.4:6379
  entremet cluster drain --at redis-cluster://10.0.0.1:6379 10.0.0.4:6379 --to 10.0.0.1:6379,10.0.0.2:6379";

const ADD: &str = "\
Introduces a node to the cluster and waits until all know it. Refused is one that cannot be reached, is not in cluster
mode, has keys or slots, knows another cluster, is of another version than the others, or would become a replica when its
last slot moves away (cluster-allow-replica-migration). A node that was emptied and is still in the cluster is used again.

It has no slots then. `entremet cluster control` moves partitions to it as others have too much to do. With --fill it gets
its part at once: partitions, so that what they are asked for and their bytes are even, and slots that no partition has.
If that is ended in the middle, the same command goes on.

Exit status: 0 it is a master of the cluster; 1 it is not, or has not got its part, and it says why; 2 wrong usage.

Examples:
  entremet cluster add --at redis-cluster://10.0.0.1:6379,10.0.0.2:6379 10.0.0.4:6379
  entremet cluster add --at redis-cluster://10.0.0.1:6379,10.0.0.2:6379 10.0.0.4:6379 --fill";

const STATUS: &str = "\
Of tenants that were served something of late, it shows what they weigh at the front before each node, and how much of
the node's time they take, as fronts with [server.cluster] tell.

Examples:
  entremet cluster status --at redis-cluster://10.0.0.1:6379,10.0.0.2:6379
  entremet cluster status --at rediss-cluster://10.0.0.1:6379 --ca ca.crt --cert ops.crt --key ops.key";

const CHECK: &str = "\
Prints a line for each thing that is wrong, with what to do.

Exit status: 0 nothing is wrong; 1 something is, or the cluster cannot be asked; 2 wrong usage.

Example:
  entremet cluster check --at redis-cluster://10.0.0.1:6379 || echo look after it";

const DEV: &str = "\
Starts redis-server or valkey-server processes that are a cluster, and before it one front for each master. To clients
that know of clusters the fronts are one, too. All listen on free ports of the loopback address. It prints one line with
the fronts' addresses when all is ready. Data are kept in memory, and in a folder that goes with it. SIGTERM or SIGINT
ends all of it.

An engine that is killed stays away: with --replicas 1 another takes its place after 2 seconds.

Examples:
  entremet cluster dev --nodes 4 --replicas 1
  entremet cluster dev --config tenants.toml       with these tenants; [engine] is left out there
  entremet cluster dev --config tenants.toml --place web=1,1,1,1 --control 3s";

/// What nodes are held up for by a move, in percent of the time, where nobody says anything else:
/// one request of twenty that comes meanwhile waits for a batch.
const PART: u8 = 5;

/// How a move may hold both nodes up.
#[derive(Args, Clone, Debug)]
pub struct AllowArgs {
    /// One key may hold both nodes up for so long; 50 MB are taken to need one second
    #[arg(long, value_name = "TIME", default_value = "20ms")]
    pub allow_stall: Time,

    /// All keys may hold both nodes up for so much of the time while a move lasts, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = PART, value_parser = clap::value_parser!(u8).range(1..=100))]
    pub allow_part: u8,
}

impl AllowArgs {
    fn get(&self) -> Allow {
        Allow::of(self.allow_stall, self.allow_part)
    }
}

/// `entremet cluster move`.
#[derive(Args, Clone, Debug)]
pub struct MoveArgs {
    /// Which cluster
    #[command(flatten)]
    pub cluster: AtArgs,

    /// Partitions, as TENANT:NUMBER (from 0), or TENANT if it has one only; or hash slots of the
    /// engine
    #[arg(
        value_name = "TENANT[:PARTITION]|SLOT",
        required_unless_present = "resume"
    )]
    pub what: Vec<What>,

    /// The node that is to have them: HOST:PORT, or the first digits of its name
    #[arg(long, value_name = "NODE", required_unless_present = "resume")]
    pub to: Option<String>,

    /// Go on with all moves that were begun and not brought to their end
    #[arg(long, conflicts_with_all = ["what", "to"])]
    pub resume: bool,

    /// Say what would be moved, and whether it may, and do nothing
    #[arg(long)]
    pub dry_run: bool,

    /// How both nodes may be held up
    #[command(flatten)]
    pub allow: AllowArgs,
}

/// `entremet cluster control`.
#[derive(Args, Clone, Debug)]
pub struct ControlArgs {
    /// Which cluster
    #[command(flatten)]
    pub cluster: AtArgs,

    /// See what is asked for during this time, and decide whether it is certain by now
    #[arg(long, value_name = "TIME", default_value = "3s", value_parser = long_enough)]
    pub every: Time,

    /// Decide once, do it, and end; what is uneven need not be certain
    #[arg(long)]
    pub once: bool,

    /// Say what would move, and change nothing
    #[arg(long)]
    pub dry_run: bool,

    /// Even out if the most used node is asked for so much more than the mean, in percent of what
    /// it can serve; in any case where it is asked for 3 % more than it can serve
    #[arg(long, value_name = "PERCENT", default_value_t = 10, value_parser = clap::value_parser!(u8).range(1..=100))]
    pub uneven: u8,

    /// What a move gains counts for so long against what it takes, and its partition stays for so
    /// long
    #[arg(long, value_name = "TIME", default_value = "5min", value_parser = long_enough)]
    pub horizon: Time,

    /// Partitions of this tenant stay where they are; may be said again
    #[arg(long, value_name = "TENANT")]
    pub except: Vec<String>,

    /// A partition with a key that would hold both nodes up for longer stays; 50 MB are taken to
    /// need one second
    #[arg(long, value_name = "TIME", default_value = "20ms")]
    pub allow_stall: Time,

    /// The part of a processor that each node may use, where it has a limit, as in a container: it
    /// has no more to do than it can while it uses less
    #[arg(long, value_name = "PART", default_value_t = 1.0, value_parser = part)]
    pub processor: f64,
}

/// `entremet cluster drain`.
#[derive(Args, Clone, Debug)]
pub struct DrainArgs {
    /// Which cluster
    #[command(flatten)]
    pub cluster: AtArgs,

    /// The master that is to have nothing any more: HOST:PORT, or the first digits of its name
    #[arg(value_name = "NODE")]
    pub node: String,

    /// Masters that get what it has [default: all others]
    #[arg(long, value_name = "NODE,NODE", value_delimiter = ',')]
    pub to: Vec<String>,

    /// Say what would be moved, and whether it may, and do nothing
    #[arg(long)]
    pub dry_run: bool,

    /// How both nodes may be held up
    #[command(flatten)]
    pub allow: AllowArgs,
}

/// `entremet cluster add`.
#[derive(Args, Clone, Debug)]
pub struct AddArgs {
    /// Which cluster
    #[command(flatten)]
    pub cluster: AtArgs,

    /// The node, HOST:PORT, as the other nodes reach it
    #[arg(value_name = "NODE")]
    pub node: String,

    /// Move to it what it should have, at once
    #[arg(long)]
    pub fill: bool,

    /// One key may hold both nodes up for so long; 50 MB are taken to need one second
    #[arg(long, value_name = "TIME", default_value = "20ms", requires = "fill")]
    pub allow_stall: Time,

    /// All keys may hold both nodes up for so much of the time while a move lasts, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = PART, value_parser = clap::value_parser!(u8).range(1..=100), requires = "fill")]
    pub allow_part: u8,
}

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

    /// The part of a processor that each engine may use, of every millisecond (takes root): so
    /// several nodes fit on few processors, and each has its own
    #[arg(long, value_name = "PART", default_value_t = 1.0, value_parser = part)]
    pub processor: f64,

    /// Where a tenant's partitions lie at first: a node for each of them, counted from 1. May be
    /// said again. Those of others lie where their names fall
    #[arg(long, value_name = "TENANT=NODE,NODE")]
    pub place: Vec<Place>,

    /// Run `entremet cluster control` as well, which decides so often
    #[arg(long, value_name = "EVERY", value_parser = long_enough)]
    pub control: Option<Time>,
}

/// A part of a processor.
fn part(text: &str) -> Result<f64, String> {
    let part = text.parse().ok();
    let part = part.filter(|part: &f64| (0.01..=1.0).contains(part));
    part.ok_or_else(|| "a part of a processor is a number from 0.01 to 1".into())
}

/// A time that is not too short to see anything in.
fn long_enough(text: &str) -> Result<Time, String> {
    let time: Time = text.parse()?;
    match time.duration() < Duration::from_secs(3) {
        true => Err("3s at least: fronts tell once a second".into()),
        false => Ok(time),
    }
}

/// Does what was asked.
///
/// # Errors
/// What kept it from that.
pub fn run(args: &ClusterArgs) -> Result<(), Failure> {
    match &args.command {
        ClusterCommand::Move(args) => moving::run(args),
        ClusterCommand::Control(args) => control::run(args),
        ClusterCommand::Drain(args) => drain::run(args),
        ClusterCommand::Add(args) => add::run(args),
        ClusterCommand::Status(args) => status::run(args),
        ClusterCommand::Check(args) => check::run(args),
        ClusterCommand::Dev(args) => dev::run(args),
    }
}
