//! Fair shares across nodes: what every exchange keeps.

use policy::placement::{fair_demand, plan, Entry, Moves, Node, Partition, Shares};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

fn entry(tenant: u32, node: u32, share: i64, demand: i64) -> Entry {
    Entry {
        tenant,
        node,
        share,
        demand,
    }
}

fn totals(shares: &Shares) -> (BTreeMap<u32, i64>, BTreeMap<u32, i64>) {
    let (mut tenants, mut nodes) = (BTreeMap::new(), BTreeMap::new());
    for entry in shares.entries() {
        *tenants.entry(entry.tenant).or_default() += entry.share;
        *nodes.entry(entry.node).or_default() += entry.share;
    }
    (tenants, nodes)
}

proptest! {
    /// Every tenant's total and every node's total stay, nobody gives what it does not have, the
    /// least part of a demand never falls, squared slack over demand falls with every cycle, and it
    /// ends.
    #[test]
    fn exchanges_keep_totals_and_help_the_worst(
        cells in prop::collection::vec((0u32..12, 0u32..6, 0i64..1_000, 0i64..1_000), 1..72),
        epsilon in 0i64..20,
    ) {
        let entries = cells.into_iter().map(|(t, n, share, demand)| entry(t, n, share, demand));
        let mut shares = Shares::new(entries.collect());
        let before = totals(&shares);
        let squares = |shares: &Shares| {
            let of = |entry: &Entry| {
                let wanted = entry.demand.max(1);
                ((entry.share - wanted) as f64).powi(2) / wanted as f64
            };
            shares.entries().iter().map(of).sum::<f64>()
        };
        let mut last = squares(&shares);
        let mut iterations = 0;
        loop {
            let done = shares.exchange(epsilon);
            prop_assert!(done.worst_after >= done.worst_before, "{done:?}");
            prop_assert_eq!(&totals(&shares), &before);
            prop_assert!(shares.entries().iter().all(|entry| entry.share >= 0));
            let now = squares(&shares);
            prop_assert!(done.cycles == 0 || now < last, "{last} {now} {done:?}");
            last = now;
            if done.cycles == 0 {
                break;
            }
            iterations += 1;
            prop_assert!(iterations < 200, "it does not end");
        }
    }

    /// Where there is a bilateral exchange that helps the worst by more than epsilon, it does not
    /// stop.
    #[test]
    fn it_does_not_stop_early(cells in prop::collection::vec((0i64..1_000, 0i64..1_000), 16)) {
        let entries = cells.iter().enumerate().map(|(i, (share, demand))| {
            entry(i as u32 / 4, i as u32 % 4, *share, *demand)
        });
        let mut shares = Shares::new(entries.collect());
        shares.even_out(2, 1_000);
        let at = |t: usize, n: usize| shares.entries()[t * 4 + n];
        // What `from` can give until both have the same part of what they want, in real numbers.
        let gives = |from: Entry, to: Entry| {
            let [from_wants, to_wants] = [from, to].map(|entry| entry.demand.max(1) as f64);
            let apart = from.share as f64 * to_wants - to.share as f64 * from_wants;
            (apart / (from_wants + to_wants)).min(from.share as f64)
        };
        for t in 0..4 {
            let short = (0..4).filter(|n| at(t, *n).slack() < -2);
            let least = short.min_by(|n, m| at(t, *n).part().total_cmp(&at(t, *m).part()));
            let Some(n) = least else {
                continue;
            };
            for u in (0..4).filter(|u| *u != t) {
                for m in (0..4).filter(|m| *m != n) {
                    let take = gives(at(u, n), at(t, n));
                    let give = gives(at(t, m), at(u, m));
                    prop_assert!(take.min(give) < 3.0, "{t} could take from {u} at {n} and give at {m}");
                }
            }
        }
    }
}

#[test]
fn mirrored_shares_become_what_is_wanted() {
    // Pisces figure 3.4: two tenants with equal weights and mirrored demands on two nodes.
    let cells = [
        entry(0, 0, 50, 80),
        entry(0, 1, 50, 20),
        entry(1, 0, 50, 20),
        entry(1, 1, 50, 80),
    ];
    let mut shares = Shares::new(cells.to_vec());
    assert_eq!(shares.worst(), 50.0 / 80.0);
    let done = shares.exchange(0);
    assert_eq!((done.cycles, done.moved, done.worst_after), (1, 30, 1.0));
    let local: Vec<i64> = shares.entries().iter().map(|e| e.share).collect();
    assert_eq!(local, [80, 20, 20, 80]);
    assert_eq!(shares.even_out(0, 10), 0);
}

