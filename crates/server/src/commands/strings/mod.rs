//! Commands on strings.

mod bits;
mod counters;
mod expiry;
mod lcs;

use bytes::Bytes;
use engine::{Entry, Object};

use super::call::{Call, Done, Fail, NOT_AN_INTEGER, WRONG_TYPE};
use expiry::{Allowed, Expiry, Options};

pub(super) use bits::{bitcount, bitop, bitpos, getbit, setbit};
pub(super) use counters::{decr, decrby, incr, incrby, incrbyfloat};
pub(super) use lcs::lcs;

/// Puts a string under `key`; one that has expired already is as good as deleted.
pub(super) fn store(call: &mut Call, key: &[u8], value: Bytes, expire_at_ms: Option<u64>) -> Done {
    if expire_at_ms.is_some_and(|at| at <= call.access.now_ms()) {
        call.access.delete(key)?;
    } else {
        call.access.put(
            key,
            Entry {
                object: Object::String(value),
                expire_at_ms,
            },
        )?;
    }
    Ok(())
}

fn check_size(call: &Call, bytes: usize) -> Done {
    if bytes > call.context.value_bytes_max {
        return Err(Fail::error(
            "ERR string exceeds maximum allowed size (proto-max-bulk-len)",
        ));
    }
    Ok(())
}

/// `GET key`
pub(super) fn get(call: &mut Call) -> Done {
    let reply = &mut call.reply;
    call.access.with(call.args.get(1), |entry| {
        match entry.map(|entry| &entry.object) {
            None => reply.null(),
            Some(Object::String(value)) => reply.bulk_bytes(value),
            Some(_) => return Err(WRONG_TYPE),
        }
        Ok(())
    })?
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
        let value = old.as_ref().map(|entry| match &entry.object {
            Object::String(value) => Ok(value.clone()),
            Object::Collection(_) => Err(WRONG_TYPE),
        });
        let value = value.transpose()?;
        call.reply.bulk_or_null(value.as_ref());
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
    store(call, key, call.args.bytes(2), expire_at_ms)?;
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
        store(call, key, call.args.bytes(2), None)?;
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
    store(call, call.arg(1), call.args.bytes(3), Some(at))?;
    call.reply.ok();
    Ok(())
}

/// `GETSET key value`
pub(super) fn getset(call: &mut Call) -> Done {
    let old = call.string(call.arg(1))?;
    store(call, call.arg(1), call.args.bytes(2), None)?;
    call.reply
        .bulk_or_null(old.as_ref().map(|(value, _)| value));
    Ok(())
}

/// `GETDEL key`
pub(super) fn getdel(call: &mut Call) -> Done {
    let old = call.string(call.arg(1))?;
    if old.is_some() {
        call.access.delete(call.arg(1))?;
    }
    call.reply
        .bulk_or_null(old.as_ref().map(|(value, _)| value));
    Ok(())
}

/// `GETEX key [EX … | PX … | EXAT … | PXAT … | PERSIST]`
pub(super) fn getex(call: &mut Call) -> Done {
    let key = call.arg(1);
    let options = Options::parse(call, 2, Allowed::GetEx)?;
    let Some((value, expire_at_ms)) = call.string(key)? else {
        call.reply.null();
        return Ok(());
    };
    match options.expiry(call)? {
        Expiry::At(at) => store(call, key, value.clone(), Some(at))?,
        Expiry::Never if options.persist && expire_at_ms.is_some() => {
            store(call, key, value.clone(), None)?
        }
        _ => {}
    }
    call.reply.bulk_bytes(&value);
    Ok(())
}

/// `MGET key …`: what is not a string reads as nothing.
pub(super) fn mget(call: &mut Call) -> Done {
    let args = call.args;
    call.reply.array(args.len() - 1);
    for key in args.iter().skip(1) {
        let reply = &mut call.reply;
        call.access
            .with(key, |entry| match entry.map(|e| &e.object) {
                Some(Object::String(value)) => reply.bulk_bytes(value),
                _ => reply.null(),
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
        store(call, call.arg(key), call.args.bytes(key + 1), None)?;
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
        store(call, call.arg(key), call.args.bytes(key + 1), None)?;
    }
    call.reply.int(1);
    Ok(())
}

/// `APPEND key value`
pub(super) fn append(call: &mut Call) -> Done {
    let (key, more) = (call.arg(1), call.arg(2));
    let (value, expire_at_ms) = match call.string(key)? {
        None => (call.args.bytes(2), None),
        Some((old, expire_at_ms)) => {
            check_size(call, old.len().saturating_add(more.len()))?;
            (Bytes::from([&old[..], more].concat()), expire_at_ms)
        }
    };
    let len = value.len();
    store(call, key, value, expire_at_ms)?;
    call.reply.count(len);
    Ok(())
}

/// `STRLEN key`
pub(super) fn strlen(call: &mut Call) -> Done {
    let value = call.string(call.arg(1))?;
    call.reply.count(value.map_or(0, |(value, _)| value.len()));
    Ok(())
}

/// `GETRANGE key start end`, `SUBSTR key start end`
pub(super) fn getrange(call: &mut Call) -> Done {
    let (start, end) = (call.int(2)?, call.int(3)?);
    let value = call
        .string(call.arg(1))?
        .map(|(value, _)| value)
        .unwrap_or_default();
    let range = match is_backwards(start, end) {
        true => 0..0,
        false => clamp(start, end, value.len()),
    };
    call.reply.bulk_bytes(&value.slice(range));
    Ok(())
}

/// True for two negative places in the wrong order. Such a range is empty even where [`clamp`] would move both its ends
/// to the first place.
fn is_backwards(start: i64, end: i64) -> bool {
    start < 0 && end < 0 && start > end
}

/// The part of `0..len` between `start` and `end`, both inclusive and counted from the end when negative.
fn clamp(start: i64, end: i64, len: usize) -> std::ops::Range<usize> {
    let from_end = |index: i64| {
        if index < 0 {
            index.saturating_add(len as i64)
        } else {
            index
        }
    };
    let (start, end) = (
        from_end(start).max(0),
        from_end(end).max(0).min(len as i64 - 1),
    );
    if start > end {
        return 0..0;
    }
    start as usize..end as usize + 1
}

/// `SETRANGE key offset value`
pub(super) fn setrange(call: &mut Call) -> Done {
    let (key, patch) = (call.arg(1), call.arg(3));
    let offset = call.int(2)?;
    let offset = usize::try_from(offset).map_err(|_| Fail::error("ERR offset is out of range"))?;
    let (old, expire_at_ms) = call.string(key)?.unwrap_or_default();
    if patch.is_empty() {
        call.reply.count(old.len());
        return Ok(());
    }
    let end = offset.checked_add(patch.len()).ok_or(NOT_AN_INTEGER)?;
    check_size(call, end)?;
    let mut value = Vec::with_capacity(old.len().max(end));
    value.extend_from_slice(&old);
    value.resize(old.len().max(end), 0);
    value[offset..end].copy_from_slice(patch);
    call.reply.count(value.len());
    store(call, key, Bytes::from(value), expire_at_ms)
}
