//! The controller's step: from what nodes saw, where partitions go and what each tenant may have
//! where.
//!
//! Pisces algorithms 1 and 2 in one place (thesis 4.3.1, 4.3.2). Rates are in nanoseconds of a
//! node's time a second, as dispatches charge them, so they compare over resources. Two departures
//! from the paper:
//!
//! * shares of the whole are weighted max-min over what tenants ask ([`fair_shares`]), so what one
//!   leaves is shared system-wide and not by the accident of where its neighbours are (Pisces 4.1
//!   leaves it to local weights);
//! * local shares begin, and begin again whenever shares or nodes change, as the matrix that has
//!   the right sum for each tenant and each node; exchange keeps both sums, so it could never mend
//!   them.

use super::entry::Entry;
use super::fair::{fair_shares, fit, Cell, Claim};
use super::lag::Lags;
use super::learnt::{Learnt, Rates};
use super::placer::{Looked, Placer, PlacerOptions};
use super::plan::{fair_demand, Node, Partition, Planned};
use super::seen::Seen;
use super::spread::Spreads;
use super::weights::{Exchanged, Shares};
use crate::Nanos;

/// How a controller decides.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ControlOptions {
    /// Whether it places partitions. Those without a node are placed in any case.
    pub places: bool,
    /// Whether it gives tenants other weights at nodes.
    pub weighs: bool,
    /// When partitions move.
    pub placer: PlacerOptions,
    /// Weight of the newest rates in the averages, above 0, at most 1.
    pub newest: f64,
    /// Exchanges below this part of a mean local share are not worth it (Pisces' epsilon).
    pub epsilon: f64,
}

