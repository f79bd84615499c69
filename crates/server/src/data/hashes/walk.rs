//! Commands that read many fields.

use std::ops::Bound;

use bytes::Bytes;
use resp::Reply;

use super::{has_option, Hash};
use crate::data::call::{Call, Done, Fail, SYNTAX};
use crate::data::keyspace::{scan_header, slice, Scan};
use crate::data::{random, CHUNK, SCAN_WHOLE_LEN};

/// `HGETALL key`
pub(in crate::data) fn hgetall(call: &mut Call) -> Done {
    list_fields(
        call,
        |reply, count| reply.map(count),
        |reply, field, value| {
            reply.bulk(&field);
            reply.bulk_bytes(&value);
        },
    )
}

/// `HKEYS key`
pub(in crate::data) fn hkeys(call: &mut Call) -> Done {
    list_fields(
        call,
        |reply, count| reply.array(count),
        |reply, field, _| reply.bulk(&field),
    )
}

/// `HVALS key`
pub(in crate::data) fn hvals(call: &mut Call) -> Done {
    list_fields(
        call,
        |reply, count| reply.array(count),
        |reply, _, value| reply.bulk_bytes(&value),
    )
}

fn list_fields(
    call: &mut Call,
    header: impl Fn(&mut Reply, usize),
    write: impl Fn(&mut Reply, Bytes, Bytes),
) -> Done {
    let key = call.arg(1);
    let hash = Hash::open(call, key)?;
    call.list(
        |call, each| match &hash {
            Some(hash) => hash.for_each(call, |call, field, value| each(call, (field, value))),
            None => Ok(()),
        },
        |reply, count, ()| header(reply, count),
        |reply, (field, value)| write(reply, field, value),
    )
}

/// `HSCAN key cursor [MATCH pattern] [COUNT count]`
pub(in crate::data) fn hscan(call: &mut Call) -> Done {
    let options = Scan::parse(call, 2)?;
    let key = call.arg(1);
    let hash = Hash::open(call, key)?;
    call.list(
        |call, each| match &hash {
            Some(hash) => scan_fields(call, hash, &options, each),
            None => Ok(0),
        },
        |reply, count, cursor| scan_header(reply, cursor, count * 2),
        |reply, (field, value)| {
            reply.bulk(&field);
            reply.bulk_bytes(&value);
        },
    )
}

/// Calls `each` with the fields that a call of `HSCAN` wants; returns the cursor to go on with.
fn scan_fields<'c, 'k>(
    call: &mut Call<'c, 'k>,
    hash: &Hash,
    options: &Scan,
    each: &mut dyn FnMut(&mut Call<'c, 'k>, (Bytes, Bytes)),
) -> Result<u64, Fail> {
    let (mut from, to) = options.ahead(call, Some(hash.id()));
    // Redis returns what it keeps as one "listpack" whole.
    let mut left = if hash.len() <= SCAN_WHOLE_LEN {
        CHUNK
    } else {
        options.count
    };
    loop {
        let page = hash.chunk(call, slice(&from), slice(&to), left.min(CHUNK))?;
        left -= page.items.len();
        let last = page.items.last().map(|(field, _)| field.clone());
        for item in page.items {
            if options.wants(call, &item.0)? {
                each(call, item);
            }
        }
        match last.filter(|_| page.more) {
            None => return Ok(0),
            Some(last) if left == 0 => {
                return Ok(call.context.cursors.remember(Some(hash.id()), &last))
            }
            Some(last) => from = Bound::Excluded(last),
        }
    }
}

/// `HRANDFIELD key [count [WITHVALUES]]`
pub(in crate::data) fn hrandfield(call: &mut Call) -> Done {
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
            let places = random::places(call.access, hash.len(), count)?;
            pick(call, &hash, &places)?
        }
        None => Vec::new(),
    };
    for (field, value) in &picked {
        call.access.hold(field.len() + value.len())?;
    }
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
            if next.peek().is_some_and(|(wanted, _)| *wanted == place) {
                call.access.work(element.0.len() + element.1.len())?;
            }
            while let Some((_, index)) = next.next_if(|(wanted, _)| *wanted == place) {
                picked[index] = element.clone();
            }
            place += 1;
        }
    }
    Ok(picked)
}
