//! A batch of the commit log: what goes to the database in one piece.
//!
//! A batch keeps values by reference; the committer writes them down. It does so **sorted by
//! record key, each record once**: a batch appears in the database at once, so only the last
//! state of a record in it can ever be seen. A hot key written a thousand times while the
//! previous batch was on its way costs one record, and sorted inserts walk the same path of the
//! memtable's skip list (measured: docs/decisions/0003).

use super::buffer::{Buffer, Extra};
use crate::device::{tag, Tag, TAGS};
use crate::memory::shard::Key;
use crate::naming;
use crate::record::{self, RawKey, OBJECT};
use crate::work::Work;
use crate::{Entry, Seq};
use bytes::Bytes;
use rocksdb::WriteBatch;
use smallvec::SmallVec;
use std::sync::Arc;

enum Op {
    Object(Key, Option<Entry>),
    Record(Box<[u8]>, Option<Bytes>),
    /// Everything from here (inclusive) to there (exclusive) goes.
    Range(RawKey, RawKey),
}

impl Op {
    /// The record's key, in two parts.
    fn key(&self) -> (u8, &[u8]) {
        match self {
            Op::Object(key, _) => (OBJECT, key),
            Op::Record(raw, _) => split(raw),
            Op::Range(from, _) => split(from),
        }
    }
}

fn split(raw: &[u8]) -> (u8, &[u8]) {
    raw.split_first()
        .map_or((0, raw), |(first, rest)| (*first, rest))
}

/// See the module.
pub(crate) struct Batch {
    pub number: u64,
    ops: Vec<Op>,
    pub bytes: usize,
    pub count: u64,
    pub last_seq: Seq,
    /// Bit *i*: stripe *i* has pins of it.
    pub stripes: u64,
    /// Everything of a database, or of all, is removed.
    pub clears: bool,
    /// Bytes by the tag of who wrote them.
    pub written: [u64; TAGS],
    /// What large ones of its writes have of their tenant's allowance, until it is committed.
    pub held: Vec<Arc<Work>>,
}

impl Batch {
    pub(crate) fn new(number: u64, capacity: usize) -> Batch {
        Batch {
            number,
            ops: Vec::with_capacity(capacity),
            bytes: 0,
            count: 0,
            last_seq: 0,
            stripes: 0,
            clears: false,
            written: [0; TAGS],
            held: Vec::new(),
        }
    }

    /// For whom it is written: its I/O is one, so whoever wrote most of it stands for all.
    pub(crate) fn tag(&self) -> Tag {
        let most = self.written.iter().max().copied().unwrap_or_default();
        let first = self.written.iter().position(|bytes| *bytes == most);
        Tag(first.unwrap_or_default() as u8)
    }

    /// Records in it, repeats counted.
    pub(crate) fn len(&self) -> usize {
        self.ops.len()
    }

    /// A batch of one command's writes alone, to be given its place in the log later: making it
    /// takes as long as the command wrote much, and nobody waits for the log meanwhile.
    pub(crate) fn prepared(buffer: &Buffer) -> Batch {
        let mut batch = Batch::new(0, buffer.len());
        batch.add(buffer, 0);
        batch
    }

    /// Adds a command's writes. Their order among themselves does not matter, but for a clear,
    /// which comes first: no record is written twice by one command, and an id whose records it
    /// dropped or removed is not among those it wrote to.
    pub(crate) fn add(&mut self, buffer: &Buffer, seq: Seq) {
        if let Some(extra) = &buffer.extra {
            self.add_extra(extra);
        }
        for object in &buffer.objects {
            self.ops
                .push(Op::Object(object.key.clone(), object.entry.clone()));
        }
        self.bytes += buffer.bytes();
        self.written[tag().index()] += buffer.bytes() as u64;
        self.count += 1;
        self.last_seq = seq;
    }

    fn add_extra(&mut self, extra: &Extra) {
        if extra.clear {
            self.clears = true;
            for prefix in record::DATA_PREFIXES {
                let (from, to) = (
                    RawKey::from_slice(&[prefix]),
                    RawKey::from_slice(&[prefix + 1]),
                );
                self.ops.push(Op::Range(from, to));
            }
        }
        for slot in extra.renaming.iter().flat_map(|renaming| &renaming.emptied) {
            self.clears = true;
            let ranges = naming::ranges_of(*slot);
            self.ops
                .extend(ranges.map(|(from, to)| Op::Range(from, to)));
        }
        for (table, id) in &extra.dropped {
            let (from, to) = record::record_range(*table, *id);
            self.ops.push(Op::Range(from, to));
        }
        let removed = extra.removed.iter();
        self.ops
            .extend(removed.map(|raw| Op::Record(raw.clone(), None)));
        let records = extra.records.iter();
        self.ops
            .extend(records.map(|(raw, value)| Op::Record(raw.clone(), value.clone())));
        let index = extra.index.iter();
        self.ops.extend(
            index.map(|(raw, add)| Op::Record(raw.as_slice().into(), add.then(Bytes::new))),
        );
    }

