//! Strings seen as arrays of bits, the first bit being the highest of the first byte.

use std::ops::Range;

use bytes::Bytes;
use engine::Text;
use resp::is;

use super::{clamp, is_backwards, store};
use crate::data::call::{Call, Done, Fail, SYNTAX};

fn bit_offset(call: &Call, index: usize) -> Result<u64, Fail> {
    let refused = || Fail::error("ERR bit offset is not an integer or out of range");
    let offset = resp::parse_i64(call.arg(index)).ok_or_else(refused)?;
    let offset = u64::try_from(offset).map_err(|_| refused())?;
    if offset / 8 >= call.context.value_bytes_max as u64 {
        return Err(refused());
    }
    Ok(offset)
}

/// Byte `at` of a string; behind its end there are zeros.
fn byte(call: &mut Call, text: &Text, at: u64) -> Result<u8, Fail> {
    let mut parts = call.access.parts(text, at..at + 1)?;
    let part = parts.next(call.access)?;
    Ok(part.map_or(0, |part| part[0]))
}

/// The place of a bit in its byte, as a mask.
fn mask(offset: u64) -> u8 {
    0x80 >> (offset % 8)
}

/// `SETBIT key offset value`
pub(in crate::data) fn setbit(call: &mut Call) -> Done {
    let key = call.arg(1);
    let offset = bit_offset(call, 2)?;
    let on = match call.arg(3) {
        b"0" => false,
        b"1" => true,
        _ => return Err(Fail::error("ERR bit is not an integer or out of range")),
    };
    let (mut text, expire_at_ms) = call.string(key)?.unwrap_or_default();
    let old = byte(call, &text, offset / 8)?;
    let was_on = old & mask(offset) != 0;
    call.reply.int(i64::from(was_on));
    if was_on == on && offset / 8 < text.len() {
        // As in Redis, a write that changes nothing is none: whoever watches the key sees no
        // change.
        return Ok(());
    }
    let new = if on {
        old | mask(offset)
    } else {
        old & !mask(offset)
    };
    let new = Bytes::copy_from_slice(&[new]);
    call.access.write(&mut text, offset / 8, new)?;
    store(call, key, text, expire_at_ms)
}

/// `GETBIT key offset`
pub(in crate::data) fn getbit(call: &mut Call) -> Done {
    let offset = bit_offset(call, 2)?;
    let (text, _) = call.string(call.arg(1))?.unwrap_or_default();
    let on = byte(call, &text, offset / 8)? & mask(offset) != 0;
    call.reply.int(i64::from(on));
    Ok(())
}

/// The bits that `start [end [BYTE | BIT]]` at word `index` select.
fn bit_range(call: &Call, index: usize, len_bytes: u64) -> Result<Range<u64>, Fail> {
    let unit = match call.args.find(index + 2) {
        None => 8,
        Some(word) if is(word, "BYTE") => 8,
        Some(word) if is(word, "BIT") => 1,
        Some(_) => return Err(SYNTAX),
    };
    let start = call.int(index)?;
    let end = if call.args.len() > index + 1 {
        call.int(index + 1)?
    } else {
        -1
    };
    // Only BITCOUNT minds two negative places in the wrong order.
    if call.spec.name == "bitcount" && is_backwards(start, end) {
        return Ok(0..0);
    }
    let range = clamp(start, end, len_bytes * 8 / unit);
    Ok(range.start * unit..range.end * unit)
}

/// The bytes that hold these bits.
fn bytes_of(bits: &Range<u64>) -> Range<u64> {
    bits.start / 8..bits.end.div_ceil(8)
}

/// The ones among some bits of `part`, which begins with bit `first` of its string.
fn ones(part: &[u8], first: u64, bits: &Range<u64>) -> u64 {
    let words = part.chunks_exact(8);
    let rest = words.remainder().iter();
    let rest: u32 = rest.map(|byte| byte.count_ones()).sum();
    let words = words.map(|word| word.try_into().map_or(0, u64::from_ne_bytes));
    let all: u64 = words.map(|word| u64::from(word.count_ones())).sum();
    // Only the first byte and the last one may have bits outside.
    let last = first + part.len() as u64 * 8;
    let before = bits.start.saturating_sub(first) as u32;
    let behind = last.saturating_sub(bits.end) as u32;
    let outside = |byte: Option<&u8>, mask: u8| byte.map_or(0, |byte| (byte & mask).count_ones());
    let outside = outside(part.first(), !(0xffu16 >> before) as u8)
        + outside(part.last(), !(0xffu16 << behind) as u8);
    all + u64::from(rest) - u64::from(outside)
}

/// `BITCOUNT key [start end [BYTE | BIT]]`
pub(in crate::data) fn bitcount(call: &mut Call) -> Done {
    let Some((text, _)) = call.string(call.arg(1))? else {
        call.reply.int(0);
        return Ok(());
    };
    let bits = match call.args.len() {
        2 => 0..text.len() * 8,
        4 | 5 => bit_range(call, 2, text.len())?,
        _ => return Err(SYNTAX),
    };
    let mut parts = call.access.parts(&text, bytes_of(&bits))?;
    let (mut count, mut first) = (0, parts.at() * 8);
    while let Some(part) = parts.next(call.access)? {
        count += ones(&part, first, &bits);
        first = parts.at() * 8;
    }
    call.reply.int(count as i64);
    Ok(())
}

/// `BITPOS key bit [start [end [BYTE | BIT]]]`
pub(in crate::data) fn bitpos(call: &mut Call) -> Done {
    let wanted = match call.int(2)? {
        0 => false,
        1 => true,
        _ => return Err(Fail::error("ERR The bit argument must be 1 or 0.")),
    };
    if call.args.len() > 6 {
        return Err(SYNTAX);
    }
    let Some((text, _)) = call.string(call.arg(1))? else {
        call.reply.int(if wanted { -1 } else { 0 });
        return Ok(());
    };
    let bits = match call.args.len() {
        3 => 0..text.len() * 8,
        _ => bit_range(call, 3, text.len())?,
    };
    let has_end = call.args.len() > 4;
    let found = first_bit(call, &text, &bits, wanted)?;
    call.reply.int(match found {
        Some(at) => at as i64,
        // Without an end the string counts as followed by zeros.
        None if !wanted && !has_end && !bits.is_empty() => bits.end as i64,
        None => -1,
    });
    Ok(())
}

/// The first of some bits that is as wanted.
fn first_bit(
    call: &mut Call,
    text: &Text,
    bits: &Range<u64>,
    wanted: bool,
) -> Result<Option<u64>, Fail> {
    let skipped = if wanted { 0 } else { 0xff };
    let mut parts = call.access.parts(text, bytes_of(bits))?;
    let mut first = parts.at();
    while let Some(part) = parts.next(call.access)? {
        let bytes = (first..).zip(part.iter());
        for (at, byte) in bytes.filter(|(_, byte)| **byte != skipped) {
            let candidates = (at * 8).max(bits.start)..(at * 8 + 8).min(bits.end);
            for bit in candidates {
                if (byte & mask(bit) != 0) == wanted {
                    return Ok(Some(bit));
                }
            }
        }
        first = parts.at();
    }
    Ok(None)
}
