//! Weight allocation: reciprocal exchange of local shares as a maximum bottleneck flow (Pisces
//! 4.3.2).
//!
//! Each tenant has a local share `r` and a demand `x` at every node where it has partitions. If
//! tenant t takes from u at one node it must give the same to somebody at another: a cycle t <- u
//! <- v <- … <- t in which each takes from the next. Taking at most until both have the same part
//! `r / x` of their demands leaves neither worse than the worse of them was, so no exchange lowers
//! the least part of the system, every tenant's total and every node's total stay, and the sum of
//! `(r - x)^2 / x` falls with each.
//!
//! Pisces evens slack, `r - x`. Then a place that asks for little gives as much as one that asks
//! for ten times as much, and is left with nothing; and clients who wait for it ask for nothing
//! elsewhere, so a tenant is served at the rate of the place where it has the least part.

use super::entry::Entry;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// What one iteration did.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Exchanged {
    /// Cycles of exchange.
    pub cycles: u32,
    /// Share that moved to where it is wanted, summed over cycles.
    pub moved: i64,
    /// Least part of its demand that any tenant has at any node, before.
    pub worst_before: f64,
    /// And after: never less.
    pub worst_after: f64,
}

/// Local shares of all tenants.
#[derive(Clone, Debug)]
pub struct Shares {
    /// By tenant, then node.
    entries: Vec<Entry>,
    /// Where each tenant's entries begin; one more than there are tenants.
    begin: Vec<usize>,
    /// The node of each entry, alone: searches read little else.
    nodes: Vec<u32>,
    /// A copy of each entry, by node; of a node those with the greatest part when the last
    /// iteration began first.
    offers: Vec<Offer>,
    /// Where each node's offers begin; one more than there are nodes.
    at_node: Vec<usize>,
    /// The place of each entry in the list of offers.
    offered: Vec<u32>,
    search: Search,
}

/// A copy of an entry for those who may take from it: those of a node lie side by side.
#[derive(Clone, Copy, Debug)]
struct Offer {
    entry: Entry,
    /// Its part, worked out once.
    part: f64,
    /// Its place in the list of entries.
    place: u32,
}

/// Up to so many entries every cycle is looked for. In larger systems an exchange between two
/// tenants is looked for first, which nearly always exists there, and longer cycles only where
/// there is none: 1,000 nodes and 10,000 tenants would take minutes else.
const ENTRIES_FULL: usize = 1 << 14;
/// There, of so many exchanges of two tenants the widest is made, or of a few more: of those with
/// the givers that have the greatest parts. With 24, 1,000 nodes take an iteration or two less, and
/// a sixth longer.
const PAIRS: usize = 16;
/// And an iteration ends after so many cycles for each tenant in need, fewer than each may have: so
/// the neediest, who come first, soon have their turn again.
const CYCLES_MEAN: usize = 2;

/// Cycles of a tenant in an iteration. With one, 1,000 nodes take three times as many iterations,
/// and as long.
const CYCLES_EACH: u32 = 3;

/// How far a search for a cycle of any length goes.
#[derive(Clone, Copy, Debug)]
struct Reach {
    /// Tenants whose places are looked at.
    looked_at: usize,
    /// Givers tried at each place, those with the greatest part.
    givers: usize,
}

const FULL: Reach = Reach {
    looked_at: usize::MAX,
    givers: usize::MAX,
};
/// In large systems, after a search for an exchange of two tenants has found none.
const FAR: Reach = Reach {
    looked_at: 16,
    givers: 4,
};

/// A step of a cycle: who takes at a node, and who gives there, as places in the list of entries.
#[derive(Clone, Copy, Debug)]
struct Handover {
    taker: u32,
    giver: u32,
}

/// An exchange between two tenants.
#[derive(Clone, Copy, Debug)]
struct Pair {
    /// What the other one can give.
    width: i64,
    /// Its entry there.
    giver: u32,
    /// Where it takes.
    last: Handover,
}

