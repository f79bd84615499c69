//! Choosing who goes next.

use super::lane::Pick;
use super::lanes::Taken;
use super::rates::{Limited, RatesAside};
use super::slot::Tier;
use super::{Dispatch, LaneId};
use crate::cost::{Charge, Cost, Nanos, PrincipalId};
use crate::multiget::LevelTurn;

/// What to do with a granted item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Serve it, within the grant's budget.
    Serve,
    /// It has waited as long as it may for a limit of its principal: refuse it.
    Refuse {
        /// The limit that stands in the way.
        limit: Limited,
        /// When the limit will let the next item pass, in nanoseconds from now.
        retry_after_ns: Nanos,
    },
}

/// A grant's claim on its permit and on what was set aside. It ends by [`Dispatch::settle`] and
/// nothing else: a ticket that is dropped keeps its permit for ever (the `stage` crate sees to
/// that).
#[derive(Debug)]
#[must_use = "a ticket that is not settled keeps its permit"]
pub struct Ticket {
    pub(super) index: u32,
    pub(super) generation: u32,
    pub(super) aside: Charge,
    pub(super) rates: RatesAside,
    pub(super) refused: bool,
    /// It holds an extra permit.
    pub(super) extra: bool,
    pub(super) timed: bool,
    pub(super) lane: LaneId,
    /// Its lane's level's, if its item was taken by levels.
    pub(super) turn: Option<LevelTurn>,
    /// See [`super::runs`].
    pub(super) run: u8,
}

impl Ticket {
    /// Whose grant it is.
    #[must_use]
    pub fn principal(&self) -> PrincipalId {
        PrincipalId(self.index)
    }

    /// In which of its principal's lanes.
    #[must_use]
    pub fn lane(&self) -> LaneId {
        self.lane
    }

    /// Whether the item has a due time that is kept to: its lane was in contract.
    #[must_use]
    pub fn timed(&self) -> bool {
        self.timed
    }

    /// What was set aside for the turn, in nanoseconds of the principal's dominant resource.
    #[must_use]
    pub fn set_aside_ns(&self) -> Nanos {
        self.aside.ns()
    }
}

/// One item may go now.
#[derive(Debug)]
pub struct Grant<T, const R: usize> {
    /// Whose item it is.
    pub principal: PrincipalId,
    /// The item.
    pub item: T,
    /// How long it was queued.
    pub waited_ns: Nanos,
    /// How much of each resource the turn may use; work that needs more is queued again.
    pub budget: Cost<R>,
    /// Serve or refuse.
    pub verdict: Verdict,
    /// Where the discipline keeps shares: whether the principal has had less than its share, this
    /// turn included, and is within its contract. What orders the work further down should let it
    /// go before that of others.
    pub in_credit: bool,
    /// To be settled when the turn is over.
    pub ticket: Ticket,
}

/// The answer to "who is next?".
#[derive(Debug)]
pub enum Next<T, const R: usize> {
    /// This one.
    Grant(Grant<T, R>),
    /// Nobody before this time, unless something is queued, settled or configured.
    At(Nanos),
    /// Nobody until something is queued, settled or configured.
    Idle,
}

impl<T, const R: usize> Dispatch<T, R> {
    /// Chooses the next item, takes a permit for it and sets its estimated cost aside.
    pub fn next(&mut self, now: Nanos) -> Next<T, R> {
        if self.demand.over(now) {
            self.turn_over(now);
        }
        let any = self.permits.any();
        let extra = self.permits.extra() && self.ready.discipline().keeps_shares();
        if !any && !extra {
            return Next::Idle;
        }
        while let Some(index) = self.ready.woken(now) {
            self.place(now, index);
        }
        if self.timed.active() {
            return self.next_timed(now, any, extra);
        }
        let pick = Pick::Share { yields: false };
        let shared = self.permits.shared();
        if !shared && extra {
            if let Some(index) = self.first_in_credit(now) {
                return Next::Grant(self.grant_apart(now, index, Verdict::Serve, true, pick));
            }
        }
        if !any {
            return Next::Idle;
        }
        match self.first_by_share(now, shared) {
            Some((index, verdict)) => Next::Grant(self.grant(now, index, verdict, false, pick)),
            None => self.ready.next_wake().map_or(Next::Idle, Next::At),
        }
    }

    /// Who is next by reservations and the discipline, with a shared permit or with one of its own.
    #[inline(always)]
    pub(super) fn first_by_share(&mut self, now: Nanos, shared: bool) -> Option<(usize, Verdict)> {
        loop {
            let due = if shared { self.ready.due(now) } else { None };
            let index = match due {
                Some(index) => index,
                None => match self.ready.choose(shared)? {
                    (key, index) if self.up_to_date(index, key) => index,
                    _ => continue,
                },
            };
            if let Some(verdict) = self.verdict(now, index) {
                return Some((index, verdict));
            }
            // Consumption elsewhere has put it above its limit since it was placed.
            self.place(now, index);
        }
    }

    /// The same, off the hot path.
    #[inline(never)]
    pub(super) fn first_by_share_apart(
        &mut self,
        now: Nanos,
        shared: bool,
    ) -> Option<(usize, Verdict)> {
        self.first_by_share(now, shared)
    }

    /// The first of all principals with work, if it is in credit and may go.
    #[inline(never)]
    pub(super) fn first_in_credit(&mut self, now: Nanos) -> Option<usize> {
        loop {
            let (key, index) = self.ready.choose(true)?;
            if self.up_to_date(index, key) {
                let serve = self.verdict(now, index) == Some(Verdict::Serve);
                return (serve && self.in_credit(index)).then_some(index);
            }
        }
    }

