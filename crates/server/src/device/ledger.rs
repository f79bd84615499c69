//! Who used how much of the device, and for what: by tenant, class of request and activity of
//! RocksDB.

use engine::device::{Activity, DeviceIo, Op, Tag, TAGS};
use parking_lot::RwLock;
use policy::cost::device::{Flow, Mix, Vop};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use telemetry::{Class, CLASSES};

const ACTIVITIES: usize = Activity::ALL.len();

/// The tag of threads that work for a request of this class; no tag means that no request waits for
/// it.
#[must_use]
pub fn tag_of(class: Class) -> Tag {
    Tag(class.index() as u8 + 1)
}

/// I/Os and what they cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    /// I/Os.
    pub ios: u64,
    /// What they cost.
    pub vops: Vop,
}

impl Sum {
    fn plus(self, other: Sum) -> Sum {
        Sum {
            ios: self.ios + other.ios,
            vops: self.vops.plus(other.vops),
        }
    }
}

/// What a tenant used of the device, and of the processors while it did. Totals only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Used {
    moved: [[[Moved; DIRECTIONS]; ACTIVITIES]; TAGS],
    /// Processor time of flushes and compactions, ns.
    pub internal_processor_ns: u64,
}

/// I/Os of one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Moved {
    ios: u64,
    bytes: u64,
    vops: Vop,
}

impl Moved {
    fn since(&self, before: &Moved) -> Flow {
        Flow {
            ios: self.ios.saturating_sub(before.ios) as f64,
            bytes: self.bytes.saturating_sub(before.bytes) as f64,
            vops: Vop(self.vops.0.saturating_sub(before.vops.0)).get(),
        }
    }
}

fn sum(moved: &[Moved; DIRECTIONS]) -> Sum {
    let sums = moved
        .iter()
        .map(|&Moved { ios, vops, .. }| Sum { ios, vops });
    sums.fold(Sum::default(), Sum::plus)
}

/// Reads, writes and the rest.
const DIRECTIONS: usize = 3;

/// What I/Os are told apart by where their mix is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// A request of this class waits for it.
    Request(Class),
    /// A flush, or a new log and files after it.
    Flush,
    /// A compaction.
    Compaction,
}

/// Whether what threads of a tag do in an activity is for a purpose.
fn serves(tag: usize, activity: Activity, purpose: Purpose) -> bool {
    match (activity, purpose) {
        (Activity::Compaction, _) => purpose == Purpose::Compaction,
        (Activity::Flush, _) => purpose == Purpose::Flush,
        (_, Purpose::Request(class)) => tag == tag_of(class).index(),
        (Activity::Log | Activity::Other, Purpose::Flush) => tag == 0,
        _ => false,
    }
}

impl Used {
    /// What was added for a purpose since `before`.
    #[must_use]
    pub fn mix_since(&self, before: &Used, purpose: Purpose) -> Mix {
        let mut flows = [Flow::default(); DIRECTIONS];
        for (tag, activities) in self.moved.iter().enumerate() {
            for activity in Activity::ALL {
                if !serves(tag, activity, purpose) {
                    continue;
                }
                let pairs = activities[activity as usize]
                    .iter()
                    .zip(&before.moved[tag][activity as usize]);
                for (flow, (now, before)) in flows.iter_mut().zip(pairs) {
                    *flow = flow.plus(now.since(before));
                }
            }
        }
        let [reads, writes, others] = flows;
        Mix {
            reads,
            writes,
            others: others.vops,
            unknown: 0.0,
        }
    }

    /// What one activity used, for whatever class.
    #[must_use]
    pub fn activity(&self, activity: Activity) -> Sum {
        let all = self.moved.iter().map(|of| sum(&of[activity as usize]));
        all.fold(Sum::default(), Sum::plus)
    }

    /// What requests of a class did themselves; `None`: what no request waited for (flush,
    /// compaction, opening).
    #[must_use]
    pub fn class(&self, class: Option<Class>) -> Sum {
        let of = &self.moved[class.map_or(Tag::default(), tag_of).index()];
        of.iter().map(sum).fold(Sum::default(), Sum::plus)
    }

    /// What requests of each class did themselves, in VOPs.
    #[must_use]
    pub fn class_vops(&self) -> [f64; CLASSES] {
        Class::ALL.map(|class| self.class(Some(class)).vops.get())
    }

