//! Which partitions move where a move has a price: what is worth it, and not to and fro.

use policy::placement::{plan, Looked, Move, Moves, Node, Partition, Placer, PlacerOptions, Price};
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
    short_min: 0.03,
    mend_min: 0.01,
    mends_max: 3,
    evidence_s: 60.0,
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
    moved[..2].iter_mut().for_each(|one| one.nodes = vec![1]);
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
            seen_s: 60.0,
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
    // The fullest has .37 of a node more than may be: 22 node seconds in a step.
    let uneven = [(400_000, 0), (400_000, 0), (100_000, 1), (100_000, 2)];
    let mut two_steps = partitions(&uneven);
    assert_eq!(run(&mut placer, &mut two_steps, 2), [0, 0]);
    // It was not so for a while, so it counts anew.
    let mut even = partitions(&[(400_000, 0), (380_000, 1), (390_000, 2)]);
    assert_eq!(run(&mut placer, &mut even, 10), [0; 10]);
    assert_eq!(placer.evidence_s(), 0.0);
    // What the first move leaves uneven is mended by the next.
    assert_eq!(run(&mut placer, &mut two_steps, 5), [0, 0, 1, 1, 0]);
    // Nodes that have little to do.
    let mut placer = Placer::new(OPTIONS);
    let mut idle = partitions(&[(40_000, 0), (40_000, 0), (1, 1)]);
    assert_eq!(run(&mut placer, &mut idle, 6), [0; 6]);
}

/// As many seconds as a placer of these options looks at these places, a second at a time, before
/// something moves.
fn seconds_until_moved(demands: &[(u64, u32)], evidence_s: f64) -> Option<u64> {
    let mut placer = Placer::new(PlacerOptions {
        evidence_s,
        ..OPTIONS
    });
    let (nodes, mut all) = (nodes(4), partitions(demands));
    (1..=600).find(|second| {
        let looked = Looked {
            now: second * SECOND_NS,
            seen_s: 1.0,
            nodes: &nodes,
            bytes: &[],
            stays: &[],
            busy: &[],
        };
        let planned = placer.step(&looked, &mut all, true);
        planned.is_some_and(|planned| planned.moves > 0)
    })
}

#[test]
fn what_is_much_too_full_is_certain_soon_and_what_is_a_little_later() {
    // The first node is asked for so many thousandths, in ten parts, and the others for a half.
    let places = |first: u64| {
        let of_first = (0..10).map(move |_| (first * 100, 0));
        of_first
            .chain((1..4).map(|node| (500_000, node)))
            .collect::<Vec<_>>()
    };
    // 1.5 nodes too much, less the tenth that may be; .26 of a node; nothing.
    assert_eq!(seconds_until_moved(&places(2_500), 3.0), Some(3));
    assert_eq!(seconds_until_moved(&places(980), 3.0), Some(12));
    assert_eq!(seconds_until_moved(&places(600), 3.0), None);
    // Who asks for no evidence has none.
    assert_eq!(seconds_until_moved(&places(2_500), 0.0), Some(1));
}

#[test]
fn one_plan_has_all_moves_and_what_it_leaves_need_not_be_seen_anew() {
    // As in `placement-cluster`: five tenants of eight partitions at a node, and one at each other.
    let all: Vec<(u64, u32)> = (0..40).map(|_| (62_500, 0)).collect();
    let others = (1..4).flat_map(|node| (0..8).map(move |_| (62_500, node)));
    let demands: Vec<(u64, u32)> = all.into_iter().chain(others).collect();
    let nodes = nodes(4);
    let step = |turn_s: f64| {
        let mut all = partitions(&demands);
        let mut placer = Placer::new(PlacerOptions {
            evidence_s: 3.0,
            turn_s,
            ..OPTIONS
        });
        let looked = Looked {
            now: SECOND_NS,
            seen_s: 3.0,
            nodes: &nodes,
            bytes: &[],
            stays: &[],
            busy: &[],
        };
        let planned = placer.step(&looked, &mut all, true).expect("moves");
        (planned, placer.evidence_s())
    };
    let (planned, left_s) = step(60.0);
    assert!(planned.moves <= 24 && planned.use_max < 1.1, "{planned:?}");
    // It was certain, and stays so until a look shows what has come of it.
    assert!((left_s - 1.47 * 3.0).abs() < 1e-6, "{left_s}");
    let (planned, left_s) = step(6.0);
    assert_eq!(planned.moves, 6);
    assert!((left_s - 1.47 * 3.0).abs() < 1e-6, "{left_s}");
}

/// Whether something moves in one of several looks of 3 s.
fn moves_in_look(
    placer: &mut Placer,
    number: u64,
    nodes: &[Node<1>],
    demands: &[(u64, u32)],
) -> bool {
    let looked = Looked {
        now: number * 3 * SECOND_NS,
        seen_s: 3.0,
        nodes,
        bytes: &[],
        stays: &[],
        busy: &[],
    };
    let planned = placer.step(&looked, &mut partitions(demands), true);
    planned.is_some_and(|planned| planned.moves > 0)
}

#[test]
fn what_a_plan_has_not_mended_is_mended_after_the_next_look() {
    let mut placer = Placer::new(PlacerOptions {
        evidence_s: 3.0,
        ..OPTIONS
    });
    // 48 partitions, a sixteenth of a node each, of which the first node has so many.
    let mut looks = 0;
    let mut moves_with = |of_first: usize| {
        let node = |number: usize| match number {
            number if number < of_first => 0,
            number => 1 + (number % 2) as u32,
        };
        let demands: Vec<(u64, u32)> = (0..48).map(|number| (62_500, node(number))).collect();
        looks += 1;
        moves_in_look(&mut placer, looks, &nodes(3), &demands)
    };
    assert!(moves_with(40));
    // What is left would be certain after a minute if it were new.
    assert!(moves_with(17));
    assert!(!moves_with(16));
    // It is even: what comes then is new.
    assert!(!moves_with(17));
}

