//! What changes with the requests: senders' strategies, and the levels of all.

use super::{Event, World};
use crate::spec::Tuning;
use policy::multiget::{bottleneck, Opset, Strategy, Tuner};
use policy::Nanos;

/// Requests to which a sender's old ones count half: enough for the largest 1 %.
const SENDER_HALF_LIFE: u64 = 4_096;
/// The same of all senders' together: less than half a second of 128 servers under load.
const ALL_HALF_LIFE: u64 = 16_384;
/// Requests from one choice of a sender to its next.
const CHOOSE_EVERY: u64 = 64;
/// From one choice of levels to the next.
const LEVELS_EVERY_NS: Nanos = 250_000_000;

/// What one sender has seen of its requests, and how it tags them.
#[derive(Debug)]
pub(super) struct Tagging {
    tuner: Option<Tuner>,
    pub(super) strategy: Strategy,
    seen: u64,
}

impl Tagging {
    pub(super) fn new(tuning: Tuning, strategy: Strategy) -> Self {
        let tunes = tuning == Tuning::Stretch;
        Tagging {
            tuner: tunes.then(|| Tuner::forgetting(SENDER_HALF_LIFE)),
            strategy,
            seen: 0,
        }
    }

    /// It sends a request.
    pub(super) fn sees(&mut self, opsets: &[Opset]) {
        let Some(tuner) = &mut self.tuner else {
            return;
        };
        observe(tuner, opsets);
        self.seen += 1;
        if self.seen % CHOOSE_EVERY == 0 {
            self.strategy = tuner.deadline();
        }
    }
}

fn observe(tuner: &mut Tuner, opsets: &[Opset]) {
    if let Some(place) = bottleneck(opsets) {
        tuner.observe(opsets[place].cost, opsets.iter().map(|one| one.cost).sum());
    }
}

/// What all senders told of their requests, and how busy nodes were when levels were chosen last.
#[derive(Debug)]
pub(super) struct Told {
    tuner: Tuner,
    busy_ns: u64,
}

impl Default for Told {
    fn default() -> Self {
        Told {
            tuner: Tuner::forgetting(ALL_HALF_LIFE),
            busy_ns: 0,
        }
    }
}

impl World<'_> {
    /// The first choice of levels, if they are chosen.
    pub(super) fn plan_tuning(&mut self) {
        if self.spec.scheduler.tuning == Tuning::Levels {
            self.agenda.after(LEVELS_EVERY_NS, Event::Tune);
        }
    }

    /// A sender tells what it sends.
    pub(super) fn tell(&mut self, opsets: &[Opset]) {
        if self.spec.scheduler.tuning == Tuning::Levels {
            observe(&mut self.told.tuner, opsets);
        }
    }

    /// Levels are chosen, and all are told.
    pub(super) fn tune(&mut self) {
        self.plan_tuning();
        let (busy_ns, cluster) = (self.busy_ns(), &self.spec.cluster);
        let since_ns = busy_ns - std::mem::replace(&mut self.told.busy_ns, busy_ns);
        let servers = f64::from(cluster.nodes) * f64::from(cluster.permits);
        let load = since_ns as f64 / servers / LEVELS_EVERY_NS as f64;
        if let Some(tuned) = self.told.tuner.choose(load) {
            if tuned.levels != self.levels {
                for node in &mut self.nodes {
                    node.set_levels(&tuned.levels);
                }
                self.levels = tuned.levels;
            }
        }
    }
}
