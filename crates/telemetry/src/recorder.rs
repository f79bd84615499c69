//! What one core records of one tenant.
//!
//! The core owns the [`Recorder`] and is the only writer; the admin thread reads the same counters
//! while they change. Nothing is locked, nothing waits, and a tenant that asks for nothing costs a
//! few hundred bytes.

use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use crate::class::{Class, CLASSES};
use crate::histogram::{bump, Histogram};
use crate::parts::{Part, TimeParts, PARTS};
use crate::totals::{Answered, ClassTotals, Usage};

/// Which limit of a tenant turned a request away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// `limit.requests`.
    Requests,
    /// `limit.bytes`.
    Bytes,
}

impl Limit {
    /// Every limit, in the order of the counters.
    pub const ALL: [Self; 2] = [Self::Requests, Self::Bytes];

    /// The key in the config and the label in metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Requests => "requests",
            Self::Bytes => "bytes",
        }
    }
}

/// One answered request, or several alike that were read and answered together.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// What kind of work it was.
    pub class: Class,
    /// From when the request came, as far as the core can know that, to "the reply was written",
    /// ns.
    pub latency_ns: u64,
    /// Of that, the wait at the request stage, ns.
    pub queue_ns: u64,
    /// Of that, the time on a handler because the data was not in memory, ns; 0: it never left the
    /// core.
    pub disk_ns: u64,
    /// Bytes of the request on the wire.
    pub bytes_in: u64,
    /// Bytes of the reply on the wire.
    pub bytes_out: u64,
    /// CPU time charged to it, ns.
    pub cpu_ns: u64,
    /// True when the reply was an error.
    pub failed: bool,
    /// The parts of the latency, ns.
    pub parts: TimeParts,
}

/// Counters of one class.
#[derive(Default)]
struct ClassCounters {
    latency: Histogram,
    queue: Histogram,
    disk: Histogram,
    errors: AtomicU64,
    throttled: [AtomicU64; 2],
    bytes_in: AtomicU64,
    bytes_out: AtomicU64,
    cpu_ns: AtomicU64,
    requests: AtomicU64,
    parts: [AtomicU64; PARTS],
}

/// Counters of one tenant on one core.
#[derive(Default)]
pub(crate) struct Counters {
    classes: [OnceLock<Box<ClassCounters>>; CLASSES],
    occupied_ns: AtomicU64,
    found: AtomicU64,
    missed: AtomicU64,
    /// A recorder is out: a second one would break the single-writer rule.
    taken: AtomicBool,
}

impl Counters {
    #[inline]
    fn class(&self, class: Class) -> &ClassCounters {
        self.classes[class.index()].get_or_init(Box::default)
    }

    /// Adds what this core counted of each class to `into`.
    pub(crate) fn add_to(&self, into: &mut [ClassTotals; CLASSES]) {
        for (totals, counters) in into.iter_mut().zip(&self.classes) {
            let Some(counters) = counters.get() else {
                continue;
            };
            counters.latency.add_to(&mut totals.latency);
            counters.queue.add_to(&mut totals.queue);
            counters.disk.add_to(&mut totals.disk);
            for part in Part::ALL {
                totals.parts[part] += counters.parts[part as usize].load(Relaxed);
            }
            totals.requests += counters.requests.load(Relaxed);
            totals.errors += counters.errors.load(Relaxed);
            totals.bytes_in += counters.bytes_in.load(Relaxed);
            totals.bytes_out += counters.bytes_out.load(Relaxed);
            totals.cpu_ns += counters.cpu_ns.load(Relaxed);
            for (total, count) in totals.throttled.iter_mut().zip(&counters.throttled) {
                *total += count.load(Relaxed);
            }
        }
    }

    /// Adds what this core answered of a class to `into`.
    pub(crate) fn add_answered_to(&self, class: Class, into: &mut Answered) {
        if let Some(counters) = self.classes[class.index()].get() {
            into.requests += counters.requests.load(Relaxed);
            into.bytes_in += counters.bytes_in.load(Relaxed);
            into.bytes_out += counters.bytes_out.load(Relaxed);
            into.cpu_ns += counters.cpu_ns.load(Relaxed);
        }
    }

    /// Adds what this core spent on the tenant, all classes together, to `into`.
    pub(crate) fn add_usage_to(&self, into: &mut Usage) {
        for counters in self.classes.iter().filter_map(OnceLock::get) {
            into.requests += counters.requests.load(Relaxed);
            into.bytes_in += counters.bytes_in.load(Relaxed);
            into.bytes_out += counters.bytes_out.load(Relaxed);
            into.cpu_ns += counters.cpu_ns.load(Relaxed);
            for count in &counters.throttled {
                into.throttled += count.load(Relaxed);
            }
        }
        into.occupied_ns += self.occupied_ns.load(Relaxed);
        into.found += self.found.load(Relaxed);
        into.missed += self.missed.load(Relaxed);
    }
}

/// The writing end of one tenant's counters on one core. It can move to the core's thread but not
/// be shared or copied, which is what makes the counters single-writer. Dropped, it can be had
/// again.
pub struct Recorder {
    counters: Arc<Counters>,
    one_thread: PhantomData<Cell<()>>,
}

