//! Which partitions move where a move has a price: what is worth it, and not to and fro.

use policy::placement::{plan, Looked, Moves, Node, Partition, Placer, PlacerOptions, Price};
use policy::Nanos;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

const CAPACITY: u64 = 1_000_000;
const SECOND_NS: Nanos = 1_000_000_000;
/// A gigabyte takes 20 s, half of the time of both nodes: it must win a thirtieth of one.
const PRICE: Price = Price {
    bytes_per_s: 50e6,
    load: 0.5,
    least_s: 1.0,
    horizon_s: 300.0,
};
const OPTIONS: PlacerOptions = PlacerOptions {
    imbalance_max: 0.05,
    excess_min: 0.1,
    steps: 3,
    moves_max: usize::MAX,
    price: Some(PRICE),
    turn_s: 0.0,
    rest_ns: 600 * SECOND_NS,
};

fn nodes(count: u32) -> Vec<Node<1>> {
    let one = |domain| Node {
        capacity: [CAPACITY],
        domain,
    };
    (0..count).map(one).collect()
}

fn partitions(demands: &[(u64, u32)]) -> Vec<Partition<1>> {
    let one = |(demand, node): &(u64, u32)| Partition::new([*demand], 1, vec![*node]);
    demands.iter().map(one).collect()
}

fn uses(nodes: usize, partitions: &[Partition<1>]) -> Vec<f64> {
    let mut uses = vec![0.0; nodes];
    for partition in partitions {
        uses[partition.nodes[0] as usize] += partition.demand[0] as f64 / CAPACITY as f64;
    }
    uses
}

fn priced(bytes: &[u64], most: usize) -> Moves<'_> {
    Moves {
        price: Some(PRICE),
        bytes,
        ..Moves::free(most)
    }
}

#[test]
fn what_costs_more_than_it_gains_stays() {
    let nodes = nodes(2);
    // Moving the first is worth .3 of a node, or as much as 180 s of both nodes' time.
    let demands = [(300_000, 0), (300_000, 0), (1, 1)];
    for (bytes, moves) in [(1 << 30, 1), (8_000_000_000, 1), (9_500_000_000, 0)] {
        let mut moved = partitions(&demands);
        let planned = plan(&nodes, &mut moved, &priced(&[bytes; 3], usize::MAX));
        assert_eq!(planned.moves, moves, "{bytes}");
        if let [one] = planned.moved[..] {
            assert!(one.gain() > PRICE.of(bytes), "{one:?}");
            assert!((one.before[0] - 0.6).abs() < 1e-6 && (one.after[0] - 0.3).abs() < 1e-6);
        }
    }
}

#[test]
fn of_two_that_help_as_much_the_lighter_goes() {
    let mut moved = partitions(&[(300_000, 0), (300_000, 0), (290_000, 0)]);
    let bytes = [4_000_000_000, 1_000_000, 4_000_000_000];
    let planned = plan(&nodes(3), &mut moved, &priced(&bytes, 1));
    assert_eq!(planned.moved[0].partition, 1);
}

#[test]
fn a_node_takes_part_in_one_move() {
    let all_at_one: Vec<(u64, u32)> = vec![(50_000, 0); 16];
    let mut moved = partitions(&all_at_one);
    let planned = plan(&nodes(4), &mut moved, &priced(&[0; 16], usize::MAX));
    assert_eq!(planned.moves, 1, "all others would begin at the same node");
    // A node that is at one already takes part in none, and the others go on.
    let mut moved = partitions(&all_at_one);
    moved[0].nodes = vec![1];
    moved[1].nodes = vec![1];
    let busy = [true, false, false, false];
    let may = Moves {
        busy: &busy,
        ..priced(&[0; 16], usize::MAX)
    };
    let planned = plan(&nodes(4), &mut moved, &may);
    assert_eq!(planned.moved.len(), 1);
    assert!(planned.moved[0].from == 1 && planned.moved[0].to >= 2);
}

#[test]
fn a_node_that_may_take_part_for_longer_hands_on_what_it_has_too_much_of() {
    // Twelve of sixteen have to go for an even cluster. A move of nothing takes 1 s.
    let all_at_one: Vec<(u64, u32)> = vec![(150_000, 0); 16];
    for (turn_s, moves) in [(0.0, 1), (4.0, 4), (4.5, 5), (60.0, 12)] {
        let mut moved = partitions(&all_at_one);
        let may = Moves {
            turn_s,
            ..priced(&[0; 16], usize::MAX)
        };
        let planned = plan(&nodes(4), &mut moved, &may);
        assert_eq!(planned.moves, moves, "{turn_s}");
    }
}

/// Steps of a placer, a minute each, until `steps` are done: what moved in each.
fn run(placer: &mut Placer, partitions: &mut [Partition<1>], steps: u64) -> Vec<usize> {
    let nodes = nodes(3);
    let step = |number: u64| {
        let looked = Looked {
            now: number * 60 * SECOND_NS,
            nodes: &nodes,
            bytes: &[],
            stays: &[],
            busy: &[],
        };
        let planned = placer.step(&looked, partitions, true);
        planned.map_or(0, |planned| planned.moves)
    };
    (0..steps).map(step).collect()
}

