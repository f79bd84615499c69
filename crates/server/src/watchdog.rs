//! Ends the process when a core stands still: its connections would wait for ever, and nobody would
//! learn of it.
//!
//! A turn takes milliseconds, and a core that has nothing to do looks up once a second. One that
//! has not done so for many looks of this thread, whose own pauses are the machine's, is in a loop
//! or waits for a lock that nobody gives back.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

/// Time between two looks.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// A core that has not moved for this many looks will not.
const LOOKS_MAX: u32 = 20;

/// How often each core has looked up.
pub struct Beats(Box<[AtomicU64]>);

impl Beats {
    /// For this many cores.
    pub fn new(cores: usize) -> Self {
        Self((0..cores).map(|_| AtomicU64::new(0)).collect())
    }

    /// A core has looked up.
    pub fn beat(&self, core: usize) {
        self.0[core].fetch_add(1, Ordering::Relaxed);
    }

    fn counts(&self) -> impl Iterator<Item = u64> + '_ {
        self.0.iter().map(|count| count.load(Ordering::Relaxed))
    }
}

/// What was seen of each core: how often it had looked up, and for how many looks that has been so.
struct Vigil(Vec<(u64, u32)>);

impl Vigil {
    /// Looks at every core; returned is one that stands still.
    fn look(&mut self, counts: impl Iterator<Item = u64>) -> Option<usize> {
        let mut still = None;
        for (core, ((seen, looks), count)) in self.0.iter_mut().zip(counts).enumerate() {
            *looks = if *seen == count { *looks + 1 } else { 0 };
            *seen = count;
            if *looks >= LOOKS_MAX {
                still = Some(core);
            }
        }
        still
    }
}

/// The thread that looks.
pub struct Watchdog {
    end: Arc<End>,
    thread: JoinHandle<()>,
}

/// How the thread is told to end.
#[derive(Default)]
struct End {
    over: Mutex<bool>,
    changed: Condvar,
}

impl Watchdog {
    /// Looks at the cores that `beats` tells of.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn start(beats: Arc<Beats>) -> io::Result<Self> {
        let end = Arc::new(End::default());
        let told = Arc::clone(&end);
        let thread = thread::Builder::new().name("watchdog".into());
        let thread = thread.spawn(move || {
            threads::Duty::Prompt.begin();
            let _whole = threads::Whole;
            watch(&beats, &told);
        })?;
        Ok(Self { end, thread })
    }

    /// Looks no more: the cores may end.
    pub fn stop(self) {
        *self.end.over.lock() = true;
        self.end.changed.notify_one();
        // A panic would have ended the process.
        let _ = self.thread.join();
    }
}

fn watch(beats: &Beats, end: &End) {
    let mut vigil = Vigil(vec![(0, 0); beats.0.len()]);
    let mut over = end.over.lock();
    let mut look_at = Instant::now() + LOOK_EVERY;
    while !*over {
        if end.changed.wait_until(&mut over, look_at).timed_out() {
            if let Some(core) = vigil.look(beats.counts()) {
                panic!(
                    "core {core} has stood still for {LOOKS_MAX} s, and its connections with it"
                );
            }
            look_at = Instant::now() + LOOK_EVERY;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_core_that_does_not_look_up_for_long_stands_still() {
        let beats = Beats::new(2);
        let mut vigil = Vigil(vec![(0, 0); 2]);
        for _ in 0..3 {
            for _ in 1..LOOKS_MAX {
                beats.beat(0);
                assert_eq!(vigil.look(beats.counts()), None);
            }
            beats.beat(1);
            assert_eq!(vigil.look(beats.counts()), None, "late, but it goes on");
        }
        for _ in 1..LOOKS_MAX {
            beats.beat(0);
            assert_eq!(vigil.look(beats.counts()), None);
        }
        assert_eq!(vigil.look(beats.counts()), Some(1));
    }
}
