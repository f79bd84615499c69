//! Handlers that have nothing else to do read for a command that has several keys to read from the
//! disk ([`engine::Ahead`]).
//!
//! They are asked for with the command, and only if nobody waits for a handler and so few are out
//! that processors would be idle ([`Reach`]): where many are, several reads at once are those of
//! several commands. Each helper has a permit of the command's tenant and is charged to it. It
//! gives the permit back as soon as somebody waits for one; what it has not read the command reads
//! itself.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::Arc;

use engine::device::tagged;
use engine::Ahead;
use stage::Terms;
use telemetry::Class;

use super::crew::Crew;
use super::handler::Job;
use super::message::Worked;
use crate::device::{on_terms, tag_of};
use crate::unit::Unit;

/// Keys of a command for each handler that reads them, the command's own included: to wake another
/// costs a good part of what a read costs.
const READS_EACH: usize = 2;
/// What the last piece of work counts in [`Reach`].
const NEWEST: f32 = 0.125;

/// How many pieces of work keep a processor busy: the time that one takes over what it uses of a
/// processor. Where so many are out, helpers would only be in the way of who gets no help: with
/// help up to all permits, the p99 of four clients was 1.3 times that without.
pub struct Reach(AtomicU32);

impl Default for Reach {
    /// Nothing waits for a disk as long as it has not been seen to.
    fn default() -> Self {
        Self(AtomicU32::new(1_f32.to_bits()))
    }
}

impl Reach {
    /// Takes in a piece of work that had the processors to itself.
    pub fn learn(&self, worked: Worked) {
        let ratio = worked.service_ns.max(1) as f32 / worked.cpu_ns.max(1) as f32;
        let before = self.pieces();
        let after = before + (ratio.max(1.0) - before) * NEWEST;
        // Of two that learn at the same time one is enough.
        self.0.store(after.to_bits(), Ordering::Relaxed);
    }

    fn pieces(&self) -> f32 {
        f32::from_bits(self.0.load(Ordering::Relaxed))
    }
}

/// What helpers of one command have in common.
pub struct Help {
    ahead: Arc<Ahead>,
    helpers: usize,
    class: Class,
    /// On what terms their I/O waits.
    terms: Terms,
    crew: Arc<Crew>,
}

impl Help {
    /// For a unit that has so many keys to read ([`Unit::reads`]). `None`: it gets no help.
    pub fn with(unit: &Unit, reads: usize, terms: Terms, crew: &Arc<Crew>) -> Option<Self> {
        let useful = reads.div_ceil(READS_EACH).saturating_sub(1);
        // Of others nobody has looked at what memory has of their keys.
        if useful == 0 || !unit.only_reads() || !unit.fits_turn() {
            return None;
        }
        let stage = crew.stage();
        if stage.queued() > 0 {
            return None;
        }
        let spare = stage.permits().saturating_sub(stage.in_flight() + 1);
        drop(stage);
        let most = crew.reach.pieces() * crew.shared.options.cores as f32;
        let idle = (most.round() as usize).saturating_sub(crew.out() + 1);
        let helpers = useful.min(spare as usize).min(idle);
        (helpers > 0).then(|| Self {
            ahead: Arc::default(),
            helpers,
            class: unit.class,
            terms,
            crew: Arc::clone(crew),
        })
    }

    /// What they read.
    pub fn ahead(&self) -> Arc<Ahead> {
        Arc::clone(&self.ahead)
    }

    /// One for each helper.
    pub fn jobs(&self) -> impl Iterator<Item = Job> + '_ {
        (0..self.helpers).map(|_| {
            let (ahead, crew) = (Arc::clone(&self.ahead), Arc::clone(&self.crew));
            let (class, terms) = (self.class, self.terms);
            let job: Job = Box::new(move |shared| {
                let _tagged = tagged(tag_of(class));
                let _on_terms = on_terms(terms, shared.options.disk.stage());
                while ahead.read() && crew.stage().queued() == 0 {}
                None
            });
            job
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::{crew, Mailbox};
    use super::*;
    use crate::shared::tests::shared;
    use crate::unit::tests::unit;
    use mio::Poll;
    use policy::PrincipalId;
    use stage::{Allocation, DispatchOptions, Next, Stage};

    const TENANT: PrincipalId = PrincipalId(0);

    struct Trial {
        crew: Arc<Crew>,
        _poll: Poll,
        _directory: tempfile::TempDir,
    }

    /// An idle crew with so many permits, of a server with two cores.
    fn trial(permits: u32) -> Trial {
        let directory = tempfile::tempdir().expect("a directory");
        let shared = Arc::new(shared(directory.path(), &[]));
        let poll = Poll::new().expect("a poll");
        let crew = crew::new(&shared, &Mailbox::new(&poll).expect("a mailbox"));
        *crew.stage() = Stage::new(DispatchOptions::handlers(permits));
        let share = Allocation::share(1.0);
        crew.stage().configure(0, TENANT, &share);
        Trial {
            crew,
            _poll: poll,
            _directory: directory,
        }
    }

    impl Trial {
        /// Helpers of a unit that has so many keys to read.
        fn helpers(&self, unit: &Unit, reads: usize) -> usize {
            let help = Help::with(unit, reads, Terms::default(), &self.crew);
            let count = help.as_ref().map_or(0, |help| help.helpers);
            assert_eq!(help.map_or(0, |help| help.jobs().count()), count);
            count
        }

        /// A piece of work takes so many times what it uses of a processor.
        fn learn(&self, times: u64) {
            for _ in 0..100 {
                self.crew.reach.learn(Worked {
                    service_ns: times * 1_000,
                    cpu_ns: 1_000,
                });
            }
        }
    }

    const MGET: &[&str] = &["MGET", "a", "b"];

    #[test]
    fn there_are_as_many_helpers_as_keep_the_processors_busy() {
        let (trial, mget) = (trial(64), unit(MGET));
        assert_eq!(trial.helpers(&mget, 100), 1, "nothing is known of the disk");
        for (times, expected) in [(1, 1), (3, 5), (10, 19), (1_000, 49)] {
            trial.learn(times);
            assert_eq!(trial.helpers(&mget, 100), expected);
        }
        for (reads, expected) in [(1, 0), (2, 0), (3, 1), (10, 4)] {
            assert_eq!(trial.helpers(&mget, reads), expected);
        }
    }

    #[test]
    fn nobody_helps_while_somebody_waits_or_where_it_is_of_no_use() {
        let (trial, mget) = (trial(3), unit(MGET));
        trial.learn(1_000);
        assert_eq!(trial.helpers(&mget, 100), 2, "three permits");
        assert_eq!(trial.helpers(&unit(&["MSET", "a", "1", "b", "2"]), 100), 0);
        let many = [&["MGET"][..], &["k"; 200]].concat();
        assert_eq!(trial.helpers(&unit(&many), 100), 0);
        let task = |job: Job| super::super::handler::Task::Job(job);
        let nothing = || Box::new(|_: &_| None);
        assert!(trial
            .crew
            .enqueue(TENANT, 0, Terms::default(), task(nothing())));
        assert_eq!(trial.helpers(&mget, 100), 0, "somebody waits");
        let Next::Admitted(_admitted) = trial.crew.stage().next(0) else {
            panic!("there are three permits")
        };
        assert_eq!(trial.helpers(&mget, 100), 1, "one of three is out");
    }
}