    /// One activity for one class.
    #[must_use]
    pub fn cell(&self, class: Option<Class>, activity: Activity) -> Sum {
        sum(&self.moved[class.map_or(Tag::default(), tag_of).index()][activity as usize])
    }

    /// Everything.
    #[must_use]
    pub fn total(&self) -> Sum {
        let all = self.moved.iter().flatten();
        all.map(sum).fold(Sum::default(), Sum::plus)
    }
}

/// I/Os of one operation, of everybody, strangers included. Totals only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// I/Os.
    pub ios: u64,
    /// What they cost.
    pub vops: Vop,
    /// From the turn to the end, summed.
    pub ns: u64,
}

/// The counters of a [`Done`].
#[derive(Debug, Default)]
struct Operation {
    ios: AtomicU64,
    vops: AtomicU64,
    ns: AtomicU64,
}

/// The counters of a [`Moved`].
#[derive(Debug, Default)]
struct Cell {
    ios: AtomicU64,
    bytes: AtomicU64,
    vops: AtomicU64,
}

#[derive(Debug, Default)]
struct Account {
    cells: [[[Cell; DIRECTIONS]; ACTIVITIES]; TAGS],
    internal_processor_ns: AtomicU64,
}

/// An account for each tenant, and one for the device. Adding takes a shared lock and six or
/// seven atomic additions.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    accounts: RwLock<Vec<Option<Arc<Account>>>>,
    operations: [Operation; Op::ALL.len()],
}

impl Ledger {
    /// A new account; one that is there stays as it is.
    pub(super) fn open(&self, tenant: u32) {
        let mut accounts = self.accounts.write();
        let needed = tenant as usize + 1;
        if accounts.len() < needed {
            accounts.resize(needed, None);
        }
        accounts[tenant as usize].get_or_insert_default();
    }

    pub(super) fn close(&self, tenant: u32) {
        if let Some(account) = self.accounts.write().get_mut(tenant as usize) {
            *account = None;
        }
    }

    /// An I/O that moved `bytes` and took `ns` from its turn to its end; its thread worked
    /// `processor_ns` for a flush or compaction since its last.
    pub(super) fn add(&self, io: &DeviceIo, bytes: u64, price: Vop, ns: u64, processor_ns: u64) {
        let operation = &self.operations[io.op as usize];
        operation.ios.fetch_add(1, Ordering::Relaxed);
        operation.vops.fetch_add(price.0, Ordering::Relaxed);
        operation.ns.fetch_add(ns, Ordering::Relaxed);
        if let Some(Some(account)) = self.accounts.read().get(io.principal as usize) {
            let direction = (io.op as usize).min(DIRECTIONS - 1);
            let cell = &account.cells[io.tag.index()][io.activity as usize][direction];
            cell.ios.fetch_add(1, Ordering::Relaxed);
            cell.bytes.fetch_add(bytes, Ordering::Relaxed);
            cell.vops.fetch_add(price.0, Ordering::Relaxed);
            if processor_ns > 0 {
                let spent = &account.internal_processor_ns;
                spent.fetch_add(processor_ns, Ordering::Relaxed);
            }
        }
    }

    pub(super) fn used(&self, tenant: u32) -> Option<Used> {
        let account = self.accounts.read().get(tenant as usize).cloned()??;
        let read = |cell: &Cell| Moved {
            ios: cell.ios.load(Ordering::Relaxed),
            bytes: cell.bytes.load(Ordering::Relaxed),
            vops: Vop(cell.vops.load(Ordering::Relaxed)),
        };
        let cells = account.cells.each_ref();
        Some(Used {
            moved: cells.map(|of| of.each_ref().map(|of| of.each_ref().map(read))),
            internal_processor_ns: account.internal_processor_ns.load(Ordering::Relaxed),
        })
    }

    pub(super) fn done(&self) -> [Done; Op::ALL.len()] {
        let read = |operation: &Operation| Done {
            ios: operation.ios.load(Ordering::Relaxed),
            vops: Vop(operation.vops.load(Ordering::Relaxed)),
            ns: operation.ns.load(Ordering::Relaxed),
        };
        std::array::from_fn(|op| read(&self.operations[op]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_class_has_a_place_of_its_own() {
        let mut places: Vec<usize> = Class::ALL.map(|class| tag_of(class).index()).to_vec();
        places.push(Tag::default().index());
        places.sort_unstable();
        places.dedup();
        assert_eq!(places.len(), Class::ALL.len() + 1);
    }
}
