//! What a thread does at the device: the I/Os that it has begun, what it waited, and on what terms.
//!
//! A thread does one I/O after the other. As long as each begins where the last one ended they are
//! pieces of one large read or write, whatever that is for: a stream ([`Terms::stream`]).

use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicU32, Ordering};

use engine::device::DeviceIo;
use smallvec::SmallVec;
use stage::{LaneId, Nanos, Permit, Terms};

use policy::slo::control::Turn;

thread_local! {
    /// I/Os that this thread has begun and not ended. It does one at a time; they nest at most.
    static BEGUN: RefCell<Vec<Begun>> = const { RefCell::new(Vec::new()) };
}

/// Waits of one thread that are kept one by one; of a handler's work with more, the first.
const SPANS: usize = 8;

/// What a thread has waited for its turns at the device, since it was asked last.
#[derive(Clone, Debug, Default)]
pub struct Waits {
    /// All together, ns.
    pub ns: Nanos,
    /// Its first turn.
    pub first: Option<Turn>,
    /// The drive, from when and until when.
    pub spans: SmallVec<[(usize, Nanos, Nanos); 1]>,
}

thread_local! {
    static WAITS: RefCell<Waits> = RefCell::default();
}

thread_local! {
    /// On what terms this thread's I/O waits.
    static TERMS: Cell<Terms> = const { Cell::new(Terms { lane: LaneId::REST, due_at: None, stream: 0 }) };
}

/// Until it is dropped, I/O of this thread waits on some terms; then on those of before.
#[derive(Debug)]
#[must_use = "the terms are taken back when this is dropped"]
pub struct OnTerms(Terms);

/// This thread's I/O waits on these terms: in the lane of the workload that it works for, with the
/// time by which that work is due.
pub fn on_terms(terms: Terms) -> OnTerms {
    OnTerms(TERMS.replace(terms))
}

thread_local! {
    /// What this thread's streams are called: no two threads' alike.
    static STREAM: u32 = NEXT_STREAM.fetch_add(1, Ordering::Relaxed);
    /// The file that this thread has read or written last, by owner and number, and up to where.
    static LAST: Cell<(u64, u64, u64)> = const { Cell::new((0, 0, 0)) };
}

/// 0 is no stream.
static NEXT_STREAM: AtomicU32 = AtomicU32::new(1);

/// On what terms this thread's I/O waits where streams are nothing special.
pub(super) fn plain_terms() -> Terms {
    TERMS.get()
}

/// On what terms an I/O waits that begins now, of the file of that `owner`. What has a due time is
/// no stream.
pub(super) fn terms(owner: u64, io: &DeviceIo) -> Terms {
    let (begins, ends) = (io.offset, io.offset + io.bytes);
    let last = LAST.replace((owner, io.number, ends));
    let goes_on = io.number > 0 && last == (owner, io.number, begins);
    let terms = TERMS.get();
    match goes_on && terms.due_at.is_none() {
        true => Terms {
            stream: STREAM.with(|stream| *stream),
            ..terms
        },
        false => terms,
    }
}

impl Drop for OnTerms {
    fn drop(&mut self) {
        TERMS.set(self.0);
    }
}

/// What this thread has waited since this was called last.
#[must_use]
pub fn waits() -> Waits {
    WAITS.take()
}

/// A turn of this thread at a drive.
pub(super) fn waited(drive: usize, ns: Nanos, until: Nanos) {
    WAITS.with_borrow_mut(|waits| {
        waits.ns += ns;
        waits.first.get_or_insert(Turn {
            queued: until.saturating_sub(ns),
            granted: until,
        });
        if ns > 0 && waits.spans.len() < SPANS {
            waits.spans.push((drive, until.saturating_sub(ns), until));
        }
    });
}

/// An I/O under way.
pub(super) struct Begun {
    /// None: it may not wait, or its tenant is gone.
    pub permit: Option<Permit>,
    pub at: Nanos,
    /// The drive that it is on.
    pub drive: usize,
}

/// This thread has begun an I/O.
pub(super) fn begin(begun: Begun) {
    BEGUN.with_borrow_mut(|all| all.push(begun));
}

/// The one that it began last, which has ended.
pub(super) fn end() -> Option<Begun> {
    BEGUN.with_borrow_mut(Vec::pop)
}
