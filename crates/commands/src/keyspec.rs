//! Where the keys of a command are: for latching before it runs, for `COMMAND GETKEYS`, for
//! cluster-aware clients.

use std::iter::StepBy;
use std::ops::Range;

use resp::{is, parse_i64, Args};

/// What a command does to a key, in the words of `COMMAND INFO`.
pub type KeyAccess = &'static [&'static str];

/// Reads the value.
pub const READ: KeyAccess = &["RO", "access"];
/// Reads what is known about the key but returns none of its value.
pub const PROBE: KeyAccess = &["RO"];
/// Sets the value whatever it was.
pub const OVERWRITE: KeyAccess = &["OW", "update"];
/// Sets the value if there was none.
pub const INSERT: KeyAccess = &["OW", "insert"];
/// Adds to the value.
pub const ADD: KeyAccess = &["RW", "insert"];
/// Changes the value.
pub const UPDATE: KeyAccess = &["RW", "update"];
/// Changes the value and returns some of it.
pub const READ_UPDATE: KeyAccess = &["RW", "access", "update"];
/// Changes and returns, or only overwrites: the options decide ([`KeySpec::access_in`]).
pub const VARIABLE: KeyAccess = &["RW", "access", "update", "variable_flags"];
/// Removes some of the value.
pub const REMOVE: KeyAccess = &["RW", "delete"];
/// Removes some of the value and returns it.
pub const TAKE: KeyAccess = &["RW", "access", "delete"];
/// Removes the key.
pub const DELETE: KeyAccess = &["RM", "delete"];

/// Where some of a command's keys are.
#[derive(Clone, Copy, Debug)]
pub struct KeySpec {
    /// What is done to them.
    pub access: KeyAccess,
    /// Index of the word where the search begins.
    pub at: u8,
    /// How it goes on.
    pub find: Find,
}

/// How keys follow one another.
#[derive(Clone, Copy, Debug)]
pub enum Find {
    /// Every `step`th word up to `last`, counted from `at`; negative: from the last word, -1 being
    /// that word itself.
    Range {
        /// The last key.
        last: i8,
        /// Distance from one key to the next.
        step: u8,
    },
    /// The word at `at` tells how many keys follow it.
    Count,
}

/// One key at `at`.
pub const fn one(access: KeyAccess, at: u8) -> KeySpec {
    KeySpec {
        access,
        at,
        find: Find::Range { last: 0, step: 1 },
    }
}

/// Two keys, at `at` and next to it.
pub const fn pair(access: KeyAccess, at: u8) -> KeySpec {
    KeySpec {
        access,
        at,
        find: Find::Range { last: 1, step: 1 },
    }
}

/// Keys from `at` to the last word, every `step` words.
pub const fn rest(access: KeyAccess, at: u8, step: u8) -> KeySpec {
    KeySpec {
        access,
        at,
        find: Find::Range { last: -1, step },
    }
}

/// A number at `at` and this many keys after it.
pub const fn counted(access: KeyAccess, at: u8) -> KeySpec {
    KeySpec {
        access,
        at,
        find: Find::Count,
    }
}

impl KeySpec {
    /// What is done to the keys in `args`. The commands whose options decide are `SET`, whose old
    /// value is read only with `GET`, which Redis looks for in every word behind the value; and
    /// `BITFIELD`, which writes with two of its words.
    pub(super) fn access_in(&self, args: &Args) -> KeyAccess {
        let reads = || args.iter().skip(3).any(|word| is(word, "GET"));
        let mut words = args.iter().skip(2);
        let mut writes = || words.any(|word| is(word, "SET") || is(word, "INCRBY"));
        match self.access {
            VARIABLE if is(args.get(0), "BITFIELD") && writes() => READ_UPDATE,
            VARIABLE if is(args.get(0), "BITFIELD") => READ,
            VARIABLE if reads() => READ_UPDATE,
            VARIABLE => OVERWRITE,
            access => access,
        }
    }

    /// Indices of the keys in `args`, or `None` when a count is not a number or exceeds what
    /// follows.
    pub(super) fn indices(&self, args: &Args) -> Option<StepBy<Range<usize>>> {
        let at = usize::from(self.at);
        match self.find {
            Find::Range { last, step } => {
                let last = match last {
                    0.. => at + last as usize,
                    _ => args.len().checked_sub(last.unsigned_abs() as usize)?,
                };
                (last < args.len()).then(|| (at..last + 1).step_by(usize::from(step)))
            }
            Find::Count => {
                let count = parse_i64(args.find(at)?)?;
                let last = at.checked_add(usize::try_from(count).ok()?)?;
                (count > 0 && last < args.len()).then(|| (at + 1..last + 1).step_by(1))
            }
        }
    }
}
