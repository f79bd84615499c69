//! The controller: what its steps keep, whatever was seen.

use policy::placement::{
    plan, Asked, Control, ControlOptions, Moves, Node, Partition, Seen, Served, TenantSeen,
};
use proptest::prelude::*;

const CAPACITY: u64 = 1_000_000_000;

fn nodes(count: u32) -> Vec<Node<1>> {
    (0..count)
        .map(|domain| Node {
            capacity: [CAPACITY],
            domain,
        })
        .collect()
}

/// Of somebody who sees nothing; moves are free.
fn nothing() -> Seen<'static, 1> {
    Seen {
        now: 0,
        nodes: &[],
        tenants: &[],
        served: &[],
        partitions: &[],
        bytes: &[],
        busy: &[],
    }
}

fn tenant(weight: f64, wants_more: bool) -> TenantSeen {
    TenantSeen {
        weight,
        reserved: 0.0,
        wants_more,
        dominant: 0.0,
    }
}

/// Partitions of each tenant, all in the order of the nodes, and rates that fall by the partition's
/// number.
fn skewed(tenants: u32, each: u32, nodes: u32) -> (Vec<Partition<1>>, Vec<Asked<1>>) {
    let numbers = (0..tenants).flat_map(|tenant| (0..each).map(move |number| (tenant, number)));
    numbers
        .map(|(tenant, number)| {
            let partition = Partition::new([0], 1, vec![number % nodes]);
            let rate = 1e8 / f64::from(number + 1);
            (partition, asked(tenant, rate))
        })
        .unzip()
}

fn asked(tenant: u32, rate: f64) -> Asked<1> {
    Asked {
        tenant,
        rate,
        uses: [rate],
        primary: [0.0],
        requests: 10_000,
        served: vec![rate],
    }
}

fn served(partitions: &[Partition<1>], rates: &[Asked<1>]) -> Vec<Served> {
    let all = partitions.iter().zip(rates);
    all.map(|(partition, asked)| Served {
        tenant: asked.tenant,
        node: partition.nodes[0],
        rate: asked.rate,
    })
    .collect()
}

#[test]
fn equal_tenants_get_shares_where_their_demand_is() {
    let (nodes, tenants) = (nodes(4), [tenant(1.0, true); 3]);
    let (mut partitions, rates) = skewed(3, 16, 4);
    let mut control = Control::new(ControlOptions::default());
    let mut decided = None;
    for _ in 0..3 {
        let served = served(&partitions, &rates);
        let seen = Seen {
            nodes: &nodes,
            tenants: &tenants,
            served: &served,
            partitions: &rates,
            ..nothing()
        };
        decided = Some(control.step(&seen, &mut partitions));
    }
    let decided = decided.expect("three steps");
    assert!(decided.planned.is_none(), "{:?}", decided.planned);
    assert!((decided.level / (4e9 / 3.0) - 1.0).abs() < 1e-6);
    let sums: Vec<f64> = (0..3)
        .map(|tenant| {
            let rate = |node: u32| {
                let here = served(&partitions, &rates);
                let here = here
                    .into_iter()
                    .filter(|s| (s.tenant, s.node) == (tenant, node));
                here.map(|s| s.rate).sum::<f64>()
            };
            let whole: f64 = (0..4).map(rate).sum();
            let of = decided.shares.iter().filter(|local| local.tenant == tenant);
            // What it can have of its whole is bounded by the node where share over demand is
            // least.
            let bounds = of.map(|local| local.share / (rate(local.node) / whole).max(1e-9));
            bounds.fold(f64::MAX, f64::min)
        })
        .collect();
    for sum in sums {
        // Placement may leave 5 % between nodes.
        assert!(sum > 4.0 / 3.0 * 0.95, "{sum} nodes of 1.333");
    }
}

#[test]
fn a_lost_node_is_left_and_its_partitions_are_placed() {
    let mut nodes = nodes(4);
    let (mut partitions, rates) = skewed(2, 8, 4);
    let mut control = Control::new(ControlOptions::default());
    nodes[2].capacity = [0];
    let served = served(&partitions, &rates);
    let seen = Seen {
        nodes: &nodes,
        tenants: &[tenant(1.0, true); 2],
        served: &served,
        partitions: &rates,
        ..nothing()
    };
    let decided = control.step(&seen, &mut partitions);
    assert!(decided
        .planned
        .is_some_and(|planned| planned.moves >= 4 && planned.unplaced == 0));
    assert!(partitions.iter().all(|partition| partition.nodes != [2]));
    assert!(decided.shares.iter().all(|local| local.node != 2));
}

