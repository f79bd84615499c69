//! A principal's rates: reservation, limit and contract, as tags, and what a turn sets aside of
//! them.

use super::contract;
use super::options::{Allocation, Units};
use crate::cost::{Cost, Nanos};
use crate::rate::Tag;

/// The smallest turn under a limit on bytes: less than a page would cost more to serve than it
/// carries.
const BYTES_MIN: u64 = 4096;
/// How long a reservation that could not be met is remembered, and caught up on.
const RESERVATION_CATCH_UP_NS: Nanos = 100_000_000;

/// A limit that stands in the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limited {
    /// The limit on requests per second.
    Requests,
    /// The limit on bytes per second.
    Bytes,
}

/// Tags of a principal that has any; others have no such record.
#[derive(Clone, Debug)]
pub(super) struct Rates {
    reservation: Option<Tag>,
    requests: Option<Tag>,
    bytes: Option<Tag>,
    contract: Option<Tag>,
    /// A contract of nothing: best effort whatever the time.
    best_effort: bool,
    pub(super) max_wait_ns: Nanos,
    estimate: Units,
    /// Consumption since the last exchange, all of it and what was in contract.
    moved: Units,
    moved_in_contract: u64,
}

/// What a turn took from the tags before it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct RatesAside {
    requests: u32,
    bytes: u32,
    normalised: u32,
    in_contract: bool,
}

/// A turn's part of a rate fits in 32 bits: tickets travel with every turn and should be small.
fn narrow(units: u64) -> u32 {
    u32::try_from(units).unwrap_or(u32::MAX)
}

fn renew(old: Option<Tag>, now: Nanos, per_s: Option<f64>, burst_ns: Nanos) -> Option<Tag> {
    let per_s = per_s?;
    let mut tag = old.unwrap_or_else(|| Tag::new(now, per_s, burst_ns));
    tag.change(now, per_s, burst_ns);
    Some(tag)
}

impl Rates {
    /// The rates of an allocation, or `None` if it has none; `old` keeps what is used up.
    pub(super) fn new(old: Option<&Rates>, now: Nanos, allocation: &Allocation) -> Option<Rates> {
        let limit = &allocation.limit;
        let burst_ns = limit.burst_ns;
        let contract = allocation.contract_per_s;
        let rates = Rates {
            reservation: renew(
                old.and_then(|o| o.reservation),
                now,
                allocation.reservation_per_s.filter(|r| *r > 0.0),
                RESERVATION_CATCH_UP_NS,
            ),
            requests: renew(
                old.and_then(|o| o.requests),
                now,
                limit.requests_per_s,
                burst_ns,
            ),
            bytes: renew(old.and_then(|o| o.bytes), now, limit.bytes_per_s, burst_ns),
            contract: renew(
                old.and_then(|o| o.contract),
                now,
                contract.filter(|c| *c > 0.0),
                contract::BURST_NS,
            ),
            best_effort: contract.is_some_and(|c| c <= 0.0),
            max_wait_ns: limit.max_wait_ns,
            estimate: old.map_or(
                Units {
                    requests: 1,
                    bytes: 0,
                },
                |o| o.estimate,
            ),
            moved: old.map_or(Units::default(), |o| o.moved),
            moved_in_contract: old.map_or(0, |o| o.moved_in_contract),
        };
        let any = rates.reservation.is_some()
            || rates.requests.is_some()
            || rates.bytes.is_some()
            || rates.contract.is_some()
            || rates.best_effort;
        any.then_some(rates)
    }

    /// The limit that stands in the way at `now`, and when it will not.
    pub(super) fn limited(&self, now: Nanos) -> Option<(Limited, Nanos)> {
        let requests = self.requests.filter(|tag| tag.ahead(now));
        let bytes = self.bytes.filter(|tag| tag.ahead(now));
        let at = |tag: Option<Tag>| tag.map_or(0, |tag| tag.reached_at());
        if requests.is_none() && bytes.is_none() {
            None
        } else if at(requests) >= at(bytes) {
            Some((Limited::Requests, at(requests)))
        } else {
            Some((Limited::Bytes, at(bytes)))
        }
    }

    /// When the principal is in contract again: `None` if it is, [`Nanos::MAX`] for never.
    pub(super) fn in_contract_at(&self, now: Nanos) -> Option<Nanos> {
        if self.best_effort {
            return Some(Nanos::MAX);
        }
        let tag = self.contract.filter(|tag| tag.ahead(now))?;
        Some(tag.reached_at())
    }

    /// The reservation tag: up to now means the principal goes first.
    pub(super) fn reservation_at(&self) -> Option<Nanos> {
        self.reservation.map(|tag| tag.reached_at())
    }

    /// The principal has work again after having none: a reservation is a rate of service to those
    /// who ask for it, so the time it did not ask is not owed.
    pub(super) fn rejoin(&mut self, now: Nanos) {
        if let Some(tag) = &mut self.reservation {
            tag.catch_up(now);
        }
    }

