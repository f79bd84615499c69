//! The order of the line.
//!
//! A line a pair of peer and tenant, first come first served. Between the pairs two round robins
//! take turns: one over peers and then over each one's tenants, one over tenants and then over each
//! one's peers. So who comes from an address of its own is served among the first, whatever all
//! others ask for, and so is who asks for a tenant that others do not ask for, from however many
//! addresses they come. Only who has both many addresses and many names makes everybody wait, and
//! for no longer than the line may be.
//!
//! A round robin over keys in their own order would be no good: a peer can choose its address, and
//! would always come with one just ahead of the victim's. Here a key goes to the back when it comes
//! and after each of its turns.

use std::collections::{BTreeMap, VecDeque};

/// How long the line may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineOptions {
    /// Entries of everybody together, >= 1.
    pub entries_max: usize,
    /// Entries of one pair of peer and tenant, >= 1.
    pub pair_entries_max: usize,
}

/// What became of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entered<P, T, J> {
    /// It is in line.
    Yes,
    /// It is in line, and the last of the longest line is not any more.
    InPlaceOf(P, T, J),
    /// It is of those who are in line most.
    No,
}

/// Entries `J` by peer `P` and tenant `T`.
#[derive(Clone, Debug)]
pub struct Line<P, T, J> {
    options: LineOptions,
    pairs: BTreeMap<(P, T), VecDeque<J>>,
    len: usize,
    peers: Rounds<P, T>,
    tenants: Rounds<T, P>,
    /// Whose turn it is: of the round over peers, or of that over tenants.
    peers_next: bool,
}

impl<P: Ord + Copy, T: Ord + Copy, J: Ord + Copy> Line<P, T, J> {
    /// Nobody is in line.
    #[must_use]
    pub fn new(options: LineOptions) -> Self {
        Line {
            options,
            pairs: BTreeMap::new(),
            len: 0,
            peers: Rounds::default(),
            tenants: Rounds::default(),
            peers_next: true,
        }
    }

    /// Entries in line.
    pub fn len(&self) -> usize {
        self.len
    }

    /// True if nobody is in line.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// An entry comes. If the line is full, it takes the place of the last of a peer or a tenant
    /// with at least two more entries; if there is none, it is refused.
    pub fn enter(&mut self, peer: P, tenant: T, entry: J) -> Entered<P, T, J> {
        let pair = self.pairs.get(&(peer, tenant)).map_or(0, VecDeque::len);
        if pair >= self.options.pair_entries_max {
            return Entered::No;
        }
        let mut entered = Entered::Yes;
        if self.len >= self.options.entries_max {
            let Some((peer, tenant)) = self.longer_than_of(peer, tenant) else {
                return Entered::No;
            };
            let Some(last) = self.take(peer, tenant, VecDeque::pop_back) else {
                return Entered::No;
            };
            entered = Entered::InPlaceOf(peer, tenant, last);
        }
        self.pairs
            .entry((peer, tenant))
            .or_default()
            .push_back(entry);
        self.len += 1;
        self.peers.enter(peer, tenant);
        self.tenants.enter(tenant, peer);
        entered
    }

    /// The next entry; it is in line no more.
    pub fn pop(&mut self) -> Option<(P, T, J)> {
        let (peer, tenant) = if self.peers_next {
            self.peers.turn()?
        } else {
            let (tenant, peer) = self.tenants.turn()?;
            (peer, tenant)
        };
        self.peers_next = !self.peers_next;
        let entry = self.take(peer, tenant, VecDeque::pop_front)?;
        Some((peer, tenant, entry))
    }

    /// Takes an entry out of the line, wherever it is in its pair; false if it is not there.
    pub fn remove(&mut self, peer: P, tenant: T, entry: J) -> bool {
        let out = |entries: &mut VecDeque<J>| {
            let at = entries.iter().position(|other| *other == entry)?;
            entries.remove(at)
        };
        self.take(peer, tenant, out).is_some()
    }

