//! Controllers: what each interval showed, and what follows for the stages.
//!
//! A controller is a pure step: it is told what was [`Seen`] since the last one, and says what is
//! [`Given`] until the next, and why. Four are here, chosen by a word ([`Policy`]), and may be
//! exchanged while they run:
//!
//! * [`Fixed`] gives what it was told to;
//! * [`Cake`] is the published controller of one latency-sensitive client and the others;
//! * [`Frosting`] is the published linear program over shares;
//! * [`Auto`] is ours. Due times keep the promises ([`crate::dispatch`]); it learns how much
//!   earlier than promised "due" must be, how much other work may be out, and who gives way when
//!   not all promises can be kept.
//!
//! The maths is in docs/theory/latency.md.

mod auto;
mod cake;
mod compaction;
mod drives;
mod fixed;
mod free;
mod frosting;
mod gear;
mod giving;
mod learnt;
mod rates;
mod restart;
mod turn;

pub use auto::{Auto, AutoOptions};
pub use cake::{Cake, CakeOptions};
pub use drives::{permits_each, reserved_at};
pub use fixed::Fixed;
pub use frosting::{Frosting, FrostingOptions};
pub use learnt::MarginOptions;
pub use restart::Restart;
pub use turn::{after, LateBy, Turn};

use super::{Counts, Objective, Tail};
use crate::cost::{Nanos, PrincipalId};
use crate::dispatch::{LaneId, Others};
use crate::words::{Choice, Words};

/// The stages that are controlled: before the handlers, and before the device.
pub const STAGES: usize = 2;
/// The first of them.
pub const HANDLERS: usize = 0;
/// The second.
pub const DEVICE: usize = 1;

/// Which controller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// What is set stays.
    Static,
    /// Cake (SoCC 2012).
    Cake,
    /// Frosting (HotStorage 2012).
    Frosting,
    /// Ours.
    #[default]
    Auto,
}

impl Words for Policy {
    #[rustfmt::skip]
    const ALL: &'static [(Self, Choice)] = &[
        (Self::Static, ("static", "Nothing is adjusted: shares, permits and chunks stay as they are set.")),
        (Self::Cake, ("cake", "The most important promise of latency is held by shares and reserved permits (Cake, algorithms 1 and 2).")),
        (Self::Frosting, ("frosting", "Shares of the handlers are adjusted so that promises are missed alike, weighted by importance (Frosting).")),
        (Self::Auto, ("auto", "Requests that are due go first; how early that is, and how much other work may be out, is learnt.")),
    ];
}

/// Who was promised something, and what.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Held {
    /// Whose promise it is.
    pub principal: PrincipalId,
    /// For which of its lanes.
    pub lane: LaneId,
    /// What. Of a throughput that several servers keep together, this one's part.
    pub objective: Objective,
}

/// Whether these are the same promises, one by one.
#[must_use]
pub fn are_those_of<'h>(held: &[Held], others: impl ExactSizeIterator<Item = &'h Held>) -> bool {
    held.len() == others.len()
        && held
            .iter()
            .zip(others)
            .all(|(one, other)| one.is_that_of(other))
}

impl Held {
    /// Whether it is the same promise: what was learnt of it goes on. A throughput may be more or
    /// less than it was, as where several servers keep one together.
    #[must_use]
    pub fn is_that_of(&self, other: &Held) -> bool {
        let any_rate = |held: &Held| {
            let mut held = *held;
            held.objective.throughput_per_s = held.objective.throughput_per_s.map(|_| 1.0);
            held
        };
        any_rate(self) == any_rate(other)
    }
}

/// What an interval showed of one promise.
#[derive(Clone, Debug, Default)]
pub struct PromiseSeen {
    /// Its requests.
    pub counts: Counts,
    /// Of the late ones, those that were so by [`LateBy::Entry`].
    pub held: u64,
    /// And those that were so by [`LateBy::Handler`].
    pub unhandled: u64,
    /// Latencies of requests in contract, without those that were held.
    pub latencies: Tail,
    /// Of the same requests, what a margin must allow for. At the handlers: from the turn, or from
    /// when it was due if that was before, to the end, less what was waited at the device before it
    /// was due there. At the device: how long after it was due there it ended, 0 for what ended
    /// before.
    pub after: [Tail; STAGES],
    /// By stage: the part of the interval in which it had something queued, 0 to 1.
    pub occupied: [f64; STAGES],
    /// What its requests were charged at the device, as a part of the device's time, 0 to 1.
    pub device: f64,
    /// How long the request has waited that waits longest, of those in contract that are not
    /// answered yet and whose database is not being opened, ns; 0: none waits. `counts` has the
    /// same of them.
    pub waiting_ns: Nanos,
}

