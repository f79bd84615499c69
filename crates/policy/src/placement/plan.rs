//! Partition placement: which node holds which replica (Pisces 4.2.1, 4.3.1).
//!
//! Demands and capacities are vectors, a number for each resource: bytes in, requests, bytes out, …
//! The demand of a partition is its part of its tenant's fair share ([`fair_demand`]), so a
//! placement that fits is one in which every tenant can have its share at once. A node is as full
//! as the resource that it has least left of. Two steps: what has no place yet goes, largest first,
//! to the node that is least full with it (greedy); then the fullest node hands over what best
//! lowers the higher of the two nodes' use, until nothing does (better). Where moves have a price,
//! what lowers it by less stays, no partition moves twice, a node takes part in moves for a bounded
//! time, and where no single one lowers it two may change places. Partitions that lie well stay
//! where they are.

mod exchange;

use super::price::{Move, Moves};
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// A node with `R` resources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node<const R: usize> {
    /// What it can serve of each resource, in the units of demands; 0 of any: nothing may be there
    /// (it is lost, or being emptied).
    pub capacity: [u64; R],
    /// Replicas of one partition lie in different domains (racks, hosts).
    pub domain: u32,
}

impl<const R: usize> Node<R> {
    /// Whether something may be there.
    #[must_use]
    pub fn is_able(&self) -> bool {
        self.capacity.iter().all(|capacity| *capacity > 0)
    }

    /// The part in use of the resource of which the largest part is, 1 is all of it; a node that is
    /// not able is not used.
    fn use_of(&self, used: &[u64; R]) -> f64 {
        let parts = used.iter().zip(self.capacity);
        let parts = parts.filter(|(_, capacity)| *capacity > 0);
        parts
            .map(|(used, capacity)| *used as f64 / capacity as f64)
            .fold(0.0, f64::max)
    }
}

/// A partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partition<const R: usize> {
    /// Demand of each of its replicas, by resource: any of them is read.
    pub demand: [u64; R],
    /// Demand of the first of them on top: it alone is written.
    pub primary: [u64; R],
    /// How many replicas it is to have.
    pub replicas: usize,
    /// The nodes that hold them, the primary first; those without a node are placed.
    pub nodes: Vec<u32>,
}

impl<const R: usize> Partition<R> {
    /// One that is read only, or not yet known to be written.
    #[must_use]
    pub fn new(demand: [u64; R], replicas: usize, nodes: Vec<u32>) -> Self {
        Partition {
            demand,
            primary: [0; R],
            replicas,
            nodes,
        }
    }

    /// Demand of the replica at a place in the order of `nodes`.
    fn demand_at(&self, place: usize) -> [u64; R] {
        let mut demand = self.demand;
        if place == 0 {
            add(&mut demand, &self.primary);
        }
        demand
    }

    /// Where its replica on a node is in that order; the place of a new one if there is none.
    fn place_of(&self, node: u32) -> usize {
        let place = self.nodes.iter().position(|other| *other == node);
        place.unwrap_or(self.nodes.len())
    }
}

/// What a plan came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Planned {
    /// Replicas that were given a node, or another one.
    pub moves: usize,
    /// Partitions of which another replica became the primary; nothing is copied for that.
    pub promoted: usize,
    /// Replicas for which there is no domain left; 0 unless there are fewer domains than replicas.
    pub unplaced: usize,
    /// Highest use of any resource of any node, 1 is its capacity (the objective, Pisces eq. 4.7).
    pub use_max: f64,
    /// Replicas that had a node and were given another.
    pub moved: Vec<Move>,
}

/// Part of a tenant's fair share for each of its partitions: `share` over all their replicas of the
/// resource that the tenant uses most (its dominant share), of the others in proportion to measured
/// rates (Pisces 4.3.1, f). If nothing was measured, alike, and as much of every resource. The
/// dominant resource's parts sum to `share`, up to rounding down. Rates are in units of which the
/// system has as much of every resource, such as times of a node.
#[must_use]
pub fn fair_demand<const R: usize>(share: u64, rates: &[[u64; R]]) -> Vec<[u64; R]> {
    let mut sums = [0u128; R];
    for rate in rates {
        for (sum, rate) in sums.iter_mut().zip(rate) {
            *sum += u128::from(*rate);
        }
    }
    let dominant = sums.into_iter().max().unwrap_or(0);
    let alike = share / rates.len().max(1) as u64;
    let part = |rate: u64| match dominant {
        0 => alike,
        sum => (u128::from(share) * u128::from(rate) / sum) as u64,
    };
    rates.iter().map(|rate| rate.map(part)).collect()
}

