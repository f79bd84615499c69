//! One sorted set as its records.

use std::ops::{Bound, Range};

use bytes::Bytes;
use engine::{score_key, score_of_key, Kind, Order, Stop, Table};

use super::bounds::ScoreRange;
use crate::data::call::{Call, Done, Fail};
use crate::data::collection::Collection;
use crate::data::keyspace::{lex_range, LexBound};
use crate::data::CHUNK;

/// A member with its score.
pub(super) type Scored = (Bytes, f64);

/// What a member that is kept takes besides its name.
const MEMBER_WORK_BYTES: usize = 100;

/// Members that a command keeps, counted as memory that it works with.
#[derive(Default)]
pub(super) struct Kept {
    members: Vec<Scored>,
    stopped: Option<Stop>,
}

impl Kept {
    /// Keeps one more; false when that is too much, and then for ever.
    pub(super) fn push(&mut self, call: &mut Call, member: Scored) -> bool {
        if self.stopped.is_none() {
            match call.access.work(member.0.len() + MEMBER_WORK_BYTES) {
                Ok(()) => self.members.push(member),
                Err(stop) => self.stopped = Some(stop),
            }
        }
        self.stopped.is_none()
    }

    /// All of them, unless they were too many.
    pub(super) fn all(self) -> Result<Vec<Scored>, Fail> {
        match self.stopped {
            Some(stop) => Err(stop.into()),
            None => Ok(self.members),
        }
    }
}

/// An open sorted set. Changes become part of the keyspace with [`SortedSet::close`].
pub(in crate::data) struct SortedSet<'c>(Collection<'c>);

impl<'c> SortedSet<'c> {
    /// The set under `key`, if there is one.
    pub(super) fn open(call: &mut Call, key: &'c [u8]) -> Result<Option<Self>, Fail> {
        Ok(Collection::open(call, key, Kind::SortedSet)?.map(SortedSet))
    }

    /// An empty set that replaces whatever is under `key` once it is closed.
    pub(in crate::data) fn create(call: &mut Call, key: &'c [u8]) -> Result<Self, Fail> {
        Collection::create(call, key, Kind::SortedSet).map(SortedSet)
    }

    /// The set under `key`, or an empty one that will be there once it is closed.
    pub(super) fn open_or_new(call: &mut Call, key: &'c [u8]) -> Result<Self, Fail> {
        Collection::open_or_new(call, key, Kind::SortedSet).map(SortedSet)
    }

    pub(super) fn len(&self) -> u64 {
        self.0.len()
    }

    /// Unique among the keyspace's collections.
    pub(super) fn id(&self) -> u64 {
        self.0.id()
    }

    pub(in crate::data) fn score(
        &self,
        call: &mut Call,
        member: &[u8],
    ) -> Result<Option<f64>, Fail> {
        if self.0.is_blank() {
            return Ok(None);
        }
        let record = call.access.record(Table::Member, self.0.id(), member)?;
        Ok(record.map(|bits| decode(&bits)))
    }

    /// Gives `member` a score; `old` is the one it has.
    pub(in crate::data) fn set(
        &mut self,
        call: &mut Call,
        member: &[u8],
        score: f64,
        old: Option<f64>,
    ) -> Done {
        let id = self.0.id();
        if let Some(old) = old {
            call.access
                .delete_record(Table::Score, id, &index_key(old, member))?;
        }
        // Redis's compact form knows no minus zero.
        let score = if score == 0.0 { 0.0 } else { score };
        let bits = Bytes::copy_from_slice(&score.to_bits().to_be_bytes());
        call.access.put_record(Table::Member, id, member, bits)?;
        call.access
            .put_record(Table::Score, id, &index_key(score, member), Bytes::new())?;
        if old.is_none() {
            self.0.added();
        }
        Ok(())
    }

    /// Removes a member that is there with this score.
    pub(super) fn remove(&mut self, call: &mut Call, member: &[u8], score: f64) -> Done {
        call.access
            .delete_record(Table::Member, self.0.id(), member)?;
        call.access
            .delete_record(Table::Score, self.0.id(), &index_key(score, member))?;
        self.0.removed();
        Ok(())
    }

    /// Records the new number of members; a set without members ceases to be.
    pub(in crate::data) fn close(self, call: &mut Call) -> Done {
        self.0.close(call)
    }

    /// Calls `each` with members in the order of their scores, then names, until it returns false.
    pub(super) fn by_score<'w, 'k>(
        &self,
        call: &mut Call<'w, 'k>,
        range: &ScoreRange,
        order: Order,
        mut each: impl FnMut(&mut Call<'w, 'k>, Bytes, f64) -> bool,
    ) -> Done {
        let Some(bounds) = range.keys() else {
            return Ok(());
        };
        self.scores(call, bounds, order, |call, name, score| {
            each(call, name.slice(8..), score)
        })
    }