/// What an interval showed.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// How long it was by a clock that does not step.
    pub elapsed_ns: Nanos,
    /// Like the promises that the controller is asked about.
    pub promises: Vec<PromiseSeen>,
    /// Requests with a promise of latency that handlers were at work for.
    pub handled: u64,
    /// How long, all together, ns: without what they waited at the device.
    pub handled_ns: Nanos,
    /// Other work: bytes a second that it moved at the device.
    pub others_bytes_per_s: f64,
    /// The part of the interval in which other work waited at the device, 0 to 1.
    pub others_occupied: f64,
    /// A piece of other work at the device in the mean. `None`: there was none.
    pub others_piece: Option<Piece>,
    /// What compactions took of the device's time, 0 to 1, without those that writers wait for.
    pub compaction: f64,
}

/// A piece of work at the device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Piece {
    /// Its bytes.
    pub bytes: u64,
    /// How long it was out, ns.
    pub ns: Nanos,
}

impl Piece {
    /// The mean of so many that have so many bytes and take so long together; `None` of none.
    #[must_use]
    pub fn mean(pieces: u64, bytes: u64, ns: Nanos) -> Option<Self> {
        Some(Piece {
            bytes: bytes.checked_div(pieces)?,
            ns: ns.checked_div(pieces)?,
        })
    }
}

impl PromiseSeen {
    /// The percentile of latency that is promised; where nothing was answered, what somebody has
    /// waited beyond the promise. `None`: there is neither, or no latency is promised.
    #[must_use]
    pub fn latency_ns(&self, objective: &Objective) -> Option<Nanos> {
        let latency = objective.latency?;
        let waiting_ns = Some(self.waiting_ns).filter(|ns| *ns > latency.at_most_ns);
        let answered_ns = self.latencies.quantile(latency.percentile / 100.0);
        answered_ns.or(waiting_ns)
    }

    /// Normalised performance (Frosting 2.3): promised over measured latency, or measured over
    /// promised rate, whichever is less. `None`: nothing was asked for.
    #[must_use]
    pub fn performance(&self, objective: &Objective, elapsed_ns: Nanos) -> Option<f64> {
        let latency = objective.latency.and_then(|wanted| {
            let actual_ns = self.latency_ns(objective)?;
            Some(wanted.at_most_ns as f64 / actual_ns as f64)
        });
        let per_s = self.per_s(elapsed_ns);
        let rate = objective
            .throughput_per_s
            .and_then(|wanted| Some(per_s? / wanted));
        latency.into_iter().chain(rate).reduce(f64::min)
    }

    /// Requests answered a second, in contract or beyond it.
    fn per_s(&self, elapsed_ns: Nanos) -> Option<f64> {
        let served = (self.counts.requests + self.counts.beyond) as f64;
        (elapsed_ns > 0).then(|| served * 1e9 / elapsed_ns as f64)
    }
}

impl Seen {
    /// Adds the next interval, for who decides less often. Promises that are others begin anew.
    fn add(&mut self, next: &Seen) {
        if next.elapsed_ns == 0 {
            return;
        }
        if self.promises.len() != next.promises.len() {
            *self = next.clone();
            return;
        }
        let all_ns = (self.elapsed_ns + next.elapsed_ns).max(1) as f64;
        let parts = [self.elapsed_ns, next.elapsed_ns].map(|ns| ns as f64 / all_ns);
        for (one, next) in self.promises.iter_mut().zip(&next.promises) {
            one.counts.add(&next.counts);
            one.latencies.add(&next.latencies);
            one.waiting_ns = next.waiting_ns;
            for (part, next) in one.occupied.iter_mut().zip(next.occupied) {
                *part = *part * parts[0] + next * parts[1];
            }
        }
        self.handled += next.handled;
        self.handled_ns += next.handled_ns;
        self.elapsed_ns += next.elapsed_ns;
    }
}

/// What one promise is given.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PromiseGiven {
    /// Its requests are due at a stage so long before they must be answered. `None`: they carry no
    /// due time.
    pub margin_ns: Option<[Nanos; STAGES]>,
    /// What of the promise is aimed at, 0 to 1: latency is to be `at_most / part`, throughput
    /// `part` of what was promised. 1 unless not all can be kept; 0: it is given up for now.
    pub part: f64,
    /// The part of the device's time that is its before anybody's share, 0 to 1.
    pub device: f64,
}

impl PromiseGiven {
    /// By stage, how long after its arrival a request with this objective is due. `None`: when its
    /// share gives it a turn.
    #[must_use]
    pub fn due_after_ns(&self, objective: &Objective) -> Option<[Nanos; STAGES]> {
        let (latency, margin_ns) = (objective.latency?, self.margin_ns?);
        let aimed_ns = latency.at_most_ns as f64 / self.part;
        let due_after_ns = margin_ns.map(|ns| (aimed_ns as Nanos).saturating_sub(ns));
        Some(due_after_ns).filter(|_| self.part > 0.0)
    }
}

