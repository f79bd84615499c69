//! What had been counted at one moment.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::compact::CompactClass;
use crate::model::{StageSnapshot, TenantStage};
use crate::registry::Registry;
use crate::totals::{ClassTotals, Usage};
use crate::Class;

/// Tenants whose latencies are looked at in one reading, the busiest first. Reading one costs some
/// ten microseconds a core and keeping it some KiB, and nobody reads a longer list.
pub(super) const LATENCIES_MAX: usize = 1_000;

/// Every counter at one moment.
#[derive(Default)]
pub(super) struct Reading {
    pub(super) at_ns: u64,
    /// CPU time of the process, seconds.
    pub(super) cpu_s: f64,
    pub(super) tenants: BTreeMap<String, Arc<Kept>>,
    /// What each stage of each core had counted.
    pub(super) stages: BTreeMap<(String, u32), StageCount>,
}

/// What a stage had counted when it was last written down, which is up to a second before the
/// reading.
#[derive(Clone, Copy, Default)]
pub(super) struct StageCount {
    pub(super) at_ns: u64,
    pub(super) admitted: u64,
    pub(super) busy_ns: u64,
}

impl StageCount {
    fn of(stage: &StageSnapshot) -> Self {
        Self {
            at_ns: stage.at_ns,
            admitted: stage.admitted,
            busy_ns: stage.busy_ns,
        }
    }
}

/// One tenant's counters at one moment.
#[derive(Default)]
pub(super) struct Kept {
    pub(super) usage: Usage,
    pub(super) stages: Vec<TenantStage>,
    /// None when the tenant was not among the busiest.
    pub(super) classes: Option<Vec<CompactClass>>,
}

impl Reading {
    /// The time from `before` to this for which a kind of stage has counts, s: each core writes
    /// them down in its own time.
    pub(super) fn span_of(&self, before: &Self, stage: &str) -> Option<f64> {
        let of = |reading: &Self| {
            let cores = reading.stages.iter().filter(|((kind, _), _)| kind == stage);
            let (sum, count) = cores.fold((0, 0), |(sum, count), (_, seen)| {
                (sum + u128::from(seen.at_ns), count + 1)
            });
            sum.checked_div(count)
        };
        let span_ns = of(self)?.saturating_sub(of(before)?);
        (span_ns > 0).then_some(span_ns as f64 / 1e9)
    }

    /// Reads all counters. A tenant that did nothing since `previous` shares what was kept of it
    /// there.
    pub(super) fn take(
        registry: &Registry,
        mut stages_of: BTreeMap<String, Vec<TenantStage>>,
        stages: &[StageSnapshot],
        cpu_s: f64,
        (previous, at_ns): (Option<&Self>, u64),
    ) -> Self {
        let mut tenants = BTreeMap::new();
        let mut changed = Vec::new();
        for (name, usage) in registry.usages() {
            let before = previous.and_then(|previous| previous.tenants.get(&name));
            let stages = stages_of.remove(&name).unwrap_or_default();
            match before {
                Some(kept) if kept.usage == usage && kept.stages == stages => {
                    tenants.insert(name, Arc::clone(kept));
                }
                _ => {
                    let earlier = before.map(|kept| kept.usage).unwrap_or_default();
                    let since = usage.since(&earlier);
                    changed.push((since.requests + since.throttled, name, usage, stages));
                }
            }
        }
        changed.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
        for (place, (_, name, usage, stages)) in changed.into_iter().enumerate() {
            let classes = (place < LATENCIES_MAX)
                .then(|| registry.totals(&name).map(CompactClass::of))
                .flatten();
            let kept = Kept {
                usage,
                stages,
                classes,
            };
            tenants.insert(name, Arc::new(kept));
        }
        let stages = stages
            .iter()
            .map(|stage| ((stage.stage.clone(), stage.core), StageCount::of(stage)))
            .collect();
        Self {
            at_ns,
            cpu_s,
            tenants,
            stages,
        }
    }
}

/// What one tenant did between two readings.
#[derive(Default)]
pub(super) struct Spent {
    pub(super) usage: Usage,
    /// Waits and decisions are those of the time between; what waits now is now.
    pub(super) stages: Vec<TenantStage>,
    /// Classes with anything counted in between.
    pub(super) classes: Vec<(Class, ClassTotals)>,
    /// The class of most requests since the start, or where it was not used in between, in between:
    /// the one whose latency stands for the tenant, and does not change from second to second.
    pub(super) main: Option<Class>,
}

impl Spent {
    pub(super) fn between(before: Option<&Kept>, now: &Kept) -> Self {
        let nothing = Kept::default();
        // Counters of a tenant that was not there all began at 0 after `before`.
        let earlier = before.unwrap_or(&nothing);
        let mut spent = Self {
            usage: now.usage.since(&earlier.usage),
            stages: stages(&earlier.stages, &now.stages),
            ..Self::default()
        };
        let base = match (&earlier.classes, before) {
            (Some(classes), _) => classes.as_slice(),
            (None, None) => &[],
            // It was there but not among the busiest: there is nothing to subtract.
            (None, Some(_)) => return spent,
        };
        let mut busiest = 0;
        for class in now.classes.iter().flatten() {
            let earlier = base.iter().find(|earlier| earlier.class == class.class);
            let totals = class.since(earlier);
            if totals.requests > 0 && class.requests() > busiest {
                (busiest, spent.main) = (class.requests(), Some(class.class));
            }
            if !totals.is_empty() {
                spent.classes.push((class.class, totals));
            }
        }
        spent
    }

    /// The totals of the main class.
    pub(super) fn of_main(&self) -> Option<&ClassTotals> {
        let main = self.main?;
        let mut classes = self.classes.iter();
        Some(&classes.find(|(class, _)| *class == main)?.1)
    }

    /// True when nothing was asked and nothing done.
    pub(super) fn is_idle(&self) -> bool {
        self.usage == Usage::default()
    }
}

fn stages(before: &[TenantStage], now: &[TenantStage]) -> Vec<TenantStage> {
    let since = |now: &TenantStage| {
        let earlier = before.iter().find(|earlier| earlier.stage == now.stage);
        let nothing = TenantStage::default();
        let earlier = earlier.unwrap_or(&nothing);
        TenantStage {
            admitted: now.admitted.saturating_sub(earlier.admitted),
            refused: now.refused.saturating_sub(earlier.refused),
            waited_ns: now.waited_ns.saturating_sub(earlier.waited_ns),
            busy_ns: now.busy_ns.saturating_sub(earlier.busy_ns),
            ..now.clone()
        }
    };
    now.iter().map(since).collect()
}
