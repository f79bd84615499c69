//! Commands that read a range of members, and `ZRANGESTORE`.

use std::ops::Range;

use engine::Order;
use resp::{is, parse_i64, Reply};

use super::bounds::{lex, ScoreRange};
use super::store::{Kept, Scored};
use super::SortedSet;
use crate::data::call::{Call, Done, Fail, NOT_AN_INTEGER, SYNTAX};
use crate::data::keyspace::LexBound;

#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    Rank,
    Score,
    Lex,
}

/// What the words of a range command ask for, whichever of the commands it is.
struct Query<'c> {
    by: By,
    order: Order,
    start: &'c [u8],
    stop: &'c [u8],
    with_scores: bool,
    /// Members to skip; negative: there is nothing to return.
    offset: i64,
    /// Members to return; negative: all.
    count: i64,
}

/// A range with its words understood.
enum Wanted<'c> {
    Ranks(i64, i64),
    Scores(ScoreRange),
    Names(LexBound<'c>, LexBound<'c>),
}

impl<'c> Query<'c> {
    /// Reads the words from `first` (the lower end) on. `fixed` is what the command's name already
    /// says; `ZRANGE` and `ZRANGESTORE` leave it to their options.
    fn parse(
        call: &Call<'c, '_>,
        first: usize,
        fixed: Option<(By, Order)>,
        stores: bool,
    ) -> Result<Self, Fail> {
        let (mut by, mut order) = fixed.unzip();
        let (mut with_scores, mut limit) = (false, (0, -1));
        let mut index = first + 2;
        while let Some(word) = call.args.find(index) {
            match word {
                _ if !stores && is(word, "WITHSCORES") => with_scores = true,
                _ if is(word, "LIMIT") && call.args.len() > index + 2 => {
                    let number = |at| parse_i64(call.arg(at)).ok_or(NOT_AN_INTEGER);
                    limit = (number(index + 1)?, number(index + 2)?);
                    index += 2;
                }
                _ if order.is_none() && is(word, "REV") => order = Some(Order::Down),
                _ if by.is_none() && is(word, "BYSCORE") => by = Some(By::Score),
                _ if by.is_none() && is(word, "BYLEX") => by = Some(By::Lex),
                _ => return Err(SYNTAX),
            }
            index += 1;
        }
        let query = Query {
            by: by.unwrap_or(By::Rank),
            order: order.unwrap_or(Order::Up),
            start: call.arg(first),
            stop: call.arg(first + 1),
            with_scores,
            offset: limit.0,
            count: limit.1,
        };
        query.check()?;
        Ok(query)
    }

    fn check(&self) -> Done {
        if self.count != -1 && self.by == By::Rank {
            return Err(Fail::error(
                "ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX",
            ));
        }
        if self.with_scores && self.by == By::Lex {
            return Err(Fail::error(
                "ERR syntax error, WITHSCORES not supported in combination with BYLEX",
            ));
        }
        Ok(())
    }

    /// The ends as numbers or names. In descending order the higher end comes first, except of
    /// ranks.
    fn wanted(&self) -> Result<Wanted<'c>, Fail> {
        let (low, high) = match self.order {
            Order::Up => (self.start, self.stop),
            Order::Down => (self.stop, self.start),
        };
        match self.by {
            By::Rank => {
                let number = |word| parse_i64(word).ok_or(NOT_AN_INTEGER);
                Ok(Wanted::Ranks(number(self.start)?, number(self.stop)?))
            }
            By::Score => ScoreRange::parse(low, high).map(Wanted::Scores),
            By::Lex => lex(low, high).map(|(low, high)| Wanted::Names(low, high)),
        }
    }

    /// Calls `each` with the members that are asked for.
    fn walk<'w, 'k>(
        &self,
        call: &mut Call<'w, 'k>,
        set: &SortedSet,
        wanted: &Wanted,
        each: &mut dyn FnMut(&mut Call<'w, 'k>, Scored),
    ) -> Done {
        let (mut to_skip, mut left) = (self.offset, self.count);
        if !matches!(wanted, Wanted::Ranks(..)) && (to_skip < 0 || left == 0) {
            return Ok(());
        }
        let take = |call: &mut Call<'w, 'k>, member, score| {
            if to_skip > 0 {
                to_skip -= 1;
                return true;
            }
            each(call, (member, score));
            left -= 1;
            left != 0
        };
        match wanted {
            Wanted::Ranks(start, stop) => {
                set.by_rank(call, ranks(*start, *stop, set.len()), self.order, each)
            }
            Wanted::Scores(range) => set.by_score(call, range, self.order, take),
            Wanted::Names(low, high) => set.by_name(call, *low, *high, self.order, take),
        }
    }
}

