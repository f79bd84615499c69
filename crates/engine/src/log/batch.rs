//! A batch of the commit log: what goes to the database in one piece.
//!
//! Objects are written down as they come ([`Draft`]), and the committer hands them on as they are.
//! Long values are kept by reference, and so are records of collections and pieces of strings:
//! those the committer writes down **sorted by record key, each record once**, for sorted inserts
//! walk the same path of the memtable's skip list (measured: docs/decisions/0003). A batch appears
//! in the database at once, so only the last state of a record in it can ever be seen. A hot key
//! written a thousand times while the previous batch was on its way costs one record.

use super::buffer::{Buffer, Extra, ObjectWrite};
use super::draft::Draft;
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

/// What is not in the draft.
enum Op {
    /// One with a long value.
    Object(Key, Entry),
    Record(Box<[u8]>, Option<Bytes>),
    /// This many objects from the beginning of the draft come before what follows.
    Drafted(usize),
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
            Op::Drafted(_) => (0, &[]),
        }
    }

    /// What comes before it must stay before what comes after it.
    fn ends_run(&self) -> bool {
        matches!(self, Op::Range(..) | Op::Drafted(_))
    }
}

fn split(raw: &[u8]) -> (u8, &[u8]) {
    raw.split_first()
        .map_or((0, raw), |(first, rest)| (*first, rest))
}

/// Values up to so long are copied into the draft: that costs no more than to count their
/// references on two threads.
const DRAFTED_BYTES_MAX: usize = 4 << 10;

/// A draft of this many bytes is handed over in one piece, some 100 us; of a longer one record
/// after record.
const AT_ONCE_BYTES: usize = 1 << 20;

/// What a batch has room for at once.
#[derive(Clone, Copy, Default)]
pub(crate) struct Room {
    drafted: usize,
    drafted_bytes: usize,
    ops: usize,
}

impl Room {
    /// A new batch has no more at once.
    const MOST: Room = Room {
        drafted: 4096,
        drafted_bytes: 256 << 10,
        ops: 4096,
    };
}

