//! `ENTREMET.RANGE`: keys in order.

use std::ops::Bound;

use bytes::Bytes;
use engine::{Object, Order};

use super::{lex_bound, lex_range};
use crate::commands::call::{is, Call, Done, Fail, SYNTAX};
use crate::commands::keys::type_name;
use crate::commands::CHUNK;
use crate::resp::{Output, Reply};

/// Keys returned without `COUNT`.
const COUNT: usize = 1000;
/// Bytes that a reply of more than one key may have. To cut it short instead would look like the end of the range.
const REPLY_BYTES_MAX: usize = 64 << 20;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Show {
    Pairs,
    Keys,
    Values,
}

/// `ENTREMET.RANGE start end [COUNT n] [KEYS | VALUES]`
///
/// What is not a string has its type's name as a simple string in place of a value, so that it cannot be taken for one.
pub(in crate::commands) fn range(call: &mut Call) -> Done {
    let (low, high) = (lex_bound(call.arg(1))?, lex_bound(call.arg(2))?);
    let (count, show) = options(call)?;
    let mut items = Output::new();
    let mut keys = 0;
    if let Some((from, to)) = lex_range(low, high) {
        let mut writer = Reply::new(&mut items, call.reply.protocol());
        let mut last: Option<Bytes> = None;
        while keys < count {
            let from = last.as_deref().map_or(from, Bound::Excluded);
            let wanted = (count - keys).min(chunk_of(show));
            let chunk = call.access.keys(from, to, Order::Up, wanted)?;
            keys += chunk.len();
            let is_end = chunk.len() < wanted;
            last = chunk.last().map(|(key, _)| key.clone());
            chunk
                .into_iter()
                .for_each(|(key, entry)| write(&mut writer, &key, entry.object, show));
            if writer.len_bytes() > REPLY_BYTES_MAX && keys > 1 {
                return Err(Fail::error(
                    "ERR the reply would exceed 64 MiB: ask with a smaller COUNT, or for KEYS",
                ));
            }
            if is_end {
                break;
            }
        }
    }
    call.reply
        .array(if show == Show::Pairs { keys * 2 } else { keys });
    call.reply.append(items);
    Ok(())
}

/// Keys read at a time: fewer when values, which may be large, come with them.
fn chunk_of(show: Show) -> usize {
    match show {
        Show::Keys => CHUNK,
        Show::Pairs | Show::Values => CHUNK / 16,
    }
}

fn write(writer: &mut Reply, key: &[u8], object: Object, show: Show) {
    if show != Show::Values {
        writer.bulk(key);
    }
    match object {
        _ if show == Show::Keys => {}
        Object::String(value) => writer.bulk_bytes(&value),
        collection => writer.simple(type_name(&collection)),
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