#[test]
fn what_passes_moves_nothing() {
    let mut placer = Placer::new(OPTIONS);
    let uneven = [(400_000, 0), (400_000, 0), (100_000, 1), (100_000, 2)];
    let mut two_steps = partitions(&uneven);
    assert_eq!(run(&mut placer, &mut two_steps, 2), [0, 0]);
    // It was not so the next time, so it counts anew.
    let mut even = partitions(&[(400_000, 0), (380_000, 1), (390_000, 2)]);
    assert_eq!(run(&mut placer, &mut even, 1), [0]);
    assert_eq!(run(&mut placer, &mut two_steps, 5), [0, 0, 1, 1, 0]);
    // Nodes that have little to do.
    let mut placer = Placer::new(OPTIONS);
    let mut idle = partitions(&[(40_000, 0), (40_000, 0), (1, 1)]);
    assert_eq!(run(&mut placer, &mut idle, 6), [0; 6]);
}

#[test]
fn a_partition_that_has_moved_stays_for_a_while() {
    let mut placer = Placer::new(PlacerOptions {
        steps: 1,
        ..OPTIONS
    });
    let mut all = partitions(&[(500_000, 0), (400_000, 0), (0, 1), (0, 2)]);
    assert_eq!(run(&mut placer, &mut all, 1), [1]);
    let (moved, stayed) = match all[0].nodes[0] {
        0 => (1, 0),
        _ => (0, 1),
    };
    // What was on its node is asked for as much now, so that it would be as well off elsewhere.
    let beside = all[moved].nodes[0];
    all[2] = Partition::new([500_000], 1, vec![beside]);
    all[stayed].demand = [0];
    assert_eq!(run(&mut placer, &mut all, 1), [1]);
    assert_eq!(all[moved].nodes[0], beside, "the other went");
    // Both have moved now. After ten minutes they may again.
    all[2].nodes = vec![beside];
    let counts = run(&mut placer, &mut all, 14);
    let first = counts.iter().position(|count| *count > 0);
    assert_eq!(first, Some(10), "{counts:?}");
}

proptest! {
    /// No partition is lost or at two nodes, what is promised is what is done, each move is worth
    /// its cost, none moves twice, no node takes part for longer than it may and one move more, and
    /// no node ends fuller than the fullest was.
    #[test]
    fn moves_keep_their_rules(
        demands in prop::collection::vec((0u64..400_000, 0u32..5), 1..60),
        sizes in prop::collection::vec(0u64..20_000_000_000, 60),
        most in 0usize..10,
        turn_s in prop_oneof![Just(0.0), 0.0f64..2_000.0],
    ) {
        let (nodes, before) = (nodes(5), partitions(&demands));
        let mut after = before.clone();
        let may = Moves { turn_s, ..priced(&sizes, most) };
        let planned = plan(&nodes, &mut after, &may);
        prop_assert!(planned.moves <= most && planned.moves == planned.moved.len());
        let (mut spent_s, mut numbers) = (BTreeMap::new(), BTreeSet::new());
        for one in &planned.moved {
            let bytes = sizes[one.partition as usize];
            prop_assert!(one.gain() > PRICE.of(bytes) - 1e-9, "{one:?}");
            prop_assert!(numbers.insert(one.partition), "{:?}", planned.moved);
            for node in [one.from, one.to] {
                let spent_s: &mut f64 = spent_s.entry(node).or_default();
                prop_assert!(*spent_s <= 0.0 || *spent_s < turn_s, "{:?}", planned.moved);
                *spent_s += PRICE.takes_s(bytes);
            }
        }
        for (number, (before, after)) in before.iter().zip(&after).enumerate() {
            prop_assert_eq!((before.demand, after.nodes.len()), (after.demand, 1));
            let one = planned.moved.iter().find(|one| one.partition as usize == number);
            let expected = one.map_or(before.nodes[0], |one| one.to);
            prop_assert_eq!(after.nodes[0], expected);
        }
        let most = |all: &[Partition<1>]| uses(5, all).into_iter().fold(0.0, f64::max);
        prop_assert!(most(&after) <= most(&before) + 1e-9);
    }

    /// It comes to rest: while tenants do the same, each partition moves at most once within the
    /// time for which it rests, and in the end nothing moves any more.
    #[test]
    fn it_comes_to_rest(
        demands in prop::collection::vec((0u64..400_000, 0u32..3), 1..40),
        noise in prop::collection::vec(0.97f64..1.03, 40),
    ) {
        let mut all = partitions(&demands);
        let mut placer = Placer::new(PlacerOptions { rest_ns: u64::MAX, ..OPTIONS });
        let nodes = nodes(3);
        let (mut moves, mut last) = (0, 0);
        for step in 0..200u64 {
            for (number, partition) in all.iter_mut().enumerate() {
                let noise = noise[(number + step as usize) % noise.len()];
                partition.demand = [(demands[number].0 as f64 * noise) as u64];
            }
            let looked = Looked { now: step, nodes: &nodes, bytes: &[], stays: &[], busy: &[] };
            if let Some(planned) = placer.step(&looked, &mut all, true) {
                moves += planned.moves;
                last = if planned.moves > 0 { step } else { last };
            }
        }
        prop_assert!(moves <= demands.len(), "{moves}");
        prop_assert!(last < 150, "{last}");
    }
}
