//! What is compared.

use crate::spec::{AheadKnown, CostKnown, Redundancy, Selection, Spec, Tuning};
use policy::multiget::{Levels, Order, Rates, Strategy, Tuner};
use policy::replica::Rule;
use policy::Nanos;

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
    /// costs and everything that is queued or on its way and will go before, looked at until it
    /// stands; of each operation the replica where the least goes before it. The slack is left out:
    /// Rein's ratio, from the truth and in exact order, puts an opset off by more than its slack
    /// (`tests/rein.rs`).
    Oracle,
    /// The same with the slack added, which puts an opset off by what it can wait.
    OracleSlack,
    /// Our own order from everything that [`Contender::Oracle`] knows.
    OracleStretched,
    /// [`Contender::Oracle`] with replicas in turn, as its rivals in 5.3 have them.
    OracleInTurn,
    /// Ours: order of arrival, stretched by the bottleneck's expected cost where sizes vary, the
    /// largest 1 % put off, as each sender's own requests have it; the replica that is expected to
    /// be done first; probes for large requests; no more permits than processors. What senders know
    /// of costs.
    Ours(CostKnown),
    /// Ours with as many permits as the others: what order and choice do without that.
    OursAsMany,
}

impl Contender {
    /// All of them, in the order of tables.
    pub const ALL: [Contender; 16] = [
        Contender::Baseline,
        Contender::Duplication,
        Contender::Speculation,
        Contender::C3,
        Contender::SlackDriven,
        Contender::ShortestBottleneck,
        Contender::Rein,
        Contender::ReinTuned,
        Contender::Oracle,
        Contender::OracleSlack,
        Contender::OracleStretched,
        Contender::OracleInTurn,
        Contender::Ours(CostKnown::Mean),
        Contender::Ours(CostKnown::Learnt),
        Contender::Ours(CostKnown::Expected),
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
            Contender::OracleSlack => "oracle-slack",
            Contender::OracleStretched => "oracle-stretched",
            Contender::OracleInTurn => "oracle-in-turn",
            Contender::Ours(CostKnown::Operations | CostKnown::Mean) => "entremet-counts",
            Contender::Ours(CostKnown::Learnt) => "entremet",
            Contender::Ours(CostKnown::Expected) => "entremet-true-sizes",
            Contender::OursAsMany => "entremet-as-many",
        }
    }

    /// The baseline's spec, changed to this.
    #[must_use]
    pub fn apply(self, baseline: &Spec) -> Spec {
        let mut spec = baseline.clone();
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
            Contender::SlackDriven => exact(&mut spec, Strategy::SlackDriven),
            Contender::ShortestBottleneck => exact(&mut spec, Strategy::ShortestBottleneck),
            Contender::Rein => levels(&mut spec, 4, 3.0, Rates::Linear),
            Contender::ReinTuned => {
                levels(&mut spec, 4, 3.0, Rates::Linear);
                spec.scheduler.tuning = Tuning::Levels;
            }
            Contender::Oracle => clairvoyant(&mut spec, Strategy::ShortestBottleneck),
            Contender::OracleSlack => clairvoyant(&mut spec, Strategy::BottleneckAndSlack),
            Contender::OracleStretched => {
                let stretched = of_all(&spec).deadline();
                clairvoyant(&mut spec, stretched);
            }
            Contender::OracleInTurn => {
                clairvoyant(&mut spec, Strategy::ShortestBottleneck);
                spec.routing.selection = baseline.routing.selection;
            }
            Contender::Ours(known) => {
                ours(&mut spec, known);
                // More than its processors would only make a server's operations slow one another
                // down.
                spec.cluster.permits = spec.cluster.parallel();
            }
            Contender::OursAsMany => ours(&mut spec, CostKnown::Learnt),
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

/// An operation that has waited so long is boosted (Rein 3.2.1 says neither when nor how).
/// Everybody whose order could starve one has the same guard.
const GUARD_NS: Nanos = 500_000_000;

fn exact(spec: &mut Spec, strategy: Strategy) {
    spec.scheduler.order = Order::Exact;
    spec.scheduler.strategy = strategy;
    spec.scheduler.guard_ns = Some(GUARD_NS);
}

fn clairvoyant(spec: &mut Spec, strategy: Strategy) {
    exact(spec, strategy);
    spec.scheduler.cost = CostKnown::Expected;
    spec.scheduler.ahead = AheadKnown::All;
    spec.routing.selection = Selection::Oracle;
}

fn ours(spec: &mut Spec, known: CostKnown) {
    exact(spec, UNTUNED);
    spec.scheduler.cost = known;
    spec.scheduler.tuning = Tuning::Stretch;
    spec.routing.selection = Selection::Rule(Rule::LeastFinish);
    spec.routing.probe_from = Some(spec.cluster.worth_probing_ns());
}

/// What a sender does that has not seen enough.
const UNTUNED: Strategy = Strategy::Deadline {
    stretch_quarters: 0,
    slack_quarters: 2,
    tail: u64::MAX,
};

/// A tuner that knows the distribution of the requests and what each costs: who knows everything.
fn of_all(spec: &Spec) -> Tuner {
    const REQUESTS: usize = 10_000;
    let mut tuner = Tuner::default();
    let Some(stream) = spec.tenants[0].streams.last() else {
        return tuner;
    };
    let mut requests = stream.requests.clone();
    let mut rng = workload::rng::Rng::new(spec.seed, 1 << 42);
    let partitions = u64::from(spec.tenants[0].partitions);
    let (mut opsets, mut keys, mut costs) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..REQUESTS {
        keys.clear();
        let count = requests.keys.pick(rng.bits());
        requests
            .popularity
            .pick_distinct(&mut rng, 0, count, &mut keys);
        costs.clear();
        costs.extend(keys.iter().map(|key| {
            let cost = spec
                .cluster
                .service
                .expected_ns(requests.values.of(*key, 0));
            let group = policy::generator::mix64(*key) % partitions;
            (group as u32, cost as u64)
        }));
        policy::multiget::split(costs.iter().copied(), &mut opsets);
        if let Some(place) = policy::multiget::bottleneck(&opsets) {
            tuner.observe(opsets[place].cost, costs.iter().map(|(_, cost)| cost).sum());
        }
    }
    tuner
}
