//! Rates and weights of tenants, which all fronts before one cluster keep together: each tells the
//! others what a tenant used here and what it claims, and keeps to a portion.

mod line;
#[cfg(test)]
mod tests;
mod waited;

use std::collections::{BTreeMap, BTreeSet};

use front::Value;
use policy::portion::{Divided, Portion, Portions, Told};
use policy::slo::{asked, Served};
use policy::{Nanos, PrincipalId, Promise};
use telemetry::Usage;

use super::attained::Which;
use crate::slo::{Elsewhere, Reading, RESERVED};
pub use line::weights_told;
use line::Line;
use waited::Waited;

/// A tenant as it is now.
pub struct Seen {
    /// Its name.
    pub tenant: String,
    /// What cores call it.
    pub principal: PrincipalId,
    /// What it is promised and held to at all fronts together.
    pub promise: Promise,
    /// Contracts and throughputs of its promises, and what is reserved for it.
    pub contracts: Vec<ContractSeen>,
    /// What it has used here since the start.
    pub usage: Usage,
    /// For how long something of it has waited before nodes of the engine since the start, ns.
    pub held_ns: Nanos,
    /// It has connections here.
    pub connected: bool,
}

/// The contract of a promise of latency or throughput, or that throughput, as it is now.
pub struct ContractSeen {
    /// What it is called among those of its tenant, without a space.
    pub name: String,
    /// Of all fronts together, requests/s.
    pub per_s: f64,
    /// What was asked of it here since the start.
    pub asked: AskedOf,
}

/// What was asked of a contract.
pub enum AskedOf {
    /// So many requests were offered, answered or not.
    Offered(u64),
    /// Of a throughput nobody knows what is wanted, but what was served of it, and how long the one
    /// request has waited that waits longest, ns.
    Served(Served, Nanos),
}

/// What a tenant has at this front of what all fronts keep together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Kept {
    /// Of its rates and its weight.
    pub portions: Portions,
    /// The part of each contract, by what it is called.
    pub contracts: BTreeMap<String, f64>,
}

/// Those who are told what tenants have.
pub trait House: Send {
    /// All tenants, as they are now.
    fn tenants(&self) -> Vec<Seen>;
    /// A tenant has so much here, as it may have had before.
    fn keep(&self, tenant: &str, kept: &Kept);
    /// All promises of latency and throughput, and what became of them here since the start.
    fn promises(&self) -> Vec<(Which, Reading)>;
    /// There are so many fronts, and that is what the others tell of promises.
    fn attained(&self, fronts: usize, elsewhere: BTreeMap<Which, Elsewhere>);
    /// How well promises are kept at all fronts, a line each.
    fn kept(&self) -> String;
    /// Whether some tenant reads from replicas.
    fn reads_replicas(&self) -> bool;

    /// Whether some tenant may run scripts.
    fn runs_scripts(&self) -> bool;
    /// The engine may have other commands, or be in other places, or fronts be the homes of other
    /// things.
    fn changed(&self);
}

/// Of who has no connection here and of whom no more than this is remembered anywhere, of what was
/// served, nothing is told.
const QUIET: f64 = 0.5;

/// What is divided of tenants.
#[derive(Default)]
pub struct Rates {
    tenants: BTreeMap<String, Tenant>,
    /// Of these nothing is divided any more, and they have not heard of it.
    gone: Vec<String>,
    /// These are served elsewhere.
    elsewhere: BTreeSet<String>,
    at: Nanos,
    fronts: usize,
    /// Weights are not divided: each front goes by all of them.
    whole_weights: bool,
}

struct Tenant {
    usage: Usage,
    /// For how long it had waited for what its rates allow, and for nodes.
    waited: [Waited; 2],
    parts: [Portion; PARTS.len()],
    contracts: BTreeMap<String, Contract>,
}

/// The part of a contract that this front keeps to.
struct Contract {
    portion: Portion,
    /// What was offered or served when it last told.
    before: Served,
}

/// What is divided of a tenant: its limits, what it was promised, its weight.
const PARTS: [Divided; 3] = [Divided::Rate, Divided::Rate, Divided::Weight];
const WEIGHT: usize = 2;

impl Rates {
    /// Those of one of several fronts, which also divide weights or do not.
    pub fn new(divide_weights: bool) -> Self {
        Self {
            whole_weights: !divide_weights,
            ..Self::default()
        }
    }

