//! Ordered reads: the records of a collection, the keys of the keyspace.
//!
//! Both merge the database with what is not in it yet. For a collection that is the pins of its
//! stripe and the command's own writes. Pins are collected **before** the iterator is made: a
//! batch is in the database before its pins go, so what is in neither was never written.

use crate::access::strings::PIECE_BYTES;
use crate::access::{misuse, Access, View};
use crate::files::rocks::Db;
use crate::keyspace::latch::Held;
use crate::meter::Meter;
use crate::record::{self, RawKey, OBJECT, RECORD_HEAD};
use crate::{Blocks, Census, Entry, Order, Page, Stop, Table};
use bytes::Bytes;
use rocksdb::{DBRawIterator, ErrorKind, ReadOptions, ReadTier};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::{Bound, Range};

/// A page ends behind so many bytes: values may be large.
const PAGE_BYTES_MAX: usize = 1 << 20;
/// Live keys are counted one by one up to here (about 50 ms); beyond, RocksDB's estimate is used.
const COUNTED_KEYS_MAX: u64 = 100_000;

/// What it takes to find the first record of a range, among some memtables and files.
const SEEK_STEPS: u64 = 4;
/// Read ahead of the pieces of a string: beyond, the device gives no more a second.
const PIECES_AHEAD_BYTES: usize = 256 << 10;

type Overlay = BTreeMap<Box<[u8]>, Option<Bytes>>;

/// A half-open range of raw keys, read in one direction.
struct Span {
    from: RawKey,
    to: RawKey,
    order: Order,
    /// All of it will be wanted: the device is asked for so many bytes at a time. 0: the database
    /// chooses.
    ahead_bytes: usize,
}

impl Span {
    /// `head` precedes every name; `end` is the first raw key behind all of them.
    fn new(head: RawKey, end: RawKey, bounds: (Bound<&[u8]>, Bound<&[u8]>), order: Order) -> Span {
        let raw = |name: &[u8], after: bool| {
            let mut raw = head.clone();
            raw.extend_from_slice(name);
            if after {
                raw.push(0);
            }
            raw
        };
        let from = match bounds.0 {
            Bound::Unbounded => head.clone(),
            Bound::Included(name) => raw(name, false),
            Bound::Excluded(name) => raw(name, true),
        };
        let to = match bounds.1 {
            Bound::Unbounded => end,
            Bound::Included(name) => raw(name, true),
            Bound::Excluded(name) => raw(name, false),
        };
        let ahead_bytes = 0;
        Span {
            from,
            to,
            order,
            ahead_bytes,
        }
    }

    fn is_empty(&self) -> bool {
        self.from >= self.to
    }

    fn options(&self) -> ReadOptions {
        let mut options = ReadOptions::default();
        options.set_iterate_lower_bound(self.from.as_slice());
        options.set_iterate_upper_bound(self.to.as_slice());
        options.set_readahead_size(self.ahead_bytes);
        options
    }
}

