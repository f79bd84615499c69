//! What the keyspaces of an engine have in common.

use crate::files::directory::Directory;
use crate::files::rocks::{Commons, Db};
use crate::files::wal;
use crate::log::Pending;
use crate::memory::budgets::{Buffers, Memory};
use crate::naming;
use crate::pool::{Handlers, Pool};
use crate::record::{FORMAT, FORMATS_BEFORE, FORMAT_NAMED, FORMAT_VERSION};
use crate::{EngineError, KeyspaceOptions};
use rocksdb::Options;
use std::path::Path;
use std::sync::Arc;

pub(crate) struct Shared {
    pub directory: Directory,
    pub commons: Commons,
    pub memory: Memory,
    pub pending: Arc<Pending>,
    pub handlers: Handlers,
    pub first_handlers: Handlers,
    pub streams: Handlers,
    /// Committers. A write may stall for seconds on one tenant's slow device or full level; then
    /// more threads are started, so that it stalls nobody else.
    pub committers: Pool,
    /// For openings, which may have to read a long log.
    pub openers: Pool,
    /// For what nobody waits for: see [`crate::keyspace::upkeep`].
    pub keepers: Pool,
    /// One thread: see [`crate::keyspace::reclaim`].
    pub reclaimer: Pool,
}

impl Shared {
    /// Opens or creates the database of the tenant whose keyspace has number `id`. Blocks.
    /// REQUIRES: [`Directory::is_there`].
    pub(crate) fn open_db(
        &self,
        id: u64,
        tenant: &str,
        directory: &Path,
        options: &KeyspaceOptions,
        buffers: &Buffers,
    ) -> Result<Db, EngineError> {
        wal::check(tenant, directory, wal::boot())?;
        let part_bytes = self.memory.enter(id, buffers);
        let options = self.commons.options(options, &buffers.cache(), part_bytes);
        let opened = open_or_create(tenant, directory, &options);
        if opened.is_err() {
            self.memory.leave(id, buffers);
        }
        opened
    }

    /// For reads while the directory cannot be written.
    pub(crate) fn open_read_only(
        &self,
        id: u64,
        directory: &Path,
        options: &KeyspaceOptions,
        buffers: &Buffers,
    ) -> Result<Db, rocksdb::Error> {
        let part_bytes = self.memory.enter(id, buffers);
        let options = self.commons.options(options, &buffers.cache(), part_bytes);
        let opened = Db::open_read_only(&options, directory);
        if opened.is_err() {
            self.memory.leave(id, buffers);
        }
        opened
    }
}

fn open_or_create(tenant: &str, directory: &Path, options: &Options) -> Result<Db, EngineError> {
    let failed = |message: String| EngineError::Open {
        tenant: tenant.to_owned(),
        directory: directory.to_owned(),
        message,
    };
    let db = Db::open(options, directory).map_err(|error| failed(error.into_string()))?;
    let found = db.rocks.get(FORMAT);
    let found = found.map_err(|error| failed(error.into_string()))?;
    let current = match found.as_deref() {
        Some(version) if version == FORMAT_NAMED => return Ok(db),
        Some(version) if version == FORMAT_VERSION => true,
        Some(version) if !FORMATS_BEFORE.contains(&version) => {
            return Err(failed(format!(
                "its records have format {}, this version reads only up to {}",
                version.escape_ascii(),
                FORMAT_NAMED.escape_ascii()
            )))
        }
        // New, or of an older version, which would not understand what this one may write.
        _ => false,
    };
    if !naming::convert(&db.rocks).map_err(failed)? && !current {
        let noted = db.rocks.put(FORMAT, FORMAT_VERSION);
        noted.map_err(|error| failed(error.into_string()))?;
    }
    Ok(db)
}
