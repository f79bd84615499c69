//! The last minutes of the busiest tenants, for those who begin to watch.
//!
//! Kept whether or not somebody watches, so it must cost little: five seconds a step, from counters
//! that are read for the shares anyway; the histograms of [`TENANTS_MAX`] tenants, not of all.

use std::collections::{BTreeMap, VecDeque};

use super::compact::CompactClass;
use super::reading::{Kept, Spent};
use super::view::{PastStep, PastTenant, PastView};
use crate::admin::TURN;
use crate::registry::Registry;
use crate::shares::{shares, Capacities, Recent, Using};

/// Steps that are kept as they are, of [`crate::admin::TURN`] each: five minutes.
const STEPS_MAX: usize = 60;

/// Older ones are put together, so many to one …
const TOGETHER: usize = 6;
/// … and this many of those are kept: 55 minutes.
const OLD_MAX: usize = 110;

/// Tenants of a step, those with the largest shares: more than the dashboard draws, so that one who
/// was among its six is there. With a name of 64 bytes one takes 150 bytes: 420 KiB for all steps,
/// however many tenants there are.
const TENANTS_MAX: usize = 16;

/// The ring, and what the next step is measured against.
#[derive(Default)]
pub(crate) struct Past {
    /// The last five minutes, and up to half a minute more.
    steps: VecDeque<PastStep>,
    /// What was before.
    old: VecDeque<PastStep>,
    /// The busiest at the last step.
    before: BTreeMap<String, Kept>,
}

impl Past {
    /// Keeps what happened in the turn that ended with this call to [`Registry::turn`], at `at_ms`
    /// since 1970.
    pub(crate) fn step(
        &mut self,
        registry: &Registry,
        capacities: &Capacities,
        (now_ns, at_ms): (u64, u64),
    ) {
        let recent: Vec<(String, Recent)> = registry.recent(now_ns).into_iter().collect();
        // What a tenant got does not depend on weights, and what it was entitled to is not kept.
        let used: Vec<_> = recent
            .iter()
            .map(|(_, recent)| Using {
                weight: 1.0,
                weight_here: 1.0,
                used: Some(*recent),
            })
            .collect();
        let got = shares(&used, None, capacities);
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
            // One that was not among the busiest has nothing to subtract: its latencies begin with
            // the next step.
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
            span_s: TURN.as_secs() as u32,
            tenants,
            others,
        });
        if self.steps.len() >= STEPS_MAX + TOGETHER {
            let steps: Vec<PastStep> = self.steps.drain(..TOGETHER).collect();
            self.old.push_back(together(&steps));
        }
        while self.old.len() > OLD_MAX {
            self.old.pop_front();
        }
    }

    /// All that is kept.
    pub(crate) fn view(&self) -> PastView {
        PastView {
            steps: self.old.iter().chain(&self.steps).cloned().collect(),
        }
    }
}

/// Several steps as one. Rates and shares are means; latencies are those of the worst step, which a
/// mean would hide. A tenant that is missing in a step counts as idle there.
fn together(steps: &[PastStep]) -> PastStep {
    let mut tenants: BTreeMap<&str, PastTenant> = BTreeMap::new();
    for one in steps.iter().flat_map(|step| &step.tenants) {
        let sum = tenants.entry(&one.name).or_insert_with(|| PastTenant {
            name: one.name.clone(),
            requests_per_s: 0.0,
            p50_ms: None,
            p99_ms: None,
            got_percent: 0.0,
        });
        sum.requests_per_s += one.requests_per_s;
        sum.got_percent += one.got_percent;
        if one.p99_ms > sum.p99_ms {
            (sum.p50_ms, sum.p99_ms) = (one.p50_ms, one.p99_ms);
        }
    }
    let mut tenants: Vec<PastTenant> = tenants.into_values().collect();
    let count = steps.len().max(1) as f64;
    for tenant in &mut tenants {
        tenant.requests_per_s = super::frame::short(tenant.requests_per_s / count);
        tenant.got_percent = super::frame::short(tenant.got_percent / count);
    }
    tenants.sort_by(|a, b| b.got_percent.total_cmp(&a.got_percent));
    let cut = tenants.len().saturating_sub(TENANTS_MAX) as u64;
    tenants.truncate(TENANTS_MAX);
    PastStep {
        at_ms: steps.last().map_or(0, |step| step.at_ms),
        span_s: steps.iter().map(|step| step.span_s).sum(),
        tenants,
        others: cut + steps.iter().map(|step| step.others).max().unwrap_or(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorder::{Recorder, Request};
    use crate::Class;

    const TURN_NS: u64 = 5_000_000_000;
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
            parts: crate::TimeParts::default(),
        };
        who.record_many(&request, count);
    }

    fn step(past: &mut Past, registry: &Registry, number: u64) {
        registry.turn(number * TURN_NS);
        past.step(registry, &CAPACITIES, (number * TURN_NS, number * 5_000));
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
        for turn in 2..900 {
            for (count, tenant) in tenants.iter_mut().enumerate() {
                gets(tenant, 1_000, count as u64);
            }
            step(&mut past, &registry, turn);
        }
        let steps = past.view().steps;
        let hour_s: u32 = steps.iter().map(|one| one.span_s).sum();
        assert!((3_600..=3_630).contains(&hour_s), "{hour_s}");
        assert_eq!(steps.last().expect("some").at_ms, 899 * 5_000);
        for pair in steps.windows(2) {
            let span_ms = u64::from(pair[1].span_s) * 1_000;
            assert_eq!(pair[1].at_ms - pair[0].at_ms, span_ms, "nothing is missing");
        }
        let full = |one: &PastStep| (one.tenants.len(), one.others) == (TENANTS_MAX, 13);
        assert!(steps.iter().all(full), "one of thirty asks for nothing");
        assert_eq!(steps[9].tenants[0].name, "t29", "the busiest first");
        assert_eq!(steps[9].tenants[0].requests_per_s, 29.0 / 5.0);
    }

    #[test]
    fn older_steps_are_put_together() {
        let ran = |name: &str, rate: f64, p99_ms| PastTenant {
            name: name.into(),
            requests_per_s: rate,
            p50_ms: Some(rate),
            p99_ms,
            got_percent: rate,
        };
        let steps = [
            (1, vec![ran("web", 60.0, Some(9.0))]),
            (
                2,
                vec![ran("web", 30.0, None), ran("late", 30.0, Some(1.0))],
            ),
            (3, vec![ran("web", 30.0, Some(2.0))]),
        ];
        let steps = steps.map(|(number, tenants)| PastStep {
            at_ms: 5_000 * number,
            span_s: 5,
            tenants,
            others: number % 2,
        });
        let one = together(&steps);
        assert_eq!((one.at_ms, one.span_s, one.others), (15_000, 15, 1));
        let told: Vec<_> = (one.tenants.iter())
            .map(|t| (t.name.as_str(), t.requests_per_s, t.p50_ms, t.p99_ms))
            .collect();
        let web = ("web", 40.0, Some(60.0), Some(9.0));
        assert_eq!(told, [web, ("late", 10.0, Some(30.0), Some(1.0))]);
    }
}
