//! `ZSCAN` and `ZRANDMEMBER`.

use std::ops::Bound;

use bytes::Bytes;
use engine::Order;
use resp::write_double;

use super::bounds::ScoreRange;
use super::range::write_members;
use super::store::Scored;
use super::{has_option, SortedSet};
use crate::data::call::{Call, Done, Fail, SYNTAX};
use crate::data::keyspace::{scan_header, LexBound, Scan};
use crate::data::{random, SCAN_WHOLE_LEN};

/// `ZSCAN key cursor [MATCH pattern] [COUNT count]`: in the order of names, which does not change
/// while scores do. A set that is returned whole comes in the order of scores, as in Redis.
pub(in crate::data) fn zscan(call: &mut Call) -> Done {
    let options = Scan::parse(call, 2)?;
    let key = call.arg(1);
    let set = SortedSet::open(call, key)?;
    call.list(
        |call, each| match &set {
            Some(set) => scan_members(call, set, &options, each),
            None => Ok(0),
        },
        |reply, count, cursor| scan_header(reply, cursor, count * 2),
        |reply, (member, score)| {
            reply.bulk(&member);
            let mut text = Vec::new();
            write_double(score, &mut text);
            reply.bulk(&text);
        },
    )
}

/// Calls `each` with the members that a call of `ZSCAN` wants; returns the cursor to go on with.
fn scan_members<'c, 'k>(
    call: &mut Call<'c, 'k>,
    set: &SortedSet,
    options: &Scan,
    each: &mut dyn FnMut(&mut Call<'c, 'k>, Scored),
) -> Result<u64, Fail> {
    let mut ended = Ok(());
    let mut keep = |call: &mut Call<'c, 'k>, member: Bytes, score| {
        match options.wants(call, &member) {
            Ok(true) => each(call, (member, score)),
            Ok(false) => {}
            Err(stop) => ended = Err(stop),
        }
        ended.is_ok()
    };
    if set.len() <= SCAN_WHOLE_LEN {
        set.by_score(call, &ScoreRange::ALL, Order::Up, &mut keep)?;
        ended?;
        return Ok(0);
    }
    let (from, to) = options.ahead(call, Some(set.id()));
    let (low, high) = (
        lex_end(&from, LexBound::Lowest),
        lex_end(&to, LexBound::Highest),
    );
    let (mut left, mut cursor) = (options.count, 0);
    set.by_name(call, low, high, Order::Up, |call, member, score| {
        left -= 1;
        if left == 0 {
            cursor = call.context.cursors.remember(Some(set.id()), &member);
        }
        keep(call, member, score) && left > 0
    })?;
    ended?;
    Ok(cursor)
}

fn lex_end<'b>(bound: &'b Bound<Bytes>, open: LexBound<'b>) -> LexBound<'b> {
    match bound {
        Bound::Unbounded => open,
        end => LexBound::At(end.as_ref().map(|name| &name[..])),
    }
}

/// `ZRANDMEMBER key [count [WITHSCORES]]`
pub(in crate::data) fn zrandmember(call: &mut Call) -> Done {
    let key = call.arg(1);
    if call.args.len() == 2 {
        let picked = match SortedSet::open(call, key)? {
            Some(set) => pick(call, &set, &[random::below(set.len())])?.pop(),
            None => None,
        };
        call.reply
            .bulk_or_null(picked.as_ref().map(|(member, _)| member));
        return Ok(());
    }
    let count = random::count(call.int(2)?)?;
    let with_scores = has_option(call, 3, "WITHSCORES");
    if call.args.len() > 4 || call.args.len() == 4 && !with_scores {
        return Err(SYNTAX);
    }
    if with_scores && count > i64::MAX / 2 {
        return Err(Fail::error("ERR value is out of range"));
    }
    let picked = match SortedSet::open(call, key)? {
        Some(set) => {
            let places = random::places(call.access, set.len(), count)?;
            pick(call, &set, &places)?
        }
        None => Vec::new(),
    };
    for (member, _) in &picked {
        call.access.hold(member.len())?;
    }
    write_members(call, &picked, with_scores);
    Ok(())
}

/// The members at these places of the order of names, in the order of `places`.
fn pick(call: &mut Call, set: &SortedSet, places: &[u64]) -> Result<Vec<Scored>, Fail> {
    let mut wanted: Vec<(u64, usize)> = places.iter().copied().zip(0..).collect();
    wanted.sort_unstable();
    let mut picked = vec![Scored::default(); places.len()];
    let mut next = wanted.into_iter().peekable();
    let (mut place, mut enough) = (0, Ok(()));
    set.by_name(
        call,
        LexBound::Lowest,
        LexBound::Highest,
        Order::Up,
        |call, member, score| {
            if next.peek().is_some_and(|(wanted, _)| *wanted == place) {
                enough = call.access.work(member.len());
            }
            while let Some((_, index)) = next.next_if(|(wanted, _)| *wanted == place) {
                picked[index] = (member.clone(), score);
            }
            place += 1;
            enough.is_ok() && next.peek().is_some()
        },
    )?;
    enough?;
    Ok(picked)
}