    /// Adds a property.
    pub(crate) fn note(&mut self, name: &[u8], value: Bytes) {
        self.ops.push(Op::Record(name.into(), Some(value)));
    }

    /// The batch as RocksDB takes it.
    pub(crate) fn encode(&self) -> WriteBatch {
        let mut writes = WriteBatch::with_capacity_bytes(self.bytes + BATCH_SLACK);
        let mut scribe = Scribe::default();
        // A removed range ends a run: what was written before it goes, what comes after stays.
        for run in self.ops.split_inclusive(|op| matches!(op, Op::Range(..))) {
            let (run, range) = match run.split_last() {
                Some((Op::Range(from, to), run)) => (run, Some((from, to))),
                _ => (run, None),
            };
            scribe.write_run(run, &mut writes);
            if let Some((from, to)) = range {
                writes.delete_range(from, to);
            }
        }
        writes
    }
}

/// Beyond the bytes it is expected to hold: headers, properties.
const BATCH_SLACK: usize = 256;

/// So much is copied at a time, and a core that waits for the processor goes before the rest: some
/// 20 us.
const STRETCH_BYTES: usize = 64 << 10;

/// Writes operations down.
#[derive(Default)]
struct Scribe {
    scratch: Vec<u8>,
    /// Bytes copied since it last stepped back.
    copied: usize,
}

impl Scribe {
    fn write_run(&mut self, run: &[Op], writes: &mut WriteBatch) {
        let mut order: SmallVec<[(u8, &[u8], u32); 4]> = SmallVec::with_capacity(run.len());
        order.extend((0u32..).zip(run).map(|(at, op)| {
            let (prefix, rest) = op.key();
            (prefix, rest, at)
        }));
        order.sort_unstable();
        for (at, (prefix, rest, index)) in order.iter().enumerate() {
            let repeated = order
                .get(at + 1)
                .is_some_and(|next| (next.0, next.1) == (*prefix, *rest));
            if !repeated {
                self.write(&run[*index as usize], writes);
            }
        }
    }

    fn write(&mut self, op: &Op, writes: &mut WriteBatch) {
        match op {
            Op::Record(raw, Some(value)) => {
                writes.put(raw, value);
                self.step_back(value.len());
            }
            Op::Record(raw, None) => writes.delete(raw),
            Op::Object(key, None) => writes.delete(record::object_key(key)),
            Op::Object(key, Some(entry)) => {
                let raw = record::object_key(key);
                let head = record::encode_head(entry);
                if let Some(value) = entry.whole() {
                    self.scratch.clear();
                    self.scratch.extend_from_slice(&head);
                    for stretch in value.chunks(STRETCH_BYTES) {
                        self.scratch.extend_from_slice(stretch);
                        self.step_back(stretch.len());
                    }
                    writes.put(raw, &self.scratch);
                } else {
                    writes.put(raw, head);
                }
            }
            Op::Range(from, to) => writes.delete_range(from, to),
        }
    }

    fn step_back(&mut self, copied: usize) {
        self.copied += copied;
        if self.copied >= STRETCH_BYTES {
            self.copied = 0;
            std::thread::yield_now();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(key: &'static [u8], value: Option<&'static [u8]>) -> Buffer {
        let mut buffer = Buffer::default();
        let entry = value.map(|value| Entry::string(Bytes::from_static(value)));
        buffer.set(0, key, entry);
        buffer
    }

    #[test]
    fn a_record_is_written_once_in_its_last_state() {
        let mut batch = Batch::new(1, 0);
        for (seq, value) in [b"1", b"2", b"3"].into_iter().enumerate() {
            batch.add(&set(b"hot", Some(value)), seq as u64 + 1);
        }
        batch.add(&set(b"gone", Some(b"v")), 4);
        batch.add(&set(b"gone", None), 5);
        assert_eq!((batch.count, batch.last_seq), (5, 5));
        let once = batch.encode();
        assert_eq!(once.len(), 2);
        assert!(once.data().ends_with(b"3"), "\"gone\" sorts before \"hot\"");
    }

    #[test]
    fn a_batch_is_for_whoever_wrote_most_of_it() {
        use crate::device::tagged;
        let mut batch = Batch::new(1, 0);
        assert_eq!(batch.tag(), Tag::default(), "nobody wrote anything");
        for (tag, value) in [(2, &b"a long value"[..]), (5, b"v"), (5, b"w")] {
            let _tagged = tagged(Tag(tag));
            batch.add(&set(b"key", Some(value)), 1);
        }
        assert_eq!(batch.written.iter().sum::<u64>(), batch.bytes as u64);
        assert!(batch.written[5] > batch.written[2] && batch.written[2] > 0);
        assert_eq!(batch.tag(), Tag(5));
    }

    #[test]
    fn a_clear_comes_before_what_its_command_writes() {
        let mut clear = Buffer::default();
        clear.clear();
        clear.set(0, b"after", Some(Entry::string(Bytes::from_static(b"v"))));
        let writes = Batch::prepared(&clear).encode();
        assert_eq!(writes.len(), record::DATA_PREFIXES.len() + 1);
        assert!(writes.data().ends_with(b"v"));
    }
}
