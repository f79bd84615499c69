//! Reads ahead of a command that has several keys to read from the disk.
//!
//! A command reads its keys one after the other, and the disk could serve several at once. Whoever
//! has nothing else to do reads some of them for it ([`Ahead::read`]), from the last to the first,
//! while it goes on from the first to the last. It takes what was read, waits for what is being
//! read, and reads what nobody has begun with, so it is never slower for the help.
//!
//! What is read for it is what it would find: the keys are latched meanwhile, and the latch is
//! released when the last such read has ended. Memory is filled by the command alone.

use crate::keyspace::latch::{Held, Latch};
use crate::keyspace::Keyspace;
use crate::memory::shard::Key;
use crate::Entry;
use parking_lot::{Condvar, Mutex};
use std::sync::Arc;

/// Bytes of values that were read and not taken, beyond which nobody reads ahead. What is large is
/// read at the disk's bandwidth anyway.
const BYTES_MAX: usize = 1 << 20;

/// What is read ahead of one command. It is made before the command has its keys, so that helpers
/// can be asked for with the command.
#[derive(Default)]
pub struct Ahead {
    state: Mutex<State>,
    /// Somebody has ended a read.
    ended: Condvar,
}

#[derive(Default)]
struct State {
    /// While the command has its keys.
    keyspace: Option<Arc<Keyspace>>,
    /// Its keys that were not in memory: sorted by (shard, key), no repeats.
    keys: Vec<(u32, Key, Place)>,
    /// Of those before, nobody but the command reads any.
    left: usize,
    /// Reads under way.
    reading: usize,
    /// Of values that wait to be taken.
    bytes: usize,
}

/// What became of a key.
enum Place {
    /// Nobody has begun to read it.
    Unread,
    Reading,
    /// As [`Ahead::tell`] says.
    Read(Option<Entry>, u64),
    /// The command has it, or reads it itself.
    Over,
}

impl std::fmt::Debug for Ahead {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ahead").finish_non_exhaustive()
    }
}

impl Ahead {
    /// The key to be read next for the command, which is under way from now on, and where it is to
    /// be told of.
    pub(crate) fn next(&self) -> Option<(Arc<Keyspace>, Key, usize)> {
        self.state.lock().next()
    }

    /// What the database said of a key, and in which epoch of the log. `None`: the command must
    /// find out for itself.
    pub(crate) fn tell(&self, at: usize, read: Option<(Option<Entry>, u64)>) {
        let mut state = self.state.lock();
        state.reading -= 1;
        state.keys[at].2 = match read {
            Some((entry, epoch)) => {
                state.bytes += bytes_of(&entry);
                Place::Read(entry, epoch)
            }
            None => Place::Over,
        };
        drop(state);
        self.ended.notify_all();
    }

    /// What was read of a key in this epoch, once that is known. `None`: the caller must read it,
    /// and nobody else does.
    pub(crate) fn take(&self, shard: u32, name: &[u8], epoch: u64) -> Option<Option<Entry>> {
        let mut state = self.state.lock();
        let at = state
            .keys
            .binary_search_by(|(s, key, _)| (*s, key.as_slice()).cmp(&(shard, name)))
            .ok()?;
        while matches!(state.keys[at].2, Place::Reading) {
            self.ended.wait(&mut state);
        }
        match std::mem::replace(&mut state.keys[at].2, Place::Over) {
            Place::Read(entry, read_in) => {
                state.bytes -= bytes_of(&entry);
                (read_in == epoch).then_some(entry)
            }
            _ => None,
        }
    }

    fn begin(&self, keyspace: &Arc<Keyspace>, held: &Held) {
        let Held::Keys(keys) = held else {
            return;
        };
        let absent = keys.iter().filter(|(index, key)| {
            let shard = &keyspace.shards[*index as usize];
            !shard.lock().knows(key)
        });
        let keys: Vec<_> = absent
            .map(|(index, key)| (*index, key.clone(), Place::Unread))
            .collect();
        let mut state = self.state.lock();
        state.left = keys.len();
        state.keys = keys;
        state.keyspace = Some(Arc::clone(keyspace));
    }

    /// Nobody reads anything more for the command, and what is under way has ended.
    pub(crate) fn end(&self) {
        let mut state = self.state.lock();
        state.left = 0;
        while state.reading > 0 {
            self.ended.wait(&mut state);
        }
        *state = State::default();
    }
}

impl State {
    fn next(&mut self) -> Option<(Arc<Keyspace>, Key, usize)> {
        let keyspace = self.keyspace.as_ref().filter(|_| self.bytes < BYTES_MAX)?;
        while self.left > 0 {
            self.left -= 1;
            let (_, key, place) = &mut self.keys[self.left];
            if matches!(place, Place::Unread) {
                *place = Place::Reading;
                self.reading += 1;
                return Some((Arc::clone(keyspace), key.clone(), self.left));
            }
        }
        None
    }
}

fn bytes_of(entry: &Option<Entry>) -> usize {
    entry.as_ref().map_or(0, Entry::value_bytes)
}

impl Latch {
    /// From now on others may read for its holder, until it is dropped.
    pub fn read_ahead(&mut self, ahead: Arc<Ahead>) {
        ahead.begin(&self.keyspace, &self.held);
        if let Some(before) = self.ahead.replace(ahead) {
            before.end();
        }
    }
}
