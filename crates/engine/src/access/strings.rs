//! Strings in pieces.
//!
//! A string of up to [`WHOLE_BYTES_MAX`] bytes lies in its key's own record. A longer one is kept
//! in pieces of [`PIECE_BYTES`], which are records under an id as a collection's are: what reads or
//! writes a part of it touches the pieces under that part and no other bytes. The object record has
//! the id and the length.
//!
//! INVARIANTS
//! * A piece holds at most the bytes of its place; it has none behind the end of the string.
//! * What no piece holds reads as zeros: a piece that was never written, and what is missing at the
//!   end of one. So a string grows without a write of the gap.
//! * A string never shrinks: it is replaced, and what replaces it has an id of its own.
//!
//! Why these sizes: docs/decisions/0019-strings-in-pieces.md.

use crate::access::{Access, View};
use crate::record;
use crate::{Object, Stop, Table, Text};
use bytes::Bytes;
use std::collections::VecDeque;
use std::ops::Range;

/// Bytes of a piece. Part of the format of the records: another number is another format.
pub const PIECE_BYTES: usize = 16 << 10;
/// The longest string that is kept in one record.
pub const WHOLE_BYTES_MAX: usize = 64 << 10;
/// What a core reads of a string in pieces at a time: 6 us. More is work for a handler.
const CORE_BYTES_MAX: u64 = 128 << 10;
/// Pieces that are read together where reads may wait for the disk: it gives a MiB in a fraction of
/// the time of its parts.
const READ_TOGETHER: u64 = (1 << 20) / PIECE_BYTES as u64;

static ZEROS: [u8; PIECE_BYTES] = [0; PIECE_BYTES];

/// A walk over a part of a string. See [`Access::parts`].
#[derive(Debug)]
pub struct Parts {
    text: Text,
    at: u64,
    end: u64,
    /// Pieces that were read before they are asked for, and the first one that was not.
    ahead: VecDeque<(u64, Bytes)>,
    next: u64,
}

impl Parts {
    /// Where in the string the next part begins.
    #[must_use]
    pub fn at(&self) -> u64 {
        self.at
    }

    /// The next bytes, none of them behind the end of the piece that the first lies in; `None` at
    /// the end.
    ///
    /// # Errors
    /// See [`Access`].
    pub fn next(&mut self, access: &mut Access) -> Result<Option<Bytes>, Stop> {
        let (number, within) = place(self.at);
        let len = (self.end - self.at).min((PIECE_BYTES - within) as u64) as usize;
        if len == 0 {
            return Ok(None);
        }
        access.meter.copied(len)?;
        let part = match self.text {
            Text::Whole(ref bytes) => {
                let at = self.at as usize;
                bytes.slice(at..at + len)
            }
            Text::Pieces { id, .. } => {
                let written = self.written(access, id, number, within..within + len)?;
                match written.is_empty() {
                    true => Bytes::from_static(&ZEROS[..len]),
                    false => written,
                }
            }
        };
        self.at += part.len() as u64;
        Ok(Some(part))
    }

    /// What was written of a piece, within a range.
    fn written(
        &mut self,
        access: &mut Access,
        id: u64,
        number: u64,
        within: Range<usize>,
    ) -> Result<Bytes, Stop> {
        let (last, _) = place(self.end - 1);
        let alone = number == last && number >= self.next;
        if alone || matches!(access.view, View::Memory { .. }) {
            return access.piece(id, number, within);
        }
        if number >= self.next {
            self.next = (number + READ_TOGETHER).min(last + 1);
            self.ahead = access.pieces(id, number..self.next)?.into();
        }
        while self.ahead.front().is_some_and(|(read, _)| *read < number) {
            self.ahead.pop_front();
        }
        Ok(match self.ahead.front() {
            Some((read, piece)) if *read == number => {
                piece.slice(within.start.min(piece.len())..within.end.min(piece.len()))
            }
            _ => Bytes::new(),
        })
    }
}

/// The piece that has this byte, and where in it.
fn place(at: u64) -> (u64, usize) {
    let piece = PIECE_BYTES as u64;
    (at / piece, (at % piece) as usize)
}

