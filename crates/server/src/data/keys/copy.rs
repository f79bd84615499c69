//! `COPY` and `MOVE`.

use std::ops::Bound;

use engine::{Access, Database, Entry, Header, Kind, Object, Order, Stop, Table};
use resp::{is, Args};

use crate::data::call::{Call, Done, Fail, SYNTAX};
use crate::data::{numbered, CHUNK};

/// A key and its database.
type Located<'a> = (Database, &'a [u8]);

/// `COPY source destination [DB index] [REPLACE]`
pub(in crate::data) fn copy(call: &mut Call) -> Done {
    let from = (call.access.database(), call.arg(1));
    let to = copy_to(&call.args, from.0)?;
    let replace = call.args.iter().skip(3).any(|word| is(word, "REPLACE"));
    let copied = copy_between(call.access, from, to, replace)?;
    call.reply.int(i64::from(copied));
    Ok(())
}

/// The destination of a `COPY` that is sent to `database`. Checks the whole line.
pub(in crate::data) fn copy_to<'a>(
    args: &Args<'a>,
    database: Database,
) -> Result<Located<'a>, Fail> {
    let mut to = (database, args.get(2));
    let mut index = 3;
    while let Some(word) = args.find(index) {
        if is(word, "DB") && args.len() > index + 1 {
            to.0 = numbered(args.get(index + 1)).map_err(Fail::error)?;
            index += 1;
        } else if !is(word, "REPLACE") {
            return Err(SYNTAX);
        }
        index += 1;
    }
    Ok(to)
}

/// `MOVE key index`: elements belong to a database, so they are copied.
pub(in crate::data) fn move_key(call: &mut Call) -> Done {
    let from = (call.access.database(), call.arg(1));
    let to = move_to(&call.args)?;
    let moved = copy_between(call.access, from, to, false)?;
    if moved {
        call.access.select(from.0);
        call.access.delete(from.1)?;
    }
    call.reply.int(i64::from(moved));
    Ok(())
}

/// Where a `MOVE` puts its key.
pub(in crate::data) fn move_to<'a>(args: &Args<'a>) -> Result<Located<'a>, Fail> {
    let database = numbered(args.get(2)).map_err(Fail::error)?;
    Ok((database, args.get(1)))
}

/// Copies what a key holds to another; `false`: it holds nothing, or the other holds something that
/// is not to be replaced.
fn copy_between(
    access: &mut Access,
    from: Located,
    to: Located,
    replace: bool,
) -> Result<bool, Fail> {
    if from == to {
        return Err(Fail::error(
            "ERR source and destination objects are the same",
        ));
    }
    let source = access.get(from.1)?;
    access.select(to.0);
    let blocked = !replace && source.is_some() && access.get(to.1)?.is_some();
    let Some(source) = source.filter(|_| !blocked) else {
        return Ok(false);
    };
    let object = match source.object {
        Object::Collection(header) => Object::Collection(copy_collection(access, &header)?),
        Object::String(text) => Object::String(access.copy(&text)?),
    };
    access.put(to.1, Entry { object, ..source })?;
    Ok(true)
}

fn copy_collection(access: &mut Access, source: &Header) -> Result<Header, Stop> {
    let mut copy = access.new_collection(source.kind)?;
    copy.len = source.len;
    let tables: &[Table] = match source.kind {
        Kind::Hash => &[Table::Field],
        Kind::SortedSet => &[Table::Member, Table::Score],
    };
    for &table in tables {
        let mut from = Bound::Unbounded;
        loop {
            let start = from.as_ref().map(|name: &bytes::Bytes| &name[..]);
            let chunk =
                access.records(table, source.id, start, Bound::Unbounded, Order::Up, CHUNK)?;
            let Some((last, _)) = chunk.items.last() else {
                break;
            };
            from = Bound::Excluded(last.clone());
            for (name, value) in chunk.items {
                access.put_record(table, copy.id, &name, value)?;
            }
        }
    }
    Ok(copy)
}
