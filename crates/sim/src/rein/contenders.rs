//! What is compared.

use crate::spec::{AheadKnown, CostKnown, Redundancy, Selection, Spec};
use policy::multiget::{Levels, Order, Rates, Strategy, Tuner};
use policy::replica::Rule;

/// One way to serve multigets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contender {
    /// Arrival order, replicas in turn.
    Baseline,
    /// The baseline with every operation sent to two replicas.
    Duplication,
    /// The baseline with a second operation after the 90th percentile.
    Speculation,
    /// Arrival order, replicas ranked by C3.
    C3,
    /// Slack-driven, in exact order.
    SlackDriven,
    /// Shortest bottleneck first, in exact order.
    ShortestBottleneck,
    /// As published: algorithm 1 with K = 4, R = 3 and linear rates.
    Rein,
    /// Algorithm 1 over levels that tuned themselves.
    ReinTuned,
    /// The paper's yardstick (5.3): exact order by when the bottleneck will be done, from true
    /// costs and everything that is queued or on its way and will go before; replicas in turn.
    /// Without slack: Rein's ratio, from the truth and in exact order, makes its 99th percentile
    /// 1.9 times as long, and slack that is added changes none by more than 3 % (32 servers, one at
    /// a time, SoundCloud's sizes; `tests/rein.rs`).
    Oracle,
    /// A stronger yardstick: also the replica with the least work, known without delay.
    OracleReplicas,
    /// Ours: order of arrival, stretched by the bottleneck's expected cost where sizes vary, the
    /// largest 1 % put off; the replica that is expected to be done first; probes for large
    /// requests; no more permits than processors.
    Ours,
    /// Ours with as many permits as the others: what order and choice do without that.
    OursAsMany,
}

impl Contender {
    /// All of them, in the order of tables.
    pub const ALL: [Contender; 12] = [
        Contender::Baseline,
        Contender::Duplication,
        Contender::Speculation,
        Contender::C3,
        Contender::SlackDriven,
        Contender::ShortestBottleneck,
        Contender::Rein,
        Contender::ReinTuned,
        Contender::Oracle,
        Contender::OracleReplicas,
        Contender::Ours,
        Contender::OursAsMany,
    ];

    /// Its name in tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Contender::Baseline => "baseline",
            Contender::Duplication => "duplication",
            Contender::Speculation => "speculation-p90",
            Contender::C3 => "c3",
            Contender::SlackDriven => "rein-sds",
            Contender::ShortestBottleneck => "rein-sbf",
            Contender::Rein => "rein",
            Contender::ReinTuned => "rein-tuned",
            Contender::Oracle => "oracle",
            Contender::OracleReplicas => "oracle-replicas",
            Contender::Ours => "entremet",
            Contender::OursAsMany => "entremet-as-many",
        }
    }

    /// The baseline's spec, changed to this.
    #[must_use]
    pub fn apply(self, baseline: &Spec) -> Spec {
        let mut spec = baseline.clone();
        let scheduler = &mut spec.scheduler;
        match self {
            Contender::Baseline => {}
            Contender::Duplication => spec.routing.redundancy = Redundancy::Duplicate,
            Contender::Speculation => {
                spec.routing.redundancy = Redundancy::Speculative { quantile: 0.9 };
            }
            Contender::C3 => {
                let senders = spec.cluster.routers;
                spec.routing.selection = Selection::Rule(Rule::C3 { senders });
            }
            Contender::SlackDriven => {
                scheduler.strategy = Strategy::SlackDriven;
                scheduler.order = Order::Exact;
            }
            Contender::ShortestBottleneck => {
                scheduler.strategy = Strategy::ShortestBottleneck;
                scheduler.order = Order::Exact;
            }
            Contender::Rein => levels(&mut spec, 4, 3.0, Rates::Linear),
            Contender::ReinTuned => {
                levels(&mut spec, 4, 3.0, Rates::Linear);
                if let Some(tuned) = seen(&spec, CostKnown::Operations).choose(0.75) {
                    spec.scheduler.levels = tuned.levels;
                }
            }
            Contender::Oracle => clairvoyant(&mut spec),
            Contender::OracleReplicas => {
                clairvoyant(&mut spec);
                spec.routing.selection = Selection::Oracle;
            }
            Contender::Ours => {
                ours(&mut spec);
                // More than its processors would only make a server's operations slow one another
                // down.
                spec.cluster.permits = spec.cluster.parallel();
            }
            Contender::OursAsMany => ours(&mut spec),
        }
        spec
    }
}

/// Rein over levels.
pub fn levels(spec: &mut Spec, count: usize, range: f64, rates: Rates) {
    spec.scheduler.strategy = Strategy::Rein;
    spec.scheduler.order = Order::Levels;
    spec.scheduler.levels = Levels::exponential(count, range, 1, rates);
}

/// Costs in nanoseconds; levels that count by them, for what is told of queues.
fn by_cost(spec: &mut Spec) {
    let service = &spec.cluster.service;
    let scheduler = &mut spec.scheduler;
    scheduler.order = Order::Exact;
    scheduler.strategy = Strategy::ShortestBottleneck;
    scheduler.cost = CostKnown::Expected;
    let first = service.operation_ns.max(1.0) as u64;
    scheduler.levels = Levels::exponential(16, 1.5, first, Rates::Linear);
}

fn clairvoyant(spec: &mut Spec) {
    by_cost(spec);
    spec.scheduler.ahead = AheadKnown::All;
}

fn ours(spec: &mut Spec) {
    by_cost(spec);
    spec.scheduler.strategy = seen(spec, CostKnown::Expected).deadline();
    spec.routing.selection = Selection::Rule(Rule::LeastFinish);
    spec.routing.probe_from = Some(spec.cluster.worth_probing_ns());
}

/// A tuner that has seen ten thousand requests of the spec's, in operations or nanoseconds.
fn seen(spec: &Spec, known: CostKnown) -> Tuner {
    let mut tuner = Tuner::default();
    let mut requests = spec.tenants[0].streams[0].requests.clone();
    let mut rng = workload::rng::Rng::new(spec.seed, 1 << 42);
    let partitions = u64::from(spec.tenants[0].partitions);
    let (mut opsets, mut keys) = (Vec::new(), Vec::new());
    for _ in 0..10_000 {
        keys.clear();
        for _ in 0..requests.keys.pick(rng.bits()) {
            let key = requests.popularity.pick(&mut rng, 0);
            let cost = match known {
                CostKnown::Operations => 1,
                CostKnown::Expected => {
                    let bytes = requests.values.of(key, 0);
                    spec.cluster.service.expected_ns(bytes) as u64
                }
            };
            keys.push(((policy::generator::mix64(key) % partitions) as u32, cost));
        }
        policy::multiget::split(keys.iter().copied(), &mut opsets);
        if let Some(place) = policy::multiget::bottleneck(&opsets) {
            tuner.observe(opsets[place].cost, keys.iter().map(|(_, cost)| cost).sum());
        }
    }
    tuner
}
