//! What requests asked of the server lately: what a new promise is reckoned with.

use std::collections::BTreeMap;

use policy::cost::device::Vop;
use policy::words::Words;
use policy::PrincipalId;
use settings::tenant::SloClass;
use telemetry::Class;

/// What was asked counts a third as much after so long, s.
const MEMORY_S: f64 = 300.0;

/// Requests of one class of a tenant since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Total {
    /// Answered.
    pub requests: u64,
    /// Of these, those that needed the disk.
    pub missing: u64,
    /// I/Os that they did themselves.
    pub ios: u64,
    /// What these cost.
    pub vops: Vop,
}

/// The same lately; what is older counts less.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Recent {
    seconds: f64,
    requests: f64,
    missing: f64,
    ios: f64,
    vops: f64,
}

impl Recent {
    /// Requests a second.
    pub fn per_s(&self) -> f64 {
        self.requests / self.seconds.max(1.0)
    }

    /// The part of them that needed the disk, and what each of these did there: I/Os, and VOPs.
    /// `None`: so few were seen that nothing follows.
    pub fn at_disk(&self) -> Option<(f64, f64, f64)> {
        let missing = self.missing.min(self.requests);
        (self.requests >= 1.0).then(|| {
            let each = missing.max(f64::MIN_POSITIVE);
            (missing / self.requests, self.ios / each, self.vops / each)
        })
    }

    fn fade(&mut self, elapsed_s: f64) {
        let left = (-elapsed_s / MEMORY_S).exp();
        self.seconds = self.seconds * left + elapsed_s;
        for sum in [
            &mut self.requests,
            &mut self.missing,
            &mut self.ios,
            &mut self.vops,
        ] {
            *sum *= left;
        }
    }

    fn add(&mut self, other: &Self) {
        self.seconds = self.seconds.max(other.seconds);
        self.requests += other.requests;
        self.missing += other.missing;
        self.ios += other.ios;
        self.vops += other.vops;
    }
}

/// What all tenants asked for, by class.
#[derive(Debug, Default)]
pub struct Demands(BTreeMap<(PrincipalId, Class), (Total, Recent)>);

impl Demands {
    /// What a tenant's requests of a class have come to, so long after the last time.
    pub fn see(&mut self, who: PrincipalId, class: Class, now: Total, elapsed_s: f64) {
        let (before, recent) = self.0.entry((who, class)).or_default();
        recent.fade(elapsed_s);
        // A tenant that was removed and added again counts from nothing.
        let since = |now: u64, before: u64| now.saturating_sub(before) as f64;
        recent.add(&Recent {
            seconds: 0.0,
            requests: since(now.requests, before.requests),
            missing: since(now.missing, before.missing),
            ios: since(now.ios, before.ios),
            vops: Vop(now.vops.0.saturating_sub(before.vops.0)).get(),
        });
        *before = now;
    }

    /// Forgets all tenants but these.
    pub fn keep(&mut self, known: impl Fn(PrincipalId) -> bool) {
        self.0.retain(|(who, _), _| known(*who));
    }

    /// What a tenant's requests of a promise's class asked for.
    pub fn of(&self, who: PrincipalId, class: SloClass) -> Recent {
        let mut all = Recent::default();
        let meant = |of: &Class| match class {
            SloClass::Any => !matches!(of, Class::Other | Class::Admin),
            one => one.word() == of.name(),
        };
        for class in Class::ALL.into_iter().filter(meant) {
            if let Some((_, recent)) = self.0.get(&(who, class)) {
                all.add(recent);
            }
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_follows_what_is_asked_and_forgets_who_is_gone() {
        let (mut demands, who) = (Demands::default(), PrincipalId(3));
        let mut total = Total::default();
        let mut see = |requests: u64, missing: u64| {
            total.requests += requests;
            total.missing += missing;
            total.ios += 2 * missing;
            total.vops = total.vops.plus(Vop::new(3.0 * missing as f64));
            demands.see(who, Class::Get, total, 5.0);
            demands.of(who, SloClass::Get)
        };
        assert_eq!(see(0, 0).at_disk(), None);
        for _ in 0..400 {
            see(500, 100);
        }
        let recent = see(500, 100);
        assert!((recent.per_s() - 100.0).abs() < 0.5, "{recent:?}");
        let (missing, ios, vops) = recent.at_disk().expect("many");
        let near = |is: f64, wanted: f64| assert!((is - wanted).abs() < 1e-6, "{is} {wanted}");
        near(missing, 0.2);
        near(ios, 2.0);
        near(vops, 3.0);
        // Five minutes of nothing.
        for _ in 0..60 {
            see(0, 0);
        }
        let per_s = see(0, 0).per_s();
        assert!((30.0..40.0).contains(&per_s), "{per_s}");
        assert_eq!(
            demands.of(who, SloClass::Any),
            demands.of(who, SloClass::Get)
        );
        assert_eq!(demands.of(who, SloClass::Put), Recent::default());
        demands.keep(|known| known != who);
        assert_eq!(demands.of(who, SloClass::Get), Recent::default());
    }
}
