//! Unions, intersections and differences.

use std::collections::HashMap;

use bytes::Bytes;
use engine::{Entry, Kind, Object, Order};
use resp::{is, parse_i64};

use super::bounds::ScoreRange;
use super::range::{store_members, write_members};
use super::store::{Kept, Scored};
use super::{parse_score, SortedSet};
use crate::data::call::{Call, Done, Fail, SYNTAX, WRONG_TYPE};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Operation {
    Union,
    Intersection,
    Difference,
}

#[derive(Clone, Copy)]
enum Aggregate {
    Sum,
    Min,
    Max,
}

impl Aggregate {
    /// `b` may be no number, as infinity times 0 is.
    fn of(self, a: f64, b: f64) -> f64 {
        match self {
            // The sum of opposite infinities counts as nothing, as in Redis.
            Aggregate::Sum => number(a + b),
            Aggregate::Min if b < a => b,
            Aggregate::Max if b > a => b,
            Aggregate::Min | Aggregate::Max => a,
        }
    }
}

/// Nothing for what is no number.
fn number(score: f64) -> f64 {
    if score.is_nan() {
        0.0
    } else {
        score
    }
}

/// A set to combine.
struct Source<'c> {
    key: &'c [u8],
    weight: f64,
    members: u64,
}

/// What the words ask for.
struct Query<'c> {
    /// In the order in which they are combined.
    sources: Vec<Source<'c>>,
    aggregate: Aggregate,
    with_scores: bool,
    /// Members that `ZINTERCARD` counts at most; 0: all.
    limit: u64,
}

/// Whose options are read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Reply,
    Store,
    Count,
}

impl<'c> Query<'c> {
    /// Reads the words from `at`, the number of sources, on.
    fn parse(
        call: &mut Call<'c, '_>,
        at: usize,
        operation: Operation,
        form: Form,
    ) -> Result<Self, Fail> {
        let mut query = Query {
            sources: sources(call, at)?,
            aggregate: Aggregate::Sum,
            with_scores: false,
            limit: 0,
        };
        // Redis too looks at the keys before the words behind them.
        for source in &mut query.sources {
            source.members = count(call, source.key)?;
        }
        let combines = operation != Operation::Difference && form != Form::Count;
        let mut index = at + 1 + query.sources.len();
        while let Some(word) = call.args.find(index) {
            let following = call.args.len() - index - 1;
            match word {
                _ if combines && is(word, "WEIGHTS") && following >= query.sources.len() => {
                    for source in &mut query.sources {
                        index += 1;
                        source.weight = parse_score(call.arg(index))
                            .map_err(|_| Fail::error("ERR weight value is not a float"))?;
                    }
                }
                _ if combines && is(word, "AGGREGATE") && following >= 1 => {
                    index += 1;
                    query.aggregate = match call.arg(index) {
                        name if is(name, "SUM") => Aggregate::Sum,
                        name if is(name, "MIN") => Aggregate::Min,
                        name if is(name, "MAX") => Aggregate::Max,
                        _ => return Err(SYNTAX),
                    };
                }
                _ if form == Form::Reply && is(word, "WITHSCORES") => query.with_scores = true,
                _ if form == Form::Count && is(word, "LIMIT") && following >= 1 => {
                    index += 1;
                    query.limit = parse_i64(call.arg(index))
                        .and_then(|limit| u64::try_from(limit).ok())
                        .ok_or(Fail::error("ERR LIMIT can't be negative"))?;
                }
                _ => return Err(SYNTAX),
            }
            index += 1;
        }
        if operation != Operation::Difference {
            // As Redis does: sums of fractions and of infinities depend on it.
            query.sources.sort_by_key(|source| source.members);
        }
        Ok(query)
    }

