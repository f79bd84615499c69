//! One tenant's data: its memory, its log, its database.

pub(crate) mod ahead;
mod commit;
pub(crate) mod gate;
pub(crate) mod latch;
mod memory;
mod names;
mod pace;
mod reclaim;
pub(crate) mod shared;
pub(crate) mod stats;
mod upkeep;
pub(crate) mod walks;

use crate::device::on_these_terms;
use crate::files::directory::create_directory;
use crate::files::rocks::Db;
use crate::keyspace::gate::{Gate, Ready};
use crate::keyspace::latch::{tell, Book, Locked};
use crate::keyspace::pace::Pace;
use crate::keyspace::shared::Shared;
use crate::log::{Bounds, Log, Noted};
use crate::memory::budgets::Buffers;
use crate::memory::pins::Stripe;
use crate::memory::shard::Shard;
use crate::naming::{self, Names};
use crate::{record, EngineError, KeyspaceOptions, Seq, Sync, Waiter};
use foldhash::fast::RandomState;
use parking_lot::Mutex;
use rocksdb::ReadOptions;
use smallvec::SmallVec;
use std::hash::BuildHasher;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicU8, Ordering};
use std::sync::{Arc, Weak};
use walks::Walks;

/// Stripes of record pins; sets of them are bits of a word.
const STRIPES: usize = 16;
/// Sets of shards are the bits of a word.
const SHARDS_MAX: usize = 64;

/// A shard on cache lines of its own: two cores use neighbours all the time.
#[repr(align(128))]
pub(crate) struct Padded(Mutex<Shard>);

impl std::ops::Deref for Padded {
    type Target = Mutex<Shard>;
    fn deref(&self) -> &Mutex<Shard> {
        &self.0
    }
}

/// One tenant's keys and values. Lock order: shards (ascending), then the latch book, the log or a
/// stripe.
pub struct Keyspace {
    pub(crate) me: Weak<Keyspace>,
    pub(crate) id: u64,
    pub(crate) name: String,
    pub(crate) directory: PathBuf,
    pub(crate) options: KeyspaceOptions,
    pub(crate) shared: Arc<Shared>,
    pub(crate) buffers: Buffers,
    pub(crate) pace: Pace,
    pub(crate) gate: Gate,
    pub(crate) shards: Box<[Padded]>,
    hasher: RandomState,
    pub(crate) stripes: Box<[Mutex<Stripe>]>,
    /// Bit *i*: shard *i* has pins.
    pub(crate) pinned: AtomicU64,
    pub(crate) book: Mutex<Book>,
    pub(crate) log: Log,
    sync: AtomicU8,
    pub(crate) next_id: AtomicU64,
    /// A collection may exist: a blind overwrite must look first.
    pub(crate) collections: AtomicBool,
    /// A name that is not its key may exist.
    pub(crate) named: AtomicBool,
    pub(crate) names: Names,
    /// A key with an expiry was written since the start: overwrites look for old index entries.
    pub(crate) expiring: AtomicBool,
    pub(crate) walks: Mutex<Walks>,
    /// A large value may exist: see [`KeyspaceOptions::large_value_bytes`]. What was in the log is
    /// in files when a database has been opened, so they say at first.
    pub(crate) large: AtomicBool,
    /// Held by whoever reads what may be one.
    pub(crate) large_reader: Mutex<()>,
    pub(crate) counters: crate::keyspace::stats::Counters,
}

