//! What a dispatch is told: its options at the start, and an allocation for each principal.

use super::Discipline;
use crate::cost::device::{CostModel, Op, Vop};
use crate::cost::{Charge, Cost, Nanos};
use crate::fairness::sfq::DebtBounds;

/// Which entries of a [`Cost`] the rates count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Meter<const R: usize> {
    /// Index of the entry that counts requests, 0..R.
    pub requests: usize,
    /// The entries that count bytes; their sum is what a limit on bytes means.
    pub bytes: [bool; R],
}

/// How a dispatch is set up. Public fields: change what differs from [`DispatchOptions::new`].
#[derive(Clone, Debug)]
pub struct DispatchOptions<const R: usize> {
    /// The rule at the start; [`super::Dispatch::set_discipline`] changes it later.
    pub discipline: Discipline,
    /// Grants that may be unsettled at a time, at least 1. A core that serves one turn after the
    /// other has 1.
    pub permits: u32,
    /// So many more for principals in credit ([`super::Grant::in_credit`]), who then do not wait
    /// for what others have outstanding.
    pub extra_permits: u32,
    /// Reserved permits come beside `permits`, and are not taken from them.
    pub reserved_beside: bool,
    /// Nominal capacity per second of each resource of ONE core (0 counts as 1). Only ratios matter
    /// for who gets how much; absolute values set how long a quantum and a round really last.
    pub capacity_per_s: [u64; R],
    /// What requests and bytes are.
    pub meter: Meter<R>,
    /// One turn's budget, in nanoseconds of each resource. Longer turns cost less switching,
    /// shorter ones less waiting.
    pub quantum_ns: Nanos,
    /// A turn may take this much of each resource even if a quantum is less. It lengthens turns
    /// only of principals that ask for so much at once. A limit still holds.
    pub turn_least: Cost<R>,
    /// Length of a round in which everybody active uses up its quanta (Pisces 4.3.5: 1 ms). It is
    /// also the longest pause after which a principal still has its unused quanta, so it should
    /// exceed the time clients take to send their next request.
    pub round_ns: Nanos,
    /// Items that may wait in one principal's queue.
    pub queue_max: usize,
    /// Largest debt of a principal, in nanoseconds of its dominant resource. It must exceed what
    /// other cores consume between two exchanges; beyond that it only makes a tenant pay for what
    /// nobody remembers.
    pub debt_max_ns: Nanos,
    /// What one piece of work granted here can be charged at most, in nanoseconds of its dominant
    /// resource. So much debt is never forgiven to whoever ran it up here, or a piece that costs
    /// more than `debt_max_ns` could be repeated for the price of that.
    pub charge_max_ns: Nanos,
    /// Seed of the lottery.
    pub seed: u64,
}

impl<const R: usize> DispatchOptions<R> {
    /// Fair shares, one permit, a quantum of 100 µs, a round of 1 ms, queues of 1,024, debts of up
    /// to 100 ms (one 64 MiB value at 640 MB/s), seed 0.
    #[must_use]
    pub fn new(capacity_per_s: [u64; R], meter: Meter<R>) -> Self {
        DispatchOptions {
            discipline: Discipline::Fair,
            permits: 1,
            extra_permits: 0,
            reserved_beside: false,
            capacity_per_s,
            meter,
            quantum_ns: 100_000,
            turn_least: Cost([0; R]),
            round_ns: 1_000_000,
            queue_max: 1024,
            debt_max_ns: 100_000_000,
            charge_max_ns: 0,
            seed: 0,
        }
    }

    /// Of what was consumed elsewhere.
    pub(super) fn absorbed_bounds(&self) -> DebtBounds {
        let here_only = DispatchOptions {
            charge_max_ns: 0,
            ..*self
        };
        here_only.debt_bounds()
    }

    pub(super) fn debt_bounds(&self) -> DebtBounds {
        let quantum = Charge::from_ns(self.quantum_ns);
        let permits = u64::from(self.permits.max(1)) + u64::from(self.extra_permits);
        let turns = quantum.0.saturating_mul(permits + 1);
        let turns = turns.max(Charge::from_ns(self.charge_max_ns).0);
        DebtBounds {
            debt_max: Charge::from_ns(self.debt_max_ns).max(Charge(turns)),
            turns_max: Charge(turns),
            estimate_max: quantum,
        }
    }
}

/// Threads that may wait for one principal before a device: more than there are.
const DEVICE_QUEUE_MAX: usize = 4096;
/// A round lets the largest I/O of each principal through several times.
const DEVICE_QUANTA_PER_ROUND: u64 = 8;

