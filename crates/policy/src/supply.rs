//! What may be promised in all, and whether reservations fit into it.
//!
//! Reserved work goes before all shares. So when reservations take all there is, the mix of reads
//! and writes at the device is theirs, and nobody else's; and when they do not, less than all is
//! needed. What may be promised is therefore what the device does under the mix of the reservations
//! themselves ([`Sweep`]). That is asked of gets and puts together, of gets alone and of puts
//! alone: gets may come while puts do not.
//!
//! A request takes processor time as well, its flushes and compactions included; where requests are
//! small, processors are short before the device is.

use crate::cost::device::{Mix, Sweep};
use crate::profile::REQUESTS;

/// The part of the processors that may be promised: clients come and go, others look at metrics,
/// and a processor that is never idle has a queue.
const PROCESSORS_PART: f64 = 0.9;

/// What reservations, or requests, take a second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Demand {
    /// Of the device, by kind of request in the order of [`crate::profile::Request::ALL`].
    pub device: [Mix; REQUESTS],
    /// Processors that are busy with it. What was never seen counts as nothing.
    pub processors: f64,
}

impl Demand {
    pub(crate) fn plus(&self, other: &Demand) -> Demand {
        Demand {
            device: std::array::from_fn(|at| self.device[at].plus(&other.device[at])),
            processors: self.processors + other.processors,
        }
    }

    /// VOPs a second.
    #[must_use]
    pub fn vops_per_s(&self) -> f64 {
        self.device.iter().map(Mix::vops).sum()
    }

    /// Whether nothing of it is more than in another.
    #[must_use]
    pub fn within(&self, other: &Demand) -> bool {
        let pairs = self.device.iter().zip(&other.device);
        pairs
            .into_iter()
            .all(|(own, other)| own.vops() <= other.vops())
            && self.processors <= other.processors
    }

    /// Mixes that may be at the device: everything, and each kind alone.
    fn mixes(&self) -> impl Iterator<Item = Mix> + '_ {
        let none = Mix::default();
        let all = self.device.iter().fold(none, |all, mix| all.plus(mix));
        std::iter::once(all).chain(self.device)
    }
}

/// What there is too little of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Short {
    /// VOPs a second of the device.
    Device {
        /// So many are needed, by everything or by the kind of request that does not fit.
        needed_per_s: f64,
        /// So many may be promised to that.
        promisable_per_s: f64,
    },
    /// Processors.
    Processors {
        /// So many are needed.
        needed: f64,
        /// So many may be promised.
        promisable: f64,
    },
}

/// What may be promised of a device and of the processors.
#[derive(Clone, Debug, PartialEq)]
pub struct Supply {
    /// What is known of the device.
    pub sweep: Sweep,
    /// Processors that the process may use.
    pub processors: f64,
}

impl Supply {
    /// What there is too little of; `None`: it fits.
    #[must_use]
    pub fn short(&self, demand: &Demand) -> Option<Short> {
        let device = demand.mixes().find_map(|mix| {
            let (needed_per_s, promisable_per_s) = (mix.vops(), self.sweep.promisable_per_s(&mix));
            (needed_per_s > promisable_per_s).then_some(Short::Device {
                needed_per_s,
                promisable_per_s,
            })
        });
        let promisable = self.processors * PROCESSORS_PART;
        let needed = demand.processors;
        let processors =
            || (needed > promisable).then_some(Short::Processors { needed, promisable });
        device.or_else(processors)
    }

    /// VOPs a second that may be promised to requests in these proportions; the floor, if there are
    /// none.
    #[must_use]
    pub fn promisable_per_s(&self, demand: &Demand) -> f64 {
        let room = |needed: f64, promisable: f64| (needed > 0.0).then(|| promisable / needed);
        let device = demand
            .mixes()
            .filter_map(|mix| room(mix.vops(), self.sweep.promisable_per_s(&mix)));
        let Some(device) = device.reduce(f64::min) else {
            return self.sweep.floor_per_s();
        };
        let processors = room(demand.processors, self.processors * PROCESSORS_PART);
        demand.vops_per_s() * processors.map_or(device, |room| room.min(device))
    }
}
