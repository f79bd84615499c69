//! The workloads and the cluster of Rein's evaluation.

use crate::friction::Friction;
use crate::keys::KeyCount;
use crate::spec::{
    AheadKnown, Arrivals, Cluster, Control, CostKnown, Fault, FaultKind, Machines, Noise, Pause,
    Redundancy, Requests, Resources, Routing, Scheduler, Selection, Service, Spec, Stream, Tenant,
    Tuning,
};
use policy::dispatch::Discipline;
use policy::generator::mix64;
use policy::multiget::{Levels, Order, Rates, Strategy};
use policy::replica::Rule;
use policy::Nanos;
use policy::Promise;
use workload::draw::{Popularity, Sizes};
use workload::rng::Rng;
use workload::trace::multiget::Lists;

/// Operations a second that a server serves (Rein 5.3).
const SERVER_PER_S: f64 = 3_750.0;
/// Keys, as in the testbed's data set (5.1).
pub(super) const KEYS: u64 = 100_000;
/// How long replies are waited for after the end.
const DRAIN_NS: Nanos = 5_000_000_000;
/// One of this many rough machines is slower than the others.
const UNEVEN: u32 = 16;
/// Mean of [`facebook_values`], bytes.
const VALUE_BYTES: f64 = 329.0;

/// Sizes like SoundCloud's as far as they are published (2.2): 40 % of the requests have more than
/// one key, the mean is 8.6, the largest about 2,000, the tail heavy. Those four facts fix a power
/// law between 2 and 2,000: its exponent is found by bisection.
#[must_use]
pub fn soundcloud() -> Vec<(u32, f64)> {
    let mean_above_one = (8.6 - 0.6) / 0.4;
    let (mut low, mut high) = (0.1, 3.0);
    for _ in 0..60 {
        let alpha = (low + high) / 2.0;
        if mean(&power_law(alpha)) > mean_above_one {
            low = alpha;
        } else {
            high = alpha;
        }
    }
    let above = power_law(low).into_iter().map(|(n, w)| (n, 0.4 * w));
    std::iter::once((1, 0.6)).chain(above).collect()
}

fn power_law(alpha: f64) -> Vec<(u32, f64)> {
    let tail = |n: u32| f64::from(n).powf(-alpha);
    let all = tail(2) - tail(2_001);
    (2..=2_000)
        .map(|n| (n, (tail(n) - tail(n + 1)) / all))
        .collect()
}

fn mean(pairs: &[(u32, f64)]) -> f64 {
    let total: f64 = pairs.iter().map(|(_, w)| w).sum();
    pairs.iter().map(|(n, w)| f64::from(*n) * w).sum::<f64>() / total
}

/// Exponent of the popularity of keys that fits what is published of SoundCloud's: of 100,000 keys
/// (5.1) "most are accessed just once", "a few up to 1000 times" (2.2): 1000 r^-a is 1.5 at r =
/// 50,000.
pub const SOUNDCLOUD_ZIPF: f64 = 0.6;

/// Sizes of real sessions, with single gets mixed in until 40 % of the requests have more than one
/// key.
#[must_use]
pub fn sessions(lists: &Lists) -> Vec<(u32, f64)> {
    let above: Vec<_> = (0..lists.len())
        .map(|list| lists.get(list).len() as u32)
        .filter(|size| *size > 1)
        .collect();
    let weight = 0.4 / above.len().max(1) as f64;
    std::iter::once((1, 0.6))
        .chain(above.into_iter().map(|size| (size, weight)))
        .collect()
}

/// Log-normal sizes with these parameters of the logarithm, at least 1 and at most 10,000.
#[must_use]
pub fn log_normal(mu: f64, sigma: f64) -> Vec<(u32, f64)> {
    let mut rng = Rng::new(0, 0);
    // A hundred thousand draws of a fixed seed stand for the distribution.
    let draw = |_| {
        (mu + sigma * rng.normal())
            .exp()
            .round()
            .clamp(1.0, 10_000.0) as u32
    };
    (0..100_000).map(draw).map(|size| (size, 1.0)).collect()
}