#[test]
fn the_widest_cycle_may_have_three_tenants() {
    // As in Pisces figure 4.2: t and u alone can exchange 3, but with v between them 4.
    let cells = [
        entry(0, 0, 10, 18), // t wants 8 at node 0 …
        entry(0, 1, 20, 12), // … and has 8 to give at node 1,
        entry(0, 2, 20, 12), // and 8 at node 2.
        entry(1, 0, 20, 12), // u can give 8 at node 0,
        entry(1, 1, 10, 8),  // has 2 at node 1 (so takes 3 there),
        entry(1, 3, 10, 18), // and wants 8 at node 3.
        entry(2, 3, 20, 12), // v can give 8 at node 3
        entry(2, 2, 10, 18), // and wants 8 at node 2.
    ];
    let mut shares = Shares::new(cells.to_vec());
    let done = shares.exchange(0);
    assert_eq!(done.worst_before, 10.0 / 18.0);
    assert!(done.worst_after >= 0.8, "{done:?}");
}

/// Slack alone would even them at 12 too little: one with nothing left, one with nine tenths.
#[test]
fn a_place_that_asks_for_little_gives_little() {
    let cells = [
        entry(0, 0, 12, 12),  // asks for little here …
        entry(0, 1, 76, 100), // … and has too little there,
        entry(1, 0, 76, 100), // like the other one here,
        entry(1, 1, 12, 12),  // which asks for little there.
    ];
    let mut shares = Shares::new(cells.to_vec());
    shares.even_out(0, 100);
    let part = |place: usize| shares.entries()[place].part();
    assert!((0..4).all(|place| part(place) > 0.75), "{shares:?}");
}

/// So large that exchanges of two tenants are looked for first: 1,800 tenants, each at ten of 100
/// nodes, which ask for one to nine times as much as the coldest place.
#[test]
fn a_large_system_keeps_totals_and_comes_near_the_best() {
    let (tenants, nodes, places) = (1_800, 100, 10);
    let of = |tenant: u32| {
        let demand = move |place: u32| 1_000 * i64::from(1 + (tenant * 7 + place * 5) % 9);
        let total: i64 = (0..places).map(demand).sum();
        (0..places).map(move |place| {
            let node = (tenant * 37 + place * (1 + 2 * (tenant % 11))) % nodes;
            entry(tenant, node, total / i64::from(places), demand(place))
        })
    };
    let mut shares = Shares::new((0..tenants).flat_map(of).collect());
    assert!(shares.entries().len() > 1 << 14);
    let before = totals(&shares);
    let mut iterations = 0;
    loop {
        let done = shares.exchange(50);
        assert!(done.worst_after >= done.worst_before, "{done:?}");
        assert!(
            done.cycles < 2 * tenants + 3,
            "an iteration is bounded: {done:?}"
        );
        assert_eq!(totals(&shares), before);
        assert!(shares.entries().iter().all(|entry| entry.share >= 0));
        iterations += 1;
        if done.cycles == 0 {
            break;
        }
        assert!(iterations < 100, "it does not end: {done:?}");
    }
    // No exchange leaves everybody more than the least of the parts of whole tenants and nodes.
    let mut wanted: BTreeMap<(bool, u32), i64> = BTreeMap::new();
    for entry in shares.entries() {
        *wanted.entry((true, entry.tenant)).or_default() += entry.demand;
        *wanted.entry((false, entry.node)).or_default() += entry.demand;
    }
    let part = |(of_tenant, which): &(bool, u32), wanted: &i64| {
        let had = if *of_tenant { &before.0 } else { &before.1 };
        had[which] as f64 / *wanted as f64
    };
    let best = wanted.iter().map(|(key, wanted)| part(key, wanted));
    let best = best.fold(f64::INFINITY, f64::min);
    assert!(
        best - shares.worst() < 0.05,
        "{best} {} {iterations}",
        shares.worst()
    );
}

#[test]
fn nothing_to_exchange_is_no_failure() {
    let mut none = Shares::new(Vec::new());
    assert_eq!((none.worst(), none.exchange(0).cycles), (1.0, 0));
    let mut alone = Shares::new(vec![entry(3, 2, 5, 9)]);
    assert_eq!((alone.exchange(0).cycles, alone.worst()), (0, 5.0 / 9.0));
}

const R: usize = 2;

fn used(nodes: &[Node<R>], partitions: &[Partition<R>]) -> Vec<[u64; R]> {
    let mut used = vec![[0; R]; nodes.len()];
    for partition in partitions {
        for node in &partition.nodes {
            for (used, demand) in used[*node as usize].iter_mut().zip(partition.demand) {
                *used += demand;
            }
        }
    }
    used
}

