//! Commands on strings.

mod bitfield;
mod bitop;
mod bits;
mod counters;
mod expiry;
mod lcs;

use std::ops::Range;

use bytes::Bytes;
use engine::{Entry, Object, Text, WHOLE_BYTES_MAX};
use resp::Reply;

use super::call::{Call, Done, Fail, NOT_AN_INTEGER, WRONG_TYPE};
use expiry::{Allowed, Expiry, Options};

pub(super) use bitfield::bitfield;
pub(super) use bitop::bitop;
pub(super) use bits::{bitcount, bitpos, getbit, setbit};
pub(super) use counters::{decr, decrby, incr, incrby, incrbyfloat};
pub(super) use lcs::lcs;

/// Word `index` as a value to store. One that is too long to stay in memory as it is need not be
/// copied out of its request.
fn value(call: &Call, index: usize) -> Bytes {
    match call.arg(index).len() > WHOLE_BYTES_MAX {
        true => call.args.lent(index),
        false => call.args.bytes(index),
    }
}

/// Puts a string under `key`; one that has expired already is as good as deleted.
fn store(call: &mut Call, key: &[u8], text: Text, expire_at_ms: Option<u64>) -> Done {
    if expire_at_ms.is_some_and(|at| at <= call.access.now_ms()) {
        call.access.delete(key)?;
    } else {
        let object = Object::String(text);
        let entry = Entry {
            object,
            expire_at_ms,
        };
        call.access.put(key, entry)?;
    }
    Ok(())
}

/// Stores word `index` under `key`.
fn store_word(call: &mut Call, key: &[u8], index: usize, expire_at_ms: Option<u64>) -> Done {
    let text = Text::Whole(value(call, index));
    store(call, key, text, expire_at_ms)
}

/// Replies with a part of a string. One of much is made piece by piece, as the client takes it.
fn reply_part(call: &mut Call, text: &Text, range: Range<u64>) -> Done {
    if let Some(whole) = text.whole() {
        let part = whole.slice(range.start as usize..range.end as usize);
        call.reply.bulk_bytes(&part);
        return Ok(());
    }
    // A command that writes then runs twice: for its effect, which does not wait for all this, and
    // for its reply.
    if call.reply.is_unseen() {
        return Ok(());
    }
    call.access.hold_at_most(call.context.held_bytes_max);
    let len = range.end - range.start;
    call.access.hold_in_parts(len)?;
    let mut parts = call.access.parts(text, range)?;
    call.reply.begin_bulk(len);
    while let Some(part) = parts.next(call.access)? {
        call.reply.part(&part);
    }
    call.reply.end_bulk();
    Ok(())
}

fn reply_text(call: &mut Call, text: &Text) -> Done {
    reply_part(call, text, 0..text.len())
}

/// Replies with the string under `key`, or with nothing; `other` says what to do about another
/// type.
fn reply_string(call: &mut Call, key: &[u8], other: fn(&mut Reply) -> Done) -> Done {
    let reply = &mut call.reply;
    let long = call
        .access
        .with(key, |entry| match entry.map(|entry| &entry.object) {
            None => {
                reply.null();
                Ok(None)
            }
            Some(Object::String(Text::Whole(value))) => {
                reply.bulk_bytes(value);
                Ok(None)
            }
            Some(Object::String(long)) => Ok(Some(long.clone())),
            Some(_) => other(reply).map(|()| None),
        })??;
    long.map_or(Ok(()), |text| reply_text(call, &text))
}

fn check_size(call: &Call, bytes: u64) -> Done {
    if bytes > call.context.value_bytes_max as u64 {
        return Err(Fail::error(
            "ERR string exceeds maximum allowed size (proto-max-bulk-len)",
        ));
    }
    Ok(())
}

/// `GET key`
pub(super) fn get(call: &mut Call) -> Done {
    reply_string(call, call.arg(1), |_| Err(WRONG_TYPE))
}

/// `SET key value [NX | XX] [GET] [EX … | PX … | EXAT … | PXAT … | KEEPTTL]`
pub(super) fn set(call: &mut Call) -> Done {
    let key = call.arg(1);
    let options = Options::parse(call, 3, Allowed::Set)?;
    let expiry = options.expiry(call)?;
    // A plain SET replaces whatever is there, unseen.
    let needs_old = options.get || options.nx || options.xx || expiry == Expiry::Keep;
    let old = if needs_old {
        call.access.get(key)?
    } else {
        None
    };
    if options.get {
        match old.as_ref().map(|entry| &entry.object) {
            None => call.reply.null(),
            Some(Object::String(text)) => reply_text(call, text)?,
            Some(_) => return Err(WRONG_TYPE),
        }
    }
    if options.nx && old.is_some() || options.xx && old.is_none() {
        if !options.get {
            call.reply.null();
        }
        return Ok(());
    }
    let expire_at_ms = match expiry {
        Expiry::Keep => old.and_then(|entry| entry.expire_at_ms),
        Expiry::Never => None,
        Expiry::At(at) => Some(at),
    };
    store_word(call, key, 2, expire_at_ms)?;
    if !options.get {
        call.reply.ok();
    }
    Ok(())
}

/// `SETNX key value`
pub(super) fn setnx(call: &mut Call) -> Done {
    let key = call.arg(1);
    let is_new = call.access.get(key)?.is_none();
    if is_new {
        store_word(call, key, 2, None)?;
    }
    call.reply.int(i64::from(is_new));
    Ok(())
}

/// `SETEX key seconds value`
pub(super) fn setex(call: &mut Call) -> Done {
    set_with_ttl(call, 1000)
}

/// `PSETEX key milliseconds value`
pub(super) fn psetex(call: &mut Call) -> Done {
    set_with_ttl(call, 1)
}

