//! Fields that are numbers.

use bytes::Bytes;
use resp::parse_i64;

use super::Hash;
use crate::data::call::{Call, Done, Fail, NOT_A_FLOAT};
use crate::data::long_double::LongDouble;

/// `HINCRBY key field increment`
pub(in crate::data) fn hincrby(call: &mut Call) -> Done {
    let (key, field, increment) = (call.arg(1), call.arg(2), call.int(3)?);
    let mut hash = Hash::open_or_new(call, key)?;
    let old = match hash.get(call, field)? {
        Some(text) => parse_i64(&text).ok_or(Fail::error("ERR hash value is not an integer"))?,
        None => 0,
    };
    let value = old
        .checked_add(increment)
        .ok_or(Fail::error("ERR increment or decrement would overflow"))?;
    let text = Bytes::copy_from_slice(itoa::Buffer::new().format(value).as_bytes());
    hash.set(call, field, text)?;
    hash.close(call)?;
    call.reply.int(value);
    Ok(())
}

/// `HINCRBYFLOAT key field increment`
pub(in crate::data) fn hincrbyfloat(call: &mut Call) -> Done {
    let (key, field) = (call.arg(1), call.arg(2));
    let increment = call.long_double(call.arg(3))?.ok_or(NOT_A_FLOAT)?;
    if !increment.is_finite() {
        return Err(Fail::error("ERR value is NaN or Infinity"));
    }
    let mut hash = Hash::open_or_new(call, key)?;
    let old = match hash.get(call, field)? {
        Some(text) => call
            .long_double(&text)?
            .ok_or(Fail::error("ERR hash value is not a float"))?,
        None => LongDouble::ZERO,
    };
    let value = old
        .checked_add(increment)
        .ok_or(Fail::error("ERR increment would produce NaN or Infinity"))?;
    let text = call.printed(value)?;
    hash.set(call, field, text.clone())?;
    hash.close(call)?;
    call.reply.bulk(&text);
    Ok(())
}
