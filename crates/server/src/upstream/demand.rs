//! What partitions are asked for here: cores count it, and this front tells it to whoever places
//! partitions.

use std::collections::{BTreeMap, HashMap};

use front::{Demand, TenantDemand};
use parking_lot::Mutex;
use policy::{Nanos, PrincipalId};

use super::rates::Seen;

/// Slots that are told of at most: those that take most.
const SLOTS_MAX: usize = 2_000;
/// One that takes less of a second of its node, ns, is not.
const LEAST_NS: f64 = 10_000.0;
/// What the newest second counts in the means: they go back over about ten.
const NEWEST: f64 = 0.2;
/// A tenant wants more if something of it waited for this part of the time.
const MOSTLY: f64 = 0.5;

/// Time of nodes by tenant and slot.
pub type Took = HashMap<(PrincipalId, u16), Nanos>;

/// What all cores have counted since it was last told.
#[derive(Default)]
pub struct Counted(Mutex<Charged>);

/// What nodes did, as it was charged.
#[derive(Default)]
pub struct Charged {
    /// Time of nodes.
    pub took: Took,
    /// What was charged a known price, ns, and what it weighs.
    pub priced: [f64; 2],
}

impl Counted {
    /// A core has counted so much, and its own node's requests are charged this price for a unit of
    /// weight, ns; none: it is not known.
    pub fn add(&self, took: &mut Took, price: Option<f64>) {
        let mut all = self.0.lock();
        let charged = took.values().sum::<Nanos>() as f64;
        if let Some(price) = price.filter(|price| *price > 0.0) {
            all.priced[0] += charged;
            all.priced[1] += charged / price;
        }
        for (key, ns) in took.drain() {
            *all.took.entry(key).or_default() += ns;
        }
    }

    /// Takes it away.
    pub fn take(&self) -> Charged {
        std::mem::take(&mut *self.0.lock())
    }
}

/// What is told of it.
#[derive(Default)]
pub struct Asked {
    beat: u64,
    at: Nanos,
    tenants: BTreeMap<String, Tenant>,
    /// What was charged, and what it weighs, in the mean.
    priced: [f64; 2],
}

#[derive(Default)]
struct Tenant {
    /// Mean rate of each slot, ns/s.
    slots: BTreeMap<u16, f64>,
    held_ns: Nanos,
    /// For which part of the time it waited, in the mean.
    waited: f64,
    /// For how many seconds it has asked for something.
    awake: u32,
}

impl Asked {
    /// Whether it is time to tell again.
    pub fn is_due(&self, now: Nanos) -> bool {
        now.saturating_sub(self.at) >= super::lookout::LOOK_EVERY_NS
    }

    /// What to tell of these tenants, whose requests took so much since the last time.
    pub fn tell(&mut self, seen: &[Seen], counted: Charged, now: Nanos) -> String {
        let Charged { mut took, priced } = counted;
        for (mean, newest) in self.priced.iter_mut().zip(priced) {
            *mean += (newest - *mean) * NEWEST;
        }
        let passed_ns = now.saturating_sub(self.at).max(1) as f64;
        let first = self.beat == 0;
        self.at = now;
        self.beat += 1;
        let mut by_tenant: HashMap<PrincipalId, Vec<(u16, Nanos)>> = HashMap::new();
        for ((principal, slot), ns) in took.drain() {
            by_tenant.entry(principal).or_default().push((slot, ns));
        }
        let mut before = std::mem::take(&mut self.tenants);
        for one in seen {
            let mut tenant = before.remove(&one.tenant).unwrap_or(Tenant {
                held_ns: one.held_ns,
                ..Tenant::default()
            });
            let held_ns = one.held_ns.saturating_sub(tenant.held_ns) as f64;
            tenant.held_ns = one.held_ns;
            if !first {
                let took = by_tenant.remove(&one.principal).unwrap_or_default();
                tenant.wait((held_ns / passed_ns).min(1.0), !took.is_empty());
                tenant.learn(&took, passed_ns);
            }
            self.tenants.insert(one.tenant.clone(), tenant);
        }
        self.demand(seen).text()
    }

    fn demand(&self, seen: &[Seen]) -> Demand {
        let rates = |tenant: &Tenant| tenant.slots.values().copied().collect::<Vec<_>>();
        let mut all: Vec<f64> = self.tenants.values().flat_map(rates).collect();
        all.sort_unstable_by(|one, other| other.total_cmp(one));
        let least = all
            .get(SLOTS_MAX)
            .map_or(LEAST_NS, |rate| rate.max(LEAST_NS));
        let tenants = seen.iter().filter_map(|one| {
            let tenant = self.tenants.get(&one.tenant)?;
            let told = tenant.slots.iter().filter(|(_, rate)| **rate > least);
            let told = TenantDemand {
                name: one.tenant.clone(),
                weight: one.promise.weight,
                waits: tenant.waited >= MOSTLY,
                slots: told.map(|(slot, rate)| (*slot, *rate as u64)).collect(),
            };
            (told.waits || !told.slots.is_empty()).then_some(told)
        });
        let [charged, weighs] = self.priced;
        Demand {
            beat: self.beat,
            price_ns: (charged / weighs.max(1.0)) as u64,
            tenants: tenants.collect(),
        }
    }
}

impl Tenant {
    /// It waited for this part of the time. From when it began to ask that is the mean of all, so
    /// that it is known at once.
    fn wait(&mut self, waited: f64, asked: bool) {
        self.awake = match asked || waited > 0.0 || !self.slots.is_empty() {
            true => self.awake.saturating_add(1),
            false => 0,
        };
        let newest = NEWEST.max(1.0 / f64::from(self.awake.max(1)));
        self.waited += (waited - self.waited) * newest;
    }