fn set_with_ttl(call: &mut Call, unit_ms: i64) -> Done {
    let at = expiry::deadline(call, call.int(2)?, unit_ms, true)?;
    store_word(call, call.arg(1), 3, Some(at))?;
    call.reply.ok();
    Ok(())
}

/// Replies with the string under `key`, or with nothing, before it is replaced or deleted; true
/// when there is one.
fn reply_old(call: &mut Call, key: &[u8]) -> Result<bool, Fail> {
    let Some((old, _)) = call.string(key)? else {
        call.reply.null();
        return Ok(false);
    };
    reply_text(call, &old)?;
    Ok(true)
}

/// `GETSET key value`
pub(super) fn getset(call: &mut Call) -> Done {
    let key = call.arg(1);
    reply_old(call, key)?;
    store_word(call, key, 2, None)
}

/// `GETDEL key`
pub(super) fn getdel(call: &mut Call) -> Done {
    let key = call.arg(1);
    if reply_old(call, key)? {
        call.access.delete(key)?;
    }
    Ok(())
}

/// `GETEX key [EX … | PX … | EXAT … | PXAT … | PERSIST]`
pub(super) fn getex(call: &mut Call) -> Done {
    let key = call.arg(1);
    let options = Options::parse(call, 2, Allowed::GetEx)?;
    let Some((text, expire_at_ms)) = call.string(key)? else {
        call.reply.null();
        return Ok(());
    };
    let expiry = options.expiry(call)?;
    reply_text(call, &text)?;
    match expiry {
        Expiry::At(at) => store(call, key, text, Some(at)),
        Expiry::Never if options.persist && expire_at_ms.is_some() => store(call, key, text, None),
        _ => Ok(()),
    }
}

/// `MGET key …`: what is not a string reads as nothing.
pub(super) fn mget(call: &mut Call) -> Done {
    let args = call.args;
    call.reply.array(args.len() - 1);
    for key in args.iter().skip(1) {
        reply_string(call, key, |reply| {
            reply.null();
            Ok(())
        })?;
    }
    Ok(())
}

fn check_pairs(call: &Call) -> Done {
    if call.args.len() % 2 == 0 {
        let name = call.spec.name;
        return Err(Fail::error(format!(
            "ERR wrong number of arguments for '{name}' command"
        )));
    }
    Ok(())
}

/// `MSET key value …`
pub(super) fn mset(call: &mut Call) -> Done {
    check_pairs(call)?;
    for key in (1..call.args.len()).step_by(2) {
        store_word(call, call.arg(key), key + 1, None)?;
    }
    call.reply.ok();
    Ok(())
}

/// `MSETNX key value …`
pub(super) fn msetnx(call: &mut Call) -> Done {
    check_pairs(call)?;
    for key in (1..call.args.len()).step_by(2) {
        if call.access.get(call.arg(key))?.is_some() {
            call.reply.int(0);
            return Ok(());
        }
    }
    for key in (1..call.args.len()).step_by(2) {
        store_word(call, call.arg(key), key + 1, None)?;
    }
    call.reply.int(1);
    Ok(())
}

/// `APPEND key value`
pub(super) fn append(call: &mut Call) -> Done {
    let key = call.arg(1);
    let (mut text, expire_at_ms) = call.string(key)?.unwrap_or_default();
    let (end, more) = (text.len(), value(call, 2));
    check_size(call, end.saturating_add(more.len() as u64))?;
    call.access.write(&mut text, end, more)?;
    call.reply.int(text.len() as i64);
    store(call, key, text, expire_at_ms)
}

/// `STRLEN key`
pub(super) fn strlen(call: &mut Call) -> Done {
    let found = call.string(call.arg(1))?;
    call.reply
        .int(found.map_or(0, |(text, _)| text.len() as i64));
    Ok(())
}

/// `GETRANGE key start end`, `SUBSTR key start end`
pub(super) fn getrange(call: &mut Call) -> Done {
    let (start, end) = (call.int(2)?, call.int(3)?);
    let (text, _) = call.string(call.arg(1))?.unwrap_or_default();
    let range = match is_backwards(start, end) {
        true => 0..0,
        false => clamp(start, end, text.len()),
    };
    reply_part(call, &text, range)
}

/// True for two negative places in the wrong order. Such a range is empty even where [`clamp`]
/// would move both its ends to the first place.
fn is_backwards(start: i64, end: i64) -> bool {
    start < 0 && end < 0 && start > end
}

/// The part of `0..len` between `start` and `end`, both inclusive and counted from the end when
/// negative.
fn clamp(start: i64, end: i64, len: u64) -> Range<u64> {
    let len = len as i64;
    let from_end = |index: i64| {
        if index < 0 {
            index.saturating_add(len)
        } else {
            index
        }
    };
    let (start, end) = (from_end(start).max(0), from_end(end).max(0).min(len - 1));
    if start > end {
        return 0..0;
    }
    start as u64..end as u64 + 1
}

/// `SETRANGE key offset value`
pub(super) fn setrange(call: &mut Call) -> Done {
    let key = call.arg(1);
    let offset = call.int(2)?;
    let offset = u64::try_from(offset).map_err(|_| Fail::error("ERR offset is out of range"))?;
    let (mut text, expire_at_ms) = call.string(key)?.unwrap_or_default();
    if call.arg(3).is_empty() {
        call.reply.int(text.len() as i64);
        return Ok(());
    }
    let patch = value(call, 3);
    let end = offset
        .checked_add(patch.len() as u64)
        .ok_or(NOT_AN_INTEGER)?;
    check_size(call, end)?;
    call.access.write(&mut text, offset, patch)?;
    call.reply.int(text.len() as i64);
    store(call, key, text, expire_at_ms)
}
