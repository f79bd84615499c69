//! What is kept in memory: objects in shards, pins of records, and how large RocksDB's caches and
//! memtables may be.

pub(crate) mod budgets;
pub(crate) mod pins;
pub(crate) mod shard;
