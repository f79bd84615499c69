//! One promise, and what its requests came to on each core.

use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use policy::slo::control::{after, LateBy, PromiseGiven, Turn, DEVICE, HANDLERS, STAGES};
use policy::slo::{Contract, Counts, Objective, Served, Tail};
use policy::words::Words;
use policy::Nanos;
use settings::tenant::Slo;
use telemetry::Lates;

use super::late::Lately;
use super::reading::Reading;
use super::record::Record;
use super::unanswered::Unanswered;
use super::whole::Whole;

/// No due time: turns are given by shares.
const NONE: u64 = u64::MAX;

/// Counts of one promise. A core records what it has answered; whoever looks adds the cores up.
pub struct Meter {
    slo: Slo,
    objective: Objective,
    /// The part of the contract that is this server's, the bits of an `f64`: all of it, unless
    /// several fronts keep it together.
    portion: AtomicU64,
    contract: Option<Mutex<Contract>>,
    /// The same of those that have due times: they are told before they are answered.
    timed: Option<Mutex<Contract>>,
    cores: Box<[Sides]>,
    /// So long after its arrival a request must have its turn at each stage, ns.
    due_after: [AtomicU64; STAGES],
    /// What became of it, written whenever a window is over.
    pub record: Mutex<Record>,
    /// The same at all fronts, where several keep it together.
    pub whole: Mutex<Whole>,
    /// Where the time of late requests went.
    pub lately: Mutex<Lately>,
    /// What a controller read last.
    pub steered: Mutex<Counts>,
}

/// Requests of one core: those within the contract and those beyond it. Apart, so that no two cores
/// write to one line of memory.
#[repr(align(128))]
struct Sides {
    within: Lates,
    beyond: Lates,
    /// What came of them at the stages since somebody asked.
    stages: Mutex<AtStages>,
    /// Those that wait.
    unanswered: Mutex<Unanswered>,
}

/// What came of requests within the contract at the stages.
#[derive(Clone, Debug, Default)]
pub struct AtStages {
    /// Late by what was before the handlers ([`policy::slo::control::PromiseSeen::held`]).
    pub held: u64,
    /// Late by waiting for a handler ([`policy::slo::control::PromiseSeen::unhandled`]).
    pub unhandled: u64,
    /// How long they took.
    pub latencies: Tail,
    /// What margins must allow for ([`policy::slo::control::PromiseSeen::after`]).
    pub after: [Tail; STAGES],
    /// Time that they waited at each stage, summed, ns.
    pub waited_ns: [u64; STAGES],
    /// Requests that a handler was at work for, and how long without what it waited at the device,
    /// summed, ns.
    pub handled: (u64, u64),
}

impl AtStages {
    fn add(&mut self, other: &Self) {
        self.held += other.held;
        self.unhandled += other.unhandled;
        self.latencies.add(&other.latencies);
        for stage in 0..STAGES {
            self.after[stage].add(&other.after[stage]);
            self.waited_ns[stage] += other.waited_ns[stage];
        }
        self.handled.0 += other.handled.0;
        self.handled.1 += other.handled.1;
    }
}

/// What became of requests.
#[derive(Clone, Copy, Debug, Default)]
pub struct Took {
    /// When they came, ns of the core's clock.
    pub came: Nanos,
    /// From then to their end, ns.
    pub latency_ns: Nanos,
    /// Their first turn at each stage; none: they did not come there.
    pub turns: [Option<Turn>; STAGES],
    /// Time that a handler was at work for them, less what it waited at the device, ns.
    pub handled_ns: Nanos,
}

impl Meter {
    /// A meter of this promise that has counted nothing.
    pub fn new(slo: Slo, cores: usize, now: Nanos) -> Self {
        let objective = slo.objective();
        let bound_ns = objective
            .latency
            .map_or(u64::MAX, |latency| latency.at_most_ns);
        let contract = || {
            let per_s = objective.contract_per_s;
            per_s.map(|per_s| Mutex::new(Contract::new(now, per_s)))
        };
        let sides = || Sides {
            within: Lates::new(bound_ns),
            beyond: Lates::new(bound_ns),
            stages: Mutex::default(),
            unanswered: Mutex::default(),
        };
        Self {
            slo,
            objective,
            portion: AtomicU64::new(1.0_f64.to_bits()),
            contract: contract(),
            timed: contract(),
            cores: (0..cores).map(|_| sides()).collect(),
            due_after: [NONE; STAGES].map(AtomicU64::new),
            record: Mutex::new(Record::new(now)),
            whole: Mutex::default(),
            lately: Mutex::default(),
            steered: Mutex::default(),
        }
    }

    /// What it measures.
    pub fn slo(&self) -> &Slo {
        &self.slo
    }

    /// The same as a rule.
    pub fn objective(&self) -> &Objective {
        &self.objective
    }

    /// What of it is to be kept here: of the throughput this server's part.
    pub fn here(&self) -> Objective {
        let part = self.record.lock().part();
        let throughput = self.objective.throughput_per_s;
        Objective {
            throughput_per_s: throughput.map(|per_s| part * per_s),
            ..self.objective
        }
    }

    /// What a controller gives it: margins before its promised end, and what part of the promise is
    /// aimed at.
    pub fn give(&self, given: &PromiseGiven) {
        let after = given.due_after_ns(&self.objective);
        for (due, after) in self.due_after.iter().zip(after.unwrap_or([NONE; STAGES])) {
            due.store(after, Ordering::Relaxed);
        }
    }