    fn run(&self, call: &mut Call, operation: Operation) -> Result<Vec<Scored>, Fail> {
        let mut members: HashMap<Bytes, f64> = HashMap::new();
        for (place, source) in self.sources.iter().enumerate() {
            let source = read(call, source)?;
            match operation {
                _ if place == 0 => {
                    members.extend(
                        source
                            .into_iter()
                            .map(|(member, score)| (member, number(score))),
                    );
                }
                Operation::Union => {
                    for (member, score) in source {
                        let score = number(score);
                        members
                            .entry(member)
                            .and_modify(|sum| *sum = self.aggregate.of(*sum, score))
                            .or_insert(score);
                    }
                }
                // Redis adds what is no number as it is, but for the first one's, so that the sum
                // is nothing.
                Operation::Intersection => {
                    let mut both = HashMap::new();
                    for (member, score) in source {
                        if let Some(sum) = members.get(&member) {
                            both.insert(member, self.aggregate.of(*sum, score));
                        }
                    }
                    members = both;
                }
                Operation::Difference => {
                    for (member, _) in source {
                        members.remove(&member);
                    }
                }
            }
            if members.is_empty() && operation != Operation::Union {
                break;
            }
        }
        let mut members: Vec<Scored> = members.into_iter().collect();
        members.sort_by(|a, b| {
            // No score is NaN, and -0 sorts as 0.
            a.1.partial_cmp(&b.1)
                .unwrap_or(std::cmp::Ordering::Equal)
                .then_with(|| a.0.cmp(&b.0))
        });
        Ok(members)
    }
}

fn sources<'c>(call: &Call<'c, '_>, at: usize) -> Result<Vec<Source<'c>>, Fail> {
    let count = call.int(at)?;
    if count < 1 {
        let name = call.spec.name;
        return Err(Fail::error(format!(
            "ERR at least 1 input key is needed for '{name}' command"
        )));
    }
    let words = call.args.from(at + 1);
    if count > words.len() as i64 {
        return Err(SYNTAX);
    }
    Ok(words
        .iter()
        .take(count as usize)
        .map(|key| Source {
            key,
            weight: 1.0,
            members: 0,
        })
        .collect())
}

/// Members of the set under a key.
fn count(call: &mut Call, key: &[u8]) -> Result<u64, Fail> {
    match call.access.get(key)? {
        Some(Entry {
            object: Object::Collection(header),
            ..
        }) if header.kind == Kind::SortedSet => Ok(header.len),
        None => Ok(0),
        Some(_) => Err(WRONG_TYPE),
    }
}

/// The members of a set; their weighted scores may be no numbers.
fn read(call: &mut Call, source: &Source<'_>) -> Result<Vec<Scored>, Fail> {
    let mut members = Kept::default();
    if let Some(set) = SortedSet::open(call, source.key)? {
        set.by_score(call, &ScoreRange::ALL, Order::Up, |call, member, score| {
            members.push(call, (member, score * source.weight))
        })?;
    }
    members.all()
}

fn reply(call: &mut Call, operation: Operation) -> Done {
    let query = Query::parse(call, 1, operation, Form::Reply)?;
    let members = query.run(call, operation)?;
    write_members(call, &members, query.with_scores);
    Ok(())
}

fn store(call: &mut Call, operation: Operation) -> Done {
    let query = Query::parse(call, 2, operation, Form::Store)?;
    let members = query.run(call, operation)?;
    store_members(call, members)
}

/// `ZUNION numkeys key … [WEIGHTS weight …] [AGGREGATE SUM | MIN | MAX] [WITHSCORES]`
pub(in crate::data) fn zunion(call: &mut Call) -> Done {
    reply(call, Operation::Union)
}

/// `ZINTER numkeys key … [WEIGHTS weight …] [AGGREGATE SUM | MIN | MAX] [WITHSCORES]`
pub(in crate::data) fn zinter(call: &mut Call) -> Done {
    reply(call, Operation::Intersection)
}

/// `ZDIFF numkeys key … [WITHSCORES]`
pub(in crate::data) fn zdiff(call: &mut Call) -> Done {
    reply(call, Operation::Difference)
}

/// `ZUNIONSTORE destination numkeys key … [WEIGHTS weight …] [AGGREGATE SUM | MIN | MAX]`
pub(in crate::data) fn zunionstore(call: &mut Call) -> Done {
    store(call, Operation::Union)
}

/// `ZINTERSTORE destination numkeys key … [WEIGHTS weight …] [AGGREGATE SUM | MIN | MAX]`
pub(in crate::data) fn zinterstore(call: &mut Call) -> Done {
    store(call, Operation::Intersection)
}

/// `ZDIFFSTORE destination numkeys key …`
pub(in crate::data) fn zdiffstore(call: &mut Call) -> Done {
    store(call, Operation::Difference)
}

/// `ZINTERCARD numkeys key … [LIMIT limit]`
pub(in crate::data) fn zintercard(call: &mut Call) -> Done {
    let query = Query::parse(call, 1, Operation::Intersection, Form::Count)?;
    let count = query.run(call, Operation::Intersection)?.len() as u64;
    let count = if query.limit == 0 {
        count
    } else {
        count.min(query.limit)
    };
    call.reply.int(count as i64);
    Ok(())
}