/// Value sizes of Facebook's ETC pool: a generalised Pareto distribution (Atikoglu et al.,
/// SIGMETRICS 2012, table 5), as 20,000 equally likely sizes.
#[must_use]
pub fn facebook_values() -> Option<Sizes> {
    const COUNT: u32 = 20_000;
    let (scale, shape) = (214.476, 0.348_238f64);
    let size = |n: u32| {
        let above = 1.0 - (f64::from(n) + 0.5) / f64::from(COUNT);
        (scale / shape * (above.powf(-shape) - 1.0)).max(1.0) as u32
    };
    Sizes::histogram(&(0..COUNT).map(|n| (size(n), 1.0)).collect::<Vec<_>>())
}

/// A load that ends when measuring begins.
#[derive(Clone, Debug)]
pub struct Before {
    /// As of [`Setting`].
    pub load: f64,
    /// As of [`Setting`].
    pub sizes: Vec<(u32, f64)>,
}

/// A cluster and its load.
#[derive(Clone, Debug)]
pub struct Setting {
    /// Servers; as many partitions.
    pub nodes: u32,
    /// Operations that a server serves at a time.
    pub permits: u32,
    /// Processors that they share; its rate is the same whatever their number.
    pub processors: u32,
    /// Share of the highest rate that can be served.
    pub load: f64,
    /// (keys, weight) of requests.
    pub sizes: Vec<(u32, f64)>,
    /// Exponent of the keys' popularity; `None`: uniform.
    pub zipf: Option<f64>,
    /// Whether `load` is the busiest server's, where keys are not asked alike: 5.1 measures the
    /// most that its cluster can do, 5.3 speaks of the system's capacity, which is all servers'
    /// together.
    pub by_busiest: bool,
    /// Share of the mean service time that depends on the size of the value. In memory, Rein found
    /// only a "weak correlation" (3.2.1).
    pub size_share: f64,
    /// What of the service time nobody knows.
    pub noise: Noise,
    /// Machines are as real ones are: see [`Setting::spec`].
    pub rough: bool,
    /// Until measuring begins the load is another one.
    pub before: Option<Before>,
    /// Length measured.
    pub duration_ns: Nanos,
}

impl Setting {
    /// Rein 5.3: 128 clients, 128 servers with eight at a time and 3,750 operations a second, three
    /// replicas, 50 µs each way, 75 %.
    #[must_use]
    pub fn published(sizes: Vec<(u32, f64)>, duration_ns: Nanos) -> Self {
        Setting {
            nodes: 128,
            permits: 8,
            processors: 8,
            load: 0.75,
            sizes,
            zipf: None,
            by_busiest: false,
            size_share: 0.2,
            noise: Noise::LogNormal(0.25),
            rough: false,
            before: None,
            duration_ns,
        }
    }

    /// Rein 5.1: 16 servers of four processors, eight operations at a time; its 900 requests of 50
    /// keys a second at 75 % are 3,750 operations a second of each server again.
    #[must_use]
    pub fn testbed(sizes: Vec<(u32, f64)>, duration_ns: Nanos) -> Self {
        Setting {
            nodes: 16,
            processors: 4,
            by_busiest: true,
            ..Self::published(sizes, duration_ns)
        }
    }

    /// The spec with the baseline: arrival order, replicas in turn. `None` if the sizes are no
    /// distribution.
    ///
    /// Rough machines pause for 5 ms once a second (a collector of garbage, a host that has other
    /// guests); every sixteenth takes a fifth longer for everything; messages take 25 µs more on
    /// average; clocks differ by half a millisecond; what comes is looked at every 50 µs, and a
    /// probe takes 20 µs.
    #[must_use]
    pub fn spec(&self, seed: u64) -> Option<Spec> {
        let cluster = self.cluster();
        let warm_up_ns = self.duration_ns / 4;
        let now = self.stream(seed, &cluster, &self.sizes, self.load)?;
        let mut streams = vec![now];
        if let Some(before) = &self.before {
            let mut old = self.stream(seed, &cluster, &before.sizes, before.load)?;
            old.until_ns = warm_up_ns;
            streams[0].from_ns = warm_up_ns;
            streams.insert(0, old);
        }
        let every = |number: u32| Fault {
            node: number * UNEVEN,
            from_ns: 0,
            until_ns: u64::MAX,
            kind: FaultKind::Slow(1.2),
        };
        let (faults, pauses) = match self.rough {
            false => (Vec::new(), Vec::new()),
            true => {
                let pause = Pause {
                    of: Machines::Nodes,
                    every_ns: 1e9,
                    length_ns: 5_000_000,
                };
                ((0..self.nodes / UNEVEN).map(every).collect(), vec![pause])
            }
        };
        Some(Spec {
            seed,
            duration_ns: self.duration_ns + warm_up_ns,
            warm_up_ns,
            drain_ns: DRAIN_NS,
            cluster,
            scheduler: baseline(),
            routing: Routing {
                selection: Selection::Rule(Rule::RoundRobin),
                redundancy: Redundancy::None,
                probe_from: None,
            },
            tenants: vec![Tenant {
                name: "all".into(),
                group: "all".into(),
                promise: Promise::share(1.0),
                objective: None,
                partitions: self.nodes,
                streams,
            }],
            faults,
            pauses,
            keeper: None,
        })
    }

