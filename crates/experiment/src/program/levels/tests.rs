use super::LevelQueue;
use policy::multiget::{Levels, Rates};
use proptest::prelude::*;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

fn levels(count: usize) -> Levels {
    Levels::exponential(count, 2.0, 1, Rates::Linear)
}

proptest! {
    /// While all levels have items, each consumer serves them at their rates, exactly over whole
    /// rounds.
    #[test]
    fn rates_hold_over_rounds(count in 1usize..8, rounds in 1usize..20) {
        let queue = LevelQueue::new(&levels(count), 1);
        let length = count * (count + 1) / 2;
        let mut handle = queue.handle().expect("a lane");
        for level in 0..count {
            for _ in 0..rounds * count {
                handle.push(level, level);
            }
        }
        let mut served = vec![0; count];
        for _ in 0..rounds * length {
            served[handle.pop().expect("items")] += 1;
        }
        let wanted: Vec<usize> = (0..count).map(|level| rounds * (count - level)).collect();
        prop_assert_eq!(served, wanted);
    }

    /// Steep rates are scaled to a short round, and nobody starves: every level has a turn in it.
    #[test]
    fn nobody_starves(count in 1usize..16) {
        let queue = LevelQueue::new(&Levels::exponential(count, 2.0, 1, Rates::Geometric(4)), 1);
        let mut handle = queue.handle().expect("a lane");
        for level in 0..count {
            for _ in 0..200 {
                handle.push(level, level);
            }
        }
        let mut served = vec![0; count];
        for _ in 0..100 {
            served[handle.pop().expect("items")] += 1;
        }
        prop_assert!(served.iter().all(|turns| *turns > 0), "{served:?}");
        prop_assert!(served.windows(2).all(|pair| pair[0] + 1 >= pair[1]), "{served:?}");
    }
}

#[test]
fn an_empty_level_costs_no_turn_and_order_holds_within_a_level() {
    let queue = LevelQueue::new(&levels(3), 2);
    let mut handle = queue.handle().expect("a lane");
    for item in 0..10 {
        handle.push(2, item);
    }
    handle.push(99, 10);
    let all: Vec<i32> = std::iter::from_fn(|| handle.pop()).collect();
    assert_eq!(all, (0..=10).collect::<Vec<_>>());
}

#[test]
fn nothing_waits_for_a_thread_that_is_gone() {
    let queue = LevelQueue::new(&levels(2), 3);
    let mut handle = queue.handle().expect("a lane");
    for _ in 0..40 {
        handle.push(0, "own");
    }
    queue.handle().expect("a lane").push(1, "left behind");
    let taken: Vec<_> = (0..32).filter_map(|_| handle.pop()).collect();
    assert_eq!(taken.len(), 32);
    assert!(taken.contains(&"left behind"));
}

/// A level that was found empty and has something again is found again, by its owner and by others.
#[test]
fn what_comes_after_a_level_was_empty_is_found() {
    let queue = LevelQueue::new(&levels(3), 2);
    let (mut owner, mut visitor) = (
        queue.handle().expect("a lane"),
        queue.handle().expect("a lane"),
    );
    for item in 0..20 {
        let level = item % 3;
        owner.push(level, item);
        let taken = match item % 2 {
            0 => owner.pop(),
            _ => visitor.pop(),
        };
        assert_eq!(taken, Some(item));
        assert_eq!((owner.pop(), visitor.pop()), (None, None));
    }
}

#[test]
fn a_lane_that_is_given_back_keeps_what_is_in_it() {
    let queue = LevelQueue::new(&levels(2), 1);
    let mut handle = queue.handle().expect("a lane");
    assert!(queue.handle().is_none());
    handle.push(1, "left");
    drop(handle);
    let mut again = queue.handle().expect("given back");
    assert_eq!((again.pop(), again.pop()), (Some("left"), None));
}

/// Four threads put in, four take out: everything comes out once, and in order of arrival of each
/// producer within a level.
#[test]
fn threads_lose_and_repeat_nothing() {
    const EACH: usize = 20_000;
    let queue = LevelQueue::new(&levels(5), 8);
    let (left, queue) = (&AtomicUsize::new(4 * EACH), &queue);
    let taken: Vec<Vec<(usize, usize)>> = std::thread::scope(|scope| {
        for producer in 0..4 {
            scope.spawn(move || {
                let mut handle = queue.handle().expect("a lane");
                for number in 0..EACH {
                    handle.push(number % 5, (producer, number));
                }
            });
        }
        let take = |_| {
            scope.spawn(move || {
                let mut handle = queue.handle().expect("a lane");
                let mut mine = Vec::new();
                while left.load(Relaxed) > 0 {
                    match handle.pop() {
                        Some(item) => {
                            left.fetch_sub(1, Relaxed);
                            mine.push(item);
                        }
                        None => std::thread::yield_now(),
                    }
                }
                mine
            })
        };
        let handles: Vec<_> = (0..4).map(take).collect();
        let joined = handles.into_iter().map(|handle| handle.join());
        joined.map(|taken| taken.expect("no panic")).collect()
    });
    for mine in &taken {
        for producer in 0..4 {
            for level in 0..5 {
                let numbers: Vec<usize> = mine
                    .iter()
                    .filter(|(p, n)| *p == producer && n % 5 == level)
                    .map(|(_, n)| *n)
                    .collect();
                assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]));
            }
        }
    }
    let mut all = taken.concat();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 4 * EACH);
}
