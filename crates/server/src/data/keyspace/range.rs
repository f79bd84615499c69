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
/// If more keys than this are wanted, only the first are read first.
const MANY: usize = 64;
const FIRST: usize = 32;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Show {
    Pairs,
    Keys,
    Values,
}

/// What is wanted of each key.
#[derive(Clone, Copy)]
struct Wanted {
    show: Show,
    /// Behind it, when it expires.
    expires: bool,
}

impl Wanted {
    /// Elements of the reply for each key.
    fn each(self) -> usize {
        usize::from(self.expires) + if self.show == Show::Pairs { 2 } else { 1 }
    }
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
    /// Milliseconds since the Unix epoch; -1: never.
    Expires(i64),
}

/// `ENTREMET.RANGE start end [COUNT n] [KEYS | VALUES] [EXPIRES]`
///
/// What is not a string has its type's name as a simple string in place of a value, so that it
/// cannot be taken for one.
pub(in crate::data) fn range(call: &mut Call) -> Done {
    let (low, high) = (lex_bound(call.arg(1))?, lex_bound(call.arg(2))?);
    let (count, wanted) = options(call)?;
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
                let blocks = match count - left < CHUNK {
                    true => Blocks::Keep,
                    false => Blocks::Pass,
                };
                // The first keys tell how much to read ahead of many.
                let (from, most) = match &last {
                    None if count > MANY => (from, FIRST),
                    None => (from, CHUNK),
                    Some(last) => (Bound::Excluded(&last[..]), CHUNK),
                };
                let (access, limit) = (&mut call.access, left.min(most));
                let page = access.keys(from, to, Order::Up, limit, blocks)?;
                left -= page.items.len();
                last = page.items.last().map(|(key, _)| key.clone());
                for item in page.items {
                    show_entry(call, item, wanted, each)?;
                }
                if left == 0 || !page.more {
                    return Ok(count - left);
                }
            }
        },
        |reply, _, keys| reply.array(keys * wanted.each()),
        write,
    )
}

/// Calls `each` with what is to be shown of a key.
fn show_entry<'c, 'k>(
    call: &mut Call<'c, 'k>,
    (key, entry): (Bytes, Entry),
    Wanted { show, expires }: Wanted,
    each: &mut dyn FnMut(&mut Call<'c, 'k>, Shown),
) -> Done {
    let expire_at_ms = entry.expire_at_ms;
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
    if expires {
        let never = -1;
        let at_ms = expire_at_ms.map(|ms| i64::try_from(ms).unwrap_or(i64::MAX));
        each(call, Shown::Expires(at_ms.unwrap_or(never)));
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
        Shown::Expires(at_ms) => reply.int(at_ms),
    }
}

fn options(call: &Call) -> Result<(usize, Wanted), Fail> {
    let (mut count, mut show, mut expires) = (COUNT, Show::Pairs, false);
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
            _ if is(word, "EXPIRES") && !expires => expires = true,
            _ => return Err(SYNTAX),
        }
        index += 1;
    }
    Ok((count, Wanted { show, expires }))
}
