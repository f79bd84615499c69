//! Where the time of late requests went, and behind whom they waited.

use std::collections::BTreeMap;

use policy::Nanos;
use telemetry::TimeParts;

/// Before what somebody waited for a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Line {
    /// A core.
    Core,
    /// A handler.
    Handler,
    /// The disk.
    Device,
}

impl Line {
    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            Self::Core => "core",
            Self::Handler => "handler",
            Self::Device => "device",
        }
    }
}

/// Time waited, by the line and by who had what it leads to, ns.
pub type Delays = BTreeMap<(Line, String), Nanos>;

/// Where the time of some requests went, added up.
#[derive(Clone, Debug, Default)]
pub struct Where {
    /// How many they are.
    pub requests: u64,
    /// The parts of their time.
    pub parts: TimeParts,
    /// Behind whom they waited.
    pub behind: Delays,
}

impl Where {
    /// Adds `count` requests alike.
    pub fn count(&mut self, parts: &TimeParts, behind: &Delays, count: u64) {
        self.requests += count;
        for (sum, ns) in self.parts.0.iter_mut().zip(parts.0) {
            *sum = sum.saturating_add(ns.saturating_mul(count));
        }
        for (whom, ns) in behind {
            *self.behind.entry(whom.clone()).or_default() += ns.saturating_mul(count);
        }
    }

    fn add(&mut self, other: &Self) {
        self.requests += other.requests;
        self.parts.add(&other.parts);
        for (whom, ns) in &other.behind {
            *self.behind.entry(whom.clone()).or_default() += ns;
        }
    }
}

/// The same of late: of the present stretch of time and of the one before it.
#[derive(Clone, Debug, Default)]
pub struct Lately {
    now: Where,
    before: Where,
    began: Nanos,
}

/// A stretch is this long: what is shown is between one and two of them old.
const STRETCH_NS: Nanos = 600_000_000_000;

impl Lately {
    /// Adds requests at `now`.
    pub fn count(&mut self, now: Nanos, parts: &TimeParts, behind: &Delays, count: u64) {
        self.turn(now);
        self.now.count(parts, behind, count);
    }

    /// Both stretches together.
    pub fn all(&mut self, now: Nanos) -> Where {
        self.turn(now);
        let mut all = self.before.clone();
        all.add(&self.now);
        all
    }

    fn turn(&mut self, now: Nanos) {
        let passed = now.saturating_sub(self.began);
        if passed < STRETCH_NS {
            return;
        }
        let ended = std::mem::take(&mut self.now);
        self.before = if passed < 2 * STRETCH_NS {
            ended
        } else {
            Where::default()
        };
        self.began = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_older_than_two_stretches_is_forgotten() {
        let whom = (Line::Device, "batch".to_string());
        let behind = Delays::from([(whom.clone(), 5)]);
        let parts = TimeParts(std::array::from_fn(|_| 1));
        let mut lately = Lately::default();
        lately.count(1, &parts, &behind, 2);
        lately.count(STRETCH_NS, &parts, &behind, 1);
        let all = lately.all(STRETCH_NS + 1);
        assert_eq!(
            (all.requests, all.parts.0[0], all.behind[&whom]),
            (3, 3, 15)
        );
        assert_eq!(lately.all(2 * STRETCH_NS).requests, 1);
        assert_eq!(lately.all(9 * STRETCH_NS).requests, 0);
    }
}
