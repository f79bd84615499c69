//! Commands on hashes. A field is a record of its own; the object under the key knows only how many
//! there are.

mod counters;
mod store;
mod walk;

use resp::is;

use super::call::{Call, Done, Fail};

pub(super) use counters::{hincrby, hincrbyfloat};
pub(super) use store::Hash;
pub(super) use walk::{hgetall, hkeys, hrandfield, hscan, hvals};

/// `HSET key field value …`
pub(super) fn hset(call: &mut Call) -> Done {
    let added = set_pairs(call)?;
    call.reply.int(added);
    Ok(())
}

/// `HMSET key field value …`
pub(super) fn hmset(call: &mut Call) -> Done {
    set_pairs(call)?;
    call.reply.ok();
    Ok(())
}

fn set_pairs(call: &mut Call) -> Result<i64, Fail> {
    let args = call.args;
    if args.len() % 2 == 1 {
        let name = call.spec.name;
        return Err(Fail::error(format!(
            "ERR wrong number of arguments for '{name}' command"
        )));
    }
    let mut hash = Hash::open_or_new(call, args.get(1))?;
    let mut added = 0;
    for field in (2..args.len()).step_by(2) {
        added += i64::from(hash.set(call, args.get(field), args.bytes(field + 1))?);
    }
    hash.close(call)?;
    Ok(added)
}

/// `HSETNX key field value`
pub(super) fn hsetnx(call: &mut Call) -> Done {
    let (key, field) = (call.arg(1), call.arg(2));
    let mut hash = Hash::open_or_new(call, key)?;
    let is_new = hash.get(call, field)?.is_none();
    if is_new {
        let value = call.args.bytes(3);
        hash.set(call, field, value)?;
        hash.close(call)?;
    }
    call.reply.int(i64::from(is_new));
    Ok(())
}

/// `HGET key field`
pub(super) fn hget(call: &mut Call) -> Done {
    let (key, field) = (call.arg(1), call.arg(2));
    let value = match Hash::open(call, key)? {
        Some(hash) => hash.get(call, field)?,
        None => None,
    };
    call.reply.bulk_or_null(value.as_ref());
    Ok(())
}

/// `HMGET key field …`
pub(super) fn hmget(call: &mut Call) -> Done {
    let args = call.args;
    let hash = Hash::open(call, args.get(1))?;
    call.reply.array(args.len() - 2);
    for field in args.iter().skip(2) {
        let value = match &hash {
            Some(hash) => hash.get(call, field)?,
            None => None,
        };
        call.reply.bulk_or_null(value.as_ref());
    }
    Ok(())
}

/// `HDEL key field …`
pub(super) fn hdel(call: &mut Call) -> Done {
    let args = call.args;
    let mut deleted = 0;
    if let Some(mut hash) = Hash::open(call, args.get(1))? {
        for field in args.iter().skip(2) {
            deleted += i64::from(hash.remove(call, field)?);
        }
        hash.close(call)?;
    }
    call.reply.int(deleted);
    Ok(())
}

/// `HLEN key`
pub(super) fn hlen(call: &mut Call) -> Done {
    let key = call.arg(1);
    let hash = Hash::open(call, key)?;
    call.reply.int(hash.map_or(0, |hash| hash.len() as i64));
    Ok(())
}

/// `HSTRLEN key field`
pub(super) fn hstrlen(call: &mut Call) -> Done {
    let (key, field) = (call.arg(1), call.arg(2));
    let value = match Hash::open(call, key)? {
        Some(hash) => hash.get(call, field)?,
        None => None,
    };
    call.reply.count(value.map_or(0, |value| value.len()));
    Ok(())
}

/// `HEXISTS key field`
pub(super) fn hexists(call: &mut Call) -> Done {
    let (key, field) = (call.arg(1), call.arg(2));
    let value = match Hash::open(call, key)? {
        Some(hash) => hash.get(call, field)?,
        None => None,
    };
    call.reply.int(i64::from(value.is_some()));
    Ok(())
}

/// True when word `index` exists and is `option`.
fn has_option(call: &Call, index: usize, option: &str) -> bool {
    call.args.find(index).is_some_and(|word| is(word, option))
}
