//! Whether the numbers describe the server, or the generator that made them.

use super::Latency;

/// How the load generator itself fared.
#[derive(Clone, Debug, Default)]
pub struct Generator {
    /// From the intended to the real send time (open loop only).
    pub lag: Latency,
    /// Share of the run's wall time that the busiest client thread spent on a CPU; above 0.95 a
    /// closed loop measures the client.
    pub busy: f64,
    /// CPU time of all client threads, seconds.
    pub cpu_s: f64,
    /// Requests that a front sent on to another one, each time they were.
    pub moved: u64,
    /// The threads never slept: that they were busy says nothing.
    pub spins: bool,
}

/// A lag above this is the generator's own delay, not the timer's.
const LAG_NS_MAX: u64 = 2_000_000;

impl Generator {
    /// Says so when the numbers describe the generator rather than the server.
    pub fn complaint(&self) -> Option<String> {
        let lag_ns = self.lag.percentile_ns(99.0);
        let busy = self.busy * 100.0;
        if lag_ns > LAG_NS_MAX {
            let lag_ms = lag_ns as f64 / 1e6;
            return Some(format!(
                "the load generator was late, not only the server: 1 % of requests were sent \
                 {lag_ms:.1} ms or more after their time (CPU {busy:.0} % busy); lower the rate \
                 or give it a core of its own"
            ));
        }
        if self.busy > 0.95 && !self.spins {
            return Some(format!(
                "the load generator used its whole core (CPU {busy:.0} % busy): the server may be \
                 able to do more than this"
            ));
        }
        None
    }

    pub(crate) fn add(&mut self, other: &Generator) {
        self.lag.add(&other.lag);
        self.busy = self.busy.max(other.busy);
        self.cpu_s += other.cpu_s;
        self.moved += other.moved;
        self.spins |= other.spins;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generator_owns_up() {
        let mut generator = Generator {
            busy: 0.5,
            ..Generator::default()
        };
        generator.lag.record(50_000);
        assert!(generator.complaint().is_none());
        generator.busy = 0.99;
        assert!(generator.complaint().expect("busy").contains("whole core"));
        generator.spins = true;
        assert!(generator.complaint().is_none());
        (0..100).for_each(|_| generator.lag.record(30_000_000));
        assert!(generator.complaint().expect("late").contains("was late"));
    }
}