    fn learn(&mut self, took: &[(u16, Nanos)], passed_ns: f64) {
        for rate in self.slots.values_mut() {
            *rate *= 1.0 - NEWEST;
        }
        for (slot, ns) in took {
            let rate = *ns as f64 * 1e9 / passed_ns;
            *self.slots.entry(*slot).or_default() += rate * NEWEST;
        }
        // What is not told is forgotten soon.
        self.slots.retain(|_, rate| *rate > LEAST_NS / 10.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use policy::Promise;
    use telemetry::Usage;

    const SECOND_NS: Nanos = 1_000_000_000;

    fn seen(number: u32, held_ns: Nanos) -> Seen {
        Seen {
            tenant: format!("t{number}"),
            principal: PrincipalId(number),
            promise: Promise::share(2.0),
            contracts: Vec::new(),
            usage: Usage::default(),
            held_ns,
            connected: true,
        }
    }

    fn counted(
        took: impl Iterator<Item = ((PrincipalId, u16), Nanos)>,
        price: Option<f64>,
    ) -> Charged {
        let counted = Counted::default();
        counted.add(&mut took.collect(), price);
        counted.take()
    }

    fn told(asked: &mut Asked, second: u64, took: &[(u32, u16, Nanos)]) -> Demand {
        let of = |(tenant, slot, ns): &(u32, u16, Nanos)| ((PrincipalId(*tenant), *slot), *ns);
        let seen = [seen(0, second * SECOND_NS), seen(1, 0)];
        let text = asked.tell(
            &seen,
            counted(took.iter().map(of), None),
            second * SECOND_NS,
        );
        Demand::read(&text).expect("a demand")
    }

    #[test]
    fn what_partitions_take_is_told_in_the_mean() {
        let mut asked = Asked::default();
        let mut last = Demand::default();
        for second in 1..=40 {
            assert!(asked.is_due(second * SECOND_NS));
            last = told(&mut asked, second, &[(0, 3, 400_000_000), (1, 9, 2_000)]);
            assert_eq!(last.beat, second);
            assert!(!asked.is_due(second * SECOND_NS + 1));
        }
        // The second takes too little to be told of, and does not wait.
        let [first] = &last.tenants[..] else {
            panic!("{last:?}")
        };
        assert!(first.name == "t0" && first.waits && first.weight == 2.0);
        let [(3, rate)] = first.slots[..] else {
            panic!("{first:?}")
        };
        assert!(rate.abs_diff(400_000_000) < 1_000_000, "{rate}");
        // What is asked no more is forgotten.
        for second in 41..=120 {
            last = told(&mut asked, second, &[]);
        }
        assert!(last.tenants[0].slots.is_empty(), "{last:?}");
        assert!(asked.tenants["t0"].slots.is_empty());
    }

    #[test]
    fn who_begins_to_wait_is_told_of_at_once_and_who_waits_now_and_then_is_not() {
        let (mut asked, mut held_ns) = (Asked::default(), 0);
        let mut waits = |second: u64, waited_ns: Nanos, took_ns: Nanos| {
            held_ns += waited_ns;
            let took = [((PrincipalId(0), 3), took_ns)].into_iter();
            let took = counted(took.filter(|(_, ns)| *ns > 0), None);
            let text = asked.tell(&[seen(0, held_ns)], took, second * SECOND_NS);
            let told = Demand::read(&text).expect("a demand");
            told.tenants.first().is_some_and(|tenant| tenant.waits)
        };
        assert!(!(1..20).any(|second| waits(second, 0, 0)));
        assert!(waits(20, SECOND_NS, 400_000_000));
        // From then on a second counts less and less.
        assert!((21..40).all(|second| waits(second, SECOND_NS * 9 / 10, 400_000_000)));
        assert!(waits(40, 0, 400_000_000));
        assert!(!(41..60).all(|second| waits(second, 0, 400_000_000)));
        assert!(!waits(60, SECOND_NS, 400_000_000));
    }

    #[test]
    fn no_more_is_told_than_those_that_take_most() {
        let mut asked = Asked::default();
        let all: Vec<_> = (0..5_000)
            .map(|slot| (0, slot, 1_000_000 + Nanos::from(slot)))
            .collect();
        for second in 1..=3 {
            let last = told(&mut asked, second, &all);
            if second > 1 {
                let slots = &last.tenants[0].slots;
                assert!(
                    slots.len() <= SLOTS_MAX && slots[0].0 >= 2_990,
                    "{}",
                    slots.len()
                );
            }
        }
    }

    #[test]
    fn what_a_unit_of_weight_is_charged_is_told_in_the_mean() {
        let mut asked = Asked::default();
        let mut tell = |second: u64, took_ns: Nanos, price: Option<f64>| {
            let took = [((PrincipalId(0), 3), took_ns)].into_iter();
            let text = asked.tell(&[seen(0, 0)], counted(took, price), second * SECOND_NS);
            Demand::read(&text).expect("a demand").price_ns
        };
        assert_eq!(tell(1, SECOND_NS, None), 0);
        assert_eq!(tell(2, SECOND_NS, Some(20_000.0)), 20_000);
        // Of a second in which little was served little is believed, and of none nothing.
        let price = tell(3, SECOND_NS / 100, Some(90_000.0));
        assert!((20_000..21_000).contains(&price), "{price}");
        assert_eq!(tell(4, 0, Some(90_000.0)), price);
        let last = (5..40).fold(0, |_, second| tell(second, SECOND_NS, Some(40_000.0)));
        assert!(last.abs_diff(40_000) < 100, "{last}");
    }
}