impl Default for ControlOptions {
    /// Everything on: moves that cost nothing, a third, a thousandth.
    fn default() -> Self {
        ControlOptions {
            places: true,
            weighs: true,
            placer: PlacerOptions::default(),
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

/// The controller of nodes with `R` resources.
#[derive(Clone, Debug)]
pub struct Control<const R: usize> {
    options: ControlOptions,
    learnt: Learnt<R>,
    placer: Placer,
    /// When it last looked where partitions are.
    placed_at: Nanos,
    lags: Lags,
    spreads: Spreads,
}

/// Iterations of exchange in a step: more than convergence takes (`pisces-plan`).
const ITERATIONS_MAX: u32 = 20;
/// What is left of a node for those who want more, whatever the others used there.
const LEFT_MIN: f64 = 0.02;

/// What a node can charge: it charges a tenant for one resource, so the most that it has of any.
fn charged<const R: usize>(node: &Node<R>) -> f64 {
    if node.is_able() {
        node.capacity.into_iter().max().unwrap_or(0) as f64
    } else {
        0.0
    }
}

fn whole<const R: usize>(nodes: &[Node<R>]) -> f64 {
    nodes.iter().map(charged).sum()
}

/// Reads go to all replicas, writes to the first (Pisces 4.3.3 chooses among replicas for reads).
fn divide<const R: usize>(demand: [u64; R], rates: &Rates<R>, partition: &mut Partition<R>) {
    for (resource, whole) in demand.into_iter().enumerate() {
        let (uses, primary) = (rates.uses[resource], rates.primary[resource]);
        let writes = if uses > 0.0 { primary / uses } else { 0.0 };
        let written = (whole as f64 * writes.clamp(0.0, 1.0)) as u64;
        partition.primary[resource] = written;
        partition.demand[resource] = (whole - written) / partition.replicas.max(1) as u64;
    }
}

impl<const R: usize> Control<R> {
    /// A controller that has seen nothing.
    #[must_use]
    pub fn new(options: ControlOptions) -> Self {
        Control {
            options,
            learnt: Learnt::default(),
            placer: Placer::new(options.placer),
            placed_at: 0,
            lags: Lags::default(),
            spreads: Spreads::default(),
        }
    }

    /// Looks at what was seen, places partitions, and says what each tenant may have where.
    pub fn step(&mut self, seen: &Seen<'_, R>, partitions: &mut [Partition<R>]) -> Decided {
        self.learnt.learn(seen, partitions, self.options.newest);
        let served = seen.served_in_all();
        self.spreads
            .learn(seen.tenants, &served, self.options.newest);
        let planned = self.place(seen, partitions);
        let mut decided = Decided {
            planned,
            ..Decided::default()
        };
        self.learnt.keep(seen, partitions);
        if self.options.weighs {
            self.weigh(seen, &served, &mut decided);
        }
        decided
    }

    /// Partitions' demands follow entitled shares and measured rates; moves where something is
    /// missing or uneven.
    fn place(&mut self, seen: &Seen<'_, R>, partitions: &mut [Partition<R>]) -> Option<Planned> {
        // Dominant shares of the whole: what charges come to is what the places make of them.
        let claims = seen.tenants.iter().map(|tenant| Claim {
            weight: tenant.weight,
            reserved: tenant.reserved,
            asks: None,
        });
        let (_, entitled) = fair_shares(whole(seen.nodes), &claims.collect::<Vec<_>>());
        let mut rest = partitions.iter_mut();
        let rates = self.learnt.rates.iter().zip(seen.partitions);
        for of_tenant in rates
            .collect::<Vec<_>>()
            .chunk_by(|a, b| a.1.tenant == b.1.tenant)
        {
            let uses: Vec<[u64; R]> = of_tenant
                .iter()
                .map(|(rates, _)| rates.uses.map(|rate| rate as u64))
                .collect();
            let share = entitled[of_tenant[0].1.tenant as usize];
            let demands = fair_demand(share as u64, &uses);
            let of_tenant = of_tenant.iter().map(|(rates, _)| *rates);
            for ((demand, rates), partition) in demands.iter().zip(of_tenant).zip(&mut rest) {
                divide(*demand, rates, partition);
            }
        }
        let seen_s = seen.now.saturating_sub(self.placed_at) as f64 / 1e9;
        self.placed_at = seen.now;
        let looked = Looked {
            now: seen.now,
            seen_s,
            nodes: seen.nodes,
            bytes: seen.bytes,
            stays: &[],
            busy: seen.busy,
        };
        self.placer.step(&looked, partitions, self.options.places)
    }

    /// What each tenant may have of the whole, counted in charges.
    fn rows(&mut self, seen: &Seen<'_, R>, served: &[f64], decided: &mut Decided) -> Vec<f64> {
        let rates = self.learnt.rates_in_all(seen.tenants.len());
        let claims = (0..).zip(seen.tenants).map(|(number, tenant)| Claim {
            weight: self.spreads.weight(number, tenant),
            reserved: tenant.reserved,
            asks: (!tenant.wants_more).then_some(rates[number]),
        });
        let (level, mut rows) = fair_shares(whole(seen.nodes), &claims.collect::<Vec<_>>());
        decided.level = level;
        self.lags.correct(&mut rows, seen.tenants, served);
        rows
    }

    /// Fits local shares to what each tenant may have, and moves them to where they are wanted.
    fn weigh(&mut self, seen: &Seen<'_, R>, served: &[f64], decided: &mut Decided) {
        let rows = self.rows(seen, served, decided);
        if seen.tenants.iter().all(|tenant| !tenant.wants_more) {
            return;
        }
        let mut places = vec![0u32; seen.tenants.len()];
        for (tenant, _) in self.learnt.local.keys() {
            places[*tenant as usize] += 1;
        }
        let mut columns: Vec<f64> = seen.nodes.iter().map(charged).collect();
        let (mut cells, mut demands) = (Vec::new(), Vec::new());
        for (&(tenant, node), place) in &self.learnt.local {
            let (row, alike) = (
                rows[tenant as usize],
                1.0 / f64::from(places[tenant as usize]),
            );
            let part = match self.learnt.tenants[tenant as usize].requests {
                0 => alike,
                _ => place.part,
            };
            if seen.tenants[tenant as usize].wants_more {
                let share = if place.share > 0.0 {
                    place.share
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
                let capacity = charged(&seen.nodes[node as usize]);
                let left = &mut columns[node as usize];
                *left = (*left - place.rate).max(capacity * LEFT_MIN);
                // Until it wants more its demand says little: its share there is what it would be
                // entitled to.
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
            let capacity = charged(&seen.nodes[local.node as usize]);
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
            if let Some(place) = self.learnt.local.get_mut(&(entry.tenant, entry.node)) {
                place.share = share;
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
