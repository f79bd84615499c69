//! `BITFIELD`: integers of any width at any place of a string.
//!
//! The words are read twice: to check them and to see how far the string has to reach, and to carry
//! them out. Pieces of the string are in memory from the first operation on them to the last, so
//! that a thousand operations on one piece read and write it once.

use std::collections::BTreeMap;

use bytes::Bytes;
use engine::{Text, PIECE_BYTES};
use resp::{is, parse_i64};

use super::{check_size, store};
use crate::data::call::{Call, Done, Fail, NOT_AN_INTEGER, SYNTAX};

/// Pieces that are kept although nothing was written in them.
const READ_KEPT: usize = 16;

/// Width and sign of an integer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Encoding {
    signed: bool,
    /// 1 to 64, or to 63 without a sign.
    bits: u32,
}

impl Encoding {
    fn parse(word: &[u8]) -> Result<Encoding, Fail> {
        let found = word.split_first().and_then(|(sign, digits)| {
            let signed = match sign {
                b'i' => true,
                b'u' => false,
                _ => return None,
            };
            let bits = u32::try_from(parse_i64(digits)?).ok()?;
            let most = if signed { 64 } else { 63 };
            (1..=most)
                .contains(&bits)
                .then_some(Encoding { signed, bits })
        });
        found.ok_or(Fail::error(
            "ERR Invalid bitfield type. Use something like i16 u8. \
             Note that u64 is not supported but i64 is.",
        ))
    }

    /// The least and the greatest integer.
    fn limits(self) -> (i128, i128) {
        match self.signed {
            true => (-(1 << (self.bits - 1)), (1 << (self.bits - 1)) - 1),
            false => (0, (1 << self.bits) - 1),
        }
    }

    /// The integer that the lowest bits of `raw` are.
    fn decode(self, raw: u64) -> i128 {
        let unused = 64 - self.bits;
        match self.signed {
            true => i128::from((raw << unused) as i64 >> unused),
            false => i128::from(raw << unused >> unused),
        }
    }
}

/// What becomes of an integer that does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Overflow {
    Wrap,
    Saturate,
    Fail,
}

impl Overflow {
    fn parse(word: &[u8]) -> Result<Overflow, Fail> {
        let all = [
            ("WRAP", Overflow::Wrap),
            ("SAT", Overflow::Saturate),
            ("FAIL", Overflow::Fail),
        ];
        let found = all.into_iter().find(|(name, _)| is(word, name));
        let found = found.map(|(_, overflow)| overflow);
        found.ok_or(Fail::error("ERR Invalid OVERFLOW type specified"))
    }

