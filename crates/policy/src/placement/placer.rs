//! When partitions move: not for what passes, and not to and fro.

use super::plan::{excess, plan, Node, Partition, Planned};
use super::price::{Moves, Price};
use crate::Nanos;
use std::collections::BTreeMap;

/// How a placer decides.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlacerOptions {
    /// Partitions move when the most used node is this much above the mean, as a part of it.
    pub imbalance_max: f64,
    /// And at least so much of a node. On nodes that have little to do it does not matter who does
    /// it.
    pub excess_min: f64,
    /// That must be so in this many steps in a row.
    pub steps: u32,
    /// Moves of one step.
    pub moves_max: usize,
    /// What a move costs; none: nothing.
    pub price: Option<Price>,
    /// Moves of one step take a node's time for so long, s, where they are made one after the
    /// other; a node is in one at least. 0: in one, where moves are made at once.
    pub turn_s: f64,
    /// A partition that has moved stays for so long.
    pub rest_ns: Nanos,
}

impl Default for PlacerOptions {
    /// 5 % imbalance, at once, any number of moves, which cost nothing.
    fn default() -> Self {
        PlacerOptions {
            imbalance_max: 0.05,
            excess_min: 0.0,
            steps: 1,
            moves_max: usize::MAX,
            price: None,
            turn_s: 0.0,
            rest_ns: 0,
        }
    }
}

impl PlacerOptions {
    /// Where moves cost something: a twentieth of a node, seen three times in a row, is worth a
    /// look, and a partition that has moved stays until what that gained has been had.
    #[must_use]
    pub fn priced(price: Price) -> Self {
        PlacerOptions {
            excess_min: 0.05,
            steps: 3,
            price: Some(price),
            rest_ns: (price.horizon_s * 1e9) as Nanos,
            ..PlacerOptions::default()
        }
    }
}

/// What the placer looks at, beside where partitions are.
#[derive(Clone, Copy, Debug)]
pub struct Looked<'l, const R: usize> {
    /// When.
    pub now: Nanos,
    /// Nodes, with what each can serve.
    pub nodes: &'l [Node<R>],
    /// Of each partition; what is missing has none.
    pub bytes: &'l [u64],
    /// Partitions that stay in any case; what is missing may move.
    pub stays: &'l [bool],
    /// Nodes that take part in a move that is not at its end; what is missing does not.
    pub busy: &'l [bool],
}

/// Decides whether partitions move, step after step.
#[derive(Clone, Debug)]
pub struct Placer {
    options: PlacerOptions,
    /// Steps in a row in which nodes were uneven.
    uneven: u32,
    /// When partitions last moved, as far as they rest.
    moved: BTreeMap<u32, Nanos>,
}

impl Placer {
    /// One that has seen nothing.
    #[must_use]
    pub fn new(options: PlacerOptions) -> Self {
        Placer {
            options,
            uneven: 0,
            moved: BTreeMap::new(),
        }
    }

    /// This partition has moved at that time, or cannot move: it stays for a while.
    pub fn rest(&mut self, partition: u32, now: Nanos) {
        self.moved.insert(partition, now);
    }

    /// It did not move after all.
    pub fn wake(&mut self, partition: u32) {
        self.moved.remove(&partition);
    }

    /// Partitions that stay for a while, and since when.
    pub fn resting(&self) -> impl Iterator<Item = (u32, Nanos)> + '_ {
        self.moved.iter().map(|(partition, at)| (*partition, *at))
    }

    /// For how many steps in a row nodes have been uneven.
    #[must_use]
    pub fn uneven(&self) -> u32 {
        self.uneven
    }

    /// Nothing can be told from this step: what was uneven before must be seen anew.
    pub fn forget(&mut self) {
        self.uneven = 0;
    }

    /// Gives a node to what has none; where nodes have been uneven for long enough, and `evens`,
    /// moves what is worth it. `None`: there is nothing to do.
    pub fn step<const R: usize>(
        &mut self,
        looked: &Looked<'_, R>,
        partitions: &mut [Partition<R>],
        evens: bool,
    ) -> Option<Planned> {
        let options = self.options;
        let missing = partitions.iter().any(|partition| {
            let alive = |node: &&u32| looked.nodes[**node as usize].is_able();
            partition.nodes.iter().filter(alive).count() < partition.replicas
        });
        let (excess, mean) = excess(looked.nodes, partitions);
        let uneven = excess > options.imbalance_max * mean && excess >= options.excess_min;
        self.uneven = if evens && uneven { self.uneven + 1 } else { 0 };
        let moves = self.uneven > 0 && self.uneven >= options.steps;
        if !missing && !moves {
            return None;
        }
        let rest_ns = options.rest_ns;
        self.moved
            .retain(|_, at| looked.now.saturating_sub(*at) < rest_ns);
        let mut stays = looked.stays.to_vec();
        stays.resize(partitions.len(), false);
        for partition in self.moved.keys() {
            if let Some(stays) = stays.get_mut(*partition as usize) {
                *stays = true;
            }
        }
        let may = Moves {
            most: if moves { options.moves_max } else { 0 },
            price: options.price,
            turn_s: options.turn_s,
            bytes: looked.bytes,
            stays: &stays,
            busy: looked.busy,
        };
        let planned = plan(looked.nodes, partitions, &may);
        if rest_ns > 0 {
            for moved in &planned.moved {
                self.rest(moved.partition, looked.now);
            }
        }
        Some(planned)
    }
}
