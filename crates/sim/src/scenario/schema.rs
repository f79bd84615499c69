//! The keys that a scenario has for the simulator alone, declared once.

use policy::dispatch::Discipline;
use policy::slo::control::Policy;
use settings::schema::{choices, key as declared, Key};
use settings::Otherwise::{self, Required, Unset, Value};
use settings::Takes::{
    self, ByteRate, Bytes, Flag, Integer, Number, Rate, Table, Tables, Time, Word,
};
use settings::{Language, Takeover};

/// What stands beside the language of `workload::scenario`.
pub static LANGUAGE: Language = Language {
    parts: &[CLUSTER, FAULT, PAUSE],
    alike: &[],
};

const fn key(path: &'static str, takes: Takes, otherwise: Otherwise, effect: &'static str) -> Key {
    declared(path, takes, otherwise, Takeover::Start, effect)
}

/// Nodes, senders and what joins them.
#[rustfmt::skip]
const CLUSTER: &[Key] = &[
    key("cluster", Table, Unset("one node"), "The cluster that is simulated."),
    key("cluster.nodes", Integer(1, 10_000), Value("1"), "How many nodes."),
    key("cluster.replicas", Integer(1, 100), Value("1"), "Replicas of each partition; at most `nodes`."),
    key("cluster.partitions", Integer(1, 100_000), Unset("`nodes`"), "Partitions of each tenant's keyspace."),
    key("cluster.permits", Integer(1, 1_024), Value("1"), "Operations that a node serves at a time."),
    key("cluster.processors", Integer(1, 1_024), Unset("`permits`"), "Processors of a node: operations beyond that many share them alike."),
    key("cluster.senders", Integer(1, 10_000), Unset("`nodes`"), "Who splits, tags and sends requests; each knows only what it has seen."),
    key("cluster.one_way", Time("0s", "1s"), Value("\"50us\""), "From a sender to a node, or back."),
    key("cluster.reply", Time("0s", "1s"), Value("\"0s\""), "What a sender's one processor takes for a reply, sending what follows included; replies wait for each other there. What open loops send goes out when it is due."),
    key("cluster.look", Time("0s", "1s"), Value("\"0s\""), "A busy node takes in what has come so long after the last time, or when it has nothing else left; an idle one at once."),
    key("cluster.jitter", Time("0s", "1s"), Value("\"0s\""), "Mean of what a message takes beyond `one_way`: exponential, so that messages overtake one another."),
    key("cluster.operation", Time("1ns", "10s"), Value("\"100us\""), "Mean time that an operation takes, whatever its size."),
    key("cluster.kib", Time("0s", "10s"), Value("\"0s\""), "Mean time on top for each KiB of the value."),
    key("cluster.noise", Word(&["none", "exponential", "log-normal"]), Value("\"exponential\""), "How the time of an operation varies around its mean."),
    key("cluster.sigma", Number(0.0, 5.0), Value("0.5"), "`log-normal`: standard deviation of the logarithm."),
    key("cluster.scheduler", choices::<Discipline>(), Value("\"fair\""), "Between tenants, at each node."),
    key("cluster.order", Word(&["stretched", "rein", "rein-sbf", "rein-sds", "arrival"]), Value("\"stretched\""), "Inside a tenant: arrival stretched by the bottleneck, Rein's levels, one of its two rules in exact order, or arrival."),
    key("cluster.guard", Time("1us", "1h"), Unset("none"), "An operation that has waited longer is boosted."),
    key("cluster.replica", Word(&["least-finish", "least-outstanding", "hot-cold", "c3", "in-turn", "random", "windows"]), Value("\"least-finish\""), "Which replica is asked. `windows`: the one with the emptiest window for this tenant (Pisces RS); what finds none open waits with its sender."),
    key("cluster.placement", Word(&["ring", "demand"]), Value("\"ring\""), "Where partitions are: in order around a ring of nodes, each tenant's turned by its number, or moved to where shares fit the demand measured (Pisces PP)."),
    key("cluster.weights", Word(&["fixed", "exchange", "served"]), Value("\"fixed\""), "Tenants' weights at each node: their own everywhere; exchanged to where each wants its share (Pisces WA); or divided by where they are served, as fronts before a cluster do."),
    key("cluster.interval", Time("1ms", "1h"), Value("\"1s\""), "From one step of `placement` and `weights` to the next."),
    key("cluster.late", Time("0s", "1h"), Value("\"0s\""), "The controller decides so long after a step began, from reports that nodes have sent meanwhile, each at its own moment; and its decision reaches them so much later again. At most half of `interval`."),
    key("cluster.copy", ByteRate("1kB/s", "1TB/s"), Unset("moves take no time"), "A replica that moves is copied at this rate, and serves when it is there; until then the old ones do. A node takes part in one copy at a time."),
    key("cluster.copy_load", Number(0.0, 0.99), Unset("0"), "The part of its speed that a copy takes of either node."),
    key("cluster.horizon", Time("1s", "7d"), Unset("partitions move whenever it helps"), "What a move of a partition gains counts for so long against what its copy takes, and it stays for so long then; what is uneven must add up to 3 node seconds, and nodes are at one move at a time. What `entremet cluster control` does. Needs `copy`."),
    key("cluster.notice", Time("0s", "1h"), Value("\"0s\""), "How long until a sender gives up an operation, and until all know that a node is dead; with 0s connections break at once."),
    key("cluster.skew", Time("0s", "1s"), Value("\"0s\""), "Standard deviation of senders' clocks, which the order inside a tenant compares."),
    key("cluster.bandwidth_in", ByteRate("1kB/s", "1TB/s"), Unset("any"), "Bytes of values that a node can be sent; on top of `operation`."),
    key("cluster.requests", Rate("1/s", "100M/s"), Unset("any"), "Requests that a node can take; on top of `operation`."),
    key("cluster.bandwidth_out", ByteRate("1kB/s", "1TB/s"), Unset("any"), "Bytes of values that a node can reply with; on top of `operation`."),
    key("cluster.device", Word(&["none", "ssd", "hdd"]), Value("\"none\""), "The disk under each node, a model of one: an SSD near the Intel 320 or a hard disk of 7,200 turns. Before it stands a stage that shares it by weight, at prices found by calibrating the model."),
    key("cluster.cached", Number(0.0, 1.0), Unset("0"), "Share of the gets whose value is in memory. The others read it from the device; a put appends to a log there."),
    key("cluster.cached_up_to", Bytes("1B", "1TiB"), Unset("any size"), "Larger values are never in memory, as in a cache that scans do not fill."),
    key("cluster.depth", Integer(1, 1_024), Unset("32"), "I/Os outstanding at a device."),
    key("cluster.follow_depth", Flag, Value("false"), "The I/Os outstanding at a device follow what it does, as a server's do. `depth` is then the number at the start, and the least."),
    key("cluster.device_scheduler", choices::<Discipline>(), Value("\"fair\""), "Between tenants, before each disk."),
    key("cluster.disks", Integer(1, 64), Unset("1"), "Disks under a node. An operation lies on one of them, and each has a stage of its own."),
    key("cluster.span", Bytes("64MiB", "64TiB"), Unset("64GiB"), "Data lies within so many bytes of each disk, from its outer edge on."),
    key("cluster.chunk", Bytes("4KiB", "1GiB"), Unset("what calibrating the model finds"), "Larger operations are read and written in pieces of so many bytes. A controller may choose others."),
    key("cluster.file", Bytes("1MiB", "1TiB"), Unset("values are anywhere"), "A tenant's values lie in the order of their keys in files of so many bytes, each whole on one disk, where a server over emulated disks has its files."),
    key("cluster.other_files", Integer(0, 1_000), Value("0"), "Files anywhere that hold little or nothing of a range, as those that a database has not merged yet: it reads twice in each of them first, an index and a block."),
    key("cluster.range_reads", Integer(0, 1_000), Value("0"), "Small reads near its values that a range then does, of indexes that are not in memory."),
    key("cluster.wake", Time("0s", "100ms"), Value("\"0s\""), "From the end of an I/O until its handler runs again; until then its turn at the disk is not over."),
    key("cluster.piece", Time("0s", "100ms"), Value("\"0s\""), "What a handler then takes for what it has read, before it asks for the next piece or is done."),
    key("cluster.control", choices::<Policy>(), Unset("nobody, and promises are not judged"), "Who keeps the promises of `tenant.slo`, asked every second: one node, one promise a tenant, for all of its requests."),
    key("cluster.cake_permits", Integer(1, 1_024), Unset("as a server has it"), "`control = \"cake\"`: I/Os outstanding at each disk. A server has one where an arm moves. Published: a pool of 6 for four disks."),
    key("cluster.cake_handled", Time("1ms", "10s"), Unset("12ms, as a server has it"), "`control = \"cake\"`: there are more handlers as long as requests have one for less than this in the mean, and fewer if for more than a third longer. Published: 6ms."),
    key("cluster.handlers", Integer(1, 1_024), Unset("any number"), "Operations that may wait for a device at a time, as a server's `engine.handlers`: tenants that have had less than their share may have as many again, and `reserved_permits` are taken from these."),
    key("cluster.probe", Flag, Value("false"), "Large multigets ask how the servers stand before they are sent."),
    key("cluster.probe_work", Time("0s", "1s"), Value("\"0s\""), "What being asked takes of a node's processors."),
    key("cluster.again", Word(&["never", "at-once", "late"]), Value("\"never\""), "Operations are sent to a second replica: all of them at once, or those without a reply after the 90th percentile."),
];

