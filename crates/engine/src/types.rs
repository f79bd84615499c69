//! The words that commands and the engine share.

use crate::EngineError;
use bytes::Bytes;

/// Position of a finished write in its keyspace's commit log; starts at 1, 0 means "none".
pub type Seq = u64;

/// Told once that something it waited for may have changed. Runs on whatever thread made the
/// change, outside every lock; it must not block (post a message to a core, submit a job).
pub type Waiter = Box<dyn FnOnce() + Send>;

/// Numbered databases of a tenant.
pub const DATABASES: usize = 16;

/// One of a tenant's databases.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Database(u8);

impl Database {
    /// Where every connection begins.
    pub const FIRST: Database = Database(0);

    /// The database of this number, if there is one.
    #[must_use]
    pub fn new(number: i64) -> Option<Database> {
        let number = u8::try_from(number).ok()?;
        (usize::from(number) < DATABASES).then_some(Database(number))
    }

    /// All of them, in order.
    pub fn all() -> impl Iterator<Item = Database> {
        (0..DATABASES as u8).map(Database)
    }

    /// Its number, below [`DATABASES`].
    #[must_use]
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// The keys a command declares before it runs, in any order, repeats allowed. It may touch no
/// others.
#[derive(Clone, Copy, Debug)]
pub enum Keys<'a> {
    /// No key by name: read-only work over the whole keyspace (SCAN, KEYS, DBSIZE, …).
    /// Never runs in phase 1; in phase 2 it sees a snapshot.
    None,
    /// These keys of one database.
    In(Database, &'a [&'a [u8]]),
    /// These keys of several.
    Across(&'a [(Database, &'a [u8])]),
    /// Everything: FLUSHALL, or a transaction with a command of the first kind in it.
    All,
}

/// How phase 1 ended.
#[derive(Debug)]
pub enum Outcome<R> {
    /// The command ran.
    Done {
        /// What it returned.
        reply: R,
        /// The reply must be withheld until this is committed; 0: it may go out at once.
        seq: Seq,
    },
    /// It needs the disk: take a latch and use [`crate::Keyspace::run`] on a handler.
    Disk,
    /// A key is latched: [`crate::Keyspace::wait`], then run phase 1 again.
    Busy,
    /// Too many bytes wait for commit: [`crate::Keyspace::wait_room`], then run phase 1 again.
    Full,
    /// It failed; nothing was written.
    Failed(EngineError),
}

/// Why a command stopped early. Everything it buffered is dropped.
#[derive(Debug)]
pub enum Stop {
    /// Phase 1 only: what it asked for is not in memory.
    Disk,
    /// What it has read is more than it may hold ([`crate::Access::hold_at_most`]).
    Large,
    /// It cannot go on.
    Error(EngineError),
}

impl From<EngineError> for Stop {
    fn from(error: EngineError) -> Stop {
        Stop::Error(error)
    }
}

/// What a collection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Fields with values ([`Table::Field`]).
    Hash,
    /// Members with scores ([`Table::Member`], [`Table::Score`]).
    SortedSet,
}

/// The object record of a collection; its elements are records of their own under `id`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// What it is.
    pub kind: Kind,
    /// Unique in the keyspace for ever: never used again, not even after a crash.
    pub id: u64,
    /// Number of elements; kept by the commands.
    pub len: u64,
}

/// A string of bytes. [`crate::Access::parts`] reads either form, [`crate::Access::write`] changes
/// it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Text {
    /// All of it.
    Whole(Bytes),
    /// Its bytes are records of their own ([`Table::Piece`]).
    Pieces {
        /// Unique in the keyspace for ever, as a collection's.
        id: u64,
        /// Number of bytes.
        len: u64,
    },
}

impl Default for Text {
    fn default() -> Text {
        Text::Whole(Bytes::new())
    }
}

impl Text {
    /// Number of bytes.
    #[must_use]
    pub fn len(&self) -> u64 {
        match self {
            Text::Whole(bytes) => bytes.len() as u64,
            Text::Pieces { len, .. } => *len,
        }
    }

    /// Whether it has no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All its bytes, if it is short enough to be kept in one record.
    #[must_use]
    pub fn whole(&self) -> Option<&Bytes> {
        match self {
            Text::Whole(bytes) => Some(bytes),
            Text::Pieces { .. } => None,
        }
    }
}

