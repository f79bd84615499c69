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
use super::lag::Lags;
use super::plan::{fair_demand, imbalance, plan, Partition, Planned};
use super::seen::Seen;
use super::spread::Spreads;
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
    /// Everything on: 5 % imbalance, any number of moves, a third, a thousandth.
    fn default() -> Self {
        ControlOptions {
            places: true,
            weighs: true,
            imbalance_max: 0.05,
            moves_max: usize::MAX,
            newest: 1.0 / 3.0,
            epsilon: 0.001,
        }
    }
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
    /// What the tenant is served there, ns/s.
    rate: f64,
    /// The part of its demand that is for there.
    part: f64,
    /// What is served there as senders count it, ns/s, over the same past as `rate`.
    work: f64,
    share: f64,
}

/// What the controller knows of a partition.
#[derive(Clone, Debug, Default)]
struct Rates {
    asked: f64,
    /// By replica.
    served: Vec<(u32, f64)>,
}

/// The controller.
#[derive(Clone, Debug)]
pub struct Control {
    options: ControlOptions,
    local: BTreeMap<(u32, u32), State>,
    rates: Vec<Rates>,
    tenants: Vec<Known>,
    lags: Lags,
    spreads: Spreads,
}

/// What the controller knows of a tenant.
#[derive(Clone, Copy, Debug)]
struct Known {
    /// Requests seen so far.
    requests: u64,
    /// Weight of the newest rates in its averages.
    newest: f64,
}

impl Default for Known {
    fn default() -> Self {
        Known {
            requests: 0,
            newest: 1.0,
        }
    }
}

/// Iterations of exchange in a step: more than convergence takes (`pisces-plan`).
const ITERATIONS_MAX: u32 = 20;
/// What is left of a node for those who want more, whatever the others used there.
const LEFT_MIN: f64 = 0.02;
/// Requests for each partition that an average goes back over, if it does not go back over more for the time it
/// takes: 50 tell a partition's part of its tenant's demand to 14 %, and more of them were slower to settle than they were
/// better (128 nodes, 1,000 requests a second for each tenant).
const MEMORY: f64 = 50.0;

impl Control {
    /// A controller that has seen nothing.
    #[must_use]
    pub fn new(options: ControlOptions) -> Self {
        Control {
            options,
            local: BTreeMap::new(),
            rates: Vec::new(),
            tenants: Vec::new(),
            lags: Lags::default(),
            spreads: Spreads::default(),
        }
    }

    /// Looks at what was seen, places partitions, and says what each tenant may have where.
    pub fn step(&mut self, seen: &Seen<'_>, partitions: &mut [Partition]) -> Decided {
        self.learn(seen, partitions);
        let served = seen.served_in_all();
        self.spreads
            .learn(seen.tenants, &served, self.options.newest);
        let planned = self.place(seen, partitions);
        let mut decided = Decided {
            planned,
            ..Decided::default()
        };
        self.keep(seen, partitions);
        if self.options.weighs {
            self.weigh(seen, &served, &mut decided);
        }
        decided
    }

    fn learn(&mut self, seen: &Seen<'_>, partitions: &[Partition]) {
        self.tenants.resize(seen.tenants.len(), Known::default());
        let mut counts = vec![(0, 0.0); seen.tenants.len()];
        for asked in seen.partitions {
            let (requests, partitions) = &mut counts[asked.tenant as usize];
            *requests += asked.requests;
            *partitions += 1.0;
        }
        for (known, (requests, partitions)) in self.tenants.iter_mut().zip(counts) {
            known.requests += requests;
            let (newest, all) = (requests as f64, known.requests.max(1) as f64);
            let remembered =
                (newest / (MEMORY * f64::max(partitions, 1.0))).min(self.options.newest);
            // While little is known it is a plain mean.
            known.newest = remembered.max(newest / all);
        }
        self.rates.resize(partitions.len(), Rates::default());
        let all = self.rates.iter_mut().zip(seen.partitions).zip(partitions);
        for ((rates, asked), partition) in all {
            let newest = self.tenants[asked.tenant as usize].newest;
            rates.asked += (asked.rate - rates.asked) * newest;
            let old = std::mem::take(&mut rates.served);
            let replicas = partition.nodes.iter().zip(&asked.served);
            rates.served = replicas
                .map(|(node, served)| {
                    let old = old.iter().find(|(other, _)| other == node);
                    let rate = old.map_or(*served, |(_, old)| {
                        old + (served - old) * self.options.newest
                    });
                    (*node, rate)
                })
                .collect();
        }
        for state in self.local.values_mut() {
            state.rate *= 1.0 - self.options.newest;
            state.work *= 1.0 - self.options.newest;
        }
        for served in seen.served {
            let key = (served.tenant, served.node);
            self.local.entry(key).or_default().rate += served.rate * self.options.newest;
        }
        for (asked, partition) in seen.partitions.iter().zip(partitions) {
            for (node, served) in partition.nodes.iter().zip(&asked.served) {
                let state = self.local.entry((asked.tenant, *node)).or_default();
                state.work += served * self.options.newest;
            }
        }
    }

