//! `rein-queues`: a queue that threads share, put into and taken out of at random (Rein 5.2, figure
//! 13).
//!
//! Each thread puts in or takes out, half and half, with one of five priorities drawn alike, as
//! often as `operations` says. Steps are drawn before the clock starts.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Barrier, Mutex, PoisonError};
use std::time::Instant;

use crossbeam_queue::SegQueue;
use crossbeam_skiplist::SkipSet;
use policy::multiget::{Levels, Rates};
use workload::rng::Rng;

use super::levels::LevelQueue;
use super::{figures, Parameters, Program, Work};

/// Priorities, and so levels (Rein 5.2).
const LEVELS: usize = 5;

/// `queue`: one of `levels` (ours), `heap` (a binary heap behind a lock), `skip-list` (by Lotan and
/// Shavit's scheme), `arrival` (one queue without priorities); `threads`; `operations`, of each
/// thread.
pub(super) const QUEUES: Program = Program {
    name: "rein-queues",
    timed: true,
    prepare,
};

fn prepare(parameters: &Parameters) -> Work {
    let queue = parameters.word("queue", &["levels", "heap", "skip-list", "arrival"]);
    let threads = parameters.count("threads", 32);
    let operations = parameters.count("operations", 100_000);
    let seed = parameters.seed();
    Box::new(move |_| {
        let steps = |thread| steps(seed, thread as u64, operations);
        let all: Vec<Vec<Step>> = (0..threads).map(steps).collect();
        let per_s = match queue {
            "levels" => levels(&all),
            "heap" => heap(&all),
            "skip-list" => skip_list(&all),
            _ => arrival(&all),
        };
        Ok(figures([("operations", per_s)]))
    })
}

/// Puts in with this priority, or takes out.
type Step = Option<u8>;

fn steps(seed: u64, thread: u64, count: usize) -> Vec<Step> {
    let mut rng = Rng::new(seed, thread);
    let mut step = |_| {
        let bits = rng.bits();
        (bits % 2 == 0).then_some(((bits >> 1) % LEVELS as u64) as u8)
    };
    (0..count).map(&mut step).collect()
}

fn levels(all: &[Vec<Step>]) -> f64 {
    let levels = Levels::exponential(LEVELS, 2.0, 1, Rates::Linear);
    let queue = LevelQueue::new(&levels, all.len());
    rate(all, |_| {
        let Some(mut handle) = queue.handle() else {
            unreachable!("a lane for each thread")
        };
        move |step| match step {
            Some(level) => handle.push(usize::from(level), 1u64),
            None => {
                std::hint::black_box(handle.pop());
            }
        }
    })
}

fn heap(all: &[Vec<Step>]) -> f64 {
    let heap = Mutex::new(BinaryHeap::new());
    rate(all, |_| {
        |step| {
            let mut heap = heap.lock().unwrap_or_else(PoisonError::into_inner);
            match step {
                Some(level) => heap.push((Reverse(level), 1u64)),
                None => {
                    std::hint::black_box(heap.pop());
                }
            }
        }
    })
}

fn skip_list(all: &[Vec<Step>]) -> f64 {
    let (list, number) = (SkipSet::new(), AtomicU64::new(0));
    rate(all, |_| {
        |step| match step {
            // Equal priorities in order of arrival, which also makes them different entries.
            Some(level) => drop(list.insert((level, number.fetch_add(1, Relaxed)))),
            None => {
                std::hint::black_box(list.pop_front());
            }
        }
    })
}

fn arrival(all: &[Vec<Step>]) -> f64 {
    let queue = SegQueue::new();
    rate(all, |_| {
        |step| match step {
            Some(level) => queue.push((level, 1u64)),
            None => {
                std::hint::black_box(queue.pop());
            }
        }
    })
}

/// Operations a second of a thread for each list of steps, with what `worker` makes for it.
fn rate<W: FnMut(Step) + Send>(all: &[Vec<Step>], worker: impl Fn(usize) -> W) -> f64 {
    let barrier = Barrier::new(all.len());
    let operations: usize = all.iter().map(Vec::len).sum();
    let spans: Vec<(Instant, Instant)> = std::thread::scope(|scope| {
        let start = |(number, steps)| {
            let (mut work, barrier): (W, &Barrier) = (worker(number), &barrier);
            let steps: &Vec<Step> = steps;
            scope.spawn(move || {
                barrier.wait();
                let began = Instant::now();
                steps.iter().for_each(|step| work(*step));
                (began, Instant::now())
            })
        };
        let threads: Vec<_> = all.iter().enumerate().map(start).collect();
        let joined = threads.into_iter().filter_map(|thread| thread.join().ok());
        joined.collect()
    });
    let began = spans.iter().map(|(began, _)| *began).min();
    let ended = spans.iter().map(|(_, ended)| *ended).max();
    let (Some(began), Some(ended)) = (began, ended) else {
        return f64::NAN;
    };
    operations as f64 / (ended - began).as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_half_and_half_and_of_every_priority() {
        let steps = steps(1, 2, 10_000);
        let put = steps.iter().flatten().count();
        assert!((4_700..5_300).contains(&put), "{put}");
        for level in 0..LEVELS as u8 {
            let some = steps.iter().filter(|step| **step == Some(level)).count();
            assert!((800..1_200).contains(&some), "{level}: {some}");
        }
    }

    #[test]
    fn every_queue_is_measured() {
        let all: Vec<Vec<Step>> = (0..3).map(|thread| steps(1, thread, 500)).collect();
        for measured in [levels(&all), heap(&all), skip_list(&all), arrival(&all)] {
            assert!(measured.is_finite() && measured > 0.0);
        }
    }
}
