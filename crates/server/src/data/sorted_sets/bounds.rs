//! Ranges of scores and of names.

use std::ops::Bound;

use bytes::Bytes;
use engine::score_key;

use crate::data::call::Fail;
use crate::data::keyspace::{lex_bound, LexBound};
use crate::data::number::parse_bound;

/// Scores between two ends, each of which may be excluded.
#[derive(Clone, Copy, Debug)]
pub(super) struct ScoreRange {
    low: (f64, bool),
    high: (f64, bool),
}

impl ScoreRange {
    /// Every score.
    pub(super) const ALL: ScoreRange = ScoreRange {
        low: (f64::NEG_INFINITY, false),
        high: (f64::INFINITY, false),
    };

    /// Every score up to and with this one.
    pub(super) fn up_to(score: f64) -> ScoreRange {
        ScoreRange {
            high: (score, false),
            ..Self::ALL
        }
    }

    /// `min` and `max` as `ZRANGEBYSCORE` writes them: a number, `(` before it to exclude it.
    pub(super) fn parse(min: &[u8], max: &[u8]) -> Result<ScoreRange, Fail> {
        let end = |word: &[u8]| {
            let (number, excluded) = match word {
                [b'(', number @ ..] => (number, true),
                number => (number, false),
            };
            let number = parse_bound(number);
            number
                .map(|n| (n, excluded))
                .ok_or(Fail::error("ERR min or max is not a float"))
        };
        Ok(ScoreRange {
            low: end(min)?,
            high: end(max)?,
        })
    }

    /// The same range as bounds of score records; `None` when it holds no score.
    pub(super) fn keys(&self) -> Option<(Bound<Bytes>, Bound<Bytes>)> {
        let ((low, low_excluded), (high, high_excluded)) = (self.low, self.high);
        if low > high || low == high && (low_excluded || high_excluded) {
            return None;
        }
        // All records of a score start with its eight bytes, so "after this score" is "from the
        // next eight on".
        let from = edge(low, low_excluded);
        let to = edge(high, !high_excluded);
        Some((Bound::Included(from), Bound::Excluded(to)))
    }
}

/// The first record key of `score`, or the first behind all of them.
fn edge(score: f64, behind: bool) -> Bytes {
    let key = u64::from_be_bytes(score_key(score)) + u64::from(behind);
    Bytes::copy_from_slice(&key.to_be_bytes())
}

/// `min` and `max` as `ZRANGEBYLEX` writes them.
pub(super) fn lex<'a>(min: &'a [u8], max: &'a [u8]) -> Result<(LexBound<'a>, LexBound<'a>), Fail> {
    Ok((lex_bound(min)?, lex_bound(max)?))
}
