//! The device below RocksDB, as whoever schedules it sees it.
//!
//! Each read, write, sync and delete of a tenant's database is announced to a [`DeviceStage`]
//! before it begins, on the thread that does it, and reported when it has ended. The stage may make
//! it wait. What the I/O is for is told in two ways: RocksDB says which of its activities it
//! belongs to ([`Activity`]), and whoever works for a request says so for its thread ([`tagged`]).
//! A job for another thread takes the [`Tag`] of whoever queued it along, and a batch of the log
//! that of whoever wrote most of it. On what terms the I/O of a thread waits is said likewise
//! ([`on_terms`]); an opening has those of whoever first asked for the database.

pub use policy::cost::device::Op;
pub use policy::dispatch::Terms;

use policy::dispatch::LaneId;
use std::cell::Cell;
use std::sync::Arc;

/// What is read ahead of a range at most, by us and by RocksDB (its `max_auto_readahead_size`).
pub const AHEAD_BYTES_MAX: usize = policy::cost::device::AHEAD_BYTES_MAX as usize;

/// What a file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FileKind {
    /// Records: table and blob files.
    Data,
    /// The write-ahead log.
    Log,
    /// What RocksDB knows of itself: MANIFEST, CURRENT, OPTIONS.
    Metadata,
    /// A directory, synced after a file was created in it.
    Directory,
}

/// For which of its activities RocksDB does an I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Activity {
    /// A read of one record.
    Get,
    /// A read of several records at once.
    MultiGet,
    /// An iterator.
    Range,
    /// Writing and syncing the log.
    Log,
    /// A memtable becomes a file.
    Flush,
    /// Files are merged.
    Compaction,
    /// A database opens, the replay of its log included.
    Open,
    /// Checksums are compared.
    Verify,
    /// Anything else: metadata, directories, removed files.
    Other,
}

impl Activity {
    /// All of them, in the order of their numbers.
    pub const ALL: [Activity; 9] = [
        Activity::Get,
        Activity::MultiGet,
        Activity::Range,
        Activity::Log,
        Activity::Flush,
        Activity::Compaction,
        Activity::Open,
        Activity::Verify,
        Activity::Other,
    ];

    /// Its name in metrics.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Activity::Get => "get",
            Activity::MultiGet => "multiget",
            Activity::Range => "range",
            Activity::Log => "log",
            Activity::Flush => "flush",
            Activity::Compaction => "compaction",
            Activity::Open => "open",
            Activity::Verify => "verify",
            Activity::Other => "other",
        }
    }

    /// Whether no request waits for it directly.
    #[must_use]
    pub fn background(self) -> bool {
        matches!(self, Activity::Flush | Activity::Compaction)
    }
}

/// Tags that are counted apart: nobody's and seven more.
pub const TAGS: usize = 8;

/// For whom a thread works: the class of a request, as the server numbers classes. The default is
/// nobody's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Tag(pub u8);

impl Tag {
    /// Its place in arrays of [`TAGS`] elements; whoever uses more tags finds the rest in the last
    /// place.
    #[must_use]
    pub fn index(self) -> usize {
        usize::from(self.0).min(TAGS - 1)
    }
}

thread_local! {
    static TAG: Cell<Tag> = const { Cell::new(Tag(0)) };
}

/// Until it is dropped, I/O of this thread is for `tag`; then for what it was before.
#[derive(Debug)]
#[must_use = "the tag is taken back when this is dropped"]
pub struct Tagged(Tag);

/// Tags this thread's I/O.
pub fn tagged(tag: Tag) -> Tagged {
    Tagged(TAG.replace(tag))
}

/// The tag of this thread, to be taken along where work is handed over.
#[must_use]
pub fn tag() -> Tag {
    TAG.get()
}

impl Drop for Tagged {
    fn drop(&mut self) {
        TAG.set(self.0);
    }
}

thread_local! {
    static TERMS: Cell<Terms> = const {
        Cell::new(Terms { lane: LaneId::REST, due_at: None, stream: 0, level: 0 })
    };
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

/// On what terms I/O of this thread waits.
#[must_use]
pub fn terms() -> Terms {
    TERMS.get()
}

impl Drop for OnTerms {
    fn drop(&mut self) {
        TERMS.set(self.0);
    }
}

/// Work for another thread whose I/O waits on the terms of this one.
pub(crate) fn on_these_terms(work: impl FnOnce() + Send) -> impl FnOnce() + Send {
    let terms = terms();
    move || {
        let _on_terms = on_terms(terms);
        work();
    }
}

/// One I/O. Buffered files (the log, metadata) are counted in the pages that become dirty: that is
/// what the device will have to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceIo {
    /// Whose database, as numbered when its hook was made.
    pub principal: u32,
    /// What it does.
    pub op: Op,
    /// Where in its file, in bytes.
    pub offset: u64,
    /// How many bytes are asked for.
    pub bytes: u64,
    /// In what file.
    pub file: FileKind,
    /// The number of that file in its database; 0: it has none.
    pub number: u64,
    /// What RocksDB does it for.
    pub activity: Activity,
    /// Background work for which writers wait already.
    pub urgent: bool,
    /// For which class of request this thread works.
    pub tag: Tag,
}

impl DeviceIo {
    /// Whether it may be kept waiting: reads and writes of data, and the log. The rest is small,
    /// rare, and may be done while RocksDB holds its database's mutex.
    #[must_use]
    pub fn may_wait(&self) -> bool {
        matches!(self.file, FileKind::Data | FileKind::Log) && self.op != Op::Delete
    }
}

/// How a device breaks. The numbers are the shim's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// EIO.
    Failed = 1,
    /// ENOSPC.
    NoSpace = 2,
    /// Half of the bytes are moved: a read that ends early, a write that is torn and fails with
    /// EIO. Whatever moves no bytes fails with EIO.
    Half = 3,
}

/// How an I/O ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Bytes that were moved: fewer than asked for at the end of a file, none after an error.
    pub bytes: u64,
    /// Whether there was no error.
    pub ok: bool,
}

/// Whoever schedules a device. Called on RocksDB's threads and on callers' threads, many at a time;
/// a panic in it ends the process.
pub trait DeviceStage: Send + Sync {
    /// The I/O is about to begin, on this thread; it begins when this returns. If it may not wait,
    /// this must return at once. The number is given back at its end.
    fn begin(&self, io: &DeviceIo) -> u64;

    /// Whether the I/O is to fail instead of being done: devices break, and what is above them is
    /// tried that way. It begins and ends like any other.
    fn fault(&self, _: &DeviceIo) -> Option<Fault> {
        None
    }

    /// It has ended.
    fn end(&self, io: &DeviceIo, token: u64, ended: Ended);

    /// Larger I/Os are cut into pieces of this many bytes (rounded down to a multiple of 4 KiB, at
    /// least that).
    fn chunk_bytes(&self) -> u64 {
        u64::MAX
    }
}

/// A stage, and the principal that a database is charged to.
#[derive(Clone)]
pub struct DeviceHook {
    /// The stage.
    pub stage: Arc<dyn DeviceStage>,
    /// The principal.
    pub principal: u32,
}

impl std::fmt::Debug for DeviceHook {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DeviceHook")
            .field("principal", &self.principal)
            .finish_non_exhaustive()
    }
}
