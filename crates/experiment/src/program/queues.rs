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

use super::levels::{round, LevelQueue};
use settings::table::Fields;

use super::{figures, seed, Program, Work};

/// Priorities, and so levels (Rein 5.2).
const LEVELS: usize = 5;

/// `queue`: one of `levels` (ours), `shared-levels` (Rein's: a queue in order of arrival for each
/// level, which all threads share), `heap` (a binary heap behind a lock), `skip-list` (by Lotan and
/// Shavit's scheme), `arrival` (one queue without priorities), `lanes` (ours without priorities: a
/// queue in order of arrival for each thread); `threads`; `operations`, of each thread.
pub(super) const QUEUES: Program = Program {
    name: "rein-queues",
    timed: true,
    prepare,
};

fn prepare(parameters: &Fields) -> Work {
    let words: Vec<&'static str> = ALL.iter().map(|(word, _)| *word).collect();
    let word = parameters.word("queue", &words);
    let threads = parameters.count("threads").unwrap_or(32);
    let operations = parameters.count("operations").unwrap_or(100_000);
    let seed = seed(parameters);
    Box::new(move |_| {
        let steps = |thread| steps(seed, thread as u64, operations);
        let all: Vec<Vec<Step>> = (0..threads).map(steps).collect();
        let Some((_, queue)) = ALL.iter().find(|(one, _)| *one == word) else {
            unreachable!("one of the words")
        };
        Ok(figures([
            ("operations", queue(&all, Question::Rate)),
            ("inversions", queue(&all, Question::Inversions)),
        ]))
    })
}

/// Puts in with this priority, or takes out.
type Step = Option<u8>;

/// What is asked of a queue that threads with these steps share.
type Queue = fn(&[Vec<Step>], Question) -> f64;

#[derive(Clone, Copy, Debug)]
enum Question {
    /// Operations a second.
    Rate,
    /// Part of what was taken out while something of a higher priority was in the queue.
    Inversions,
}

/// All of them, by the words of scenarios.
const ALL: [(&str, Queue); 6] = [
    ("levels", |all, question| lanes(all, question, LEVELS)),
    ("shared-levels", shared_levels),
    ("heap", heap),
    ("skip-list", skip_list),
    ("arrival", arrival),
    ("lanes", |all, question| lanes(all, question, 1)),
];

fn steps(seed: u64, thread: u64, count: usize) -> Vec<Step> {
    let mut rng = Rng::new(seed, thread);
    let mut step = |_| {
        let bits = rng.bits();
        (bits % 2 == 0).then_some(((bits >> 1) % LEVELS as u64) as u8)
    };
    (0..count).map(&mut step).collect()
}

fn rates(count: usize) -> Levels {
    Levels::exponential(count, 2.0, 1, Rates::Linear)
}

/// A lane for each thread; with one level nothing but order of arrival is left of it.
fn lanes(all: &[Vec<Step>], question: Question, count: usize) -> f64 {
    let queue = LevelQueue::new(&rates(count), all.len());
    ask(question, all, |_| {
        let Some(mut handle) = queue.handle() else {
            unreachable!("a lane for each thread")
        };
        move |step| match step {
            Some(level) => {
                handle.push(usize::from(level), level);
                None
            }
            None => handle.pop(),
        }
    })
}

/// "Multiple FIFO queues" (Rein 3.3): each thread walks the round of deficit round robin
/// by itself, as in ours, so that the two differ by their lanes alone.
fn shared_levels(all: &[Vec<Step>], question: Question) -> f64 {
    let queues: [SegQueue<u8>; LEVELS] = std::array::from_fn(|_| SegQueue::new());
    let round = round(&rates(LEVELS));
    ask(question, all, |thread| {
        let (queues, round) = (&queues, &round);
        let mut at = thread % round.len();
        move |step| match step {
            Some(level) => {
                queues[usize::from(level)].push(level);
                None
            }
            None => {
                let turn = usize::from(round[at]);
                at = (at + 1) % round.len();
                let own = queues[turn].pop();
                own.or_else(|| queues.iter().find_map(SegQueue::pop))
            }
        }
    })
}

