//! A reply of the engine's that has come.

use bytes::Bytes;
use front::{Kept, Shows, Space};
use resp::Output;

/// Its beginning in pieces, if it is long, and the rest. An error is never in pieces.
pub(super) struct Come<'a> {
    pub(super) pieces: Vec<Bytes>,
    pub(super) rest: &'a [u8],
}

impl<'a> Come<'a> {
    /// One that is not long.
    pub(super) fn short(rest: &'a [u8]) -> Self {
        Self {
            pieces: Vec::new(),
            rest,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.pieces.iter().map(Bytes::len).sum::<usize>() + self.rest.len()
    }

    /// As it is kept: what is in pieces, without a copy.
    pub(super) fn kept(self) -> Kept {
        let mut kept = Kept::from_vec(self.pieces);
        if !self.rest.is_empty() || kept.is_empty() {
            kept.push(Bytes::copy_from_slice(self.rest));
        }
        kept
    }

    /// Appends it to `out`; what is in pieces, without a copy. An error tells no mark.
    pub(super) fn write(self, space: &Space, out: &mut Output) {
        if self.pieces.is_empty() {
            return Shows::None.write(self.rest, space, out);
        }
        self.pieces
            .into_iter()
            .for_each(|piece| out.write_bytes(piece));
        out.write(self.rest);
    }
}
