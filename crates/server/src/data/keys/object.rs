//! `OBJECT …` and `MEMORY USAGE`: what an object would be in Redis, as far as that means something
//! here.

use std::ops::Bound;

use engine::{Entry, Kind, Object, Order, Table, Text, PIECE_BYTES};
use resp::{is, parse_i64, Reply};

use crate::data::call::{Call, Done, Fail, SYNTAX};
use crate::data::CHUNK;

/// Redis keeps strings up to this long in one allocation with their header.
const EMBEDDED_BYTES: u64 = 44;
/// Collections up to this long are "listpacks" in Redis's defaults.
const LISTPACK_LEN: u64 = 128;
/// Rough cost in bytes of a record's key, sequence number and index beside its own bytes.
const RECORD_OVERHEAD_BYTES: usize = 32;
/// Elements that `MEMORY USAGE` looks at without `SAMPLES`.
const SAMPLES: usize = 5;

/// Replies for the key of `OBJECT … key`, or nothing when there is none.
fn about(call: &mut Call, answer: impl FnOnce(&Entry, &mut Reply)) -> Done {
    match call.access.get(call.arg(2))? {
        Some(entry) => answer(&entry, &mut call.reply),
        None => call.reply.null(),
    }
    Ok(())
}

/// `OBJECT ENCODING key`
pub(in crate::data) fn encoding(call: &mut Call) -> Done {
    about(call, |entry, reply| {
        reply.bulk(match &entry.object {
            Object::String(Text::Whole(value)) if parse_i64(value).is_some() => b"int",
            Object::String(text) if text.len() <= EMBEDDED_BYTES => b"embstr",
            Object::String(_) => b"raw",
            Object::Collection(header) if header.len <= LISTPACK_LEN => b"listpack",
            Object::Collection(header) => match header.kind {
                Kind::Hash => b"hashtable",
                Kind::SortedSet => b"skiplist",
            },
        })
    })
}

/// `OBJECT REFCOUNT key`
pub(in crate::data) fn refcount(call: &mut Call) -> Done {
    about(call, |_, reply| reply.int(1))
}

/// `OBJECT IDLETIME key`: always 0, as nothing here depends on it.
pub(in crate::data) fn idletime(call: &mut Call) -> Done {
    about(call, |_, reply| reply.int(0))
}

/// `OBJECT FREQ key`: refused as in a Redis without an LFU policy.
pub(in crate::data) fn freq(call: &mut Call) -> Done {
    match call.access.get(call.arg(2))? {
        None => {
            call.reply.null();
            Ok(())
        }
        Some(_) => Err(Fail::error(
            "ERR An LFU maxmemory policy is not selected, access frequency not tracked. \
             Please note that when switching between policies at runtime LRU and LFU data will take some time to adjust.",
        )),
    }
}

/// `MEMORY USAGE key [SAMPLES count]`: bytes the object takes as records, its elements extrapolated
/// from a sample.
pub(in crate::data) fn memory_usage(call: &mut Call) -> Done {
    let key = call.arg(2);
    let samples = match call.args.len() {
        3 => SAMPLES,
        5 if is(call.arg(3), "SAMPLES") => match call.int(4)? {
            0 => usize::MAX,
            count => usize::try_from(count).map_err(|_| SYNTAX)?,
        },
        _ => return Err(SYNTAX),
    };
    let Some(entry) = call.access.get(key)? else {
        call.reply.null();
        return Ok(());
    };
    let own = key.len() + RECORD_OVERHEAD_BYTES;
    let content = match entry.object {
        Object::String(Text::Whole(value)) => value.len(),
        Object::String(Text::Pieces { len, .. }) => {
            let pieces = len.div_ceil(PIECE_BYTES as u64) as usize;
            len as usize + pieces * RECORD_OVERHEAD_BYTES
        }
        Object::Collection(header) => {
            let (table, records_each) = match header.kind {
                Kind::Hash => (Table::Field, 1),
                // A sorted set has each member twice: by name and by score.
                Kind::SortedSet => (Table::Member, 2),
            };
            let sample = call.access.records(
                table,
                header.id,
                Bound::Unbounded,
                Bound::Unbounded,
                Order::Up,
                samples.min(CHUNK),
            )?;
            let sample = sample.items;
            let bytes: usize = sample
                .iter()
                .map(|(name, value)| name.len() + value.len() + RECORD_OVERHEAD_BYTES)
                .sum();
            let each = bytes as f64 / sample.len().max(1) as f64;
            (each * header.len as f64) as usize * records_each
        }
    };
    call.reply.count(own + content);
    Ok(())
}