    /// Whether a round has passed since it last told: what was used fades with rounds, and fronts
    /// meet in between, too, as often as something is not where it was. Who has told nothing yet
    /// does so at once: it has all of each rate until then.
    pub fn is_due(&self, now: Nanos) -> bool {
        let round_ns = super::lookout::ROUND_EVERY.as_nanos() as Nanos;
        self.fronts == 0 || now.saturating_sub(self.at) >= round_ns
    }

    /// What to tell the other fronts, of which there are `fronts` with this one.
    pub fn tell(&mut self, seen: &[Seen], fronts: usize, now: Nanos) -> String {
        let elapsed_s = now.saturating_sub(self.at) as f64 / 1e9;
        (self.at, self.fronts) = (now, fronts);
        let divided = seen.iter().filter(|seen| self.divides(seen));
        let divided: BTreeMap<&str, &Seen> =
            divided.map(|seen| (seen.tenant.as_str(), seen)).collect();
        let stays = |name: &str| divided.contains_key(name);
        let gone = self.tenants.keys().filter(|name| !stays(name)).cloned();
        self.gone.extend(gone);
        self.tenants.retain(|name, _| stays(name));
        let mut text = String::new();
        for seen in divided.into_values() {
            let new = || Tenant::new(seen.usage, fronts);
            let tenant = self.tenants.entry(seen.tenant.clone()).or_insert_with(new);
            let told = tenant.tell(seen, fronts, elapsed_s, now);
            text.push_str(&told.text(&seen.tenant));
        }
        text
    }

    /// Hears what the others tell: `entries` has names of fronts and texts by turns, and `there`
    /// knows which of them are there and another than this one.
    pub fn hear(&mut self, entries: &Value, there: impl Fn(&str) -> bool, house: &dyn House) {
        let pairs = entries.items().chunks_exact(2);
        let texts = pairs.filter_map(|pair| there(pair[0].text()?).then(|| pair[1].text())?);
        let mut told: BTreeMap<&str, Vec<Line>> = BTreeMap::new();
        for (tenant, line) in texts.flat_map(str::lines).filter_map(Line::read) {
            told.entry(tenant).or_default().push(line);
        }
        let served = |line: &Line| line.parts[WEIGHT].used > QUIET;
        let elsewhere = told.iter().filter(|(_, lines)| lines.iter().any(served));
        self.elsewhere = elsewhere.map(|(name, _)| (*name).to_owned()).collect();
        for name in self.gone.drain(..) {
            house.keep(&name, &Kept::default());
        }
        for (name, tenant) in &mut self.tenants {
            let others = told.remove(name.as_str()).unwrap_or_default();
            tenant.hear(&others, self.fronts);
            house.keep(name, &tenant.kept(self.whole_weights));
        }
    }

    /// It has heard of nobody for long. Its rates stay as they are, for the others may use the rest
    /// of them. Weights are as configured again: what the others have done with theirs is nothing
    /// to go by, and no harm comes of it.
    pub fn alone(&mut self, house: &dyn House) {
        self.elsewhere.clear();
        for (name, tenant) in &mut self.tenants {
            tenant.parts[WEIGHT] = Portion::new(Divided::Weight, self.fronts);
            house.keep(name, &tenant.kept(self.whole_weights));
        }
    }

    /// Whether something of a tenant is divided: it has rates, or is here, or is served elsewhere.
    fn divides(&self, seen: &Seen) -> bool {
        let known = self.tenants.get(&seen.tenant);
        let served = || known.is_some_and(|tenant| tenant.parts[WEIGHT].used() > QUIET);
        let elsewhere = || self.elsewhere.contains(&seen.tenant);
        let rates = seen.promise.has_rates() || !seen.contracts.is_empty();
        rates || seen.connected || served() || elsewhere()
    }
}

impl Tenant {
    fn new(usage: Usage, fronts: usize) -> Self {
        Tenant {
            usage,
            waited: Default::default(),
            parts: PARTS.map(|divided| Portion::new(divided, fronts)),
            contracts: BTreeMap::new(),
        }
    }

    fn tell(&mut self, seen: &Seen, fronts: usize, elapsed_s: f64, now: Nanos) -> Line {
        let used = seen.usage.since(&self.usage);
        self.usage = seen.usage;
        let requests = used.requests as f64;
        let used = used_of(&seen.promise, &used, elapsed_s);
        let [asked, held] = &mut self.waited;
        let asked = asked.part(seen.usage.occupied_ns, now);
        let held = held.part(seen.held_ns, now);
        // Nothing waits for more of what is promised: beyond it there is the share.
        let waited = [asked, 0.0, asked.max(held)];
        let parts =
            std::array::from_fn(|part| self.parts[part].tell(used[part], requests, waited[part]));
        Line {
            parts,
            contracts: self.tell_contracts(&seen.contracts, fronts, elapsed_s),
        }
    }

