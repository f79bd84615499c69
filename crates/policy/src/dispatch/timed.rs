//! Work with due times, and the other work beside it.
//!
//! An item that was promised to be done by some time carries the moment by which it must have
//! begun. Until then nothing distinguishes it; from then on it goes before shares, the earliest
//! first. So nothing has to converge before a promise holds: a controller only learns how much
//! earlier than promised "due" must be. The maths is in docs/theory/latency.md.
//!
//! What begins cannot be taken back, so the other work is bounded, too: how much of it may be
//! outstanding at all, how much of it beside work with a due time, and how long it can be held
//! back at most.

use super::lane::{LaneId, Pick};
use super::runs::{Runs, NO_RUN};
use super::{Dispatch, Grant, Next, Verdict};
use crate::cost::Nanos;
use crate::heap::IndexHeap;

/// How a stage treats work without a due time beside work that has one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Others {
    /// Permits that such work may have, at least 1. What is left is for work with due times.
    pub permits: u32,
    /// The same while work with a due time is outstanding; may be 0.
    pub beside: u32,
    /// Of the permits that there are so many stay free of such work, as long as it can have one.
    pub kept: u32,
    /// Part of the time, [`Others::FLOOR_MIN`] to 1, in which such work has a permit at least, as
    /// long as it wants one and work with due times would have them all: so much of the time turns
    /// go by shares, whatever is due. So it never starves.
    pub floor: f64,
    /// What has a due time waits for it as long as other work wants the resource. It is then
    /// served in groups, which costs a disk fewer seeks, and as late as its promise allows.
    pub first: bool,
    /// Where `first`: what has a due time goes also where a stream ends and another would begin,
    /// which costs a disk one seek instead of two.
    pub between: bool,
    /// How long one of these permits waits for the next piece of a stream ([`super::Terms`]) before
    /// it goes to other work, in ns.
    pub linger_ns: Nanos,
    /// How long a stream goes on before shares decide again, in ns. 0: streams are nothing special.
    pub run_ns: Nanos,
}

impl Others {
    /// The smallest floor.
    pub const FLOOR_MIN: f64 = 0.001;
}

impl Default for Others {
    /// Nothing is bounded or deferred; a floor of a twentieth.
    fn default() -> Self {
        Others {
            permits: u32::MAX,
            beside: u32::MAX,
            kept: 0,
            floor: 0.05,
            first: false,
            between: false,
            linger_ns: 0,
            run_ns: 0,
        }
    }
}

/// What other work is owed, or has had too much, is remembered up to this: after a turn of minutes
/// it is not held back for hours, nor the other way round.
const OWED_MAX_NS: i64 = 100_000_000;

/// What other work is owed for having been held back.
#[derive(Clone, Copy, Debug, Default)]
struct Floor {
    /// Time owed; negative: it had more.
    owed_ns: i64,
    at: Nanos,
    /// Since `at`: it wanted a permit and had none, beside work with a due time; it had one.
    deprived: bool,
    out: bool,
}

impl Floor {
    /// Books the time since the last call.
    fn pass(&mut self, now: Nanos, floor: f64) {
        let passed = now.saturating_sub(self.at) as f64;
        self.at = now;
        let more = match (self.deprived, self.out) {
            (true, _) => passed * floor,
            (false, true) => -passed * (1.0 - floor),
            (false, false) => 0.0,
        };
        let owed_ns = self.owed_ns.saturating_add(more as i64);
        self.owed_ns = owed_ns.clamp(-OWED_MAX_NS, OWED_MAX_NS);
    }
}

/// What a dispatch knows of due times.
#[derive(Clone, Debug, Default)]
pub(super) struct Timed {
    pub(super) others: Others,
    /// Principals with items whose due times are kept to, by the earliest.
    due: IndexHeap,
    /// Principals whose other items were passed over by these, by when one must have a turn.
    passed_over: IndexHeap,
    /// The last turn that was not due went to one of these: the next one goes by shares.
    made_good: bool,
    /// Grants of such items that are not settled and hold a usual permit.
    in_flight: u32,
    floor: Floor,
    active: bool,
    pub(super) runs: Runs,
}

impl Timed {
    /// Whether anything here matters: while it does not, a decision costs what it always did.
    #[inline]
    pub(super) fn active(&self) -> bool {
        self.active
    }

