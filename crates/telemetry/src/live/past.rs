//! The last minutes of the busiest tenants, for those who begin to watch.
//!
//! Kept whether or not somebody watches, so it must cost little: five seconds a step, from counters that are read for the
//! shares anyway; the histograms of [`TENANTS_MAX`] tenants, not of all.

use std::collections::{BTreeMap, VecDeque};

use super::compact::CompactClass;
use super::reading::{Kept, Spent};
use super::view::{PastStep, PastTenant, PastView};
use crate::registry::Registry;
use crate::shares::{shares, Capacities, Recent};

/// Steps that are kept, of [`crate::admin::TURN`] each: five minutes, as much as the dashboard draws.
const STEPS_MAX: usize = 60;

/// Tenants of a step, those with the largest shares: more than the dashboard draws, so that one who was among its six is there.
/// With a name of 64 bytes one takes 150 bytes: 150 KiB for all steps, however many tenants there are.
const TENANTS_MAX: usize = 16;

/// The ring, and what the next step is measured against.
#[derive(Default)]
pub(crate) struct Past {
    steps: VecDeque<PastStep>,
    /// The busiest at the last step.
    before: BTreeMap<String, Kept>,
}

impl Past {
    /// Keeps what happened in the turn that ended with this call to [`Registry::turn`], at `at_ms` since 1970.
    pub(crate) fn step(
        &mut self,
        registry: &Registry,
        capacities: &Capacities,
        (now_ns, at_ms): (u64, u64),
    ) {
        let recent: Vec<(String, Recent)> = registry.recent(now_ns).into_iter().collect();
        // What a tenant got does not depend on weights, and what it wanted is not kept.
        let used: Vec<_> = recent
            .iter()
            .map(|(_, recent)| (1.0, Some(*recent)))
            .collect();
        let got = shares(&used, capacities);
        let mut busiest: Vec<(String, Recent, f64)> = recent
            .into_iter()
            .zip(got)
            .map(|((name, recent), share)| (name, recent, share.got_percent))
            .collect();
        busiest.sort_by(|a, b| b.2.total_cmp(&a.2).then_with(|| a.0.cmp(&b.0)));
        let others = busiest.len().saturating_sub(TENANTS_MAX) as u64;
        busiest.truncate(TENANTS_MAX);
        let mut before = std::mem::take(&mut self.before);
        let mut tenants = Vec::with_capacity(busiest.len());
        for (name, recent, got_percent) in busiest {
            let Some(totals) = registry.totals(&name) else {
                continue;
            };
            let now = Kept {
                usage: totals.usage,
                classes: Some(CompactClass::of(totals)),
                ..Kept::default()
            };
            // One that was not among the busiest has nothing to subtract: its latencies begin with the next step.
            let spent = before
                .remove(&name)
                .map(|before| Spent::between(Some(&before), &now));
            let main = spent.as_ref().and_then(Spent::of_main);
            let ms = |p: f64| main.map(|totals| totals.latency.quantile(p).round() / 1e6);
            tenants.push(PastTenant {
                name: name.clone(),
                requests_per_s: super::frame::short(recent.requests_per_s),
                p50_ms: ms(0.5),
                p99_ms: ms(0.99),
                got_percent: super::frame::short(got_percent),
            });
            self.before.insert(name, now);
        }
        self.steps.push_back(PastStep {
            at_ms,
            tenants,
            others,
        });
        while self.steps.len() > STEPS_MAX {
            self.steps.pop_front();
        }
    }

    /// All that is kept.
    pub(crate) fn view(&self) -> PastView {
        PastView {
            steps: self.steps.iter().cloned().collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorder::{Recorder, Request};
    use crate::Class;

    const TURN: u64 = 5_000_000_000;
    const CAPACITIES: Capacities = Capacities {
        requests_per_s: 1e5,
        bytes_in_per_s: 1e9,
        bytes_out_per_s: 1e9,
        cpu_per_s: 2.0,
    };

    fn gets(who: &mut Recorder, latency_ns: u64, count: u64) {
        let request = Request {
            class: Class::Get,
            latency_ns,
            queue_ns: 0,
            disk_ns: 0,
            bytes_in: 0,
            bytes_out: 0,
            cpu_ns: 0,
            failed: false,
        };
        who.record_many(&request, count);
    }

    fn step(past: &mut Past, registry: &Registry, number: u64) {
        registry.turn(number * TURN);
        past.step(registry, &CAPACITIES, (number * TURN, number * 5_000));
    }

    #[test]
    fn each_step_is_what_happened_in_it() {
        let (registry, mut past) = (Registry::new(1), Past::default());
        let mut web = registry.recorder("web", 0).expect("free");
        let mut batch = registry.recorder("batch", 0).expect("free");
        let _idle = registry.recorder("idle", 0).expect("free");
        step(&mut past, &registry, 1);
        gets(&mut web, 80_000_000, 300);
        step(&mut past, &registry, 2);
        gets(&mut web, 1_000_000, 300);
        gets(&mut batch, 1_000_000, 100);
        step(&mut past, &registry, 3);
        step(&mut past, &registry, 4);
        let steps = past.view().steps;
        let names = |step: &PastStep| -> Vec<String> {
            step.tenants.iter().map(|one| one.name.clone()).collect()
        };
        assert_eq!(
            steps.iter().map(|one| one.at_ms).collect::<Vec<_>>(),
            [5_000, 10_000, 15_000, 20_000]
        );
        let listed: Vec<Vec<String>> = steps.iter().map(names).collect();
        assert_eq!(
            listed,
            [
                vec![],
                vec!["web".to_string()],
                vec!["web".into(), "batch".into()],
                vec![]
            ]
        );
        assert_eq!(
            steps[1].tenants[0].p99_ms, None,
            "there is nothing to subtract"
        );
        let (web, batch) = (&steps[2].tenants[0], &steps[2].tenants[1]);
        assert_eq!((web.requests_per_s, web.got_percent), (60.0, 75.0));
        let p99_ms = web.p99_ms.expect("of this step");
        assert!(
            (p99_ms - 1.0).abs() < 1.0 / 32.0,
            "{p99_ms}: the step before is not in it"
        );
        assert_eq!((batch.requests_per_s, batch.p99_ms), (20.0, None));
    }

    #[test]
    fn it_is_bounded_in_time_and_in_tenants() {
        let (registry, mut past) = (Registry::new(1), Past::default());
        let names: Vec<String> = (0..30).map(|number| format!("t{number:02}")).collect();
        let mut tenants: Vec<Recorder> = names
            .iter()
            .map(|name| registry.recorder(name, 0).expect("free"))
            .collect();
        step(&mut past, &registry, 1);
        for turn in 2..80 {
            for (count, tenant) in tenants.iter_mut().enumerate() {
                gets(tenant, 1_000, count as u64);
            }
            step(&mut past, &registry, turn);
        }
        let steps = past.view().steps;
        assert_eq!((steps.len(), steps[0].at_ms), (STEPS_MAX, 20 * 5_000));
        let full = |one: &PastStep| (one.tenants.len(), one.others) == (TENANTS_MAX, 13);
        assert!(steps.iter().all(full), "one of thirty asks for nothing");
        assert_eq!(steps[9].tenants[0].name, "t29", "the busiest first");
    }
}
