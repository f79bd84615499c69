//! Whether a run had the machine to itself: what its host gave to others, and what other processes
//! took.

use std::collections::BTreeMap;
use std::time::Instant;

/// Ticks of `/proc` in a second (`USER_HZ`, 100 on every Linux that Rust supports).
const TICKS: f64 = 100.0;

/// A run is disturbed if its host withheld a larger part of the processors' time. Pauses are of
/// milliseconds, so at this part one request in two hundred may meet one.
const WITHHELD: f64 = 0.005;
/// Or if other processes used a larger part of it: rates are judged to a percent.
const OTHERS: f64 = 0.01;

/// What a machine tells of its processors, in ticks since it started.
#[derive(Clone, Debug, Default)]
pub struct Ticks {
    /// The host of a virtual machine gave to others while this machine had work (`steal`).
    pub withheld: u64,
    /// Used by each process but this one, with its children that have ended; kernel threads, which
    /// work for whoever makes them, are left out.
    pub processes: BTreeMap<u32, u64>,
}

/// Tells of some processors.
pub type Meter<'a> = dyn Fn(&[usize]) -> Ticks + 'a;

/// What disturbed a run, as parts of its processors' time, 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Disturbance {
    /// What the host gave to others.
    pub withheld: f64,
    /// What other processes of this machine used.
    pub others: f64,
}

impl Disturbance {
    /// Whether it is more than figures can bear.
    pub fn too_much(&self) -> bool {
        self.withheld > WITHHELD || self.others > OTHERS
    }

    /// The worse of both kinds, of two runs.
    pub fn worse(self, other: Self) -> Self {
        Self {
            withheld: self.withheld.max(other.withheld),
            others: self.others.max(other.others),
        }
    }
}

/// A time in which it is watched.
pub struct Watched<'a> {
    meter: &'a Meter<'a>,
    processors: Vec<usize>,
    begun: Instant,
    ticks: Ticks,
}

impl<'a> Watched<'a> {
    /// From now on, of these processors.
    pub fn begin(meter: &'a Meter<'a>, processors: Vec<usize>) -> Self {
        Self {
            ticks: meter(&processors),
            meter,
            processors,
            begun: Instant::now(),
        }
    }

    /// What disturbed it until now.
    pub fn end(&self) -> Disturbance {
        let now = (self.meter)(&self.processors);
        let had = self.begun.elapsed().as_secs_f64() * TICKS * self.processors.len() as f64;
        let part = |ticks: u64| ticks as f64 / had.max(1.0);
        let others = now.processes.iter().map(|(process, ticks)| {
            let before = self.ticks.processes.get(process);
            ticks.saturating_sub(before.copied().unwrap_or_default())
        });
        Disturbance {
            withheld: part(now.withheld.saturating_sub(self.ticks.withheld)),
            others: part(others.sum()),
        }
    }
}

/// What was found of all runs of an experiment.
#[derive(Debug, Default)]
pub struct Disturbances {
    again: usize,
    still: usize,
    worst: Disturbance,
}

impl Disturbances {
    /// One more run, made so many times, and what disturbed the one that counts.
    pub fn add(&mut self, tried: usize, found: Disturbance) {
        self.again += tried.saturating_sub(1);
        self.still += usize::from(found.too_much());
        self.worst = self.worst.worse(found);
    }

    /// What to know of it, if anything.
    pub fn note(&self) -> Option<String> {
        let percent = |part: f64| part * 100.0;
        (self.again + self.still > 0).then(|| {
            format!(
                "runs of which the host gave more than {} % of the processors' time to others, or other processes used more than {} % of it, are disturbed: \
                 {} were made again for it, and {} that count are so still (the worst {:.1} % and {:.1} %)",
                percent(WITHHELD),
                percent(OTHERS),
                self.again,
                self.still,
                percent(self.worst.withheld),
                percent(self.worst.others),
            )
        })
    }
}

/// As the system tells it (`/proc`); nothing where it does not.
pub fn ticks(processors: &[usize]) -> Ticks {
    let stat = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    let own = std::process::id();
    let folders = std::fs::read_dir("/proc").into_iter().flatten();
    let processes = folders.filter_map(|folder| {
        let process = folder.ok()?.file_name().to_str()?.parse().ok()?;
        // A process that has just ended is nobody's any more.
        let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        (process != own).then_some((process, used(&stat)?))
    });
    Ticks {
        withheld: withheld(&stat, processors),
        processes: processes.collect(),
    }
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

/// The kernel's thread that starts all others of its own.
const KTHREADD: &str = "2";

/// User and system time of a process and of its children that have ended (proc_pid_stat(5), fields
/// 14 to 17); `None` for a kernel thread.
fn used(stat: &str) -> Option<u64> {
    // Its name, the second field, may hold anything.
    let (before, rest) = stat.rsplit_once(')')?;
    let mut words = rest.split_whitespace();
    let parent = words.nth(1)?;
    let kernel = parent == KTHREADD || before.starts_with("2 ");
    let times = words.skip(9).take(4).map(|word| word.parse::<u64>().ok());
    times.sum::<Option<u64>>().filter(|_| !kernel)
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
    }

    #[test]
    fn a_process_used_its_time_and_its_children_s() {
        let stat = |id: u32, parent: u32| {
            format!("{id} (a) b) S {parent} 1 1 0 -1 4194560 1 2 3 4 10 20 300 4000 20 0 1 0 7")
        };
        assert_eq!(used(&stat(77, 1)), Some(4330));
        assert_eq!(used(&stat(77, 2)), None, "a kernel thread");
        assert_eq!(used(&stat(2, 0)), None, "that of all kernel threads");
        assert_eq!(used("nonsense"), None);
        let told = ticks(&[0]);
        assert!(!told.processes.contains_key(&std::process::id()));
        assert!(told.processes.contains_key(&1), "{told:?}");
    }

    #[test]
    fn others_are_those_that_worked_meanwhile() {
        let asked = std::cell::Cell::new(0);
        let meter = |_: &[usize]| {
            asked.set(asked.get() + 1);
            let processes: &[(u32, u64)] = match asked.get() {
                1 => &[(5, 1_000_000), (6, 70)],
                // One went on, one has ended, one is new.
                _ => &[(5, 1_000_003), (9, 4)],
            };
            Ticks {
                withheld: 0,
                processes: processes.iter().copied().collect(),
            }
        };
        let found = Watched::begin(&meter, vec![0]).end();
        // It took no time: all of a tick is the least that counts.
        assert_eq!((found.withheld, found.others), (0.0, 7.0));
        assert!(found.too_much());
    }

    #[test]
    fn what_disturbed_runs_is_told() {
        let of = |withheld, others| Disturbance { withheld, others };
        assert!(of(0.006, 0.0).too_much() && !of(0.004, 0.009).too_much());
        let mut quiet = Disturbances::default();
        quiet.add(1, of(0.004, 0.0));
        assert_eq!(quiet.note(), None);
        let mut restless = Disturbances::default();
        restless.add(2, of(0.001, 0.0));
        restless.add(3, of(0.021, 0.5));
        let note = restless.note().expect("three were made again");
        assert!(note.contains("3 were made again"), "{note}");
        assert!(note.contains("1 that count are so still"), "{note}");
        assert!(note.contains("the worst 2.1 % and 50.0 %"), "{note}");
    }
}
