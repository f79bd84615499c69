//! A reply of the engine's that has come.

use std::borrow::Cow;

use bytes::Bytes;
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

    /// All of it together: a copy, if it is in pieces.
    pub(super) fn joined(&self) -> Cow<'a, [u8]> {
        match self.pieces.is_empty() {
            true => self.rest.into(),
            false => {
                let mut all = Vec::with_capacity(self.len());
                let pieces = self.pieces.iter().map(|piece| &piece[..]);
                pieces
                    .chain([self.rest])
                    .for_each(|piece| all.extend_from_slice(piece));
                all.into()
            }
        }
    }

    /// The same, for what keeps parts of it.
    pub(super) fn shared(&self) -> Bytes {
        self.joined().into_owned().into()
    }

    /// Appends it to `out`; what is in pieces, without a copy.
    pub(super) fn write(self, out: &mut Output) {
        self.pieces
            .into_iter()
            .for_each(|piece| out.write_bytes(piece));
        out.write(self.rest);
    }
}
