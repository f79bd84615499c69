//! What each core last said of its stages, for those who ask from elsewhere.
//!
//! A stage belongs to its core's thread. Once a second, and when its rule is changed, the core
//! writes down what it observes, unless somebody is reading just then; readers see the state of up
//! to a second ago and never make a core wait.

use parking_lot::{Mutex, MutexGuard};
use policy::dispatch::{Discipline, Observation};
use policy::{Nanos, PrincipalId};
use telemetry::StageKind;

/// One principal before one stage of one core. Totals only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Waiting now.
    pub waiting: u64,
    /// Permits in use now.
    pub permits_in_use: u32,
    /// Let through.
    pub admitted: u64,
    /// Turned away, for a limit or because its queue was full.
    pub refused: u64,
    /// Time that those let through had waited, summed, ns.
    pub waited_ns: u64,
    /// Time with something waiting, ns.
    pub occupied_ns: u64,
    /// Time for which it held permits, summed over permits, ns.
    pub busy_ns: u64,
    /// How far it is ahead of the others' service, ns of its dominant resource.
    pub debt_ns: Nanos,
    /// Charged since the start, ns of its dominant resource.
    pub charged_ns: Nanos,
    /// Debt for that, beyond the bounds, that was forgiven, ns.
    pub forgiven_ns: Nanos,
    /// It is beyond its contract.
    pub best_effort: bool,
}

impl<const R: usize> From<Observation<R>> for Seen {
    fn from(seen: Observation<R>) -> Self {
        Self {
            waiting: seen.queued as u64,
            permits_in_use: seen.in_flight,
            admitted: seen.granted,
            refused: seen.refused + seen.rejected,
            waited_ns: seen.waited_ns,
            occupied_ns: seen.occupied_ns,
            busy_ns: seen.busy_ns,
            debt_ns: seen.debt_ns,
            charged_ns: seen.charged_ns,
            forgiven_ns: seen.forgiven_ns,
            best_effort: seen.best_effort,
        }
    }
}

impl Seen {
    /// The same, with what was seen at another stage of the same kind.
    pub fn add(&mut self, other: &Self) {
        self.waiting += other.waiting;
        self.permits_in_use += other.permits_in_use;
        self.admitted += other.admitted;
        self.refused += other.refused;
        self.waited_ns += other.waited_ns;
        self.occupied_ns += other.occupied_ns;
        self.busy_ns += other.busy_ns;
        self.debt_ns = self.debt_ns.max(other.debt_ns);
        self.charged_ns += other.charged_ns;
        self.forgiven_ns += other.forgiven_ns;
        self.best_effort |= other.best_effort;
    }
}

/// One stage of a core.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Posted {
    /// Which.
    pub kind: StageKind,
    /// When it was written down, by the core's clock.
    pub at_ns: Nanos,
    /// The rule in force.
    pub discipline: Discipline,
    /// Units of work that may be outstanding below it.
    pub permits: u32,
    /// Permits that are reserved there and cannot be kept free.
    pub permits_missing: u64,
    /// Everybody who was ever seen there.
    pub seen: Vec<(PrincipalId, Seen)>,
}

/// The stages of all cores.
pub struct Board {
    cores: Box<[Mutex<Vec<Posted>>]>,
}

impl Board {
    /// A board for this many cores, empty.
    pub fn new(cores: usize) -> Self {
        Self {
            cores: (0..cores).map(|_| Mutex::default()).collect(),
        }
    }

    /// Each core's stages, in the order of cores. A core skips its posting while its guard is held.
    pub fn cores(&self) -> impl Iterator<Item = MutexGuard<'_, Vec<Posted>>> {
        self.cores.iter().map(Mutex::lock)
    }

    /// Where a core writes down what it observes; none: somebody is reading.
    pub fn of(&self, core: usize) -> Option<MutexGuard<'_, Vec<Posted>>> {
        self.cores[core].try_lock()
    }
}
