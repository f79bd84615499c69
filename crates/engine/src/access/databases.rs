//! A command on numbered databases: which one it works on, and those that empty or exchange them.

use crate::access::{misuse, Access, View};
use crate::keyspace::latch::Held;
use crate::log::buffer::Renaming;
use crate::memory::shard::Key;
use crate::naming::{self, Moment, Name, Naming, Slot};
use crate::record::OBJECT;
use crate::{Database, EngineError, Stop};
use std::sync::atomic::Ordering;

impl Access<'_> {
    /// Has the command work on another of the tenant's databases from now on. It begins with
    /// [`Database::FIRST`].
    #[inline]
    pub fn select(&mut self, database: Database) {
        self.database = database;
        self.slot = self.moment.slot(database);
    }

    /// The database it works on.
    #[must_use]
    pub fn database(&self) -> Database {
        self.database
    }

    /// The name of a key of the database that it works on.
    #[inline]
    pub(crate) fn name<'k>(&self, key: &'k [u8]) -> Name<'k> {
        naming::name(self.slot, key)
    }

    /// Where the database that it works on lies.
    pub(crate) fn slot(&self) -> Slot {
        self.slot
    }

    fn has_all(&self, who: &'static str) -> Result<(), Stop> {
        match &self.view {
            View::Latched(Held::All, _)
            | View::Snapshot {
                may_write: true, ..
            } => Ok(()),
            _ => Err(misuse(who)),
        }
    }

    /// Removes everything (FLUSHALL). REQUIRES: declared [`crate::Keys::All`].
    ///
    /// # Errors
    /// See [`Access`].
    pub fn clear(&mut self) -> Result<(), Stop> {
        self.has_all("clear() needs Keys::All")?;
        self.buffer.clear();
        self.owners.clear();
        if self.moment.naming() != Naming::default() {
            self.exchange(Naming::default());
        }
        Ok(())
    }

    /// Removes everything of the database that it works on (FLUSHDB). REQUIRES: declared
    /// [`crate::Keys::All`].
    ///
    /// # Errors
    /// See [`Access`]; [`EngineError::Slots`].
    pub fn clear_database(&mut self) -> Result<(), Stop> {
        self.has_all("clear_database() needs Keys::All")?;
        if !self.others()? {
            return self.clear();
        }
        let (from, to) = naming::names_of(OBJECT, self.slot);
        let written = |name: &[u8]| naming::parse(name).0 == self.slot;
        let wrote = self.buffer.objects.iter().any(|write| written(&write.key));
        if !self.any_between(from, to)? && !wrote {
            return Ok(());
        }
        let emptied = self.slot;
        let Some(naming) = self.moment.naming().renewed(self.database) else {
            return Err(EngineError::Slots.into());
        };
        self.exchange(naming).emptied.push(emptied);
        self.buffer.forget_slot(emptied);
        self.owners
            .retain(|(id, ..)| naming::slot_of(*id) != emptied);
        Ok(())
    }

    /// Exchanges two databases (SWAPDB). REQUIRES: declared [`crate::Keys::All`].
    ///
    /// # Errors
    /// See [`Access`].
    pub fn swap_databases(&mut self, one: Database, other: Database) -> Result<(), Stop> {
        self.has_all("swap_databases() needs Keys::All")?;
        if one == other {
            return Ok(());
        }
        let appearing = self.appearing([one, other])?;
        let naming = self.moment.naming().swapped(one, other);
        self.exchange(naming).touched.extend(appearing);
        Ok(())
    }

    /// Watched keys that are absent, and are there once these two databases are exchanged.
    fn appearing(&mut self, databases: [Database; 2]) -> Result<Vec<(Database, Key)>, Stop> {
        let moment = self.keyspace.names.now();
        let slots = databases.map(|database| moment.slot(database));
        let mut watched = Vec::new();
        for shard in &self.keyspace.shards {
            let shard = shard.lock();
            let absent = shard.watched.iter().filter(|(_, watched)| watched.absent);
            watched.extend(absent.filter_map(|(name, _)| {
                let (slot, key) = naming::parse(name);
                let at = slots.iter().position(|one| *one == slot)?;
                Some((at, Key::from_slice(key)))
            }));
        }
        let mut appearing = Vec::new();
        for (at, key) in watched {
            let name = naming::name(self.moment.slot(databases[1 - at]), &key);
            let entry = self.load(&name)?;
            if entry.is_some_and(|entry| entry.live(self.now_ms())) {
                appearing.push((databases[at], key));
            }
        }
        Ok(appearing)
    }

    /// Has databases other slots from here on.
    fn exchange(&mut self, naming: Naming) -> &mut Renaming {
        let before = std::mem::replace(&mut self.moment, Moment::of(naming.clone()));
        self.slot = self.moment.slot(self.database);
        self.keyspace.named.store(true, Ordering::Release);
        self.buffer.rename(&before.naming(), naming)
    }
}
