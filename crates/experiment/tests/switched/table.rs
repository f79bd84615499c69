//! What stands in a mechanism's place, verdict by verdict.

/// The variant that has the mechanism, and the one that stands in its place.
pub type Stands = (&'static str, &'static str);

/// Verdicts of one experiment that one switch turns off.
pub struct Row {
    pub experiment: &'static str,
    pub targets: &'static [&'static str],
    /// Where; at the first of a verdict's points if nothing is said.
    pub point: Option<&'static str>,
    pub off: Stands,
    /// Laid over the scenario last: how long and how large the run is.
    pub over: &'static str,
    /// Whether the verdict must be met with the mechanism in the same run. Not so where it is a
    /// known miss, or where so short a run cannot show it.
    pub met: bool,
}

/// Experiments whose runs are simulated, or as exact.
pub const EXPERIMENTS: &[&str] = &[
    "pisces-drf-simulated",
    "pisces-dynamic-simulated",
    "pisces-fairness-simulated",
    "pisces-isolation-simulated",
    "pisces-plan",
    "pisces-scale-simulated",
    "pisces-weighted-simulated",
    "pisces-workloads-simulated",
    "rein-queues",
    "rein-sensitivity",
    "rein-sim",
    "rein-synthetic",
];

/// Verdicts without a row, and why. (experiment, target, why)
pub const EXEMPT: &[(&str, &str, &str)] = &[
    (
        "pisces-plan",
        "processor time to solve, s",
        "a cost: doing less of it takes less; real time besides",
    ),
    (
        "pisces-plan",
        "iterations until the least slack stands",
        "a cost: doing nothing takes none; what they achieve is judged by the slack that is left",
    ),
    (
        "pisces-drf-simulated",
        "even weights: the 1 kB kind's part of what it has alone (DRF: .788)",
        PREFERRED,
    ),
    (
        "pisces-drf-simulated",
        "10 B at weight 2: the 1 kB kind's part of what it has alone (DRF: .441)",
        PREFERRED,
    ),
    (
        "pisces-drf-simulated",
        "1 kB at weight 2: its part of what it has alone (DRF: .982)",
        PREFERRED,
    ),
    ("rein-queues", "levels over skip list, by threads", RACES),
    ("rein-queues", "levels over heap, by threads", RACES),
    ("rein-queues", "levels over arrival, by threads", RACES),
    (
        "rein-queues",
        "levels over Rein's shared levels, by threads",
        RACES,
    ),
];

const PREFERRED: &str =
    "first come, first served gives this kind more than its share; what it took is missing in the \
     verdict on the other kind, and beside a flood it is the one that loses";
const RACES: &str = "threads race in real time: no rate is exact";

const FAIRNESS: &str = "duration = \"5s\"\nwarm_up = \"8s\"";
const ISOLATION: &str = "duration = \"120s\"\nwarm_up = \"30s\"";
/// As many nodes as fit in a short run, with the demand of the point.
const EIGHT: &str = "duration = \"10s\"\nwarm_up = \"20s\"\ncluster = { nodes = 8 }\n\
    tenant = [{ name = \"once\", count = 4 }, { name = \"twice\", count = 4 }]";
const SCALE: &str = "duration = \"120s\"\nwarm_up = \"30s\"";
const WEIGHTED: &str = "duration = \"8s\"\nwarm_up = \"10s\"";
const WORKLOADS: &str = "duration = \"6s\"\nwarm_up = \"10s\"";
const DRF: &str = "duration = \"3s\"\nwarm_up = \"6s\"";
const DYNAMIC: &str = "cluster = { operation = \"400us\" }";
/// Nobody else has what the node had, and it does not come back.
const LOST: &str = "cluster = { operation = \"400us\", replicas = 1 }\n[[fault]]\nnode = 3\nat = \"20s\"\nlength = \"1h\"\ndead = true";
const SIM: &str = "seconds = 6\nnodes = 32";
/// Long enough that what piles up takes longer than late replies are waited for.
const OVERLOAD: &str = "seconds = 24\nnodes = 8";
const TESTBED: &str = "seconds = 8";
const SWEEP: &str = "nodes = 32";
const QUEUES: &str = "operations = 20000";

const fn row(
    experiment: &'static str,
    targets: &'static [&'static str],
    off: Stands,
    over: &'static str,
) -> Row {
    Row {
        experiment,
        targets,
        point: None,
        off,
        over,
        met: true,
    }
}