fn is_able(node: &Node<R>) -> bool {
    node.capacity.iter().all(|capacity| *capacity > 0)
}

/// How full a node is with this much used.
fn full(node: &Node<R>, used: [u64; R]) -> f64 {
    let parts = used.iter().zip(node.capacity);
    parts
        .map(|(used, capacity)| *used as f64 / capacity as f64)
        .fold(0.0, f64::max)
}

fn parts(number: u64) -> [u64; R] {
    [number % 200, number / 200]
}

proptest! {
    /// Replicas lie in different domains on nodes that can hold them; the plan says truly how full
    /// the fullest is; moving never makes it fuller; and what had a place moves at most as often as
    /// allowed.
    #[test]
    fn plans_keep_their_rules(
        capacities in prop::collection::vec((0u64..4, 0u64..4).prop_map(|(a, b)| [a * 500, b * 500]), 3..10),
        domains in 1u32..5,
        demands in prop::collection::vec((0u64..40_000, 1usize..4, prop::collection::vec(0u32..12, 0..4)), 1..60),
        moves_max in 0usize..40,
    ) {
        let nodes: Vec<Node<R>> = capacities.iter().enumerate()
            .map(|(n, capacity)| Node { capacity: *capacity, domain: n as u32 % domains })
            .collect();
        let partitions: Vec<Partition<R>> = demands.into_iter()
            .map(|(demand, replicas, nodes)| Partition::new(parts(demand), replicas, nodes))
            .collect();
        let mut greedy = partitions.clone();
        let first = plan(&nodes, &mut greedy, &Moves::free(0));
        let mut better = partitions.clone();
        let planned = plan(&nodes, &mut better, &Moves::free(moves_max));
        prop_assert!(planned.use_max <= first.use_max && planned.moves <= first.moves + moves_max);
        let able: BTreeSet<u32> = nodes.iter().filter(|n| is_able(n)).map(|n| n.domain).collect();
        let mut unplaced = 0;
        for partition in &better {
            let placed: BTreeSet<u32> = partition.nodes.iter().map(|n| nodes[*n as usize].domain).collect();
            prop_assert_eq!(placed.len(), partition.nodes.len());
            prop_assert!(partition.nodes.iter().all(|n| is_able(&nodes[*n as usize])));
            prop_assert_eq!(partition.nodes.len(), partition.replicas.min(able.len()));
            unplaced += partition.replicas - partition.nodes.len();
        }
        prop_assert_eq!(unplaced, planned.unplaced);
        let fullest = used(&nodes, &better).into_iter().zip(&nodes).filter(|(_, n)| is_able(n))
            .map(|(used, node)| full(node, used)).fold(0.0, f64::max);
        prop_assert!((fullest - planned.use_max).abs() < 1e-9, "{fullest} {planned:?}");
    }

    /// No resource of any node is promised beyond its capacity where all fits with room to spare.
    /// The uses of `n` nodes, each that of its fullest resource, add up to `R` times that of the
    /// system's at most; so one of any `n - k + 1` of them has no more than `R / (n - k + 1)` of
    /// it, and room for a replica that is small enough.
    #[test]
    fn capacities_are_kept(
        count in 3usize..12,
        demands in prop::collection::vec((1u64..40_000, 1usize..3), 1..200),
    ) {
        let mut partitions: Vec<Partition<R>> = demands.into_iter()
            .map(|(demand, replicas)| Partition::new(parts(demand), replicas, Vec::new()))
            .collect();
        let (mut sums, mut largest) = ([0; R], [0; R]);
        for partition in &partitions {
            for resource in 0..R {
                sums[resource] += partition.demand[resource] * partition.replicas as u64;
                largest[resource] = partition.demand[resource].max(largest[resource]);
            }
        }
        // Two replicas: one node may be closed to the second.
        let capacity = [0, 1].map(|r| sums[r] * R as u64 / (count as u64 - 1) + largest[r] + 1);
        let nodes: Vec<Node<R>> = (0..count as u32).map(|domain| Node { capacity, domain }).collect();
        let planned = plan(&nodes, &mut partitions, &Moves::free(0));
        prop_assert!(planned.use_max <= 1.0 && planned.unplaced == 0, "{planned:?}");
        for used in used(&nodes, &partitions) {
            prop_assert!(used[0] <= capacity[0] && used[1] <= capacity[1], "{used:?} of {capacity:?}");
        }
    }

    /// With any number of moves it ends; and if a node is over its capacity then, none of its
    /// replicas would be better off elsewhere.
    #[test]
    fn what_is_too_full_cannot_be_mended_by_a_move(
        capacities in prop::collection::vec((1u64..4, 1u64..4).prop_map(|(a, b)| [a * 400, b * 400]), 20..40),
        demands in prop::collection::vec((0u64..40_000, 1usize..3, prop::collection::vec(0u32..3, 0..3)), 20..200),
    ) {
        let nodes: Vec<Node<R>> = (0..).zip(&capacities)
            .map(|(n, capacity)| Node { capacity: *capacity, domain: n })
            .collect();
        let mut partitions: Vec<Partition<R>> = demands.into_iter()
            .map(|(demand, replicas, nodes)| Partition::new(parts(demand), replicas, nodes))
            .collect();
        let planned = plan(&nodes, &mut partitions, &Moves::free(usize::MAX));
        if planned.use_max <= 1.0 {
            return Ok(());
        }
        let used = used(&nodes, &partitions);
        let uses = || used.iter().zip(&nodes).map(|(used, node)| full(node, *used));
        let fullest = (0..nodes.len()).max_by(|a, b| {
            uses().nth(*a).partial_cmp(&uses().nth(*b)).expect("numbers")
        }).expect("nodes");
        for partition in partitions.iter().filter(|p| p.nodes.contains(&(fullest as u32))) {
            let with = |n: usize| [0, 1].map(|r| used[n][r] + partition.demand[r]);
            let without = [0, 1].map(|r| used[fullest][r] - partition.demand[r]);
            for to in (0..nodes.len()).filter(|n| !partition.nodes.contains(&(*n as u32))) {
                let higher = full(&nodes[to], with(to)).max(full(&nodes[fullest], without));
                prop_assert!(higher >= planned.use_max, "{higher} at {to} is less than {planned:?}");
            }
        }
    }

    /// Fair demand is the share of what the tenant uses most, divided by what was measured; its
    /// other resources keep their proportion to that.
    #[test]
    fn fair_demand_divides_the_share(
        share in 0u64..1_000_000,
        rates in prop::collection::vec((0u64..1_000, 0u64..1_000).prop_map(|(a, b)| [a, b]), 1..30),
    ) {
        let parts = fair_demand(share, &rates);
        let sum = |of: &[[u64; R]], r: usize| of.iter().map(|part| part[r]).sum::<u64>();
        let dominant = if sum(&rates, 1) > sum(&rates, 0) { 1 } else { 0 };
        let other = sum(&parts, 1 - dominant);
        let (sum_parts, sum_rates) = (sum(&parts, dominant), sum(&rates, dominant));
        prop_assert!(sum_parts <= share && share - sum_parts < rates.len() as u64 + 1, "{sum_parts} of {share}");
        prop_assert!(other <= share);
        if sum_rates > 0 {
            for (rate, part) in rates.iter().zip(&parts) {
                prop_assert_eq!([0, 1].map(|r| share * rate[r] / sum_rates), *part);
            }
        }
    }
}

