//! Commands on keys of any type.

mod copy;
mod dump;
mod expire;
mod object;
mod restore;

use super::call::{Call, Done, Fail};
use engine::{Kind, Object};

pub(super) use copy::{copy, copy_to, move_key, move_to};
pub(super) use dump::dump;
pub(super) use expire::{
    expire, expireat, expiretime, persist, pexpire, pexpireat, pexpiretime, pttl, ttl,
};
pub(super) use object::{encoding, freq, idletime, memory_usage, refcount};
pub(super) use restore::restore;

/// `DEL key …`, `UNLINK key …`. What takes longer than a moment is done on a handler for both.
pub(super) fn del(call: &mut Call) -> Done {
    let args = call.args;
    let mut deleted = 0;
    for key in args.iter().skip(1) {
        deleted += i64::from(call.access.delete(key)?);
    }
    call.reply.int(deleted);
    Ok(())
}

/// `EXISTS key …`, `TOUCH key …`: a key named twice counts twice.
pub(super) fn exists(call: &mut Call) -> Done {
    let args = call.args;
    let mut found = 0;
    for key in args.iter().skip(1) {
        found += i64::from(call.access.get(key)?.is_some());
    }
    call.reply.int(found);
    Ok(())
}

/// The name that `TYPE` and `SCAN … TYPE` use.
pub(super) fn type_name(object: &Object) -> &'static str {
    match object {
        Object::String(_) => "string",
        Object::Collection(header) => match header.kind {
            Kind::Hash => "hash",
            Kind::SortedSet => "zset",
        },
    }
}

/// `TYPE key`
pub(super) fn type_of(call: &mut Call) -> Done {
    let entry = call.access.get(call.arg(1))?;
    call.reply
        .simple(entry.map_or("none", |entry| type_name(&entry.object)));
    Ok(())
}

fn no_such_key() -> Fail {
    Fail::error("ERR no such key")
}

/// `RENAME key newkey`
pub(super) fn rename(call: &mut Call) -> Done {
    let (from, to) = (call.arg(1), call.arg(2));
    if call.access.get(from)?.is_none() {
        return Err(no_such_key());
    }
    if from != to {
        call.access.rename(from, to)?;
    }
    call.reply.ok();
    Ok(())
}

/// `RENAMENX key newkey`
pub(super) fn renamenx(call: &mut Call) -> Done {
    let (from, to) = (call.arg(1), call.arg(2));
    if call.access.get(from)?.is_none() {
        return Err(no_such_key());
    }
    let is_free = from != to && call.access.get(to)?.is_none();
    if is_free {
        call.access.rename(from, to)?;
    }
    call.reply.int(i64::from(is_free));
    Ok(())
}
