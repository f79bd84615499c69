//! `COPY`.

use std::ops::Bound;

use engine::{Access, Entry, Header, Kind, Object, Order, Stop, Table};
use resp::is;

use crate::data::call::{Call, Done, Fail, SYNTAX};
use crate::data::CHUNK;

/// `COPY source destination [DB 0] [REPLACE]`
pub(in crate::data) fn copy(call: &mut Call) -> Done {
    let (from, to) = (call.arg(1), call.arg(2));
    let mut replace = false;
    let mut index = 3;
    while let Some(word) = call.args.find(index) {
        if is(word, "REPLACE") {
            replace = true;
        } else if is(word, "DB") && call.args.len() > index + 1 {
            if call.int(index + 1)? != 0 {
                return Err(Fail::error("ERR DB index is out of range"));
            }
            index += 1;
        } else {
            return Err(SYNTAX);
        }
        index += 1;
    }
    if from == to {
        return Err(Fail::error(
            "ERR source and destination objects are the same",
        ));
    }
    let source = call.access.get(from)?;
    let blocked = !replace && source.is_some() && call.access.get(to)?.is_some();
    let Some(source) = source.filter(|_| !blocked) else {
        call.reply.int(0);
        return Ok(());
    };
    let object = match source.object {
        Object::Collection(header) => Object::Collection(copy_collection(call.access, &header)?),
        Object::String(text) => Object::String(call.access.copy(&text)?),
    };
    call.access.put(to, Entry { object, ..source })?;
    call.reply.int(1);
    Ok(())
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
