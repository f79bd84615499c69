//! `ENTREMET.RANGE`: keys in order.

use std::ops::Bound;

use bytes::Bytes;
use engine::{Blocks, Entry, Object, Order, Text};
use resp::{is, Reply};

use super::{lex_bound, lex_range};
use crate::data::call::{Call, Done, Fail, SYNTAX};
use crate::data::keys::type_name;
use crate::data::CHUNK;

/// Keys returned without `COUNT`.
const COUNT: usize = 1000;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Show {
    Pairs,
    Keys,
    Values,
}

/// An element of the reply, or a part of one.
enum Shown {
    Key(Bytes),
    Value(Bytes),
    Type(&'static str),
    /// A string of this many bytes begins.
    Begin(u64),
    Part(Bytes),
    End,
}

/// `ENTREMET.RANGE start end [COUNT n] [KEYS | VALUES]`
///
/// What is not a string has its type's name as a simple string in place of a value, so that it
/// cannot be taken for one.
pub(in crate::data) fn range(call: &mut Call) -> Done {
    let (low, high) = (lex_bound(call.arg(1))?, lex_bound(call.arg(2))?);
    let (count, show) = options(call)?;
    let bounds = lex_range(low, high);
    call.list(
        |call, each| {
            let Some((from, to)) = bounds else {
                return Ok(0);
            };
            let mut left = count;
            let mut last: Option<Bytes> = None;
            loop {
                // A short range is a query, which may well come again; a long one is more of a
                // walk.
                let (from, blocks) = match &last {
                    None => (from, Blocks::Keep),
                    Some(last) => (Bound::Excluded(&last[..]), Blocks::Pass),
                };
                let (access, limit) = (&mut call.access, left.min(CHUNK));
                let page = access.keys(from, to, Order::Up, limit, blocks)?;
                left -= page.items.len();
                last = page.items.last().map(|(key, _)| key.clone());
                for item in page.items {
                    show_entry(call, item, show, each)?;
                }
                if left == 0 || !page.more {
                    return Ok(count - left);
                }
            }
        },
        |reply, _, keys| reply.array(if show == Show::Pairs { keys * 2 } else { keys }),
        write,
    )
}

/// Calls `each` with what is to be shown of a key.
fn show_entry<'c, 'k>(
    call: &mut Call<'c, 'k>,
    (key, entry): (Bytes, Entry),
    show: Show,
    each: &mut dyn FnMut(&mut Call<'c, 'k>, Shown),
) -> Done {
    if show != Show::Values {
        each(call, Shown::Key(key));
    }
    match entry.object {
        _ if show == Show::Keys => {}
        Object::String(Text::Whole(value)) => each(call, Shown::Value(value)),
        Object::String(text) => {
            call.access.hold_in_parts(text.len())?;
            each(call, Shown::Begin(text.len()));
            let mut parts = call.access.parts(&text, 0..text.len())?;
            while let Some(part) = parts.next(call.access)? {
                each(call, Shown::Part(part));
            }
            each(call, Shown::End);
        }
        collection => each(call, Shown::Type(type_name(&collection))),
    }
    Ok(())
}

fn write(reply: &mut Reply, shown: Shown) {
    match shown {
        Shown::Key(key) => reply.bulk(&key),
        Shown::Value(value) => reply.bulk_bytes(&value),
        Shown::Type(name) => reply.simple(name),
        Shown::Begin(len) => reply.begin_bulk(len),
        Shown::Part(part) => reply.part(&part),
        Shown::End => reply.end_bulk(),
    }
}

fn options(call: &Call) -> Result<(usize, Show), Fail> {
    let (mut count, mut show) = (COUNT, Show::Pairs);
    let mut index = 3;
    while let Some(word) = call.args.find(index) {
        match word {
            _ if is(word, "COUNT") && call.args.len() > index + 1 => {
                let max = call.context.range_count_max;
                count = usize::try_from(call.int(index + 1)?)
                    .ok()
                    .filter(|count| (1..=max).contains(count))
                    .ok_or_else(|| Fail::error(format!("ERR COUNT must be 1 to {max}")))?;
                index += 1;
            }
            _ if is(word, "KEYS") && show == Show::Pairs => show = Show::Keys,
            _ if is(word, "VALUES") && show == Show::Pairs => show = Show::Values,
            _ => return Err(SYNTAX),
        }
        index += 1;
    }
    Ok((count, show))
}
