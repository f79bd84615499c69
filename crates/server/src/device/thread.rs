//! What a thread does at the device: the I/Os that it has begun, what it waited, and on what terms.
//!
//! A thread does one I/O after the other. As long as each begins where the last one was they are
//! pieces of one large read or write, whatever that is for: a stream ([`Terms::stream`]). It is
//! over when the thread goes elsewhere, or is done with its command.

use std::cell::{Cell, RefCell};
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::Arc;

use engine::device::DeviceIo;
use smallvec::SmallVec;
use stage::{Nanos, Permit, PrincipalId, Terms};

use super::Device;
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

/// Until it is dropped, I/O of this thread waits on some terms; then on those of before.
#[must_use = "the terms are taken back when this is dropped"]
pub struct OnTerms<'d> {
    _terms: engine::device::OnTerms,
    device: Option<&'d Device>,
}

/// This thread's I/O waits on these terms: in the lane of the workload that it works for, with the
/// time by which that work is due. What it reads of this device is over with them.
pub fn on_terms(terms: Terms, device: Option<&Arc<Device>>) -> OnTerms<'_> {
    OnTerms {
        _terms: engine::device::on_terms(terms),
        device: device.map(Arc::as_ref),
    }
}

impl Drop for OnTerms<'_> {
    fn drop(&mut self) {
        if let (Some(device), Some(over)) = (self.device, STREAM.take()) {
            device.end_stream(&over);
        }
    }
}

/// What a thread reads or writes piece by piece.
#[derive(Clone)]
pub(super) struct Stream {
    /// No two streams' alike, and not 0.
    pub number: u32,
    /// The drive that it is on.
    pub drive: usize,
    /// For whom it waits there.
    pub whom: PrincipalId,
    /// The file by owner and number, and its last piece there.
    file: (u64, u64),
    last: RangeInclusive<u64>,
}

thread_local! {
    /// This thread's.
    static STREAM: Cell<Option<Stream>> = const { Cell::new(None) };
}

/// 0 is no stream.
static NEXT_STREAM: AtomicU32 = AtomicU32::new(1);

/// On what terms an I/O waits that begins now on a drive, of the file of that `owner`, and the
/// stream that is over with it. What has a due time is no stream.
pub(super) fn terms(
    (owner, whom): (u64, PrincipalId),
    drive: usize,
    io: &DeviceIo,
) -> (Terms, Option<Stream>) {
    let (terms, file) = (engine::device::terms(), (owner, io.number));
    let last = STREAM.take();
    if terms.due_at.is_some() || io.number == 0 {
        return (terms, last);
    }
    // Who asks for the next page of a range has read ahead of the last one.
    let same =
        |last: &Stream| (last.file, last.whom) == (file, whom) && last.last.contains(&io.offset);
    let goes_on = last.as_ref().filter(|last| same(last));
    let number = goes_on.map_or_else(next_stream, |stream| stream.number);
    STREAM.set(Some(Stream {
        number,
        drive,
        whom,
        file,
        last: io.offset..=io.offset + io.bytes,
    }));
    let over = last.filter(|last| last.number != number);
    (
        Terms {
            stream: number,
            ..terms
        },
        over,
    )
}

fn next_stream() -> u32 {
    NEXT_STREAM.fetch_add(1, Ordering::Relaxed).max(1)
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

thread_local! {
    /// Processor time of this thread when its last I/O of a flush or compaction had ended, ns.
    static WORKED: Cell<Nanos> = const { Cell::new(0) };
}

/// What this thread, which flushes and compacts, has worked since this was called last, ns.
pub(super) fn worked_ns() -> Nanos {
    let now = threads::cpu_ns();
    now.saturating_sub(WORKED.replace(now))
}
