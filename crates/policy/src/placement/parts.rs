//! How a tenant's demand is divided over its partitions, from all looks that agree.
//!
//! A look sees few requests of each partition: of 400 a part is right to 5 %, and of sixteen such
//! partitions a node is right to a hundredth. How much a tenant wants, and who waits, may change
//! from look to look; its parts seldom do, and mean as much wherever partitions are. So these are
//! added up, until a look says something else.

use std::collections::BTreeMap;

/// Looks are added up over so much time, s; then what is old fades.
const LONGEST_S: f64 = 60.0;
/// A look is of so much time at least, s.
const LEAST_S: f64 = 1e-3;
/// What is so small a part is none.
const LEAST: f64 = 1e-9;
/// A look that has so much of a tenant's demand elsewhere says something else: what was known is
/// forgotten.
const ELSEWHERE: f64 = 0.1;

/// Parts of demands, by tenant.
#[derive(Clone, Debug)]
pub struct Parts<K> {
    tenants: BTreeMap<K, Known>,
}

/// What is known of one.
#[derive(Clone, Debug, Default)]
struct Known {
    /// By the place of a partition; together they are 1.
    parts: BTreeMap<u32, f64>,
    /// From so many seconds.
    seen_s: f64,
}

impl<K> Default for Parts<K> {
    fn default() -> Self {
        Parts {
            tenants: BTreeMap::new(),
        }
    }
}

impl<K: Ord + Clone> Parts<K> {
    /// Takes in what partitions of tenants were asked for in a look that tells of the last so many
    /// seconds, and divides each tenant's as all looks have it. Who is not among them is forgotten.
    pub fn look<'l>(
        &mut self,
        seen_s: f64,
        tenants: impl IntoIterator<Item = (K, &'l mut Vec<(u32, f64)>)>,
    ) {
        let mut before = std::mem::take(&mut self.tenants);
        for (tenant, rates) in tenants {
            let whole: f64 = rates.iter().map(|(_, rate)| rate).sum();
            if whole > 0.0 {
                let mut known = before.remove(&tenant).unwrap_or_default();
                known.learn(rates, whole, seen_s.max(LEAST_S));
                let rate = |(place, part): (&u32, &f64)| (*place, part * whole);
                *rates = known.parts.iter().map(rate).collect();
                self.tenants.insert(tenant, known);
            }
        }
    }
}

impl Known {
    /// REQUIRES: `seen_s` is above 0.
    fn learn(&mut self, rates: &[(u32, f64)], whole: f64, seen_s: f64) {
        let mut now: BTreeMap<u32, f64> = BTreeMap::new();
        for (place, rate) in rates {
            *now.entry(*place).or_default() += rate / whole;
        }
        let elsewhere = now
            .iter()
            .map(|(place, part)| part - of(&self.parts, *place));
        let elsewhere: f64 = elsewhere.map(|more| more.max(0.0)).sum();
        if elsewhere > ELSEWHERE {
            *self = Known::default();
        }
        self.seen_s += seen_s;
        let newest = seen_s / self.seen_s;
        self.seen_s = self.seen_s.min(LONGEST_S);
        for place in now.keys() {
            self.parts.entry(*place).or_default();
        }
        for (place, part) in &mut self.parts {
            *part += (of(&now, *place) - *part) * newest;
        }
        self.parts.retain(|_, part| *part > LEAST);
    }
}

/// The part of a partition.
fn of(parts: &BTreeMap<u32, f64>, place: u32) -> f64 {
    parts.get(&place).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn look(parts: &mut Parts<u32>, seen_s: f64, rates: &[(u32, f64)]) -> Vec<(u32, f64)> {
        let mut rates = rates.to_vec();
        parts.look(seen_s, [(7, &mut rates)]);
        rates
    }

    fn near(rates: &[(u32, f64)], wanted: &[(u32, f64)]) -> bool {
        let one = |(a, b): (&(u32, f64), &(u32, f64))| a.0 == b.0 && (a.1 - b.1).abs() < 1e-9;
        rates.len() == wanted.len() && rates.iter().zip(wanted).all(one)
    }

    #[test]
    fn how_much_there_is_counts_as_it_is_now_and_how_it_is_divided_as_all_looks_have_it() {
        let mut parts = Parts::default();
        let first = look(&mut parts, 3.0, &[(1, 60.0), (2, 40.0)]);
        assert!(near(&first, &[(1, 60.0), (2, 40.0)]), "{first:?}");
        // Three times as long: .525 of it.
        let second = look(&mut parts, 9.0, &[(1, 100.0), (2, 100.0)]);
        assert!(near(&second, &[(1, 105.0), (2, 95.0)]), "{second:?}");
    }

    #[test]
    fn what_is_divided_otherwise_is_believed_at_once_and_who_is_away_is_forgotten() {
        let mut parts = Parts::default();
        for _ in 0..20 {
            look(&mut parts, 9.0, &[(1, 50.0), (2, 50.0)]);
        }
        let moved = look(&mut parts, 3.0, &[(1, 30.0), (3, 70.0)]);
        assert!(near(&moved, &[(1, 30.0), (3, 70.0)]), "{moved:?}");
        parts.look(3.0, []);
        let back = look(&mut parts, 3.0, &[(1, 33.0), (3, 67.0)]);
        assert!(near(&back, &[(1, 33.0), (3, 67.0)]), "{back:?}");
    }

    #[test]
    fn what_changes_slowly_is_followed() {
        let mut parts = Parts::default();
        look(&mut parts, 1_000.0, &[(1, 50.0), (2, 50.0)]);
        let mut last = Vec::new();
        for _ in 0..100 {
            last = look(&mut parts, 3.0, &[(1, 59.0), (2, 41.0)]);
        }
        assert!((last[0].1 - 59.0).abs() < 0.1, "{last:?}");
    }

    proptest! {
        /// What there is in all stays as it is.
        #[test]
        fn nothing_is_added_or_lost(
            looks in prop::collection::vec(
                (0.0..20.0, prop::collection::vec((0u32..6, 0.0..100.0), 0..8)),
                1..12,
            )
        ) {
            let mut parts = Parts::default();
            for (seen_s, rates) in looks {
                let sum = |rates: &[(u32, f64)]| rates.iter().map(|(_, rate)| rate).sum::<f64>();
                let divided = look(&mut parts, seen_s, &rates);
                prop_assert!((sum(&divided) - sum(&rates)).abs() < 1e-6);
            }
        }
    }
}
