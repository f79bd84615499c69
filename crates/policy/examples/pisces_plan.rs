//! `pisces-plan`: how long placement and weight exchange take at 1,000 nodes and 10,000 tenants of eight partitions
//! with three replicas, skewed demands.
//!
//! `cargo run --release -p entremet-policy --example pisces_plan`

use policy::placement::{fair_demand, plan, Entry, Node, Partition, Shares};
use std::collections::BTreeMap;

const NODES: u64 = 1_000;
const TENANTS: u64 = 10_000;
const PARTITIONS: u64 = 8;
const REPLICAS: usize = 3;
const CAPACITY: u64 = 10_000_000;

/// A number from 0 to 2^32 that follows from another.
fn mixed(x: u64) -> u64 {
    let z = (x.wrapping_add(0x9e37_79b9_7f4a_7c15) ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb) >> 32
}

/// Time this thread has had on a processor: other work on the machine must not count.
fn on_cpu_ms() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let first = text.split_whitespace().next();
    first.and_then(|ns| ns.parse::<f64>().ok()).unwrap_or(0.0) / 1e6
}

fn main() {
    let nodes: Vec<Node> = (0..NODES)
        .map(|n| Node {
            capacity: CAPACITY,
            domain: n as u32,
        })
        .collect();
    // Nine tenths of the capacity are promised, in equal shares; demands within a tenant follow 1/rank, give or take.
    let share = NODES * CAPACITY * 9 / 10 / TENANTS;
    let mut partitions = Vec::new();
    for tenant in 0..TENANTS {
        let turn = mixed(tenant) % PARTITIONS;
        let rates: Vec<u64> = (0..PARTITIONS)
            .map(|p| {
                (10_000 + mixed(tenant * PARTITIONS + p) % 5_000) / (1 + (p + turn) % PARTITIONS)
            })
            .collect();
        for demand in fair_demand(share, &rates) {
            partitions.push(Partition {
                demand: demand / REPLICAS as u64,
                replicas: REPLICAS,
                nodes: Vec::new(),
            });
        }
    }
    let began = on_cpu_ms();
    let planned = plan(&nodes, &mut partitions, 10_000);
    let placed = on_cpu_ms();
    println!("placement: {:.0} ms, {planned:?}", placed - began);

    // Every tenant begins with its share cut evenly over the nodes it is on.
    let mut cells: BTreeMap<(u32, u32), i64> = BTreeMap::new();
    for (number, partition) in partitions.iter().enumerate() {
        for node in &partition.nodes {
            let tenant = (number as u64 / PARTITIONS) as u32;
            *cells.entry((tenant, *node)).or_default() += partition.demand as i64;
        }
    }
    let mut on = vec![0i64; TENANTS as usize];
    cells
        .keys()
        .for_each(|(tenant, _)| on[*tenant as usize] += 1);
    let entry = |(&(tenant, node), &demand): (&(u32, u32), &i64)| Entry {
        tenant,
        node,
        share: share as i64 / on[tenant as usize],
        demand,
    };
    let mut shares = Shares::new(cells.iter().map(entry).collect());
    let epsilon = share as i64 / 100;
    println!(
        "weights: worst slack {} of a share of {share}",
        shares.worst()
    );
    let began = on_cpu_ms();
    for iteration in 1..=40 {
        let done = shares.exchange(epsilon);
        println!(
            "  iteration {iteration}: {:.0} ms, {done:?}",
            on_cpu_ms() - began
        );
        if done.cycles == 0 {
            break;
        }
    }
}
