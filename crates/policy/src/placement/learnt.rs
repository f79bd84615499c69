//! What a controller learnt of rates: what is asked of partitions, and what tenants are served and
//! want at nodes.

use super::plan::Partition;
use super::seen::Seen;
use std::collections::BTreeMap;

/// What is known of a tenant at a node.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Place {
    /// What the tenant is served there, ns/s.
    pub(super) rate: f64,
    /// The part of its demand that is for there.
    pub(super) part: f64,
    /// What is served there as senders count it, ns/s, over the same past as `rate`.
    work: f64,
    /// What it may have there, ns/s, as decided last; 0: nothing was.
    pub(super) share: f64,
}

/// What is known of a partition.
#[derive(Clone, Debug)]
pub(super) struct Rates<const R: usize> {
    asked: f64,
    /// By resource.
    pub(super) uses: [f64; R],
    /// What of that is for the first replica alone.
    pub(super) primary: [f64; R],
    /// By replica.
    served: Vec<(u32, f64)>,
}

impl<const R: usize> Default for Rates<R> {
    fn default() -> Self {
        Rates {
            asked: 0.0,
            uses: [0.0; R],
            primary: [0.0; R],
            served: Vec::new(),
        }
    }
}

impl<const R: usize> Rates<R> {
    /// What a replica serves that was not asked before is taken to be what is expected of it: it is
    /// still being copied, or has been there for a part of a step. What it served then, as its part
    /// of the demand, would be next to nothing: it would have a share of next to nothing, serve no
    /// more than that, and whoever asked it waited.
    fn learn_served(&mut self, nodes: &[u32], served: &[f64], newest: f64) {
        let old = std::mem::take(&mut self.served);
        let known = |node: u32| {
            old.iter()
                .find(|(other, _)| *other == node)
                .map(|(_, rate)| *rate)
        };
        let whole: f64 = served.iter().sum();
        let replicas = nodes.iter().zip(served).zip(self.expected(nodes.len()));
        self.served = replicas
            .filter(|((node, served), _)| **served > 0.0 || known(**node).is_some())
            .map(|((node, served), part)| {
                let before = known(*node).unwrap_or(whole * part);
                (*node, before + (served - before) * newest)
            })
            .collect();
    }

    /// What each of this many replicas serves if those who ask choose evenly.
    fn expected(&self, replicas: usize) -> Vec<f64> {
        let uses: f64 = self.uses.iter().sum();
        let writes = match uses > 0.0 {
            true => self.primary.iter().sum::<f64>() / uses,
            false => 0.0,
        };
        let each = (1.0 - writes) / replicas.max(1) as f64;
        let mut parts = vec![each; replicas];
        if let Some(first) = parts.first_mut() {
            *first += writes;
        }
        parts
    }
}

/// What is known of a tenant.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    /// Requests seen so far.
    pub(super) requests: u64,
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

/// Averages, and who is where.
#[derive(Clone, Debug, Default)]
pub(super) struct Learnt<const R: usize> {
    /// By tenant and node.
    pub(super) local: BTreeMap<(u32, u32), Place>,
    pub(super) rates: Vec<Rates<R>>,
    pub(super) tenants: Vec<Known>,
}

/// Requests for each partition that an average goes back over, if it does not go back over more for
/// the time it takes: 50 tell a partition's part of its tenant's demand to 14 %, and more of them
/// were slower to settle than they were better (128 nodes, 1,000 requests a second for each
/// tenant).
const MEMORY: f64 = 50.0;

impl<const R: usize> Learnt<R> {
    /// Takes in what was seen, with weight `newest` in the averages unless so few requests say
    /// less.
    pub(super) fn learn(&mut self, seen: &Seen<'_, R>, partitions: &[Partition<R>], newest: f64) {
        self.learn_how_much(seen, newest);
        self.rates.resize(partitions.len(), Rates::default());
        let all = self.rates.iter_mut().zip(seen.partitions).zip(partitions);
        for ((rates, asked), partition) in all {
            let part = self.tenants[asked.tenant as usize].newest;
            rates.asked += (asked.rate - rates.asked) * part;
            let known = rates.uses.iter_mut().chain(&mut rates.primary);
            for (known, seen) in known.zip(asked.uses.into_iter().chain(asked.primary)) {
                *known += (seen - *known) * part;
            }
            rates.learn_served(&partition.nodes, &asked.served, newest);
        }
        for place in self.local.values_mut() {
            place.rate *= 1.0 - newest;
            place.work *= 1.0 - newest;
        }
        for served in seen.served {
            let key = (served.tenant, served.node);
            self.local.entry(key).or_default().rate += served.rate * newest;
        }
        for (asked, partition) in seen.partitions.iter().zip(partitions) {
            for (node, served) in partition.nodes.iter().zip(&asked.served) {
                let place = self.local.entry((asked.tenant, *node)).or_default();
                place.work += served * newest;
            }
        }
    }