impl std::fmt::Debug for Keyspace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Keyspace")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl Keyspace {
    /// Opens or creates the database and reads its properties. Blocks.
    pub(crate) fn open(
        shared: &Arc<Shared>,
        id: u64,
        name: &str,
        options: KeyspaceOptions,
    ) -> Result<Arc<Keyspace>, EngineError> {
        let directory = shared.directory.tenant(name)?;
        shared.directory.is_there()?;
        // RocksDB would create it, and sync what is in it, but not its name.
        create_directory(&directory)?;
        // Before the database is opened: what stays for long lies together then, not one block a
        // page among what the database will give back when it is closed.
        let count = options.shards.clamp(1, SHARDS_MAX).next_power_of_two();
        let object_bytes_max = options.cached_object_bytes_max;
        let shard = || Shard::new(0, object_bytes_max);
        let shards = (0..count).map(|_| Padded(Mutex::new(shard()))).collect();
        let stripes = (0..STRIPES).map(|_| Mutex::default()).collect();
        let buffers = shared.memory.buffers(&options);
        let db = shared.open_db(id, name, &directory, &options, &buffers)?;
        let read = |raw: &[u8]| {
            db.rocks.get(raw).map_err(|error| EngineError::Open {
                tenant: name.to_owned(),
                directory: directory.clone(),
                message: error.into_string(),
            })
        };
        let ids = read(record::NEXT_ID)?;
        let ids = ids.as_deref().and_then(record::decode_u64).unwrap_or(1);
        let collections = read(record::COLLECTIONS)?.is_some();
        let named = read(record::FORMAT)?.as_deref() == Some(record::FORMAT_NAMED);
        let naming = naming::read(&db.rocks, &ReadOptions::default());
        let naming = naming.map_err(|message| EngineError::Open {
            tenant: name.to_owned(),
            directory: directory.clone(),
            message,
        })?;
        let bounds = Bounds {
            batch: options.batch_bytes,
            pending: options.pending_bytes,
        };
        let keyspace = Arc::new_cyclic(|me| Keyspace {
            me: Weak::clone(me),
            id,
            name: name.to_owned(),
            directory,
            shared: Arc::clone(shared),
            buffers,
            pace: Pace::default(),
            large: AtomicBool::new(db.has_large_values()),
            gate: Gate::new(db),
            shards,
            hasher: RandomState::default(),
            stripes,
            pinned: AtomicU64::new(0),
            book: Mutex::default(),
            log: Log::new(bounds, Arc::clone(&shared.pending), ids),
            sync: AtomicU8::new(options.sync as u8),
            next_id: AtomicU64::new(ids),
            collections: AtomicBool::new(collections),
            named: AtomicBool::new(named),
            names: Names::of(naming),
            expiring: AtomicBool::new(false),
            walks: Mutex::default(),
            large_reader: Mutex::default(),
            counters: crate::keyspace::stats::Counters::default(),
            options,
        });
        keyspace.fit_objects();
        Ok(keyspace)
    }

    /// Unique among the keyspaces of this engine, for as long as it runs.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// The tenant's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Everything up to this is decided: in the database, or failed
    /// ([`Keyspace::commit_error`] tells).
    pub fn committed(&self) -> Seq {
        self.log.decided()
    }

    /// `true`: `seq` is decided, the reply may go (ask [`Keyspace::commit_error`]). Else core
    /// `core` (0..64) is told once, through `notify`, after the next decision; what still waits
    /// then must be registered again.
    pub fn await_commit(&self, core: usize, seq: Seq) -> bool {
        self.log.await_decision(core, seq)
    }

    /// For a decided `seq`: the error that its reply must become, if its batch failed.
    pub fn commit_error(&self, seq: Seq) -> Option<EngineError> {
        self.log.error_of(seq)
    }

    /// Blocks until `seq` is decided. For handlers and tests.
    ///
    /// # Errors
    /// Why its batch failed.
    pub fn wait_commit(&self, seq: Seq) -> Result<(), EngineError> {
        self.kick();
        self.log.sleep_until(seq);
        self.commit_error(seq).map_or(Ok(()), Err)
    }

    /// After [`Outcome::Full`]: `waiter` is told once there is room. `false`: there is some, the
    /// waiter was dropped, try again now.
    pub fn wait_room(&self, waiter: Waiter) -> bool {
        self.kick();
        self.log.wait_room(waiter)
    }

    /// End of a core's turn: starts a committer if there is work and none is on it.
    pub fn kick(&self) {
        if self.log.wants_committer() {
            if let Some(me) = self.me.upgrade() {
                me.commit_soon();
            }
        }
    }

    /// Whether what is being committed fills a batch, so that it takes ms.
    pub fn commits_long(&self) -> bool {
        self.log.pending() >= self.options.batch_bytes
    }

    pub(crate) fn sync(&self) -> Sync {
        match self.sync.load(Ordering::Relaxed) {
            s if s == Sync::Always as u8 => Sync::Always,
            s if s == Sync::EverySecond as u8 => Sync::EverySecond,
            _ => Sync::Never,
        }
    }

    /// Changes durability, from the next batch on.
    pub fn set_sync(&self, sync: Sync) {
        self.sync.store(sync as u8, Ordering::Relaxed);
    }

    /// Position of the newest write.
    pub fn last_seq(&self) -> Seq {
        self.log.last_seq()
    }

    /// Waits until everything assigned so far is decided. Blocks.
    pub(crate) fn wait_all_decided(&self) {
        self.wait_decided(self.last_seq());
    }

    /// Waits until everything up to `seq` is decided. Blocks.
    pub(crate) fn wait_decided(&self, seq: Seq) {
        if self.log.decided() < seq {
            self.kick();
            self.log.sleep_until(seq);
        }
    }

    /// The database, opened if it is closed, which blocks: see [`Keyspace::await_open`].
    pub(crate) fn db(&self) -> Result<Arc<Db>, EngineError> {
        self.gate.get(|| self.open_db())
    }

    /// `None`: `waiter` is told once the database is open, or known not to open; the caller should
    /// begin anew then. Else it need not wait. Never blocks.
    pub(crate) fn await_open(self: &Arc<Self>, waiter: Waiter) -> Option<Waiter> {
        match self.gate.await_open(waiter) {
            Ready::Now(waiter) => Some(waiter),
            Ready::Later(first) => {
                let me = Arc::clone(self);
                let open = move || {
                    // An error is kept for those who are told.
                    let _ = me.db();
                    tell(me.gate.opened());
                };
                if first {
                    self.shared.openers.submit(Box::new(on_these_terms(open)));
                }
                None
            }
        }
    }

    pub(crate) fn open_db(&self) -> Result<Db, EngineError> {
        self.shared.directory.is_there()?;
        let (directory, options) = (&self.directory, &self.options);
        let opened = self
            .shared
            .open_db(self.id, &self.name, directory, options, &self.buffers);
        self.fit_objects();
        opened
    }

    /// For reads while the directory cannot be written.
    pub(crate) fn open_read_only(&self) -> Result<Db, rocksdb::Error> {
        let (directory, options) = (&self.directory, &self.options);
        let opened = self
            .shared
            .open_read_only(self.id, directory, options, &self.buffers);
        self.fit_objects();
        opened
    }

    /// What a read of something that `seq` wrote adds to its reply. A reply shows only what is
    /// decided, whatever the durability: what it showed would otherwise be gone after a crash, or
    /// if the write is refused.
    pub(crate) fn must_wait_for(&self, seq: Seq) -> Seq {
        if seq > 0 && seq > self.log.decided() {
            seq
        } else {
            0
        }
    }

    pub(crate) fn read_error(&self, message: impl Into<String>) -> EngineError {
        EngineError::Read {
            directory: self.directory.clone(),
            message: message.into(),
        }
    }

    /// The shard of a key, by a hash whose seed the shard's own tables do not share.
    pub(crate) fn shard_of(&self, key: &[u8]) -> u32 {
        (self.hasher.hash_one(key) as u32) & (self.shards.len() as u32 - 1)
    }

    pub(crate) fn stripe(&self, id: u64) -> &Mutex<Stripe> {
        &self.stripes[stripe_of(id)]
    }

    /// What properties of the database have to say.
    pub(crate) fn to_note(&self) -> Noted {
        Noted {
            collections: self.collections.load(Ordering::Relaxed),
            named: self.named.load(Ordering::Relaxed),
        }
    }

    /// Has the processor fetch what memory knows of some names.
    fn glance(&self, keys: &[&[u8]]) {
        let indices: SmallVec<[u32; 16]> = keys.iter().map(|key| self.shard_of(key)).collect();
        let mut shards = self.lock_shards(indices.iter().copied());
        let glances = keys.iter().zip(&indices).map(|(key, index)| {
            let shard = shard_mut(&mut shards, *index);
            shard.map_or(0, |shard| shard.glance(key))
        });
        std::hint::black_box(glances.fold(0, |all, one| all ^ one));
    }

    /// Locks the shards of some keys, in ascending order.
    pub(crate) fn lock_for(&self, keys: &[&[u8]]) -> Locked<'_> {
        if let [key] = keys {
            let index = self.shard_of(key);
            let mut shards = Locked::new();
            shards.push((index, self.shards[index as usize].lock()));
            return shards;
        }
        self.lock_shards(keys.iter().map(|key| self.shard_of(key)))
    }

    pub(crate) fn lock_shards(&self, indices: impl Iterator<Item = u32>) -> Locked<'_> {
        let wanted = indices.fold(0u64, |set, index| set | 1 << index);
        let indices = (0..self.shards.len() as u32).filter(|index| wanted & (1 << index) != 0);
        indices
            .map(|index| (index, self.shards[index as usize].lock()))
            .collect()
    }

    pub(crate) fn lock_all(&self) -> Locked<'_> {
        self.lock_shards(0..self.shards.len() as u32)
    }
}

/// The stripe of a collection's id.
pub(crate) fn stripe_of(id: u64) -> usize {
    id as usize % STRIPES
}

/// The locked shard with this index.
pub(crate) fn shard_mut<'s>(shards: &'s mut Locked<'_>, index: u32) -> Option<&'s mut Shard> {
    if shards.len() == 1 {
        let (first, shard) = &mut shards[0];
        return (*first == index).then_some(&mut **shard);
    }
    let at = shards.binary_search_by_key(&index, |(i, _)| *i).ok()?;
    Some(&mut shards[at].1)
}
