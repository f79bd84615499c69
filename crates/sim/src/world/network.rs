//! Messages on their way, and the clocks of those who send them.

use super::World;
use policy::Nanos;
use workload::rng::Rng;

/// How late messages are, and how wrong senders' clocks.
#[derive(Debug)]
pub(super) struct Network {
    rng: Rng,
    /// By sender: what its clock is ahead.
    skews_ns: Vec<i64>,
}

impl Network {
    pub(super) fn new(seed: u64, senders: u32, skew_ns: Nanos) -> Self {
        let mut rng = Rng::new(seed, 1 << 43);
        let skews_ns = (0..senders).map(|_| (rng.normal() * skew_ns as f64) as i64);
        Network {
            skews_ns: skews_ns.collect(),
            rng,
        }
    }
}

impl World<'_> {
    /// How long a message is on its way.
    pub(super) fn way_ns(&mut self) -> Nanos {
        let cluster = &self.spec.cluster;
        match cluster.friction.jitter_ns {
            0 => cluster.one_way_ns,
            mean => cluster.one_way_ns + (self.network.rng.exponential() * mean as f64) as Nanos,
        }
    }

    /// What a sender takes the time to be.
    pub(super) fn clock_of(&self, router: u32) -> Nanos {
        let skew_ns = self.network.skews_ns[router as usize];
        self.agenda.now().saturating_add_signed(skew_ns)
    }
}