#[test]
fn what_a_tenant_lags_outlives_a_move() {
    let (nodes, tenants) = (nodes(4), [tenant(1.0, true); 2]);
    let (mut partitions, rates) = skewed(2, 8, 4);
    let mut control = Control::new(ControlOptions::default());
    let mut step = |partitions: &mut [Partition<1>], lost: &[usize]| {
        let mut served = served(partitions, &rates);
        for number in lost {
            partitions[*number].nodes.clear();
        }
        // Until then the first tenant is served a fifth less than the other.
        let of_first = served.iter_mut().filter(|served| served.tenant == 0);
        let part = if lost.is_empty() { 0.8 } else { 1.0 };
        of_first.for_each(|served| served.rate *= part);
        let seen = Seen {
            nodes: &nodes,
            tenants: &tenants,
            served: &served,
            partitions: &rates,
            ..nothing()
        };
        let decided = control.step(&seen, partitions);
        let share = |tenant: u32| {
            let of = decided.shares.iter().filter(|local| local.tenant == tenant);
            of.map(|local| local.share).sum::<f64>()
        };
        (decided.planned.is_some(), share(0) / share(1))
    };
    for _ in 0..3 {
        step(&mut partitions, &[]);
    }
    // One of the other's partitions has no node any more.
    let (planned, ratio) = step(&mut partitions, &[15]);
    assert!(planned && ratio > 1.05, "{planned} {ratio}");
}

/// Partitions of two replicas on two nodes, primaries on the first; `writes`: the part of the
/// requests that write.
fn replicated(count: u32, writes: f64) -> (Vec<Partition<1>>, Vec<Asked<1>>) {
    let one = |_| {
        let partition = Partition::new([0], 2, vec![0, 1]);
        let asked = Asked {
            primary: [1e8 * writes],
            served: vec![1e8 * (1.0 + writes) / 2.0, 1e8 * (1.0 - writes) / 2.0],
            ..asked(0, 1e8)
        };
        (partition, asked)
    };
    (0..count).map(one).unzip()
}

#[test]
fn writes_count_where_they_go() {
    // Only primaries are written: node 0 does all the work of eight partitions, and half of them
    // could be led by node 1.
    let nodes = nodes(2);
    for (writes, led) in [(1.0, 4), (0.5, 4), (0.0, 0)] {
        let (mut partitions, rates) = replicated(8, writes);
        let mut control = Control::new(ControlOptions::default());
        let served: Vec<Served> = (0..2u32)
            .map(|node| Served {
                tenant: 0,
                node,
                rate: rates.iter().map(|asked| asked.served[node as usize]).sum(),
            })
            .collect();
        let seen = Seen {
            nodes: &nodes,
            tenants: &[tenant(1.0, true)],
            served: &served,
            partitions: &rates,
            ..nothing()
        };
        let decided = control.step(&seen, &mut partitions);
        let by_other = partitions
            .iter()
            .filter(|partition| partition.nodes[0] == 1)
            .count();
        assert_eq!(by_other, led, "{writes}: {:?}", decided.planned);
        assert!(partitions
            .iter()
            .all(|partition| partition.nodes.len() == 2));
        let planned = decided
            .planned
            .map(|planned| (planned.moves, planned.promoted));
        assert_eq!(
            planned,
            (led > 0).then_some((0, led)),
            "nothing has to be copied for that"
        );
    }
}

#[test]
fn a_replica_that_moves_keeps_its_part() {
    // Four partitions of two nodes, one of which is half as large: it hands one over to a third
    // node. If it is not the primary that moves, the primary stays; if it is, it is the primary
    // where it goes.
    for (small, moved) in [(0, [1, 2]), (1, [2, 0])] {
        let mut nodes = nodes(3);
        nodes[small].capacity = [CAPACITY / 2];
        let one = || Partition {
            primary: [CAPACITY / 100],
            ..Partition::new([CAPACITY / 10], 2, vec![1, 0])
        };
        let mut partitions = vec![one(), one(), one(), one()];
        let planned = plan(&nodes, &mut partitions, &Moves::free(1));
        assert_eq!((planned.moves, planned.promoted), (1, 0));
        let of_moved = partitions
            .iter()
            .filter(|partition| partition.nodes == moved);
        assert_eq!(of_moved.count(), 1, "{partitions:?}");
    }
}