    fn note(&mut self) {
        self.active = self.in_flight > 0
            || self.others.permits < u32::MAX
            || self.others.kept > 0
            || self.others.run_ns > 0
            || self.due.first().is_some()
            || self.passed_over.first().is_some()
            || self.floor.deprived;
    }

    /// When a principal's first item is due whose due time is kept to, and when another must have a
    /// turn.
    pub(super) fn place(
        &mut self,
        index: usize,
        due_at: Option<Nanos>,
        passed_over_at: Option<Nanos>,
    ) {
        for (heap, at) in [
            (&mut self.due, due_at),
            (&mut self.passed_over, passed_over_at),
        ] {
            match at {
                Some(at) => heap.set(index, at),
                None => heap.remove(index),
            }
        }
        self.note();
    }

    /// A piece of a stream begins, if it is one.
    #[inline]
    pub(super) fn run(&mut self, now: Nanos, index: usize, lane: LaneId, stream: u32) -> u8 {
        match stream > 0 && self.others.run_ns > 0 {
            true => self.runs.begin(now, index, lane, stream),
            false => NO_RUN,
        }
    }

    pub(super) fn begin(&mut self) {
        self.in_flight += 1;
        self.note();
    }

    pub(super) fn end(&mut self) {
        self.in_flight = self.in_flight.saturating_sub(1);
        self.note();
    }
}

impl<T, const R: usize> Dispatch<T, R> {
    /// How work without due times is treated from now on.
    pub fn set_others(&mut self, now: Nanos, others: Others) {
        let others = Others {
            permits: others.permits.max(1),
            floor: others.floor.clamp(Others::FLOOR_MIN, 1.0),
            ..others
        };
        let changed = others.first != self.timed.others.first;
        self.timed.others = others;
        self.timed.note();
        for index in 0..self.slots.len() {
            if changed && self.slots[index].lanes.is_some() {
                self.place(now, index);
            }
        }
    }

    /// How work without due times is treated.
    #[must_use]
    pub fn others(&self) -> Others {
        self.timed.others
    }

    /// Grants of work with due times that are not settled.
    #[must_use]
    pub fn timed_in_flight(&self) -> u32 {
        self.timed.in_flight
    }

    fn others_in_flight(&self) -> u32 {
        self.permits.usual_in_flight() - self.timed.in_flight
    }

    /// Permits that may still go to work without a due time.
    fn free_for_others(&self) -> u32 {
        let Others {
            permits,
            beside,
            kept,
            ..
        } = self.timed.others;
        let there_are = self.permits.all_shared().saturating_sub(kept).max(1);
        let most = match self.timed.in_flight {
            0 => permits,
            _ => permits.min(beside),
        };
        most.min(there_are).saturating_sub(self.others_in_flight())
    }

    /// The next item where due times matter. REQUIRES: one of `any` (permit) and `extra` is free.
    #[inline(never)]
    pub(super) fn next_timed(&mut self, now: Nanos, any: bool, extra: bool) -> Next<T, R> {
        let shared = self.permits.shared();
        if !shared && extra && self.free_for_others() > 0 {
            if let Some(index) = self.first_in_credit(now) {
                let pick = self.by_share();
                return Next::Grant(self.grant_apart(now, index, Verdict::Serve, true, pick));
            }
        }
        if !any {
            return Next::Idle;
        }
        let threshold_ns = i64::try_from(self.options.quantum_ns).unwrap_or(i64::MAX);
        let floor = self.timed.others.floor;
        self.timed.floor.pass(now, floor);
        let next = self.next_of_both(now, shared, threshold_ns);
        let contended = self.timed.in_flight > 0 || self.timed.due.first().is_some();
        let out = self.others_in_flight() > 0;
        let deprived = !out && self.ready.any();
        self.timed.floor.out = out;
        self.timed.floor.deprived = contended && deprived;
        self.timed.note();
        match next {
            Some(grant) => Next::Grant(grant),
            None => self.ask_again(now, threshold_ns),
        }
    }

