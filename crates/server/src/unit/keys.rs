//! The keys of a unit, and what it does with them in both phases: who only reads is in the way of
//! writers only.

use std::sync::Arc;

use commands::{Action, SessionCommand};
use engine::{Access, Database, Keys, Keyspace, Latch, Outcome, Stop, Waiter, Watch};
use smallvec::SmallVec;

use super::{Scope, Unit};
use crate::data;

impl Unit {
    /// Phase 1 of it ([`Keyspace::try_run`]).
    pub fn try_run<R>(
        &self,
        keyspace: &Keyspace,
        now_ms: u64,
        run: &mut dyn FnMut(&mut Access) -> Result<R, Stop>,
    ) -> Outcome<R> {
        self.with_keys(|keys| match self.only_reads() {
            true => keyspace.try_read(keys, now_ms, run),
            false => keyspace.try_run(keys, now_ms, run),
        })
    }

    /// Waits for what is in the way of phase 1 ([`Keyspace::wait`]).
    pub fn wait(&self, keyspace: &Keyspace, waiter: Waiter) -> bool {
        self.with_keys(|keys| match self.only_reads() {
            true => keyspace.wait_to_read(keys, waiter),
            false => keyspace.wait(keys, waiter),
        })
    }

    /// Its keys, for phase 2 ([`Keyspace::latch`]).
    pub fn latch(&self, keyspace: &Arc<Keyspace>, waiter: Waiter) -> Option<Latch> {
        self.with_keys(|keys| match self.only_reads() {
            true => keyspace.latch_to_read(keys, waiter),
            false => keyspace.latch(keys, waiter),
        })
    }

    /// Calls `use_keys` with every key that the unit names, or with what it needs instead.
    pub fn with_keys<R>(&self, use_keys: impl FnOnce(&Keys<'_>) -> R) -> R {
        match self.scope() {
            Scope::Nothing | Scope::Snapshot => return use_keys(&Keys::None),
            Scope::Everything => return use_keys(&Keys::All),
            Scope::Keys => {}
        }
        let mut keys: SmallVec<[(Database, &[u8]); 8]> = SmallVec::new();
        let mut database = self.database;
        for (spec, args) in self.calls.iter() {
            let args = args.args();
            if matches!(spec.action, Action::Session(SessionCommand::Select)) {
                database = data::numbered(args.get(1)).unwrap_or(database);
            }
            data::each_key(spec, &args, database, |database, key| {
                keys.push((database, key));
            });
        }
        keys.extend(self.watches.iter().map(Watch::key));
        use_keys(&Keys::Across(&keys))
    }
}
