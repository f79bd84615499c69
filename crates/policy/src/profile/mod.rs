//! What a request costs a device, all of it: its own I/O, and what it makes the storage engine do
//! later (thesis 6.3.1).
//!
//! In each interval, and for each tenant, the I/O of its requests and of the engine's internal
//! operations is counted in VOPs, beside the requests and the bytes they wrote. With `u` VOPs and
//! `s` normalised (1 KiB) requests,
//!
//! ```text
//! q_a       = average(u_a / s_a)                      direct, request a
//! q_(a,i)   = q_i e_a,  q_i = average(u_i / written)  indirect, by operation i
//! profile_a = q_a + sum over i of q_(a,i)
//! ```
//!
//! where `e_a` is what one normalised request of `a` writes. The thesis counts operations and how
//! often requests trigger them; that number cancels out of its `q_i e_(a,i) / s_a`, and what is
//! left is the cost over everything written since the last trigger. So an operation is not an event
//! here but a run of intervals with I/O of its kind, and its cost goes to all that was written
//! since the run before ended.
//!
//! Averages are of sums, both fading alike: an interval in which little was done says little. Those
//! of requests fade with time. Those of operations fade with what is written, because their cost
//! comes later than the writes.

mod operation;

use crate::cost::device::{CostModel, Flow, Mix, Op, Vop};
use operation::Operation;

/// Bytes of a normalised request.
pub const UNIT_BYTES: f64 = 1024.0;
/// What a request or a reply carries besides its value: a key, and the protocol. A value of 1 KiB
/// is to be one unit, not 1.06; where it carries less, a unit is taken to cost a little more than
/// it does.
const BESIDE_BYTES: u64 = 64;
/// What an interval weighs in an average: at one a second, 92 % of a change is followed within 5 s.
pub(crate) const ALPHA: f64 = 0.4;

/// Requests that rates can be reserved for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Request {
    /// A read of one key.
    Get,
    /// A write of one key.
    Put,
}

/// How many kinds there are.
pub const REQUESTS: usize = 2;

impl Request {
    /// All of them, in the order of arrays of [`REQUESTS`] elements.
    pub const ALL: [Request; REQUESTS] = [Request::Get, Request::Put];

    /// Its name in configuration and metrics.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Request::Get => "get",
            Request::Put => "put",
        }
    }

    fn op(self) -> Op {
        match self {
            Request::Get => Op::Read,
            Request::Put => Op::Write,
        }
    }
}

/// What the engine does later on behalf of requests, in the order of arrays of [`INTERNALS`]
/// elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Internal {
    /// A memtable becomes a file.
    Flush,
    /// Files are merged.
    Compaction,
}

/// How many kinds there are.
pub const INTERNALS: usize = 2;

/// What requests of one kind did in an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// Requests answered.
    pub requests: u64,
    /// Bytes they carried: replies of gets, requests of puts.
    pub bytes: u64,
    /// I/O they did themselves.
    pub direct: Vop,
    /// Bytes that they wrote.
    pub written_bytes: u64,
}

impl Done {
    /// Bytes of values.
    fn payload(&self) -> f64 {
        let beside = self.requests.saturating_mul(BESIDE_BYTES);
        self.bytes.saturating_sub(beside) as f64
    }

    /// 1 KiB-normalised requests, from the totals of the interval.
    #[must_use]
    pub fn normalised(&self) -> f64 {
        (self.requests as f64).max(self.payload() / UNIT_BYTES)
    }
}

/// What one tenant did in an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Interval {
    /// By kind of request, in the order of [`Request::ALL`].
    pub done: [Done; REQUESTS],
    /// Bytes written, by these requests and all others.
    pub written_bytes: u64,
    /// I/O of flushing and compacting.
    pub internal: [Vop; INTERNALS],
    /// What the I/O of requests consisted of, by kind.
    pub direct_mix: [Mix; REQUESTS],
    /// The same of flushing and compacting.
    pub internal_mix: [Mix; INTERNALS],
    /// Processor time of requests, by kind, ns.
    pub processor_ns: [u64; REQUESTS],
    /// Processor time of flushing and compacting, ns.
    pub internal_processor_ns: u64,
}

/// What one normalised request costs, in VOP.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RequestCost {
    /// Its own I/O.
    pub direct: f64,
    /// What it makes the engine do later: flush, compaction.
    pub indirect: [f64; INTERNALS],
}

impl RequestCost {
    /// All of it.
    #[must_use]
    pub fn total(&self) -> f64 {
        self.direct + self.later()
    }

    /// What is done later, by all operations together.
    #[must_use]
    pub fn later(&self) -> f64 {
        self.indirect.iter().sum()
    }
}

/// A fading average of one sum over another.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Ratio {
    over: f64,
    under: f64,
    /// Cost that nothing was counted beside: what is counted when it ends may have cost something
    /// before.
    early: f64,
}

impl Ratio {
    pub(crate) fn step(&mut self, alpha: f64, over: f64, under: f64) {
        self.early += over;
        if under > 0.0 {
            // The first interval is all there is.
            let alpha = if self.under > 0.0 { alpha } else { 1.0 };
            self.over += alpha * (self.early - self.over);
            self.under += alpha * (under - self.under);
            self.early = 0.0;
        }
    }

    pub(crate) fn get(&self) -> Option<f64> {
        (self.under > 0.0).then(|| self.over / self.under)
    }
}

/// What some work consists of, of late.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Composition(Mix);