    fn in_credit(&self, index: usize) -> bool {
        let slot = &self.slots[index];
        self.ready.discipline().keeps_shares()
            && slot.tier == Tier::InContract
            && slot.account.in_credit(&self.rounds[0])
    }

    /// Whether the principal that came first with `key` still belongs there; if not, it is moved.
    #[inline]
    fn up_to_date(&mut self, index: usize, key: u64) -> bool {
        let slot = &self.slots[index];
        if slot.is_empty() {
            self.withdraw(index);
            return false;
        }
        let present = self.key(index);
        if present <= key || self.ready.alone(slot.tier) {
            return true;
        }
        self.ready.renew(index, slot.tier, present);
        false
    }

    #[inline]
    pub(super) fn verdict(&self, now: Nanos, index: usize) -> Option<Verdict> {
        let slot = &self.slots[index];
        let Some(rates) = &slot.rates else {
            return Some(Verdict::Serve);
        };
        match rates.limited(now) {
            None => Some(Verdict::Serve),
            Some((limit, at)) if slot.waited(now) >= rates.max_wait_ns => Some(Verdict::Refuse {
                limit,
                retry_after_ns: at.saturating_sub(now),
            }),
            Some(_) => None,
        }
    }

    /// Twice a second: the length of a round follows demand, and the axes of virtual time are kept
    /// short.
    #[cold]
    fn turn_over(&mut self, now: Nanos) {
        let demand_micro = self.demand.turn_over(now);
        for tier in [Tier::InContract, Tier::BestEffort] {
            let rounds = &mut self.rounds[tier as usize];
            if let Some(demand_micro) = demand_micro {
                rounds.resize(self.options.round_ns, demand_micro);
            }
            let Some(distance) = rounds.rebase() else {
                continue;
            };
            for slot in self.slots.iter_mut().filter(|slot| slot.tier == tier) {
                slot.account.rebase(distance);
            }
            let waiting = |i: &usize| !self.slots[*i].is_empty();
            let indices: Vec<usize> = (0..self.slots.len()).filter(waiting).collect();
            for index in indices {
                self.place(now, index);
            }
        }
    }

    /// REQUIRES: the principal has work.
    #[inline(always)]
    fn take(&mut self, now: Nanos, index: usize, pick: Pick) -> Taken<T> {
        self.queued -= 1;
        let slot = &mut self.slots[index];
        let taken = match slot.plain() || slot.lanes.is_none() {
            true => slot.queue.pop_front().map(Taken::plain),
            false => self.take_of_lanes(now, index, pick),
        };
        let Some(taken) = taken else {
            unreachable!("only principals with work are in the ready sets");
        };
        taken
    }

    /// Takes an item out of a principal's lanes.
    #[inline(never)]
    fn take_of_lanes(&mut self, now: Nanos, index: usize, pick: Pick) -> Option<Taken<T>> {
        let slot = &mut self.slots[index];
        let expected = slot.account.estimate();
        let lanes = slot.lanes.as_mut()?;
        lanes.take(now, pick, self.ready.discipline(), expected)
    }

    /// The same, off the hot path.
    #[inline(never)]
    pub(super) fn grant_apart(
        &mut self,
        now: Nanos,
        index: usize,
        verdict: Verdict,
        extra: bool,
        pick: Pick,
    ) -> Grant<T, R> {
        self.grant(now, index, verdict, extra, pick)
    }

    /// REQUIRES: `index` was just chosen, so its queue is not empty and a permit is free for it.
    #[inline(always)]
    fn grant(
        &mut self,
        now: Nanos,
        index: usize,
        verdict: Verdict,
        extra: bool,
        pick: Pick,
    ) -> Grant<T, R> {
        let in_credit = self.in_credit(index);
        let taken = self.take(now, index, pick);
        let (queued, lane, timed) = (taken.queued, taken.lane, taken.timed);
        if timed && !extra {
            self.timed.begin();
        }
        let run = self.timed.run(now, index, lane, taken.stream);
        let slot = &mut self.slots[index];
        slot.queued -= 1;
        slot.tally.held(now, slot.permits());
        if extra {
            self.permits.take_extra();
            slot.extra_in_flight += 1;
        } else {
            self.permits.take(slot.in_flight, slot.reserved);
            slot.in_flight += 1;
        }
        let (aside, start) = slot.account.set_aside();
        self.rounds[slot.tier as usize].advance(start);

        let mut budget = self.budget;
        let refused = verdict != Verdict::Serve;
        let waited_ns = now.saturating_sub(queued.since);
        let rates = match &mut slot.rates {
            Some(rates) if !refused => {
                let in_contract = slot.tier == Tier::InContract;
                rates.set_aside(now, in_contract, &mut budget, &self.options.meter)
            }
            _ => RatesAside::default(),
        };
        slot.tally
            .granted(now, waited_ns, refused, slot.queued == 0);
        let ticket = Ticket {
            index: index as u32,
            generation: slot.generation,
            aside,
            rates,
            refused,
            extra,
            timed,
            lane,
            turn: taken.turn,
            run,
        };
        // One that is ordered by service or arrival and nothing else has a larger key now, and is
        // moved when it matters (`Ready::put_plain`).
        if !slot.plain() || self.ready.discipline().draws() {
            self.place(now, index);
        }
        Grant {
            principal: PrincipalId(index as u32),
            item: queued.item,
            waited_ns,
            budget,
            verdict,
            in_credit,
            ticket,
        }
    }
}