    fn next_of_both(&mut self, now: Nanos, shared: bool, threshold_ns: i64) -> Option<Grant<T, R>> {
        let owed = self.timed.floor.owed_ns >= threshold_ns && self.others_in_flight() == 0;
        if owed && shared {
            if let Some((index, verdict, pick)) = self.first_of_others(now, true) {
                return Some(self.grant_apart(now, index, verdict, false, pick));
            }
        }
        if let Some(index) = self.first_due(now, shared) {
            if let Some(verdict) = self.verdict(now, index) {
                return Some(self.grant_apart(now, index, verdict, false, Pick::Timed));
            }
            self.place(now, index);
        }
        let free = match shared {
            true => self.free_for_others().min(self.permits.shared_free()),
            false => 0,
        };
        let open = match self.next_of_runs(now, free) {
            (Some(grant), _) => return Some(grant),
            (None, left) => left > 0,
        };
        let between = self.timed.others.between && free > 0 && self.others_in_flight() == 0;
        if let Some((_, index)) = self.timed.due.first().filter(|_| between) {
            if let Some(verdict) = self.verdict(now, index) {
                return Some(self.grant_apart(now, index, verdict, false, Pick::Timed));
            }
        }
        if let Some((index, verdict, pick)) = self.first_of_others(now, shared && open) {
            return Some(self.grant_apart(now, index, verdict, false, pick));
        }
        // What is not due yet may go if nobody else wants to; where it does not yield, also while
        // the others may not.
        let leave = match self.timed.others.first {
            true => open && self.others_in_flight() == 0,
            false => true,
        };
        let (_, index) = self.timed.due.first().filter(|_| shared && leave)?;
        let verdict = self.verdict(now, index)?;
        Some(self.grant_apart(now, index, verdict, false, Pick::Timed))
    }

    /// Whose turn it is that is not due: who was passed over for too long, or else whose it is by
    /// shares.
    fn first_of_others(&mut self, now: Nanos, shared: bool) -> Option<(usize, Verdict, Pick)> {
        let may = shared && !self.timed.made_good;
        let passed_over = self.timed.passed_over.first().filter(|(at, _)| *at <= now);
        if let Some((_, index)) = passed_over.filter(|_| may) {
            if let Some(verdict) = self.verdict(now, index) {
                self.timed.made_good = true;
                return Some((index, verdict, Pick::PassedOver));
            }
            self.place(now, index);
        }
        let (index, verdict) = self.first_by_share_apart(now, shared)?;
        self.timed.made_good = false;
        // What is due is charged, too: else its principal would have nothing else for as long as it
        // had more than its share.
        let slot = &mut self.slots[index];
        slot.account.limit_credit(&self.rounds[slot.tier as usize]);
        Some((index, verdict, self.by_share()))
    }

    fn by_share(&self) -> Pick {
        Pick::Share {
            yields: self.timed.others.first,
        }
    }

    /// Whose item is due and may have a permit. With no shared one free, it is one with a permit of
    /// its own.
    fn first_due(&self, now: Nanos, shared: bool) -> Option<usize> {
        let (due_at, index) = self.timed.due.first()?;
        if due_at > now {
            return None;
        }
        if shared {
            return Some(index);
        }
        let own = |index: &usize| {
            let slot = &self.slots[*index];
            let due_at = slot.lanes.as_ref().and_then(|lanes| lanes.due_at(now));
            slot.in_flight < slot.reserved && due_at.is_some_and(|due_at| due_at <= now)
        };
        self.timed.due.members().find(own)
    }

    /// When the next item becomes due. What is due already waits for a permit; behind it may be
    /// something of a principal that has a permit of its own.
    fn due_after(&self, now: Nanos) -> Option<Nanos> {
        let (due_at, _) = self.timed.due.first()?;
        if due_at > now {
            return Some(due_at);
        }
        let due_at = |index: usize| self.slots[index].lanes.as_ref()?.due_at(now);
        let all = self.timed.due.members().filter_map(due_at);
        all.filter(|due_at| *due_at > now).min()
    }

    /// Nobody may go now: when that can change with time alone.
    fn ask_again(&self, now: Nanos, threshold_ns: i64) -> Next<T, R> {
        let Timed { floor, others, .. } = &self.timed;
        let owed_at = floor.deprived.then(|| {
            let missing_ns = threshold_ns.saturating_sub(floor.owed_ns).max(0) as f64;
            now.saturating_add((missing_ns / others.floor).ceil() as Nanos)
        });
        let due_at = self.due_after(now);
        let runs = &self.timed.runs;
        let given_up_at = runs.given_up_at(others.linger_ns, others.run_ns);
        let times = [self.ready.next_wake(), due_at, owed_at, given_up_at];
        let next = times.into_iter().flatten().filter(|at| *at > now).min();
        next.map_or(Next::Idle, Next::At)
    }
}
