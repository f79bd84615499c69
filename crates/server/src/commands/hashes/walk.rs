//! Commands that read many fields.

use std::ops::Bound;

use bytes::Bytes;

use super::{has_option, Hash};
use crate::commands::call::{Call, Done, Fail, SYNTAX};
use crate::commands::keyspace::Scan;
use crate::commands::{random, CHUNK, SCAN_WHOLE_LEN};
use crate::resp::{Output, Reply};

/// `HGETALL key`
pub(in crate::commands) fn hgetall(call: &mut Call) -> Done {
    write_fields(
        call,
        |reply, count| reply.map(count),
        |reply, field, value| {
            reply.bulk(&field);
            reply.bulk_bytes(&value);
        },
    )
}

/// `HKEYS key`
pub(in crate::commands) fn hkeys(call: &mut Call) -> Done {
    write_fields(
        call,
        |reply, count| reply.array(count),
        |reply, field, _| reply.bulk(&field),
    )
}

/// `HVALS key`
pub(in crate::commands) fn hvals(call: &mut Call) -> Done {
    write_fields(
        call,
        |reply, count| reply.array(count),
        |reply, _, value| reply.bulk_bytes(&value),
    )
}

/// Writes what `write` makes of every field, behind a header with their number. They are counted as they come: a reply
/// whose header promised another number would break everything that the client reads after it.
fn write_fields(
    call: &mut Call,
    header: impl Fn(&mut Reply, usize),
    write: impl Fn(&mut Reply, Bytes, Bytes),
) -> Done {
    let key = call.arg(1);
    let Some(hash) = Hash::open(call, key)? else {
        header(&mut call.reply, 0);
        return Ok(());
    };
    let mut count = 0;
    if call.reply.is_streamed() {
        // It reads a snapshot, so that the second walk finds what the first has counted.
        hash.for_each(call, |_, _, _| count += 1)?;
        header(&mut call.reply, count);
        return hash.for_each(call, |call, field, value| {
            write(&mut call.reply, field, value)
        });
    }
    let mut items = Output::new();
    let mut writer = Reply::new(&mut items, call.reply.protocol());
    hash.for_each(call, |_, field, value| {
        write(&mut writer, field, value);
        count += 1;
    })?;
    header(&mut call.reply, count);
    call.reply.append(items);
    Ok(())
}

/// `HSCAN key cursor [MATCH pattern] [COUNT count]`
pub(in crate::commands) fn hscan(call: &mut Call) -> Done {
    let options = Scan::parse(call, 2)?;
    let key = call.arg(1);
    let mut items = Output::new();
    let mut found = 0;
    let mut cursor = 0;
    if let Some(hash) = Hash::open(call, key)? {
        let mut writer = Reply::new(&mut items, call.reply.protocol());
        let (mut from, to) = options.ahead(call, Some(hash.id()));
        // Redis returns what it keeps as one "listpack" whole.
        let mut left = if hash.len() <= SCAN_WHOLE_LEN {
            CHUNK
        } else {
            options.count
        };
        loop {
            let wanted = left.min(CHUNK);
            let from_slice = from.as_ref().map(|field| &field[..]);
            let chunk = hash.chunk(call, from_slice, to.as_ref().map(|end| &end[..]), wanted)?;
            left -= chunk.items.len();
            let last = chunk.items.last().map(|(field, _)| field.clone());
            let is_end = !chunk.more;
            for (field, value) in chunk
                .items
                .into_iter()
                .filter(|(field, _)| options.wants(field))
            {
                writer.bulk(&field);
                writer.bulk_bytes(&value);
                found += 2;
            }
            match last.filter(|_| !is_end) {
                None => break,
                Some(last) if left == 0 => {
                    cursor = call.context.cursors.remember(Some(hash.id()), &last);
                    break;
                }
                Some(last) => from = Bound::Excluded(last),
            }
        }
    }
    call.reply.array(2);
    call.reply
        .bulk(itoa::Buffer::new().format(cursor).as_bytes());
    call.reply.array(found);
    call.reply.append(items);
    Ok(())
}

/// `HRANDFIELD key [count [WITHVALUES]]`
pub(in crate::commands) fn hrandfield(call: &mut Call) -> Done {
    let key = call.arg(1);
    if call.args.len() == 2 {
        let picked = match Hash::open(call, key)? {
            Some(hash) => pick(call, &hash, &[random::below(hash.len())])?.pop(),
            None => None,
        };
        call.reply
            .bulk_or_null(picked.as_ref().map(|(field, _)| field));
        return Ok(());
    }
    let count = random::count(call.int(2)?)?;
    let with_values = has_option(call, 3, "WITHVALUES");
    if call.args.len() > 4 || call.args.len() == 4 && !with_values {
        return Err(SYNTAX);
    }
    if with_values && count > i64::MAX / 2 {
        return Err(Fail::error("ERR value is out of range"));
    }
    let picked = match Hash::open(call, key)? {
        Some(hash) => {
            let places = random::places(hash.len(), count);
            pick(call, &hash, &places)?
        }
        None => Vec::new(),
    };
    let nested = with_values && call.reply.is_resp3();
    call.reply.array(if with_values && !nested {
        picked.len() * 2
    } else {
        picked.len()
    });
    for (field, value) in picked {
        if nested {
            call.reply.array(2);
        }
        call.reply.bulk(&field);
        if with_values {
            call.reply.bulk_bytes(&value);
        }
    }
    Ok(())
}

/// The fields at these places of the byte order, in the order of `places`.
fn pick(call: &mut Call, hash: &Hash, places: &[u64]) -> Result<Vec<(Bytes, Bytes)>, Fail> {
    let mut wanted: Vec<(u64, usize)> = places.iter().copied().zip(0..).collect();
    wanted.sort_unstable();
    let mut picked = vec![(Bytes::new(), Bytes::new()); places.len()];
    let mut next = wanted.into_iter().peekable();
    let mut place = 0;
    let mut last: Option<Bytes> = None;
    while next.peek().is_some() {
        let from = last.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        let chunk = hash.chunk(call, from, Bound::Unbounded, CHUNK)?.items;
        last = match chunk.last() {
            Some((field, _)) => Some(field.clone()),
            None => break,
        };
        for element in chunk {
            while let Some((_, index)) = next.next_if(|(wanted, _)| *wanted == place) {
                picked[index] = element.clone();
            }
            place += 1;
        }
    }
    Ok(picked)
}
