//! Randomness for the commands that promise a random element. Nothing depends on its quality beyond
//! fairness.

use std::cell::RefCell;
use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};

use engine::{Access, Stop};
use policy::generator::Generator;

use super::call::Fail;

/// Elements that a negative count may ask for. Redis tries to send as many as 2^62; that is a way
/// to end a server.
const REPEATS_MAX: i64 = 1 << 20;

/// What a place takes until what is there has been picked: its number, its turn, and the element.
const PLACE_WORK_BYTES: usize = 120;

thread_local! {
    static GENERATOR: RefCell<Generator> =
        RefCell::new(Generator::new(RandomState::new().hash_one(0)));
}

/// Any number.
pub fn any() -> u64 {
    GENERATOR.with_borrow_mut(Generator::bits)
}

/// A number in `0..below`; `below` must not be zero. The bias is below 2^-32 for the sizes that
/// occur.
pub fn below(below: u64) -> u64 {
    GENERATOR.with_borrow_mut(|generator| generator.below(below))
}

/// Checks the count of `HRANDFIELD` and `ZRANDMEMBER`.
pub fn count(count: i64) -> Result<i64, Fail> {
    if count < -REPEATS_MAX {
        return Err(Fail::error(format!(
            "ERR value is out of range, value must between -{REPEATS_MAX} and {}",
            i64::MAX
        )));
    }
    Ok(count)
}

/// Places among `len` elements as `HRANDFIELD` and `ZRANDMEMBER` choose them: for a positive
/// `count` that many different ones (all, if there are no more), for a negative one exactly
/// `-count`, which may repeat.
///
/// # Errors
/// So many are more than a command may work with.
pub fn places(access: &mut Access, len: u64, count: i64) -> Result<Vec<u64>, Stop> {
    if len == 0 {
        return Ok(Vec::new());
    }
    let wanted = if count < 0 {
        count.unsigned_abs()
    } else {
        len.min(count as u64)
    };
    access.work((wanted as usize).saturating_mul(PLACE_WORK_BYTES))?;
    Ok(choose(len, count))
}

fn choose(len: u64, count: i64) -> Vec<u64> {
    if count < 0 {
        return (0..count.unsigned_abs()).map(|_| below(len)).collect();
    }
    let count = count as u64;
    if count >= len {
        return (0..len).collect();
    }
    // Floyd's sampling: each subset of the wanted size is equally likely.
    let mut chosen = HashSet::new();
    (len - count..len)
        .map(|top| {
            let place = below(top + 1);
            let place = if chosen.contains(&place) { top } else { place };
            chosen.insert(place);
            place
        })
        .collect()
}