    /// What is stored in place of `value`; `None`: nothing.
    fn fit(self, value: i128, encoding: Encoding) -> Option<i128> {
        let (least, greatest) = encoding.limits();
        match self {
            _ if (least..=greatest).contains(&value) => Some(value),
            Overflow::Wrap => Some(encoding.decode(value as u64)),
            Overflow::Saturate => Some(value.clamp(least, greatest)),
            Overflow::Fail => None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    Get,
    Set(i64),
    Add(i64),
}

/// One operation.
#[derive(Clone, Copy, Debug)]
struct Operation {
    action: Action,
    encoding: Encoding,
    /// The first bit.
    offset: u64,
    overflow: Overflow,
}

impl Operation {
    /// The first bit behind it.
    fn end(&self) -> u64 {
        self.offset + u64::from(self.encoding.bits)
    }

    /// What is there afterwards, if it fits, and what the client is told of then.
    fn apply(&self, old: i128) -> Option<(i128, i128)> {
        let encoding = self.encoding;
        match self.action {
            Action::Get => Some((old, old)),
            Action::Set(value) => {
                // As in Redis, a negative number is a great one where there is no sign.
                let value = match encoding.signed {
                    true => i128::from(value),
                    false => i128::from(value as u64),
                };
                let new = self.overflow.fit(value, encoding)?;
                Some((new, old))
            }
            Action::Add(value) => {
                let new = self.overflow.fit(old + i128::from(value), encoding)?;
                Some((new, new))
            }
        }
    }
}

/// `offset`, or `#number` of integers so wide.
fn offset(call: &Call, word: &[u8], bits: u32) -> Result<u64, Fail> {
    let refused = || Fail::error("ERR bit offset is not an integer or out of range");
    let (digits, unit) = match word.strip_prefix(b"#") {
        Some(digits) => (digits, u64::from(bits)),
        None => (word, 1),
    };
    let number = parse_i64(digits).and_then(|number| u64::try_from(number).ok());
    let offset = number.and_then(|number| number.checked_mul(unit));
    offset
        .filter(|offset| offset / 8 < call.context.value_bytes_max as u64)
        .ok_or_else(refused)
}

/// Calls `each` with every operation that the words from the third on ask for.
fn operations<'w, 'k>(
    call: &mut Call<'w, 'k>,
    mut each: impl FnMut(&mut Call<'w, 'k>, Operation) -> Done,
) -> Done {
    let mut overflow = Overflow::Wrap;
    let (mut at, end) = (2, call.args.len());
    while at < end {
        let (word, left) = (call.arg(at), end - at - 1);
        if is(word, "OVERFLOW") && left >= 1 {
            overflow = Overflow::parse(call.arg(at + 1))?;
            at += 2;
            continue;
        }
        let takes = match word {
            get if is(get, "GET") => 2,
            write if is(write, "SET") || is(write, "INCRBY") => 3,
            _ => return Err(SYNTAX),
        };
        if left < takes {
            return Err(SYNTAX);
        }
        let encoding = Encoding::parse(call.arg(at + 1))?;
        let offset = offset(call, call.arg(at + 2), encoding.bits)?;
        let number = |call: &Call| parse_i64(call.arg(at + 3)).ok_or(NOT_AN_INTEGER);
        let action = match takes {
            2 => Action::Get,
            _ if is(word, "SET") => Action::Set(number(call)?),
            _ => Action::Add(number(call)?),
        };
        call.access.steps(1)?;
        let operation = Operation {
            action,
            encoding,
            offset,
            overflow,
        };
        each(call, operation)?;
        at += 1 + takes;
    }
    Ok(())
}

/// A piece of the string, as long as a piece can be.
struct Piece {
    bytes: Vec<u8>,
    written: bool,
}

/// The string under work.
struct Field {
    text: Text,
    pieces: BTreeMap<u64, Piece>,
    /// Pieces in which nothing was written yet.
    read: usize,
}

impl Field {
    fn piece(&mut self, call: &mut Call, number: u64) -> Result<&mut Piece, Fail> {
        if !self.pieces.contains_key(&number) {
            if self.read >= READ_KEPT {
                self.let_go(call);
            }
            call.access.work(PIECE_BYTES)?;
            let first = number * PIECE_BYTES as u64;
            let mut bytes = Vec::with_capacity(PIECE_BYTES);
            let mut parts = call
                .access
                .parts(&self.text, first..first + PIECE_BYTES as u64)?;
            while let Some(part) = parts.next(call.access)? {
                bytes.extend_from_slice(&part);
            }
            bytes.resize(PIECE_BYTES, 0);
            let written = false;
            self.pieces.insert(number, Piece { bytes, written });
            self.read += 1;
        }
        Ok(self.pieces.get_mut(&number).expect("it is there now"))
    }

    /// Forgets pieces in which nothing was written.
    fn let_go(&mut self, call: &mut Call) {
        self.pieces.retain(|_, piece| piece.written);
        call.access.work_done(self.read * PIECE_BYTES);
        self.read = 0;
    }

    /// Calls `each` with every byte that an operation touches.
    fn bytes(
        &mut self,
        call: &mut Call,
        operation: &Operation,
        mut each: impl FnMut(&mut Piece, usize),
    ) -> Done {
        for at in operation.offset / 8..operation.end().div_ceil(8) {
            let piece = self.piece(call, at / PIECE_BYTES as u64)?;
            each(piece, at as usize % PIECE_BYTES);
        }
        Ok(())
    }

    /// The bits that an operation touches, and the bits behind them in their last byte.
    fn read(&mut self, call: &mut Call, operation: &Operation) -> Result<i128, Fail> {
        let mut raw = 0u128;
        self.bytes(call, operation, |piece, at| {
            raw = raw << 8 | u128::from(piece.bytes[at]);
        })?;
        let behind = operation.end().next_multiple_of(8) - operation.end();
        Ok(operation.encoding.decode((raw >> behind) as u64))
    }

    fn write(&mut self, call: &mut Call, operation: &Operation, value: i128) -> Done {
        let behind = operation.end().next_multiple_of(8) - operation.end();
        let mask = ((1u128 << operation.encoding.bits) - 1) << behind;
        let raw = (value as u128) << behind & mask;
        let first = operation.offset / 8;
        let mut shift = (operation.end().div_ceil(8) - first) * 8;
        let mut first_written = 0;
        self.bytes(call, operation, |piece, at| {
            shift -= 8;
            let byte = &mut piece.bytes[at];
            *byte = *byte & !((mask >> shift) as u8) | (raw >> shift) as u8;
            first_written += usize::from(!piece.written);
            piece.written = true;
        })?;
        self.read -= first_written;
        Ok(())
    }

    /// The string with what was written, at least `len` bytes long.
    fn text(mut self, call: &mut Call, len: u64) -> Result<Text, Fail> {
        self.let_go(call);
        let Field {
            mut text, pieces, ..
        } = self;
        let len = len.max(text.len());
        for (number, mut piece) in pieces {
            let at = number * PIECE_BYTES as u64;
            let inside = usize::try_from(len - at).unwrap_or(PIECE_BYTES);
            piece.bytes.truncate(inside);
            call.access.work_done(PIECE_BYTES);
            call.access.write(&mut text, at, Bytes::from(piece.bytes))?;
        }
        call.access.extend(&mut text, len)?;
        Ok(text)
    }
}

/// `BITFIELD key [GET encoding offset | [OVERFLOW WRAP | SAT | FAIL] SET … | INCRBY …] …`,
/// `BITFIELD_RO key [GET …] …`
pub(in crate::data) fn bitfield(call: &mut Call) -> Done {
    let (mut count, mut end) = (0, None::<u64>);
    operations(call, |call, operation| {
        count += 1;
        if operation.action != Action::Get {
            if call.spec.name == "bitfield_ro" {
                return Err(Fail::error(
                    "ERR BITFIELD_RO only supports the GET subcommand",
                ));
            }
            end = end.max(Some(operation.end().div_ceil(8)));
        }
        Ok(())
    })?;
    if let Some(len) = end {
        check_size(call, len)?;
    }
    let key = call.arg(1);
    let found = call.string(key)?;
    let (is_new, (text, expire_at_ms)) = (found.is_none(), found.unwrap_or_default());
    let len_before = text.len();
    let mut field = Field {
        text,
        pieces: BTreeMap::new(),
        read: 0,
    };
    let mut changed = is_new || end.is_some_and(|len| len > len_before);
    call.reply.array(count);
    operations(call, |call, operation| {
        let old = field.read(call, &operation)?;
        let Some((new, told)) = operation.apply(old) else {
            call.reply.null();
            return Ok(());
        };
        if new != old {
            field.write(call, &operation, new)?;
            changed = true;
        }
        call.reply.int(told as i64);
        Ok(())
    })?;
    // As in Redis, a string reaches as far as it was to be written, whatever failed; and a write
    // that changes nothing is none: whoever watches the key sees no change.
    match end {
        Some(len) if changed => {
            let text = field.text(call, len)?;
            store(call, key, text, expire_at_ms)
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn integer(word: &str) -> Encoding {
        Encoding::parse(word.as_bytes()).unwrap()
    }

    #[test]
    fn integers_have_1_to_64_bits() {
        for bad in ["", "i", "i0", "i65", "u0", "u64", "x8", "i-1", "I8", "i8 "] {
            assert!(Encoding::parse(bad.as_bytes()).is_err(), "{bad}");
        }
        let (i64_min, i64_max) = (i128::from(i64::MIN), i128::from(i64::MAX));
        assert_eq!(integer("i64").limits(), (i64_min, i64_max));
        assert_eq!(integer("u63").limits(), (0, i64_max));
        assert_eq!(integer("i1").limits(), (-1, 0));
        assert_eq!(integer("i4").decode(0xff8), -8);
        assert_eq!(integer("u4").decode(0xff8), 8);
    }

    #[test]
    fn what_does_not_fit_wraps_or_stops_or_is_refused() {
        let of = |overflow, action, word: &str, old| {
            let encoding = integer(word);
            let offset = 0;
            let operation = Operation {
                action,
                encoding,
                offset,
                overflow,
            };
            operation.apply(old)
        };
        use Action::{Add, Set};
        use Overflow::{Fail, Saturate, Wrap};
        assert_eq!(of(Wrap, Add(1), "u2", 3), Some((0, 0)));
        assert_eq!(of(Saturate, Add(1), "u2", 3), Some((3, 3)));
        assert_eq!(of(Fail, Add(1), "u2", 3), None);
        assert_eq!(of(Saturate, Add(-100), "i4", 0), Some((-8, -8)));
        assert_eq!(of(Wrap, Set(-1), "u8", 7), Some((255, 7)));
        assert_eq!(of(Saturate, Set(-1), "u8", 7), Some((255, 7)));
        let most = i128::from(i64::MAX);
        let least = i128::from(i64::MIN);
        assert_eq!(of(Wrap, Add(1), "i64", most), Some((least, least)));
        assert_eq!(of(Saturate, Add(i64::MIN), "i64", -1), Some((least, least)));
    }
}
