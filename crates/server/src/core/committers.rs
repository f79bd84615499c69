//! The committers that a core's turns have given work to.

use std::collections::HashSet;
use std::sync::Arc;

use engine::{Keyspace, Seq};
use policy::Nanos;

/// How often a core lets the same committer run: few enough switches to cost nothing.
const STEP_BACK_NS: Nanos = 500_000;

/// Whom a core has to start.
pub struct Committers {
    /// Keyspaces written in these turns, whose committers are started when the turns are over.
    touched: Vec<Arc<Keyspace>>,
    /// Whose committers were let run since the last time that all could be again, `steps_back_at`.
    let_run: HashSet<u64>,
    steps_back_at: Nanos,
}

impl Committers {
    /// Nothing was written yet.
    pub fn new(now: Nanos) -> Self {
        Self {
            touched: Vec::new(),
            let_run: HashSet::new(),
            steps_back_at: now,
        }
    }

    /// Remembers that a keyspace has a write whose commit must be started; `seq` 0: it has none.
    #[inline]
    pub fn touch(&mut self, keyspace: &Arc<Keyspace>, seq: Seq) {
        let known = |other| Arc::ptr_eq(other, keyspace);
        if seq > 0 && !self.touched.iter().any(known) {
            self.touched.push(Arc::clone(keyspace));
        }
    }

    /// Starts the commits of what was written. A core that has always more to do never sleeps, and
    /// a committer that shares its processor would not run before the kernel's next tick, up to 4
    /// ms later. So the core steps back: at once for who writes now and then, every
    /// [`STEP_BACK_NS`] for who writes all the time, and for nobody whose batch takes longer than
    /// others would like to wait.
    pub fn start(&mut self, now: Nanos) {
        if now >= self.steps_back_at {
            self.steps_back_at = now + STEP_BACK_NS;
            self.let_run.clear();
        }
        let mut first = false;
        for keyspace in self.touched.drain(..) {
            keyspace.kick();
            first |= !keyspace.commits_long() && self.let_run.insert(keyspace.id());
        }
        if first {
            std::thread::yield_now();
        }
    }
}
