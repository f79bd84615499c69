//! Two partitions that change places: where any single one is too large to go, the difference of
//! two may be what a node has too much.

use super::{add, take, Handed, Key, Move, Moves, Partition, State, RECEIVERS};

/// Of two nodes a partition each, and how full the fuller is then, with what that costs.
#[derive(Clone, Copy)]
struct Pair {
    found: f64,
    goes: u32,
    comes: u32,
    to: u32,
}

impl<const R: usize> State<'_, R> {
    /// The fullest node that may exchanges one replica for another's: what leaves the higher of the
    /// two lowest, both moves' costs counted. `None` if nothing lowers it, or where moves cost
    /// nothing: those are made for thousands of nodes at a time.
    pub(super) fn exchange(
        &mut self,
        partitions: &mut [Partition<R>],
        moves: &Moves<'_>,
    ) -> Option<Handed> {
        moves.price?;
        let mut open = self.order.iter().rev();
        let &(high, from) = open.find(|(_, node)| !self.closed.contains(node))?;
        let others = self.order.iter().map(|(_, node)| *node);
        let others = others.filter(|node| *node != from && !self.closed.contains(node));
        let mut best: Option<Pair> = None;
        for to in others.take(RECEIVERS) {
            let most = best.map_or(f64::from_bits(high), |best| best.found);
            best = self.pair(partitions, moves, [from, to], most).or(best);
        }
        let Pair {
            goes, comes, to, ..
        } = best?;
        let before = [from, to].map(|node| self.use_of(node));
        self.hand(partitions, goes, [from, to]);
        self.hand(partitions, comes, [to, from]);
        let after = [from, to].map(|node| self.use_of(node));
        // What both come to: one without the other gains nothing.
        let first = Move {
            partition: goes,
            from,
            to,
            before,
            after,
            follows: false,
        };
        let back = |uses: [f64; 2]| [uses[1], uses[0]];
        let second = Move {
            partition: comes,
            from: to,
            to: from,
            before: back(before),
            after: back(after),
            follows: true,
        };
        Some(Handed::Replicas(vec![first, second]))
    }

    /// What the first of two nodes gives and gets for it, so that both are less full than `most`.
    fn pair(
        &self,
        partitions: &[Partition<R>],
        moves: &Moves<'_>,
        [from, to]: [u32; 2],
        most: f64,
    ) -> Option<Pair> {
        // By what they take of the node that would give less: sizes that are wanted are near each
        // other.
        let sized = |at: u32, other: u32| {
            let may = |number: &&u32| moves.may(**number) && !self.moved.contains(number);
            let held = self.held[at as usize].iter().filter(may);
            let sized = held.filter_map(|number| {
                let partition = &partitions[*number as usize];
                let demand = partition.demand_at(partition.place_of(at));
                let size = self.nodes[to as usize].use_of(&demand);
                let allowed = self.allows(partition, other, Some(at));
                allowed.then_some((size.to_bits(), *number))
            });
            sized.collect::<Vec<(Key, u32)>>()
        };
        let mut back = sized(to, from);
        back.sort_unstable();
        let half = (self.use_of(from) - self.use_of(to)) / 2.0;
        let mut best: Option<Pair> = None;
        for (size, goes) in sized(from, to) {
            let wanted = f64::from_bits(size) - half;
            let at = back.partition_point(|(size, _)| f64::from_bits(*size) < wanted);
            for &(_, comes) in back.iter().take(at + 1).skip(at.saturating_sub(1)) {
                let cost = moves.cost(goes) + moves.cost(comes);
                let found = self.exchanged(partitions, [goes, comes], [from, to]) + cost;
                if found < best.map_or(most, |best| best.found) {
                    best = Some(Pair {
                        found,
                        goes,
                        comes,
                        to,
                    });
                }
            }
        }
        best
    }

    /// How full the fuller of two nodes is if a partition of the first changes places with one of
    /// the second.
    fn exchanged(
        &self,
        partitions: &[Partition<R>],
        [goes, comes]: [u32; 2],
        [from, to]: [u32; 2],
    ) -> f64 {
        let demand = |number: u32, at: u32| {
            let partition = &partitions[number as usize];
            partition.demand_at(partition.place_of(at))
        };
        let (goes, comes) = (demand(goes, from), demand(comes, to));
        let with = |node: u32, more: &[u64; R], less: &[u64; R]| {
            let mut used = self.used[node as usize];
            add(&mut used, more);
            take(&mut used, less);
            self.nodes[node as usize].use_of(&used)
        };
        with(from, &comes, &goes).max(with(to, &goes, &comes))
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::price::Price;
    use super::super::{excess, plan, Node};
    use super::*;
    use proptest::prelude::*;

    const PRICE: Price = Price {
        bytes_per_s: 50e6,
        load: 0.5,
        least_s: 0.3,
        horizon_s: 300.0,
    };

    fn nodes(count: u32) -> Vec<Node<1>> {
        let one = |domain| Node {
            capacity: [1_000],
            domain,
        };
        (0..count).map(one).collect()
    }

    fn partitions(demands: &[(u64, u32)]) -> Vec<Partition<1>> {
        let one = |(demand, node): &(u64, u32)| Partition::new([*demand], 1, vec![*node]);
        demands.iter().map(one).collect()
    }

    fn moves(most: usize) -> Moves<'static> {
        Moves {
            price: Some(PRICE),
            turn_s: 10.0,
            fine: true,
            ..Moves::free(most)
        }
    }

    /// One node is asked for 1.04 and the other for .96, and none of what they have is as small as
    /// the half of what is between them.
    const UNEVEN: [(u64, u32); 8] = [
        (300, 0),
        (260, 0),
        (250, 0),
        (230, 0),
        (290, 1),
        (230, 1),
        (220, 1),
        (220, 1),
    ];

    #[test]
    fn two_that_are_too_large_to_go_alone_change_places() {
        let mut placed = partitions(&UNEVEN);
        let planned = plan(&nodes(2), &mut placed, &moves(usize::MAX));
        let [goes, comes] = &planned.moved[..] else {
            panic!("{:?}", planned.moved)
        };
        assert!(!goes.follows && comes.follows);
        assert_eq!((goes.from, goes.to), (comes.to, comes.from));
        assert!((planned.use_max - 1.0).abs() < 1e-9, "{planned:?}");
        for one in [goes, comes] {
            assert!((one.gain() - 0.04).abs() < 1e-9, "{one:?}");
        }
    }

    #[test]
    fn nobody_changes_places_where_one_may_move_only_or_one_of_both_must_stay() {
        for most in [0, 1] {
            let planned = plan(&nodes(2), &mut partitions(&UNEVEN), &moves(most));
            assert_eq!(planned.moved, []);
        }
        let stays = UNEVEN.map(|(_, node)| node == 1);
        let stays = Moves {
            stays: &stays,
            ..moves(usize::MAX)
        };
        let planned = plan(&nodes(2), &mut partitions(&UNEVEN), &stays);
        assert_eq!(planned.moved, []);
        let free = plan(&nodes(2), &mut partitions(&UNEVEN), &Moves::free(9));
        assert_eq!(free.moved, [], "what costs nothing is made otherwise");
    }

    /// Of 1.04, .9 and .76 of three nodes .22 moves, and of the .04 that is too much then nothing
    /// is as small as that.
    #[test]
    fn what_is_not_sure_is_evened_out_as_far_as_single_ones_do() {
        let demands = UNEVEN.map(|(demand, node)| (demand, node * 2));
        let more = [(310, 1), (300, 1), (290, 1), (220, 0)];
        let demands: Vec<(u64, u32)> = demands.into_iter().chain(more).collect();
        for (fine, followers) in [(false, 0), (true, 1)] {
            let sure = Moves {
                fine,
                ..moves(usize::MAX)
            };
            let planned = plan(&nodes(3), &mut partitions(&demands), &sure);
            let moved = planned.moved.iter();
            assert_eq!(
                moved.filter(|one| one.follows).count(),
                followers,
                "{planned:?}"
            );
        }
        // Where nothing else can be done, two change places all the same.
        let only = Moves {
            fine: false,
            ..moves(usize::MAX)
        };
        let planned = plan(&nodes(2), &mut partitions(&UNEVEN), &only);
        assert_eq!(planned.moved.len(), 2);
    }

    #[test]
    fn what_both_moves_cost_is_less_than_what_they_gain() {
        // .04 of a node over 300 s is 12 s of it, half of the time of moves that take 24 s.
        for (bytes, moved) in [(500_000_000, 2), (700_000_000, 0)] {
            let bytes = [bytes; UNEVEN.len()];
            let heavy = Moves {
                bytes: &bytes,
                ..moves(usize::MAX)
            };
            let planned = plan(&nodes(2), &mut partitions(&UNEVEN), &heavy);
            assert_eq!(planned.moved.len(), moved);
        }
    }

    proptest! {
        /// However partitions lie: nothing is lost, nodes are no less even, no partition moves
        /// twice, and one that follows comes from where the one before it goes.
        #[test]
        fn what_changes_places_makes_nodes_more_even(
            demands in prop::collection::vec((1u64..200, 0u32..4), 2..40),
            turn_s in prop::sample::select(vec![0.0, 2.0, 60.0]),
        ) {
            let (nodes, before) = (nodes(4), partitions(&demands));
            let mut after = before.clone();
            let moves = Moves { turn_s, ..moves(usize::MAX) };
            let planned = plan(&nodes, &mut after, &moves);
            prop_assert!(excess(&nodes, &after).0 <= excess(&nodes, &before).0 + 1e-9);
            let mut moved: Vec<u32> = planned.moved.iter().map(|one| one.partition).collect();
            moved.sort_unstable();
            moved.dedup();
            prop_assert_eq!(moved.len(), planned.moved.len());
            let mut there = before;
            for one in &planned.moved {
                let nodes = &mut there[one.partition as usize].nodes;
                prop_assert_eq!(&nodes[..], [one.from]);
                nodes[0] = one.to;
                prop_assert!(one.gain() > 0.0);
            }
            prop_assert_eq!(there, after);
            for pair in planned.moved.windows(2).filter(|pair| pair[1].follows) {
                prop_assert_eq!((pair[0].from, pair[0].to), (pair[1].to, pair[1].from));
            }
        }
    }
}
