//! Rates and weights of tenants, which all fronts before one cluster keep together: each tells the
//! others what a tenant used here and what it claims, and keeps to a portion.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::str::FromStr;

use front::Value;
use policy::portion::{Divided, Portion, Portions, Told};
use policy::{Nanos, PrincipalId, Promise};
use telemetry::Usage;

/// A tenant as it is now.
pub struct Seen {
    /// Its name.
    pub tenant: String,
    /// What cores call it.
    pub principal: PrincipalId,
    /// What it is promised and held to at all fronts together.
    pub promise: Promise,
    /// What it has used here since the start.
    pub usage: Usage,
    /// For how long something of it has waited before nodes of the engine since the start, ns.
    pub held_ns: Nanos,
    /// It has connections here.
    pub connected: bool,
}

/// Those who are told what tenants have.
pub trait House: Send {
    /// All tenants, as they are now.
    fn tenants(&self) -> Vec<Seen>;
    /// A tenant has these portions here, as it may have had before.
    fn keep(&self, tenant: &str, portions: Portions);
    /// Whether some tenant reads from replicas.
    fn reads_replicas(&self) -> bool;

    /// Whether some tenant may run scripts.
    fn runs_scripts(&self) -> bool;
    /// The engine may have other commands, or be in other places, or fronts be the homes of other
    /// things.
    fn changed(&self);
}

/// Cores say once a second for how long something of a tenant has waited.
const WAITED_OVER_NS: Nanos = 1_100_000_000;

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
}

/// What is divided of a tenant: its limits, what it was promised, its weight.
const PARTS: [Divided; 3] = [Divided::Rate, Divided::Rate, Divided::Weight];
const WEIGHT: usize = 2;

/// What one front tells of one tenant.
type Line = [Told; PARTS.len()];

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
            let told = tenant.tell(seen, elapsed_s, now);
            text.push_str(&line(&seen.tenant, &told));
        }
        text
    }

    /// Hears what the others tell: `entries` has names of fronts and texts by turns, and `there`
    /// knows which of them are there and another than this one.
    pub fn hear(&mut self, entries: &Value, there: impl Fn(&str) -> bool, house: &dyn House) {
        let pairs = entries.items().chunks_exact(2);
        let texts = pairs.filter_map(|pair| there(pair[0].text()?).then(|| pair[1].text())?);
        let mut told: BTreeMap<&str, Vec<Line>> = BTreeMap::new();
        for (tenant, line) in texts.flat_map(str::lines).filter_map(read) {
            told.entry(tenant).or_default().push(line);
        }
        let served = |line: &Line| line[WEIGHT].used > QUIET;
        let elsewhere = told.iter().filter(|(_, lines)| lines.iter().any(served));
        self.elsewhere = elsewhere.map(|(name, _)| (*name).to_owned()).collect();
        for name in self.gone.drain(..) {
            house.keep(&name, Portions::default());
        }
        for (name, tenant) in &mut self.tenants {
            let others = told.remove(name.as_str()).unwrap_or_default();
            for (part, portion) in tenant.parts.iter_mut().enumerate() {
                let others: Vec<Told> = others.iter().map(|line| line[part]).collect();
                portion.keep(&others, self.fronts);
            }
            house.keep(name, tenant.portions(self.whole_weights));
        }
    }

    /// It has heard of nobody for long. Its rates stay as they are, for the others may use the rest
    /// of them. Weights are as configured again: what the others have done with theirs is nothing
    /// to go by, and no harm comes of it.
    pub fn alone(&mut self, house: &dyn House) {
        self.elsewhere.clear();
        for (name, tenant) in &mut self.tenants {
            tenant.parts[WEIGHT] = Portion::new(Divided::Weight, self.fronts);
            house.keep(name, tenant.portions(self.whole_weights));
        }
    }

    /// Whether something of a tenant is divided: it has rates, or is here, or is served elsewhere.
    fn divides(&self, seen: &Seen) -> bool {
        let known = self.tenants.get(&seen.tenant);
        let served = || known.is_some_and(|tenant| tenant.parts[WEIGHT].used() > QUIET);
        let elsewhere = || self.elsewhere.contains(&seen.tenant);
        seen.promise.has_rates() || seen.connected || served() || elsewhere()
    }
}

impl Tenant {
    fn new(usage: Usage, fronts: usize) -> Self {
        Tenant {
            usage,
            waited: Default::default(),
            parts: PARTS.map(|divided| Portion::new(divided, fronts)),
        }
    }

