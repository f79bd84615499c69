//! The options that `SET` and `GETEX` share.

use resp::{is, parse_i64};

use crate::data::call::{Call, Fail, NOT_AN_INTEGER, SYNTAX};

/// Whose options are read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Allowed {
    Set,
    GetEx,
}

/// What becomes of a key's expiry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Expiry {
    Keep,
    Never,
    /// At this time, in ms since the Unix epoch.
    At(u64),
}

/// Options as given, not yet evaluated: Redis reads them all before it looks at a number.
#[derive(Default)]
pub(super) struct Options<'c> {
    pub(super) nx: bool,
    pub(super) xx: bool,
    pub(super) get: bool,
    pub(super) persist: bool,
    keep_ttl: bool,
    time: Option<Time<'c>>,
}

#[derive(Clone, Copy)]
struct Time<'c> {
    number: &'c [u8],
    option: &'static str,
    unit_ms: i64,
    is_relative: bool,
}

const TIMES: [(&str, i64, bool); 4] = [
    ("EX", 1000, true),
    ("PX", 1, true),
    ("EXAT", 1000, false),
    ("PXAT", 1, false),
];

impl<'c> Options<'c> {
    pub(super) fn parse(call: &Call<'c, '_>, first: usize, of: Allowed) -> Result<Self, Fail> {
        let mut options = Options::default();
        let mut index = first;
        while let Some(word) = call.args.find(index) {
            let timed = options.time.is_some();
            let known = TIMES.iter().find(|(name, ..)| is(word, name));
            match (of, known, call.args.find(index + 1)) {
                (_, Some(&(option, unit_ms, is_relative)), Some(number))
                    if !options.keep_ttl
                        && !options.persist
                        && options.time.is_none_or(|time| time.option == option) =>
                {
                    options.time = Some(Time {
                        number,
                        option,
                        unit_ms,
                        is_relative,
                    });
                    index += 1;
                }
                (Allowed::Set, ..) if is(word, "NX") && !options.xx => options.nx = true,
                (Allowed::Set, ..) if is(word, "XX") && !options.nx => options.xx = true,
                (Allowed::Set, ..) if is(word, "GET") => options.get = true,
                (Allowed::Set, ..) if is(word, "KEEPTTL") && !timed => options.keep_ttl = true,
                (Allowed::GetEx, ..) if is(word, "PERSIST") && !timed => options.persist = true,
                _ => return Err(SYNTAX),
            }
            index += 1;
        }
        Ok(options)
    }

    pub(super) fn expiry(&self, call: &Call) -> Result<Expiry, Fail> {
        if self.keep_ttl {
            return Ok(Expiry::Keep);
        }
        let Some(time) = self.time else {
            return Ok(Expiry::Never);
        };
        let number = parse_i64(time.number).ok_or(NOT_AN_INTEGER)?;
        deadline(call, number, time.unit_ms, time.is_relative).map(Expiry::At)
    }
}

/// A positive time in units of `unit_ms`, relative to now or absolute, as ms since the Unix epoch.
pub(super) fn deadline(
    call: &Call,
    number: i64,
    unit_ms: i64,
    is_relative: bool,
) -> Result<u64, Fail> {
    let base = if is_relative {
        call.access.now_ms() as i64
    } else {
        0
    };
    number
        .checked_mul(unit_ms)
        .filter(|_| number > 0)
        .and_then(|ms| ms.checked_add(base))
        .map(|at| at as u64)
        .ok_or_else(|| call.invalid_expire())
}
