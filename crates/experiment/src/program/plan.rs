//! `pisces-plan`: placing the partitions of a large system and settling its tenants' shares (Pisces
//! 4.3.1, 4.3.2).
//!
//! Every tenant has the same dominant share; a third of them lean on each of three resources and
//! use up to half as much of the others. Nine tenths are promised of the resource that is used
//! most. Within a tenant demands follow 1/rank, give or take. Times are those that the thread had
//! on a processor, so that other work on the machine does not count.

use std::collections::BTreeMap;

use policy::generator::mix64;
use policy::placement::{fair_demand, plan, Entry, Moves, Node, Partition, Shares};
use workload::client::process::thread_cpu_s;

use settings::table::Fields;

use super::{figures, seed, Program, Work};

/// Resources, such as bytes in, requests and bytes out.
const R: usize = 3;
/// Capacity of a node, in any unit and of each resource.
const CAPACITY: u64 = 10_000_000;
/// Unit of a tenant's use of each resource.
const WHOLE: u64 = 1_000;
/// Exchanges of less than this part of a tenant's share are not made.
const EPSILON: i64 = 4_000;
/// Iterations at most: more than it takes to end.
const ITERATIONS_MAX: u32 = 100;
/// Iterations count until the least part of a demand is this near to where it ends.
const NEAR: f64 = 0.01;

/// `nodes`, `tenants`, `partitions` and `replicas`, of each tenant and partition.
pub(super) const PLAN: Program = Program {
    name: "pisces-plan",
    timed: true,
    prepare,
};

fn prepare(parameters: &Fields) -> Work {
    let placement = parameters.word("placement", &["greedy", "handed over"]);
    let exchange = parameters.word_or_first("exchange", &["cycles", "none"]);
    let size = Size {
        nodes: parameters.count("nodes").unwrap_or(1_000) as u64,
        tenants: parameters.count("tenants").unwrap_or(10_000) as u64,
        partitions: parameters.count("partitions").unwrap_or(8) as u64,
        replicas: parameters.count("replicas").unwrap_or(3),
        moves_max: if placement == "greedy" { 0 } else { usize::MAX },
        exchanges_max: if exchange == "none" {
            0
        } else {
            ITERATIONS_MAX
        },
        seed: seed(parameters),
    };
    Box::new(move |_| Ok(figures(size.solve())))
}

#[derive(Clone, Copy)]
struct Size {
    nodes: u64,
    tenants: u64,
    partitions: u64,
    replicas: usize,
    moves_max: usize,
    exchanges_max: u32,
    seed: u64,
}

/// No exchange leaves everybody a greater part of its demand than this: it keeps what each tenant
/// has in all and what each node gives in all, so somewhere in each row and column the part is at
/// most that of the whole row or column.
fn part_at_best(entries: &[Entry]) -> f64 {
    let mut sums: BTreeMap<(bool, u32), (i64, i64)> = BTreeMap::new();
    for entry in entries {
        for key in [(true, entry.tenant), (false, entry.node)] {
            let (share, demand) = sums.entry(key).or_default();
            *share += entry.share;
            *demand += entry.demand;
        }
    }
    let parts = sums
        .values()
        .map(|(share, demand)| *share as f64 / *demand as f64);
    parts.fold(f64::INFINITY, f64::min)
}

impl Size {
    /// What a tenant uses of each resource for a `WHOLE` of the one that it leans on.
    fn profile(&self, tenant: u64) -> [u64; R] {
        let drawn = mix64(self.seed ^ !tenant);
        std::array::from_fn(|resource| match resource as u64 == tenant % R as u64 {
            true => WHOLE,
            false => (drawn >> (16 * resource)) % (WHOLE / 2),
        })
    }

    /// The dominant share of each tenant with which nine tenths of the resource used most are
    /// promised.
    fn share(&self) -> u64 {
        let profiles = || (0..self.tenants).map(|tenant| self.profile(tenant));
        let used = (0..R).map(|resource| profiles().map(|of| of[resource]).sum::<u64>());
        let most = used.max().unwrap_or(0).max(1);
        self.nodes * CAPACITY * 9 / 10 * WHOLE / most
    }

