//! Commands on a whole keyspace.

mod range;
mod scan;

use std::ops::Bound;

use bytes::Bytes;
use engine::Order;

use super::call::{is, Call, Done, Fail, SYNTAX};
use super::glob::{glob_matches, literal_prefix};
use super::{random, CHUNK};

pub(super) use range::range;
pub(super) use scan::{scan, Scan};

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

/// A bound that borrows.
fn slice(bound: &Bound<Bytes>) -> Bound<&[u8]> {
    bound.as_ref().map(|key| &key[..])
}

/// `KEYS pattern`: only keys with the pattern's literal start are read.
pub(super) fn keys(call: &mut Call) -> Done {
    let pattern = call.arg(1);
    let (mut from, to) = prefix_bounds(literal_prefix(pattern));
    let all = pattern == b"*";
    let mut found = Vec::new();
    loop {
        let chunk = call
            .access
            .keys(slice(&from), slice(&to), Order::Up, CHUNK)?;
        let Some((last, _)) = chunk.last() else { break };
        from = Bound::Excluded(last.clone());
        let keys = chunk.into_iter().map(|(key, _)| key);
        found.extend(keys.filter(|key| all || glob_matches(pattern, key)));
    }
    call.reply.array(found.len());
    found.iter().for_each(|key| call.reply.bulk(key));
    Ok(())
}

/// `DBSIZE`: the engine counts a keyspace of ordinary size and estimates a large one.
pub(super) fn dbsize(call: &mut Call) -> Done {
    let count = call.access.estimate_keys()?;
    call.reply.int(count as i64);
    Ok(())
}

/// `RANDOMKEY`: uniform among few keys. Among many, a random place between the first and the last key is chosen, then a
/// random number of steps from there: every key near a chosen place can come up, but dense regions come up less often
/// than in Redis.
pub(super) fn randomkey(call: &mut Call) -> Done {
    let (all, none) = (Bound::Unbounded, Bound::Unbounded);
    let start = call.access.keys(all, none, Order::Up, RANDOM_STEPS)?;
    if start.len() < RANDOM_STEPS {
        reply_one_of(call, start.into_iter().map(|(key, _)| key).collect());
        return Ok(());
    }
    let first = &start[0].0;
    let last = call.access.keys(all, none, Order::Down, 1)?;
    let last = last.first().map_or(first, |(key, _)| key);
    let place = between(first, last);
    let mut near: Vec<Bytes> = call
        .access
        .keys(Bound::Included(&place), none, Order::Up, RANDOM_STEPS)?
        .into_iter()
        .map(|(key, _)| key)
        .collect();
    if near.len() < RANDOM_STEPS {
        // Near the end there are fewer to choose from: take as many more from before the place.
        let missing = RANDOM_STEPS - near.len();
        let before = call
            .access
            .keys(none, Bound::Excluded(&place), Order::Down, missing)?;
        near.extend(before.into_iter().map(|(key, _)| key));
    }
    reply_one_of(call, near);
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

/// `FLUSHALL [ASYNC | SYNC]`, `FLUSHDB [ASYNC | SYNC]`: deleting is lazy in either case.
pub(super) fn flush(call: &mut Call) -> Done {
    match call.args.find(1) {
        Some(word) if call.args.len() > 2 || !(is(word, "ASYNC") || is(word, "SYNC")) => {
            return Err(SYNTAX)
        }
        _ => {}
    }
    call.access.clear()?;
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