/// While it is copied nobody asks it, and then for a part of a step: had it the share that this
/// comes to, it would serve no more than that.
#[test]
fn a_replica_that_is_new_at_a_node_has_a_share_there_at_once() {
    let (nodes, tenants) = (nodes(4), [tenant(1.0, true); 2]);
    let homes = [(0, [0, 1]), (0, [1, 2]), (0, [2, 0])];
    // They want most where it comes to.
    let others = [(1, [3, 0]), (1, [3, 1]), (1, [3, 2])];
    let all = || homes.iter().chain(&others);
    let of = |(_, home): &(u32, [u32; 2])| Partition::new([0], 2, home.to_vec());
    let mut partitions: Vec<Partition<1>> = all().map(of).collect();
    let options = ControlOptions {
        places: false,
        ..ControlOptions::default()
    };
    let mut control = Control::new(options);
    let mut step = |partitions: &mut [Partition<1>], second: f64| {
        let mut rates: Vec<Asked<1>> = all().map(|(tenant, _)| asked(*tenant, 1e8)).collect();
        for asked in &mut rates {
            asked.served = match asked.tenant {
                0 => vec![5e7, 5e7],
                _ => vec![9e7, 1e7],
            };
        }
        rates[0].served = vec![1e8 - second, second];
        let by_replica = partitions
            .iter()
            .zip(&rates)
            .flat_map(|(partition, asked)| {
                let replicas = partition.nodes.iter().zip(&asked.served);
                replicas.map(|(node, rate)| (asked.tenant, *node, *rate))
            });
        let served: Vec<Served> = by_replica
            .map(|(tenant, node, rate)| Served { tenant, node, rate })
            .collect();
        let seen = Seen {
            nodes: &nodes,
            tenants: &tenants,
            served: &served,
            partitions: &rates,
            ..nothing()
        };
        control.step(&seen, partitions).shares
    };
    for _ in 0..3 {
        step(&mut partitions, 5e7);
    }
    partitions[0].nodes[1] = 3;
    for served in [0.0, 0.0, 1e6] {
        let shares = step(&mut partitions, served);
        let of_tenant = shares.iter().filter(|local| local.tenant == 0);
        let whole: f64 = of_tenant.clone().map(|local| local.share).sum();
        let here: f64 = of_tenant
            .filter(|local| local.node == 3)
            .map(|local| local.share)
            .sum();
        assert!(here > whole / 6.0 / 4.0, "{served}: {shares:?}");
    }
}

proptest! {
    /// Whoever wants more gets its part of what the others leave, on nodes that are never given
    /// twice.
    #[test]
    fn shares_add_up(
        weights in prop::collection::vec((0.1f64..10.0, any::<bool>()), 2..8),
        rates in prop::collection::vec(0.0f64..1e8, 64),
        steps in 1usize..4,
    ) {
        let nodes = nodes(4);
        let tenants: Vec<TenantSeen> = weights.iter().map(|(w, more)| tenant(*w, *more)).collect();
        let count = tenants.len() as u32;
        let (mut partitions, mut seen_rates) = skewed(count, 8, 4);
        for (slot, rate) in seen_rates.iter_mut().zip(&rates) {
            *slot = asked(slot.tenant, *rate);
        }
        let mut control = Control::new(ControlOptions::default());
        for _ in 0..steps {
            let served = served(&partitions, &seen_rates);
            let seen = Seen { nodes: &nodes, tenants: &tenants, served: &served, partitions: &seen_rates, ..nothing() };
            let decided = control.step(&seen, &mut partitions);
            let wants = |tenant: u32| tenants[tenant as usize].wants_more;
            for node in 0..4 {
                let here = decided.shares.iter().filter(|l| l.node == node && wants(l.tenant));
                let sum: f64 = here.map(|l| l.share).sum();
                prop_assert!(sum <= 1.0 + 1e-6, "node {}: {}", node, sum);
            }
            prop_assert!(decided.shares.iter().all(|l| l.share >= 0.0 && l.share.is_finite()));
            if let Some(done) = decided.exchanged {
                prop_assert!(done.worst_after >= done.worst_before);
            }
        }
    }
}
