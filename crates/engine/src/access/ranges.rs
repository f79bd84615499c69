//! Ordered reads of the records of a collection.
//!
//! They merge the database with what is not in it yet: the pins of the collection's stripe and the
//! command's own writes. Pins are collected **before** the iterator is made: a
//! batch is in the database before its pins go, so what is in neither was never written.

use crate::access::strings::PIECE_BYTES;
use crate::access::{Access, View};
use crate::device::AHEAD_BYTES_MAX;
use crate::files::rocks::Db;
use crate::meter::Meter;
use crate::record::{self, RawKey, RECORD_HEAD};
use crate::{Blocks, Order, Page, Stop, Table};
use bytes::Bytes;
use rocksdb::{DBRawIterator, ErrorKind, ReadOptions, ReadTier};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::{Bound, Range};

/// A page ends behind this many bytes: values may be large.
pub(crate) const PAGE_BYTES_MAX: usize = 1 << 20;

/// What it takes to find the first record of a range, among some memtables and files.
const SEEK_STEPS: u64 = 4;

pub(crate) type Overlay = BTreeMap<Box<[u8]>, Option<Bytes>>;

/// A half-open range of raw keys, read in one direction.
pub(crate) struct Span {
    pub from: RawKey,
    pub to: RawKey,
    order: Order,
    /// All of it will be wanted: the device is asked for this many bytes at a time. 0: the database
    /// chooses.
    ahead_bytes: usize,
}

impl Span {
    /// `head` precedes every name; `end` is the first raw key behind all of them.
    pub(crate) fn new(
        head: RawKey,
        end: RawKey,
        bounds: (Bound<&[u8]>, Bound<&[u8]>),
        order: Order,
    ) -> Span {
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
        Span::between(from, to, order)
    }

    pub(crate) fn between(from: RawKey, to: RawKey, order: Order) -> Span {
        let ahead_bytes = 0;
        Span {
            from,
            to,
            order,
            ahead_bytes,
        }
    }

    /// Much more is to be read, if the next `limit` objects are like those that a walk has come
    /// over so far (their number and bytes). RocksDB would find that out, too, but begins anew at
    /// each block that it has in memory.
    pub(crate) fn read_ahead_of(&mut self, walked: (usize, usize), limit: usize) {
        let bytes = (walked.1 / walked.0.max(1)).saturating_mul(limit);
        if bytes >= AHEAD_BYTES_MAX {
            self.ahead_bytes = AHEAD_BYTES_MAX;
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
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
            ahead_bytes: bytes.min(AHEAD_BYTES_MAX),
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
    pub(crate) fn merge(
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
            View::Latched(..) => {
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
        let _alone = match &self.view {
            View::Memory { .. } => None,
            _ => self.keyspace.alone(&span.from, self.meter.site())?,
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
pub(crate) type Emit<'e> = dyn FnMut(&[u8], &[u8]) -> Result<bool, Stop> + 'e;

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_walk_reads_as_far_ahead_as_its_first_keys_tell() {
        let ahead_bytes = |walked, limit| {
            let [from, to] = [b"a", b"b"].map(|key| RawKey::from_slice(key));
            let mut span = Span::between(from, to, Order::Up);
            span.read_ahead_of(walked, limit);
            span.ahead_bytes
        };
        assert_eq!(ahead_bytes((0, 0), 512), 0, "nothing is known yet");
        assert_eq!(ahead_bytes((32, 32 << 10), 100), 0, "too little is left");
        assert_eq!(ahead_bytes((32, 256 << 10), 224), AHEAD_BYTES_MAX);
        assert_eq!(ahead_bytes((1, 1 << 10), usize::MAX), AHEAD_BYTES_MAX);
    }
}