impl Row {
    const fn at(mut self, point: &'static str) -> Self {
        self.point = Some(point);
        self
    }

    const fn missed(mut self) -> Self {
        self.met = false;
        self
    }
}

#[rustfmt::skip]
pub const ROWS: &[Row] = &[
    row("pisces-fairness-simulated", &["all mechanisms: MMR"], ("all four", "none"), FAIRNESS),
    row("pisces-fairness-simulated", &["p95 of those that ask as before, against all alike"], ("all four", "none"), FAIRNESS),
    row("pisces-isolation-simulated", &["half at twice the demand: MMR", "excess demand is denied: MMR against no mechanism", "8 nodes: p95 of those that ask as before, against all alike"], ("all four", "none"), ISOLATION),
    row("pisces-isolation-simulated", &["20 nodes: p95 of those that ask as before, against all alike", "128 nodes: p95 of those that ask as before, against all alike", "1,000 nodes: p95 of those that ask as before, against all alike"], ("all four", "none"), EIGHT).missed(),
    row("pisces-scale-simulated", &["all mechanisms: MMR", "all mechanisms against fair queues alone: MMR"], ("all four", "fair queues"), SCALE).at("20 nodes"),
    row("pisces-weighted-simulated", &["weights 4:3:2:1: MMR of rate over weight"], ("all four", "none"), WEIGHTED).missed(),
    row("pisces-weighted-simulated", &["100:10:1, all tenants: MMR", "100:10:1, classes of weights: MMR of their means"], ("all four", "none"), WEIGHTED).missed(),
    row("pisces-workloads-simulated", &["1 KiB: MMR of bytes read, their dominant resource"], ("all four", "fair queues"), WORKLOADS).at("mixed, 1 KiB, sigma 0").missed(),
    row("pisces-workloads-simulated", &["1 KiB, one of ten writes: MMR of bytes written"], ("all four", "fair queues"), WORKLOADS).missed(),
    row("pisces-workloads-simulated", &["1 KiB, mixed: MMR of bytes written by those that write every second time", "1 KiB, mixed: MMR of bytes written by those that write one of ten"], ("all four", "fair queues"), WORKLOADS).at("mixed, 1 KiB, sigma 0.5").missed(),
    row("pisces-workloads-simulated", &["10 B: MMR of requests, their dominant resource"], ("all four", "fair queues"), WORKLOADS).at("mixed, 10 B, sigma 0").missed(),
    row("pisces-drf-simulated", &["even weights: the 10 B kind's part of what it has alone (DRF: .788)", "10 B at weight 2: its part of what it has alone (DRF: .881)", "1 kB at weight 2: the 10 B kind's part of what it has alone (DRF: .491)", "tenants of one kind are alike: MMR of the 10 B tenants", "tenants of one kind are alike: MMR of the 1 kB tenants"], ("all four", "none"), DRF),
    row("pisces-drf-simulated", &["a flood of small ones: the 1 kB kind's part of what it has alone (DRF: .788)"], ("all four", "none"), DRF),
    row("pisces-dynamic-simulated", &["all at full load: least MMR of all 5 s windows, once settled", "all at full load: seconds until every 5 s window has an MMR of .97", "last burst: least MMR of bursty and constant tenants in 5 s windows", "popularity moves: least MMR of all 5 s windows", "popularity moves: seconds until every 5 s window has an MMR of .97", "a tenant joins: seconds until every 5 s window has an MMR of .97", "a tenant leaves: seconds until every 5 s window has an MMR of .97", "a node is lost: seconds until every 5 s window has an MMR of .97", "a node comes back: seconds until every 5 s window has an MMR of .97"], ("all four", "fair queues"), DYNAMIC).missed(),
    row("pisces-dynamic-simulated", &["a node is lost: no request fails"], ("all four", "fair queues"), LOST).missed(),
    row("pisces-plan", &["nine tenths promised of what is used most: highest use of any resource of any node"], ("ours", "greedy"), ""),
    row("pisces-plan", &["least slack below the best that any exchange could leave"], ("ours", "no exchange"), ""),
    row("rein-queues", &["inversions: part of what levels take while something faster waits, less Rein's shared levels', by threads"], ("levels", "lanes"), QUEUES).at("1"),
    row("rein-sensitivity", &["p50: tuned over the best of the sweep", "p95: tuned over the best of the sweep", "p99: tuned over the best of the sweep", "p50 after a step in load: tuned over the best of the sweep", "p95 after a step in load: tuned over the best of the sweep", "p99 after a step in load: tuned over the best of the sweep", "p50 after a step in sizes: tuned over the best of the sweep", "p95 after a step in sizes: tuned over the best of the sweep", "p99 after a step in sizes: tuned over the best of the sweep"], ("tuned", "K = 1"), SWEEP).missed(),
    row("rein-sensitivity", &["p95: tuned over K = 4 as published"], ("tuned", "K = 1"), SWEEP),
    row("rein-sim", &["p50: arrival order over ours", "p95: arrival order over ours", "p99: arrival order over ours"], ("entremet", "baseline"), SIM).at("1 at a time"),
    row("rein-sim", &["p50: ours over the oracle of the paper, which takes replicas in turn", "p95: ours over the oracle of the paper, which takes replicas in turn", "p99: ours over the oracle of the paper, which takes replicas in turn"], ("entremet", "baseline"), SIM).at("1 at a time").missed(),
    row("rein-sim", &["p50: ours over the best of all oracles", "p95: ours over the best of all oracles", "p99: ours over the best of all oracles"], ("entremet", "baseline"), SIM).at("1 at a time").missed(),
    row("rein-sim", &["those put off: p99.9 of arrival order over ours"], ("entremet", "rein"), SIM).at("1 at a time"),
    row("rein-sim", &["mean: arrival order over ours"], ("entremet", "duplication"), SIM).at("1 at a time"),
    row("rein-sim", &["ours: requests without an answer"], ("entremet", "duplication"), OVERLOAD).at("1 at a time"),
    row("rein-synthetic", &["p50, constant 50, uniform: arrival order over ours, all eight at a time", "p50, constant 50, Zipf: arrival order over ours, all eight at a time", "mean: arrival order over ours, all eight at a time"], ("entremet-8", "duplication"), TESTBED).missed(),
    row("rein-synthetic", &["p95, constant 50, uniform: arrival order over ours, all eight at a time", "p99, constant 50, uniform: arrival order over ours, all eight at a time", "p95, constant 50, Zipf: arrival order over ours, all eight at a time", "p99, constant 50, Zipf: arrival order over ours, all eight at a time", "p50, log-normal, uniform: arrival order over ours, all eight at a time", "p95, log-normal, uniform: arrival order over ours, all eight at a time", "p99, log-normal, uniform: arrival order over ours, all eight at a time", "p50, log-normal, Zipf: arrival order over ours, all eight at a time", "p95, log-normal, Zipf: arrival order over ours, all eight at a time", "p99, log-normal, Zipf: arrival order over ours, all eight at a time"], ("entremet-8", "baseline"), TESTBED).missed(),
    row("rein-synthetic", &["p99.9: arrival order over ours, all eight at a time"], ("entremet-8", "duplication"), TESTBED).at("log-normal, uniform").missed(),
    row("rein-synthetic", &["entremet-8: requests without an answer"], ("entremet-8", "duplication"), OVERLOAD).at("log-normal, uniform"),
    row("rein-synthetic", &["p50, constant 50, uniform: arrival order over ours, all four at a time", "p50, constant 50, Zipf: arrival order over ours, all four at a time", "mean: arrival order over ours, all four at a time"], ("entremet", "duplication"), TESTBED).missed(),
    row("rein-synthetic", &["p95, constant 50, uniform: arrival order over ours, all four at a time", "p99, constant 50, uniform: arrival order over ours, all four at a time", "p95, constant 50, Zipf: arrival order over ours, all four at a time", "p99, constant 50, Zipf: arrival order over ours, all four at a time", "p50, log-normal, uniform: arrival order over ours, all four at a time", "p95, log-normal, uniform: arrival order over ours, all four at a time", "p99, log-normal, uniform: arrival order over ours, all four at a time", "p50, log-normal, Zipf: arrival order over ours, all four at a time", "p95, log-normal, Zipf: arrival order over ours, all four at a time", "p99, log-normal, Zipf: arrival order over ours, all four at a time"], ("entremet", "baseline-4"), TESTBED).missed(),
    row("rein-synthetic", &["p99.9: arrival order over ours, all four at a time"], ("entremet", "duplication"), TESTBED).at("log-normal, uniform").missed(),
    row("rein-synthetic", &["entremet: requests without an answer"], ("entremet", "duplication"), OVERLOAD).at("log-normal, uniform"),
];