/// What a key holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Object {
    /// A string of bytes.
    String(Text),
    /// A collection.
    Collection(Header),
}

impl Object {
    /// The id that its other records lie under, if it may have any.
    pub(crate) fn id(&self) -> Option<u64> {
        match self {
            Object::String(Text::Whole(_)) => None,
            Object::String(Text::Pieces { id, .. }) => Some(*id),
            Object::Collection(header) => Some(header.id),
        }
    }
}

/// What a key holds, and until when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The object.
    pub object: Object,
    /// Milliseconds since the Unix epoch from which on the key counts as absent.
    pub expire_at_ms: Option<u64>,
}

impl Entry {
    /// A string that never expires.
    #[must_use]
    pub fn string(value: Bytes) -> Entry {
        Entry {
            object: Object::String(Text::Whole(value)),
            expire_at_ms: None,
        }
    }

    /// The string, if it is one that lies here whole.
    pub(crate) fn whole(&self) -> Option<&Bytes> {
        match &self.object {
            Object::String(text) => text.whole(),
            Object::Collection(_) => None,
        }
    }

    /// Bytes of a string that lies here whole; other records are read one by one.
    pub(crate) fn value_bytes(&self) -> usize {
        self.whole().map_or(0, Bytes::len)
    }

    /// Whether it counts as present at `now_ms`.
    #[must_use]
    pub fn live(&self, now_ms: u64) -> bool {
        self.expire_at_ms.is_none_or(|at| at > now_ms)
    }
}

/// The tables of records that lie under an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Table {
    /// Hash field -> value.
    Field,
    /// Sorted-set member -> score.
    Member,
    /// Order-preserving score ([`crate::score_key`]) and member -> nothing.
    Score,
    /// Number of a piece of a string -> its bytes.
    Piece,
}

/// Part of an ordered read.
#[derive(Clone, Debug)]
pub struct Page<T> {
    /// Names, in order, and what they name.
    pub items: Vec<(Bytes, T)>,
    /// There may be more behind the last.
    pub more: bool,
}

impl<T> Default for Page<T> {
    fn default() -> Self {
        let (items, more) = (Vec::new(), false);
        Self { items, more }
    }
}

/// Direction of an ordered read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// From the lowest name.
    Up,
    /// From the highest name.
    Down,
}

/// What becomes of the blocks that an ordered read of the keyspace brings from the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blocks {
    /// They go to the tenant's block cache: the same keys may well be read again.
    Keep,
    /// They pass it by: a walk over everything must not drive out what is read often.
    Pass,
}

/// What a keyspace tells its cores after a batch was decided (written, or failed).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Committed {
    /// [`crate::Keyspace::id`].
    pub keyspace: u64,
    /// Bit *i*: core *i* called [`crate::Keyspace::await_commit`] since it was last told.
    pub cores: u64,
    /// Everything up to here is decided.
    pub seq: Seq,
}

/// What [`crate::Keyspace::expire_some`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Expired {
    /// Keys deleted because their time had come.
    pub deleted: u64,
    /// Index entries looked at, stale ones included.
    pub examined: u64,
    /// When the next entry of the expiry index is due (ms since the Unix epoch), if there is one.
    /// Writes not yet committed are not in the index.
    pub next_due_ms: Option<u64>,
    /// There is more to do at once.
    pub more: bool,
    /// The tenant's log is full: more can be done when there is room
    /// ([`crate::Keyspace::wait_room`]).
    pub full: bool,
}

/// The live keys of a keyspace in numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Census {
    /// All of them.
    pub keys: u64,
    /// Those that expire.
    pub expiring: u64,
    /// When these expire on the average, ms since the Unix epoch; 0: none does.
    pub expire_at_ms_mean: u64,
}

/// Keys that a command looked up, by what came of it; expired ones are absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lookups {
    /// Keys that were there.
    pub found: u32,
    /// Keys that were not.
    pub missed: u32,
}

impl Lookups {
    /// One of them.
    pub(crate) fn of(found: bool) -> Lookups {
        let mut lookups = Lookups::default();
        lookups.count(found);
        lookups
    }

    pub(crate) fn count(&mut self, found: bool) {
        self.found += u32::from(found);
        self.missed += u32::from(!found);
    }
}
