//! The controller's step: from what nodes saw, where partitions go and what each tenant may have where.
//!
//! Pisces algorithms 1 and 2 in one place (thesis 4.3.1, 4.3.2). Rates are in nanoseconds of a node's time a second,
//! as dispatches charge them, so they compare over resources. Two departures from the paper:
//!
//! * shares of the whole are weighted max-min over what tenants ask ([`fair_shares`]), so what one leaves is shared
//!   system-wide and not by the accident of where its neighbours are (Pisces 4.1 leaves it to local weights);
//! * local shares begin, and begin again whenever shares or nodes change, as the matrix that has the right sum for each
//!   tenant and each node; exchange keeps both sums, so it could never mend them.

use super::fair::{fair_shares, fit, Cell, Claim};
use super::plan::{fair_demand, plan, Node, Partition, Planned};
use super::weights::{Entry, Exchanged, Shares};
use std::collections::BTreeMap;

/// How a controller decides.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ControlOptions {
    /// Whether it places partitions. Those without a node are placed in any case.
    pub places: bool,
    /// Whether it gives tenants other weights at nodes.
    pub weighs: bool,
    /// Partitions move when the most used node is so much above the mean, as a part of it.
    pub imbalance_max: f64,
    /// Moves of one step.
    pub moves_max: usize,
    /// Weight of the newest rates in the averages, above 0, at most 1.
    pub newest: f64,
    /// Exchanges below this part of a mean local share are not worth it (Pisces' epsilon).
    pub epsilon: f64,
}

impl Default for ControlOptions {
    /// Everything on: 5 % imbalance, any number of moves, a third, half a percent.
    fn default() -> Self {
        ControlOptions {
            places: true,
            weighs: true,
            imbalance_max: 0.05,
            moves_max: usize::MAX,
            newest: 1.0 / 3.0,
            epsilon: 0.005,
        }
    }
}

/// A tenant as the controller sees it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TenantSeen {
    /// Its share of the whole system relative to others.
    pub weight: f64,
    /// What it has before anybody's share, ns/s over all nodes.
    pub reserved: f64,
    /// Whether it had work waiting most of the time somewhere: it would take more.
    pub wants_more: bool,
}

/// What a tenant was served at a node, ns/s.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Served {
    /// The tenant.
    pub tenant: u32,
    /// The node.
    pub node: u32,
    /// Its rate.
    pub rate: f64,
}

/// What was seen since the last step.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    /// Nodes, with what each can serve in ns/s; 0: it is lost.
    pub nodes: &'a [Node],
    /// Tenants.
    pub tenants: &'a [TenantSeen],
    /// Rates by tenant and node; what is missing is 0.
    pub served: &'a [Served],
    /// Tenant and rate of every partition.
    pub partitions: &'a [(u32, f64)],
}

/// What a tenant may have at a node.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Local {
    /// The tenant.
    pub tenant: u32,
    /// The node.
    pub node: u32,
    /// Its share there, as a part of the node.
    pub share: f64,
}

/// What a step decided, and why.
#[derive(Clone, Debug, Default)]
pub struct Decided {
    /// What a tenant of weight 1 may have, ns/s of the whole.
    pub level: f64,
    /// The plan, if partitions had to move.
    pub planned: Option<Planned>,
    /// Exchanges, summed over the step's iterations; `None`: nobody wants more than it has.
    pub exchanged: Option<Exchanged>,
    /// Local shares, by tenant, then node; none where `exchanged` is `None`.
    pub shares: Vec<Local>,
}

#[derive(Clone, Copy, Debug, Default)]
struct State {
    rate: f64,
    share: f64,
}

/// The controller.
#[derive(Clone, Debug)]
pub struct Control {
    options: ControlOptions,
    local: BTreeMap<(u32, u32), State>,
    rates: Vec<f64>,
}

/// Iterations of exchange in a step: more than convergence takes (`pisces-plan`).
const ITERATIONS_MAX: u32 = 20;
/// What is left of a node for those who want more, whatever the others used there.
const LEFT_MIN: f64 = 0.02;

impl Control {
    /// A controller that has seen nothing.
    #[must_use]
    pub fn new(options: ControlOptions) -> Self {
        Control {
            options,
            local: BTreeMap::new(),
            rates: Vec::new(),
        }
    }