    fn tell(&mut self, seen: &Seen, elapsed_s: f64, now: Nanos) -> Line {
        let used = seen.usage.since(&self.usage);
        self.usage = seen.usage;
        let requests = used.requests as f64;
        let used = used_of(&seen.promise, &used, elapsed_s);
        let [asked, held] = &mut self.waited;
        let asked = asked.part(seen.usage.occupied_ns, now);
        let held = held.part(seen.held_ns, now);
        // Nothing waits for more of what is promised: beyond it there is the share.
        let waited = [asked, 0.0, asked.max(held)];
        std::array::from_fn(|part| self.parts[part].tell(used[part], requests, waited[part]))
    }

    fn portions(&self, whole_weight: bool) -> Portions {
        let [limit, promised, weight] = &self.parts;
        Portions {
            limit: limit.part(),
            promised: promised.part(),
            weight: match whole_weight {
                true => 1.0,
                false => weight.times_even(),
            },
        }
    }
}

/// For how long something had waited, and by when, the oldest first.
#[derive(Default)]
struct Waited(VecDeque<(Nanos, Nanos)>);

impl Waited {
    /// The part of the last time for which something waited, where that was `waited_ns` since the
    /// start.
    fn part(&mut self, waited_ns: Nanos, now: Nanos) -> f64 {
        self.0.push_back((now, waited_ns));
        let long_ago = |at: Nanos| now.saturating_sub(at) >= WAITED_OVER_NS;
        while self.0.get(1).is_some_and(|(at, _)| long_ago(*at)) {
            self.0.pop_front();
        }
        let (at, before) = self.0[0];
        match now.saturating_sub(at) {
            0 => 0.0,
            passed => waited_ns.saturating_sub(before) as f64 / passed as f64,
        }
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
    let promised = part(normalised, Some(promise.requests_per_s()))
        .max(part(normalised, promise.contract_per_s));
    [limit, promised.min(1.0), normalised]
}

/// No tenant's name has a space.
fn line(tenant: &str, line: &Line) -> String {
    let of = |told: &Told| {
        let more = u8::from(told.more);
        format!(
            " {:.6} {more} {:.6} {} {:.3}",
            told.used, told.claim, told.requests, told.remembered
        )
    };
    let parts: String = line.iter().map(of).collect();
    format!("{tenant}{parts}\n")
}

fn read(line: &str) -> Option<(&str, Line)> {
    let mut words = line.split(' ');
    let tenant = words.next()?;
    let mut told = Line::default();
    for part in &mut told {
        let mut number = || f64::from_str(words.next()?).ok().filter(|n| n.is_finite());
        let (used, more, claim) = (number()?, number()?, number()?);
        let (requests, remembered) = (number()?, number()?);
        *part = Told {
            used: used.max(0.0),
            more: more > 0.0,
            claim: claim.clamp(0.0, 1.0),
            requests: requests.max(0.0),
            remembered: remembered.max(0.0),
        };
    }
    Some((tenant, told))
}

#[cfg(test)]
mod tests {
    use super::*;
    use parking_lot::Mutex;

    #[derive(Default)]
    struct Kept(Mutex<BTreeMap<String, Portions>>);

    impl House for Kept {
        fn tenants(&self) -> Vec<Seen> {
            Vec::new()
        }

        fn keep(&self, tenant: &str, portions: Portions) {
            self.0.lock().insert(tenant.to_owned(), portions);
        }

        fn reads_replicas(&self) -> bool {
            false
        }

        fn runs_scripts(&self) -> bool {
            false
        }

        fn changed(&self) {}
    }

    fn seen(requests: u64, occupied_ns: u64) -> Seen {
        let mut promise = Promise::share(1.0);
        promise.limit.requests_per_s = Some(1_000.0);
        promise.contract_per_s = Some(100.0);
        Seen {
            tenant: "web".into(),
            principal: PrincipalId(0),
            promise,
            usage: Usage {
                requests,
                occupied_ns,
                ..Usage::default()
            },
            held_ns: 0,
            connected: false,
        }
    }

    fn entries(told: &[(&str, &str)]) -> Value {
        let words = told.iter().flat_map(|(front, text)| [*front, *text]);
        let text = |word: &str| Value::Text(word.as_bytes().to_vec());
        Value::List(words.map(text).collect())
    }