    fn cluster(&self) -> Cluster {
        let parallel = self.permits.min(self.processors);
        let operation_ns = f64::from(parallel) * 1e9 / SERVER_PER_S;
        let friction = Friction {
            jitter_ns: 25_000,
            skew_ns: 500_000,
            probe_ns: 20_000,
            ..Friction::default()
        };
        Cluster {
            nodes: self.nodes,
            replicas: 3,
            permits: self.permits,
            processors: self.processors,
            routers: self.nodes,
            resources: Resources::default(),
            device: None,
            control: Control::default(),
            friction: if self.rough {
                friction
            } else {
                Friction::default()
            },
            one_way_ns: 50_000,
            reply_ns: 0,
            look_ns: if self.rough { 50_000 } else { 0 },
            service: Service {
                operation_ns: operation_ns * (1.0 - self.size_share),
                byte_ns: operation_ns * self.size_share / VALUE_BYTES,
                noise: self.noise,
            },
        }
    }

    /// A stream of requests that is this part of what can be served.
    fn stream(
        &self,
        seed: u64,
        cluster: &Cluster,
        sizes: &[(u32, f64)],
        load: f64,
    ) -> Option<Stream> {
        let popularity = match self.zipf {
            None => Popularity::Uniform(KEYS),
            Some(alpha) => Popularity::zipf(alpha, KEYS)?,
        };
        let requests = Requests {
            puts: 0.0,
            range: false,
            keys: KeyCount::new(sizes.iter().copied())?,
            popularity,
            values: facebook_values()?,
        };
        let per_s = load * attainable_per_s(seed, cluster, &requests, self.by_busiest);
        Some(Stream {
            arrivals: Arrivals::Poisson { per_s },
            from_ns: 0,
            until_ns: u64::MAX,
            quota: None,
            requests,
        })
    }
}

/// Multiget-agnostic: one queue in order of arrival.
fn baseline() -> Scheduler {
    Scheduler {
        discipline: Discipline::Fair,
        order: Order::Arrival,
        strategy: Strategy::Agnostic,
        levels: Levels::exponential(1, 1.0, 1, Rates::Linear),
        guard_ns: None,
        cost: CostKnown::Operations,
        ahead: AheadKnown::Nothing,
        tuning: Tuning::None,
    }
}

/// Highest rate of requests that all nodes together, or the busiest one, can
/// serve if replicas are asked in turn.
fn attainable_per_s(seed: u64, cluster: &Cluster, requests: &Requests, by_busiest: bool) -> f64 {
    const DRAWS: usize = 400_000;
    let mut requests = requests.clone();
    let nodes = cluster.nodes as usize;
    let mut demand_ns = vec![0.0; nodes];
    let mut rng = Rng::new(seed, 1 << 41);
    let mut keys = Vec::new();
    while keys.len() < DRAWS {
        let count = requests.keys.pick(rng.bits());
        requests
            .popularity
            .pick_distinct(&mut rng, 0, count, &mut keys);
    }
    for &key in &keys {
        let group = (mix64(key) % nodes as u64) as usize;
        let expected = cluster.service.expected_ns(requests.values.of(key, 0));
        for replica in 0..cluster.replicas as usize {
            demand_ns[(group + replica) % nodes] += expected / f64::from(cluster.replicas);
        }
    }
    // Where keys are asked alike the nodes differ only by chance, in what was drawn as in what will
    // be.
    let alike = matches!(requests.popularity, Popularity::Uniform(_));
    let demand_ns = match by_busiest && !alike {
        true => demand_ns.iter().copied().fold(0.0, f64::max),
        false => demand_ns.iter().sum::<f64>() / nodes as f64,
    };
    let per_operation_ns = demand_ns / keys.len() as f64;
    f64::from(cluster.parallel()) * 1e9 / per_operation_ns / requests.keys.mean()
}
