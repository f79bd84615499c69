//! Partition placement: which node holds which replica (Pisces 4.2.1, 4.3.1).
//!
//! The demand of a partition is its part of its tenant's fair share ([`fair_demand`]), so a placement that fits is
//! one in which every tenant can have its share at once. Two steps: what has no place yet goes, largest first,
//! to the least used node (greedy); then the most used node hands over what best lowers the higher of the two
//! nodes' use, until nothing does (better). Partitions that lie well stay where they are.

use std::cmp::Reverse;
use std::collections::BTreeSet;

/// A node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node {
    /// What it can serve, in the unit of demands; 0: nothing may be there (it is lost, or being emptied).
    pub capacity: u64,
    /// Replicas of one partition lie in different domains (racks, hosts).
    pub domain: u32,
}

/// A partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partition {
    /// Demand of each of its replicas.
    pub demand: u64,
    /// How many replicas it is to have.
    pub replicas: usize,
    /// The nodes that hold them; those without a node are placed.
    pub nodes: Vec<u32>,
}

/// What a plan came to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Planned {
    /// Replicas that were given a node, or another one.
    pub moves: usize,
    /// Replicas for which there is no domain left; 0 unless there are fewer domains than replicas.
    pub unplaced: usize,
    /// Highest use of any node, 1 is its capacity (the objective, Pisces eq. 4.7).
    pub use_max: f64,
}

/// Part of a tenant's fair share for each of its partitions: `share` over all their replicas, in proportion to
/// measured rates (Pisces 4.3.1, f); alike if nothing was measured. Sums to `share`, up to rounding down.
#[must_use]
pub fn fair_demand(share: u64, rates: &[u64]) -> Vec<u64> {
    let sum: u128 = rates.iter().map(|rate| u128::from(*rate)).sum();
    let alike = u128::from(share) / rates.len().max(1) as u128;
    let part = |rate: &u64| match sum {
        0 => alike as u64,
        sum => (u128::from(share) * u128::from(*rate) / sum) as u64,
    };
    rates.iter().map(part).collect()
}

/// Places what has no place and evens out the rest, with at most `moves_max` moves of what had one. Replicas on
/// nodes that do not exist, cannot hold anything, or share a domain with another are placed anew.
pub fn plan(nodes: &[Node], partitions: &mut [Partition], moves_max: usize) -> Planned {
    let mut state = State::new(nodes, partitions);
    let (mut moves, unplaced) = state.place_missing(partitions);
    for _ in 0..moves_max {
        if !state.hand_over(partitions) {
            break;
        }
        moves += 1;
    }
    Planned {
        moves,
        unplaced,
        use_max: state.use_max(),
    }
}

/// How far the most used node is above the mean, as a part of it.
pub(super) fn imbalance(nodes: &[Node], partitions: &[Partition]) -> f64 {
    let mut used = vec![0.0; nodes.len()];
    for partition in partitions {
        for node in &partition.nodes {
            used[*node as usize] += partition.demand as f64;
        }
    }
    let whole: f64 = nodes.iter().map(|node| node.capacity as f64).sum();
    let mean = used.iter().sum::<f64>() / whole.max(1.0);
    let uses = used.iter().zip(nodes).filter(|(_, node)| node.capacity > 0);
    let most = uses
        .map(|(used, node)| used / node.capacity as f64)
        .fold(0.0, f64::max);
    if mean > 0.0 {
        most / mean - 1.0
    } else {
        0.0
    }
}

struct State<'n> {
    nodes: &'n [Node],
    used: Vec<u64>,
    /// Nodes that can hold something, by use.
    order: BTreeSet<(u64, u32)>,
    /// (demand, partition) of the replicas on each node.
    held: Vec<BTreeSet<(u64, u32)>>,
}

/// Nodes that are tried as receivers of one replica.
const RECEIVERS: usize = 16;

impl<'n> State<'n> {
    fn new(nodes: &'n [Node], partitions: &mut [Partition]) -> Self {
        let mut state = State {
            nodes,
            used: vec![0; nodes.len()],
            order: BTreeSet::new(),
            held: vec![BTreeSet::new(); nodes.len()],
        };
        for (number, partition) in partitions.iter_mut().enumerate() {
            let mut domains = BTreeSet::new();
            partition.nodes.retain(|node| {
                let found = nodes.get(*node as usize);
                found.is_some_and(|n| n.capacity > 0 && domains.insert(n.domain))
            });
            partition.nodes.truncate(partition.replicas);
            for &node in &partition.nodes {
                state.used[node as usize] += partition.demand;
                state.held[node as usize].insert((partition.demand, number as u32));
            }
        }
        let able = (0..nodes.len()).filter(|node| nodes[*node].capacity > 0);
        state.order = able.map(|node| (state.key(node), node as u32)).collect();
        state
    }

