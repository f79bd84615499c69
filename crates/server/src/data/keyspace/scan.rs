//! `SCAN`, and the options that `HSCAN` and `ZSCAN` share with it.

use std::ops::Bound;

use bytes::Bytes;
use commands::{glob_matches, literal_prefix, match_steps};
use resp::{is, Reply};

use engine::Stop;

use super::{check_pattern, prefix_bounds, slice, walk};
use crate::data::call::{Call, Done, Fail, SYNTAX};
use crate::data::keys::type_name;
use crate::data::CHUNK;

/// Elements that a call looks at without `COUNT`.
const COUNT: usize = 10;

/// The cursor and the options of a walk.
pub(in crate::data) struct Scan<'c> {
    pub(in crate::data) cursor: u64,
    pattern: Option<&'c [u8]>,
    /// Elements to look at, at least 1.
    pub(in crate::data) count: usize,
    kind: Option<&'c [u8]>,
}

impl<'c> Scan<'c> {
    /// Reads the cursor at word `at` and the options after it.
    pub(in crate::data) fn parse(call: &Call<'c, '_>, at: usize) -> Result<Self, Fail> {
        let cursor = parse_cursor(call.arg(at)).ok_or(Fail::error("ERR invalid cursor"))?;
        let mut scan = Scan {
            cursor,
            pattern: None,
            count: COUNT,
            kind: None,
        };
        let rest = call.args.from(at + 1);
        for index in (0..rest.len()).step_by(2) {
            let (option, Some(value)) = (rest.get(index), rest.find(index + 1)) else {
                return Err(SYNTAX);
            };
            if is(option, "COUNT") {
                scan.count = match call.int(at + 2 + index)? {
                    count @ 1.. => count as usize,
                    _ => return Err(SYNTAX),
                };
            } else if is(option, "MATCH") {
                check_pattern(value)?;
                scan.pattern = Some(value).filter(|pattern| *pattern != b"*");
            } else if is(option, "TYPE") && at == 1 {
                scan.kind = Some(value);
            } else {
                return Err(SYNTAX);
            }
        }
        Ok(scan)
    }

    /// Whether an element of this name is wanted.
    pub(in crate::data) fn wants(&self, call: &mut Call, name: &[u8]) -> Result<bool, Stop> {
        let Some(pattern) = self.pattern else {
            return Ok(true);
        };
        call.access.steps(match_steps(pattern, name))?;
        Ok(glob_matches(pattern, name))
    }

    /// The start that every wanted name has.
    pub(in crate::data) fn prefix(&self) -> &'c [u8] {
        self.pattern.map_or(b"", literal_prefix)
    }

    /// The part of the walk still ahead: after the cursor's position, within the pattern's literal
    /// start.
    pub(in crate::data) fn ahead(
        &self,
        call: &Call,
        walk: Option<u64>,
    ) -> (Bound<Bytes>, Bound<Bytes>) {
        let (start, end) = prefix_bounds(self.prefix());
        match call.context.cursors.position(walk, self.cursor) {
            // A cursor from a walk with another pattern may lie before this pattern's start.
            Some(last) if last[..] >= *self.prefix() => (Bound::Excluded(last), end),
            _ => (start, end),
        }
    }
}

/// A cursor as C's `strtoul` reads it: a minus sign wraps around, into numbers that are nobody's
/// cursor.
fn parse_cursor(word: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(word).ok()?;
    match text.strip_prefix('-') {
        Some(digits) if !digits.starts_with('+') => digits.parse().ok().map(u64::wrapping_neg),
        _ => text.parse().ok(),
    }
}

/// `SCAN cursor [MATCH pattern] [COUNT count] [TYPE type]`
pub(in crate::data) fn scan(call: &mut Call) -> Done {
    let options = Scan::parse(call, 1)?;
    call.list(
        |call, each| scan_keys(call, &options, each),
        |reply, count, cursor| scan_header(reply, cursor, count),
        |reply, key| reply.bulk(&key),
    )
}

/// Calls `each` with the keys that a call of `SCAN` wants; returns the cursor to go on with.
fn scan_keys<'c, 'k>(
    call: &mut Call<'c, 'k>,
    options: &Scan,
    each: &mut dyn FnMut(&mut Call<'c, 'k>, Bytes),
) -> Result<u64, Fail> {
    let (mut from, to) = options.ahead(call, None);
    let mut left = options.count;
    loop {
        let (ends, wanted) = ((slice(&from), slice(&to)), left.min(CHUNK));
        let page = walk(call, ends, wanted)?;
        left -= page.items.len();
        let last = page.items.last().map(|(key, _)| key.clone());
        for (key, entry) in page.items {
            let kind_fits = options
                .kind
                .is_none_or(|kind| is(kind, type_name(&entry.object)));
            if kind_fits && options.wants(call, &key)? {
                each(call, key);
            }
        }
        match last.filter(|_| page.more) {
            None => return Ok(0),
            Some(last) if left == 0 => return Ok(call.context.cursors.remember(None, &last)),
            Some(last) => from = Bound::Excluded(last),
        }
    }
}

/// What stands before the `count` items of a walk's reply.
pub(in crate::data) fn scan_header(reply: &mut Reply, cursor: u64, count: usize) {
    reply.array(2);
    reply.bulk(itoa::Buffer::new().format(cursor).as_bytes());
    reply.array(count);
}
