//! How many large replies of a tenant are under way.

use std::collections::VecDeque;
use std::sync::Arc;

use engine::Waiter;
use parking_lot::Mutex;

/// Large replies that a tenant may have under way at once; each holds a thread and about a MiB, or one value.
const PLACES: usize = 4;

#[derive(Default)]
struct State {
    taken: usize,
    waiting: VecDeque<Waiter>,
}

/// The places for a tenant's large replies.
#[derive(Clone, Default)]
pub struct Streams(Arc<Mutex<State>>);

impl Streams {
    /// A place, if one is free.
    pub fn enter(&self) -> Option<Place> {
        let mut state = self.0.lock();
        if state.taken == PLACES {
            return None;
        }
        state.taken += 1;
        Some(Place(self.clone()))
    }

    /// `true`: `waiter` is told once a place is free. `false`: one is, the waiter was dropped.
    pub fn wait(&self, waiter: Waiter) -> bool {
        let mut state = self.0.lock();
        let full = state.taken == PLACES;
        if full {
            state.waiting.push_back(waiter);
        }
        full
    }
}

/// One of the places, given back when it is dropped.
pub struct Place(Streams);

impl Drop for Place {
    fn drop(&mut self) {
        let mut state = self.0 .0.lock();
        state.taken -= 1;
        let next = state.waiting.pop_front();
        drop(state);
        if let Some(waiter) = next {
            waiter();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn whoever_waits_is_told_of_each_place_that_is_given_back() {
        let streams = Streams::default();
        let mut places: Vec<_> = std::iter::from_fn(|| streams.enter()).collect();
        assert_eq!(places.len(), PLACES);
        let told = Arc::new(AtomicUsize::new(0));
        let waiter = || {
            let told = Arc::clone(&told);
            Box::new(move || {
                told.fetch_add(1, Ordering::Relaxed);
            })
        };
        assert!(streams.wait(waiter()) && streams.wait(waiter()));
        places.pop();
        assert_eq!(told.load(Ordering::Relaxed), 1);
        assert!(!streams.wait(waiter()), "a place is free");
        places.clear();
        assert_eq!(told.load(Ordering::Relaxed), 2);
    }
}