    /// Looks at what was seen, places partitions, and says what each tenant may have where.
    pub fn step(&mut self, seen: &Seen<'_>, partitions: &mut [Partition]) -> Decided {
        self.learn(seen, partitions);
        let planned = self.place(seen, partitions);
        let mut decided = Decided {
            planned,
            ..Decided::default()
        };
        self.keep(seen, partitions, decided.planned.is_some());
        if self.options.weighs {
            self.weigh(seen, &mut decided);
        }
        decided
    }

    fn learn(&mut self, seen: &Seen<'_>, partitions: &[Partition]) {
        let first = self.rates.is_empty();
        self.rates.resize(partitions.len(), 0.0);
        let part = if first { 1.0 } else { self.options.newest };
        for (rate, (_, newest)) in self.rates.iter_mut().zip(seen.partitions) {
            *rate += (newest - *rate) * part;
        }
        for state in self.local.values_mut() {
            state.rate *= 1.0 - part;
        }
        for served in seen.served {
            let key = (served.tenant, served.node);
            self.local.entry(key).or_default().rate += served.rate * part;
        }
    }

    /// Partitions' demands follow entitled shares and measured rates; moves where something is missing or uneven.
    fn place(&self, seen: &Seen<'_>, partitions: &mut [Partition]) -> Option<Planned> {
        let whole: f64 = seen.nodes.iter().map(|node| node.capacity as f64).sum();
        let claims = seen.tenants.iter().map(|tenant| Claim {
            weight: tenant.weight,
            reserved: tenant.reserved,
            asks: None,
        });
        let (_, entitled) = fair_shares(whole, &claims.collect::<Vec<_>>());
        let mut from = 0;
        while from < partitions.len() {
            let tenant = seen.partitions[from].0;
            let mut until = from;
            while until < partitions.len() && seen.partitions[until].0 == tenant {
                until += 1;
            }
            let rates: Vec<u64> = self.rates[from..until].iter().map(|r| *r as u64).collect();
            let demands = fair_demand(entitled[tenant as usize] as u64, &rates);
            for (partition, demand) in partitions[from..until].iter_mut().zip(demands) {
                partition.demand = demand / partition.replicas.max(1) as u64;
            }
            from = until;
        }
        let missing = partitions.iter().any(|partition| {
            let alive = |node: &&u32| seen.nodes[**node as usize].capacity > 0;
            partition.nodes.iter().filter(alive).count() < partition.replicas
        });
        let uneven =
            self.options.places && imbalance(seen.nodes, partitions) > self.options.imbalance_max;
        if !missing && !uneven {
            return None;
        }
        let moves_max = if uneven { self.options.moves_max } else { 0 };
        Some(plan(seen.nodes, partitions, moves_max))
    }

    /// Keeps what there is a partition for, and knows of new places. Where partitions moved, a tenant's rate is
    /// divided like theirs.
    fn keep(&mut self, seen: &Seen<'_>, partitions: &[Partition], moved: bool) {
        let mut sums = vec![(0.0, 0.0); seen.tenants.len()];
        for ((tenant, _), state) in &self.local {
            sums[*tenant as usize].0 += state.rate;
        }
        let old = std::mem::take(&mut self.local);
        let mut expected = BTreeMap::<(u32, u32), f64>::new();
        let known = partitions.iter().zip(seen.partitions).zip(&self.rates);
        for ((partition, (tenant, _)), rate) in known {
            for node in &partition.nodes {
                let part = rate / partition.nodes.len() as f64;
                sums[*tenant as usize].1 += part;
                *expected.entry((*tenant, *node)).or_default() += part;
            }
        }
        for (key, expected) in expected {
            let mut state = old.get(&key).copied().unwrap_or_default();
            let (measured, sum) = sums[key.0 as usize];
            if moved && sum > 0.0 {
                state.rate = expected * measured / sum;
            }
            self.local.insert(key, state);
        }
    }

