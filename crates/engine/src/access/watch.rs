//! Watches: whether a key changed since somebody looked (WATCH).

use crate::access::{misuse, undeclared, Access, View};
use crate::keyspace::shard_mut;
use crate::memory::shard::{Key, Shard};
use crate::{Database, Keyspace, Stop};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

/// Becomes dirty once its key is written, deleted or cleared, and stays so.
pub struct Watch {
    keyspace: Arc<Keyspace>,
    database: Database,
    key: Key,
    /// `None` only while it is being dropped.
    flag: Option<Arc<AtomicBool>>,
    expire_at_ms: Option<u64>,
}

impl std::fmt::Debug for Watch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watch")
            .field("dirty", &self.dirty())
            .finish_non_exhaustive()
    }
}

impl Access<'_> {
    /// Watches keys from now on, and their expiry: all of them, or none if one of them has to be
    /// looked up on disk.
    ///
    /// # Errors
    /// See [`Access`].
    pub fn watch<'k>(
        &mut self,
        keys: impl Iterator<Item = &'k [u8]> + Clone,
    ) -> Result<Vec<Watch>, Stop> {
        let lookups = self.lookups;
        // First what may stop the command: a watch that were made before would go while its shard
        // is locked, which it needs.
        let found: Result<Vec<_>, Stop> = keys
            .clone()
            .map(|key| Ok(self.get(key)?.map(|entry| entry.expire_at_ms)))
            .collect();
        let found = found?;
        // Nobody asked for their values.
        self.lookups = lookups;
        let keyspace = self.keyspace.me.upgrade();
        let keyspace = keyspace.expect("a keyspace is used through its Arc");
        keys.zip(found)
            .map(|(key, found)| {
                Ok(Watch {
                    flag: Some(self.enter(key, found.is_none())?),
                    keyspace: Arc::clone(&keyspace),
                    database: self.database(),
                    key: key.into(),
                    expire_at_ms: found.flatten(),
                })
            })
            .collect()
    }

    /// What tells of changes of a key that was looked up.
    fn enter(&mut self, key: &[u8], absent: bool) -> Result<Arc<AtomicBool>, Stop> {
        let name = self.name(key);
        let name = &*name;
        let (keyspace, index) = (self.keyspace, self.keyspace.shard_of(name));
        let enter = |shard: &mut Shard| {
            let watched = shard.watched.entry(name.into()).or_default();
            watched.absent = absent;
            Arc::clone(&watched.changed)
        };
        let flag = match &mut self.view {
            View::Memory { shards } => shard_mut(shards, index).map(enter),
            View::Latched(held, _) => held
                .covers(index, name)
                .then(|| enter(&mut keyspace.shards[index as usize].lock())),
            View::Snapshot { .. } => return Err(misuse("a snapshot never changes")),
        };
        flag.ok_or_else(undeclared)
    }
}

impl Watch {
    /// Whether the key was written, deleted or cleared since.
    #[must_use]
    pub fn dirty(&self) -> bool {
        let flag = self.flag.as_ref();
        flag.is_some_and(|flag| flag.load(Ordering::Acquire))
    }

    /// As [`Watch::dirty`], or whether the key's time has come since. (A key that had expired
    /// before it was watched has not changed.)
    #[must_use]
    pub fn dirty_at(&self, now_ms: u64) -> bool {
        self.dirty() || self.expire_at_ms.is_some_and(|at| at <= now_ms)
    }

    /// The key, and its database.
    #[must_use]
    pub fn key(&self) -> (Database, &[u8]) {
        (self.database, &self.key)
    }
}

/// REQUIRES: the thread has no shard locked.
impl Drop for Watch {
    fn drop(&mut self) {
        let (mut shard, name) = self.keyspace.lock_key(self.database, &self.key);
        // Released under the lock, so that of two last watchers one sees that it is the last.
        drop(self.flag.take());
        if let Some(watched) = shard.watched.get(&*name) {
            if Arc::strong_count(&watched.changed) == 1 {
                shard.watched.remove(&*name);
            }
        }
    }
}