impl Recorder {
    /// None when another recorder writes to these counters.
    pub(crate) fn new(counters: Arc<Counters>) -> Option<Self> {
        // Acquire meets the release at drop: what the last writer stored is what this one adds to.
        let taken = counters.taken.swap(true, Ordering::Acquire);
        (!taken).then_some(Self {
            counters,
            one_thread: PhantomData,
        })
    }

    /// Counts one answered request.
    #[inline]
    pub fn record(&mut self, request: &Request) {
        self.record_many(request, 1);
    }

    /// Counts `count` requests alike: the times are each one's, bytes and CPU time those of all
    /// together.
    #[inline]
    pub fn record_many(&mut self, request: &Request, count: u64) {
        let counters = self.counters.class(request.class);
        counters.latency.record_many(request.latency_ns, count);
        counters.queue.record_many(request.queue_ns, count);
        if request.disk_ns > 0 {
            counters.disk.record_many(request.disk_ns, count);
        }
        if request.failed {
            bump(&counters.errors, count);
        }
        for (sum, ns) in counters.parts.iter().zip(request.parts.0) {
            if ns > 0 {
                bump(sum, ns * count);
            }
        }
        bump(&counters.requests, count);
        bump(&counters.bytes_in, request.bytes_in);
        bump(&counters.bytes_out, request.bytes_out);
        bump(&counters.cpu_ns, request.cpu_ns);
    }

    /// Counts `count` of the recorded requests of a class as answered with an error, where
    /// [`Request::failed`] would count all of them.
    #[inline]
    pub fn failed(&mut self, class: Class, count: u64) {
        bump(&self.counters.class(class).errors, count);
    }

    /// Counts what was used for no request that is answered.
    #[inline]
    pub fn spent(&mut self, class: Class, bytes_in: u64, bytes_out: u64, cpu_ns: u64) {
        let counters = self.counters.class(class);
        bump(&counters.bytes_in, bytes_in);
        bump(&counters.bytes_out, bytes_out);
        bump(&counters.cpu_ns, cpu_ns);
    }

    /// Counts reads of keys: those that found theirs and those that did not.
    #[inline]
    pub fn looked_up(&mut self, found: u64, missed: u64) {
        bump(&self.counters.found, found);
        bump(&self.counters.missed, missed);
    }

    /// Counts a request that was answered `-THROTTLED`. It is in no latency and no request count.
    #[inline]
    pub fn throttled(&mut self, class: Class, limit: Limit) {
        bump(&self.counters.class(class).throttled[limit as usize], 1);
    }

    /// Adds time during which the tenant had a request waiting at this core's request stage, ns.
    #[inline]
    pub fn occupied(&mut self, ns: u64) {
        bump(&self.counters.occupied_ns, ns);
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.counters.taken.store(false, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What an idle tenant costs on each core.
    #[test]
    fn an_idle_tenant_is_small() {
        assert!(std::mem::size_of::<Counters>() <= 256);
    }

    #[test]
    fn what_is_recorded_is_read_back_by_class() {
        let counters = Arc::new(Counters::default());
        let mut recorder = Recorder::new(Arc::clone(&counters)).expect("free");
        let get = Request {
            class: Class::Get,
            latency_ns: 50_000,
            queue_ns: 10_000,
            disk_ns: 0,
            bytes_in: 30,
            bytes_out: 1_030,
            cpu_ns: 4_000,
            failed: false,
            parts: TimeParts(std::array::from_fn(|at| 10 * at as u64)),
        };
        recorder.record(&get);
        recorder.record_many(
            &Request {
                bytes_in: 480,
                ..get
            },
            16,
        );
        recorder.record(&Request {
            class: Class::Put,
            disk_ns: 900_000,
            failed: true,
            ..get
        });
        recorder.throttled(Class::Put, Limit::Bytes);
        recorder.failed(Class::Get, 3);
        recorder.spent(Class::Other, 5, 0, 6);
        recorder.looked_up(7, 2);
        recorder.occupied(77);

        let mut totals: [ClassTotals; CLASSES] = Default::default();
        counters.add_to(&mut totals);
        let (got, put) = (&totals[Class::Get.index()], &totals[Class::Put.index()]);
        assert_eq!((got.requests, got.bytes_in, got.errors), (17, 510, 3));
        assert_eq!(
            (got.latency.count(), got.queue.count(), got.disk.count()),
            (17, 17, 0)
        );
        assert_eq!((put.requests, put.errors, put.throttled), (1, 1, [0, 1]));
        assert_eq!(put.disk.count(), 1);
        assert!(totals[Class::Scan.index()].latency.is_empty());

        assert_eq!(
            (got.parts[Part::Commit], put.parts[Part::Commit]),
            (17 * 90, 90),
            "each request's"
        );

        let mut usage = Usage::default();
        counters.add_usage_to(&mut usage);
        assert_eq!(
            (usage.requests, usage.bytes_in, usage.occupied_ns),
            (18, 545, 77)
        );
        assert_eq!((usage.found, usage.missed, usage.throttled), (7, 2, 1));
    }
}