impl Access<'_> {
    /// Up to `limit` records of a collection between two names, in order of names; fewer when they
    /// are large.
    ///
    /// # Errors
    /// See [`Access`]. In phase 1 long results are work for phase 2.
    pub fn records(
        &mut self,
        table: Table,
        id: u64,
        from: Bound<&[u8]>,
        to: Bound<&[u8]>,
        order: Order,
        limit: usize,
    ) -> Result<Page<Bytes>, Stop> {
        let (head, end) = record::record_range(table, id);
        let span = Span::new(head, end, (from, to), order);
        let (mut items, mut more) = (Vec::new(), false);
        if span.is_empty() || limit == 0 {
            return Ok(Page::default());
        }
        let overlay = self.overlay(&span, id)?;
        let mut bytes = 0;
        let mut emit = |raw: &[u8], value: &[u8]| {
            let name = Bytes::copy_from_slice(&raw[RECORD_HEAD..]);
            items.push((name, Bytes::copy_from_slice(value)));
            bytes += raw.len() + value.len();
            more = items.len() >= limit || bytes >= PAGE_BYTES_MAX;
            Ok(!more)
        };
        let blocks = self.kept_blocks();
        self.merge(&span, overlay, blocks, &mut emit)?;
        self.hold(bytes)?;
        Ok(Page { items, more })
    }

    /// The pieces of a string that were written, of these numbers.
    pub(crate) fn pieces(
        &mut self,
        id: u64,
        numbers: Range<u64>,
    ) -> Result<Vec<(u64, Bytes)>, Stop> {
        let mut pieces = Vec::new();
        let bytes = (numbers.end - numbers.start) as usize * PIECE_BYTES;
        let span = Span {
            from: record::piece_key(id, numbers.start),
            to: record::piece_key(id, numbers.end),
            order: Order::Up,
            ahead_bytes: bytes.min(PIECES_AHEAD_BYTES),
        };
        let overlay = self.overlay(&span, id)?;
        let blocks = self.kept_blocks();
        self.merge(&span, overlay, blocks, &mut |raw, value| {
            pieces.push((record::piece_of(raw), Bytes::copy_from_slice(value)));
            Ok(true)
        })?;
        Ok(pieces)
    }

    /// What reads from a snapshot has a large reply, once.
    fn kept_blocks(&self) -> Blocks {
        match self.view {
            View::Snapshot { .. } => Blocks::Pass,
            _ => Blocks::Keep,
        }
    }

    /// Raw keys of all records under an id, tables together; `None`: they and their values have
    /// more than `bytes_max` bytes.
    pub(crate) fn record_names(
        &mut self,
        tables: &[Table],
        id: u64,
        bytes_max: usize,
    ) -> Result<Option<Vec<Box<[u8]>>>, Stop> {
        let (mut names, mut bytes) = (Vec::new(), 0);
        for table in tables {
            self.steps(SEEK_STEPS)?;
            let (head, end) = record::record_range(*table, id);
            let span = Span::new(head, end, (Bound::Unbounded, Bound::Unbounded), Order::Up);
            let overlay = self.overlay(&span, id)?;
            self.merge(&span, overlay, Blocks::Pass, &mut |raw, value| {
                names.push(raw.into());
                bytes += raw.len() + value.len();
                Ok(bytes <= bytes_max)
            })?;
        }
        Ok((bytes <= bytes_max).then_some(names))
    }

    /// Up to `limit` live objects between two keys, in key order; fewer when they are large. Needs
    /// [`crate::Keys::None`] or [`crate::Keys::All`]; never in phase 1.
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
        let head = RawKey::from_slice(&[OBJECT]);
        let end = RawKey::from_slice(&[OBJECT + 1]);
        let span = Span::new(head, end, (from, to), order);
        if limit == 0 {
            return Ok(Page::default());
        }
        let now_ms = self.now_ms();
        let (mut items, mut more, mut bytes) = (Vec::new(), false, 0);
        let mut damaged = None;
        self.objects(&span, blocks, &mut |raw, value| {
            match record::decode(value) {
                Some(entry) if entry.live(now_ms) => {
                    bytes += raw.len() + value.len();
                    items.push((Bytes::copy_from_slice(&raw[1..]), entry));
                }
                Some(_) => {}
                None => damaged = Some(raw[1..].escape_ascii().to_string()),
            }
            more = items.len() >= limit || bytes >= PAGE_BYTES_MAX;
            Ok(!more && damaged.is_none())
        })?;
        self.hold(bytes)?;
        match damaged {
            None => Ok(Page { items, more }),
            Some(key) => {
                let message = format!("the record of key \"{key}\" is damaged");
                Err(self.keyspace.read_error(message).into())
            }
        }
    }

    /// The number of live keys: exact up to 100,000, estimated beyond.
    ///
    /// # Errors
    /// See [`Access`]. As [`Access::keys`], not in phase 1.
    pub fn estimate_keys(&mut self) -> Result<u64, Stop> {
        self.census().map(|census| census.keys)
    }

    /// Counts the live keys and those of them that expire: exact up to 100,000 keys. Beyond,
    /// RocksDB estimates the keys, and as many of them are said to expire as of the first 100,000
    /// in byte order.
    ///
    /// # Errors
    /// As [`Access::estimate_keys`].
    pub fn census(&mut self) -> Result<Census, Stop> {
        let head = RawKey::from_slice(&[OBJECT]);
        let end = RawKey::from_slice(&[OBJECT + 1]);
        let span = Span::new(head, end, (Bound::Unbounded, Bound::Unbounded), Order::Up);
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
        let estimate = self.keyspace.db()?.property("rocksdb.estimate-num-keys");
        let keys = estimate.max(count);
        Ok(Census {
            keys,
            expiring: (keys as f64 * expiring as f64 / count as f64) as u64,
            ..census
        })
    }

    /// Visits the objects of a span, this command's own writes included.
    fn objects(&mut self, span: &Span, blocks: Blocks, emit: &mut Emit) -> Result<(), Stop> {
        match &self.view {
            View::Memory { .. } => return Err(Stop::Disk),
            View::Latched(Held::All) => self.keyspace.wait_all_decided(),
            View::Latched(_) => return Err(misuse("ordered keys need Keys::None or Keys::All")),
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

    /// What is not in the database yet of a collection's records.
    fn overlay(&mut self, span: &Span, id: u64) -> Result<Overlay, Stop> {
        let mut overlay = Overlay::new();
        if !matches!(self.view, View::Snapshot { .. }) {
            self.pins(span, id, &mut overlay)?;
        }
        if let Some(extra) = &self.buffer.extra {
            let range = (
                Bound::Included(span.from.as_slice()),
                Bound::Excluded(span.to.as_slice()),
            );
            for (raw, value) in extra.records.range::<[u8], _>(range) {
                overlay.insert(raw.clone(), value.clone());
            }
        }
        Ok(overlay)
    }

    /// Adds the pins of a span to `overlay`. A core may want the stripe meanwhile, so it is held
    /// for few of them at a time. Nobody adds pins of a collection that this command has to itself;
    /// those that go meanwhile have come to the database, which is read later.
    fn pins(&mut self, span: &Span, id: u64, overlay: &mut Overlay) -> Result<(), Stop> {
        let mut from = Bound::Included(span.from.to_vec());
        loop {
            let stripe = self.keyspace.stripe(id).lock();
            let found = stripe.pins_between(from.as_ref().map(Vec::as_slice), &span.to);
            drop(stripe);
            self.see(found.seen);
            self.meter.count(found.pins.len() as u64)?;
            let last = found.pins.last_key_value().map(|(raw, _)| raw.to_vec());
            overlay.extend(found.pins);
            match last {
                Some(last) if found.more => from = Bound::Excluded(last),
                _ => return Ok(()),
            }
        }
    }

    /// Visits database and overlay together until `emit` says stop; the overlay wins.
    fn merge(
        &mut self,
        span: &Span,
        overlay: Overlay,
        blocks: Blocks,
        emit: &mut Emit,
    ) -> Result<(), Stop> {
        let mut options = span.options();
        options.fill_cache(blocks == Blocks::Keep);
        let shared;
        let db: &Db = match &self.view {
            View::Memory { .. } => {
                options.set_read_tier(ReadTier::BlockCache);
                shared = self.keyspace.gate.try_get().ok_or(Stop::Disk)?;
                &shared
            }
            View::Latched(_) => {
                self.keyspace.buffers.missed();
                shared = self.keyspace.db()?;
                &shared
            }
            View::Snapshot { db, snapshot, .. } => {
                self.keyspace.buffers.missed();
                options.set_snapshot(snapshot);
                db
            }
        };
        // After a clear of this command the database counts for nothing.
        let mut iterator = (!self.buffer.cleared()).then(|| db.rocks.raw_iterator_opt(options));
        match &mut iterator {
            Some(iterator) if span.order == Order::Up => iterator.seek_to_first(),
            Some(iterator) => iterator.seek_to_last(),
            None => {}
        }
        let result = weave(
            iterator.as_mut(),
            overlay,
            span.order,
            &mut self.meter,
            emit,
        );
        match iterator.map_or(Ok(()), |iterator| iterator.status()) {
            Ok(()) => result,
            Err(error) if error.kind() == ErrorKind::Incomplete => Err(Stop::Disk),
            Err(error) => Err(self.keyspace.read_error(error.into_string()).into()),
        }
    }
}

/// Takes a raw key and its value; `Ok(false)`: enough.
type Emit<'e> = dyn FnMut(&[u8], &[u8]) -> Result<bool, Stop> + 'e;

fn weave(
    mut iterator: Option<&mut DBRawIterator<'_>>,
    overlay: Overlay,
    order: Order,
    meter: &mut Meter,
    emit: &mut Emit,
) -> Result<(), Stop> {
    let mut overlay = overlay.into_iter();
    let mut next_overlay = || match order {
        Order::Up => overlay.next(),
        Order::Down => overlay.next_back(),
    };
    let mut over = next_overlay();
    loop {
        meter.count(1)?;
        let stored = iterator.as_ref().and_then(|iterator| iterator.item());
        let which = match (&stored, &over) {
            (None, None) => return Ok(()),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some((raw, _)), Some((over, _))) if order == Order::Up => (*raw).cmp(over),
            (Some((raw, _)), Some((over, _))) => (**over).cmp(raw),
        };
        let go_on = match (which, &stored, &over) {
            (Ordering::Less, Some((raw, value)), _) => {
                meter.copied(value.len())?;
                emit(raw, value)?
            }
            (_, _, Some((raw, Some(value)))) => emit(raw, value)?,
            _ => true,
        };
        if !go_on {
            return Ok(());
        }
        if which != Ordering::Greater {
            if let Some(iterator) = &mut iterator {
                match order {
                    Order::Up => iterator.next(),
                    Order::Down => iterator.prev(),
                }
            }
        }
        if which != Ordering::Less {
            over = next_overlay();
        }
    }
}

fn encode(entry: &Entry) -> Bytes {
    let mut value = record::encode_head(entry).to_vec();
    value.extend_from_slice(entry.whole().map_or(&[], |string| &string[..]));
    value.into()
}
