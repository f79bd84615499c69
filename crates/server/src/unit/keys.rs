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
    pub fn wait(&mut self, keyspace: &Keyspace, waiter: Waiter) -> bool {
        let waits = self.with_keys(|keys| match self.only_reads() {
            true => keyspace.wait_to_read(keys, waiter),
            false => keyspace.wait(keys, waiter),
        });
        self.vain = self.vain.saturating_add(waits.into());
        waits
    }

    /// Its keys, for phase 2 ([`Keyspace::latch`]).
    pub fn latch(&mut self, keyspace: &Arc<Keyspace>, waiter: Waiter) -> Option<Latch> {
        let latch = self.with_keys(|keys| match self.only_reads() {
            true => keyspace.latch_to_read(keys, waiter),
            false => keyspace.latch(keys, waiter),
        });
        self.vain = self.vain.saturating_add(latch.is_none().into());
        latch
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

#[cfg(test)]
mod tests {
    use super::super::{tests::unit, VAIN_MAX};
    use super::*;
    use engine::{Allotments, Engine, EngineOptions, KeyspaceOptions, Sync};
    use std::sync::mpsc::channel;

    /// Latches two keys for one who reads them.
    fn read(keyspace: &Arc<Keyspace>, keys: [&str; 2]) -> Option<Latch> {
        let keys = keys.map(|key| (Database::FIRST, key.as_bytes()));
        keyspace.latch_to_read(&Keys::Across(&keys), Box::new(|| {}))
    }

    /// Has `unit` look for `a` and `b` while one who reads has one of them, and lets the next have
    /// the other before it goes.
    fn look_in_vain(unit: &mut Unit, keyspace: &Arc<Keyspace>, times: u8) -> Latch {
        let mut held = read(keyspace, ["a", "x"]).expect("it is free");
        for turn in 0..times {
            let (told, when) = channel();
            let waiter = Box::new(move || told.send(()).unwrap());
            assert!(unit.latch(keyspace, waiter).is_none(), "one is taken");
            let other = [["b", "y"], ["a", "x"]][usize::from(turn % 2)];
            held = read(keyspace, other).expect("nobody waits for it");
            assert_eq!(when.try_recv(), Ok(()), "look again");
        }
        held
    }

    #[test]
    fn who_reads_in_turns_is_in_the_way_of_a_writer_a_few_times_only() {
        let directory = tempfile::tempdir().unwrap();
        let engine = Engine::open(EngineOptions::new(directory.path())).unwrap();
        let options = KeyspaceOptions::new(Sync::Never, Allotments::default());
        let keyspace = engine.keyspace("t", options).unwrap();
        let mut writer = unit(&["MSET", "a", "1", "b", "2"]);
        let held = look_in_vain(&mut writer, &keyspace, VAIN_MAX);
        assert_eq!(writer.scope(), Scope::Everything);
        let (told, when) = channel();
        let waiter = Box::new(move || told.send(()).unwrap());
        assert!(writer.latch(&keyspace, waiter).is_none());
        assert!(read(&keyspace, ["c", "d"]).is_none(), "nobody passes it");
        assert!(when.try_recv().is_err());
        drop(held);
        assert_eq!(when.try_recv(), Ok(()));
        assert!(writer.latch(&keyspace, Box::new(|| {})).is_some());
    }

    #[test]
    fn who_needs_a_single_key_is_queued_for_it_and_asks_for_nothing_more() {
        let mut one = unit(&["SET", "a", "1"]);
        one.vain = VAIN_MAX;
        assert_eq!(one.scope(), Scope::Keys);
        let mut several = unit(&["MGET", "a", "b"]);
        several.vain = VAIN_MAX;
        assert_eq!(several.scope(), Scope::Snapshot, "it needs no latch");
    }
}