/// Places what has no place and evens out the rest, as far as what had a place may move. Replicas
/// on nodes that do not exist, cannot hold anything, or share a domain
/// with another are placed anew.
pub fn plan<const R: usize>(
    nodes: &[Node<R>],
    partitions: &mut [Partition<R>],
    moves: &Moves<'_>,
) -> Planned {
    let mut state = State::new(nodes, partitions);
    let (placed, unplaced) = state.place_missing(partitions);
    let (mut moved, mut promoted) = (Vec::new(), 0);
    state.close((0..nodes.len() as u32).filter(|node| moves.is_busy(*node)));
    while moved.len() + promoted < moves.most {
        let two = moved.len() + promoted + 1 < moves.most && (moves.fine || moved.is_empty());
        let mut handed = state.hand_over(partitions, moves);
        if handed.is_none() && two {
            handed = state.exchange(partitions, moves);
        }
        let made = match handed {
            Some(Handed::Replicas(made)) => made,
            Some(Handed::Lead) => {
                promoted += 1;
                continue;
            }
            None => break,
        };
        made.iter().for_each(|one| state.spend(one, moves));
        moved.extend(made);
    }
    Planned {
        moves: placed + moved.len(),
        promoted,
        unplaced,
        use_max: state.use_max(),
        moved,
    }
}

/// How far the fullest node is above the mean of the resource that is used most, and that mean, as
/// parts of a node: no placement has less than the mean.
pub(super) fn excess<const R: usize>(nodes: &[Node<R>], partitions: &[Partition<R>]) -> (f64, f64) {
    let mut used = vec![[0; R]; nodes.len()];
    for partition in partitions {
        for (place, node) in partition.nodes.iter().enumerate() {
            add(&mut used[*node as usize], &partition.demand_at(place));
        }
    }
    let able = || nodes.iter().zip(&used).filter(|(node, _)| node.is_able());
    let mean = (0..R).map(|resource| {
        let of = |sum: f64, value: u64| sum + value as f64;
        let whole = able().fold(0.0, |sum, (node, _)| of(sum, node.capacity[resource]));
        able().fold(0.0, |sum, (_, used)| of(sum, used[resource])) / whole.max(1.0)
    });
    let mean = mean.fold(0.0, f64::max);
    let most = able().map(|(node, used)| node.use_of(used));
    (most.fold(0.0, f64::max) - mean, mean)
}

fn add<const R: usize>(used: &mut [u64; R], demand: &[u64; R]) {
    for (used, demand) in used.iter_mut().zip(demand) {
        *used += demand;
    }
}

fn take<const R: usize>(used: &mut [u64; R], demand: &[u64; R]) {
    for (used, demand) in used.iter_mut().zip(demand) {
        *used -= demand;
    }
}

/// A use as a number that sorts as it does: uses are not negative.
type Key = u64;

/// What the fullest node handed to another.
enum Handed {
    /// A replica, with its place in the order; or two that changed places.
    Replicas(Vec<Move>),
    /// Being the primary of a partition that both have.
    Lead,
}

struct State<'n, const R: usize> {
    nodes: &'n [Node<R>],
    used: Vec<[u64; R]>,
    /// Nodes that can hold something, by use.
    order: BTreeSet<(Key, u32)>,
    /// Nodes that take part in no further move.
    closed: BTreeSet<u32>,
    /// The partitions with a replica on each node.
    held: Vec<BTreeSet<u32>>,
    /// Partitions that have moved where that has a price.
    moved: BTreeSet<u32>,
    /// How long the moves of each node take, s.
    spent_s: Vec<f64>,
}

/// Nodes that are tried as receivers of one replica, unless none of them has room for it.
const RECEIVERS: usize = 16;

