//! Keys and their names in a keyspace, and how these change ([`crate::naming`]).

use crate::keyspace::Keyspace;
use crate::log::buffer::Renaming;
use crate::memory::shard::{Key, Shard, Watched};
use crate::naming::{self, Moment, Name, Naming};
use crate::{Database, Keys, Seq};
use parking_lot::MutexGuard;
use std::sync::atomic::Ordering;
use std::sync::Arc;

impl Keyspace {
    /// Calls `with` with the names of keys, and the moment at which they have them, until it
    /// returns something: nothing means that names have changed meanwhile. REQUIRES: whoever uses
    /// the names makes sure of it while nobody can change them ([`crate::naming::Names::moved`]).
    pub(crate) fn with_names<R>(
        &self,
        keys: &Keys,
        mut with: impl FnMut(&[&[u8]], &Moment) -> Option<R>,
    ) -> R {
        loop {
            let now = self.names.now();
            let done = match keys {
                Keys::None | Keys::All => with(&[], &now),
                Keys::In(database, keys)
                    if now.slot(*database) == 0 && !keys.iter().any(|key| naming::marked(key)) =>
                {
                    with(keys, &now)
                }
                Keys::In(database, keys) => {
                    let keys = keys.iter().map(|key| (*database, *key));
                    now.with_names(keys, |names| with(names, &now))
                }
                Keys::Across(keys) => {
                    now.with_names(keys.iter().copied(), |names| with(names, &now))
                }
            };
            if let Some(done) = done {
                return done;
            }
        }
    }

    /// The shard of a key, locked, and the key's name.
    pub(crate) fn lock_key<'k>(
        &self,
        database: Database,
        key: &'k [u8],
    ) -> (MutexGuard<'_, Shard>, Name<'k>) {
        loop {
            let now = self.names.now();
            let name = naming::name(now.slot(database), key);
            let shard = self.shards[self.shard_of(&name) as usize].lock();
            if !self.names.moved(&now) {
                return (shard, name);
            }
        }
    }

    /// Has the processor fetch what memory knows of some keys, which are about to be asked for one
    /// after the other. Together that takes hardly longer than for one of them.
    pub fn look_ahead(&self, database: Database, keys: &[&[u8]]) {
        self.with_names(&Keys::In(database, keys), |names, _| {
            self.glance(names);
            Some(())
        });
    }

    /// For how many of some keys the database must be read: memory knows nothing of them. Others
    /// change that at any time.
    pub fn absent(&self, keys: &Keys) -> usize {
        self.with_names(keys, |names, _| {
            let known = |name: &&&[u8]| {
                let shard = &self.shards[self.shard_of(name) as usize];
                shard.lock().knows(name)
            };
            Some(names.len() - names.iter().filter(known).count())
        })
    }

    /// Gives databases other slots. REQUIRES: the caller has all keys, and `seq` is in the log.
    pub(crate) fn rename(&self, renaming: &Renaming, seq: Seq) {
        let before = self.names.now();
        for (database, key) in &renaming.touched {
            let name = naming::name(before.slot(*database), key);
            let index = self.shard_of(&name) as usize;
            self.shards[index].lock().touch(&name);
        }
        let now = &renaming.naming;
        self.names.change(now.clone(), seq, self.log.decided());
        self.move_watches(&before.naming(), now);
    }

    /// Watches of keys that were there are told; those of absent keys go to their new names.
    fn move_watches(&self, before: &Naming, now: &Naming) {
        let mut moving: Vec<(Key, Watched)> = Vec::new();
        for shard in &self.shards {
            shard.lock().watched.retain(|name, watched| {
                let (slot, key) = naming::parse(name);
                let database = before.database(slot);
                if database.is_some_and(|database| now.slot(database) == slot) {
                    return true;
                }
                match database.filter(|_| watched.absent) {
                    None => watched.changed.store(true, Ordering::Release),
                    Some(database) => {
                        let name = naming::name(now.slot(database), key);
                        moving.push((Key::from_slice(&name), std::mem::take(watched)));
                    }
                }
                false
            });
        }
        for (name, watched) in moving {
            let mut shard = self.shards[self.shard_of(&name) as usize].lock();
            // Who watched it may have gone meanwhile, and found nothing to take away.
            if Arc::strong_count(&watched.changed) > 1 {
                shard.watched.insert(name, watched);
            }
        }
    }
}