    fn tell_contracts(
        &mut self,
        seen: &[ContractSeen],
        fronts: usize,
        elapsed_s: f64,
    ) -> BTreeMap<String, Told> {
        let mut before = std::mem::take(&mut self.contracts);
        let told = seen.iter().map(|seen| {
            let known = before.remove(&seen.name);
            let mut one = known.unwrap_or_else(|| Contract::new(&seen.asked, fronts));
            let told = one.tell(seen, elapsed_s);
            self.contracts.insert(seen.name.clone(), one);
            (seen.name.clone(), told)
        });
        told.collect()
    }

    fn hear(&mut self, others: &[Line], fronts: usize) {
        for (part, portion) in self.parts.iter_mut().enumerate() {
            let others: Vec<Told> = others.iter().map(|line| line.parts[part]).collect();
            portion.keep(&others, fronts);
        }
        for (name, contract) in &mut self.contracts {
            // One that says nothing of it is offered nothing of it, or does not know how to.
            let told = |line: &Line| line.contracts.get(name).copied().unwrap_or_default();
            let others: Vec<Told> = others.iter().map(told).collect();
            contract.portion.keep(&others, fronts);
        }
    }

    fn kept(&self, whole_weight: bool) -> Kept {
        let contract = |(name, one): (&String, &Contract)| (name.clone(), one.portion.part());
        Kept {
            portions: self.portions(whole_weight),
            contracts: self.contracts.iter().map(contract).collect(),
        }
    }

    fn contract_part(&self, name: &str) -> f64 {
        let contract = self.contracts.get(name);
        contract.map_or(1.0, |one| one.portion.part())
    }

    fn portions(&self, whole_weight: bool) -> Portions {
        let [limit, promised, weight] = &self.parts;
        Portions {
            limit: limit.part(),
            promised: promised.part(),
            // Each is a contract of its own.
            reserved: RESERVED.map(|name| self.contract_part(name)),
            weight: match whole_weight {
                true => 1.0,
                false => weight.times_even(),
            },
        }
    }
}

impl AskedOf {
    /// Since the start.
    fn total(&self) -> Served {
        match self {
            AskedOf::Offered(requests) => Served {
                requests: *requests as f64,
                under_way_ns: 0.0,
            },
            AskedOf::Served(served, _) => *served,
        }
    }
}

impl Contract {
    fn new(asked: &AskedOf, fronts: usize) -> Self {
        let divided = match asked {
            AskedOf::Offered(_) => Divided::Rate,
            AskedOf::Served(..) => Divided::Throughput,
        };
        Self {
            portion: Portion::new(divided, fronts),
            before: asked.total(),
        }
    }

    fn tell(&mut self, seen: &ContractSeen, elapsed_s: f64) -> Told {
        let total = seen.asked.total();
        let since = total.since(&self.before);
        self.before = total;
        // A promise that was changed counts from nothing.
        let requests = since.requests.max(0.0);
        let elapsed_ns = elapsed_s * 1e9;
        let wants = match seen.asked {
            // Nothing waits for more of it: beyond it there is the share.
            AskedOf::Offered(_) => 0.0,
            // Of requests that take longer than a round none may be answered in it.
            AskedOf::Served(_, waits_ns) if waits_ns as f64 >= elapsed_ns => 1.0,
            AskedOf::Served(..) => since.under_way(elapsed_ns as Nanos),
        };
        let used = asked(requests as u64, seen.per_s, elapsed_s);
        self.portion.tell(used, requests, wants)
    }
}

/// What was used of a tenant's limits and of what it was promised, each of whichever rate most was
/// used of; and what it was served, requests of 1 KiB. That is remembered, so it is no rate: of an
/// interval of a millisecond one would count as of a thousand.
fn used_of(promise: &Promise, used: &Usage, elapsed_s: f64) -> [f64; PARTS.len()] {
    let bytes = used.bytes_in.saturating_add(used.bytes_out) as f64;
    let requests = used.requests as f64;
    let normalised = requests.max(bytes / 1024.0);
    let part = |used: f64, per_s: Option<f64>| match per_s {
        Some(per_s) if per_s > 0.0 && elapsed_s > 0.0 => used / elapsed_s / per_s,
        _ => 0.0,
    };
    let limit =
        part(requests, promise.limit.requests_per_s).max(part(bytes, promise.limit.bytes_per_s));
    let promised = part(normalised, promise.contract_per_s);
    [limit, promised.min(1.0), normalised]
}
