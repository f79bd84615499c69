//! Whether the machine is quiet enough for figures to mean something.

use std::time::Instant;

/// Ticks of `/proc/stat` in a second (`USER_HZ`, 100 on every Linux that Rust supports).
const TICKS: f64 = 100.0;

/// Runs of which a host withheld a larger part of the processors' time are made again. Pauses are
/// of milliseconds, so at this part one request in two hundred may meet one.
const DISTURBED: f64 = 0.005;

/// Tells of some processors how much of their time the host of a virtual machine gave to others
/// while this machine had work for them (`steal`), ticks since it started.
pub type Ticks<'a> = dyn Fn(&[usize]) -> u64 + 'a;

/// What a host withholds since a time.
pub struct Withheld<'a> {
    of: &'a Ticks<'a>,
    processors: Vec<usize>,
    begun: Instant,
    ticks: u64,
}

impl<'a> Withheld<'a> {
    /// From now on, of these processors.
    pub fn begin(of: &'a Ticks<'a>, processors: Vec<usize>) -> Self {
        let ticks = of(&processors);
        Self {
            of,
            processors,
            begun: Instant::now(),
            ticks,
        }
    }

    /// Part of these processors' time until now.
    pub fn part(&self) -> f64 {
        let ticks = (self.of)(&self.processors).saturating_sub(self.ticks);
        let had = self.begun.elapsed().as_secs_f64() * TICKS * self.processors.len() as f64;
        ticks as f64 / had.max(1.0)
    }
}

/// Whether a run of which so much was withheld is to be made again.
pub fn disturbed(part: f64) -> bool {
    part > DISTURBED
}

/// What a host did to the runs of an experiment.
#[derive(Debug, Default)]
pub struct Disturbance {
    again: usize,
    still: usize,
    worst: f64,
}

impl Disturbance {
    /// One more run, made so many times; of the one that counts this part was withheld.
    pub fn add(&mut self, tried: usize, withheld: f64) {
        self.again += tried.saturating_sub(1);
        self.still += usize::from(disturbed(withheld));
        self.worst = self.worst.max(withheld);
    }

    /// What to know of it, if anything.
    pub fn note(&self) -> Option<String> {
        (self.again + self.still > 0).then(|| {
            format!(
                "the host gave more than {} % of the processors' time to others: {} runs were made again for it, and in {} \
                 that count it is so still (the worst {:.1} %)",
                DISTURBED * 100.0,
                self.again,
                self.still,
                self.worst * 100.0
            )
        })
    }
}

/// As the system tells it (`/proc/stat`); 0 where it does not.
pub fn withheld_ticks(processors: &[usize]) -> u64 {
    let stat = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    withheld(&stat, processors)
}

/// The eighth figure of each processor's line.
fn withheld(stat: &str, processors: &[usize]) -> u64 {
    let of = |line: &str| {
        let mut words = line.strip_prefix("cpu")?.split(' ');
        let processor = words.next()?.parse().ok()?;
        processors.contains(&processor).then_some(())?;
        words.nth(7)?.parse::<u64>().ok()
    };
    stat.lines().filter_map(of).sum()
}

/// What a run itself adds to the load average beyond one process for each processor.
const OWN: f64 = 0.5;

/// The load average of the last minute (Linux); `None` where the system does not say.
pub fn load_average() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/loadavg").ok()?;
    text.split_whitespace().next()?.parse().ok()
}

/// What to know when more wants to run than the machine has processors for.
pub fn note(load_average: f64, processors: usize) -> Option<String> {
    (load_average > processors as f64 + OWN).then(|| {
        format!(
            "the machine was busy with something else (load average {load_average:.1}, {processors} processors): \
             neither rates nor latencies mean much"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_host_withholds_is_the_eighth_figure_of_the_processors_asked_for() {
        let stat = "cpu  9 9 9 9 9 9 9 99 9 9\ncpu0 1 2 3 4 5 6 7 30 0 0\ncpu1 1 2 3 4 5 6 7 12 0 0\nintr 5\n";
        assert_eq!(withheld(stat, &[0, 1]), 42);
        assert_eq!(withheld(stat, &[1]), 12);
        assert_eq!(withheld("", &[0]), 0);
        assert!(disturbed(0.006) && !disturbed(0.004));
    }

    #[test]
    fn what_a_host_did_is_told() {
        let mut quiet = Disturbance::default();
        quiet.add(1, 0.004);
        assert_eq!(quiet.note(), None);
        let mut restless = Disturbance::default();
        restless.add(2, 0.001);
        restless.add(3, 0.021);
        let note = restless.note().expect("three were made again");
        assert!(note.contains("3 runs were made again"), "{note}");
        assert!(note.contains("in 1 that count"), "{note}");
        assert!(note.contains("the worst 2.1 %"), "{note}");
    }

    #[test]
    fn a_busy_machine_is_told() {
        assert_eq!(note(2.3, 2), None);
        assert!(note(2.6, 2)
            .expect("busy")
            .contains("load average 2.6, 2 processors"));
    }
}
