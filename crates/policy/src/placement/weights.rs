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

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// What a tenant has and wants at a node, in any unit of rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The tenant, counted from 0.
    pub tenant: u32,
    /// The node, counted from 0.
    pub node: u32,
    /// Its local share.
    pub share: i64,
    /// Its demand.
    pub demand: i64,
}

impl Entry {
    /// Share beyond demand; negative where it wants more.
    #[must_use]
    pub fn slack(&self) -> i64 {
        self.share - self.demand
    }

    /// What it wants, at least 1: so that there is a part of it.
    fn wanted(&self) -> i64 {
        self.demand.max(1)
    }

    /// The part of its demand that it has; above 1 where it has more.
    #[must_use]
    pub fn part(&self) -> f64 {
        self.share as f64 / self.wanted() as f64
    }

    /// How much another may take of it until both have the same part of their demands; not above 0
    /// where it has no greater part, and never more than it has.
    fn gives(&self, taker: &Entry) -> i64 {
        let [theirs, own] = [taker, self].map(|entry| entry.wanted() as f64);
        let apart = self.share as f64 * theirs - taker.share as f64 * own;
        ((apart / (theirs + own)) as i64).min(self.share)
    }
}

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
    /// The entries of each node; those with the most of their demands when the last iteration began
    /// first.
    at_node: Vec<Vec<u32>>,
    search: Search,
}

/// Up to so many entries every cycle is looked for. In larger systems an exchange between two
/// tenants is looked for first, which nearly always exists there, and longer cycles only where
/// there is none: 1,000 nodes and 10,000 tenants would take minutes else.
const ENTRIES_FULL: usize = 1 << 14;
/// There, givers tried at a node, those with the most slack, for an exchange of two tenants.
const GIVERS_NEAR: usize = 32;
/// And for a longer cycle, with the tenants looked at for one.
const LOOKED_AT_MAX: usize = 16;
const GIVERS_FAR: usize = 4;

/// Cycles of a tenant in an iteration. With one, 1,000 nodes take three times as many iterations,
/// and as long.
const CYCLES_EACH: u32 = 3;

/// How far a search goes.
#[derive(Clone, Copy, Debug)]
struct Reach {
    looked_at: usize,
    givers: usize,
    /// Whether cycles may have more than two tenants.
    longer: bool,
}

/// A step of a cycle: who takes at a node, and who gives there, as places in the list of entries.
#[derive(Clone, Copy, Debug)]
struct Handover {
    taker: u32,
    giver: u32,
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
    /// By node: the entry there of the tenant that the search is for.
    own: Vec<u32>,
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
        let mut at_node = vec![Vec::new(); nodes.unwrap_or(0)];
        for (place, entry) in entries.iter().enumerate() {
            begin[entry.tenant as usize + 1] = place + 1;
            at_node[entry.node as usize].push(place as u32);
        }
        for tenant in 1..=tenants {
            begin[tenant] = begin[tenant].max(begin[tenant - 1]);
        }
        let search = Search {
            reached: vec![Reached::default(); tenants],
            own: vec![NONE; at_node.len()],
            ..Search::default()
        };
        Shares {
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

    /// One iteration: every tenant that wants more than `epsilon` somewhere gets the widest cycles
    /// that begin there, the neediest first. Cycles that would move `epsilon` or less are left.
    pub fn exchange(&mut self, epsilon: i64) -> Exchanged {
        let epsilon = epsilon.max(0);
        let mut done = Exchanged {
            worst_before: self.worst(),
            ..Exchanged::default()
        };
        for at in &mut self.at_node {
            // Of numbers that are not negative, bits have the order of the numbers.
            at.sort_by_cached_key(|place| Reverse(self.entries[*place as usize].part().to_bits()));
        }
        let tenants = 0..self.begin.len() - 1;
        let mut needy: Vec<(f64, usize)> = tenants
            .filter_map(|tenant| Some((self.wants(tenant, epsilon)?.0, tenant)))
            .collect();
        needy.sort_by(|one, other| one.0.total_cmp(&other.0));
        for (_, tenant) in needy {
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
    /// in which `tenant` gives.
    fn widest_cycle(
        &mut self,
        tenant: usize,
        place: usize,
        epsilon: i64,
    ) -> Option<(i64, Handover)> {
        let small = self.entries.len() <= ENTRIES_FULL;
        let near = Reach {
            looked_at: usize::MAX,
            givers: if small { usize::MAX } else { GIVERS_NEAR },
            longer: small,
        };
        let far = Reach {
            looked_at: LOOKED_AT_MAX,
            givers: GIVERS_FAR,
            longer: true,
        };
        for own in self.of(tenant) {
            let node = self.entries[own].node as usize;
            self.search.own[node] = own as u32;
        }
        let found = match self.search_cycle(tenant, place, epsilon, near) {
            None if !small => self.search_cycle(tenant, place, epsilon, far),
            found => found,
        };
        for own in self.of(tenant) {
            let node = self.entries[own].node as usize;
            self.search.own[node] = NONE;
        }
        found
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
                let own = self.search.own[self.entries[taker].node as usize];
                // What it took at `place` it must give elsewhere.
                if own != NONE && own as usize != place {
                    let gives = self.entries[own as usize].gives(&self.entries[taker]);
                    let closed = width.min(gives);
                    if closed > best.map_or(epsilon, |(found, _)| found) {
                        let taker = taker as u32;
                        best = Some((closed, Handover { taker, giver: own }));
                    }
                }
                // Giving and taking at one node would undo itself.
                if reach.longer && taker != giver {
                    self.relax(tenant, taker, width, epsilon, reach.givers);
                }
            }
        }
        best
    }

    /// Whoever has a greater part of its demand than `taker` at its node can be taken from.
    fn relax(&mut self, start: usize, taker: usize, width: i64, epsilon: i64, givers: usize) {
        let takes = self.entries[taker];
        let mut left = givers;
        for &giver in &self.at_node[takes.node as usize] {
            let entry = &self.entries[giver as usize];
            // In order of parts, as they were when the iteration began: those behind have no more,
            // and nobody gives more than the difference of the parts of what is wanted.
            let most = (entry.part() - takes.part()) * takes.wanted() as f64;
            if most <= epsilon as f64 || left == 0 {
                return;
            }
            let other = entry.tenant;
            let through = width.min(entry.gives(&takes));
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
                giver,
            };
            self.search.heap.push((through, Reverse(other)));
        }
    }

    /// Moves `width` along a cycle, from its last step back to its first.
    fn apply(&mut self, tenant: usize, width: i64, last: Handover) {
        let (mut taker, mut giver) = (last.taker as usize, last.giver as usize);
        loop {
            self.entries[taker].share += width;
            self.entries[giver].share -= width;
            let from = self.entries[taker].tenant as usize;
            if from == tenant {
                return;
            }
            let step = self.search.reached[from];
            (taker, giver) = (step.taker as usize, step.giver as usize);
        }
    }
}