/// How the widest path reached a tenant.
#[derive(Clone, Copy, Debug, Default)]
struct Reached {
    /// In which search.
    search: u32,
    width: i64,
    /// The entry of the one before, which takes, and of this tenant at the same node, which gives.
    taker: u32,
    giver: u32,
}

#[derive(Clone, Debug, Default)]
struct Search {
    number: u32,
    reached: Vec<Reached>,
    /// (width, tenant), widest first; of equal ones the smallest tenant.
    heap: BinaryHeap<(i64, Reverse<u32>)>,
    /// By node: the entry there of the tenant that the search is for, where it may give.
    own: Vec<u32>,
    /// Exchanges of two tenants that are compared.
    pairs: Vec<Pair>,
}

/// No entry.
const NONE: u32 = u32::MAX;

impl Shares {
    /// From entries in any order, at most one for a tenant and node (of several the first counts).
    #[must_use]
    pub fn new(mut entries: Vec<Entry>) -> Self {
        entries.sort_by_key(|entry| (entry.tenant, entry.node));
        entries.dedup_by_key(|entry| (entry.tenant, entry.node));
        let tenants = entries.last().map_or(0, |entry| entry.tenant as usize + 1);
        let nodes = entries.iter().map(|entry| entry.node as usize + 1).max();
        let mut begin = vec![0; tenants + 1];
        let mut at_node = vec![0; nodes.unwrap_or(0) + 1];
        for (place, entry) in entries.iter().enumerate() {
            begin[entry.tenant as usize + 1] = place + 1;
            at_node[entry.node as usize + 1] += 1;
        }
        for tenant in 1..=tenants {
            begin[tenant] = begin[tenant].max(begin[tenant - 1]);
        }
        for node in 1..at_node.len() {
            at_node[node] += at_node[node - 1];
        }
        let offer = |(place, entry): (usize, &Entry)| Offer {
            entry: *entry,
            part: entry.part(),
            place: place as u32,
        };
        let mut offers: Vec<Offer> = entries.iter().enumerate().map(offer).collect();
        offers.sort_by_key(|offer| offer.entry.node);
        let search = Search {
            reached: vec![Reached::default(); tenants],
            own: vec![NONE; at_node.len() - 1],
            ..Search::default()
        };
        Shares {
            nodes: entries.iter().map(|entry| entry.node).collect(),
            offered: vec![0; entries.len()],
            offers,
            entries,
            begin,
            at_node,
            search,
        }
    }

    /// All entries, by tenant, then node.
    #[must_use]
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    fn is_small(&self) -> bool {
        self.entries.len() <= ENTRIES_FULL
    }

    fn of(&self, tenant: usize) -> std::ops::Range<usize> {
        self.begin[tenant]..self.begin[tenant + 1]
    }

    /// Least part of its demand that any tenant has at any node: what weight allocation raises. 1
    /// without entries.
    #[must_use]
    pub fn worst(&self) -> f64 {
        let parts = self.entries.iter().map(Entry::part);
        parts.min_by(f64::total_cmp).unwrap_or(1.0)
    }

    /// Where a tenant has the least part of what it wants, of the places where it wants more than
    /// `epsilon`.
    fn wants(&self, tenant: usize, epsilon: i64) -> Option<(f64, usize)> {
        let places = self.of(tenant);
        let short = places.filter(|place| self.entries[*place].slack() < -epsilon);
        let parts = short.map(|place| (self.entries[place].part(), place));
        parts.min_by(|one, other| one.0.total_cmp(&other.0))
    }

    /// The offers of a node.
    fn offers(&self, node: u32) -> &[Offer] {
        let node = node as usize;
        &self.offers[self.at_node[node]..self.at_node[node + 1]]
    }