    /// Fits local shares to what each tenant may have, and moves them to where they are wanted.
    fn weigh(&mut self, seen: &Seen<'_>, decided: &mut Decided) {
        let mut rates = vec![0.0; seen.tenants.len()];
        let mut places = vec![0u32; seen.tenants.len()];
        for ((tenant, _), state) in &self.local {
            rates[*tenant as usize] += state.rate;
            places[*tenant as usize] += 1;
        }
        let claims = seen.tenants.iter().zip(&rates).map(|(tenant, rate)| Claim {
            weight: tenant.weight,
            reserved: tenant.reserved,
            asks: (!tenant.wants_more).then_some(*rate),
        });
        let whole: f64 = seen.nodes.iter().map(|node| node.capacity as f64).sum();
        let (level, rows) = fair_shares(whole, &claims.collect::<Vec<_>>());
        decided.level = level;
        if seen.tenants.iter().all(|tenant| !tenant.wants_more) {
            return;
        }
        let mut columns: Vec<f64> = seen.nodes.iter().map(|node| node.capacity as f64).collect();
        let (mut cells, mut demands) = (Vec::new(), Vec::new());
        for (&(tenant, node), state) in &self.local {
            let (row, alike) = (
                rows[tenant as usize],
                1.0 / f64::from(places[tenant as usize]),
            );
            let part = if rates[tenant as usize] > 0.0 {
                state.rate / rates[tenant as usize]
            } else {
                alike
            };
            if seen.tenants[tenant as usize].wants_more {
                let share = if state.share > 0.0 {
                    state.share
                } else {
                    row * alike
                };
                cells.push(Cell {
                    tenant,
                    node,
                    share,
                });
                demands.push(row * part);
            } else {
                let capacity = seen.nodes[node as usize].capacity as f64;
                let left = &mut columns[node as usize];
                *left = (*left - state.rate).max(capacity * LEFT_MIN);
                // Until it wants more its demand says little: its share there is what it would be entitled to.
                let share =
                    seen.tenants[tenant as usize].weight * level * f64::midpoint(part, alike);
                decided.shares.push(Local {
                    tenant,
                    node,
                    share,
                });
            }
        }
        fit(&mut cells, &rows, &columns);
        decided.exchanged = Some(self.exchange(cells, &demands, decided));
        decided
            .shares
            .sort_by_key(|local| (local.tenant, local.node));
        for local in &mut decided.shares {
            let capacity = seen.nodes[local.node as usize].capacity as f64;
            local.share = if capacity > 0.0 {
                local.share / capacity
            } else {
                0.0
            };
        }
    }

    fn exchange(&mut self, cells: Vec<Cell>, demands: &[f64], decided: &mut Decided) -> Exchanged {
        let mean = cells.iter().map(|cell| cell.share).sum::<f64>() / cells.len().max(1) as f64;
        let entries = cells.iter().zip(demands).map(|(cell, demand)| Entry {
            tenant: cell.tenant,
            node: cell.node,
            share: cell.share as i64,
            demand: *demand as i64,
        });
        let mut shares = Shares::new(entries.collect());
        let mut sum = Exchanged {
            worst_before: shares.worst(),
            ..Exchanged::default()
        };
        for _ in 0..ITERATIONS_MAX {
            let done = shares.exchange((mean * self.options.epsilon) as i64);
            sum.cycles += done.cycles;
            sum.moved += done.moved;
            if done.cycles == 0 {
                break;
            }
        }
        sum.worst_after = shares.worst();
        for entry in shares.entries() {
            let share = entry.share as f64;
            if let Some(state) = self.local.get_mut(&(entry.tenant, entry.node)) {
                state.share = share;
            }
            decided.shares.push(Local {
                tenant: entry.tenant,
                node: entry.node,
                share,
            });
        }
        sum
    }
}

/// How far the most used node is above the mean, as a part of it.
fn imbalance(nodes: &[Node], partitions: &[Partition]) -> f64 {
    let mut used = vec![0.0; nodes.len()];
    for partition in partitions {
        for node in &partition.nodes {
            used[*node as usize] += partition.demand as f64;
        }
    }
    let whole: f64 = nodes.iter().map(|node| node.capacity as f64).sum();
    let mean = used.iter().sum::<f64>() / whole.max(1.0);
    let uses = used.iter().zip(nodes).filter(|(_, node)| node.capacity > 0);
    let most = uses
        .map(|(used, node)| used / node.capacity as f64)
        .fold(0.0, f64::max);
    if mean > 0.0 {
        most / mean - 1.0
    } else {
        0.0
    }
}