/// See the module.
pub(crate) struct Batch {
    pub number: u64,
    drafted: Draft,
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
    pub(crate) fn new(room: Room) -> Batch {
        Batch {
            number: 0,
            drafted: Draft::with_room(
                room.drafted.min(Room::MOST.drafted),
                room.drafted_bytes.min(Room::MOST.drafted_bytes),
            ),
            ops: Vec::with_capacity(room.ops.min(Room::MOST.ops)),
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

    /// The room that it needed.
    pub(crate) fn room(&self) -> Room {
        Room {
            drafted: self.drafted.len(),
            drafted_bytes: self.drafted.bytes(),
            ops: self.ops.len(),
        }
    }

    /// A batch of one command's writes alone, to be given its place in the log later: making it
    /// takes as long as the command wrote much, and nobody waits for the log meanwhile.
    pub(crate) fn prepared(buffer: &Buffer) -> Batch {
        let mut batch = Batch::new(Room {
            ops: buffer.len() - buffer.objects.len(),
            ..Room::default()
        });
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
            self.add_object(object);
        }
        let bytes = buffer.bytes();
        self.bytes += bytes;
        self.written[tag().index()] += bytes as u64;
        self.count += 1;
        self.last_seq = seq;
    }

    fn add_object(&mut self, object: &ObjectWrite) {
        let Some(entry) = &object.entry else {
            return self.drafted.delete(&object.key);
        };
        let value = entry.whole().map_or(&[][..], |value| value);
        if value.len() <= DRAFTED_BYTES_MAX {
            self.drafted
                .put(&object.key, &record::encode_head(entry), value);
        } else {
            self.draft_first();
            self.ops.push(Op::Object(object.key.clone(), entry.clone()));
        }
    }

    /// What was drafted so far comes before the operations that follow.
    fn draft_first(&mut self) {
        let (drafted, marked) = (self.drafted.len(), self.ops.iter().rev());
        let mut marked = marked.filter_map(|op| match op {
            Op::Drafted(count) => Some(*count),
            _ => None,
        });
        if drafted > marked.next().unwrap_or(0) {
            self.ops.push(Op::Drafted(drafted));
        }
    }

    fn add_extra(&mut self, extra: &Extra) {
        if extra.clear {
            self.clears = true;
            self.draft_first();
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

    /// The batch as RocksDB takes it. What was drafted goes with it.
    pub(crate) fn encode(&mut self) -> WriteBatch {
        let mut drafted = std::mem::take(&mut self.drafted);
        if self.ops.is_empty() {
            drafted = drafted.condensed().unwrap_or(drafted);
        }
        let mut scribe = Scribe::begin(drafted, self.first_drafted(), self.bytes);
        for run in self.ops.split_inclusive(Op::ends_run) {
            match run.split_last() {
                Some((end, run)) if end.ends_run() => {
                    scribe.write_run(run);
                    scribe.write(end);
                }
                _ => scribe.write_run(run),
            }
        }
        scribe.end()
    }

    /// So many objects of the draft may come before all operations: all, unless an operation is on
    /// objects, too.
    fn first_drafted(&self) -> usize {
        let mut on_objects = self.ops.iter().filter(|op| match op {
            Op::Object(..) | Op::Drafted(_) => true,
            Op::Range(..) => self.clears,
            Op::Record(..) => false,
        });
        match on_objects.next() {
            None => usize::MAX,
            Some(Op::Drafted(count)) => *count,
            Some(_) => 0,
        }
    }
}

/// Beyond the bytes it is expected to hold: headers, properties.
const BATCH_SLACK: usize = 256;

/// So much is copied at a time, and a core that waits for the processor goes before the rest: some
/// 20 us.
const STRETCH_BYTES: usize = 64 << 10;

/// Writes a batch down.
struct Scribe {
    writes: WriteBatch,
    drafted: Draft,
    /// Objects of the draft that are written down.
    written: usize,
    scratch: Vec<u8>,
    /// Bytes copied since it last stepped back.
    copied: usize,
}

impl Scribe {
    /// Begins with the first objects of the draft. `bytes`: all it will write, roughly.
    fn begin(mut drafted: Draft, first: usize, bytes: usize) -> Scribe {
        let first = match drafted.bytes() {
            ..=AT_ONCE_BYTES => first.min(drafted.len()),
            _ => 0,
        };
        let writes = match first {
            0 => WriteBatch::with_capacity_bytes(bytes + BATCH_SLACK),
            _ => drafted.batch(first),
        };
        Scribe {
            writes,
            drafted,
            written: first,
            scratch: Vec::new(),
            copied: 0,
        }
    }

    /// Writes the rest of the draft.
    fn end(mut self) -> WriteBatch {
        self.write_drafted(self.drafted.len());
        self.writes
    }

    /// Writes objects of the draft until this many of them are written.
    fn write_drafted(&mut self, count: usize) {
        for number in self.written..count {
            let record = self.drafted.record(number);
            match record.value {
                Some(value) => self.writes.put(record.raw_key, value),
                None => self.writes.delete(record.raw_key),
            }
            let copied = record.value.map_or(0, <[u8]>::len);
            step_back(&mut self.copied, copied);
        }
        self.written = self.written.max(count);
    }

    fn write_run(&mut self, run: &[Op]) {
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
                self.write(&run[*index as usize]);
            }
        }
    }

    fn write(&mut self, op: &Op) {
        match op {
            Op::Record(raw, Some(value)) => {
                self.writes.put(raw, value);
                step_back(&mut self.copied, value.len());
            }
            Op::Record(raw, None) => self.writes.delete(raw),
            Op::Object(key, entry) => {
                self.scratch.clear();
                self.scratch.extend_from_slice(&record::encode_head(entry));
                let value = entry.whole().map_or(&[][..], |value| value);
                for stretch in value.chunks(STRETCH_BYTES) {
                    self.scratch.extend_from_slice(stretch);
                    step_back(&mut self.copied, stretch.len());
                }
                self.writes.put(record::object_key(key), &self.scratch);
            }
            Op::Drafted(count) => self.write_drafted(*count),
            Op::Range(from, to) => self.writes.delete_range(from, to),
        }
    }
}

/// Lets a core that waits for the processor go first, once enough was copied.
fn step_back(all: &mut usize, copied: usize) {
    *all += copied;
    if *all >= STRETCH_BYTES {
        *all = 0;
        std::thread::yield_now();
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
        let mut batch = Batch::new(Room::default());
        for (seq, value) in [b"1", b"2", b"3"].into_iter().enumerate() {
            batch.add(&set(b"hot", Some(value)), seq as u64 + 1);
        }
        batch.add(&set(b"gone", Some(b"v")), 4);
        batch.add(&set(b"gone", None), 5);
        assert_eq!((batch.count, batch.last_seq), (5, 5));
        let once = batch.encode();
        assert_eq!(once.len(), 2);
        assert!(once.data().ends_with(b"gone"), "its last state is the last");
    }

    #[test]
    fn a_batch_is_for_whoever_wrote_most_of_it() {
        use crate::device::tagged;
        let mut batch = Batch::new(Room::default());
        assert_eq!(batch.tag(), Tag::default(), "nobody wrote anything");
        for (tag, value) in [(2, &b"a long value"[..]), (5, b"v"), (5, b"w")] {
            let _tagged = tagged(Tag(tag));
            batch.add(&set(b"key", Some(value)), 1);
        }
        assert_eq!(batch.written.iter().sum::<u64>(), batch.bytes as u64);
        assert!(batch.written[5] > batch.written[2] && batch.written[2] > 0);
        assert_eq!(batch.tag(), Tag(5));
    }

    /// Short values are drafted, long ones are not, and a clear is an operation on objects, too.
    #[test]
    fn of_short_and_long_values_and_clears_the_last_is_written_last() {
        let long = Bytes::from(vec![b'l'; DRAFTED_BYTES_MAX + 1]);
        let short = Bytes::from_static(b"s");
        let mut orders = vec![vec![]];
        for _ in 0..4 {
            let longer = |order: &Vec<u8>| [0, 1, 2].map(|what| [&order[..], &[what]].concat());
            orders = orders.iter().flat_map(longer).collect();
        }
        let directory = tempfile::tempdir().unwrap();
        let db = rocksdb::DB::open_default(directory.path()).unwrap();
        for order in orders {
            let (mut batch, mut left) = (Batch::new(Room::default()), None);
            for (seq, what) in (1..).zip(&order) {
                let mut buffer = Buffer::default();
                left = [Some(&short), Some(&long), None][usize::from(*what)];
                match left {
                    Some(value) => buffer.set(0, b"key", Some(Entry::string(value.clone()))),
                    None => buffer.clear(),
                }
                batch.add(&buffer, seq);
            }
            db.write(batch.encode()).unwrap();
            let found = db.get(record::object_key(b"key")).unwrap();
            let found = found.map(|value| value[1..].to_vec());
            assert_eq!(found.as_deref(), left.map(|value| &value[..]), "{order:?}");
        }
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
