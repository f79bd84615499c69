//! Permits of one pool that several cores share, where each core decides alone.
//!
//! Each core has a part of its own: nobody can take another core's threads by having more
//! connections there. But a tenant may have all of its connections on one core, and others' parts
//! are idle beside it then. So a core lends what it has no work for. It is asked for nothing: all
//! say here what they could use, before they let work go.
//!
//! * A core is due what it could use of its part, now or a moment ago: who asks again as soon as he
//!   is answered must not wait each time until somebody else is done. It is never due less than it
//!   keeps: one permit, and what is reserved for tenants.
//! * What is left of all parts is divided evenly among the cores that could use more.
//! * A core that has more in use than it is due lets nothing go until that has changed. So what was
//!   lent comes back with the next piece of work that ends, and whoever is due it is woken.
//!   Handlers begin the next piece without asking here, so a core is told what it is due even if
//!   it has more in use.

use crate::cost::Nanos;

/// What a core could use is its own for so long, and at most twice as long: some times what a read
/// from a slow disk takes.
pub const KEPT_NS: Nanos = 100_000_000;

/// What one core says of itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Need {
    /// Its own part, at least 1.
    pub part: u32,
    /// Permits in use.
    pub in_use: u32,
    /// Permits that it could use now, those in use included.
    pub useful: u32,
    /// Of its part so many are never lent, at least 1.
    pub keeps: u32,
}

#[derive(Clone, Copy, Debug)]
struct Core {
    need: Need,
    /// The most that it could use in this stretch of time, and in the one before.
    most: [u32; 2],
    due: u32,
    /// What it may have in use until it asks again, no more than it can use; what it had in use
    /// when it asked, if that is more.
    holds: u32,
}

/// The answer to a core.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// It may begin work while it has fewer than so many in use, until it asks again.
    pub permits: u32,
    /// Cores that can have more than they were told last: they should ask again.
    pub wake: Vec<usize>,
}

/// Who holds what.
#[derive(Clone, Debug)]
pub struct Lend {
    cores: Vec<Core>,
    /// When this stretch of time began.
    since: Nanos,
}

impl Core {
    /// What it is due whatever the others want.
    fn base(&self) -> u32 {
        let part = self.need.part.max(1);
        let [now, before] = self.most;
        now.max(before).clamp(self.need.keeps.clamp(1, part), part)
    }

    /// What of that it can use now.
    fn wants(&self) -> u32 {
        self.due.min(self.need.useful)
    }
}

impl Lend {
    /// So many cores with a part each, of which none has work. A core must ask before it lets any
    /// go.
    #[must_use]
    pub fn new(cores: usize, part: u32) -> Self {
        let need = Need {
            part,
            ..Need::default()
        };
        let core = Core {
            need,
            most: [0; 2],
            due: 1,
            holds: 0,
        };
        Lend {
            cores: vec![core; cores],
            since: 0,
        }
    }

    /// A core says what it needs, and is told what it may use.
    ///
    /// # Panics
    /// If there is no such core.
    pub fn ask(&mut self, now: Nanos, core: usize, need: Need) -> Held {
        self.pass(now);
        let asks = &mut self.cores[core];
        asks.need = need;
        asks.most[0] = asks.most[0].max(need.useful);
        self.divide();
        let free = self.free(core);
        let asks = &mut self.cores[core];
        let permits = asks.wants().min(free);
        asks.holds = permits.max(need.in_use);
        let short = |at: &usize| {
            let other = &self.cores[*at];
            other.holds < other.wants() && other.holds < self.free(*at)
        };
        Held {
            permits,
            wake: (0..self.cores.len())
                .filter(|at| *at != core)
                .filter(short)
                .collect(),
        }
    }

    /// What a core may hold: all but what the others hold, or are due whatever it wants.
    fn free(&self, core: usize) -> u32 {
        let others = self.cores.iter().enumerate().filter(|(at, _)| *at != core);
        let theirs: u32 = others.map(|(_, core)| core.holds.max(core.base())).sum();
        let all: u32 = self.cores.iter().map(|core| core.need.part.max(1)).sum();
        all.saturating_sub(theirs)
    }

    /// Forgets what cores could use long ago.
    fn pass(&mut self, now: Nanos) {
        let passed = now.saturating_sub(self.since);
        if passed < KEPT_NS {
            return;
        }
        self.since = now;
        for core in &mut self.cores {
            let before = match passed < 2 * KEPT_NS {
                true => core.most[0],
                false => 0,
            };
            // What it could use when it asked last, it still can.
            core.most = [core.need.useful, before];
        }
    }

    /// Says what each core is due.
    fn divide(&mut self) {
        let mut left = 0;
        for core in &mut self.cores {
            core.due = core.base();
            left += core.need.part.max(1) - core.due;
        }
        loop {
            let wanting = |core: &&mut Core| core.due < core.need.useful;
            let count = self.cores.iter_mut().filter(wanting).count() as u32;
            if left == 0 || count == 0 {
                return;
            }
            let each = (left / count).max(1);
            for core in self.cores.iter_mut().filter(wanting) {
                let more = each.min(core.need.useful - core.due).min(left);
                core.due += more;
                left -= more;
            }
        }
    }
}
