//! Strings that are numbers.

use bytes::Bytes;
use engine::Text;
use resp::parse_i64;

use super::store;
use crate::data::call::{Call, Done, Fail, NOT_AN_INTEGER, NOT_A_FLOAT};
use crate::data::long_double::LongDouble;

/// `INCR key`
pub(in crate::data) fn incr(call: &mut Call) -> Done {
    add(call, 1)
}

/// `DECR key`
pub(in crate::data) fn decr(call: &mut Call) -> Done {
    add(call, -1)
}

/// `INCRBY key increment`
pub(in crate::data) fn incrby(call: &mut Call) -> Done {
    add(call, call.int(2)?)
}

/// `DECRBY key decrement`
pub(in crate::data) fn decrby(call: &mut Call) -> Done {
    let decrement = call.int(2)?;
    add(
        call,
        decrement
            .checked_neg()
            .ok_or(Fail::error("ERR decrement would overflow"))?,
    )
}

fn add(call: &mut Call, increment: i64) -> Done {
    let key = call.arg(1);
    let (old, expire_at_ms) = match call.string(key)? {
        Some((text, expire_at_ms)) => {
            let number = text.whole().and_then(|text| parse_i64(text));
            (number.ok_or(NOT_AN_INTEGER)?, expire_at_ms)
        }
        None => (0, None),
    };
    let value = old
        .checked_add(increment)
        .ok_or(Fail::error("ERR increment or decrement would overflow"))?;
    let text = Bytes::copy_from_slice(itoa::Buffer::new().format(value).as_bytes());
    store(call, key, Text::Whole(text), expire_at_ms)?;
    call.reply.int(value);
    Ok(())
}

/// `INCRBYFLOAT key increment`
pub(in crate::data) fn incrbyfloat(call: &mut Call) -> Done {
    let key = call.arg(1);
    let (old, expire_at_ms) = match call.string(key)? {
        Some((text, expire_at_ms)) => {
            let text = text.whole().ok_or(NOT_A_FLOAT)?;
            (call.long_double(text)?.ok_or(NOT_A_FLOAT)?, expire_at_ms)
        }
        None => (LongDouble::ZERO, None),
    };
    let increment = call.long_double(call.arg(2))?.ok_or(NOT_A_FLOAT)?;
    let value = old
        .checked_add(increment)
        .ok_or(Fail::error("ERR increment would produce NaN or Infinity"))?;
    let text = call.printed(value)?;
    store(call, key, Text::Whole(text.clone()), expire_at_ms)?;
    call.reply.bulk(&text);
    Ok(())
}