/// What goes wrong.
#[rustfmt::skip]
const FAULT: &[Key] = &[
    key("fault", Tables, Unset("none"), "Something that goes wrong at a node for a while."),
    key("fault.node", Integer(0, 9_999), Required, "Which node, from 0."),
    key("fault.at", Time("0s", "7d"), Required, "When it begins, from the end of the warm-up on."),
    key("fault.in_warm_up", Flag, Value("false"), "`at` is counted from the begin of the run instead: what is measured begins in the middle of it, or after it."),
    key("fault.length", Time("1us", "7d"), Required, "How long it lasts."),
    key("fault.dead", Flag, Value("false"), "The node is lost with all that waits there; senders that notice ask other replicas, and `placement` makes new ones. It comes back with its partitions."),
    key("fault.slow", Number(0.01, 1e6), Unset("the node does nothing at all"), "Operations, and what they need of `bandwidth_in`, `requests` and `bandwidth_out`, take so many times as long."),
    key("fault.disks", Flag, Value("false"), "With `slow`: not the node is slow, but its disks (`cluster.device`), also with what they have begun."),
];

/// What machines do besides.
#[rustfmt::skip]
const PAUSE: &[Key] = &[
    key("pause", Tables, Unset("none"), "Machines stand still again and again, each at times of its own: their hosts, kernels and other programs take the processor. What is begun is ended before."),
    key("pause.of", Word(&["nodes", "senders"]), Required, "Whose machines. Senders read no replies meanwhile, and must have `cluster.reply`."),
    key("pause.every", Time("1us", "7d"), Required, "Mean time from one to the next at each machine; any moment is as likely."),
    key("pause.length", Time("1us", "1h"), Required, "How long one lasts."),
];
