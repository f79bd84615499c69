//! Reads and writes a second that are reserved for a tenant before an engine, where nothing is
//! known of what they will take: they go before shares. Of several fronts each has a part.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use policy::provision::Reservation;
use policy::reserved::Reserved;
use policy::Nanos;
use telemetry::Class;

/// What reserved reads and writes are called among the contracts of a tenant. No promise is called
/// so.
pub const RESERVED: [&str; 2] = ["reserve.get", "reserve.put"];

/// Reads and writes of a tenant.
#[derive(Default)]
pub struct Reserves([Option<Arc<Reserve>>; 2]);

struct Reserve {
    /// Of all fronts together, requests/s.
    per_s: f64,
    here: Mutex<Here>,
}

/// What is this server's of it.
#[derive(Clone, Copy)]
struct Here {
    part: f64,
    reserved: Reserved,
}

impl Reserves {
    /// Those of these rates; 0: none. What stays as it was `before` is used up as it was.
    pub fn new(per_s: Reservation, before: &Self, now: Nanos) -> Self {
        Self(std::array::from_fn(|which| {
            let per_s = per_s[which];
            let before = before.0[which].as_ref();
            if before.is_some_and(|before| before.per_s == per_s) {
                return before.cloned();
            }
            let part = before.map_or(1.0, |before| before.here.lock().part);
            (per_s > 0.0).then(|| {
                let reserved = Reserved::new(now, part * per_s);
                let here = Mutex::new(Here { part, reserved });
                Arc::new(Reserve { per_s, here })
            })
        }))
    }

    fn of(&self, class: Class) -> Option<&Reserve> {
        let which = match class {
            Class::Get | Class::Multiget | Class::Scan => 0,
            Class::Put => 1,
            Class::Other | Class::Admin => return None,
        };
        self.0[which].as_deref()
    }

    /// A request of this class begins: whether it goes before shares.
    #[inline]
    pub fn begin(&self, class: Class, now: Nanos) -> bool {
        self.of(class).is_some_and(|reserve| {
            let reserved = &mut reserve.here.lock().reserved;
            let first = reserved.first(now);
            reserved.take(now, 1);
            first
        })
    }

    /// It has turned out to be so many more, of 1 KiB.
    #[inline]
    pub fn take(&self, class: Class, requests: u64, now: Nanos) {
        if let Some(reserve) = self.of(class).filter(|_| requests > 0) {
            reserve.here.lock().reserved.take(now, requests);
        }
    }

    /// What is named here is this server's part from now on. True: it was another before.
    pub fn keep(&self, now: Nanos, parts: &BTreeMap<String, f64>) -> bool {
        let mut changed = false;
        for (name, reserve) in RESERVED.iter().zip(&self.0) {
            let (Some(reserve), Some(part)) = (reserve, parts.get(*name)) else {
                continue;
            };
            let mut here = reserve.here.lock();
            if here.part != *part {
                here.part = *part;
                here.reserved.change(now, part * reserve.per_s);
                changed = true;
            }
        }
        changed
    }

    /// By name, what is reserved at all fronts together, requests/s, and what was asked of it here
    /// since the start.
    pub fn asked(&self) -> impl Iterator<Item = (&'static str, f64, u64)> + '_ {
        let named = RESERVED.iter().zip(&self.0);
        named.filter_map(|(name, reserve)| {
            let reserve = reserve.as_ref()?;
            Some((*name, reserve.per_s, reserve.here.lock().reserved.asked()))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: Nanos = 1_000_000_000;

    fn goes_first(reserves: &Reserves, class: Class, now: Nanos) -> bool {
        let reserve = reserves.of(class);
        reserve.is_some_and(|reserve| reserve.here.lock().reserved.first(now))
    }

    /// Of requests of a class, as many a second, those that go first in ten seconds.
    fn first(reserves: &Reserves, class: Class, begin: Nanos) -> u64 {
        let times = (0..1_000).map(|at| begin + at * S / 100);
        let went = times.filter(|now| {
            // Those that do not are not served either.
            goes_first(reserves, class, *now) && reserves.begin(class, *now)
        });
        went.count() as u64 / 10
    }

    #[test]
    fn reads_and_writes_have_what_is_reserved_for_each() {
        let reserves = Reserves::new([50.0, 0.0], &Reserves::default(), S);
        assert!((50..=52).contains(&first(&reserves, Class::Multiget, S)));
        assert_eq!(first(&reserves, Class::Put, S), 0);
        assert_eq!(first(&reserves, Class::Other, S), 0);
        let asked: Vec<_> = reserves.asked().collect();
        assert!(
            matches!(asked[..], [("reserve.get", 50.0, 500..=520)]),
            "{asked:?}"
        );
        // Each of several fronts has a part, also of what is reserved anew.
        let parts = BTreeMap::from([("reserve.get".to_owned(), 0.2)]);
        assert!(reserves.keep(20 * S, &parts) && !reserves.keep(20 * S, &parts));
        assert!((10..=11).contains(&first(&reserves, Class::Get, 20 * S)));
        let more = Reserves::new([100.0, 7.0], &reserves, 40 * S);
        assert!((20..=21).contains(&first(&more, Class::Get, 40 * S)));
        assert!((7..=8).contains(&first(&more, Class::Put, 40 * S)));
    }

    #[test]
    fn a_reservation_that_stays_is_used_up_as_it_was() {
        let before = Reserves::new([1.0, 0.0], &Reserves::default(), S);
        before.take(Class::Get, 90, S);
        let after = Reserves::new([1.0, 3.0], &before, S);
        assert!(!goes_first(&after, Class::Get, 60 * S) && goes_first(&after, Class::Put, S));
    }
}
