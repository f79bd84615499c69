//! `DUMP`.

use std::ops::Bound;

use bytes::Bytes;
use engine::{Header, Kind, Object, Order, Table, Text};

use crate::data::call::{Call, Done, Fail};
use crate::data::rdb::{self, Checksum};
use crate::data::CHUNK;

/// Bytes that are looked through between two looks at whether the command may go on.
const STRETCH_BYTES: usize = 16 << 10;
/// Bytes whose checksum is made in the time of a step.
const BYTES_PER_STEP: usize = 1 << 10;

/// Takes what a dump consists of, part by part.
type Take<'t, 'c, 'k> = &'t mut dyn FnMut(&mut Call<'c, 'k>, Bytes);

/// `DUMP key`: a string whose length comes before it. One that is too long to be held is made
/// twice, over the same snapshot: to count it, and as the client takes it.
pub(in crate::data) fn dump(call: &mut Call) -> Done {
    let Some(entry) = call.access.get(call.arg(1))? else {
        call.reply.null();
        return Ok(());
    };
    if call.reply.is_unseen() {
        return Ok(());
    }
    let object = entry.object;
    if call.reply.is_streamed() {
        let mut len = 0;
        parts(call, &object, &mut |_, part| len += part.len() as u64)?;
        call.reply.begin_bulk(len);
        parts(call, &object, &mut |call, part| call.reply.part(&part))?;
        call.reply.end_bulk();
        return Ok(());
    }
    if let Object::String(text @ Text::Pieces { .. }) = &object {
        call.access.hold_at_most(call.context.held_bytes_max);
        call.access.hold_in_parts(text.len())?;
    }
    let mut whole = Vec::new();
    parts(call, &object, &mut |_, part| whole.extend_from_slice(&part))?;
    call.reply.bulk_bytes(&Bytes::from(whole));
    Ok(())
}

/// The dump of an object, from its type to its checksum.
fn parts<'c, 'k>(call: &mut Call<'c, 'k>, object: &Object, take: Take<'_, 'c, 'k>) -> Done {
    let mut sum = Checksum::default();
    let mut summed = |call: &mut Call<'c, 'k>, part: Bytes| -> Done {
        checked(call, &mut sum, &part)?;
        take(call, part);
        Ok(())
    };
    match object {
        Object::String(text) => string(call, text, &mut summed)?,
        Object::Collection(header) => collection(call, header, &mut summed)?,
    }
    summed(call, Bytes::copy_from_slice(&rdb::VERSION.to_le_bytes()))?;
    take(call, Bytes::copy_from_slice(&sum.bytes()));
    Ok(())
}

/// Adds bytes to a checksum, as work of the command.
pub(super) fn checked(call: &mut Call, sum: &mut Checksum, bytes: &[u8]) -> Done {
    for stretch in bytes.chunks(STRETCH_BYTES) {
        call.access.steps((stretch.len() / BYTES_PER_STEP) as u64)?;
        sum.add(stretch);
    }
    Ok(())
}

fn string<'c, 'k>(
    call: &mut Call<'c, 'k>,
    text: &Text,
    take: &mut dyn FnMut(&mut Call<'c, 'k>, Bytes) -> Done,
) -> Done {
    let mut head = vec![rdb::STRING];
    rdb::write_len(text.len(), &mut head);
    take(call, Bytes::from(head))?;
    let mut parts = call.access.parts(text, 0..text.len())?;
    while let Some(part) = parts.next(call.access)? {
        take(call, part)?;
    }
    Ok(())
}

fn collection<'c, 'k>(
    call: &mut Call<'c, 'k>,
    header: &Header,
    take: &mut dyn FnMut(&mut Call<'c, 'k>, Bytes) -> Done,
) -> Done {
    let (kind, table) = match header.kind {
        Kind::Hash => (rdb::HASH, Table::Field),
        Kind::SortedSet => (rdb::SORTED_SET, Table::Member),
    };
    let mut head = vec![kind];
    rdb::write_len(header.len, &mut head);
    take(call, Bytes::from(head))?;
    let (all, mut last, mut more) = (Bound::Unbounded, None::<Bytes>, true);
    while more {
        let from = last.as_deref().map_or(all, Bound::Excluded);
        let access = &mut call.access;
        let page = access.records(table, header.id, from, all, Order::Up, CHUNK)?;
        more = page.more;
        last = page.items.last().map(|(name, _)| name.clone());
        for (name, value) in page.items {
            let mut begin = Vec::with_capacity(name.len() + 18);
            rdb::write_string(&name, &mut begin);
            match header.kind {
                Kind::Hash => {
                    rdb::write_len(value.len() as u64, &mut begin);
                    take(call, Bytes::from(begin))?;
                    take(call, value)?;
                }
                Kind::SortedSet => {
                    // A score is kept with its highest byte first.
                    begin.extend(value.iter().rev());
                    take(call, Bytes::from(begin))?;
                }
            }
        }
    }
    Ok(())
}

/// The value of a dump, from its type on.
///
/// # Errors
/// It is of a later version, or damaged.
pub(super) fn value_of<'d>(call: &mut Call, dump: &'d [u8]) -> Result<&'d [u8], Fail> {
    let wrong = || Fail::error("ERR DUMP payload version or checksum are wrong");
    let (value, footer) = dump
        .len()
        .checked_sub(rdb::FOOTER_BYTES)
        .map(|len| dump.split_at(len))
        .ok_or_else(wrong)?;
    let (version, sum_said) = footer.split_at(2);
    let version = version.try_into().map_or(0, u16::from_le_bytes);
    if !rdb::knows(version) {
        return Err(wrong());
    }
    let mut sum = Checksum::default();
    checked(call, &mut sum, &dump[..dump.len() - 8])?;
    match sum.bytes() == sum_said {
        true => Ok(value),
        false => Err(wrong()),
    }
}
