//! `ZPOPMIN`, `ZPOPMAX` and `ZMPOP`.

use engine::Order;
use resp::{is, parse_i64};

use super::store::Scored;
use super::SortedSet;
use crate::data::call::{Call, Done, Fail, SYNTAX};

/// `ZPOPMIN key [count]`
pub(in crate::data) fn zpopmin(call: &mut Call) -> Done {
    pop(call, Order::Up)
}

/// `ZPOPMAX key [count]`
pub(in crate::data) fn zpopmax(call: &mut Call) -> Done {
    pop(call, Order::Down)
}

fn pop(call: &mut Call, order: Order) -> Done {
    let key = call.arg(1);
    let has_count = match call.args.len() {
        2 => false,
        3 => true,
        _ => return Err(SYNTAX),
    };
    let count = match has_count {
        true => parse_i64(call.arg(2))
            .and_then(|count| u64::try_from(count).ok())
            .ok_or(Fail::error("ERR value is out of range, must be positive"))?,
        false => 1,
    };
    let popped = match SortedSet::open(call, key)? {
        Some(set) => take(call, set, count, order)?,
        None => Vec::new(),
    };
    // RESP3 has pairs, but a single one, asked for without a count, stands alone.
    let nested = has_count && call.reply.is_resp3();
    call.reply.array(if nested {
        popped.len()
    } else {
        popped.len() * 2
    });
    for (member, score) in popped {
        if nested {
            call.reply.array(2);
        }
        call.reply.bulk(&member);
        call.reply.double(score);
    }
    Ok(())
}

/// Removes up to `count` members from an end of a set.
fn take(
    call: &mut Call,
    mut set: SortedSet,
    count: u64,
    order: Order,
) -> Result<Vec<Scored>, Fail> {
    let taken = set.ranked(call, 0..count.min(set.len()), order)?;
    for (member, score) in &taken {
        set.remove(call, member, *score)?;
    }
    set.close(call)?;
    Ok(taken)
}

fn above_zero(word: &[u8], what: &str) -> Result<u64, Fail> {
    let number = parse_i64(word).and_then(|number| u64::try_from(number).ok());
    number
        .filter(|number| *number > 0)
        .ok_or_else(|| Fail::error(format!("ERR {what} should be greater than 0")))
}

/// `ZMPOP numkeys key … MIN | MAX [COUNT count]`: from the first of the sets that has any members.
pub(in crate::data) fn zmpop(call: &mut Call) -> Done {
    let keys = above_zero(call.arg(1), "numkeys")?;
    let keys = usize::try_from(keys).unwrap_or(usize::MAX);
    let at = keys.saturating_add(2);
    let order = match call.args.find(at) {
        Some(word) if is(word, "MIN") => Order::Up,
        Some(word) if is(word, "MAX") => Order::Down,
        _ => return Err(SYNTAX),
    };
    let count = match call.args.len() - at {
        1 => 1,
        3 if is(call.arg(at + 1), "COUNT") => above_zero(call.arg(at + 2), "count")?,
        _ => return Err(SYNTAX),
    };
    for index in 2..at {
        let key = call.arg(index);
        let Some(set) = SortedSet::open(call, key)? else {
            continue;
        };
        let taken = take(call, set, count, order)?;
        call.reply.array(2);
        call.reply.bulk(key);
        call.reply.array(taken.len());
        for (member, score) in taken {
            call.reply.array(2);
            call.reply.bulk(&member);
            call.reply.double(score);
        }
        return Ok(());
    }
    call.reply.null_array();
    Ok(())
}