    /// What it is called among the promises of its tenant.
    pub fn name(&self) -> String {
        let class = self.slo.class.word();
        match &self.slo.workload {
            None => class.to_owned(),
            Some(workload) => format!("{class}:{workload}"),
        }
    }

    /// The part of the contract that is this server's.
    pub fn portion(&self) -> f64 {
        f64::from_bits(self.portion.load(Ordering::Relaxed))
    }

    /// This part of the contract is this server's from now on. True: it was another before.
    pub fn set_portion(&self, now: Nanos, portion: f64) -> bool {
        let before = f64::from_bits(self.portion.swap(portion.to_bits(), Ordering::Relaxed));
        let Some(per_s) = self.objective.contract_per_s.filter(|_| before != portion) else {
            return false;
        };
        for contract in self.contract.iter().chain(&self.timed) {
            contract.lock().change(now, portion * per_s);
        }
        true
    }

    /// What the contract is for all fronts together, requests/s, and how many were offered of it
    /// here; none: it has no contract.
    pub fn offered(&self) -> Option<(f64, u64)> {
        let contract = self.contract.as_ref()?.lock();
        Some((self.objective.contract_per_s?, contract.offered()))
    }

    /// Whether a request that came at `came` is within the contract, which it uses up if so: then
    /// it has due times.
    pub fn begin(&self, came: Nanos) -> bool {
        let timed = self.timed.as_ref();
        timed.is_none_or(|timed| timed.lock().offer(came, 1) > 0)
    }

    /// Whether a request that came at `came` and waits to begin is within the contract, if so many
    /// `others` that wait so are. It uses up nothing.
    pub fn has_room(&self, came: Nanos, others: u64, now: Nanos) -> bool {
        // Of those before it, what was in memory is in the one, and what is under way in the other.
        let mut contracts = self.contract.iter().chain(&self.timed);
        contracts.all(|contract| contract.lock().has_room(came, others, now))
    }

    /// When a request that came at `came` must have its turn at a stage; `None`: when its share
    /// gives it one.
    #[inline]
    pub fn due_at(&self, stage: usize, came: Nanos) -> Option<Nanos> {
        match self.due_after[stage].load(Ordering::Relaxed) {
            NONE => None,
            after => Some(came.saturating_add(after)),
        }
    }

    /// What came of requests at the stages since this was called last.
    pub fn take_stages(&self) -> AtStages {
        let mut all = AtStages::default();
        for sides in &self.cores {
            let taken = std::mem::take(&mut *sides.stages.lock());
            all.add(&taken);
        }
        all
    }

    fn at_stages(&self, took: &Took, count: u64, stages: &mut AtStages) {
        let end = took.came + took.latency_ns;
        if let (Some(latency), Some(turn)) = (self.objective.latency, took.turns[HANDLERS]) {
            if took.latency_ns > latency.at_most_ns {
                match LateBy::of(turn, took.came, latency.at_most_ns) {
                    // How long that took says nothing of the stages.
                    LateBy::Entry => {
                        stages.held += count;
                        return;
                    }
                    LateBy::Handler => stages.unhandled += count,
                    LateBy::Rest => (),
                }
            }
        }
        stages.latencies.record_many(took.latency_ns, count);
        let due_at = [HANDLERS, DEVICE].map(|stage| self.due_at(stage, took.came));
        let after = after(&took.turns, &due_at, end);
        for (stage, turn) in took.turns.iter().enumerate() {
            if let Some(after) = after[stage] {
                stages.after[stage].record_many(after, count);
            }
            let waited = turn.map_or(0, |turn| turn.granted.saturating_sub(turn.queued));
            stages.waited_ns[stage] += waited * count;
        }
        if took.handled_ns > 0 {
            stages.handled.0 += count;
            stages.handled.1 += took.handled_ns * count;
        }
    }

    /// `core` has answered `count` requests; says how many were late although they were within the
    /// contract. Only that core's thread calls this for it.
    #[inline]
    pub fn answered(&self, core: usize, took: &Took, count: u64) -> u64 {
        let latency_ns = took.latency_ns;
        let within = match &self.contract {
            None => count,
            Some(contract) => contract.lock().offer(took.came, count),
        };
        let sides = &self.cores[core];
        if within > 0 {
            sides.within.record(latency_ns, within);
            self.at_stages(took, within, &mut sides.stages.lock());
        }
        if within < count {
            sides.beyond.record(latency_ns, count - within);
        }
        match self.objective.latency {
            Some(latency) if latency_ns > latency.at_most_ns => within,
            _ => 0,
        }
    }

    /// What waits at a core at present.
    pub fn waits(&self, core: usize, unanswered: Unanswered) {
        *self.cores[core].unanswered.lock() = unanswered;
    }

    /// All cores together.
    pub fn read(&self) -> Reading {
        let mut reading = Reading::default();
        for sides in &self.cores {
            reading.counts.late += sides.within.add_to(&mut reading.within);
            reading.counts.beyond_late += sides.beyond.add_to(&mut reading.beyond);
            reading.unanswered.add(&sides.unanswered.lock());
        }
        reading.counts.requests = reading.within.count();
        reading.counts.beyond = reading.beyond.count();
        reading.counts.overdue = reading.unanswered.overdue;
        reading.counts.under_way_ns =
            (reading.within.sum_ns()).wrapping_add(reading.beyond.sum_ns());
        reading.served = Served::of(&reading.counts);
        reading
    }
}

#[cfg(test)]
mod tests;