impl Default for PromiseGiven {
    /// No due times, and nothing of the device.
    fn default() -> Self {
        PromiseGiven {
            margin_ns: None,
            part: 1.0,
            device: 0.0,
        }
    }
}

/// What one tenant is given at a stage, in place of what it was set to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ShareGiven {
    /// Whom.
    pub principal: PrincipalId,
    /// By stage: its part of all shares, 0 to 1.
    pub share: [f64; STAGES],
    /// By stage: its reserved permits, of all drives together at the device ([`reserved_at`]).
    pub reserved: [u32; STAGES],
}

/// What is given until the next step.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Given {
    /// Like the promises that the controller was asked about.
    pub promises: Vec<PromiseGiven>,
    /// Tenants whose shares and reserved permits are the controller's. Empty: everybody has what
    /// was set.
    pub shares: Vec<ShareGiven>,
    /// By stage: what all tenants that are not among these share, 0 to 1; it means nothing if there
    /// are none.
    pub rest: [f64; STAGES],
    /// By stage: permits, of all drives together at the device ([`permits_each`]). `None`: as the
    /// stage has them.
    pub permits: [Option<u32>; STAGES],
    /// By stage: work without due times.
    pub others: [Others; STAGES],
    /// Larger I/Os are cut into pieces of this many bytes. `None`: as the device has it.
    pub chunk_bytes: Option<u64>,
    /// The part of the device's time that compactions of each tenant may have, 0 to 1, unless
    /// writers wait for them. `None`: any.
    pub compaction: Option<f64>,
    /// What was done and why, a sentence each.
    pub why: Vec<String>,
}

impl Given {
    /// Whether a tenant's shares and reserved permits are listed.
    #[must_use]
    pub fn lists(&self, principal: PrincipalId) -> bool {
        self.shares.iter().any(|one| one.principal == principal)
    }

    /// What a tenant has in place of what was `set`, whose `share`s are its weight at each stage:
    /// tenants that are not listed divide the rest between them; they weigh `unlisted` together.
    /// `None`: what was set.
    #[must_use]
    pub fn share(&self, set: &ShareGiven, unlisted: f64) -> Option<ShareGiven> {
        if self.shares.is_empty() {
            return None;
        }
        let mut listed = self.shares.iter();
        let own = listed.find(|one| one.principal == set.principal);
        let of_rest = |stage: usize| self.rest[stage] * set.share[stage] / unlisted;
        Some(own.copied().unwrap_or(ShareGiven {
            share: std::array::from_fn(of_rest),
            ..*set
        }))
    }
}

/// A controller at work.
#[derive(Clone, Debug)]
pub enum Controller {
    /// See [`Fixed`].
    Static(Box<Fixed>),
    /// See [`Cake`].
    Cake(Box<Cake>),
    /// See [`Frosting`].
    Frosting(Box<Frosting>),
    /// See [`Auto`].
    Auto(Box<Auto>),
}

/// An interval is told from a stopped clock or a host that slept by its length, in ns.
const ELAPSED_NS: std::ops::RangeInclusive<Nanos> = 1_000_000..=60_000_000_000;

impl Controller {
    /// A controller with its usual options.
    #[must_use]
    pub fn new(policy: Policy) -> Self {
        match policy {
            Policy::Static => Controller::Static(Box::default()),
            Policy::Cake => Controller::Cake(Box::new(Cake::new(CakeOptions::default()))),
            Policy::Frosting => {
                Controller::Frosting(Box::new(Frosting::new(FrostingOptions::default())))
            }
            Policy::Auto => Controller::Auto(Box::new(Auto::new(AutoOptions::default()))),
        }
    }

    /// Which it is.
    #[must_use]
    pub fn policy(&self) -> Policy {
        match self {
            Controller::Static(_) => Policy::Static,
            Controller::Cake(_) => Policy::Cake,
            Controller::Frosting(_) => Policy::Frosting,
            Controller::Auto(_) => Policy::Auto,
        }
    }

    /// One step: what is given from now on. `held` may differ from step to step; what was learnt
    /// goes by principal, lane and what was promised. An interval whose length cannot be right
    /// teaches nothing, and one without requests changes nothing for the worse.
    #[must_use]
    pub fn step(&mut self, held: &[Held], seen: &Seen) -> Given {
        let nothing = Seen::default();
        let right = ELAPSED_NS.contains(&seen.elapsed_ns) && seen.promises.len() == held.len();
        let seen = if right { seen } else { &nothing };
        match self {
            Controller::Static(fixed) => fixed.step(held),
            Controller::Cake(cake) => cake.step(held, seen),
            Controller::Frosting(frosting) => frosting.step(held, seen),
            Controller::Auto(auto) => auto.step(held, seen),
        }
    }
}