    /// Puts the offers of each node in order: those with the greatest part first.
    fn sort_offers(&mut self) {
        for node in self.at_node.windows(2) {
            let offers = &mut self.offers[node[0]..node[1]];
            // Of numbers that are not negative, bits have the order of the numbers.
            offers.sort_by_key(|offer| Reverse(offer.part.to_bits()));
            for (offer, now) in offers.iter().zip(node[0]..) {
                self.offered[offer.place as usize] = now as u32;
            }
        }
    }

    /// One iteration: every tenant that wants more than `epsilon` somewhere gets the widest cycles
    /// that begin there, the neediest first. Cycles that would move `epsilon` or less are left. In
    /// large systems it ends earlier, after twice as many cycles as there are such tenants.
    pub fn exchange(&mut self, epsilon: i64) -> Exchanged {
        let epsilon = epsilon.max(0);
        let mut done = Exchanged {
            worst_before: self.worst(),
            ..Exchanged::default()
        };
        self.sort_offers();
        let tenants = 0..self.begin.len() - 1;
        let mut needy: Vec<(f64, usize)> = tenants
            .filter_map(|tenant| Some((self.wants(tenant, epsilon)?.0, tenant)))
            .collect();
        needy.sort_by(|one, other| one.0.total_cmp(&other.0));
        let most = if self.is_small() {
            usize::MAX
        } else {
            needy.len() * CYCLES_MEAN
        };
        for (_, tenant) in needy {
            if done.cycles as usize >= most {
                break;
            }
            for _ in 0..CYCLES_EACH {
                // Somebody else's cycle may have helped it already.
                let Some((_, place)) = self.wants(tenant, epsilon) else {
                    break;
                };
                let Some((width, last)) = self.widest_cycle(tenant, place, epsilon) else {
                    break;
                };
                self.apply(tenant, width, last);
                done.cycles += 1;
                done.moved += width;
            }
        }
        done.worst_after = self.worst();
        done
    }

    /// Iterates until nothing more than `epsilon` moves, at most `iterations_max` times; says how
    /// often.
    pub fn even_out(&mut self, epsilon: i64, iterations_max: u32) -> u32 {
        (0..iterations_max)
            .find(|_| self.exchange(epsilon).cycles == 0)
            .unwrap_or(iterations_max)
    }

    /// The widest cycle that begins with `tenant` taking at `place`: its width, and its last step,
    /// in which `tenant` gives. In large systems the widest of those looked at.
    fn widest_cycle(
        &mut self,
        tenant: usize,
        place: usize,
        epsilon: i64,
    ) -> Option<(i64, Handover)> {
        // What it takes at `place` it must give elsewhere.
        for own in self.of(tenant).filter(|own| *own != place) {
            self.search.own[self.nodes[own] as usize] = own as u32;
        }
        let found = if self.is_small() {
            self.search_cycle(tenant, place, epsilon, FULL)
        } else {
            let pair = self.search_pair(place, epsilon);
            pair.or_else(|| self.search_cycle(tenant, place, epsilon, FAR))
        };
        for own in self.of(tenant) {
            self.search.own[self.nodes[own] as usize] = NONE;
        }
        found
    }

    /// Of the first `PAIRS` cycles of two tenants the widest. All are found before any is compared:
    /// so their entries, which lie anywhere, are read side by side.
    fn search_pair(&mut self, place: usize, epsilon: i64) -> Option<(i64, Handover)> {
        let takes = self.entries[place];
        let mut pairs = std::mem::take(&mut self.search.pairs);
        pairs.clear();
        for offer in self.offers(takes.node) {
            let (width, giver) = (offer.entry.gives(&takes), offer.place);
            if width <= epsilon {
                continue;
            }
            let places = self.of(offer.entry.tenant as usize);
            for (&node, taker) in self.nodes[places.clone()].iter().zip(places) {
                let own = self.search.own[node as usize];
                if own != NONE {
                    let taker = taker as u32;
                    let last = Handover { taker, giver: own };
                    pairs.push(Pair { width, giver, last });
                }
            }
            if pairs.len() >= PAIRS {
                break;
            }
        }
        let closed = |pair: &Pair| {
            let [taker, giver] = [pair.last.taker, pair.last.giver];
            let gives = self.entries[giver as usize].gives(&self.entries[taker as usize]);
            (pair.width.min(gives), *pair)
        };
        let widest = pairs.iter().map(closed).max_by_key(|(width, _)| *width);
        self.search.pairs = pairs;
        let (width, pair) = widest.filter(|(width, _)| *width > epsilon)?;
        let other = self.entries[pair.giver as usize].tenant;
        self.search.reached[other as usize] = Reached {
            taker: place as u32,
            giver: pair.giver,
            ..Reached::default()
        };
        Some((width, pair.last))
    }

