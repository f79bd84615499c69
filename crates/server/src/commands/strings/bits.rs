//! Strings seen as arrays of bits, the first bit being the highest of the first byte.

use std::ops::Range;

use bytes::Bytes;

use super::{clamp, is_backwards, store};
use crate::commands::call::{is, Call, Done, Fail, SYNTAX};

fn bit_offset(call: &Call, index: usize) -> Result<usize, Fail> {
    let refused = || Fail::error("ERR bit offset is not an integer or out of range");
    let offset = crate::resp::parse_i64(call.arg(index)).ok_or_else(refused)?;
    let offset = usize::try_from(offset).map_err(|_| refused())?;
    if offset / 8 >= call.context.value_bytes_max {
        return Err(refused());
    }
    Ok(offset)
}

fn bit(value: &[u8], offset: usize) -> bool {
    value
        .get(offset / 8)
        .is_some_and(|byte| byte >> (7 - offset % 8) & 1 == 1)
}

/// `SETBIT key offset value`
pub(in crate::commands) fn setbit(call: &mut Call) -> Done {
    let key = call.arg(1);
    let offset = bit_offset(call, 2)?;
    let on = match call.arg(3) {
        b"0" => false,
        b"1" => true,
        _ => return Err(Fail::error("ERR bit is not an integer or out of range")),
    };
    let (old, expire_at_ms) = call.string(key)?.unwrap_or_default();
    let was_on = bit(&old, offset);
    call.reply.int(i64::from(was_on));
    if was_on == on && offset / 8 < old.len() {
        // As in Redis, a write that changes nothing is none: whoever watches the key sees no change.
        return Ok(());
    }
    let mut value = Vec::with_capacity(old.len().max(offset / 8 + 1));
    value.extend_from_slice(&old);
    value.resize(old.len().max(offset / 8 + 1), 0);
    let mask = 1 << (7 - offset % 8);
    value[offset / 8] = value[offset / 8] & !mask | if on { mask } else { 0 };
    store(call, key, Bytes::from(value), expire_at_ms)
}

/// `GETBIT key offset`
pub(in crate::commands) fn getbit(call: &mut Call) -> Done {
    let offset = bit_offset(call, 2)?;
    let value = call.string(call.arg(1))?;
    call.reply.int(i64::from(
        value.is_some_and(|(value, _)| bit(&value, offset)),
    ));
    Ok(())
}

/// The bits that `start [end [BYTE | BIT]]` at word `index` select.
fn bit_range(call: &Call, index: usize, len_bytes: usize) -> Result<Range<usize>, Fail> {
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

fn ones(value: &[u8], range: Range<usize>) -> u64 {
    if range.is_empty() {
        return 0;
    }
    let (first, last) = (range.start / 8, (range.end - 1) / 8);
    let whole: u64 = value[first..=last]
        .iter()
        .map(|byte| u64::from(byte.count_ones()))
        .sum();
    let before = value[first] & !(0xff >> (range.start % 8));
    let after = value[last] & (0xffu16 >> ((range.end - 1) % 8 + 1)) as u8;
    whole - u64::from(before.count_ones()) - u64::from(after.count_ones())
}

/// `BITCOUNT key [start end [BYTE | BIT]]`
pub(in crate::commands) fn bitcount(call: &mut Call) -> Done {
    let Some((value, _)) = call.string(call.arg(1))? else {
        call.reply.int(0);
        return Ok(());
    };
    let range = match call.args.len() {
        2 => 0..value.len() * 8,
        4 | 5 => bit_range(call, 2, value.len())?,
        _ => return Err(SYNTAX),
    };
    call.reply.int(ones(&value, range) as i64);
    Ok(())
}

/// `BITPOS key bit [start [end [BYTE | BIT]]]`
pub(in crate::commands) fn bitpos(call: &mut Call) -> Done {
    let wanted = match call.int(2)? {
        0 => false,
        1 => true,
        _ => return Err(Fail::error("ERR The bit argument must be 1 or 0.")),
    };
    if call.args.len() > 6 {
        return Err(SYNTAX);
    }
    let Some((value, _)) = call.string(call.arg(1))? else {
        call.reply.int(if wanted { -1 } else { 0 });
        return Ok(());
    };
    let range = match call.args.len() {
        3 => 0..value.len() * 8,
        _ => bit_range(call, 3, value.len())?,
    };
    let has_end = call.args.len() > 4;
    let skipped = if wanted { 0 } else { 0xff };
    let mut at = range.start;
    while at < range.end && bit(&value, at) != wanted {
        at += if at % 8 == 0 && value[at / 8] == skipped {
            8
        } else {
            1
        };
    }
    call.reply.int(match at < range.end {
        true => at as i64,
        // Without an end the string counts as followed by zeros.
        false if !wanted && !has_end && !range.is_empty() => range.end as i64,
        false => -1,
    });
    Ok(())
}

/// `BITOP AND | OR | XOR | NOT destination source …`
pub(in crate::commands) fn bitop(call: &mut Call) -> Done {
    let operation: fn(u8, u8) -> u8 = match call.arg(1) {
        word if is(word, "AND") => |a, b| a & b,
        word if is(word, "OR") => |a, b| a | b,
        word if is(word, "XOR") => |a, b| a ^ b,
        word if is(word, "NOT") => |a, _| !a,
        _ => return Err(SYNTAX),
    };
    let is_not = is(call.arg(1), "NOT");
    if is_not && call.args.len() != 4 {
        return Err(Fail::error(
            "ERR BITOP NOT must be called with a single source key.",
        ));
    }
    let mut sources = Vec::with_capacity(call.args.len() - 3);
    for index in 3..call.args.len() {
        sources.push(
            call.string(call.arg(index))?
                .map(|(value, _)| value)
                .unwrap_or_default(),
        );
    }
    let len = sources.iter().map(Bytes::len).max().unwrap_or(0);
    let at = |source: &Bytes, index: usize| source.get(index).copied().unwrap_or(0);
    let mut result: Vec<u8> = (0..len).map(|index| at(&sources[0], index)).collect();
    if is_not {
        result
            .iter_mut()
            .for_each(|byte| *byte = operation(*byte, 0));
    }
    for source in &sources[1..] {
        for (index, byte) in result.iter_mut().enumerate() {
            *byte = operation(*byte, at(source, index));
        }
    }
    let destination = call.arg(2);
    if result.is_empty() {
        call.access.delete(destination)?;
    } else {
        store(call, destination, Bytes::from(result), None)?;
    }
    call.reply.count(len);
    Ok(())
}
