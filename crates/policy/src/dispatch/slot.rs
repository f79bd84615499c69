//! What a dispatch keeps for one principal.

use super::lanes::Lanes;
use super::observation::Tally;
use super::rates::Rates;
use crate::cost::{Charge, Nanos};
use crate::fairness::drf::Profile;
use crate::fairness::sfq::{Account, Rounds, Weight};
use std::collections::VecDeque;

/// A queued item: when it came, and its place among all arrivals.
#[derive(Clone, Debug)]
pub(super) struct Queued<T> {
    pub(super) item: T,
    pub(super) since: Nanos,
    pub(super) arrival: u64,
}

/// The group a principal is in: those in contract go before those beyond it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tier {
    InContract,
    BestEffort,
}

#[derive(Clone, Debug)]
pub(super) struct Slot<T, const R: usize> {
    pub(super) queue: VecDeque<Queued<T>>,
    /// Items in the queue and in all lanes.
    pub(super) queued: usize,
    /// Neither rates, reserved permits nor lanes: only the order matters. Kept by
    /// [`Slot::classify`].
    pub(super) plain: bool,
    pub(super) account: Account,
    pub(super) profile: Profile<R>,
    pub(super) tier: Tier,
    pub(super) configured: bool,
    /// In the list of those whose consumption the other cores have not been told.
    pub(super) unreported: bool,
    pub(super) in_flight: u32,
    /// Beside them, with extra permits.
    pub(super) extra_in_flight: u32,
    pub(super) reserved: u32,
    /// Told apart from a removed principal of the same number, whose tickets may still come back.
    pub(super) generation: u32,
    /// What of its charges the other cores have been told.
    pub(super) reported: Charge,
    /// Most principals have none, and then none of the rules about rates costs anything.
    pub(super) rates: Option<Box<Rates>>,
    /// Most have none of these either; `queue` is empty where there are.
    pub(super) lanes: Option<Box<Lanes<T>>>,
    pub(super) tally: Tally<R>,
}

impl<T, const R: usize> Slot<T, R> {
    pub(super) fn vacant(number: u32, rounds: &Rounds) -> Self {
        Slot {
            queue: VecDeque::new(),
            queued: 0,
            plain: true,
            account: Account::new(number, Weight::new(1.0), Charge::ZERO, rounds),
            profile: Profile::new(),
            tier: Tier::InContract,
            configured: false,
            unreported: false,
            in_flight: 0,
            extra_in_flight: 0,
            reserved: 0,
            generation: 0,
            reported: Charge::ZERO,
            rates: None,
            lanes: None,
            tally: Tally::default(),
        }
    }

    /// REQUIRES after every change of rates, reserved permits or lanes.
    pub(super) fn classify(&mut self) {
        self.plain = self.rates.is_none() && self.reserved == 0 && self.lanes.is_none();
    }

    /// Whether only the order matters to it.
    #[inline]
    pub(super) fn plain(&self) -> bool {
        self.plain
    }

    /// Whether nothing is queued.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.queued == 0
    }

    /// The number of its oldest arrival.
    #[inline]
    pub(super) fn arrival(&self) -> u64 {
        let arrival = match &self.lanes {
            None => self.queue.front().map(|queued| queued.arrival),
            Some(lanes) => lanes.arrival(),
        };
        arrival.unwrap_or(0)
    }

    /// Permits that it holds, extra ones included.
    pub(super) fn permits(&self) -> u32 {
        self.in_flight + self.extra_in_flight
    }

    /// How long its first item has waited.
    pub(super) fn waited(&self, now: Nanos) -> Nanos {
        let since = match &self.lanes {
            None => self.queue.front().map(|queued| queued.since),
            Some(lanes) => lanes.since(),
        };
        since.map_or(0, |since| now.saturating_sub(since))
    }
}
