//! Connections that speak for nobody yet.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use crate::cost::Nanos;

/// A newcomer's number; larger ones came later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Newcomer(u64);

/// What became of one that came.
#[derive(Debug, PartialEq, Eq)]
pub enum Welcome<C> {
    /// It has a seat.
    Seated(Newcomer),
    /// It has the seat of this one, which has to go.
    InPlaceOf(Newcomer, C),
    /// All seats are taken by those who are worth as much.
    Full,
}

/// How much a newcomer is worth: the less, the sooner it has to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Worth {
    /// It has said nothing.
    Silent,
    /// It has said something.
    Heard,
    /// Its password is being checked.
    Checked,
}

#[derive(Clone, Debug)]
struct Entry<P, C> {
    peer: P,
    since: Nanos,
    worth: Worth,
    client: C,
}

/// A peer's newcomers.
#[derive(Clone, Debug, Default)]
struct OfPeer {
    all: BTreeSet<u64>,
    by_worth: BTreeSet<(Worth, u64)>,
}

/// All of them, by peer `P`; `C` is what the caller knows them by.
#[derive(Clone, Debug)]
pub struct Newcomers<P, C> {
    next: u64,
    entries: BTreeMap<u64, Entry<P, C>>,
    peers: BTreeMap<P, OfPeer>,
    /// Who has how many, and since when at the longest.
    crowded: BTreeSet<(usize, Reverse<u64>, P)>,
}

impl<P: Ord + Copy, C> Default for Newcomers<P, C> {
    fn default() -> Self {
        Newcomers {
            next: 0,
            entries: BTreeMap::new(),
            peers: BTreeMap::new(),
            crowded: BTreeSet::new(),
        }
    }
}

impl<P: Ord + Copy, C> Newcomers<P, C> {
    /// Newcomers now.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// One comes, where there are `seats`. If they are taken, one of the peer with most newcomers
    /// has to go: the one that has been silent longest; if none is silent, the oldest. One whose
    /// password is being checked goes last, and only if its peer has at least two more than the one
    /// that comes.
    pub fn come(&mut self, now: Nanos, peer: P, seats: usize, client: C) -> Welcome<C> {
        let mut gone = None;
        if self.len() >= seats {
            let Some(victim) = self.victim(peer) else {
                return Welcome::Full;
            };
            gone = self.leave(Newcomer(victim));
        }
        let number = self.next;
        self.next += 1;
        let entry = Entry {
            peer,
            since: now,
            worth: Worth::Silent,
            client,
        };
        self.entries.insert(number, entry);
        self.of_peer(peer, |of| {
            of.all.insert(number);
            of.by_worth.insert((Worth::Silent, number));
        });
        match gone {
            None => Welcome::Seated(Newcomer(number)),
            Some(gone) => Welcome::InPlaceOf(Newcomer(number), gone),
        }
    }

    fn victim(&self, coming: P) -> Option<u64> {
        let coming = self.peers.get(&coming).map_or(0, |of| of.all.len());
        let victim = |(count, _, peer): &(usize, Reverse<u64>, P)| {
            let (worth, number) = self.peers.get(peer)?.by_worth.first()?;
            (*worth < Worth::Checked || *count >= coming + 2).then_some(*number)
        };
        self.crowded.iter().rev().find_map(victim)
    }

    /// It has said something.
    pub fn heard(&mut self, newcomer: Newcomer) {
        if self.entries.get(&newcomer.0).map(|entry| entry.worth) == Some(Worth::Silent) {
            self.is_worth(newcomer, Worth::Heard);
        }
    }

    /// Its password is being checked, or is no more.
    pub fn checked(&mut self, newcomer: Newcomer, under_way: bool) {
        self.is_worth(
            newcomer,
            if under_way {
                Worth::Checked
            } else {
                Worth::Heard
            },
        );
    }

    fn is_worth(&mut self, newcomer: Newcomer, worth: Worth) {
        let Some(entry) = self.entries.get_mut(&newcomer.0) else {
            return;
        };
        let before = std::mem::replace(&mut entry.worth, worth);
        if let Some(of) = self.peers.get_mut(&entry.peer) {
            of.by_worth.remove(&(before, newcomer.0));
            of.by_worth.insert((worth, newcomer.0));
        }
    }

    /// One leaves: it speaks for somebody, or is closed. Gives what it was known by, if it was
    /// there still.
    pub fn leave(&mut self, newcomer: Newcomer) -> Option<C> {
        let entry = self.entries.remove(&newcomer.0)?;
        self.of_peer(entry.peer, |of| {
            of.all.remove(&newcomer.0);
            of.by_worth.remove(&(entry.worth, newcomer.0));
        });
        Some(entry.client)
    }

    /// Takes out those who came before `since`, oldest first, but for those whose password is being
    /// checked.
    pub fn overdue(&mut self, since: Nanos) -> Vec<C> {
        let late = self
            .entries
            .iter()
            .take_while(|(_, entry)| entry.since < since);
        let late: Vec<u64> = late
            .filter(|(_, entry)| entry.worth < Worth::Checked)
            .map(|(number, _)| *number)
            .collect();
        late.into_iter()
            .filter_map(|number| self.leave(Newcomer(number)))
            .collect()
    }

    fn of_peer(&mut self, peer: P, change: impl FnOnce(&mut OfPeer)) {
        let of = self.peers.entry(peer).or_default();
        if let Some(place) = of.place(peer) {
            self.crowded.remove(&place);
        }
        change(of);
        match of.place(peer) {
            Some(place) => {
                self.crowded.insert(place);
            }
            None => {
                self.peers.remove(&peer);
            }
        }
    }
}

impl OfPeer {
    /// Among all peers; none: it has no newcomer.
    fn place<P>(&self, peer: P) -> Option<(usize, Reverse<u64>, P)> {
        let oldest = self.all.first()?;
        Some((self.all.len(), Reverse(*oldest), peer))
    }
}