/// The places between `start` and `stop`, both inclusive and counted from the end when negative.
pub(super) fn ranks(start: i64, stop: i64, len: u64) -> Range<u64> {
    let len = len as i64;
    let from_end = |index: i64| {
        if index < 0 {
            index.saturating_add(len)
        } else {
            index
        }
    };
    let (start, stop) = (from_end(start).max(0), from_end(stop).min(len - 1));
    if start > stop {
        return 0..0;
    }
    start as u64..stop as u64 + 1
}

fn reply_range(call: &mut Call, fixed: Option<(By, Order)>) -> Done {
    let query = Query::parse(call, 2, fixed, false)?;
    let wanted = query.wanted()?;
    let key = call.arg(1);
    let set = SortedSet::open(call, key)?;
    let with_scores = query.with_scores;
    call.list(
        |call, each| match &set {
            Some(set) => query.walk(call, set, &wanted, each),
            None => Ok(()),
        },
        |reply, count, ()| members_header(reply, count, with_scores),
        |reply, member| write_member(reply, &member, with_scores),
    )
}

/// What stands before `count` members.
fn members_header(reply: &mut Reply, count: usize, with_scores: bool) {
    let nested = with_scores && reply.is_resp3();
    reply.array(if with_scores && !nested {
        count * 2
    } else {
        count
    });
}

/// Writes a member, with its score as a pair in RESP3 and one after the other in RESP2.
fn write_member(reply: &mut Reply, (member, score): &Scored, with_scores: bool) {
    if with_scores && reply.is_resp3() {
        reply.array(2);
    }
    reply.bulk(member);
    if with_scores {
        reply.double(*score);
    }
}

/// Replies with these members.
pub(super) fn write_members(call: &mut Call, members: &[Scored], with_scores: bool) {
    members_header(&mut call.reply, members.len(), with_scores);
    for member in members {
        write_member(&mut call.reply, member, with_scores);
    }
}

/// `ZRANGE key start stop [BYSCORE | BYLEX] [REV] [LIMIT offset count] [WITHSCORES]`
pub(in crate::data) fn zrange(call: &mut Call) -> Done {
    reply_range(call, None)
}

/// `ZREVRANGE key start stop [WITHSCORES]`
pub(in crate::data) fn zrevrange(call: &mut Call) -> Done {
    reply_range(call, Some((By::Rank, Order::Down)))
}

/// `ZRANGEBYSCORE key min max [WITHSCORES] [LIMIT offset count]`
pub(in crate::data) fn zrangebyscore(call: &mut Call) -> Done {
    reply_range(call, Some((By::Score, Order::Up)))
}

/// `ZREVRANGEBYSCORE key max min [WITHSCORES] [LIMIT offset count]`
pub(in crate::data) fn zrevrangebyscore(call: &mut Call) -> Done {
    reply_range(call, Some((By::Score, Order::Down)))
}

/// `ZRANGEBYLEX key min max [LIMIT offset count]`
pub(in crate::data) fn zrangebylex(call: &mut Call) -> Done {
    reply_range(call, Some((By::Lex, Order::Up)))
}

/// `ZREVRANGEBYLEX key max min [LIMIT offset count]`
pub(in crate::data) fn zrevrangebylex(call: &mut Call) -> Done {
    reply_range(call, Some((By::Lex, Order::Down)))
}

/// `ZRANGESTORE destination source start stop [BYSCORE | BYLEX] [REV] [LIMIT offset count]`
pub(in crate::data) fn zrangestore(call: &mut Call) -> Done {
    let query = Query::parse(call, 3, None, true)?;
    let wanted = query.wanted()?;
    let source = call.arg(2);
    let mut found = Kept::default();
    if let Some(set) = SortedSet::open(call, source)? {
        query.walk(call, &set, &wanted, &mut |call, member| {
            found.push(call, member);
        })?;
    }
    store_members(call, found.all()?)
}

/// Replaces whatever is under word 1 by a sorted set of these members, or by nothing when there are
/// none.
pub(super) fn store_members(call: &mut Call, members: Vec<Scored>) -> Done {
    let destination = call.arg(1);
    call.reply.count(members.len());
    if members.is_empty() {
        call.access.delete(destination)?;
        return Ok(());
    }
    let mut set = SortedSet::create(call, destination)?;
    for (member, score) in members {
        set.set(call, &member, score, None)?;
    }
    set.close(call)
}