impl Composition {
    fn step(&mut self, mix: &Mix) {
        if mix.vops() > 0.0 {
            // The first interval is all there is.
            let alpha = if self.0.vops() > 0.0 { ALPHA } else { 1.0 };
            self.0 = self.0.scaled(1.0 - alpha).plus(&mix.scaled(alpha));
        }
    }
}

/// The profile of one tenant's requests.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Profile {
    direct: [Ratio; REQUESTS],
    /// KiB written by a normalised request.
    written: [Ratio; REQUESTS],
    /// Bytes a request.
    size: [Ratio; REQUESTS],
    /// Normalised requests an interval.
    volume: [Ratio; REQUESTS],
    internal: [Operation; INTERNALS],
    direct_mix: [Composition; REQUESTS],
    internal_mix: [Composition; INTERNALS],
    /// Processor time of a normalised request, ns.
    processor: [Ratio; REQUESTS],
    /// The same of flushes and compactions together, for each KiB.
    internal_processor: Operation,
}

/// What a get reads at least: a block.
const BLOCK_BYTES: f64 = 4096.0;

impl Profile {
    /// An interval has ended; all are to be of about the same length.
    pub fn step(&mut self, interval: &Interval) {
        for (at, done) in interval.done.iter().enumerate() {
            let normalised = done.normalised();
            self.direct[at].step(ALPHA, done.direct.get(), normalised);
            self.written[at].step(ALPHA, done.written_bytes as f64 / UNIT_BYTES, normalised);
            self.size[at].step(ALPHA, done.payload(), done.requests as f64);
            self.volume[at].step(ALPHA, normalised, 1.0);
            self.processor[at].step(ALPHA, interval.processor_ns[at] as f64, normalised);
            self.direct_mix[at].step(&interval.direct_mix[at]);
        }
        let written = interval.written_bytes as f64 / UNIT_BYTES;
        for (operation, used) in self.internal.iter_mut().zip(interval.internal) {
            operation.step(used.get(), written);
        }
        let used_ns = interval.internal_processor_ns as f64;
        self.internal_processor.step(used_ns, written);
        for (composition, mix) in self.internal_mix.iter_mut().zip(&interval.internal_mix) {
            composition.step(mix);
        }
    }

    /// Normalised requests an interval, of late.
    #[must_use]
    pub fn volume(&self) -> [f64; REQUESTS] {
        self.volume.map(|ratio| ratio.get().unwrap_or(0.0))
    }

    /// What the I/O of so many requests consists of, at a price each. Before the first of its kind,
    /// a get is a read of its object, and what a put becomes is not known.
    #[must_use]
    pub fn mix(&self, request: Request, requests: f64, cost: &RequestCost) -> Mix {
        let at = request as usize;
        let seen = self.direct[at].get().is_some();
        let vops = requests * cost.direct;
        let direct = match (seen, request) {
            (false, Request::Get) => {
                let bytes = self.size[at].get().unwrap_or(UNIT_BYTES).max(BLOCK_BYTES);
                let reads = Flow {
                    ios: 1.0,
                    bytes,
                    vops: 1.0,
                };
                Mix {
                    reads,
                    ..Mix::default()
                }
            }
            (false, Request::Put) => Mix::default(),
            (true, _) => self.direct_mix[at].0,
        };
        let mut mix = direct.of_vops(vops);
        for (composition, price) in self.internal_mix.iter().zip(cost.indirect) {
            mix = mix.plus(&composition.0.of_vops(requests * price));
        }
        mix
    }

    /// Processor time that a normalised request takes, flushes and compactions included, ns; `None`
    /// before the first of its kind.
    #[must_use]
    pub fn processor_ns(&self, request: Request) -> Option<f64> {
        let at = request as usize;
        let written = self.written[at].get().unwrap_or(0.0);
        let later = self.internal_processor.price() * written;
        Some(self.processor[at].get()? + later)
    }

    /// What a normalised request costs; `None` before the first of its kind.
    #[must_use]
    pub fn cost(&self, request: Request) -> Option<RequestCost> {
        let at = request as usize;
        let direct = self.direct[at].get()?;
        let written = self.written[at].get().unwrap_or(0.0);
        Some(RequestCost {
            direct,
            indirect: self.internal.map(|operation| operation.price() * written),
        })
    }

    /// What part of what the tenant causes is done later, 0 to 1; `None` before it did anything.
    #[must_use]
    pub fn later_part(&self) -> Option<f64> {
        let (mut total, mut later) = (0.0, 0.0);
        for (at, request) in Request::ALL.into_iter().enumerate() {
            let volume = self.volume[at].get().unwrap_or(0.0);
            let cost = self.cost(request).unwrap_or_default();
            total += volume * cost.total();
            later += volume * cost.later();
        }
        (total > 0.0).then(|| later / total)
    }

    /// What it would cost if it were one I/O of the size of its object: the price without a profile
    /// (thesis 7.4.1). Before the first of its kind that is a KiB, the dearest there is for each
    /// KiB.
    #[must_use]
    pub fn object_cost(&self, request: Request, costs: &CostModel) -> RequestCost {
        let bytes = self.size[request as usize].get().unwrap_or(UNIT_BYTES);
        let price = costs.cost(request.op(), bytes.max(1.0) as u64).get();
        RequestCost {
            direct: price / (bytes / UNIT_BYTES).max(1.0),
            indirect: [0.0; INTERNALS],
        }
    }
}