    /// A turn begins: takes what it may use from the tags and cuts its budget to that.
    pub(super) fn set_aside<const R: usize>(
        &mut self,
        now: Nanos,
        in_contract: bool,
        budget: &mut Cost<R>,
        meter: &super::Meter<R>,
    ) -> RatesAside {
        let mut aside = RatesAside {
            in_contract,
            normalised: narrow(self.estimate.normalised().max(1)),
            ..RatesAside::default()
        };
        // Twice the usual turn: room to grow, without tying up the whole burst in one turn
        // while others of the same principal could run beside it.
        if let Some(tag) = &mut self.requests {
            let most = self.estimate.requests.saturating_mul(2).saturating_add(1);
            let requests = &mut budget.0[meter.requests];
            aside.requests = narrow((*requests).min(most).min(tag.allowance(now)).max(1));
            *requests = u64::from(aside.requests);
            tag.take(now, *requests);
        }
        if let Some(tag) = &mut self.bytes {
            let most = self.estimate.bytes.saturating_mul(2).max(BYTES_MIN);
            aside.bytes = narrow(most.min(tag.allowance(now)).max(BYTES_MIN));
            let bytes = u64::from(aside.bytes);
            for (entry, counts) in budget.0.iter_mut().zip(meter.bytes) {
                if counts {
                    *entry = (*entry).min(bytes);
                }
            }
            tag.take(now, bytes);
        }
        if let Some(tag) = &mut self.reservation {
            tag.take(now, u64::from(aside.normalised));
        }
        if let Some(tag) = self.contract.as_mut().filter(|_| in_contract) {
            tag.take(now, u64::from(aside.normalised));
        }
        aside
    }

    /// The turn is over; it consumed `actual`.
    pub(super) fn settle(&mut self, now: Nanos, aside: RatesAside, actual: Units) {
        self.moved = self.moved.plus(actual);
        let toward = |old: u64, seen: u64| {
            let step = old.abs_diff(seen).div_ceil(4);
            if seen >= old {
                old + step
            } else {
                old - step
            }
        };
        self.estimate.requests = toward(self.estimate.requests, actual.requests);
        self.estimate.bytes = toward(self.estimate.bytes, actual.bytes);
        let normalised = actual.normalised();
        let correct = |tag: &mut Option<Tag>, aside: u32, actual: u64| {
            let aside = u64::from(aside);
            if let Some(tag) = tag {
                if actual >= aside {
                    tag.take(now, actual - aside);
                } else {
                    tag.give_back(aside - actual);
                }
            }
        };
        correct(&mut self.requests, aside.requests, actual.requests);
        correct(&mut self.bytes, aside.bytes, actual.bytes);
        correct(&mut self.reservation, aside.normalised, normalised);
        if let Some(tag) = &mut self.reservation {
            tag.bound_ahead(now, normalised.max(1));
        }
        if aside.in_contract {
            self.moved_in_contract = self.moved_in_contract.saturating_add(normalised);
            correct(&mut self.contract, aside.normalised, normalised);
        }
    }

    /// The turn is over; nobody knows what it consumed, so what it took stays taken.
    pub(super) fn abandon(&mut self, aside: RatesAside) {
        self.moved = self.moved.plus(Units {
            requests: u64::from(aside.requests),
            bytes: u64::from(aside.bytes),
        });
        if aside.in_contract {
            self.moved_in_contract = self
                .moved_in_contract
                .saturating_add(u64::from(aside.normalised));
        }
    }

    /// Consumption here that no grant covered; it counts as in contract, like a turn.
    pub(super) fn charge(&mut self, now: Nanos, units: Units) {
        let in_contract = units.normalised();
        self.moved = self.moved.plus(units);
        self.moved_in_contract = self.moved_in_contract.saturating_add(in_contract);
        self.absorb(now, units, in_contract);
    }

    /// Consumption since the last call, and what of it was in contract.
    pub(super) fn take_moved(&mut self) -> (Units, u64) {
        (
            std::mem::take(&mut self.moved),
            std::mem::take(&mut self.moved_in_contract),
        )
    }

    /// Consumption that was not granted here, `in_contract` normalised requests of it in contract.
    pub(super) fn absorb(&mut self, now: Nanos, units: Units, in_contract: u64) {
        if let Some(tag) = &mut self.requests {
            tag.take(now, units.requests);
        }
        if let Some(tag) = &mut self.bytes {
            tag.take(now, units.bytes);
        }
        if let Some(tag) = &mut self.reservation {
            tag.take(now, units.normalised());
            tag.bound_ahead(now, units.normalised().max(1));
        }
        if let Some(tag) = &mut self.contract {
            tag.take(now, in_contract);
        }
    }
}