    fn partitions(&self) -> Vec<Partition<R>> {
        let share = self.share();
        let mut all = Vec::new();
        for tenant in 0..self.tenants {
            let turn = mix64(self.seed ^ tenant) % self.partitions;
            let profile = self.profile(tenant);
            let rate = |number: u64| {
                let rank = 1 + (number + turn) % self.partitions;
                let rate = (10_000 + mix64(tenant * self.partitions + number) % 5_000) / rank;
                profile.map(|part| rate * part)
            };
            let rates: Vec<[u64; R]> = (0..self.partitions).map(rate).collect();
            let demands = fair_demand(share, &rates).into_iter();
            all.extend(demands.map(|demand| {
                let each = demand.map(|demand| demand / self.replicas as u64);
                Partition::new(each, self.replicas, Vec::new())
            }));
        }
        all
    }

    /// Every tenant begins with its share cut evenly over the nodes it is on; nodes charge it for
    /// what it leans on.
    fn shares(&self, partitions: &[Partition<R>]) -> Shares {
        let whole = self.share() as i64;
        let mut demands: BTreeMap<(u32, u32), i64> = BTreeMap::new();
        for (number, partition) in partitions.iter().enumerate() {
            let tenant = (number as u64 / self.partitions) as u32;
            for node in &partition.nodes {
                let charged = partition.demand.into_iter().max().unwrap_or(0);
                *demands.entry((tenant, *node)).or_default() += charged as i64;
            }
        }
        let mut on = vec![0; self.tenants as usize];
        for (tenant, _) in demands.keys() {
            on[*tenant as usize] += 1;
        }
        let entry = |(&(tenant, node), &demand): (&(u32, u32), &i64)| Entry {
            tenant,
            node,
            share: whole / on[tenant as usize],
            demand,
        };
        Shares::new(demands.iter().map(entry).collect())
    }

    fn solve(&self) -> [(&'static str, f64); 5] {
        let domains = 0..self.nodes as u32;
        let nodes: Vec<Node<R>> = domains
            .map(|domain| Node {
                capacity: [CAPACITY; R],
                domain,
            })
            .collect();
        let mut partitions = self.partitions();
        let began_s = thread_cpu_s();
        let planned = plan(&nodes, &mut partitions, &Moves::free(self.moves_max));
        let placed_s = thread_cpu_s() - began_s;

        let mut shares = self.shares(&partitions);
        let epsilon = self.share() as i64 / EPSILON;
        let began_s = thread_cpu_s();
        // After each iteration: the least part, and how long it took until then.
        let mut steps = vec![(shares.worst(), 0.0)];
        let at_best = part_at_best(shares.entries());
        for _ in 0..self.exchanges_max {
            let done = shares.exchange(epsilon);
            if done.cycles == 0 {
                break;
            }
            steps.push((done.worst_after, thread_cpu_s() - began_s));
        }
        let last = steps.last().map_or(0.0, |step| step.0);
        let stands = |step: &(f64, f64)| last - step.0 <= NEAR;
        let iterations = steps.iter().position(stands).unwrap_or(steps.len());
        let settled_s = steps.get(iterations).map_or(f64::NAN, |step| step.1);
        [
            ("solve", placed_s + settled_s),
            ("iterations", iterations as f64),
            ("highest-use", planned.use_max),
            ("least-slack", last - 1.0),
            ("slack-short", at_best - last),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn small(moves_max: usize, exchanges_max: u32) -> BTreeMap<&'static str, f64> {
        let size = Size {
            nodes: 20,
            tenants: 100,
            partitions: 8,
            replicas: 3,
            moves_max,
            exchanges_max,
            seed: 1,
        };
        BTreeMap::from(size.solve())
    }

    /// The bounds of the verdicts of `pisces-plan`.
    const SHORT_MAX: f64 = 0.05;
    const USE_MAX: f64 = 0.901;

    #[test]
    fn a_small_system_is_placed_and_settles() {
        let figures = small(usize::MAX, ITERATIONS_MAX);
        assert!(figures["highest-use"] <= USE_MAX, "{figures:?}");
        assert!(figures["slack-short"] <= SHORT_MAX, "{figures:?}");
        assert!(figures["iterations"] < 20.0, "{figures:?}");
    }

    #[test]
    fn who_does_nothing_or_only_places_misses_a_verdict() {
        let unexchanged = small(usize::MAX, 0);
        assert!(unexchanged["slack-short"] > SHORT_MAX, "{unexchanged:?}");
        let greedy = small(0, ITERATIONS_MAX);
        assert!(greedy["highest-use"] > USE_MAX, "{greedy:?}");
    }
}
