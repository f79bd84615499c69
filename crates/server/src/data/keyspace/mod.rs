//! Commands on a whole keyspace.

mod range;
mod scan;

use std::ops::Bound;

use bytes::Bytes;
use commands::{glob_matches, literal_prefix, match_steps, PATTERN_BYTES_MAX, PATTERN_TOO_LONG};
use engine::{Blocks, Database, Entry, Order, Page, Stop};
use resp::{is, parse_i64};

use super::call::{Call, Done, Fail, SYNTAX};
use super::{random, CHUNK, NO_DATABASE};

pub(super) use range::range;
pub(super) use scan::{scan, scan_header, Scan};

/// `RANDOMKEY` walks up to so many keys from a random place.
const RANDOM_STEPS: usize = 256;

/// The bounds of all keys that start with `prefix`.
fn prefix_bounds(prefix: &[u8]) -> (Bound<Bytes>, Bound<Bytes>) {
    let from = match prefix {
        b"" => Bound::Unbounded,
        prefix => Bound::Included(Bytes::copy_from_slice(prefix)),
    };
    // The next string that does not start with it: the last byte that can grow, grown.
    let kept = prefix
        .iter()
        .rposition(|&byte| byte != 0xff)
        .map(|last| &prefix[..=last]);
    let to = kept.map_or(Bound::Unbounded, |kept| {
        let mut after = kept.to_vec();
        *after.last_mut().expect("it ends with the byte found") += 1;
        Bound::Excluded(Bytes::from(after))
    });
    (from, to)
}

fn check_pattern(pattern: &[u8]) -> Done {
    match pattern.len() {
        ..=PATTERN_BYTES_MAX => Ok(()),
        _ => Err(Fail::error(PATTERN_TOO_LONG)),
    }
}

/// A bound that borrows.
pub(super) fn slice(bound: &Bound<Bytes>) -> Bound<&[u8]> {
    bound.as_ref().map(|key| &key[..])
}

/// The next keys of a walk over all there is, or much of it.
fn walk(
    call: &mut Call,
    (from, to): (Bound<&[u8]>, Bound<&[u8]>),
    limit: usize,
) -> Result<Page<Entry>, Stop> {
    call.access.keys(from, to, Order::Up, limit, Blocks::Pass)
}

/// `KEYS pattern`: only keys with the pattern's literal start are read.
pub(super) fn keys(call: &mut Call) -> Done {
    let pattern = call.arg(1);
    check_pattern(pattern)?;
    let all = pattern == b"*";
    call.list(
        |call, each| {
            let (mut from, to) = prefix_bounds(literal_prefix(pattern));
            loop {
                let page = walk(call, (slice(&from), slice(&to)), CHUNK)?;
                let last = page.items.last().map(|(key, _)| key.clone());
                for (key, _) in page.items {
                    if !all {
                        call.access.steps(match_steps(pattern, &key))?;
                    }
                    if all || glob_matches(pattern, &key) {
                        each(call, key);
                    }
                }
                match last.filter(|_| page.more) {
                    Some(last) => from = Bound::Excluded(last),
                    None => return Ok(()),
                }
            }
        },
        |reply, count, ()| reply.array(count),
        |reply, key| reply.bulk(&key),
    )
}

/// `DBSIZE`: the engine counts a keyspace of ordinary size and estimates a large one.
pub(super) fn dbsize(call: &mut Call) -> Done {
    let count = call.access.estimate_keys()?;
    call.reply.int(count as i64);
    Ok(())
}

/// `RANDOMKEY`: uniform among few keys. Among many, a random place between the first and the last
/// key is chosen, then a random number of steps from there: every key near a chosen place can come
/// up, but dense regions come up less often than in Redis.
pub(super) fn randomkey(call: &mut Call) -> Done {
    let (all, none) = (Bound::Unbounded, Bound::Unbounded);
    let access = &mut call.access;
    let mut some = |from, to, order, limit| access.keys(from, to, order, limit, Blocks::Keep);
    let mut near = some(all, none, Order::Up, RANDOM_STEPS)?;
    if near.more {
        let last = some(all, none, Order::Down, 1)?.items;
        let first = &near.items[0].0;
        let place = between(first, last.first().map_or(first, |(key, _)| key));
        let from = Bound::Included(&place[..]);
        near = some(from, none, Order::Up, RANDOM_STEPS)?;
        if !near.more {
            // Near the end there are fewer to choose from: take as many more from before the place.
            let missing = RANDOM_STEPS - near.items.len();
            let to = Bound::Excluded(&place[..]);
            let before = some(none, to, Order::Down, missing)?;
            near.items.extend(before.items);
        }
    }
    reply_one_of(call, near.items.into_iter().map(|(key, _)| key).collect());
    Ok(())
}

