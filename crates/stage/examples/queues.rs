//! `rein-queues`: the multi-level queue against a locked binary heap, a concurrent skip list and a concurrent
//! queue in order of arrival, 1 to 32 threads (Rein 5.2, figure 13).
//!
//! Each thread puts in or takes out, half and half, with one of five priorities drawn alike. The four take
//! turns, and a ratio is the median of those of single rounds, so that what else the machine does hits all alike.
//!
//! `cargo run --release -p entremet-stage --example queues -- [ROUNDS] [OPERATIONS]`

use crossbeam_queue::SegQueue;
use crossbeam_skiplist::SkipSet;
use policy::multiget::{Levels, Rates};
use stage::levels::LevelQueue;
use std::collections::BinaryHeap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Barrier, Mutex};
use std::time::Instant;

const LEVELS: usize = 5;

/// One thread's steps: `Some(level)` puts in, `None` takes out.
fn steps(seed: u64, count: usize) -> Vec<Option<u8>> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut draw = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state >> 33
    };
    let step = |_| (draw() % 2 == 0).then(|| (draw() % LEVELS as u64) as u8);
    (0..count).map(step).collect()
}

/// Operations a second of a thread for each list of steps, with what `worker` makes for it.
fn rate<W: FnMut(Option<u8>) + Send>(all: &[Vec<Option<u8>>], worker: impl Fn(usize) -> W) -> f64 {
    let barrier = Barrier::new(all.len());
    let operations: usize = all.iter().map(Vec::len).sum();
    let spans: Vec<(Instant, Instant)> = std::thread::scope(|scope| {
        let start = |(number, steps): (usize, &Vec<Option<u8>>)| {
            let (mut work, barrier, steps) = (worker(number), &barrier, steps.clone());
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
        return 0.0;
    };
    operations as f64 / (ended - began).as_secs_f64()
}

/// Rates of level queue, locked heap, skip list, arrival order.
fn round(all: &[Vec<Option<u8>>]) -> [f64; 4] {
    let levels = LevelQueue::new(&Levels::exponential(LEVELS, 2.0, 1, Rates::Linear));
    let ours = rate(all, |number| {
        let (levels, mut consumer) = (&levels, levels.consumer(number));
        move |step| match step {
            Some(level) => levels.push(usize::from(level), 1u64),
            None => {
                std::hint::black_box(consumer.pop());
            }
        }
    });
    let heap = Mutex::new(BinaryHeap::new());
    let locked = rate(all, |_| {
        |step| {
            let Ok(mut heap) = heap.lock() else { return };
            match step {
                Some(level) => heap.push((std::cmp::Reverse(level), 1u64)),
                None => {
                    std::hint::black_box(heap.pop());
                }
            }
        }
    });
    let (list, number) = (SkipSet::new(), AtomicU64::new(0));
    let skip = rate(all, |_| {
        |step| match step {
            Some(level) => drop(list.insert((level, number.fetch_add(1, Relaxed)))),
            None => {
                std::hint::black_box(list.pop_front());
            }
        }
    });
    let queue = SegQueue::new();
    let arrival = rate(all, |_| {
        |step| match step {
            Some(level) => queue.push((level, 1u64)),
            None => {
                std::hint::black_box(queue.pop());
            }
        }
    });
    [ours, locked, skip, arrival]
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    let words = std::env::args().skip(1);
    let words: Vec<usize> = words.filter_map(|word| word.parse().ok()).collect();
    let rounds = words.first().copied().unwrap_or(21).max(1);
    let operations = words.get(1).copied().unwrap_or(100_000);
    println!("threads   levels M/s   heap M/s   skip M/s   fifo M/s | levels / heap, skip, fifo");
    for threads in [1, 2, 4, 8, 16, 32] {
        let measured: Vec<[f64; 4]> = (0..rounds)
            .map(|n| {
                let all = |thread| steps((n * 64 + thread + 1) as u64, operations);
                round(&(0..threads).map(all).collect::<Vec<_>>())
            })
            .collect();
        let of = |which: usize| median(measured.iter().map(|r| r[which] / 1e6).collect());
        let ratio = |which: usize| median(measured.iter().map(|r| r[0] / r[which]).collect());
        println!(
            "{threads:>7} {:>12.2} {:>10.2} {:>10.2} {:>10.2} | {:>13.2} {:>5.2} {:>5.2}",
            of(0),
            of(1),
            of(2),
            of(3),
            ratio(1),
            ratio(2),
            ratio(3)
        );
    }
}
