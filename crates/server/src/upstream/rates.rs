//! Rates of tenants, which all fronts before one cluster keep together: each tells the others what
//! a tenant used here and what of its rates it claims, and keeps to a portion.

use std::collections::{BTreeMap, VecDeque};
use std::str::FromStr;

use front::Value;
use policy::portion::{Portion, Portions, Told};
use policy::{Nanos, Promise};
use telemetry::Usage;

/// A tenant as it is now.
pub struct Seen {
    /// Its name.
    pub tenant: String,
    /// What it is promised and held to at all fronts together.
    pub promise: Promise,
    /// What it has used here since the start.
    pub usage: Usage,
}

/// Those who are told what tenants have.
pub trait House: Send {
    /// Tenants whose rates are limited or promised, as they are now.
    fn with_rates(&self) -> Vec<Seen>;
    /// A tenant has these portions of its rates here, as it may have had before.
    fn keep(&self, tenant: &str, portions: Portions);
    /// The engine may have other commands, or be in other places, or fronts be the homes of other
    /// things.
    fn changed(&self);
}

/// Cores say once a second for how long something of a tenant has waited.
const WAITED_OVER_NS: Nanos = 1_100_000_000;

/// The rates of all tenants that have any.
#[derive(Default)]
pub struct Rates {
    tenants: BTreeMap<String, Tenant>,
    at: Nanos,
}

struct Tenant {
    usage: Usage,
    /// For how long something of it had waited, and by when, the oldest first.
    waited: VecDeque<(Nanos, u64)>,
    limit: Portion,
    promised: Portion,
}

/// What one front tells of one tenant: of its limits, and of what it was promised.
type Line = (Told, Told);

impl Rates {
    /// What to tell the other fronts, of which there are `fronts` with this one.
    pub fn tell(&mut self, seen: &[Seen], fronts: usize, now: Nanos) -> String {
        let elapsed_s = now.saturating_sub(self.at) as f64 / 1e9;
        self.at = now;
        self.tenants
            .retain(|name, _| seen.iter().any(|seen| seen.tenant == *name));
        let mut text = String::new();
        for seen in seen {
            let new = || Tenant {
                usage: seen.usage,
                waited: VecDeque::new(),
                limit: Portion::new(fronts),
                promised: Portion::new(fronts),
            };
            let tenant = self.tenants.entry(seen.tenant.clone()).or_insert_with(new);
            let used = seen.usage.since(&tenant.usage);
            tenant.usage = seen.usage;
            let (limit, promised) = used_of(&seen.promise, &used, elapsed_s);
            let waited = tenant.waited(seen.usage.occupied_ns, now);
            let limit = tenant.limit.tell(limit, waited);
            // Nothing waits for more of what is promised: beyond it there is the share.
            let promised = tenant.promised.tell(promised.min(1.0), 0.0);
            text.push_str(&line(&seen.tenant, &(limit, promised)));
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
        for (name, tenant) in &mut self.tenants {
            let others = told.remove(name.as_str()).unwrap_or_default();
            let (limits, promised): (Vec<_>, Vec<_>) = others.into_iter().unzip();
            tenant.limit.keep(&limits);
            tenant.promised.keep(&promised);
            let portions = Portions {
                limit: tenant.limit.part(),
                promised: tenant.promised.part(),
            };
            house.keep(name, portions);
        }
    }
}

impl Tenant {
    /// The part of the last time for which something of it waited, where that was `occupied_ns`
    /// since the start.
    fn waited(&mut self, occupied_ns: u64, now: Nanos) -> f64 {
        self.waited.push_back((now, occupied_ns));
        let long_ago = |at: Nanos| now.saturating_sub(at) >= WAITED_OVER_NS;
        while self.waited.get(1).is_some_and(|(at, _)| long_ago(*at)) {
            self.waited.pop_front();
        }
        let (at, before) = self.waited[0];
        match now.saturating_sub(at) {
            0 => 0.0,
            passed => occupied_ns.saturating_sub(before) as f64 / passed as f64,
        }
    }
}

/// What was used of a tenant's limits and of what it was promised, each of whichever rate most was
/// used of.
fn used_of(promise: &Promise, used: &Usage, elapsed_s: f64) -> (f64, f64) {
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
    (limit, promised)
}

/// No tenant's name has a space.
fn line(tenant: &str, (limit, promised): &Line) -> String {
    let of = |told: &Told| {
        let more = u8::from(told.more);
        format!("{:.6} {more} {:.6}", told.used, told.claim)
    };
    format!("{tenant} {} {}\n", of(limit), of(promised))
}

fn read(line: &str) -> Option<(&str, Line)> {
    let mut words = line.split(' ');
    let tenant = words.next()?;
    let mut told = || {
        let mut number = || f64::from_str(words.next()?).ok().filter(|n| n.is_finite());
        let (used, more, claim) = (number()?, number()?, number()?);
        Some(Told {
            used: used.max(0.0),
            more: more > 0.0,
            claim: claim.clamp(0.0, 1.0),
        })
    };
    Some((tenant, (told()?, told()?)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use parking_lot::Mutex;

    #[derive(Default)]
    struct Kept(Mutex<BTreeMap<String, Portions>>);

    impl House for Kept {
        fn with_rates(&self) -> Vec<Seen> {
            Vec::new()
        }

        fn keep(&self, tenant: &str, portions: Portions) {
            self.0.lock().insert(tenant.to_owned(), portions);
        }

        fn changed(&self) {}
    }

    fn seen(requests: u64, occupied_ns: u64) -> Seen {
        let mut promise = Promise::share(1.0);
        promise.limit.requests_per_s = Some(1_000.0);
        promise.contract_per_s = Some(100.0);
        Seen {
            tenant: "web".into(),
            promise,
            usage: Usage {
                requests,
                occupied_ns,
                ..Usage::default()
            },
        }
    }

    fn entries(told: &[(&str, &str)]) -> Value {
        let words = told.iter().flat_map(|(front, text)| [*front, *text]);
        let text = |word: &str| Value::Text(word.as_bytes().to_vec());
        Value::List(words.map(text).collect())
    }

    #[test]
    fn what_is_told_is_read() {
        let told = |used, more, claim| Told { used, more, claim };
        let one = (told(0.25, true, 0.5), told(1.5, false, 0.0));
        assert_eq!(read(line("web", &one).trim_end()), Some(("web", one)));
        for bad in ["", "web", "web 1 2", "web 1 0 nan 1 0 1", "web 1 0 x 1 0 1"] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_limit_goes_where_it_is_used_and_a_contract_where_it_is_asked_for() {
        let (mut rates, house) = (Rates::default(), Kept::default());
        let other = |front: &str| front == "b";
        // This front has 500 requests a second and more would come; the other has none.
        let idle = "web 0 0 0 0 0 0\n";
        for second in 1..=4 {
            let seen = [seen(500 * second, 1_000_000_000 * second)];
            let mine = rates.tell(&seen, 2, 1_000_000_000 * second);
            let all = entries(&[("a", &mine), ("b", idle), ("gone", "web 9 1 1 9 1 1\n")]);
            rates.hear(&all, other, &house);
        }
        let kept = house.0.lock()["web"];
        assert!(kept.limit > 0.98 && kept.promised > 0.98, "{kept:?}");
        // The other is given up to as soon as it says so, and has been given nothing before.
        let wants = "web 0.005 1 0.005 0.5 0 0.5\n";
        rates.hear(&entries(&[("b", wants)]), other, &house);
        let kept = house.0.lock()["web"];
        assert!(kept.limit < 0.51 && kept.promised < 0.51, "{kept:?}");
    }
}