/// A node lacks two hundredths: what is new must be three, what a plan has left one, three times.
#[test]
fn a_little_that_is_missing_is_mended_after_moves_only() {
    let mut placer = Placer::new(PlacerOptions {
        evidence_s: 0.0,
        excess_min: 0.05,
        ..OPTIONS
    });
    // Of two hundred partitions, a hundredth of a node each, so many are at the first.
    let moves = [102, 110, 102, 102, 102, 102].map(|of_first| {
        let node = |number: usize| u32::from(number >= of_first);
        let demands: Vec<(u64, u32)> = (0..200).map(|number| (10_000, node(number))).collect();
        moves_in_look(&mut placer, 1, &nodes(2), &demands)
    });
    assert_eq!(moves, [false, true, true, true, true, false]);
}

#[test]
fn a_node_that_is_asked_for_more_than_it_can_serve_is_seen_to_sooner() {
    let places = |first: u64, others: u64| {
        let of = |all: u64, node| (0..20).map(move |_| (all * 50, node));
        let others = (1..4).flat_map(move |node| of(others, node));
        of(first, 0).chain(others).collect::<Vec<_>>()
    };
    // A twelfth of it is missing, less what may be.
    assert_eq!(seconds_until_moved(&places(1_080, 960), 1.0), Some(20));
    // The same between nodes that can serve all.
    assert_eq!(seconds_until_moved(&places(980, 880), 1.0), None);
}

#[test]
fn a_move_is_as_fast_as_tenants_miss_much_until_it_is_done() {
    let part = |before: [f64; 2]| {
        let one = Move {
            partition: 0,
            from: 0,
            to: 1,
            before,
            after: before,
            follows: false,
        };
        one.part(0.05, 0.5)
    };
    assert_eq!(part([2.5, 0.5]), 0.5);
    assert!((part([1.05, 0.9]) - 0.2).abs() < 1e-9);
    // Both can serve what they are asked for.
    assert_eq!(part([0.9, 0.1]), 0.05);
}

#[test]
fn a_partition_that_has_moved_stays_for_a_while() {
    let mut placer = Placer::new(PlacerOptions {
        evidence_s: 0.0,
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
    /// No partition is lost or at two nodes, what is promised is done, each move is worth its cost,
    /// none moves twice, no node takes part for longer than it may and one move or exchange more,
    /// and no node ends fuller than the fullest was.
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
                prop_assert!(one.follows || *spent_s <= 0.0 || *spent_s < turn_s, "{one:?}");
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

    /// It comes to rest: whatever chance makes of what tenants ask for, each partition moves at
    /// most once within the time for which it rests.
    #[test]
    fn it_comes_to_rest(
        demands in prop::collection::vec((0u64..400_000, 0u32..3), 1..40),
        noise in prop::collection::vec(0.97f64..1.03, 40),
    ) {
        let mut all = partitions(&demands);
        let mut placer = Placer::new(PlacerOptions { rest_ns: u64::MAX, ..OPTIONS });
        let (nodes, mut moved) = (nodes(3), BTreeSet::new());
        for step in 0..200u64 {
            for (number, partition) in all.iter_mut().enumerate() {
                let noise = noise[(number + step as usize) % noise.len()];
                partition.demand = [(demands[number].0 as f64 * noise) as u64];
            }
            let looked = Looked {
                now: step,
                seen_s: 60.0,
                nodes: &nodes,
                bytes: &[],
                stays: &[],
                busy: &[],
            };
            let planned = placer.step(&looked, &mut all, true);
            for one in planned.into_iter().flat_map(|planned| planned.moved) {
                prop_assert!(moved.insert(one.partition), "{one:?}");
            }
        }
    }

    /// It moves when some of the last looks together say that it is certain, however long each was,
    /// and not before.
    #[test]
    fn what_moves_is_certain(
        looks in prop::collection::vec((0u64..1_500_000, 0.5f64..4.0), 1..40),
        evidence_s in 0.5f64..6.0,
    ) {
        let nodes = nodes(2);
        let mut placer = Placer::new(PlacerOptions { evidence_s, ..OPTIONS });
        let mut overs: Vec<f64> = Vec::new();
        for (number, (demand, seen_s)) in looks.into_iter().enumerate() {
            let mut all = partitions(&[(demand / 2, 0), (demand / 2, 0), (300_000, 1)]);
            let both = [(demand / 2 * 2) as f64 / 1e6, 0.3];
            let mean = (both[0] + both[1]) / 2.0;
            let over = both[0].max(both[1]) - mean - (0.05 * mean).max(0.1);
            overs.push(over * seen_s);
            let (mut sum, mut most) = (0.0, f64::MIN);
            for one in overs.iter().rev() {
                sum += one;
                most = f64::max(most, sum);
            }
            let looked = Looked {
                now: number as u64,
                seen_s,
                nodes: &nodes,
                bytes: &[],
                stays: &[],
                busy: &[],
            };
            let decides = placer.step(&looked, &mut all, true).is_some();
            // Where rounding decides, either is right.
            prop_assume!((most - evidence_s).abs() > 1e-9);
            prop_assert_eq!(decides, over > 0.0 && most >= evidence_s, "{:?}", overs);
            if decides {
                return Ok(());
            }
        }
    }
}
