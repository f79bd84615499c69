//! `ZADD` and `ZINCRBY`.

use resp::is;

use super::{parse_score, SortedSet};
use crate::data::call::{Call, Done, Fail, SYNTAX};

#[derive(Clone, Copy, Default)]
struct Options {
    nx: bool,
    xx: bool,
    gt: bool,
    lt: bool,
    changed: bool,
    increment: bool,
}

impl Options {
    /// Reads the options from word 2 on; also gives the index of the first score.
    fn parse(call: &Call) -> Result<(Options, usize), Fail> {
        let mut options = Options::default();
        let mut index = 2;
        while let Some(word) = call.args.find(index) {
            let flag = match word {
                _ if is(word, "NX") => &mut options.nx,
                _ if is(word, "XX") => &mut options.xx,
                _ if is(word, "GT") => &mut options.gt,
                _ if is(word, "LT") => &mut options.lt,
                _ if is(word, "CH") => &mut options.changed,
                _ if is(word, "INCR") => &mut options.increment,
                _ => break,
            };
            *flag = true;
            index += 1;
        }
        let words = call.args.len() - index;
        if words == 0 || words % 2 == 1 {
            return Err(SYNTAX);
        }
        if options.nx && options.xx {
            return Err(Fail::error(
                "ERR XX and NX options at the same time are not compatible",
            ));
        }
        if options.gt && (options.nx || options.lt) || options.lt && options.nx {
            return Err(Fail::error(
                "ERR GT, LT, and/or NX options at the same time are not compatible",
            ));
        }
        if options.increment && words > 2 {
            return Err(Fail::error(
                "ERR INCR option supports a single increment-element pair",
            ));
        }
        Ok((options, index))
    }

    /// The score that `member` gets, or `None` when the options forbid it.
    fn decide(&self, given: f64, old: Option<f64>) -> Result<Option<f64>, Fail> {
        let Some(old) = old else {
            return Ok((!self.xx).then_some(given));
        };
        if self.nx {
            return Ok(None);
        }
        let score = if self.increment { old + given } else { given };
        if score.is_nan() {
            return Err(Fail::error("ERR resulting score is not a number (NaN)"));
        }
        let refused = self.gt && score <= old || self.lt && score >= old;
        Ok((!refused).then_some(score))
    }
}

/// `ZADD key [NX | XX] [GT | LT] [CH] [INCR] score member …`
pub(in crate::data) fn zadd(call: &mut Call) -> Done {
    let (options, first) = Options::parse(call)?;
    add(call, options, first)
}

/// `ZINCRBY key increment member`
pub(in crate::data) fn zincrby(call: &mut Call) -> Done {
    add(
        call,
        Options {
            increment: true,
            ..Options::default()
        },
        2,
    )
}

fn add(call: &mut Call, options: Options, first: usize) -> Done {
    let args = call.args;
    let pairs = (first..args.len()).step_by(2);
    let scores: Vec<f64> = pairs
        .clone()
        .map(|index| parse_score(args.get(index)))
        .collect::<Result<_, _>>()?;
    let mut set = SortedSet::open_or_new(call, args.get(1))?;
    let (mut added, mut updated, mut result) = (0, 0, None);
    for (index, given) in pairs.zip(scores) {
        let member = args.get(index + 1);
        let old = set.score(call, member)?;
        result = options.decide(given, old)?;
        let Some(score) = result else { continue };
        if old != Some(score) {
            set.set(call, member, score, old)?;
            added += i64::from(old.is_none());
            updated += i64::from(old.is_some());
        }
    }
    set.close(call)?;
    match (options.increment, result) {
        (true, Some(score)) => call.reply.double(score),
        (true, None) => call.reply.null(),
        (false, _) => call
            .reply
            .int(added + if options.changed { updated } else { 0 }),
    }
    Ok(())
}
