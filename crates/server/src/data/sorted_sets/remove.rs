//! Commands that remove members.

use super::bounds::{lex, ScoreRange};
use super::range::ranks;
use super::store::{Kept, Scored};
use super::SortedSet;
use crate::data::call::{Call, Done, Fail};
use engine::Order;

/// `ZREM key member …`
pub(in crate::data) fn zrem(call: &mut Call) -> Done {
    let args = call.args;
    let mut removed = 0;
    if let Some(mut set) = SortedSet::open(call, args.get(1))? {
        for member in args.iter().skip(2) {
            if let Some(score) = set.score(call, member)? {
                set.remove(call, member, score)?;
                removed += 1;
            }
        }
        set.close(call)?;
    }
    call.reply.int(removed);
    Ok(())
}

/// Removes what `find` finds and replies with how many that were.
fn remove_found(
    call: &mut Call,
    find: impl FnOnce(&mut Call, &SortedSet) -> Result<Vec<Scored>, Fail>,
) -> Done {
    let key = call.arg(1);
    let mut removed = 0;
    if let Some(mut set) = SortedSet::open(call, key)? {
        let found = find(call, &set)?;
        removed = found.len();
        for (member, score) in found {
            set.remove(call, &member, score)?;
        }
        set.close(call)?;
    }
    call.reply.count(removed);
    Ok(())
}

/// `ZREMRANGEBYRANK key start stop`
pub(in crate::data) fn zremrangebyrank(call: &mut Call) -> Done {
    let (start, stop) = (call.int(2)?, call.int(3)?);
    remove_found(call, |call, set| {
        set.ranked(call, ranks(start, stop, set.len()), Order::Up)
    })
}

/// `ZREMRANGEBYSCORE key min max`
pub(in crate::data) fn zremrangebyscore(call: &mut Call) -> Done {
    let range = ScoreRange::parse(call.arg(2), call.arg(3))?;
    remove_found(call, |call, set| {
        let mut found = Kept::default();
        set.by_score(call, &range, Order::Up, |call, member, score| {
            found.push(call, (member, score))
        })?;
        found.all()
    })
}

/// `ZREMRANGEBYLEX key min max`
pub(in crate::data) fn zremrangebylex(call: &mut Call) -> Done {
    let (low, high) = lex(call.arg(2), call.arg(3))?;
    remove_found(call, |call, set| {
        let mut found = Kept::default();
        set.by_name(call, low, high, Order::Up, |call, member, score| {
            found.push(call, (member, score))
        })?;
        found.all()
    })
}
