//! The principals with work that may go now, in the order of the discipline, and those that may go
//! later.

use super::slot::Tier;
use super::Discipline;
use crate::cost::Nanos;
use crate::fairness::lottery::Tickets;
use crate::generator::Generator;
use crate::heap::IndexHeap;

/// One set to choose from. Only the half that the discipline needs has members.
#[derive(Clone, Debug, Default)]
struct Set {
    ordered: IndexHeap,
    tickets: Tickets,
}

impl Set {
    fn put(&mut self, discipline: Discipline, member: usize, key: u64, tickets: u32) {
        match discipline.draws() {
            false => self.ordered.set(member, key),
            true => self.tickets.set(member, tickets),
        }
    }

    fn remove(&mut self, discipline: Discipline, member: usize) {
        match discipline.draws() {
            false => self.ordered.remove(member),
            true => self.tickets.set(member, 0),
        }
    }

    fn is_empty(&self) -> bool {
        self.ordered.first().is_none() && self.tickets.is_empty()
    }

    #[inline(always)]
    fn choose(&self, discipline: Discipline, generator: &mut Generator) -> Option<(u64, usize)> {
        match discipline.draws() {
            false => self.ordered.first(),
            true => self.tickets.draw(generator).map(|member| (0, member)),
        }
    }

    fn drain_into(&mut self, members: &mut Vec<usize>) {
        members.extend(self.ordered.members());
        members.extend(self.tickets.members());
        self.ordered.clear();
        self.tickets.clear();
    }
}

/// Where a member stands: its order, its part, and which rules concern it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Standing {
    pub(super) key: u64,
    pub(super) tickets: u32,
    pub(super) tier: Tier,
    /// It has reserved permits that are free.
    pub(super) own_permit: bool,
    pub(super) reservation_at: Option<Nanos>,
}

/// All sets of one dispatch.
#[derive(Clone, Debug)]
pub(super) struct Ready {
    discipline: Discipline,
    generator: Generator,
    /// By tier: everybody who may go.
    all: [Set; 2],
    /// By tier: those of them who have a reserved permit free, for when no shared one is.
    own: [Set; 2],
    /// Those of them with a reservation, by its tag.
    reservations: IndexHeap,
    /// Those for whom something changes with time alone, by that time.
    wake: IndexHeap,
}

impl Ready {
    pub(super) fn new(discipline: Discipline, seed: u64) -> Self {
        Ready {
            discipline,
            generator: Generator::new(seed),
            all: Default::default(),
            own: Default::default(),
            reservations: IndexHeap::default(),
            wake: IndexHeap::default(),
        }
    }

    pub(super) fn discipline(&self) -> Discipline {
        self.discipline
    }

    /// The hot path: a member to whom no rule but the order applies.
    ///
    /// INVARIANT: a member is in its set with its key or a smaller one. A turn makes keys larger
    /// nearly always, so nothing is moved here; whoever comes first with an outdated key is moved
    /// then ([`Ready::renew`]), which happens at most once a turn.
    #[inline]
    pub(super) fn put_plain(&mut self, member: usize, key: u64, tickets: u32) {
        match self.discipline.draws() {
            false => self.all[0].ordered.lower(member, key),
            true => self.all[0].tickets.set(member, tickets),
        }
    }

    /// The same for one that has run out of work. In an ordered set it stays until it comes first:
    /// most have work again before that.
    #[inline]
    pub(super) fn remove_plain(&mut self, member: usize) {
        if self.discipline.draws() {
            self.all[0].tickets.set(member, 0);
        }
    }

    /// Whether nobody but the member that came first is in the set it came from.
    #[inline]
    pub(super) fn alone(&self, tier: Tier) -> bool {
        self.all[tier as usize].ordered.alone()
    }

    /// Gives a member that came first its present key.
    #[inline]
    pub(super) fn renew(&mut self, member: usize, tier: Tier, key: u64) {
        let tier = tier as usize;
        self.all[tier].ordered.set(member, key);
        if self.own[tier].ordered.contains(member) {
            self.own[tier].ordered.set(member, key);
        }
    }

    /// The member may go. Its tier must be the one it was put in, or it must have been removed.
    pub(super) fn put(&mut self, member: usize, standing: &Standing) {
        let Standing {
            key, tickets, tier, ..
        } = *standing;
        let tier = tier as usize;
        self.all[tier].put(self.discipline, member, key, tickets);
        if standing.own_permit {
            self.own[tier].put(self.discipline, member, key, tickets);
        } else {
            self.own[tier].remove(self.discipline, member);
        }
        match standing.reservation_at {
            Some(at) => self.reservations.set(member, at),
            None => self.reservations.remove(member),
        }
    }

    /// The member may not go, or has nothing to do. Its time to be looked at again is kept.
    pub(super) fn remove(&mut self, member: usize) {
        for set in self.all.iter_mut().chain(&mut self.own) {
            set.remove(self.discipline, member);
        }
        self.reservations.remove(member);
    }

    /// Whose reservation is due at `now`: the one that is furthest behind.
    #[inline]
    pub(super) fn due(&self, now: Nanos) -> Option<usize> {
        let (at, member) = self.reservations.first()?;
        (at <= now).then_some(member)
    }

    /// Who is next by the discipline, and with what key; `shared`: a shared permit is free.
    #[inline(always)]
    pub(super) fn choose(&mut self, shared: bool) -> Option<(u64, usize)> {
        let [first, second] = if shared { &self.all } else { &self.own };
        let (discipline, generator) = (self.discipline, &mut self.generator);
        match first.choose(discipline, generator) {
            None => second.choose(discipline, generator),
            chosen => chosen,
        }
    }

    /// Whether anybody may go, or is still in because it could a moment ago.
    pub(super) fn any(&self) -> bool {
        self.all.iter().any(|set| !set.is_empty())
    }

    /// The member is to be looked at again at `at`; `None`: not before something happens to it.
    pub(super) fn wake_at(&mut self, member: usize, at: Option<Nanos>) {
        match at {
            Some(at) => self.wake.set(member, at),
            None => self.wake.remove(member),
        }
    }

    /// Takes one whose time has come.
    #[inline]
    pub(super) fn woken(&mut self, now: Nanos) -> Option<usize> {
        let (at, member) = self.wake.first()?;
        if at > now {
            return None;
        }
        self.wake.remove(member);
        Some(member)
    }

    /// The next time at which something changes.
    pub(super) fn next_wake(&self) -> Option<Nanos> {
        self.wake.first().map(|(at, _)| at)
    }

    /// Another discipline from now on; returns who was in, each to be put in again.
    pub(super) fn change(&mut self, discipline: Discipline) -> Vec<usize> {
        let mut members = Vec::new();
        for set in self.all.iter_mut().chain(&mut self.own) {
            set.drain_into(&mut members);
        }
        members.sort_unstable();
        members.dedup();
        self.reservations.clear();
        self.discipline = discipline;
        members
    }

    #[cfg(test)]
    pub(super) fn steps(&self) -> u64 {
        self.all[0].ordered.steps + self.wake.steps
    }
}
