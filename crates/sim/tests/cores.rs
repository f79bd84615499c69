//! Shares on a node of several cores. What keeps them is switched off, too: each result must fail
//! then, or the test shows nothing.

use policy::balance::BalanceOptions;
use policy::{Nanos, Promise};
use sim::cores::{Node, Served, Tenant, World};

const S: Nanos = 1_000_000_000;

fn tenant(weight: f64, connections: &[usize]) -> Tenant {
    Tenant {
        promise: Promise::share(weight),
        connections: connections.to_vec(),
        turn_ns: 20_000,
        disk_ns: 0,
        think_ns: 100_000,
    }
}

fn node(tenants: Vec<Tenant>, cores: usize, seed: u64) -> Node {
    Node {
        cores,
        exchange: true,
        balance: Some(BalanceOptions::default()),
        handlers: 16,
        lend: true,
        tenants,
        seed,
    }
}

/// What each had in seconds of a core, a second long, once the node has run for two; and the moves
/// of all the time.
fn had(node: &Node) -> (Vec<f64>, u64) {
    let mut world = World::new(node);
    world.run(2 * S);
    let before = world.served().clone();
    world.run(3 * S);
    let Served { had_ns, moves, .. } = world.served().clone();
    let had = had_ns.iter().zip(before.had_ns);
    (
        had.map(|(now, then)| (now - then) as f64 / S as f64)
            .collect(),
        moves,
    )
}

fn near(is: &[f64], want: &[f64]) -> bool {
    is.iter()
        .zip(want)
        .all(|(is, want)| (is - want).abs() <= 0.05 * want)
}

#[test]
fn a_share_is_of_the_whole_node_wherever_connections_are() {
    for seed in 1..=3 {
        // The first is on both cores, the second on one: each is to have as much as the other.
        let mut node = node(vec![tenant(1.0, &[24, 24]), tenant(1.0, &[0, 48])], 2, seed);
        node.balance = None;
        let (exchanged, _) = had(&node);
        assert!(near(&exchanged, &[1.0, 1.0]), "{exchanged:?}");
        node.exchange = false;
        let (alone, _) = had(&node);
        assert!(
            near(&alone, &[1.5, 0.5]),
            "each core shares what it has: {alone:?}"
        );
    }
}

#[test]
fn connections_move_from_a_busy_core_to_an_idle_one() {
    for seed in 1..=3 {
        let mut node = node(vec![tenant(1.0, &[32, 0]), tenant(3.0, &[32, 0])], 2, seed);
        let (balanced, moves) = had(&node);
        let all: f64 = balanced.iter().sum();
        assert!(all > 1.9 && moves > 0, "{balanced:?}, {moves}");
        assert!(
            near(&balanced, &[all / 4.0, all * 3.0 / 4.0]),
            "{balanced:?}"
        );
        node.balance = None;
        let (stayed, moves) = had(&node);
        assert_eq!(moves, 0);
        assert!(
            near(&stayed, &[0.25, 0.75]),
            "one core is all there is: {stayed:?}"
        );
    }
}

#[test]
fn nobody_moves_where_nobody_waits() {
    // A tenth of each core's time is asked for on the first, nothing on the second.
    let mut quiet = tenant(1.0, &[1, 0]);
    quiet.think_ns = 180_000;
    let (had, moves) = had(&node(vec![quiet], 2, 1));
    assert!(near(&had, &[0.1]), "{had:?}");
    assert_eq!(moves, 0);
}

#[test]
fn a_limit_is_the_node_s() {
    let mut limited = tenant(1.0, &[16, 16]);
    limited.promise.limit.requests_per_s = Some(10_000.0);
    let node = node(vec![limited, tenant(1.0, &[16, 16])], 2, 1);
    let (had, _) = had(&node);
    assert!(near(&had, &[0.2, 1.8]), "10,000 requests of 20 us: {had:?}");
}

/// Requests a second that handlers did for each tenant, of a disk that takes 10 ms for each.
fn read(node: &Node) -> Vec<f64> {
    let mut world = World::new(node);
    world.run(2 * S);
    let before = world.served().read.clone();
    world.run(12 * S);
    let read = world.served().read.iter().zip(before);
    read.map(|(now, then)| (now - then) as f64 / 10.0).collect()
}

/// A node whose requests all need the disk. Tenants in credit may have permits beyond these, so
/// those here are alone or ask for more than their share.
fn reads(tenants: Vec<Tenant>, cores: usize, lend: bool) -> Node {
    let slow = |mut tenant: Tenant| {
        tenant.disk_ns = 10_000_000;
        tenant
    };
    let tenants = tenants.into_iter().map(slow).collect();
    let mut node = node(tenants, cores, 1);
    (node.balance, node.lend) = (None, lend);
    node
}

#[test]
fn a_core_with_work_has_the_permits_of_one_that_has_none() {
    let alone = |lend| read(&reads(vec![tenant(1.0, &[0, 64])], 2, lend))[0];
    let (kept, lent) = (alone(false), alone(true));
    // Sixteen are 1,600 a second, and one is never lent.
    assert!(kept < 900.0 && lent > 1_350.0, "{kept} {lent}");
}

#[test]
fn what_is_lent_comes_back_and_breaks_no_shares() {
    // On the core that lends, a tenant that has little to read, and one by weight three on the
    // other.
    let few = |lend| {
        let tenants = vec![
            tenant(1.0, &[0, 64]),
            tenant(3.0, &[0, 64]),
            tenant(1.0, &[2, 0]),
        ];
        read(&reads(tenants, 2, lend))
    };
    let (kept, lent) = (few(false), few(true));
    assert!(lent[2] > 0.95 * kept[2], "{kept:?} {lent:?}");
    for had in [&kept, &lent] {
        assert!(near(&[had[1]], &[3.0 * had[0]]), "{had:?}");
    }
    assert!(lent[0] > 1.4 * kept[0], "{kept:?} {lent:?}");
    // Both cores have more to do than handlers: nothing is lent.
    let many = |lend| {
        read(&reads(
            vec![tenant(1.0, &[64, 0]), tenant(9.0, &[0, 64])],
            2,
            lend,
        ))
    };
    let (kept, lent) = (many(false), many(true));
    assert!(near(&lent, &kept), "{kept:?} {lent:?}");
}
