//! Commands on sorted sets. A member is two records: its score under its name, and its name under
//! its score.

mod add;
mod bounds;
mod combine;
mod pop;
mod range;
mod remove;
mod store;
mod walk;

use super::call::{Call, Done, Fail, NOT_A_FLOAT};
use super::number::parse_f64;
use bounds::ScoreRange;
use engine::Order;
use resp::is;

pub(super) use add::{zadd, zincrby};
pub(super) use combine::{zdiff, zdiffstore, zinter, zintercard, zinterstore, zunion, zunionstore};
pub(super) use pop::{zmpop, zpopmax, zpopmin};
pub(super) use range::{
    zrange, zrangebylex, zrangebyscore, zrangestore, zrevrange, zrevrangebylex, zrevrangebyscore,
};
pub(super) use remove::{zrem, zremrangebylex, zremrangebyrank, zremrangebyscore};
pub(super) use store::SortedSet;
pub(super) use walk::{zrandmember, zscan};

/// `ZSCORE key member`
pub(super) fn zscore(call: &mut Call) -> Done {
    let (key, member) = (call.arg(1), call.arg(2));
    let score = match SortedSet::open(call, key)? {
        Some(set) => set.score(call, member)?,
        None => None,
    };
    match score {
        Some(score) => call.reply.double(score),
        None => call.reply.null(),
    }
    Ok(())
}

/// `ZMSCORE key member …`
pub(super) fn zmscore(call: &mut Call) -> Done {
    let args = call.args;
    let set = SortedSet::open(call, args.get(1))?;
    call.reply.array(args.len() - 2);
    for member in args.iter().skip(2) {
        let score = match &set {
            Some(set) => set.score(call, member)?,
            None => None,
        };
        match score {
            Some(score) => call.reply.double(score),
            None => call.reply.null(),
        }
    }
    Ok(())
}

/// `ZCARD key`
pub(super) fn zcard(call: &mut Call) -> Done {
    let key = call.arg(1);
    let set = SortedSet::open(call, key)?;
    call.reply.int(set.map_or(0, |set| set.len() as i64));
    Ok(())
}

/// `ZCOUNT key min max`
pub(super) fn zcount(call: &mut Call) -> Done {
    let range = ScoreRange::parse(call.arg(2), call.arg(3))?;
    let key = call.arg(1);
    let mut count = 0;
    if let Some(set) = SortedSet::open(call, key)? {
        set.by_score(call, &range, Order::Up, |_, _, _| {
            count += 1;
            true
        })?;
    }
    call.reply.int(count);
    Ok(())
}

/// `ZLEXCOUNT key min max`
pub(super) fn zlexcount(call: &mut Call) -> Done {
    let (low, high) = bounds::lex(call.arg(2), call.arg(3))?;
    let key = call.arg(1);
    let mut count = 0;
    if let Some(set) = SortedSet::open(call, key)? {
        set.by_name(call, low, high, Order::Up, |_, _, _| {
            count += 1;
            true
        })?;
    }
    call.reply.int(count);
    Ok(())
}

/// `ZRANK key member`
pub(super) fn zrank(call: &mut Call) -> Done {
    rank(call, Order::Up)
}

/// `ZREVRANK key member`
pub(super) fn zrevrank(call: &mut Call) -> Done {
    rank(call, Order::Down)
}

/// Counts the members before this one, from whichever end; there is no index of ranks.
fn rank(call: &mut Call, order: Order) -> Done {
    let (key, member) = (call.arg(1), call.arg(2));
    let Some(set) = SortedSet::open(call, key)? else {
        call.reply.null();
        return Ok(());
    };
    let Some(score) = set.score(call, member)? else {
        call.reply.null();
        return Ok(());
    };
    let mut before = 0;
    let all = ScoreRange::up_to(score);
    // Members of lower or equal score, up to this one.
    set.by_score(call, &all, Order::Up, |_, name, its_score| {
        let is_before = its_score < score || name[..] < *member;
        before += u64::from(is_before);
        is_before
    })?;
    call.reply.int(match order {
        Order::Up => before as i64,
        Order::Down => (set.len() - 1 - before) as i64,
    });
    Ok(())
}

fn parse_score(word: &[u8]) -> Result<f64, Fail> {
    parse_f64(word).ok_or(NOT_A_FLOAT)
}

/// True when word `index` exists and is `option`.
fn has_option(call: &Call, index: usize, option: &str) -> bool {
    call.args.find(index).is_some_and(|word| is(word, option))
}