impl DispatchOptions<1> {
    /// Threads that work for whoever is next, `permits` of them; their one resource is their time.
    /// A principal that has had less than its share may use as many again.
    #[must_use]
    pub fn handlers(permits: u32) -> Self {
        let meter = Meter {
            requests: 0,
            bytes: [false],
        };
        let per_s = [u64::from(permits) * 1_000_000_000];
        DispatchOptions {
            permits,
            extra_permits: permits,
            ..DispatchOptions::new(per_s, meter)
        }
    }

    /// One device, its one resource counted as prices are, in millionths of a VOP. `floor_per_s`
    /// (VOPs a second) sets the length of quanta and rounds only; no I/O is larger than
    /// `chunk_bytes`.
    #[must_use]
    pub fn device(costs: &CostModel, floor_per_s: f64, permits: u32, chunk_bytes: u64) -> Self {
        let meter = Meter {
            requests: 0,
            bytes: [false],
        };
        let largest = Op::ALL
            .map(|op| costs.cost(op, chunk_bytes))
            .into_iter()
            .max();
        let largest = largest.unwrap_or(Vop::ONE).get();
        let quantum_ns = (largest * 1e9 / floor_per_s.max(1.0)) as Nanos + 1;
        let round_ns = DEVICE_QUANTA_PER_ROUND * quantum_ns;
        let usual = DispatchOptions::new([Vop::new(floor_per_s).0.max(1)], meter);
        DispatchOptions {
            permits,
            queue_max: DEVICE_QUEUE_MAX,
            quantum_ns,
            round_ns,
            debt_max_ns: usual.debt_max_ns.max(2 * round_ns),
            ..usual
        }
    }
}

/// A ceiling on a principal's rate. Exceeded by at most one burst (and one smallest turn: a
/// request, or 4 KiB) over any interval, provided turns keep to their budget; where several cores
/// exchange consumption, also by what the others can serve between two exchanges.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limit {
    /// Requests per second; `None`: any number.
    pub requests_per_s: Option<f64>,
    /// Bytes per second, as the [`Meter`] counts them; `None`: any number.
    pub bytes_per_s: Option<f64>,
    /// How much can be saved up while idle, as time at the rate.
    pub burst_ns: Nanos,
    /// How long an item may wait for the limit; one that would wait longer is granted with
    /// [`super::Verdict::Refuse`] once it has waited that long. 0: at once.
    pub max_wait_ns: Nanos,
}

impl Default for Limit {
    /// No limit; a burst of 100 ms and a wait of at most 100 ms once a rate is set.
    fn default() -> Self {
        Limit {
            requests_per_s: None,
            bytes_per_s: None,
            burst_ns: 100_000_000,
            max_wait_ns: 100_000_000,
        }
    }
}

/// What one principal is entitled to. Every dispatch of a server gets the full values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Allocation {
    /// Share relative to other principals, 0.001 to 1000, kept to a millionth.
    pub weight: f64,
    /// Permits kept free for this principal (Cake 4.1).
    pub reserved_permits: u32,
    /// Rate at which it is served before anybody's share, in normalised requests per second: a turn
    /// counts as its requests, or its bytes in KiB if that is more (Libra's 1 KiB normalisation).
    pub reservation_per_s: Option<f64>,
    /// Rate it may not exceed.
    pub limit: Limit,
    /// Normalised requests per second up to which it is served like everybody else; beyond, it is
    /// best effort: served when nobody in contract wants the resource. 0: always best effort.
    pub contract_per_s: Option<f64>,
}

impl Default for Allocation {
    /// Weight 1 and nothing else.
    fn default() -> Self {
        Allocation {
            weight: 1.0,
            reserved_permits: 0,
            reservation_per_s: None,
            limit: Limit::default(),
            contract_per_s: None,
        }
    }
}

impl Allocation {
    /// A share and nothing else.
    #[must_use]
    pub fn share(weight: f64) -> Self {
        Allocation {
            weight,
            ..Allocation::default()
        }
    }
}

/// What rates count in one turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Units {
    pub(crate) requests: u64,
    pub(crate) bytes: u64,
}

impl Units {
    pub(crate) fn of<const R: usize>(cost: &Cost<R>, meter: &Meter<R>) -> Self {
        let bytes = cost.0.iter().zip(meter.bytes).filter(|(_, counts)| *counts);
        Units {
            requests: cost.0.get(meter.requests).copied().unwrap_or(0),
            bytes: bytes.fold(0u64, |sum, (b, _)| sum.saturating_add(*b)),
        }
    }

    /// 1 KiB-normalised requests. From totals, so a turn of one large and many tiny requests
    /// counts a little less than its requests would one by one.
    pub(crate) fn normalised(self) -> u64 {
        self.requests.max(self.bytes.div_ceil(1024))
    }

    pub(crate) fn plus(self, other: Units) -> Self {
        Units {
            requests: self.requests.saturating_add(other.requests),
            bytes: self.bytes.saturating_add(other.bytes),
        }
    }
}
