//! `RESTORE`.
//!
//! The dump is read twice: to its end, with nothing written, and once more to store what it holds.
//! If it names an element twice, the last one counts.

use bytes::Bytes;
use engine::{Entry, Object, Text, WHOLE_BYTES_MAX};
use resp::{is, parse_i64};

use super::dump::value_of;
use crate::data::call::{Call, Done, Fail, NOT_AN_INTEGER, SYNTAX};
use crate::data::hashes::Hash;
use crate::data::number::parse_f64;
use crate::data::rdb::{self, Element, Elements, Reader, Span, DAMAGED};
use crate::data::sorted_sets::SortedSet;

/// Bytes that are copied in the time of a step.
const BYTES_PER_STEP: usize = 4 << 10;

/// The word that is the dump.
const DUMP: usize = 3;

/// What the words behind the dump ask for.
#[derive(Default)]
struct Options {
    replace: bool,
    absolute: bool,
}

impl Options {
    fn parse(call: &Call) -> Result<Options, Fail> {
        let mut options = Options::default();
        let (mut idle, mut freq) = (false, false);
        let mut at = DUMP + 1;
        while let Some(word) = call.args.find(at) {
            let value = call.args.find(at + 1);
            match value {
                _ if is(word, "REPLACE") => options.replace = true,
                _ if is(word, "ABSTTL") => options.absolute = true,
                // Redis takes them over for its evictions, which there are none of here.
                Some(value) if is(word, "IDLETIME") && !freq => {
                    idle = true;
                    number(value, i64::MAX, "ERR Invalid IDLETIME value, must be >= 0")?;
                }
                Some(value) if is(word, "FREQ") && !idle => {
                    freq = true;
                    number(
                        value,
                        255,
                        "ERR Invalid FREQ value, must be >= 0 and <= 255",
                    )?;
                }
                _ => return Err(SYNTAX),
            }
            at += 1 + usize::from(is(word, "IDLETIME") || is(word, "FREQ"));
        }
        Ok(options)
    }

    /// When the key expires, ms since the Unix epoch.
    fn expiry(&self, call: &Call) -> Result<Option<u64>, Fail> {
        let ttl_ms = number(call.arg(2), i64::MAX, "ERR Invalid TTL value, must be >= 0")?;
        let base_ms = if self.absolute {
            0
        } else {
            call.access.now_ms()
        };
        Ok((ttl_ms > 0).then(|| base_ms.saturating_add(ttl_ms)))
    }
}

/// `word` as a number from 0 to `most`, or this error.
fn number(word: &[u8], most: i64, error: &'static str) -> Result<u64, Fail> {
    let number = parse_i64(word).ok_or(NOT_AN_INTEGER)?;
    let number = u64::try_from(number).ok();
    number
        .filter(|number| *number <= most as u64)
        .ok_or(Fail::error(error))
}

/// `RESTORE key ttl dump [REPLACE] [ABSTTL] [IDLETIME seconds] [FREQ frequency]`
pub(in crate::data) fn restore(call: &mut Call) -> Done {
    let (key, options) = (call.arg(1), Options::parse(call)?);
    if !options.replace && call.access.get(key)?.is_some() {
        return Err(Fail::error("BUSYKEY Target key name already exists."));
    }
    let expire_at_ms = options.expiry(call)?;
    let value = value_of(call, call.arg(DUMP))?;
    let kind = *value.first().ok_or(DAMAGED)?;
    match kind {
        rdb::STRING => {
            string(call, value)?;
        }
        rdb::HASH | rdb::HASH_ZIPLIST | rdb::HASH_LISTPACK => {
            fields(call, value, &mut |_, _, _| Ok(()))?;
        }
        rdb::SORTED_SET | rdb::SORTED_SET_ZIPLIST | rdb::SORTED_SET_LISTPACK => {
            members(call, value, &mut |_, _, _| Ok(()))?;
        }
        other => {
            return Err(Fail::error(format!(
                "ERR Bad data format: this server has no values of RDB type {other}, only strings, hashes and sorted sets"
            )));
        }
    }
    if expire_at_ms.is_some_and(|at| at <= call.access.now_ms()) {
        call.access.delete(key)?;
    } else {
        store(call, key, value, expire_at_ms)?;
    }
    call.reply.ok();
    Ok(())
}

/// Puts a value that was read to its end under a key.
fn store<'c>(
    call: &mut Call<'c, '_>,
    key: &'c [u8],
    value: &[u8],
    expire_at_ms: Option<u64>,
) -> Done {
    match value[0] {
        rdb::STRING => {
            let object = Object::String(Text::Whole(string(call, value)?));
            let entry = Entry {
                object,
                expire_at_ms,
            };
            return Ok(call.access.put(key, entry)?);
        }
        rdb::HASH | rdb::HASH_ZIPLIST | rdb::HASH_LISTPACK => {
            let mut hash = Hash::create(call, key)?;
            fields(call, value, &mut |call, field, value| {
                hash.set(call, field, Bytes::copy_from_slice(value))?;
                Ok(())
            })?;
            hash.close(call)?;
        }
        _ => {
            let mut set = SortedSet::create(call, key)?;
            members(call, value, &mut |call, member, score| {
                let old = set.score(call, member)?;
                set.set(call, member, score, old)
            })?;
            set.close(call)?;
        }
    }
    match (expire_at_ms, call.access.get(key)?) {
        (Some(_), Some(entry)) => {
            let entry = Entry {
                expire_at_ms,
                ..entry
            };
            Ok(call.access.put(key, entry)?)
        }
        _ => Ok(()),
    }
}