    #[test]
    fn what_is_told_is_read() {
        let told = |used, more, claim, requests| Told {
            used,
            more,
            claim,
            requests,
            remembered: requests * 1.5,
        };
        let one = [
            told(0.25, true, 0.5, 0.0),
            told(1.5, false, 0.0, 12.0),
            told(2_000.0, true, 1.0, 2_000.0),
        ];
        assert_eq!(read(line("web", &one).trim_end()), Some(("web", one)));
        for bad in [
            "",
            "web",
            "web 1 2",
            "web 1 0 nan 1 1 1 0 1 1 1 1 0 1 1 1",
            "web 1 0 1 1 1 1 0 1 1 1",
        ] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_round_is_due_at_once_and_then_after_a_while() {
        let mut rates = Rates::default();
        assert!(rates.is_due(1_000));
        rates.tell(&[], 2, 1_000);
        assert!(!rates.is_due(200_000_000) && rates.is_due(250_001_000));
    }

    #[test]
    fn a_limit_goes_where_it_is_used_and_a_contract_where_it_is_asked_for() {
        let (mut rates, house) = (Rates::default(), Kept::default());
        let other = |front: &str| front == "b";
        // This front has 500 requests a second and more would come; the other has none.
        let idle = "web 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n";
        for second in 1..=4 {
            let seen = [seen(500 * second, 1_000_000_000 * second)];
            let mine = rates.tell(&seen, 2, 1_000_000_000 * second);
            let all = entries(&[
                ("a", &mine),
                ("b", idle),
                ("gone", "web 9 1 1 9 9 9 1 1 9 9 9 1 1 9 9\n"),
            ]);
            rates.hear(&all, other, &house);
        }
        let kept = house.0.lock()["web"];
        assert!(kept.limit > 0.98 && kept.promised > 0.98, "{kept:?}");
        // The other is given up to as soon as it says so, and has been given nothing before.
        let wants = "web 0.005 1 0.005 9 9 0.5 0 0.5 9 9 0 0 0 9 9\n";
        rates.hear(&entries(&[("b", wants)]), other, &house);
        let kept = house.0.lock()["web"];
        assert!(kept.limit < 0.51 && kept.promised < 0.51, "{kept:?}");
    }

    /// A tenant that is served as much here as at `b`, and waits there.
    fn shared(rates: &mut Rates, house: &Kept, seconds: std::ops::RangeInclusive<u64>) -> f64 {
        for second in seconds {
            let mut seen = seen(500 * second, 0);
            seen.held_ns = 1_000_000_000 * second;
            rates.tell(&[seen], 2, 1_000_000_000 * second);
            let there = "web 0 0 0 0 0 0 0 0 0 0 3000 1 0.75 1500 3000\n";
            rates.hear(&entries(&[("b", there)]), |front| front == "b", house);
        }
        house.0.lock()["web"].weight
    }

    #[test]
    fn a_weight_is_where_its_tenant_is_served() {
        let (mut rates, house) = (Rates::default(), Kept::default());
        // A quarter of it, twice that for two fronts, and a little that is even.
        let weight = shared(&mut rates, &house, 1..=20);
        assert!((weight - 0.525).abs() < 0.03, "{weight}");
    }

    #[test]
    fn weights_that_are_not_divided_stay_whole() {
        let (mut rates, house) = (Rates::new(false), Kept::default());
        assert_eq!(shared(&mut rates, &house, 1..=20), 1.0);
        let kept = house.0.lock()["web"];
        assert!(kept.limit < 1.0, "its limits are divided: {kept:?}");
    }

    #[test]
    fn who_hears_of_nobody_keeps_rates_and_has_its_weight_again() {
        let (mut rates, house) = (Rates::default(), Kept::default());
        shared(&mut rates, &house, 1..=20);
        let before = house.0.lock()["web"];
        rates.alone(&house);
        let after = house.0.lock()["web"];
        let expected = Portions {
            weight: 1.0,
            ..before
        };
        assert_eq!(after, expected);
        // When it hears of them again, it begins as it is.
        let weight = shared(&mut rates, &house, 21..=21);
        assert!(weight < 1.0, "{weight}");
        // Who has nothing divided any more has all of it.
        rates.tell(&[], 2, 22_000_000_000);
        rates.hear(&entries(&[]), |_| true, &house);
        assert_eq!(house.0.lock()["web"], Portions::default());
    }

    #[test]
    fn who_is_served_only_elsewhere_has_its_weight_here_when_it_comes() {
        let (mut rates, house) = (Rates::default(), Kept::default());
        let idle = |tenant: &str| Seen {
            tenant: tenant.into(),
            principal: PrincipalId(0),
            promise: Promise::share(1.0),
            usage: Usage::default(),
            held_ns: 0,
            connected: false,
        };
        let there =
            "web 0 0 0 0 0 0 0 0 0 0 3000 1 1 1500 3000\nquiet 0 0 0 0 0 0 0 0 0 0 0 0 0.5 0 0\n";
        for second in 1..=10 {
            let seen = [idle("web"), idle("quiet")];
            rates.tell(&seen, 2, 1_000_000_000 * second);
            rates.hear(&entries(&[("b", there)]), |front| front == "b", &house);
        }
        let kept = house.0.lock();
        assert!(kept["web"].weight > 0.99, "{kept:?}");
        assert!(!kept.contains_key("quiet"));
    }
}
