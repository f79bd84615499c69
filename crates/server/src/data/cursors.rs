//! Where the `SCAN`s, `HSCAN`s and `ZSCAN`s of a tenant are.
//!
//! A cursor has to be a number, and a position here is a key: elements are walked in byte order. So
//! each tenant keeps a bounded table from cursor to the last element returned. What follows from
//! it:
//!
//! * A walk from 0 back to 0 returns every element that was there all the time: each call goes on
//!   strictly after the last element returned, whatever was inserted or deleted meanwhile.
//! * No element is returned twice, unless a cursor was forgotten: then its walk starts again, which
//!   repeats elements but loses none. Only the least recently used cursors are forgotten, when more
//!   than [`ENTRIES_MAX`] are alive or their keys exceed [`BYTES_MAX`], and all of them at a
//!   restart.
//! * A cursor may be used again, and by several clients: it names a position and is not consumed.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

use bytes::Bytes;
use parking_lot::Mutex;

/// Cursors remembered for sure.
const ENTRIES_MAX: usize = 4096;
/// Bytes of keys remembered for sure.
const BYTES_MAX: usize = 512 << 10;
/// Some clients hold a cursor in a double, which is exact to 53 bits.
const CURSOR_BITS: u32 = 48;

/// What is walked: the keyspace, or the collection of this id.
pub(super) type Walk = Option<u64>;

/// The positions of one tenant's walks. Empty, it holds no memory of its own.
#[derive(Default)]
pub struct ScanCursors {
    tables: Mutex<Generations>,
    hash: RandomState,
}

/// Two generations: when the young one is full it becomes the old one, whose forerunner is
/// forgotten. What is used moves to the young one. So the least recently used go first, without a
/// list.
#[derive(Default)]
struct Generations {
    young: Generation,
    old: Generation,
}

#[derive(Default)]
struct Generation {
    positions: HashMap<u64, (Walk, Bytes)>,
    bytes: usize,
}

impl Generations {
    fn find(&self, cursor: u64) -> Option<&(Walk, Bytes)> {
        self.young
            .positions
            .get(&cursor)
            .or_else(|| self.old.positions.get(&cursor))
    }

    /// Returns those that are forgotten for it, to be dropped when the table is not locked any
    /// more: a core may want it.
    #[must_use]
    fn keep(&mut self, cursor: u64, walk: Walk, last: Bytes) -> Generation {
        let mut gone = Generation::default();
        if self.young.positions.len() >= ENTRIES_MAX || self.young.bytes >= BYTES_MAX {
            let young = std::mem::take(&mut self.young);
            gone = std::mem::replace(&mut self.old, young);
        }
        let bytes = last.len();
        if self.young.positions.insert(cursor, (walk, last)).is_none() {
            self.young.bytes += bytes;
        }
        gone
    }
}

impl ScanCursors {
    /// Remembers that `walk` has come to `last`; the cursor is never 0.
    pub(super) fn remember(&self, walk: Walk, last: &[u8]) -> u64 {
        let mut tables = self.tables.lock();
        let mut cursor = self.hash.hash_one((walk, last)) >> (64 - CURSOR_BITS);
        // The same position keeps its cursor; another position that hashes alike takes the next
        // free one.
        loop {
            match tables.find(cursor) {
                _ if cursor == 0 => {}
                None => break,
                Some((w, l)) if *w == walk && l == last => break,
                Some(_) => {}
            }
            cursor = (cursor + 1) & ((1 << CURSOR_BITS) - 1);
        }
        // A copy of its own: the engine's bytes may be a slice of something larger.
        let gone = tables.keep(cursor, walk, Bytes::copy_from_slice(last));
        drop(tables);
        drop(gone);
        cursor
    }

    /// Where to go on after `cursor`: behind this element, or from the start (0, unknown, or of
    /// another walk).
    pub(super) fn position(&self, walk: Walk, cursor: u64) -> Option<Bytes> {
        if cursor == 0 {
            return None;
        }
        let mut tables = self.tables.lock();
        let (_, last) = tables.find(cursor).filter(|(of, _)| *of == walk)?.clone();
        let gone = tables.keep(cursor, walk, last.clone());
        drop(tables);
        drop(gone);
        Some(last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_leads_back_to_its_position() {
        let cursors = ScanCursors::default();
        let a = cursors.remember(None, b"a");
        let b = cursors.remember(Some(7), b"a");
        assert_ne!(a, b);
        assert_eq!(cursors.remember(None, b"a"), a);
        assert_eq!(cursors.position(None, a).as_deref(), Some(&b"a"[..]));
        assert_eq!(cursors.position(Some(7), b).as_deref(), Some(&b"a"[..]));
        assert_eq!(cursors.position(Some(8), b), None);
        assert_eq!(cursors.position(None, 0), None);
    }

    #[test]
    fn a_cursor_in_use_outlives_idle_ones() {
        let cursors = ScanCursors::default();
        let (used, idle) = (
            cursors.remember(None, b"used"),
            cursors.remember(None, b"idle"),
        );
        for i in 0..4 * ENTRIES_MAX {
            cursors.remember(None, format!("k{i}").as_bytes());
            assert!(cursors.position(None, used).is_some());
        }
        assert_eq!(cursors.position(None, idle), None);
    }
}
