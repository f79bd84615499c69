//! Active expiry: deletes what nobody asked for after its time came.

use crate::record::{self, EXPIRY};
use crate::{Access, EngineError, Expired, Keys, Keyspace, Outcome, Place};
use rocksdb::ReadOptions;
use std::sync::Arc;

impl Keyspace {
    /// Looks at up to `limit` entries of the expiry index that are due at `now_ms`, deletes the
    /// objects whose time it is, through the ordinary write path, and drops the entries. Keys
    /// that somebody works on are left for the next time. Blocks: for handlers.
    ///
    /// # Errors
    /// Reading the index failed, or writes are refused.
    pub fn expire_some(
        self: &Arc<Self>,
        now_ms: u64,
        limit: usize,
    ) -> Result<Expired, EngineError> {
        let (due, next_due_ms) = self.due(now_ms, limit)?;
        let mut expired = Expired {
            next_due_ms,
            ..Expired::default()
        };
        for (at_ms, key) in due {
            expired.examined += 1;
            match self.expire_one(now_ms, at_ms, &key)? {
                Some(true) => expired.deleted += 1,
                Some(false) => {}
                // Full: the log has enough to do; the index remembers the rest.
                None => break,
            }
        }
        // The index is read from the database: without this the next call would find them again.
        self.settle();
        Ok(expired)
    }

    /// `None`: the log is full.
    fn expire_one(
        self: &Arc<Self>,
        now_ms: u64,
        at_ms: u64,
        key: &[u8],
    ) -> Result<Option<bool>, EngineError> {
        let keys = [key];
        let keys = Keys::Some(&keys);
        match self.try_run(&keys, now_ms, &mut |access| access.expire(key, at_ms)) {
            Outcome::Done { reply, .. } => Ok(Some(reply)),
            Outcome::Failed(error) => Err(error),
            Outcome::Busy => Ok(Some(false)),
            Outcome::Full => Ok(None),
            Outcome::Disk => {
                let Some(latch) = self.latch(&keys, Box::new(|| {})) else {
                    return Ok(Some(false));
                };
                let expire = &mut |access: &mut Access| access.expire(key, at_ms);
                match self.run((&latch, Place::Handler), now_ms, expire) {
                    Ok((deleted, _)) => Ok(Some(deleted)),
                    Err(EngineError::Full) => Ok(None),
                    Err(error) => Err(error),
                }
            }
        }
    }

    /// Due entries of the index, and when the next one after them is due.
    #[allow(clippy::type_complexity)] // a list and a time, used once
    fn due(
        &self,
        now_ms: u64,
        limit: usize,
    ) -> Result<(Vec<(u64, Vec<u8>)>, Option<u64>), EngineError> {
        let db = self.db()?;
        let mut options = ReadOptions::default();
        options.set_iterate_lower_bound([EXPIRY]);
        options.set_iterate_upper_bound([EXPIRY + 1]);
        let mut iterator = db.rocks.raw_iterator_opt(options);
        iterator.seek_to_first();
        let mut due = Vec::new();
        let mut next = None;
        while let Some((at_ms, key)) = iterator.key().and_then(record::parse_expiry_key) {
            if at_ms > now_ms || due.len() == limit {
                next = Some(at_ms);
                break;
            }
            due.push((at_ms, key.to_vec()));
            iterator.next();
        }
        match iterator.status() {
            Ok(()) => Ok((due, next)),
            Err(error) => Err(self.read_error(error.into_string())),
        }
    }
}
