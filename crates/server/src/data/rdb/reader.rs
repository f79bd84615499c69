//! Reads a value from a dump.

use std::ops::Range;

use engine::Access;

use super::{lzf, DAMAGED};
use crate::data::call::Fail;

/// A string of a dump.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Span {
    /// It lies there as it is, at these bytes of the dump.
    Plain(Range<usize>),
    /// It was made of what lies there.
    Made(Vec<u8>),
}

/// Reads from front to back. Every method returns `None` where the dump is damaged.
#[derive(Clone)]
pub struct Reader<'d> {
    dump: &'d [u8],
    at: usize,
    /// No string is longer, in bytes.
    string_bytes_max: usize,
}

/// A length, or how a string is encoded that has none.
enum Length {
    Bytes(u64),
    Special(u8),
}

impl<'d> Reader<'d> {
    /// From byte `at` on.
    pub fn new(dump: &'d [u8], at: usize, string_bytes_max: usize) -> Self {
        Self {
            dump,
            at,
            string_bytes_max,
        }
    }

    /// Everything was read.
    pub fn is_at_end(&self) -> bool {
        self.at == self.dump.len()
    }

    fn take(&mut self, len: usize) -> Option<&'d [u8]> {
        let end = self.at.checked_add(len)?;
        let taken = self.dump.get(self.at..end)?;
        self.at = end;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    fn length(&mut self) -> Option<Length> {
        let [head] = self.array()?;
        let low = head & 0x3f;
        Some(match head >> 6 {
            0 => Length::Bytes(u64::from(low)),
            1 => Length::Bytes(u64::from(low) << 8 | u64::from(self.array::<1>()?[0])),
            2 if head == 0x80 => Length::Bytes(u64::from(u32::from_be_bytes(self.array()?))),
            2 if head == 0x81 => Length::Bytes(u64::from_be_bytes(self.array()?)),
            2 => return None,
            _ => Length::Special(low),
        })
    }

    /// A number of elements.
    pub fn count(&mut self) -> Option<u64> {
        match self.length()? {
            Length::Bytes(count) => Some(count),
            Length::Special(_) => None,
        }
    }

    fn size(&mut self) -> Option<usize> {
        let size = usize::try_from(self.count()?).ok()?;
        (size <= self.string_bytes_max).then_some(size)
    }

    /// A score, eight bytes.
    pub fn score(&mut self) -> Option<f64> {
        let score = f64::from_le_bytes(self.array()?);
        (!score.is_nan()).then_some(score)
    }

    /// A string. Undoing a compression is work for the command.
    ///
    /// # Errors
    /// It is damaged; or the command has to go on elsewhere.
    pub fn string(&mut self, access: &mut Access) -> Result<Span, Fail> {
        let before = self.at;
        match self.length().ok_or(DAMAGED)? {
            Length::Bytes(_) => {
                self.at = before;
                self.plain().map(Span::Plain).ok_or(DAMAGED)
            }
            Length::Special(3) => {
                let (from, len) = self.compressed().ok_or(DAMAGED)?;
                let text = lzf::decompress(from, len, access)?.ok_or(DAMAGED)?;
                Ok(Span::Made(text))
            }
            Length::Special(width) => {
                let number = self.int(width).ok_or(DAMAGED)?;
                Ok(Span::Made(number.to_string().into_bytes()))
            }
        }
    }

    fn plain(&mut self) -> Option<Range<usize>> {
        let len = self.size()?;
        let from = self.at;
        self.take(len)?;
        Some(from..from + len)
    }

    fn compressed(&mut self) -> Option<(&'d [u8], usize)> {
        let (compressed, len) = (self.count()?, self.size()?);
        let compressed = self.take(usize::try_from(compressed).ok()?)?;
        Some((compressed, len))
    }

    fn int(&mut self, width: u8) -> Option<i64> {
        Some(match width {
            0 => i64::from(i8::from_le_bytes(self.array()?)),
            1 => i64::from(i16::from_le_bytes(self.array()?)),
            2 => i64::from(i32::from_le_bytes(self.array()?)),
            _ => return None,
        })
    }

    /// The bytes of a string.
    pub fn bytes<'s>(&self, span: &'s Span) -> &'s [u8]
    where
        'd: 's,
    {
        match span {
            Span::Plain(range) => &self.dump[range.clone()],
            Span::Made(bytes) => bytes,
        }
    }
}
