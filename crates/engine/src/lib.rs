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
//! Rooms, each of which uses those before it: `types`, `record`, `naming`, `device` and `options`
//! are words; `files` is what lies on the disk; `memory` shards and budgets; `log` what waits for
//! its commit; `keyspace` all of a tenant's, with gate, latches, commits and upkeep; `access` what
//! a command sees; `phases` how one runs; `expiry`; `engine` all keyspaces.
//!
//! The mechanism is described in `docs/mechanisms/storage.md`; why there is a database for each
//! tenant in `docs/decisions/0003-one-database-per-tenant.md`.

mod access;
pub mod device;
mod engine;
mod error;
mod expiry;
mod files;
mod keyspace;
mod log;
mod memory;
mod meter;
mod naming;
mod options;
mod phases;
mod pool;
mod record;
mod tries;
mod types;
mod work;

pub use access::strings::{Parts, PIECE_BYTES, WHOLE_BYTES_MAX};
pub use access::watch::Watch;
pub use access::Access;
pub use engine::{Engine, REPLIES_MAX, WORKS_MAX};
pub use error::EngineError;
pub use files::directory::create_directory;
pub use keyspace::ahead::Ahead;
pub use keyspace::latch::Latch;
pub use keyspace::stats::KeyspaceStats;
pub use keyspace::Keyspace;
pub use meter::{GoOn, Site, HANDLER_STEPS, TURN_STEPS};
pub use options::{
    Allotments, Allowance, EngineOptions, KeyspaceOptions, Notify, Sync, PENDING_BYTES,
};
pub use pool::Handlers;
pub use record::{score_key, score_of_key, NAME_BYTES_MAX};
pub use types::{
    Blocks, Census, Committed, Database, Entry, Expired, Header, Keys, Kind, Lookups, Object,
    Order, Outcome, Page, Seq, Stop, Table, Text, Waiter, DATABASES,
};