    fn take(
        &mut self,
        peer: P,
        tenant: T,
        out: impl FnOnce(&mut VecDeque<J>) -> Option<J>,
    ) -> Option<J> {
        let entries = self.pairs.get_mut(&(peer, tenant))?;
        let taken = out(entries)?;
        self.len -= 1;
        self.peers.left(peer);
        self.tenants.left(tenant);
        if entries.is_empty() {
            self.pairs.remove(&(peer, tenant));
            self.peers.leave(peer, tenant);
            self.tenants.leave(tenant, peer);
        }
        Some(taken)
    }

    /// The pair whose last entry has to go for a new one of `peer` and `tenant`: the longest of the
    /// peer, or of the tenant, that has most entries, if those are still more than the new one's
    /// would be.
    fn longer_than_of(&self, peer: P, tenant: T) -> Option<(P, T)> {
        let (of_peer, busiest_peer) = self.peers.busiest()?;
        let (of_tenant, busiest_tenant) = self.tenants.busiest()?;
        let peer_ahead = of_peer.saturating_sub(self.peers.entries(peer) + 1);
        let tenant_ahead = of_tenant.saturating_sub(self.tenants.entries(tenant) + 1);
        if peer_ahead == 0 && tenant_ahead == 0 {
            return None;
        }
        let by_peer = peer_ahead >= tenant_ahead;
        let meant = |pair: &(P, T)| match by_peer {
            true => pair.0 == busiest_peer,
            false => pair.1 == busiest_tenant,
        };
        let pairs = self.pairs.iter().filter(|(pair, _)| meant(pair));
        pairs
            .max_by_key(|(_, entries)| entries.len())
            .map(|(pair, _)| *pair)
    }
}

/// Keys in the order of their turns, each with keys of the other kind in the order of theirs.
#[derive(Clone, Debug)]
struct Rounds<A, B> {
    order: VecDeque<A>,
    keys: BTreeMap<A, Key<B>>,
}

#[derive(Clone, Debug)]
struct Key<B> {
    order: VecDeque<B>,
    entries: usize,
}

impl<A, B> Default for Rounds<A, B> {
    fn default() -> Self {
        Rounds {
            order: VecDeque::new(),
            keys: BTreeMap::new(),
        }
    }
}

impl<A: Ord + Copy, B: Ord + Copy> Rounds<A, B> {
    /// An entry of this pair has come.
    fn enter(&mut self, a: A, b: B) {
        let key = self.keys.entry(a).or_insert_with(|| {
            self.order.push_back(a);
            Key {
                order: VecDeque::new(),
                entries: 0,
            }
        });
        key.entries += 1;
        if !key.order.contains(&b) {
            key.order.push_back(b);
        }
    }

    /// An entry of this key has gone.
    fn left(&mut self, a: A) {
        if let Some(key) = self.keys.get_mut(&a) {
            key.entries -= 1;
        }
    }

    /// The last entry of this pair has gone.
    fn leave(&mut self, a: A, b: B) {
        let Some(key) = self.keys.get_mut(&a) else {
            return;
        };
        key.order.retain(|other| *other != b);
        if key.order.is_empty() {
            self.keys.remove(&a);
            self.order.retain(|other| *other != a);
        }
    }

    /// The pair whose turn it is; both its keys go to the back.
    fn turn(&mut self) -> Option<(A, B)> {
        let a = self.order.pop_front()?;
        self.order.push_back(a);
        let key = self.keys.get_mut(&a)?;
        let b = key.order.pop_front()?;
        key.order.push_back(b);
        Some((a, b))
    }

    fn entries(&self, a: A) -> usize {
        self.keys.get(&a).map_or(0, |key| key.entries)
    }

    /// The key with most entries, and how many they are.
    fn busiest(&self) -> Option<(usize, A)> {
        self.keys.iter().map(|(a, key)| (key.entries, *a)).max()
    }
}