impl<'n, const R: usize> State<'n, R> {
    fn new(nodes: &'n [Node<R>], partitions: &mut [Partition<R>]) -> Self {
        let mut state = State {
            nodes,
            used: vec![[0; R]; nodes.len()],
            order: BTreeSet::new(),
            closed: BTreeSet::new(),
            held: vec![BTreeSet::new(); nodes.len()],
            moved: BTreeSet::new(),
            spent_s: vec![0.0; nodes.len()],
        };
        for (number, partition) in partitions.iter_mut().enumerate() {
            let mut domains = BTreeSet::new();
            partition.nodes.retain(|node| {
                let found = nodes.get(*node as usize);
                found.is_some_and(|n| n.is_able() && domains.insert(n.domain))
            });
            partition.nodes.truncate(partition.replicas);
            for (place, &node) in partition.nodes.iter().enumerate() {
                add(&mut state.used[node as usize], &partition.demand_at(place));
                state.held[node as usize].insert(number as u32);
            }
        }
        let able = (0..nodes.len()).filter(|node| nodes[*node].is_able());
        state.order = able.map(|node| (state.key(node), node as u32)).collect();
        state
    }

    fn key(&self, node: usize) -> Key {
        self.nodes[node].use_of(&self.used[node]).to_bits()
    }

    /// These take part in no further move.
    fn close(&mut self, nodes: impl IntoIterator<Item = u32>) {
        self.closed.extend(nodes);
    }

    /// Where moves have a price, this one takes its time of both nodes.
    fn spend(&mut self, one: &Move, moves: &Moves<'_>) {
        if moves.price.is_none() {
            return;
        }
        self.moved.insert(one.partition);
        for node in [one.from, one.to] {
            let spent_s = &mut self.spent_s[node as usize];
            *spent_s += moves.takes_s(one.partition);
            if *spent_s >= moves.turn_s {
                self.closed.insert(node);
            }
        }
    }

    fn use_of(&self, node: u32) -> f64 {
        f64::from_bits(self.key(node as usize))
    }

    fn use_max(&self) -> f64 {
        self.order
            .last()
            .map_or(0.0, |(key, _)| f64::from_bits(*key))
    }

    /// How full a node would be with a demand more.
    fn with(&self, node: u32, demand: &[u64; R]) -> f64 {
        let mut used = self.used[node as usize];
        add(&mut used, demand);
        self.nodes[node as usize].use_of(&used)
    }

    /// And with a demand less.
    fn without(&self, node: u32, demand: &[u64; R]) -> f64 {
        let mut used = self.used[node as usize];
        take(&mut used, demand);
        self.nodes[node as usize].use_of(&used)
    }

    fn change(&mut self, node: u32, change: impl Fn(&mut [u64; R])) {
        let place = node as usize;
        self.order.remove(&(self.key(place), node));
        change(&mut self.used[place]);
        self.order.insert((self.key(place), node));
    }

    /// Whether a partition may have a replica there; `leaving`: one of its nodes that it leaves for
    /// it.
    fn allows(&self, partition: &Partition<R>, node: u32, leaving: Option<u32>) -> bool {
        if leaving.is_some() && self.closed.contains(&node) {
            return false;
        }
        let domain = self.nodes[node as usize].domain;
        let mut others = partition.nodes.iter().filter(|n| Some(**n) != leaving);
        others.all(|other| self.nodes[*other as usize].domain != domain)
    }

    /// The node that is least full with a replica of this partition, and how full it is then. Looks
    /// on only as long as none has room for it.
    fn receiver(&self, partition: &Partition<R>, leaving: Option<u32>) -> Option<(f64, u32)> {
        let demand = partition.demand_at(match leaving {
            Some(node) => partition.place_of(node),
            None => partition.nodes.len(),
        });
        let mut best: Option<(f64, u32)> = None;
        for (looked_at, &(key, node)) in self.order.iter().enumerate() {
            let enough = |found: f64| {
                found <= f64::from_bits(key) || (looked_at >= RECEIVERS && found <= 1.0)
            };
            if best.is_some_and(|(found, _)| enough(found)) {
                break;
            }
            if self.allows(partition, node, leaving) {
                let full = self.with(node, &demand);
                if best.is_none_or(|(found, _)| full < found) {
                    best = Some((full, node));
                }
            }
        }
        best
    }