    /// Partitions' demands follow entitled shares and measured rates; moves where something is missing or uneven.
    fn place(&self, seen: &Seen<'_>, partitions: &mut [Partition]) -> Option<Planned> {
        let whole: f64 = seen.nodes.iter().map(|node| node.capacity as f64).sum();
        let claims = (0..).zip(seen.tenants).map(|(number, tenant)| Claim {
            weight: self.spreads.weight(number, tenant),
            reserved: tenant.reserved,
            asks: None,
        });
        let (_, entitled) = fair_shares(whole, &claims.collect::<Vec<_>>());
        let mut from = 0;
        while from < partitions.len() {
            let tenant = seen.partitions[from].tenant;
            let mut until = from;
            while until < partitions.len() && seen.partitions[until].tenant == tenant {
                until += 1;
            }
            let rates: Vec<u64> = self.rates[from..until]
                .iter()
                .map(|r| r.asked as u64)
                .collect();
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

    /// Keeps what there is a partition for, knows of new places, and divides each tenant's demand over them: a
    /// partition's part of it as its replicas serve it, evenly where that is not known.
    fn keep(&mut self, seen: &Seen<'_>, partitions: &[Partition]) {
        let old = std::mem::take(&mut self.local);
        let mut asked = vec![0.0; seen.tenants.len()];
        for (rates, seen) in self.rates.iter().zip(seen.partitions) {
            asked[seen.tenant as usize] += rates.asked;
        }
        for ((partition, seen), rates) in partitions.iter().zip(seen.partitions).zip(&self.rates) {
            let whole = asked[seen.tenant as usize];
            let here = |node: &u32| {
                rates
                    .served
                    .iter()
                    .find(|(other, _)| other == node)
                    .map(|(_, rate)| *rate)
            };
            let known: Option<Vec<f64>> = partition.nodes.iter().map(here).collect();
            let known = known.filter(|rates| rates.iter().sum::<f64>() > 0.0);
            let alike = vec![1.0; partition.nodes.len()];
            let served = known.unwrap_or(alike);
            let sum: f64 = served.iter().sum();
            for (node, served) in partition.nodes.iter().zip(served) {
                let key = (seen.tenant, *node);
                let state = self.local.entry(key).or_insert_with(|| State {
                    part: 0.0,
                    ..old.get(&key).copied().unwrap_or_default()
                });
                if whole > 0.0 {
                    state.part += rates.asked / whole * served / sum;
                }
            }
        }
        self.charge_parts(seen.tenants.len());
    }

    /// From parts of what is asked to parts of what will be charged for it: where a tenant writes as much as it reads, an
    /// operation costs it half of what it does where it only reads, for a node charges for one resource.
    fn charge_parts(&mut self, tenants: usize) {
        let mut charged = vec![(0.0, 0.0); tenants];
        for ((tenant, _), state) in &self.local {
            if state.work > 0.0 {
                let (rate, work) = &mut charged[*tenant as usize];
                *rate += state.rate;
                *work += state.work;
            }
        }
        let mut sums = vec![(0.0, 0.0); tenants];
        for ((tenant, _), state) in &mut self.local {
            let (rate, work) = charged[*tenant as usize];
            let (before, after) = &mut sums[*tenant as usize];
            *before += state.part;
            // Where nothing was served yet, it is taken to be charged as elsewhere.
            if state.work > 0.0 {
                state.part *= state.rate / state.work;
            } else if work > 0.0 {
                state.part *= rate / work;
            }
            *after += state.part;
        }
        for ((tenant, _), state) in &mut self.local {
            let (before, after) = sums[*tenant as usize];
            if after > 0.0 {
                state.part *= before / after;
            }
        }
    }

    /// What each tenant may have of the whole, counted in charges.
    fn rows(&mut self, seen: &Seen<'_>, served: &[f64], decided: &mut Decided) -> Vec<f64> {
        let mut rates = vec![0.0; seen.tenants.len()];
        for ((tenant, _), state) in &self.local {
            rates[*tenant as usize] += state.rate;
        }
        let claims = (0..).zip(seen.tenants).map(|(number, tenant)| Claim {
            weight: self.spreads.weight(number, tenant),
            reserved: tenant.reserved,
            asks: (!tenant.wants_more).then_some(rates[number]),
        });
        let whole: f64 = seen.nodes.iter().map(|node| node.capacity as f64).sum();
        let (level, mut rows) = fair_shares(whole, &claims.collect::<Vec<_>>());
        decided.level = level;
        self.lags.correct(&mut rows, seen.tenants, served);
        rows
    }

    /// Fits local shares to what each tenant may have, and moves them to where they are wanted.
    fn weigh(&mut self, seen: &Seen<'_>, served: &[f64], decided: &mut Decided) {
        let rows = self.rows(seen, served, decided);
        if seen.tenants.iter().all(|tenant| !tenant.wants_more) {
            return;
        }
        let mut places = vec![0u32; seen.tenants.len()];
        for (tenant, _) in self.local.keys() {
            places[*tenant as usize] += 1;
        }
        let mut columns: Vec<f64> = seen.nodes.iter().map(|node| node.capacity as f64).collect();
        let (mut cells, mut demands) = (Vec::new(), Vec::new());
        for (&(tenant, node), state) in &self.local {
            let (row, alike) = (
                rows[tenant as usize],
                1.0 / f64::from(places[tenant as usize]),
            );
            let part = match self.tenants[tenant as usize].requests {
                0 => alike,
                _ => state.part,
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
                let tenant_seen = &seen.tenants[tenant as usize];
                let weight = self.spreads.weight(tenant as usize, tenant_seen);
                let share = weight * decided.level * f64::midpoint(part, alike);
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
