//! The storage engine: a tenant's keys and values, in memory above RocksDB.
//!
//! [`Engine`] is a data directory with its threads, [`Keyspace`] one tenant's data: an object
//! cache in shards, a commit log, a RocksDB database of its own. A command is a plain function
//! over [`Access`] and runs in one of two phases:
//!
//! 1. on a core, in memory, with the shards of its keys locked ([`Keyspace::try_run`]). Whatever
//!    it wrote is applied at its end. If it needs the disk, nothing happened, and it runs again
//! 2. on a handler, where reads may block, with its keys latched ([`Keyspace::latch`],
//!    [`Keyspace::run`]). Others that want those keys wait; nobody else does.
//!
//! Writes go to the tenant's commit log and reach the database in groups. A reply that reports or
//! shows a write is withheld until the write is committed ([`Keyspace::await_commit`]).
//!
//! Every I/O of a database can be scheduled and charged from outside ([`device`]).
//!
//! The mechanism is described in `docs/mechanisms/storage.md`; why there is a database for each
//! tenant in `docs/decisions/0003-one-database-per-tenant.md`.

mod access;
mod batch;
mod buffer;
mod commit;
pub mod device;
mod directory;
mod engine;
mod error;
mod expiry;
mod gate;
mod keyspace;
mod latch;
mod leave;
mod log;
mod memory;
mod meter;
mod options;
mod pace;
mod phases;
mod pins;
mod pool;
mod ranges;
mod reads;
mod reclaim;
mod record;
mod rocks;
mod shard;
mod shared;
mod shim;
mod slots;
mod stats;
mod strings;
mod tries;
mod types;
mod upkeep;
mod wal;
mod watch;
mod work;

pub use access::{Access, Lookups};
pub use directory::create_directory;
pub use engine::{Engine, REPLIES_MAX, WORKS_MAX};
pub use error::EngineError;
pub use keyspace::Keyspace;
pub use latch::Latch;
pub use memory::Allotments;
pub use meter::{GoOn, Place, HANDLER_STEPS, TURN_STEPS};
pub use options::{EngineOptions, KeyspaceOptions, Notify, Sync, PENDING_BYTES};
pub use pool::Handlers;
pub use record::{score_key, score_of_key};
pub use stats::KeyspaceStats;
pub use strings::{Parts, PIECE_BYTES, WHOLE_BYTES_MAX};
pub use types::{
    Blocks, Committed, Entry, Expired, Header, Keys, Kind, Object, Order, Outcome, Page, Seq, Stop,
    Table, Text, Waiter,
};
pub use watch::Watch;
pub use work::Allowance;
