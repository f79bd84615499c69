//! Ordered reads of the keys of a database: commands on whole keyspaces. They see what is committed
//! and the command's own writes.

use crate::access::ranges::{Emit, Overlay, Span, PAGE_BYTES_MAX};
use crate::access::{misuse, Access, View};
use crate::keyspace::latch::Held;
use crate::naming::{self, Slot};
use crate::record::{self, RawKey, OBJECT};
use crate::{Blocks, Census, Database, Entry, Order, Page, Stop, DATABASES};
use bytes::Bytes;
use std::ops::Bound;
use std::sync::atomic::Ordering;

/// Live keys are counted one by one up to here (about 50 ms); beyond, RocksDB's estimate is used.
const COUNTED_KEYS_MAX: u64 = 100_000;

impl Access<'_> {
    /// Up to `limit` live objects of its database between two keys, in key order; fewer when they
    /// are large. Needs [`crate::Keys::None`] or [`crate::Keys::All`]; never in phase 1.
    ///
    /// # Errors
    /// See [`Access`].
    pub fn keys(
        &mut self,
        from: Bound<&[u8]>,
        to: Bound<&[u8]>,
        order: Order,
        limit: usize,
        blocks: Blocks,
    ) -> Result<Page<Entry>, Stop> {
        let mut span = span_of(self.slot(), (from, to), order);
        if limit == 0 {
            return Ok(Page::default());
        }
        span.read_ahead_of(self.walked, limit);
        let now_ms = self.now_ms();
        let (mut items, mut more, mut bytes) = (Vec::new(), false, 0);
        let mut damaged = None;
        self.objects(&span, blocks, &mut |raw, value| {
            match record::decode(value) {
                Some(entry) if entry.live(now_ms) => {
                    bytes += raw.len() + value.len();
                    let (_, key) = naming::parse(&raw[1..]);
                    items.push((Bytes::copy_from_slice(key), entry));
                }
                Some(_) => {}
                None => damaged = Some(raw[1..].escape_ascii().to_string()),
            }
            more = items.len() >= limit || bytes >= PAGE_BYTES_MAX;
            Ok(!more && damaged.is_none())
        })?;
        self.walked.0 += items.len();
        self.walked.1 += bytes;
        self.hold(bytes)?;
        match damaged {
            None => Ok(Page { items, more }),
            Some(key) => {
                let message = format!("the record of key \"{key}\" is damaged");
                Err(self.keyspace.read_error(message).into())
            }
        }
    }

    /// The number of live keys of its database: exact up to 100,000, estimated beyond.
    ///
    /// # Errors
    /// See [`Access`]. As [`Access::keys`], not in phase 1.
    pub fn estimate_keys(&mut self) -> Result<u64, Stop> {
        self.census().map(|census| census.keys)
    }

    /// Counts the live keys of its database and those of them that expire: exact up to 100,000
    /// keys. Beyond, RocksDB estimates all keys, of which this database has as large a part as of
    /// the bytes in files, and as many of them are said to expire as of the first 100,000 in byte
    /// order.
    ///
    /// # Errors
    /// As [`Access::estimate_keys`].
    pub fn census(&mut self) -> Result<Census, Stop> {
        let all = (Bound::Unbounded, Bound::Unbounded);
        let span = span_of(self.slot(), all, Order::Up);
        let now_ms = self.now_ms();
        let (mut count, mut expiring, mut ends_ms) = (0, 0, 0u128);
        self.objects(&span, Blocks::Pass, &mut |_, value| {
            match record::expires_at(value) {
                Some(u64::MAX) => count += 1,
                Some(at_ms) if at_ms > now_ms => {
                    count += 1;
                    expiring += 1;
                    ends_ms += u128::from(at_ms);
                }
                _ => {}
            }
            Ok(count < COUNTED_KEYS_MAX)
        })?;
        let mean_ms = ends_ms / u128::from(expiring.max(1));
        let census = Census {
            keys: count,
            expiring,
            expire_at_ms_mean: u64::try_from(mean_ms).unwrap_or(u64::MAX),
        };
        if count < COUNTED_KEYS_MAX {
            return Ok(census);
        }
        let (db, part) = (self.keyspace.db()?, self.part(&span)?);
        let estimate = db.property("rocksdb.estimate-num-keys") as f64 * part;
        let keys = (estimate as u64).max(count);
        Ok(Census {
            keys,
            expiring: (keys as f64 * expiring as f64 / count as f64) as u64,
            ..census
        })
    }

    /// [`Access::census`] of each database.
    ///
    /// # Errors
    /// As [`Access::estimate_keys`].
    pub fn census_of_all(&mut self) -> Result<[Census; DATABASES], Stop> {
        let mut all = [Census::default(); DATABASES];
        let selected = self.database();
        for database in Database::all() {
            self.select(database);
            all[database.index()] = self.census()?;
            if database == Database::FIRST && !self.others()? {
                break;
            }
        }
        self.select(selected);
        Ok(all)
    }

    /// Which part of all objects lies in a span, 0 to 1, as far as files tell.
    fn part(&mut self, span: &Span) -> Result<f64, Stop> {
        if !self.others()? {
            return Ok(1.0);
        }
        let ranges = [
            rocksdb::Range::new(&span.from, &span.to),
            rocksdb::Range::new(&[OBJECT], &[OBJECT + 1]),
        ];
        let sizes = self.keyspace.db()?.rocks.get_approximate_sizes(&ranges);
        Ok(sizes[0] as f64 / sizes[1].max(1) as f64)
    }

    /// Visits the objects of a span, this command's own writes included.
    pub(crate) fn objects(
        &mut self,
        span: &Span,
        blocks: Blocks,
        emit: &mut Emit,
    ) -> Result<(), Stop> {
        match &self.view {
            View::Memory { .. } => return Err(Stop::Disk),
            View::Latched(Held::All, _) => self.keyspace.wait_all_decided(),
            View::Latched(..) => return Err(misuse("ordered keys need Keys::None or Keys::All")),
            View::Snapshot { .. } => {}
        }
        if span.is_empty() {
            return Ok(());
        }
        let mut overlay = Overlay::new();
        for object in &self.buffer.objects {
            let raw = record::object_key(&object.key);
            if raw >= span.from && raw < span.to {
                overlay.insert(raw.as_slice().into(), object.entry.as_ref().map(encode));
            }
        }
        self.merge(span, overlay, blocks, emit)
    }

    /// Whether there may be keys in other databases than the one that it works on. Most tenants use
    /// one.
    ///
    /// # Errors
    /// See [`Access`].
    pub(crate) fn others(&mut self) -> Result<bool, Stop> {
        if !self.keyspace.named.load(Ordering::Acquire) {
            // All keys are in the first slot, whether it is this one or not.
            return Ok(self.slot != 0);
        }
        let (from, to) = naming::names_of(OBJECT, self.slot);
        let (first, last) = (
            RawKey::from_slice(&[OBJECT]),
            RawKey::from_slice(&[OBJECT + 1]),
        );
        Ok(self.any_between(first, from)? || self.any_between(to, last)?)
    }

    pub(crate) fn any_between(&mut self, from: RawKey, to: RawKey) -> Result<bool, Stop> {
        let mut any = false;
        let span = Span::between(from, to, Order::Up);
        self.objects(&span, Blocks::Pass, &mut |_, _| {
            any = true;
            Ok(false)
        })?;
        Ok(any)
    }
}

/// The objects of a slot between two keys.
fn span_of(slot: Slot, (from, to): (Bound<&[u8]>, Bound<&[u8]>), order: Order) -> Span {
    let (first, end) = naming::names_of(OBJECT, slot);
    let [from, to] = [from, to].map(|bound| bound.map(|key| naming::name(slot, key)));
    let bounds = (
        from.as_ref().map(|name| &**name),
        to.as_ref().map(|name| &**name),
    );
    let mut span = Span::new(RawKey::from_slice(&[OBJECT]), end, bounds, order);
    if matches!(from, Bound::Unbounded) {
        span.from = first;
    }
    span
}

fn encode(entry: &Entry) -> Bytes {
    let mut value = record::encode_head(entry).to_vec();
    value.extend_from_slice(entry.whole().map_or(&[], |string| &string[..]));
    value.into()
}