#[test]
fn what_lies_well_stays_and_a_lost_node_is_emptied() {
    let node = |capacity, domain| Node {
        capacity: [capacity, 1_000],
        domain,
    };
    let mut partitions: Vec<Partition<R>> = (0..12)
        .map(|n| Partition::new([10, 1], 2, vec![n % 4, (n + 1) % 4]))
        .collect();
    let mut nodes: Vec<Node<R>> = (0..4).map(|n| node(100, n)).collect();
    assert_eq!(plan(&nodes, &mut partitions, &Moves::free(100)).moves, 0);
    nodes[2].capacity = [0, 0];
    let planned = plan(&nodes, &mut partitions, &Moves::free(100));
    let first: Vec<u64> = used(&nodes, &partitions)
        .iter()
        .map(|used| used[0])
        .collect();
    assert_eq!(first, [80, 80, 0, 80]);
    assert!((6..=8).contains(&planned.moves), "{planned:?}");
}

#[test]
fn those_that_lean_on_different_resources_share_a_node() {
    let nodes: Vec<Node<R>> = (0..4)
        .map(|domain| Node {
            capacity: [100, 100],
            domain,
        })
        .collect();
    let mut partitions: Vec<Partition<R>> = (0..16)
        .map(|n| Partition::new(if n < 8 { [45, 4] } else { [4, 45] }, 1, Vec::new()))
        .collect();
    // As one number for each, 45, four on a node would be too many.
    let planned = plan(&nodes, &mut partitions, &Moves::free(usize::MAX));
    assert!((planned.use_max - 0.98).abs() < 1e-9, "{planned:?}");
}
