//! Fair shares across nodes: what every exchange keeps.

use policy::placement::{fair_demand, plan, Entry, Node, Partition, Shares};
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
    /// Every tenant's total and every node's total stay, nobody gives what it does not have, the worst mismatch never
    /// grows, squared slack falls with every cycle, and it ends.
    #[test]
    fn exchanges_keep_totals_and_help_the_worst(
        cells in prop::collection::vec((0u32..12, 0u32..6, 0i64..1_000, 0i64..1_000), 1..72),
        epsilon in 0i64..20,
    ) {
        let entries = cells.into_iter().map(|(t, n, share, demand)| entry(t, n, share, demand));
        let mut shares = Shares::new(entries.collect());
        let before = totals(&shares);
        let squares = |shares: &Shares| shares.entries().iter().map(|e| e.slack().pow(2)).sum::<i64>();
        let mut last = squares(&shares);
        let mut iterations = 0;
        loop {
            let done = shares.exchange(epsilon);
            prop_assert!(done.worst_after >= done.worst_before, "{done:?}");
            prop_assert_eq!(&totals(&shares), &before);
            prop_assert!(shares.entries().iter().all(|entry| entry.share >= 0));
            let now = squares(&shares);
            prop_assert!(now <= last - i64::from(done.cycles), "{last} {now} {done:?}");
            last = now;
            if done.cycles == 0 {
                break;
            }
            iterations += 1;
            prop_assert!(iterations < 200, "it does not end");
        }
    }

    /// Where there is a bilateral exchange that helps the worst by more than epsilon, it does not stop.
    #[test]
    fn it_does_not_stop_early(cells in prop::collection::vec((0i64..1_000, 0i64..1_000), 16)) {
        let entries = cells.iter().enumerate().map(|(i, (share, demand))| {
            entry(i as u32 / 4, i as u32 % 4, *share, *demand)
        });
        let mut shares = Shares::new(entries.collect());
        shares.settle(2, 1_000);
        let slack = |t: usize, n: usize| shares.entries()[t * 4 + n].slack();
        let has = |t: usize, n: usize| shares.entries()[t * 4 + n].share;
        for t in 0..4 {
            let n = (0..4).min_by_key(|n| slack(t, *n)).expect("nodes");
            if slack(t, n) >= -2 {
                continue;
            }
            for u in (0..4).filter(|u| *u != t) {
                for m in (0..4).filter(|m| *m != n) {
                    let take = ((slack(u, n) - slack(t, n)) / 2).min(has(u, n));
                    let give = ((slack(t, m) - slack(u, m)) / 2).min(has(t, m));
                    prop_assert!(take.min(give) <= 2, "{t} could take from {u} at {n} and give at {m}");
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
    assert_eq!(shares.worst(), -30);
    let done = shares.exchange(0);
    assert_eq!((done.cycles, done.moved, done.worst_after), (1, 30, 0));
    let local: Vec<i64> = shares.entries().iter().map(|e| e.share).collect();
    assert_eq!(local, [80, 20, 20, 80]);
    assert_eq!(shares.settle(0, 10), 0);
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
    assert_eq!(done.worst_before, -8);
    assert_eq!(done.worst_after, 0);
    assert!(shares.entries().iter().all(|e| e.slack() >= 0));
}

#[test]
fn nothing_to_exchange_is_no_failure() {
    let mut none = Shares::new(Vec::new());
    assert_eq!((none.worst(), none.exchange(0).cycles), (0, 0));
    let mut alone = Shares::new(vec![entry(3, 2, 5, 9)]);
    assert_eq!((alone.exchange(0).cycles, alone.worst()), (0, -4));
}

fn used(nodes: &[Node], partitions: &[Partition]) -> Vec<u64> {
    let mut used = vec![0; nodes.len()];
    for partition in partitions {
        for node in &partition.nodes {
            used[*node as usize] += partition.demand;
        }
    }
    used
}

proptest! {
    /// Replicas lie in different domains on nodes that can hold them; the plan says truly how full the
    /// fullest is; moving never makes it fuller; and what had a place moves at most as often as allowed.
    #[test]
    fn plans_keep_their_rules(
        capacities in prop::collection::vec((0u64..4).prop_map(|c| c * 500), 3..10),
        domains in 1u32..5,
        demands in prop::collection::vec((0u64..200, 1usize..4, prop::collection::vec(0u32..12, 0..4)), 1..60),
        moves_max in 0usize..40,
    ) {
        let nodes: Vec<Node> = capacities.iter().enumerate()
            .map(|(n, capacity)| Node { capacity: *capacity, domain: n as u32 % domains })
            .collect();
        let partitions: Vec<Partition> = demands.into_iter()
            .map(|(demand, replicas, nodes)| Partition { demand, replicas, nodes })
            .collect();
        let mut greedy = partitions.clone();
        let first = plan(&nodes, &mut greedy, 0);
        let mut better = partitions.clone();
        let planned = plan(&nodes, &mut better, moves_max);
        prop_assert!(planned.use_max <= first.use_max && planned.moves <= first.moves + moves_max);
        let able: BTreeSet<u32> = nodes.iter().filter(|n| n.capacity > 0).map(|n| n.domain).collect();
        let mut unplaced = 0;
        for partition in &better {
            let placed: BTreeSet<u32> = partition.nodes.iter().map(|n| nodes[*n as usize].domain).collect();
            prop_assert_eq!(placed.len(), partition.nodes.len());
            prop_assert!(partition.nodes.iter().all(|n| nodes[*n as usize].capacity > 0));
            prop_assert_eq!(partition.nodes.len(), partition.replicas.min(able.len()));
            unplaced += partition.replicas - partition.nodes.len();
        }
        prop_assert_eq!(unplaced, planned.unplaced);
        let full = used(&nodes, &better).iter().zip(&nodes).filter(|(_, n)| n.capacity > 0)
            .map(|(used, n)| *used as f64 / n.capacity as f64).fold(0.0, f64::max);
        prop_assert!((full - planned.use_max).abs() < 1e-6, "{full} {planned:?}");
    }

    /// Fair demand is the share, divided by what was measured.
    #[test]
    fn fair_demand_divides_the_share(share in 0u64..1_000_000, rates in prop::collection::vec(0u64..1_000, 1..30)) {
        let parts = fair_demand(share, &rates);
        let sum: u64 = parts.iter().sum();
        prop_assert!(sum <= share && share - sum < rates.len() as u64 + 1, "{sum} of {share}");
        for (a, b) in rates.iter().zip(&parts).zip(rates.iter().zip(&parts).skip(1)) {
            prop_assert!((a.0 <= b.0) == (a.1 <= b.1) || a.1 == b.1);
        }
    }
}

#[test]
fn what_lies_well_stays_and_a_lost_node_is_emptied() {
    let node = |capacity, domain| Node { capacity, domain };
    let mut partitions: Vec<Partition> = (0..12)
        .map(|n| Partition {
            demand: 10,
            replicas: 2,
            nodes: vec![n % 4, (n + 1) % 4],
        })
        .collect();
    let mut nodes: Vec<Node> = (0..4).map(|n| node(100, n)).collect();
    assert_eq!(plan(&nodes, &mut partitions, 100).moves, 0);
    nodes[2].capacity = 0;
    let planned = plan(&nodes, &mut partitions, 100);
    assert_eq!(used(&nodes, &partitions), [80, 80, 0, 80]);
    assert!((6..=8).contains(&planned.moves), "{planned:?}");
}