impl Access<'_> {
    /// The bytes of a string in `range`, as far as there are any, a piece at a time and without
    /// copies of more than that.
    ///
    /// # Errors
    /// [`Stop::Disk`] in phase 1, if they are many.
    pub fn parts(&mut self, text: &Text, range: Range<u64>) -> Result<Parts, Stop> {
        let end = range.end.min(text.len());
        let at = range.start.min(end);
        let on_core = matches!(self.view, View::Memory { .. });
        if on_core && text.whole().is_none() && end - at > CORE_BYTES_MAX {
            return Err(Stop::Disk);
        }
        let (text, ahead, next) = (text.clone(), VecDeque::new(), 0);
        Ok(Parts {
            text,
            at,
            end,
            ahead,
            next,
        })
    }

    /// Overwrites a string from byte `at` on with `bytes`. It grows as far as it must, with zeros
    /// in a gap. The caller puts the result under a key.
    ///
    /// # Errors
    /// See [`Access`].
    pub fn write(&mut self, text: &mut Text, at: u64, mut bytes: Bytes) -> Result<(), Stop> {
        if bytes.is_empty() {
            return Ok(());
        }
        let end = at + bytes.len() as u64;
        if let (Text::Whole(old), true) = (&*text, end.max(text.len()) <= WHOLE_BYTES_MAX as u64) {
            self.meter.copied(old.len() + bytes.len())?;
            *text = Text::Whole(patched(old, at as usize, &bytes));
            return Ok(());
        }
        self.foresee((bytes.len() / PIECE_BYTES) as u64)?;
        let old_len = text.len();
        let id = self.in_pieces(text)?;
        let mut at = at;
        while !bytes.is_empty() {
            let (number, within) = place(at);
            let part = bytes.split_to(bytes.len().min(PIECE_BYTES - within));
            let (begin, end) = (at - within as u64, at + part.len() as u64);
            let piece = if within == 0 && (part.len() == PIECE_BYTES || end >= old_len) {
                part
            } else if begin >= old_len {
                patched(&[], within, &part)
            } else {
                let old = self.piece(id, number, 0..PIECE_BYTES)?;
                self.meter.copied(old.len())?;
                patched(&old, within, &part)
            };
            self.put_piece(id, number, piece)?;
            at = end;
        }
        let len = old_len.max(end);
        *text = Text::Pieces { id, len };
        Ok(())
    }

    /// Makes a string at least `len` bytes long, with zeros at its end. The caller puts the result
    /// under a key.
    ///
    /// # Errors
    /// See [`Access`].
    pub fn extend(&mut self, text: &mut Text, len: u64) -> Result<(), Stop> {
        if len <= text.len() {
            return Ok(());
        }
        if let (Text::Whole(old), true) = (&*text, len <= WHOLE_BYTES_MAX as u64) {
            *text = Text::Whole(patched(old, len as usize, &[]));
            return Ok(());
        }
        let id = self.in_pieces(text)?;
        *text = Text::Pieces { id, len };
        Ok(())
    }

    /// The same string once more, for another key.
    ///
    /// # Errors
    /// See [`Access`].
    pub fn copy(&mut self, text: &Text) -> Result<Text, Stop> {
        let Text::Pieces { id: from, len } = *text else {
            return Ok(text.clone());
        };
        let id = self.new_id();
        let (mut next, all) = (0, len.div_ceil(PIECE_BYTES as u64));
        while next < all {
            let end = (next + READ_TOGETHER).min(all);
            for (number, piece) in self.pieces(from, next..end)? {
                self.put_piece(id, number, piece)?;
            }
            next = end;
        }
        Ok(Text::Pieces { id, len })
    }

    /// Cuts a string that is too long for one record.
    pub(crate) fn cut(&mut self, object: Object) -> Result<Object, Stop> {
        match object {
            Object::String(mut text @ Text::Whole(_)) if text.len() > WHOLE_BYTES_MAX as u64 => {
                self.in_pieces(&mut text)?;
                Ok(Object::String(text))
            }
            other => Ok(other),
        }
    }

    /// Has a string lie in pieces, whose id it returns.
    fn in_pieces(&mut self, text: &mut Text) -> Result<u64, Stop> {
        let bytes = match text {
            Text::Pieces { id, .. } => return Ok(*id),
            Text::Whole(bytes) => std::mem::take(bytes),
        };
        self.foresee((bytes.len() / PIECE_BYTES) as u64)?;
        let (id, len) = (self.new_id(), bytes.len() as u64);
        let mut rest = bytes;
        for number in 0.. {
            if rest.is_empty() {
                break;
            }
            let piece = rest.split_to(rest.len().min(PIECE_BYTES));
            self.put_piece(id, number, piece)?;
        }
        *text = Text::Pieces { id, len };
        Ok(id)
    }

    /// What was written of a piece, within a range.
    fn piece(&mut self, id: u64, number: u64, within: Range<usize>) -> Result<Bytes, Stop> {
        let raw = record::piece_key(id, number);
        Ok(self.stored(id, &raw, within)?.unwrap_or_default())
    }

    fn put_piece(&mut self, id: u64, number: u64, bytes: Bytes) -> Result<(), Stop> {
        self.put_record(Table::Piece, id, &number.to_be_bytes(), bytes)
    }
}

/// `old` with `bytes` from `at` on, and zeros in a gap between them.
fn patched(old: &[u8], at: usize, bytes: &[u8]) -> Bytes {
    let end = at + bytes.len();
    let mut new = Vec::with_capacity(old.len().max(end));
    new.extend_from_slice(old);
    new.resize(old.len().max(end), 0);
    new[at..end].copy_from_slice(bytes);
    new.into()
}

/// Raw keys of the pieces of a string.
pub(crate) fn piece_keys(id: u64, len: u64) -> impl ExactSizeIterator<Item = Box<[u8]>> {
    let pieces = len.div_ceil(PIECE_BYTES as u64);
    let key = move |number| record::piece_key(id, u64::from(number));
    let pieces = u32::try_from(pieces).unwrap_or(u32::MAX);
    (0..pieces).map(move |number| key(number).as_slice().into())
}