    /// Calls `each` with the names of score records, which a member's name ends, until it returns
    /// false.
    fn scores<'w, 'k>(
        &self,
        call: &mut Call<'w, 'k>,
        (from, to): (Bound<Bytes>, Bound<Bytes>),
        order: Order,
        mut each: impl FnMut(&mut Call<'w, 'k>, Bytes, f64) -> bool,
    ) -> Done {
        let bounds = (slice(&from), slice(&to));
        self.records(call, Table::Score, bounds, order, |call, name, _| {
            let score = name[..8].try_into().expect("a score has eight bytes");
            each(call, name, score_of_key(score))
        })
    }

    /// Calls `each` with members in the order of their names, whatever their scores, until it
    /// returns false.
    pub(super) fn by_name<'w, 'k>(
        &self,
        call: &mut Call<'w, 'k>,
        low: LexBound,
        high: LexBound,
        order: Order,
        mut each: impl FnMut(&mut Call<'w, 'k>, Bytes, f64) -> bool,
    ) -> Done {
        let Some(bounds) = lex_range(low, high) else {
            return Ok(());
        };
        self.records(call, Table::Member, bounds, order, |call, member, bits| {
            let score = decode(&bits);
            each(call, member, score)
        })
    }

    fn records<'w, 'k>(
        &self,
        call: &mut Call<'w, 'k>,
        table: Table,
        (from, to): (Bound<&[u8]>, Bound<&[u8]>),
        order: Order,
        mut each: impl FnMut(&mut Call<'w, 'k>, Bytes, Bytes) -> bool,
    ) -> Done {
        // Most walks end early: begin with a small chunk.
        let mut limit = CHUNK / 16;
        let mut last: Option<Bytes> = None;
        loop {
            let (from, to) = match (&last, order) {
                (None, _) => (from, to),
                (Some(last), Order::Up) => (Bound::Excluded(&last[..]), to),
                (Some(last), Order::Down) => (from, Bound::Excluded(&last[..])),
            };
            let chunk = call
                .access
                .records(table, self.0.id(), from, to, order, limit)?;
            let is_end = !chunk.more;
            limit = CHUNK;
            last = chunk.items.last().map(|(name, _)| name.clone());
            for (name, value) in chunk.items {
                if !each(call, name, value) {
                    return Ok(());
                }
            }
            if is_end {
                return Ok(());
            }
        }
    }

    /// Calls `each` with the members at the places `start..end` of an order.
    pub(super) fn by_rank<'w, 'k>(
        &self,
        call: &mut Call<'w, 'k>,
        range: Range<u64>,
        order: Order,
        each: &mut dyn FnMut(&mut Call<'w, 'k>, Scored),
    ) -> Done {
        let (wanted, behind) = (range.end - range.start, self.len() - range.end);
        if wanted == 0 {
            return Ok(());
        }
        let mut skip = range.start;
        let mut bounds = (Bound::Unbounded, Bound::Unbounded);
        if behind + wanted < range.start {
            // The first of them is found sooner from the other end.
            let mut place = 0;
            let mut first = Bytes::new();
            self.scores(call, bounds.clone(), opposite(order), |_, name, _| {
                place += 1;
                first = name;
                place < behind + wanted
            })?;
            skip = 0;
            match order {
                Order::Up => bounds.0 = Bound::Included(first),
                Order::Down => bounds.1 = Bound::Included(first),
            }
        }
        let mut place = 0;
        self.scores(call, bounds, order, |call, name, score| {
            place += 1;
            if place > skip {
                each(call, (name.slice(8..), score));
            }
            place < skip + wanted
        })
    }

    /// The members at the places `start..end` of an order.
    pub(super) fn ranked(
        &self,
        call: &mut Call,
        range: Range<u64>,
        order: Order,
    ) -> Result<Vec<Scored>, Fail> {
        let mut found = Kept::default();
        self.by_rank(call, range, order, &mut |call, item| {
            found.push(call, item);
        })?;
        found.all()
    }
}

/// The other direction.
pub(super) fn opposite(order: Order) -> Order {
    match order {
        Order::Up => Order::Down,
        Order::Down => Order::Up,
    }
}

fn index_key(score: f64, member: &[u8]) -> Vec<u8> {
    [&score_key(score)[..], member].concat()
}

fn decode(bits: &[u8]) -> f64 {
    f64::from_bits(u64::from_be_bytes(
        bits.try_into().expect("a score has eight bytes"),
    ))
}

fn slice(bound: &Bound<Bytes>) -> Bound<&[u8]> {
    bound.as_ref().map(|key| &key[..])
}