    /// Use in parts of 2^-32 of the capacity.
    fn key(&self, node: usize) -> u64 {
        self.key_with(node, self.used[node])
    }

    fn key_with(&self, node: usize, used: u64) -> u64 {
        let capacity = u128::from(self.nodes[node].capacity.max(1));
        u64::try_from((u128::from(used) << 32) / capacity).unwrap_or(u64::MAX)
    }

    fn use_max(&self) -> f64 {
        let last = self.order.last().map_or(0, |(key, _)| *key);
        last as f64 / (1u64 << 32) as f64
    }

    fn add(&mut self, node: u32, number: u32, demand: u64) {
        self.change(node, |used| used + demand);
        self.held[node as usize].insert((demand, number));
    }

    fn take(&mut self, node: u32, number: u32, demand: u64) {
        self.change(node, |used| used - demand);
        self.held[node as usize].remove(&(demand, number));
    }

    fn change(&mut self, node: u32, change: impl Fn(u64) -> u64) {
        let place = node as usize;
        self.order.remove(&(self.key(place), node));
        self.used[place] = change(self.used[place]);
        self.order.insert((self.key(place), node));
    }

    /// Whether a partition may have a replica there; `leaving`: one of its nodes that it leaves for it.
    fn allows(&self, partition: &Partition, node: u32, leaving: Option<u32>) -> bool {
        let domain = self.nodes[node as usize].domain;
        let mut others = partition.nodes.iter().filter(|n| Some(**n) != leaving);
        others.all(|other| self.nodes[*other as usize].domain != domain)
    }

    /// Greedy: largest first, to the least used node. Returns how many were placed, and how many could not be.
    fn place_missing(&mut self, partitions: &mut [Partition]) -> (usize, usize) {
        let mut missing: Vec<(Reverse<u64>, usize)> = (0..partitions.len())
            .filter(|&number| partitions[number].nodes.len() < partitions[number].replicas)
            .map(|number| (Reverse(partitions[number].demand), number))
            .collect();
        missing.sort_unstable();
        let (mut placed, mut unplaced) = (0, 0);
        for (Reverse(demand), number) in missing {
            while partitions[number].nodes.len() < partitions[number].replicas {
                let able = self.order.iter().map(|(_, node)| *node);
                let mut able = able.filter(|node| self.allows(&partitions[number], *node, None));
                let Some(node) = able.next() else {
                    unplaced += partitions[number].replicas - partitions[number].nodes.len();
                    break;
                };
                self.add(node, number as u32, demand);
                partitions[number].nodes.push(node);
                placed += 1;
            }
        }
        (placed, unplaced)
    }

    /// The most used node hands one replica to one of the least used: the pair that leaves the higher of the two
    /// lowest. False if none lowers it.
    fn hand_over(&mut self, partitions: &mut [Partition]) -> bool {
        let Some(&(high, from)) = self.order.last() else {
            return false;
        };
        let mut best: Option<(u64, u32, u32, u64)> = None;
        for &(_, to) in self.order.iter().take(RECEIVERS) {
            for &(demand, number) in &self.held[from as usize] {
                let left = self.key_with(from as usize, self.used[from as usize] - demand);
                let got = self.key_with(to as usize, self.used[to as usize] + demand);
                let higher = left.max(got);
                // Demands rise: once the receiver is the higher one, it only gets worse.
                let better = higher < best.map_or(high, |(found, ..)| found);
                if better && self.allows(&partitions[number as usize], to, Some(from)) {
                    best = Some((higher, to, number, demand));
                }
                if got >= high {
                    break;
                }
            }
        }
        let Some((_, to, number, demand)) = best else {
            return false;
        };
        self.take(from, number, demand);
        self.add(to, number, demand);
        let nodes = &mut partitions[number as usize].nodes;
        nodes.retain(|node| *node != from);
        nodes.push(to);
        true
    }
}
