//! Active expiry: deletes what nobody asked for after its time came.
//!
//! The expiry index is walked from where the last walk ended: behind it lie tombstones of what was
//! deleted, and stepping over them again and again would cost more than the deleting. So the walk
//! need not wait until its deletions are committed, either. Keys that somebody works on are
//! remembered. A write may wait so long that its entry is committed after the walk has passed its
//! time. A second walk, a minute later, finds these; it has little to do.

use crate::keyspace::walks::{at, Due, Walks, BEHIND_MS, STRETCH_MS};
use crate::record::{self, RawKey, EXPIRY};
use crate::{Access, EngineError, Expired, Keyspace, Outcome, Site, Stop};
use rocksdb::ReadOptions;
use std::sync::Arc;

/// Keys that are deleted together: their shards are locked for some 20 us.
const GROUP: usize = 16;
/// A part of the index ends behind this many bytes of keys.
const PART_BYTES: usize = 1 << 20;
/// Keys that somebody works on, of which so many are remembered; the walk waits for them then.
const LEFT_MAX: usize = 1_024;

/// A part of the index.
#[derive(Default)]
struct Part {
    due: Vec<Due>,
    /// There are more that are due.
    more: bool,
    /// When the entry behind them is.
    next_ms: Option<u64>,
}

/// How the deletion of some keys ended.
enum Group {
    Deleted(u64),
    /// Not all at once: somebody works on one of them, they are too many records for one go, or
    /// need more memory than the tenant has left.
    OneByOne,
    /// The log has enough to do.
    Full,
}

impl Keyspace {
    /// Looks at up to `limit` entries of the expiry index that are due at `now_ms`, deletes the
    /// objects whose time it is, through the ordinary write path, and drops the entries. It does
    /// not wait for the commit. For handlers: it reads from the disk.
    ///
    /// # Errors
    /// Reading failed, or writes are refused.
    pub fn expire_some(
        self: &Arc<Self>,
        now_ms: u64,
        limit: usize,
    ) -> Result<Expired, EngineError> {
        let mut expired = Expired {
            next_due_ms: Some(now_ms),
            ..Expired::default()
        };
        // One at a time, and no handler waits until the database is open.
        let Some(mut walks) = self.walks.try_lock() else {
            return Ok(expired);
        };
        if self.await_open(Box::new(|| {})).is_none() {
            return Ok(expired);
        }
        // While nothing can be deleted, or read, that is said elsewhere, once a try.
        if self.log.failure().is_some() || matches!(self.gate.now(), Some(Err(_))) {
            return Ok(expired);
        }
        walks.start(now_ms, self.log.epoch());
        let left = std::mem::take(&mut walks.left);
        self.expire_singly(&left, &mut walks, &mut expired)?;
        let part = self.part(&walks.first, &[EXPIRY + 1], now_ms, limit)?;
        if let Some(from) = self.expire_part(&part.due, &mut walks, &mut expired)? {
            walks.first = from;
        }
        let more = part.more || walks.is_long();
        if expired.full || !walks.left.is_empty() {
            // It is due again at the next look.
            expired.more = more && !expired.full && walks.left.len() < LEFT_MAX;
            return Ok(expired);
        }
        if more {
            expired.more = true;
        } else {
            self.look_back(limit, &mut walks, &mut expired)?;
        }
        expired.next_due_ms = part.next_ms.into_iter().chain(walks.look_back_at()).min();
        Ok(expired)
    }

    /// A stretch of the second walk.
    fn look_back(
        self: &Arc<Self>,
        limit: usize,
        walks: &mut Walks,
        expired: &mut Expired,
    ) -> Result<(), EngineError> {
        let (begin_ms, end_ms) = (at(&walks.second), walks.now_ms.saturating_sub(BEHIND_MS));
        let until_ms = (begin_ms + STRETCH_MS).min(end_ms);
        if until_ms <= begin_ms {
            return Ok(());
        }
        let until = record::expiry_key(until_ms, b"");
        let part = self.part(&walks.second, &until, walks.now_ms, limit)?;
        match self.expire_part(&part.due, walks, expired)? {
            Some(from) if part.more || expired.full || walks.is_long() => walks.second = from,
            None if expired.full => {}
            _ => walks.second = until,
        }
        expired.more = part.more || walks.is_long() || until_ms + STRETCH_MS <= end_ms;
        Ok(())
    }

