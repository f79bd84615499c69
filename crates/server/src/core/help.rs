//! Handlers that have nothing else to do read for a command that has several keys to read from the
//! disk ([`engine::Ahead`]).
//!
//! They are asked for with the command, or by its handler if the command has more words than a core
//! looks at; and only if nobody waits for a handler and so few are out that processors would be
//! idle ([`Reach`]): where many are, several reads at once are those of several commands. Each
//! helper has a permit of the command's tenant and is charged to it. It gives the permit back as
//! soon as somebody waits for one; what it has not read the command reads itself.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::Arc;

use engine::device::tagged;
use engine::Ahead;
use policy::PrincipalId;
use stage::Terms;
use telemetry::Class;

use super::crew::Crew;
use super::handler::{Job, Task};
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
    /// Takes in a piece of work for whose processor so many others were out. They may have made it
    /// that much longer, so with them it says how many it takes at least.
    pub fn learn(&self, worked: Worked, others: u32) {
        let ratio = worked.service_ns.max(1) as f32 / worked.cpu_ns.max(1) as f32;
        let (before, told) = (self.pieces(), ratio / (others + 1) as f32);
        if others > 0 && told < before {
            return;
        }
        let after = before + (told.max(1.0) - before) * NEWEST;
        // Of two that learn at the same time one is enough.
        self.0.store(after.to_bits(), Ordering::Relaxed);
    }

    fn pieces(&self) -> f32 {
        f32::from_bits(self.0.load(Ordering::Relaxed))
    }
}

/// How far a command has come that is to be helped.
#[derive(Clone, Copy)]
pub enum Stands {
    /// Its own piece of work is one that is out by and by.
    Waits,
    /// It is out.
    Runs,
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
    /// For a unit that has so many keys to read ([`Unit::reads`]), as somebody has looked.
    /// `None`: it gets no help.
    pub fn with(
        unit: &Unit,
        reads: usize,
        terms: Terms,
        stands: Stands,
        crew: &Arc<Crew>,
    ) -> Option<Self> {
        let useful = reads.div_ceil(READS_EACH).saturating_sub(1);
        if useful == 0 || !unit.only_reads() {
            return None;
        }
        let stage = crew.stage();
        if stage.queued() > 0 {
            return None;
        }
        let own = usize::from(matches!(stands, Stands::Waits));
        let spare = stage
            .permits()
            .saturating_sub(stage.in_flight() + own as u32);
        drop(stage);
        let most = crew.reach.pieces() * crew.shared.options.cores as f32;
        let idle = (most.round() as usize).saturating_sub(crew.out() + own);
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

    /// Queues the helpers, in the line of the command's tenant.
    pub fn enqueue(&self, tenant: PrincipalId, at_handlers: Terms) {
        let class = self.class.index() as u8;
        for job in self.jobs() {
            // Without room for it the command does without.
            self.crew
                .enqueue(tenant, class, at_handlers, Task::Job(job));
        }
    }

    /// One for each helper.
    fn jobs(&self) -> impl Iterator<Item = Job> + '_ {
        (0..self.helpers).map(|_| {
            let (ahead, crew) = (Arc::clone(&self.ahead), Arc::clone(&self.crew));
            let (class, terms) = (self.class, self.terms);
            let job: Job = Box::new(move |shared| {
                let _tagged = tagged(tag_of(class));
                let _on_terms = on_terms(terms, shared.options.disk.stage());
                while ahead.read() && !crew.wanted() {}
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
            self.helpers_of(unit, reads, Stands::Waits)
        }

        fn helpers_of(&self, unit: &Unit, reads: usize, stands: Stands) -> usize {
            let help = Help::with(unit, reads, Terms::default(), stands, &self.crew);
            let count = help.as_ref().map_or(0, |help| help.helpers);
            assert_eq!(help.map_or(0, |help| help.jobs().count()), count);
            count
        }

        /// A piece of work takes so many times what it uses of a processor.
        fn learn(&self, times: u64) {
            for _ in 0..100 {
                self.learn_beside(times, 0);
            }
        }

        fn learn_beside(&self, times: u64, others: u32) {
            let worked = Worked {
                service_ns: times * 1_000,
                cpu_ns: 1_000,
            };
            self.crew.reach.learn(worked, others);
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
    fn what_is_known_of_the_disk_grows_beside_others_and_shrinks_alone() {
        let trial = trial(64);
        let pieces = || trial.crew.reach.pieces().round();
        for _ in 0..100 {
            trial.learn_beside(8, 7);
        }
        assert_eq!(pieces(), 1.0, "they may have waited for a processor");
        for _ in 0..100 {
            trial.learn_beside(80, 7);
        }
        assert_eq!(pieces(), 10.0, "that much they cannot have");
        trial.learn_beside(8, 7);
        assert_eq!(pieces(), 10.0);
        trial.learn(2);
        assert_eq!(pieces(), 2.0);
    }

    #[test]
    fn helpers_of_a_core_end_where_permits_are_wanted_back() {
        let trial = trial(4);
        let job = || Task::Job(Box::new(|_: &_| None));
        for _ in 0..3 {
            assert!(trial.crew.enqueue(TENANT, 0, Terms::default(), job()));
        }
        assert!(trial.crew.wanted(), "somebody waits");
        let mut next = || match trial.crew.stage().next(0) {
            Next::Admitted(admitted) => Some(admitted.permit),
            _ => None,
        };
        let mut out: Vec<_> = std::iter::from_fn(&mut next).collect();
        assert_eq!(out.len(), 3);
        assert!(!trial.crew.wanted());
        trial.crew.stage().hold(2);
        assert!(trial.crew.wanted(), "one of three is another core's");
        trial.crew.settle(out.pop().expect("a permit"), 0);
        assert!(!trial.crew.wanted());
    }

    #[test]
    fn nobody_helps_while_somebody_waits_or_where_it_is_of_no_use() {
        let (trial, mget) = (trial(3), unit(MGET));
        trial.learn(1_000);
        assert_eq!(trial.helpers(&mget, 100), 2, "three permits");
        assert_eq!(trial.helpers(&unit(&["MSET", "a", "1", "b", "2"]), 100), 0);
        let nothing = Task::Job(Box::new(|_: &_| None));
        assert!(trial.crew.enqueue(TENANT, 0, Terms::default(), nothing));
        assert_eq!(trial.helpers(&mget, 100), 0, "somebody waits");
        let Next::Admitted(_admitted) = trial.crew.stage().next(0) else {
            panic!("there are three permits")
        };
        assert_eq!(trial.helpers(&mget, 100), 1, "one of three is out");
        let runs = trial.helpers_of(&mget, 100, Stands::Runs);
        assert_eq!(runs, 2, "and it is the command's own");
    }
}