fn reader<'d>(call: &Call, value: &'d [u8]) -> Reader<'d> {
    Reader::new(value, 1, call.context.value_bytes_max)
}

/// The string that a value is.
fn string(call: &mut Call, value: &[u8]) -> Result<Bytes, Fail> {
    let mut reader = reader(call, value);
    let span = reader.string(call.access)?;
    if !reader.is_at_end() {
        return Err(DAMAGED);
    }
    Ok(match span {
        // It is cut in pieces soon.
        Span::Plain(range) if range.len() > WHOLE_BYTES_MAX => call.args.lent(DUMP).slice(range),
        Span::Plain(range) => Bytes::copy_from_slice(&value[range]),
        Span::Made(bytes) => Bytes::from(bytes),
    })
}

/// Takes the name of an element and what it holds.
type Each<'e, 'c, 'k, T> = &'e mut dyn FnMut(&mut Call<'c, 'k>, &[u8], T) -> Done;
/// The same, of a hash.
type EachField<'e, 'c, 'k> = &'e mut dyn FnMut(&mut Call<'c, 'k>, &[u8], &[u8]) -> Done;
/// Takes two elements of a packed collection.
type EachPair<'e, 'c, 'k> = &'e mut dyn FnMut(&mut Call<'c, 'k>, Element<'_>, Element<'_>) -> Done;

/// Calls `each` with every field and value of a hash.
fn fields<'c, 'k>(call: &mut Call<'c, 'k>, value: &[u8], each: EachField<'_, 'c, 'k>) -> Done {
    if value[0] != rdb::HASH {
        return pairs(call, value, &mut |call, field, value| {
            each(call, &text(field), &text(value))
        });
    }
    let mut reader = reader(call, value);
    let count = reader.count().ok_or(DAMAGED)?;
    for _ in 0..count {
        let field = reader.string(call.access)?;
        let value = reader.string(call.access)?;
        let (field, value) = (reader.bytes(&field), reader.bytes(&value));
        taken(call, field.len() + value.len())?;
        each(call, field, value)?;
    }
    ended(count > 0 && reader.is_at_end())
}

/// Calls `each` with every member and score of a sorted set.
fn members<'c, 'k>(call: &mut Call<'c, 'k>, value: &[u8], each: Each<'_, 'c, 'k, f64>) -> Done {
    if value[0] != rdb::SORTED_SET {
        return pairs(call, value, &mut |call, member, score| {
            let score = match score {
                Element::Int(score) => Some(score as f64),
                Element::Text(score) => parse_f64(score),
            };
            each(call, &text(member), score.ok_or(DAMAGED)?)
        });
    }
    let mut reader = reader(call, value);
    let count = reader.count().ok_or(DAMAGED)?;
    for _ in 0..count {
        let member = reader.string(call.access)?;
        let score = reader.score().ok_or(DAMAGED)?;
        let member = reader.bytes(&member);
        taken(call, member.len())?;
        each(call, member, score)?;
    }
    ended(count > 0 && reader.is_at_end())
}

/// Calls `each` with every two elements of a packed collection.
fn pairs<'c, 'k>(call: &mut Call<'c, 'k>, value: &[u8], each: EachPair<'_, 'c, 'k>) -> Done {
    let mut reader = reader(call, value);
    let packed = reader.string(call.access)?;
    ended(reader.is_at_end())?;
    let packed = reader.bytes(&packed);
    let elements = match value[0] {
        rdb::HASH_LISTPACK | rdb::SORTED_SET_LISTPACK => Elements::of_listpack(packed),
        _ => Elements::of_ziplist(packed),
    };
    let (mut elements, mut count) = (elements.ok_or(DAMAGED)?, 0);
    while let Some(first) = elements.next().ok_or(DAMAGED)? {
        let second = elements.next().flatten().ok_or(DAMAGED)?;
        taken(call, text(first.clone()).len() + text(second.clone()).len())?;
        each(call, first, second)?;
        count += 1;
    }
    ended(count > 0)
}

/// An element with this many bytes was read.
fn taken(call: &mut Call, bytes: usize) -> Done {
    Ok(call.access.steps(1 + (bytes / BYTES_PER_STEP) as u64)?)
}

fn ended(well: bool) -> Done {
    match well {
        true => Ok(()),
        false => Err(DAMAGED),
    }
}

fn text(element: Element<'_>) -> std::borrow::Cow<'_, [u8]> {
    match element {
        Element::Text(text) => text.into(),
        Element::Int(number) => number.to_string().into_bytes().into(),
    }
}
