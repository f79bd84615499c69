//! Watches: whether a key changed since somebody looked (WATCH).

use crate::shard::Key;
use crate::Keyspace;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

/// Becomes dirty once its key is written, deleted or cleared, and stays so.
pub struct Watch {
    keyspace: Arc<Keyspace>,
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

impl Keyspace {
    /// Watches a key from now on. If its entry is in memory (read it first), its expiry is watched
    /// too: [`Watch::dirty_at`].
    pub fn watch(&self, key: &[u8]) -> Watch {
        let mut shard = self.shards[self.shard_of(key) as usize].lock();
        let expire_at_ms = shard.expiring(key).and_then(|entry| entry.expire_at_ms);
        let key = Key::from_slice(key);
        let flag = shard.watched.entry(key.clone()).or_default();
        Watch {
            keyspace: self
                .me
                .upgrade()
                .expect("a keyspace is watched through its Arc"),
            key,
            flag: Some(Arc::clone(flag)),
            expire_at_ms,
        }
    }
}

impl Watch {
    /// Whether the key was written, deleted or cleared since.
    #[must_use]
    pub fn dirty(&self) -> bool {
        let flag = self.flag.as_ref();
        flag.is_some_and(|flag| flag.load(Ordering::Acquire))
    }

    /// As [`Watch::dirty`], or whether the key's time has come since: `watched_at_ms` is when the
    /// watch began (a key that was already expired then has not changed).
    #[must_use]
    pub fn dirty_at(&self, watched_at_ms: u64, now_ms: u64) -> bool {
        let expired = self.expire_at_ms;
        self.dirty() || expired.is_some_and(|at| at > watched_at_ms && at <= now_ms)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let index = self.keyspace.shard_of(&self.key) as usize;
        let mut shard = self.keyspace.shards[index].lock();
        // Released under the lock, so that of two last watchers one sees that it is the last.
        drop(self.flag.take());
        if let Some(flag) = shard.watched.get(&self.key) {
            if Arc::strong_count(flag) == 1 {
                shard.watched.remove(&self.key);
            }
        }
    }
}
