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
                    LateBy::Entry => stages.held += count,
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
mod tests {
    use super::*;
    use settings::tenant::SloClass;

    const S: Nanos = 1_000_000_000;

    #[test]
    fn within_and_beyond_the_contract_are_counted_apart_over_all_cores() {
        let slo = Slo {
            class: SloClass::Get,
            at_most_ns: Some(20_000_000),
            contract_per_s: Some(100.0),
            ..Slo::default()
        };
        let meter = Meter::new(slo, 2, S);
        // Eleven are a burst of the contract and the one after it; late or not.
        let took = |latency_ns| Took {
            came: S,
            latency_ns,
            ..Took::default()
        };
        assert_eq!(meter.answered(0, &took(10_000_000), 8), 0);
        assert_eq!(meter.answered(1, &took(30_000_000), 8), 3);
        let counts = meter.read().counts;
        assert_eq!((counts.requests, counts.late), (11, 3));
        assert_eq!((counts.beyond, counts.beyond_late), (5, 5));
        assert_eq!(counts.under_way_ns, 8 * 40_000_000);
    }

    /// What is beyond its part of the contract here is beyond it, however late: another front has
    /// the rest.
    #[test]
    fn of_several_fronts_each_judges_by_its_part_of_the_contract() {
        let slo = Slo {
            class: SloClass::Get,
            workload: Some("batch".into()),
            at_most_ns: Some(20_000_000),
            contract_per_s: Some(100.0),
            ..Slo::default()
        };
        let meter = Meter::new(slo, 1, S);
        assert_eq!((meter.name(), meter.portion()), ("get:batch".into(), 1.0));
        assert!(meter.set_portion(S, 0.2) && !meter.set_portion(S, 0.2));
        let late = (0..1_000).map(|number| {
            let took = Took {
                came: 2 * S + number * S / 1_000,
                latency_ns: 30_000_000,
                ..Took::default()
            };
            meter.answered(0, &took, 1)
        });
        let late: u64 = late.sum();
        assert!((20..=23).contains(&late), "{late}");
        assert_eq!(meter.offered(), Some((100.0, 1_000)));
    }

    const MS: Nanos = 1_000_000;

    fn of_20_ms() -> Meter {
        let slo = Slo {
            at_most_ns: Some(20 * MS),
            ..Slo::default()
        };
        Meter::new(slo, 1, S)
    }

    #[test]
    fn what_is_promised_is_due_a_margin_before_its_end() {
        let meter = of_20_ms();
        assert_eq!(meter.due_at(DEVICE, S), None);
        let mut given = PromiseGiven {
            margin_ns: Some([30 * MS, 5 * MS]),
            ..PromiseGiven::default()
        };
        meter.give(&given);
        assert_eq!(meter.due_at(DEVICE, S), Some(S + 15 * MS));
        assert_eq!(meter.due_at(HANDLERS, S), Some(S), "at once");
        given.part = 0.5;
        meter.give(&given);
        assert_eq!(
            meter.due_at(DEVICE, S),
            Some(S + 35 * MS),
            "half is aimed at"
        );
        given.part = 0.0;
        meter.give(&given);
        assert_eq!(meter.due_at(DEVICE, S), None, "given up");
    }

    #[test]
    fn what_was_late_before_it_came_to_a_stage_is_told_apart() {
        let meter = of_20_ms();
        let late = |queued_ms, granted_ms| Took {
            came: S,
            latency_ns: 30 * MS,
            turns: [
                Some(Turn {
                    queued: S + queued_ms * MS,
                    granted: S + granted_ms * MS,
                }),
                None,
            ],
            ..Took::default()
        };
        assert_eq!(meter.answered(0, &late(11, 12), 2), 2, "late all the same");
        assert_eq!(meter.answered(0, &late(9, 9), 1), 1);
        assert_eq!(meter.answered(0, &late(9, 11), 4), 4);
        let stages = meter.take_stages();
        assert_eq!((stages.held, stages.unhandled), (2, 4));
    }

    #[test]
    fn waiting_before_it_is_due_needs_no_margin() {
        let meter = of_20_ms();
        meter.give(&PromiseGiven {
            margin_ns: Some([10 * MS, 5 * MS]),
            ..PromiseGiven::default()
        });
        let at = |ms| S + ms * MS;
        // Due at the handlers after 10 ms, at the device after 15: it waited until then.
        let took = Took {
            came: S,
            latency_ns: 19 * MS,
            turns: [
                Some(Turn {
                    queued: at(1),
                    granted: at(3),
                }),
                Some(Turn {
                    queued: at(4),
                    granted: at(16),
                }),
            ],
            handled_ns: 16 * MS,
        };
        assert_eq!(meter.answered(0, &took, 1), 0);
        let seen = meter.take_stages();
        let after = |stage: usize| seen.after[stage].quantile(0.5).expect("one") / 100_000;
        // 15 to 19; 3 to 19 less the 11 from 4 to 15.
        assert_eq!((after(DEVICE) / 10, after(HANDLERS) / 10), (4, 5));
        assert_eq!(seen.waited_ns, [2 * MS, 12 * MS]);
        assert_eq!(seen.handled, (1, 16 * MS));
        assert_eq!(meter.take_stages().handled, (0, 0), "it was taken");
    }
}
