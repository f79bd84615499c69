//! Which processors run what.

use rustix::thread::{sched_getaffinity, sched_setaffinity, CpuSet};

use crate::error::ExperimentError;
use crate::spec::Pin;

/// Where the server and the load run on this machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Pinned {
    /// The server's processors.
    pub server: Vec<usize>,
    /// The load's.
    pub load: Vec<usize>,
}

/// Processors that this process may use, by number.
///
/// # Errors
/// [`ExperimentError::System`].
pub fn available() -> Result<Vec<usize>, ExperimentError> {
    let set = sched_getaffinity(None).map_err(|error| ExperimentError::System {
        what: "asking which processors may be used",
        source: error.into(),
    })?;
    Ok((0..CpuSet::MAX_CPU)
        .filter(|cpu| set.is_set(*cpu))
        .collect())
}

/// What a scenario wants, as far as the machine has it: processors are counted among those that may
/// be used, and with too few the server keeps at least one and the load the last.
pub fn pinned(pin: &Pin, available: &[usize]) -> Pinned {
    let of = |wanted: &[usize]| -> Vec<usize> {
        let found = wanted.iter().filter_map(|index| available.get(*index));
        found.copied().collect()
    };
    let or = |found: Vec<usize>, usual: Option<&usize>| {
        if found.is_empty() {
            usual.copied().into_iter().collect()
        } else {
            found
        }
    };
    Pinned {
        server: or(of(&pin.server), available.first()),
        load: or(of(&pin.load), available.last()),
    }
}

impl Pinned {
    /// The server's processors and the load's, each once.
    pub fn all(&self) -> Vec<usize> {
        let mut all = [self.server.as_slice(), &self.load].concat();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// What to know about figures measured so.
    pub fn note(&self) -> Option<String> {
        let shared = self.server.iter().any(|core| self.load.contains(core));
        shared.then(|| "the load shares processors with the server: speeds mean little".into())
    }
}

/// Moves this thread (and those that it starts later) to some processors.
///
/// # Errors
/// [`ExperimentError::System`].
pub fn to(cores: &[usize]) -> Result<(), ExperimentError> {
    let mut set = CpuSet::new();
    cores.iter().for_each(|core| set.set(*core));
    sched_setaffinity(None, &set).map_err(|error| ExperimentError::System {
        what: "moving to a processor",
        source: error.into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pin(server: &[usize], load: &[usize]) -> Pin {
        Pin {
            server: server.into(),
            load: load.into(),
        }
    }

    #[test]
    fn processors_are_counted_among_those_that_may_be_used() {
        let places = pinned(&pin(&[0, 1], &[2]), &[4, 6, 7]);
        assert_eq!((places.server, places.load), (vec![4, 6], vec![7]));
    }

    #[test]
    fn the_load_runs_on_the_last_one_where_nothing_is_said() {
        let places = pinned(&pin(&[0], &[]), &[0, 1, 2]);
        assert_eq!(places.load, [2]);
        assert_eq!(places.note(), None);
    }

    #[test]
    fn a_small_machine_shares_and_says_so() {
        let places = pinned(&pin(&[0, 1], &[3]), &[0]);
        assert_eq!((&places.server, &places.load), (&vec![0], &vec![0]));
        assert!(places.note().is_some());
    }
}
