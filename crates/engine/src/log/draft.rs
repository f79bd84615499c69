//! Objects of a batch, written down as RocksDB's batches have them (`db/write_batch.cc`): so the
//! committer need not look at them one by one again.

use crate::record::OBJECT;
use foldhash::fast::RandomState;
use hashbrown::HashSet;
use rocksdb::WriteBatch;

/// A sequence number and the number of records, which lie before them.
const HEADER_BYTES: usize = 12;
/// Tags of records (`db/dbformat.h`).
const DELETION: u8 = 0;
const VALUE: u8 = 1;

/// So many records tell whether many are written again in the same batch.
const SAMPLE: usize = 64;
/// If not one in this many of them is, it is not worth a look at all.
const REPEATED_LEAST: usize = 8;

/// Objects in the order in which they were written.
#[derive(Default)]
pub(crate) struct Draft {
    bytes: Vec<u8>,
    /// Where each record begins.
    starts: Vec<u32>,
}

/// One record of a draft.
pub(crate) struct Record<'d> {
    pub raw_key: &'d [u8],
    /// `None`: it is deleted.
    pub value: Option<&'d [u8]>,
}

impl Draft {
    /// An empty one that takes this much without another allocation.
    pub(crate) fn with_room(records: usize, bytes: usize) -> Draft {
        let bytes = if records > 0 { HEADER_BYTES + bytes } else { 0 };
        Draft {
            bytes: Vec::with_capacity(bytes),
            starts: Vec::with_capacity(records),
        }
    }

    /// Records, repeats counted.
    pub(crate) fn len(&self) -> usize {
        self.starts.len()
    }

    /// Bytes written down.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.len().saturating_sub(HEADER_BYTES)
    }

    /// An object, its value in two parts.
    pub(crate) fn put(&mut self, key: &[u8], head: &[u8], rest: &[u8]) {
        self.begin(VALUE, key);
        self.number(head.len() + rest.len());
        self.bytes.extend_from_slice(head);
        self.bytes.extend_from_slice(rest);
    }

    /// An object that is gone.
    pub(crate) fn delete(&mut self, key: &[u8]) {
        self.begin(DELETION, key);
    }

    fn begin(&mut self, tag: u8, key: &[u8]) {
        if self.bytes.is_empty() {
            self.bytes.resize(HEADER_BYTES, 0);
        }
        self.starts.push(self.bytes.len() as u32);
        self.bytes.push(tag);
        self.number(key.len() + 1);
        self.bytes.push(OBJECT);
        self.bytes.extend_from_slice(key);
    }

    /// A varint32.
    fn number(&mut self, number: usize) {
        let mut rest = number as u32;
        while rest >= 128 {
            self.bytes.push(rest as u8 | 128);
            rest >>= 7;
        }
        self.bytes.push(rest as u8);
    }

    /// The first so many records as RocksDB takes them.
    pub(crate) fn batch(&mut self, records: usize) -> WriteBatch {
        self.bytes.resize(self.bytes.len().max(HEADER_BYTES), 0);
        let end = self.starts.get(records).map(|start| *start as usize);
        let end = end.unwrap_or(self.bytes.len());
        self.bytes[8..HEADER_BYTES].copy_from_slice(&(records as u32).to_le_bytes());
        WriteBatch::from_data(&self.bytes[..end])
    }

    /// The record with this number, from 0.
    pub(crate) fn record(&self, number: usize) -> Record<'_> {
        let start = self.starts[number] as usize;
        let (tag, mut rest) = (self.bytes[start], &self.bytes[start + 1..]);
        let raw_key = prefixed(&mut rest);
        let value = (tag == VALUE).then(|| prefixed(&mut rest));
        Record { raw_key, value }
    }

    /// Each object once, in its last state, if many are there several times: a batch appears in the
    /// database at once, so nobody would see the others. A sample over all of it tells.
    pub(crate) fn condensed(&self) -> Option<Draft> {
        let stride = self.len().div_ceil(SAMPLE).max(1);
        let mut seen = HashSet::with_capacity_and_hasher(SAMPLE, RandomState::default());
        let sample = (0..self.len()).step_by(stride);
        let (mut looked_at, mut repeated) = (0, 0);
        for number in sample {
            looked_at += 1;
            repeated += usize::from(!seen.insert(self.record(number).raw_key));
        }
        if repeated == 0 || repeated * REPEATED_LEAST < looked_at {
            return None;
        }
        seen.clear();
        let mut last = Vec::new();
        for number in (0..self.len()).rev() {
            if seen.insert(self.record(number).raw_key) {
                last.push(number);
            }
        }
        let mut condensed = Draft::with_room(last.len(), self.bytes());
        condensed.bytes.resize(HEADER_BYTES, 0);
        for number in last.into_iter().rev() {
            let from = self.starts[number] as usize;
            let to = self.starts.get(number + 1);
            let to = to.map_or(self.bytes.len(), |to| *to as usize);
            condensed.starts.push(condensed.bytes.len() as u32);
            condensed.bytes.extend_from_slice(&self.bytes[from..to]);
        }
        Some(condensed)
    }
}

/// Takes bytes with their number before them off `rest`, which was written by [`Draft::number`].
fn prefixed<'d>(rest: &mut &'d [u8]) -> &'d [u8] {
    let (mut len, mut shift) = (0, 0);
    while let Some((byte, after)) = rest.split_first() {
        *rest = after;
        len |= usize::from(byte & 127) << shift;
        shift += 7;
        if *byte < 128 {
            break;
        }
    }
    let (found, after) = rest.split_at(len);
    *rest = after;
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draft(keys: impl Iterator<Item = usize>) -> Draft {
        let mut draft = Draft::with_room(0, 0);
        for (number, key) in keys.enumerate() {
            match number % 5 {
                4 => draft.delete(key.to_string().as_bytes()),
                // Some need two bytes for their length.
                _ => draft.put(key.to_string().as_bytes(), b"h", &vec![b'v'; number % 200]),
            }
        }
        draft
    }

    #[test]
    fn a_batch_is_what_rocksdb_itself_would_have_written() {
        let mut draft = draft(0..500);
        for records in [0, 1, 499, 500] {
            let mut theirs = WriteBatch::default();
            for record in (0..records).map(|number| draft.record(number)) {
                match record.value {
                    Some(value) => theirs.put(record.raw_key, value),
                    None => theirs.delete(record.raw_key),
                }
            }
            assert_eq!(draft.batch(records).data(), theirs.data());
        }
        assert_eq!(draft.record(3).raw_key, b"o3");
    }

    #[test]
    fn what_is_written_again_and_again_is_there_once_in_its_last_state() {
        let hot = draft((0..1_000).map(|number| number % 100));
        let once = hot.condensed().expect("nine in ten are repeats");
        assert_eq!(once.len(), 100);
        for number in 0..100 {
            let (last, first) = (once.record(number), hot.record(900 + number));
            assert_eq!((last.raw_key, last.value), (first.raw_key, first.value));
        }
        assert!(draft(0..1_000).condensed().is_none());
        assert!(draft(0..0).condensed().is_none());
    }
}
