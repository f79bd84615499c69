//! When keys end: `EXPIRE` and its kin, `TTL` and its kin, `PERSIST`.

use resp::is;

use crate::data::call::{Call, Done, Fail};

/// `EXPIRE key seconds [NX | XX | GT | LT]`
pub(in crate::data) fn expire(call: &mut Call) -> Done {
    set_expiry(call, 1000, true)
}

/// `PEXPIRE key milliseconds [NX | XX | GT | LT]`
pub(in crate::data) fn pexpire(call: &mut Call) -> Done {
    set_expiry(call, 1, true)
}

/// `EXPIREAT key unix-time [NX | XX | GT | LT]`
pub(in crate::data) fn expireat(call: &mut Call) -> Done {
    set_expiry(call, 1000, false)
}

/// `PEXPIREAT key unix-time-ms [NX | XX | GT | LT]`
pub(in crate::data) fn pexpireat(call: &mut Call) -> Done {
    set_expiry(call, 1, false)
}

/// Conditions on the expiry that a key has.
#[derive(Default)]
struct Condition {
    nx: bool,
    xx: bool,
    gt: bool,
    lt: bool,
}

impl Condition {
    fn parse(call: &Call) -> Result<Condition, Fail> {
        let mut condition = Condition::default();
        for word in call.args.iter().skip(3) {
            let flag = match word {
                _ if is(word, "NX") => &mut condition.nx,
                _ if is(word, "XX") => &mut condition.xx,
                _ if is(word, "GT") => &mut condition.gt,
                _ if is(word, "LT") => &mut condition.lt,
                _ => {
                    let word = String::from_utf8_lossy(word);
                    return Err(Fail::error(format!("ERR Unsupported option {word}")));
                }
            };
            *flag = true;
        }
        if condition.nx && (condition.xx || condition.gt || condition.lt) {
            return Err(Fail::error(
                "ERR NX and XX, GT or LT options at the same time are not compatible",
            ));
        }
        if condition.gt && condition.lt {
            return Err(Fail::error(
                "ERR GT and LT options at the same time are not compatible",
            ));
        }
        Ok(condition)
    }

    /// A key without expiry counts as one that expires at the end of time.
    fn holds(&self, current: Option<u64>, at: i64) -> bool {
        let current = current.map(|current| current as i64);
        !(self.nx && current.is_some()
            || self.xx && current.is_none()
            || self.gt && current.is_none_or(|current| at <= current)
            || self.lt && current.is_some_and(|current| at >= current))
    }
}

fn set_expiry(call: &mut Call, unit_ms: i64, is_relative: bool) -> Done {
    let key = call.arg(1);
    let condition = Condition::parse(call)?;
    let now_ms = call.access.now_ms() as i64;
    let at = call
        .int(2)?
        .checked_mul(unit_ms)
        .and_then(|time| time.checked_add(if is_relative { now_ms } else { 0 }))
        .ok_or_else(|| call.invalid_expire())?;
    let Some(mut entry) = call.access.get(key)? else {
        call.reply.int(0);
        return Ok(());
    };
    if !condition.holds(entry.expire_at_ms, at) {
        call.reply.int(0);
        return Ok(());
    }
    if at <= now_ms {
        call.access.delete(key)?;
    } else {
        entry.expire_at_ms = Some(at as u64);
        call.access.put(key, entry)?;
    }
    call.reply.int(1);
    Ok(())
}

/// Replies -2 for no key, -1 for no expiry, else what `shown` makes of expiry and now, both in ms.
fn report(call: &mut Call, shown: fn(u64, u64) -> u64) -> Done {
    let now_ms = call.access.now_ms();
    let reply = match call.access.get(call.arg(1))? {
        None => -2,
        Some(entry) => entry.expire_at_ms.map_or(-1, |at| shown(at, now_ms) as i64),
    };
    call.reply.int(reply);
    Ok(())
}

/// `TTL key`, rounded to the nearest second.
pub(in crate::data) fn ttl(call: &mut Call) -> Done {
    report(call, |at, now| (at.saturating_sub(now) + 500) / 1000)
}

/// `PTTL key`
pub(in crate::data) fn pttl(call: &mut Call) -> Done {
    report(call, |at, now| at.saturating_sub(now))
}

/// `EXPIRETIME key`
pub(in crate::data) fn expiretime(call: &mut Call) -> Done {
    report(call, |at, _| (at + 500) / 1000)
}

/// `PEXPIRETIME key`
pub(in crate::data) fn pexpiretime(call: &mut Call) -> Done {
    report(call, |at, _| at)
}

/// `PERSIST key`
pub(in crate::data) fn persist(call: &mut Call) -> Done {
    let key = call.arg(1);
    let expiring = call
        .access
        .get(key)?
        .filter(|entry| entry.expire_at_ms.is_some());
    call.reply.int(i64::from(expiring.is_some()));
    if let Some(mut entry) = expiring {
        entry.expire_at_ms = None;
        call.access.put(key, entry)?;
    }
    Ok(())
}
