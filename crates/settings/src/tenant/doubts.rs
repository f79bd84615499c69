//! Workloads and promises of one tenant that contradict each other or cannot mean what they say:
//! the same check, in the same words, for the file, for scenarios and for commands.

use policy::words::Words;

use super::lists::is_name;
use super::promised::{Slo, WORKLOADS_MAX};
use super::Settings;
use crate::problem::Severity;
use crate::units::{Rate, Time};

/// Something that is wrong or doubtful.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Doubt {
    /// An error is refused; a warning is said.
    pub severity: Severity,
    /// Which list: `slo` or `workload`.
    pub list: &'static str,
    /// Its place in the list.
    pub place: usize,
    /// The key in that table.
    pub key: &'static str,
    /// What is wrong.
    pub what: String,
    /// What to do.
    pub advice: &'static str,
}

impl std::fmt::Display for Doubt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}; {}", self.what, self.advice)
    }
}

impl Settings {
    /// Everything that is wrong or doubtful with its workloads and promises.
    #[must_use]
    pub fn doubts(&self) -> Vec<Doubt> {
        let mut doubts = Vec::new();
        self.doubt_workloads(&mut doubts);
        for (place, slo) in self.slos.iter().enumerate() {
            let mut add = |severity, key, what: String, advice| {
                let what = format!("the promise for {} {what}", slo.of());
                doubts.push(Doubt {
                    severity,
                    list: "slo",
                    place,
                    key,
                    what,
                    advice,
                });
            };
            self.doubt_whose(place, slo, &mut add);
            self.doubt_targets(slo, &mut add);
        }
        doubts
    }

    fn doubt_workloads(&self, doubts: &mut Vec<Doubt>) {
        for (place, workload) in self.workloads.iter().enumerate() {
            let name = &workload.name;
            let mut add = |key, what: String, advice| {
                let (severity, list) = (Severity::Error, "workload");
                doubts.push(Doubt {
                    severity,
                    list,
                    place,
                    key,
                    what,
                    advice,
                });
            };
            if !is_name(name) {
                let what = format!("{name:?} is not a workload's name");
                add(
                    "name",
                    what,
                    "use 1 to 64 of A-Z a-z 0-9 _ . -, the first not a point",
                );
            }
            if self.workloads[..place]
                .iter()
                .any(|earlier| earlier.name == *name)
            {
                let what = format!("there is another workload {name:?}");
                add("name", what, "choose another name, or join the two");
            }
            if place == WORKLOADS_MAX {
                let what = format!("it has more than {WORKLOADS_MAX} workloads");
                add("name", what, "let patterns join some of them");
            }
        }
    }

    fn doubt_whose(&self, place: usize, slo: &Slo, add: &mut Add<'_>) {
        let named = |name: &String| self.workloads.iter().any(|one| one.name == *name);
        if let Some(workload) = slo.workload.as_ref().filter(|name| !named(name)) {
            let what = format!("is for a workload {workload:?} that the tenant does not have");
            let advice = "add [[tenant.workload]] with that name, or take `workload` out";
            add(Severity::Error, "workload", what, advice);
        }
        let same = |earlier: &&Slo| earlier.is_of(slo.workload.as_deref(), slo.class);
        if self.slos[..place].iter().find(same).is_some() {
            let advice = "put latency and throughput into one [[tenant.slo]]";
            add(Severity::Error, "class", "is given twice".into(), advice);
        }
    }

    fn doubt_targets(&self, slo: &Slo, add: &mut Add<'_>) {
        let objective = slo.objective();
        if objective.latency.is_none() && objective.throughput_per_s.is_none() {
            let advice = "add latency = { p = 99.0, at_most = \"20ms\" } or throughput = \"40/s\"";
            add(Severity::Error, "class", "promises nothing".into(), advice);
        }
        self.doubt_rates(slo, add);
        self.doubt_window(slo, add);
        self.doubt_classes(slo, add);
    }

    /// A rate that the tenant's own contract or limit does not let it have.
    fn doubt_rates(&self, slo: &Slo, add: &mut Add<'_>) {
        let objective = slo.objective();
        let contract = objective.contract_per_s.or(self.contract_per_s);
        let beyond = |most: Option<f64>, rate: f64| most.filter(|most| rate > *most);
        if let Some(rate) = objective.throughput_per_s {
            let rate_words = Rate::words(rate);
            if let Some(most) = beyond(contract, rate) {
                let what = format!(
                    "is for {rate_words}, but beyond contract = {} no promise holds",
                    Rate::words(most)
                );
                add(
                    Severity::Error,
                    "throughput",
                    what,
                    "raise the contract or promise less",
                );
            } else if let Some(most) = beyond(self.limit.requests_per_s, rate) {
                let what = format!(
                    "is for {rate_words}, more than limit.requests = {} lets through",
                    Rate::words(most)
                );
                add(
                    Severity::Error,
                    "throughput",
                    what,
                    "raise the limit or promise less",
                );
            }
        }
        for (key, most) in [
            ("contract", self.contract_per_s),
            ("limit.requests", self.limit.requests_per_s),
        ] {
            if let Some(most) = slo.contract_per_s.and_then(|rate| beyond(most, rate)) {
                let what = format!(
                    "has a contract beyond the tenant's {key} = {}",
                    Rate::words(most)
                );
                add(
                    Severity::Warning,
                    "contract",
                    what,
                    "raise the tenant's or lower this one",
                );
            }
        }
    }

    /// A percentile of fewer requests than tell it from their maximum.
    fn doubt_window(&self, slo: &Slo, add: &mut Add<'_>) {
        let objective = slo.objective();
        let contract = objective.contract_per_s.or(self.contract_per_s);
        if let Some((latency, rate)) = objective.latency.zip(contract) {
            let window_s = objective.window_ns as f64 / 1e9;
            let (expected, least) = (rate * window_s, latency.sample_least());
            if expected < least as f64 {
                let what = format!(
                    "is judged in windows of {}, of about {expected:.0} requests: one that is late breaks it, since p{} of fewer \
                     than {least} requests is their maximum",
                    Time::from_ns(objective.window_ns),
                    latency.percentile,
                );
                add(
                    Severity::Warning,
                    "window",
                    what,
                    "choose a longer window or a lower percentile",
                );
            }
        }
    }

    /// Not even all of the tenant's promises together, where one class's is part of another's.
    fn doubt_classes(&self, slo: &Slo, add: &mut Add<'_>) {
        let any = |other: &&Slo| {
            other.is_of(slo.workload.as_deref(), super::SloClass::Any) && slo.class != other.class
        };
        let Some((all, rate)) = self.slos.iter().find(any).zip(slo.throughput_per_s) else {
            return;
        };
        if let Some(most) = all.contract_per_s.filter(|most| rate > *most) {
            let what = format!(
                "is for {}, but that for {} has contract = {}",
                Rate::words(rate),
                all.class.word(),
                Rate::words(most)
            );
            add(
                Severity::Warning,
                "throughput",
                what,
                "raise that contract or promise less",
            );
        }
    }
}

type Add<'a> = dyn FnMut(Severity, &'static str, String, &'static str) + 'a;