    /// How many requests each tenant's averages rest on, and so what the newest ones weigh.
    fn learn_how_much(&mut self, seen: &Seen<'_, R>, newest: f64) {
        self.tenants.resize(seen.tenants.len(), Known::default());
        let mut counts = vec![(0, 0.0); seen.tenants.len()];
        for asked in seen.partitions {
            let (requests, partitions) = &mut counts[asked.tenant as usize];
            *requests += asked.requests;
            *partitions += 1.0;
        }
        for (known, (requests, partitions)) in self.tenants.iter_mut().zip(counts) {
            known.requests += requests;
            let (now, all) = (requests as f64, known.requests.max(1) as f64);
            let remembered = (now / (MEMORY * f64::max(partitions, 1.0))).min(newest);
            // While little is known it is a plain mean.
            known.newest = remembered.max(now / all);
        }
    }

    /// Keeps what there is a partition for, knows of new places, and divides each tenant's demand
    /// over them: a partition's part of it as its replicas serve it; where that is not known,
    /// writes to the first and the rest evenly.
    pub(super) fn keep(&mut self, seen: &Seen<'_, R>, partitions: &[Partition<R>]) {
        let old = std::mem::take(&mut self.local);
        let mut asked = vec![0.0; seen.tenants.len()];
        for (rates, seen) in self.rates.iter().zip(seen.partitions) {
            asked[seen.tenant as usize] += rates.asked;
        }
        for ((partition, seen), rates) in partitions.iter().zip(seen.partitions).zip(&self.rates) {
            let whole = asked[seen.tenant as usize];
            let here = |node: &u32| {
                let mut served = rates.served.iter();
                served
                    .find(|(other, _)| other == node)
                    .map(|(_, rate)| *rate)
            };
            let known: Option<Vec<f64>> = partition.nodes.iter().map(here).collect();
            let known = known.filter(|rates| rates.iter().sum::<f64>() > 0.0);
            let served = known.unwrap_or_else(|| rates.expected(partition.nodes.len()));
            let sum: f64 = served.iter().sum();
            for (node, served) in partition.nodes.iter().zip(served) {
                let key = (seen.tenant, *node);
                let place = self.local.entry(key).or_insert_with(|| Place {
                    part: 0.0,
                    ..old.get(&key).copied().unwrap_or_default()
                });
                if whole > 0.0 {
                    place.part += rates.asked / whole * served / sum;
                }
            }
        }
        self.charge_parts(seen.tenants.len());
    }

    /// From parts of what is asked to parts of what will be charged for it: where a tenant writes
    /// as much as it reads, an operation costs it half of what it does where it only reads, for a
    /// node charges for one resource.
    fn charge_parts(&mut self, tenants: usize) {
        let mut charged = vec![(0.0, 0.0); tenants];
        for ((tenant, _), place) in &self.local {
            if place.work > 0.0 {
                let (rate, work) = &mut charged[*tenant as usize];
                *rate += place.rate;
                *work += place.work;
            }
        }
        let mut sums = vec![(0.0, 0.0); tenants];
        for ((tenant, _), place) in &mut self.local {
            let (rate, work) = charged[*tenant as usize];
            let (before, after) = &mut sums[*tenant as usize];
            *before += place.part;
            // Where nothing was served yet, it is taken to be charged as elsewhere.
            if place.work > 0.0 {
                place.part *= place.rate / place.work;
            } else if work > 0.0 {
                place.part *= rate / work;
            }
            *after += place.part;
        }
        for ((tenant, _), place) in &mut self.local {
            let (before, after) = sums[*tenant as usize];
            if after > 0.0 {
                place.part *= before / after;
            }
        }
    }

    /// What each tenant is served at all nodes, ns/s.
    pub(super) fn rates_in_all(&self, tenants: usize) -> Vec<f64> {
        let mut rates = vec![0.0; tenants];
        for ((tenant, _), place) in &self.local {
            rates[*tenant as usize] += place.rate;
        }
        rates
    }
}
