//! `ZPOPMIN` and `ZPOPMAX`.

use engine::Order;

use super::SortedSet;
use crate::commands::call::{Call, Done, Fail, SYNTAX};
use crate::resp::parse_i64;

/// `ZPOPMIN key [count]`
pub(in crate::commands) fn zpopmin(call: &mut Call) -> Done {
    pop(call, Order::Up)
}

/// `ZPOPMAX key [count]`
pub(in crate::commands) fn zpopmax(call: &mut Call) -> Done {
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
        Some(mut set) => {
            let popped = set.ranked(call, 0..count.min(set.len()), order)?;
            for (member, score) in &popped {
                set.remove(call, member, *score)?;
            }
            set.close(call)?;
            popped
        }
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