fn reply_one_of(call: &mut Call, mut keys: Vec<Bytes>) {
    match keys.len() {
        0 => call.reply.null(),
        len => call
            .reply
            .bulk(&keys.swap_remove(random::below(len as u64) as usize)),
    }
}

/// A random string between two: their common start, then eight random bytes between what follows.
fn between(first: &[u8], last: &[u8]) -> Vec<u8> {
    let common = first.iter().zip(last).take_while(|(a, b)| a == b).count();
    let number = |key: &[u8]| {
        let mut bytes = [0; 8];
        let rest = &key[common..];
        let len = rest.len().min(8);
        bytes[..len].copy_from_slice(&rest[..len]);
        u64::from_be_bytes(bytes)
    };
    let (low, high) = (number(first), number(last));
    let span = high.saturating_sub(low).max(1);
    [&first[..common], &(low + random::below(span)).to_be_bytes()].concat()
}

/// `FLUSHALL [ASYNC | SYNC]`: deleting is lazy in either case.
pub(super) fn flushall(call: &mut Call) -> Done {
    check_flush(call)?;
    call.access.clear()?;
    call.reply.ok();
    Ok(())
}

/// `FLUSHDB [ASYNC | SYNC]`, likewise.
pub(super) fn flushdb(call: &mut Call) -> Done {
    check_flush(call)?;
    call.access.clear_database()?;
    call.reply.ok();
    Ok(())
}

fn check_flush(call: &Call) -> Done {
    match call.args.find(1) {
        Some(word) if call.args.len() > 2 || !(is(word, "ASYNC") || is(word, "SYNC")) => {
            Err(SYNTAX)
        }
        _ => Ok(()),
    }
}

/// `SWAPDB index1 index2`
pub(super) fn swapdb(call: &mut Call) -> Done {
    let number = |at: usize, text| {
        let number = parse_i64(call.arg(at)).filter(|number| i32::try_from(*number).is_ok());
        number.ok_or(Fail::error(text))
    };
    let one = number(1, "ERR invalid first DB index")?;
    let other = number(2, "ERR invalid second DB index")?;
    let (Some(one), Some(other)) = (Database::new(one), Database::new(other)) else {
        return Err(Fail::error(NO_DATABASE));
    };
    call.access.swap_databases(one, other)?;
    call.reply.ok();
    Ok(())
}

/// A key or element bound as `ZRANGEBYLEX` writes it: `-`, `+`, `[name`, `(name`.
pub(super) fn lex_bound(word: &[u8]) -> Result<LexBound<'_>, Fail> {
    match word {
        b"-" => Ok(LexBound::Lowest),
        b"+" => Ok(LexBound::Highest),
        [b'[', name @ ..] => Ok(LexBound::At(Bound::Included(name))),
        [b'(', name @ ..] => Ok(LexBound::At(Bound::Excluded(name))),
        _ => Err(Fail::error("ERR min or max not valid string range item")),
    }
}

/// One end of a range of names.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum LexBound<'a> {
    /// Before every name.
    Lowest,
    /// After every name.
    Highest,
    /// At or beside a name.
    At(Bound<&'a [u8]>),
}

/// Two ends as the engine takes them.
type Bounds<'a> = (Bound<&'a [u8]>, Bound<&'a [u8]>);

/// The range between two ends for the engine; `None` when nothing can lie in it.
pub(super) fn lex_range<'a>(low: LexBound<'a>, high: LexBound<'a>) -> Option<Bounds<'a>> {
    let from = match low {
        LexBound::Lowest => Bound::Unbounded,
        LexBound::Highest => return None,
        LexBound::At(bound) => bound,
    };
    let to = match high {
        LexBound::Lowest => return None,
        LexBound::Highest => Bound::Unbounded,
        LexBound::At(bound) => bound,
    };
    let is_empty = match (from, to) {
        (Bound::Included(from), Bound::Included(to)) => from > to,
        (
            Bound::Included(from) | Bound::Excluded(from),
            Bound::Included(to) | Bound::Excluded(to),
        ) => from >= to,
        _ => false,
    };
    (!is_empty).then_some((from, to))
}