    /// A variant of Dijkstra's algorithm: widest first.
    fn search_cycle(
        &mut self,
        tenant: usize,
        place: usize,
        epsilon: i64,
        reach: Reach,
    ) -> Option<(i64, Handover)> {
        self.search.number += 1;
        self.search.heap.clear();
        self.relax(tenant, place, i64::MAX, epsilon, reach.givers);
        let mut best: Option<(i64, Handover)> = None;
        for _ in 0..reach.looked_at {
            let Some((width, Reverse(from))) = self.search.heap.pop() else {
                break;
            };
            let from = from as usize;
            if best.is_some_and(|(found, _)| found >= width) {
                break;
            }
            if self.search.reached[from].width != width {
                continue;
            }
            let giver = self.search.reached[from].giver as usize;
            for taker in self.of(from) {
                let own = self.search.own[self.nodes[taker] as usize];
                if own != NONE {
                    let gives = self.entries[own as usize].gives(&self.entries[taker]);
                    let closed = width.min(gives);
                    if closed > best.map_or(epsilon, |(found, _)| found) {
                        let taker = taker as u32;
                        best = Some((closed, Handover { taker, giver: own }));
                    }
                }
                // Giving and taking at one node would undo itself.
                if taker != giver {
                    self.relax(tenant, taker, width, epsilon, reach.givers);
                }
            }
        }
        best
    }

    /// Whoever has a greater part of its demand than `taker` at its node can be taken from.
    fn relax(&mut self, start: usize, taker: usize, width: i64, epsilon: i64, givers: usize) {
        let takes = self.entries[taker];
        let part = takes.part();
        let mut left = givers;
        let node = takes.node as usize;
        for offer in &self.offers[self.at_node[node]..self.at_node[node + 1]] {
            // In order of parts, as they were when the iteration began: those behind have no more,
            // and nobody gives more than the difference of the parts of what is wanted.
            let most = (offer.part - part) * takes.wanted() as f64;
            if most <= epsilon as f64 || left == 0 {
                return;
            }
            let other = offer.entry.tenant;
            let through = width.min(offer.entry.gives(&takes));
            if through <= epsilon || other == takes.tenant || other as usize == start {
                continue;
            }
            left -= 1;
            let reached = &mut self.search.reached[other as usize];
            if reached.search == self.search.number && reached.width >= through {
                continue;
            }
            *reached = Reached {
                search: self.search.number,
                width: through,
                taker: taker as u32,
                giver: offer.place,
            };
            self.search.heap.push((through, Reverse(other)));
        }
    }

    /// Changes a share, and its copy.
    fn change(&mut self, place: usize, by: i64) {
        self.entries[place].share += by;
        let offer = &mut self.offers[self.offered[place] as usize];
        offer.entry.share += by;
        offer.part = offer.entry.part();
    }

    /// Moves `width` along a cycle, from its last step back to its first.
    fn apply(&mut self, tenant: usize, width: i64, last: Handover) {
        let (mut taker, mut giver) = (last.taker as usize, last.giver as usize);
        loop {
            self.change(taker, width);
            self.change(giver, -width);
            let from = self.entries[taker].tenant as usize;
            if from == tenant {
                return;
            }
            let step = self.search.reached[from];
            (taker, giver) = (step.taker as usize, step.giver as usize);
        }
    }
}
