//! What lies on the disk: the data directory, RocksDB, its logs as they are found at a start.

pub(crate) mod directory;
pub(crate) mod rocks;
mod shim;
pub(crate) mod wal;
