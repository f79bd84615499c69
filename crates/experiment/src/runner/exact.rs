//! Runs in simulated time. Nothing on the machine disturbs what they come to, so as many are made
//! at once as there are processors.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

use super::keeper::Keeper;
use super::make::Ready;
use crate::error::ExperimentError;
use crate::observed::Observed;
use crate::program::{self, Host};
use crate::simulated;
use crate::way::Way;

/// Plays one. An interrupt leaves nothing to be judged.
pub(super) fn play(
    ready: &Ready,
    host: &Host,
    keeper: &Keeper,
) -> Result<Observed, ExperimentError> {
    let observed = match ready.way {
        Way::Simulated => simulated::play(&ready.scenario, keeper.stop).map_err(|source| {
            let label = ready.label.clone();
            ExperimentError::Simulated { label, source }
        })?,
        _ => program(ready, host)?,
    };
    keeper.goes_on()?;
    Ok(observed)
}

/// Runs a program.
pub(super) fn program(ready: &Ready, host: &Host) -> Result<Observed, ExperimentError> {
    program::play(&ready.scenario, host).map_err(|problems| {
        let label = ready.label.clone();
        ExperimentError::Program { label, problems }
    })
}

/// What became of a run.
type Became = Result<Observed, ExperimentError>;

/// Makes all of `runs`, several at once, and hands each to `take` in their order. None begins after
/// `take` has said that there was enough, or failed.
pub(super) fn each<T: Sync, E>(
    at_once: usize,
    runs: &[T],
    make: impl Fn(&T) -> Became + Sync,
    mut take: impl FnMut(usize, Became) -> Result<bool, E>,
) -> Result<(), E> {
    let next = AtomicUsize::new(0);
    thread::scope(|threads| {
        let (became, made) = mpsc::channel();
        for _ in 0..at_once.clamp(1, runs.len().max(1)) {
            let (became, next, make) = (became.clone(), &next, &make);
            threads.spawn(move || loop {
                let index = next.fetch_add(1, Ordering::Relaxed);
                let Some(run) = runs.get(index) else { break };
                // Nobody takes it any more when there was enough.
                if became.send((index, make(run))).is_err() {
                    break;
                }
            });
        }
        drop(became);
        let mut early = BTreeMap::new();
        let mut wanted = 0;
        // All have gone before all was made only where one panicked, which `scope` tells.
        for (index, run) in made {
            early.insert(index, run);
            while let Some(run) = early.remove(&wanted) {
                if !take(wanted, run)? {
                    return Ok(());
                }
                wanted += 1;
            }
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;

    fn made(took_s: f64) -> Became {
        Ok(Observed {
            took_s,
            ..Observed::default()
        })
    }

    #[test]
    fn several_are_made_at_once_and_taken_in_order() {
        // The first is not done before the second has begun, nor the third before the fourth.
        let pairs = [Barrier::new(2), Barrier::new(2)];
        let make = |index: &usize| {
            pairs[index / 2].wait();
            made(*index as f64)
        };
        let mut taken = Vec::new();
        let all = each(2, &[0, 1, 2, 3], make, |index, became| {
            taken.push((index, became?.took_s));
            Ok::<_, ExperimentError>(true)
        });
        assert!(all.is_ok());
        assert_eq!(taken, [(0, 0.0), (1, 1.0), (2, 2.0), (3, 3.0)]);
    }

    #[test]
    fn the_first_that_is_not_wanted_is_the_last() {
        let runs: Vec<usize> = (0..100).collect();
        let mut taken = 0;
        let end = each(
            3,
            &runs,
            |_| made(0.0),
            |index, _| {
                taken += 1;
                Ok::<_, ()>(index < 4)
            },
        );
        assert_eq!((end, taken), (Ok(()), 5));
        let failed = each(3, &runs, |_| made(0.0), |index, _| Err::<bool, _>(index));
        assert_eq!(failed, Err(0));
        assert_eq!(each(3, &[], |_: &()| made(0.0), |_, _| Err(())), Ok(()));
    }

    #[test]
    #[should_panic(expected = "a scoped thread panicked")]
    fn what_panics_is_not_lost() {
        let make = |index: &usize| match index {
            1 => panic!("of the run"),
            _ => made(0.0),
        };
        let _ = each(2, &[0, 1, 2], make, |_, _| Ok::<_, ()>(true));
    }
}