fn heap(all: &[Vec<Step>], question: Question) -> f64 {
    let heap = Mutex::new(BinaryHeap::new());
    ask(question, all, |_| {
        |step| {
            let mut heap = heap.lock().unwrap_or_else(PoisonError::into_inner);
            match step {
                Some(level) => {
                    heap.push(Reverse(level));
                    None
                }
                None => heap.pop().map(|Reverse(level)| level),
            }
        }
    })
}

fn skip_list(all: &[Vec<Step>], question: Question) -> f64 {
    let (list, number) = (SkipSet::new(), AtomicU64::new(0));
    ask(question, all, |_| {
        |step| match step {
            Some(level) => {
                // Equal priorities in order of arrival, which also makes them different entries.
                list.insert((level, number.fetch_add(1, Relaxed)));
                None
            }
            None => list.pop_front().map(|entry| entry.value().0),
        }
    })
}

fn arrival(all: &[Vec<Step>], question: Question) -> f64 {
    let queue = SegQueue::new();
    ask(question, all, |_| {
        |step| match step {
            Some(level) => {
                queue.push(level);
                None
            }
            None => queue.pop(),
        }
    })
}

/// Asks a queue of which `worker` makes a thread's way in and out: what it takes out, if it does.
fn ask<W: FnMut(Step) -> Option<u8> + Send>(
    question: Question,
    all: &[Vec<Step>],
    worker: impl Fn(usize) -> W,
) -> f64 {
    match question {
        Question::Rate => rate(all, worker),
        Question::Inversions => inversions(all, worker),
    }
}

/// All threads take their steps in turn, one each, as on as many processors that are equally fast:
/// what is left in the queue is then known exactly at every step, which it is not while threads
/// race.
fn inversions<W: FnMut(Step) -> Option<u8>>(all: &[Vec<Step>], worker: impl Fn(usize) -> W) -> f64 {
    let mut workers: Vec<W> = (0..all.len()).map(worker).collect();
    let mut waiting = [0u64; LEVELS];
    let (mut taken, mut inverted) = (0u64, 0u64);
    for number in 0..all.iter().map(Vec::len).max().unwrap_or(0) {
        for (work, steps) in workers.iter_mut().zip(all) {
            let Some(step) = steps.get(number) else {
                continue;
            };
            if let Some(level) = step {
                waiting[usize::from(*level)] += 1;
            }
            if let Some(level) = work(*step).map(usize::from) {
                waiting[level] -= 1;
                taken += 1;
                inverted += u64::from(waiting[..level].iter().any(|some| *some > 0));
            }
        }
    }
    inverted as f64 / taken as f64
}

/// Operations a second of a thread for each list of steps, with what `worker` makes for it.
fn rate<W: FnMut(Step) -> Option<u8> + Send>(
    all: &[Vec<Step>],
    worker: impl Fn(usize) -> W,
) -> f64 {
    let barrier = Barrier::new(all.len());
    let operations: usize = all.iter().map(Vec::len).sum();
    let spans: Vec<(Instant, Instant)> = std::thread::scope(|scope| {
        let start = |(number, steps)| {
            let (mut work, barrier): (W, &Barrier) = (worker(number), &barrier);
            let steps: &Vec<Step> = steps;
            scope.spawn(move || {
                barrier.wait();
                let began = Instant::now();
                for step in steps {
                    std::hint::black_box(work(*step));
                }
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

    fn all() -> Vec<Vec<Step>> {
        (0..4).map(|thread| steps(1, thread, 5_000)).collect()
    }

    #[test]
    fn every_queue_is_measured() {
        for (word, queue) in ALL {
            let per_s = queue(&all(), Question::Rate);
            assert!(per_s.is_finite() && per_s > 0.0, "{word}");
        }
    }

    #[test]
    fn priority_queues_invert_nothing_and_one_without_priorities_most() {
        let [levels, shared, heap, skip_list, arrival, lanes] =
            ALL.map(|(_, queue)| queue(&all(), Question::Inversions));
        assert_eq!((heap, skip_list), (0.0, 0.0));
        for (relaxed, without) in [(levels, lanes), (shared, arrival)] {
            assert!(0.0 < relaxed && relaxed < without, "{relaxed} {without}");
        }
    }
}
