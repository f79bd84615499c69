//! Records of a log file as RocksDB writes logs and manifests (`db/log_format.h`): blocks of 32 KiB
//! with fragments of records, each with a checksum. What is damaged is stepped over, to the next
//! record that is whole, in the same block if there is one.

use super::crc::{crc32c, masked};
use std::io::{self, Read};

const BLOCK: usize = 32 << 10;
/// Checksum of type and data, length of the data, type.
const HEADER: usize = 7;
/// Types of fragments: a whole record, or its first, a middle or its last part.
const FULL: u8 = 1;
const FIRST: u8 = 2;
const MIDDLE: u8 = 3;
const LAST: u8 = 4;
/// A note of RocksDB's about the log that nobody needs for reading it (`kPredecessorWALInfoType`).
const NOTE: u8 = 130;
/// So many bytes of a record's beginning and of its end are kept: a batch's numbers, a manifest's
/// first fields; a mark.
const HEAD: usize = 256;
const TAIL: usize = 32;

/// What a record holds, as far as it is wanted.
#[derive(Debug, Default)]
pub(super) struct Record {
    /// Where it begins in the file.
    pub begin: u64,
    pub head: Vec<u8>,
    pub tail: Vec<u8>,
}

impl Record {
    fn add(&mut self, data: &[u8]) {
        let missing = HEAD - self.head.len();
        self.head
            .extend_from_slice(&data[..missing.min(data.len())]);
        self.tail
            .extend_from_slice(&data[data.len().saturating_sub(TAIL)..]);
        let surplus = self.tail.len().saturating_sub(TAIL);
        self.tail.drain(..surplus);
    }
}

/// What comes next in a file.
#[derive(Debug)]
pub(super) enum Found {
    Record(Record),
    /// From here on something is not as it was written, up to the next record.
    Bad(u64, &'static str),
}

/// A fragment: its type and where its data are in the block.
type Fragment = (u8, std::ops::Range<usize>);

pub(super) struct Records<R> {
    input: R,
    block: Box<[u8]>,
    /// Bytes in the block, the next one, and where in the file the block begins.
    len: usize,
    at: usize,
    base: u64,
    /// The record whose first fragments were read.
    begun: Option<Record>,
}

impl<R: Read> Records<R> {
    pub(super) fn new(input: R) -> Self {
        Self {
            input,
            block: vec![0; BLOCK].into_boxed_slice(),
            len: 0,
            at: 0,
            base: 0,
            begun: None,
        }
    }

    /// The next record, or damage; `None` at the end.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(super) fn next(&mut self) -> io::Result<Option<Found>> {
        loop {
            if self.len - self.at < HEADER {
                let cut = self.len < BLOCK && self.at < self.len;
                let here = self.base + self.at as u64;
                if !self.fill()? {
                    let begun = self.begun.take().map(|record| record.begin);
                    let bad = begun.or(cut.then_some(here));
                    return Ok(bad.map(|at| Found::Bad(at, "it ends within a record")));
                }
                continue;
            }
            let here = self.base + self.at as u64;
            let (kind, data) = match self.fragment(self.at) {
                Ok(fragment) => fragment,
                Err(what) => {
                    let begun = self.begun.take().map_or(here, |record| record.begin);
                    self.at = self.next_beginning();
                    return Ok(Some(Found::Bad(begun, what)));
                }
            };
            self.at = data.end;
            if let Some(found) = self.join(here, kind, data) {
                return Ok(Some(found));
            }
        }
    }

    /// Takes a fragment to those before it.
    fn join(&mut self, here: u64, kind: u8, data: std::ops::Range<usize>) -> Option<Found> {
        let data = &self.block[data];
        match (kind, self.begun.take()) {
            (FULL | FIRST, Some(begun)) => {
                self.at -= HEADER + data.len();
                Some(Found::Bad(begun.begin, "a record has no end"))
            }
            (FULL | FIRST, None) => {
                let mut record = Record {
                    begin: here,
                    ..Record::default()
                };
                record.add(data);
                if kind == FULL {
                    return Some(Found::Record(record));
                }
                self.begun = Some(record);
                None
            }
            (MIDDLE, Some(mut record)) => {
                record.add(data);
                self.begun = Some(record);
                None
            }
            (LAST, Some(mut record)) => {
                record.add(data);
                Some(Found::Record(record))
            }
            (MIDDLE | LAST, None) => Some(Found::Bad(here, "a record has no beginning")),
            (_, begun) => {
                self.begun = begun;
                None
            }
        }
    }

    /// The fragment whose header begins at `at`, which lies in the block.
    fn fragment(&self, at: usize) -> Result<Fragment, &'static str> {
        let header = &self.block[at..at + HEADER];
        let stored = u32::from_le_bytes([header[0], header[1], header[2], header[3]]);
        let data =
            at + HEADER..at + HEADER + usize::from(u16::from_le_bytes([header[4], header[5]]));
        let kind = header[6];
        if data.end > self.len {
            return Err(match self.len < BLOCK {
                true => "it ends within a record",
                false => "the length of a record is impossible",
            });
        }
        if kind == 0 && data.is_empty() {
            return Err("there are zeros in the place of records");
        }
        if masked(crc32c(&self.block[at + HEADER - 1..data.end])) != stored {
            return Err("the checksum of a record is wrong");
        }
        match kind {
            FULL | FIRST | MIDDLE | LAST | NOTE => Ok((kind, data)),
            _ => Err("a record has an unknown type"),
        }
    }

    /// Where the next record begins in this block, behind one that is damaged: its length may be,
    /// too.
    fn next_beginning(&self) -> usize {
        let last = self.len.saturating_sub(HEADER);
        let begins = |at: &usize| {
            // Most places fail here, at no cost.
            let (kind, high) = (self.block[at + 6], self.block[at + 5]);
            (kind == FULL || kind == FIRST)
                && usize::from(high) << 8 <= self.len
                && self.fragment(*at).is_ok()
        };
        (self.at + 1..last).find(begins).unwrap_or(self.len)
    }

    /// Reads the next block; `false`: there is none.
    fn fill(&mut self) -> io::Result<bool> {
        if self.len < BLOCK && self.len > 0 {
            (self.base, self.at, self.len) = (self.base + self.len as u64, 0, 0);
            return Ok(false);
        }
        (self.base, self.at) = (self.base + self.len as u64, 0);
        self.len = 0;
        while self.len < BLOCK {
            match self.input.read(&mut self.block[self.len..]) {
                Ok(0) => break,
                Ok(read) => self.len += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(self.len > 0)
    }
}