    /// Deletes what is due; returns the key of the index behind the last that was looked at.
    fn expire_part(
        self: &Arc<Self>,
        due: &[Due],
        walks: &mut Walks,
        expired: &mut Expired,
    ) -> Result<Option<RawKey>, EngineError> {
        let mut from = None;
        for group in due.chunks(GROUP) {
            if walks.left.len() >= LEFT_MAX || walks.is_long() {
                break;
            }
            match self.expire_group(walks, group)? {
                Group::Deleted(deleted) => {
                    expired.deleted += deleted;
                    expired.examined += group.len() as u64;
                }
                Group::OneByOne => self.expire_singly(group, walks, expired)?,
                Group::Full => {
                    expired.full = true;
                    break;
                }
            }
            from = group.last().map(|(at_ms, key)| {
                let mut behind = record::expiry_key(*at_ms, key);
                behind.push(0);
                behind
            });
        }
        Ok(from)
    }

    /// The same one by one, leaving keys that somebody works on, and the rest of a long go, for
    /// another.
    fn expire_singly(
        self: &Arc<Self>,
        due: &[Due],
        walks: &mut Walks,
        expired: &mut Expired,
    ) -> Result<(), EngineError> {
        for (at, one) in due.iter().enumerate() {
            if walks.is_long() {
                walks.left.extend_from_slice(&due[at..]);
                break;
            }
            match self.expire_group(walks, std::slice::from_ref(one))? {
                Group::Deleted(deleted) => {
                    expired.deleted += deleted;
                    expired.examined += 1;
                }
                Group::OneByOne | Group::Full => walks.left.push(one.clone()),
            }
        }
        Ok(())
    }

    fn expire_group(
        self: &Arc<Self>,
        walks: &mut Walks,
        group: &[Due],
    ) -> Result<Group, EngineError> {
        let names: Vec<&[u8]> = group.iter().map(|(_, key)| key.as_slice()).collect();
        // A key by itself may be as many records as it is: a string of 512 MiB is 32,768.
        let site = match group {
            [_] => Site::Apart,
            _ => Site::Handler,
        };
        let (now_ms, steps) = (walks.now_ms, &mut walks.steps);
        let expire = &mut |access: &mut Access| -> Result<u64, Stop> {
            let mut deleted = 0;
            for (at_ms, key) in group {
                deleted += u64::from(access.expire(key, *at_ms)?);
            }
            *steps += access.steps_taken();
            Ok(deleted)
        };
        match self.try_named(&names, now_ms, expire) {
            Outcome::Done { reply, .. } => {
                self.kick();
                Ok(Group::Deleted(reply))
            }
            Outcome::Busy | Outcome::Failed(EngineError::Memory) => Ok(Group::OneByOne),
            Outcome::Failed(error) => Err(error),
            Outcome::Full => Ok(Group::Full),
            Outcome::Disk => match self.latch_named(&names, Box::new(|| {})) {
                Some(latch) => match self.run(&latch, site, now_ms, expire) {
                    Ok((deleted, _)) => Ok(Group::Deleted(deleted)),
                    Err(EngineError::Full) => Ok(Group::Full),
                    Err(EngineError::Large | EngineError::Memory) => Ok(Group::OneByOne),
                    Err(error) => Err(error),
                },
                None => Ok(Group::OneByOne),
            },
        }
    }

    /// Entries of the index that are due: of its keys from `from` to before `to`.
    fn part(&self, from: &[u8], to: &[u8], now_ms: u64, limit: usize) -> Result<Part, EngineError> {
        let db = self.db()?;
        let mut options = ReadOptions::default();
        options.set_iterate_lower_bound(from);
        options.set_iterate_upper_bound(to);
        // Nobody else reads the index.
        options.fill_cache(false);
        let mut iterator = db.rocks.raw_iterator_opt(options);
        iterator.seek_to_first();
        let (mut part, mut bytes) = (Part::default(), 0);
        while let Some((at_ms, key)) = iterator.key().and_then(record::parse_expiry_key) {
            part.more = at_ms <= now_ms && (part.due.len() >= limit || bytes >= PART_BYTES);
            if part.more || at_ms > now_ms {
                part.next_ms = Some(at_ms);
                break;
            }
            bytes += key.len();
            part.due.push((at_ms, key.to_vec()));
            iterator.next();
        }
        match iterator.status() {
            Ok(()) => Ok(part),
            Err(error) => Err(self.read_error(error.into_string())),
        }
    }
}