    /// Greedy: largest first, to the node that is least full with it. Returns how many were placed,
    /// and how many could not be.
    fn place_missing(&mut self, partitions: &mut [Partition<R>]) -> (usize, usize) {
        let mut whole = Node {
            capacity: [1; R],
            domain: 0,
        };
        for node in self.nodes.iter().filter(|node| node.is_able()) {
            add(&mut whole.capacity, &node.capacity);
        }
        let size = |partition: &Partition<R>| {
            let next = partition.demand_at(partition.nodes.len());
            whole.use_of(&next).to_bits()
        };
        let mut missing: Vec<(Reverse<Key>, usize)> = (0..partitions.len())
            .filter(|&number| partitions[number].nodes.len() < partitions[number].replicas)
            .map(|number| (Reverse(size(&partitions[number])), number))
            .collect();
        missing.sort_unstable();
        let (mut placed, mut unplaced) = (0, 0);
        for (_, number) in missing {
            let partition = &mut partitions[number];
            while partition.nodes.len() < partition.replicas {
                let Some((_, node)) = self.receiver(partition, None) else {
                    unplaced += partition.replicas - partition.nodes.len();
                    break;
                };
                let demand = partition.demand_at(partition.nodes.len());
                self.change(node, |used| add(used, &demand));
                self.held[node as usize].insert(number as u32);
                partition.nodes.push(node);
                placed += 1;
            }
        }
        (placed, unplaced)
    }

    /// The fullest node that may hands one replica to another, or lets another lead a partition
    /// that both have: what leaves the higher of the two lowest, its cost counted. `None` if
    /// nothing lowers it.
    fn hand_over(&mut self, partitions: &mut [Partition<R>], moves: &Moves<'_>) -> Option<Handed> {
        let mut open = self.order.iter().rev();
        let &(high, from) = open.find(|(_, node)| !self.closed.contains(node))?;
        let mut best: Option<(f64, u32, u32)> = None;
        for &number in &self.held[from as usize] {
            let partition = &partitions[number as usize];
            let mut lowest = best.map_or(f64::from_bits(high), |(found, ..)| found);
            let place = partition.place_of(from);
            if place == 0 {
                // What costs nothing is looked at first.
                let left = self.without(from, &partition.primary);
                for &to in &partition.nodes[1..] {
                    let found = left.max(self.with(to, &partition.primary));
                    if found < lowest {
                        (lowest, best) = (found, Some((found, to, number)));
                    }
                }
            }
            let cost = moves.cost(number);
            let left = self.without(from, &partition.demand_at(place));
            let may = moves.may(number) && !self.moved.contains(&number);
            if left + cost >= lowest || !may {
                continue;
            }
            let receiver = self.receiver(partition, Some(from));
            if let Some((got, to)) = receiver.filter(|(got, _)| *got + cost < lowest) {
                best = Some((left.max(got) + cost, to, number));
            }
        }
        let (_, to, number) = best?;
        let partition = &mut partitions[number as usize];
        let (place, other) = (partition.place_of(from), partition.place_of(to));
        if other < partition.nodes.len() {
            self.change(from, |used| take(used, &partition.primary));
            self.change(to, |used| add(used, &partition.primary));
            partition.nodes.swap(place, other);
            return Some(Handed::Lead);
        }
        let before = [from, to].map(|node| self.use_of(node));
        self.hand(partitions, number, [from, to]);
        let one = Move {
            partition: number,
            from,
            to,
            before,
            after: [from, to].map(|node| self.use_of(node)),
            follows: false,
        };
        Some(Handed::Replicas(vec![one]))
    }

    /// A replica is at another node from now on.
    fn hand(&mut self, partitions: &mut [Partition<R>], number: u32, [from, to]: [u32; 2]) {
        let partition = &mut partitions[number as usize];
        let place = partition.place_of(from);
        let demand = partition.demand_at(place);
        self.change(from, |used| take(used, &demand));
        self.change(to, |used| add(used, &demand));
        self.held[from as usize].remove(&number);
        self.held[to as usize].insert(number);
        // It keeps its place: who leads a partition does not change because another replica moves.
        partition.nodes[place] = to;
    }
}
