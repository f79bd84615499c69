//! The figures of a load: the part of `result.json` that is about numbers.

use serde::{Deserialize, Serialize};

use crate::draw::Class;
use crate::stats::{ClassStats, Outcome, Series, TenantStats};

/// What a run measured, as `figures` of its `result.json`. Rates are per second of the measured
/// time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// Measured time, seconds.
    pub elapsed_s: f64,
    /// What ran before it, seconds.
    pub warm_up_s: f64,
    /// Why the run ended before its time, if it did.
    pub cut_short: Option<String>,
    /// Requests of loads that send so many in all which were neither answered nor failed at the
    /// end; `None` where there are no such loads.
    #[serde(default)]
    pub left: Option<u64>,
    /// How the load generator fared.
    pub generator: GeneratorFigures,
    /// One for each tenant and workload tag, in the order of the scenario.
    pub tenants: Vec<TenantFigures>,
}

/// How the load generator fared.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GeneratorFigures {
    /// Share of the time that its busiest thread was on a CPU.
    pub busy: f64,
    /// CPU time of all its threads, seconds.
    pub cpu_s: f64,
    /// 1 % of the requests of open loops were sent so long after their time or later, ms.
    pub lag_p99_ms: f64,
    /// How often a front sent a request on to another one (`MOVED`), which is no failure.
    #[serde(default)]
    pub moved: u64,
    /// Why the figures describe the generator rather than the server, if they do.
    pub complaint: Option<String>,
}

/// One tenant.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TenantFigures {
    /// Its name.
    pub name: String,
    /// Workload tag; may be empty.
    pub tag: String,
    /// Its weight in the scenario; 1 where that says nothing.
    pub weight: f64,
    /// All classes together.
    pub total: LoadFigures,
    /// Those that were asked.
    pub classes: Vec<ClassFigures>,
    /// What went wrong.
    pub errors: Vec<ErrorFigures>,
    /// Second by second.
    pub series: SeriesFigures,
}

/// One class of one tenant.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClassFigures {
    /// The class.
    pub class: String,
    /// Its figures.
    #[serde(flatten)]
    pub load: LoadFigures,
}

/// What was asked and what came of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadFigures {
    /// Requests due (open loop) or sent (closed loop) a second.
    pub offered_per_s: f64,
    /// Requests answered without an error a second, whenever they were due.
    pub rate_per_s: f64,
    /// Of those due in the measured time: answered without an error.
    pub completed: u64,
    /// Of those due in the measured time: answered with an error, or never.
    pub failed: u64,
    /// Of the completed ones: answered after the measured time.
    pub late: u64,
    /// Keys that were not there.
    pub missed: u64,
    /// Reply bytes a second.
    pub bytes_in_per_s: f64,
    /// Request bytes a second.
    pub bytes_out_per_s: f64,
    /// From when a request was due to its reply.
    pub latency_ms: LatencyFigures,
}

/// Latency of the completed requests, ms; 0 where there are none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "percentiles that say their name")]
pub struct LatencyFigures {
    pub mean: f64,
    pub p50: f64,
    pub p90: f64,
    pub p95: f64,
    pub p99: f64,
    pub p999: f64,
    pub max: f64,
}

/// Errors of one kind.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ErrorFigures {
    /// The first word of the server's text, or `connection-lost`, `unsent`, `unanswered`,
    /// `moved`.
    pub kind: String,
    /// How many.
    pub count: u64,
    /// The first one's whole text.
    pub example: String,
}

/// Second by second; all lists are equally long.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SeriesFigures {
    /// The end of each second, from the end of the warm-up.
    pub t_s: Vec<u64>,
    /// Requests due or sent in it.
    pub offered_per_s: Vec<u64>,
    /// Requests answered in it without an error.
    pub rate_per_s: Vec<u64>,
    /// Requests that failed in it.
    pub failed_per_s: Vec<u64>,
    /// Median latency of what was answered in it; `null` where nothing was.
    pub p50_ms: Vec<Option<f64>>,
    /// 95th percentile of the same.
    #[serde(default)]
    pub p95_ms: Vec<Option<f64>>,
    /// 99th percentile of the same.
    pub p99_ms: Vec<Option<f64>>,
    /// Most operations that were sent and not answered at a time in it; only the simulator counts
    /// them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outstanding: Vec<u64>,
    /// Its share of the handlers as a controller set it, or else its part of what disks did, in
    /// percent; only the simulator knows, and only where it has disks and a controller.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub share: Vec<f64>,
    /// What it may have outstanding together with all others that were promised nothing: handlers
    /// where a controller sizes their pool, else I/Os at all disks; only the simulator knows, and
    /// only of such tenants, and where it has disks and a controller.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub permits: Vec<u64>,
}

/// The figures of an outcome. `weight` knows the tenants' weights.
pub fn figures(outcome: &Outcome, weight: impl Fn(&str) -> f64) -> Figures {
    let tenants = outcome.tenants.iter();
    let generator = &outcome.generator;
    Figures {
        elapsed_s: outcome.elapsed_s,
        warm_up_s: outcome.warm_up_s,
        left: outcome.left,
        cut_short: outcome.cut_short.clone(),
        generator: GeneratorFigures {
            busy: generator.busy,
            cpu_s: generator.cpu_s,
            lag_p99_ms: ms(generator.lag.percentile_ns(99.0) as f64),
            moved: generator.moved,
            complaint: generator.complaint(),
        },
        tenants: tenants
            .map(|t| tenant(outcome, t, weight(&t.tenant)))
            .collect(),
    }
}

fn ms(ns: f64) -> f64 {
    ns / 1e6
}

fn tenant(outcome: &Outcome, stats: &TenantStats, weight: f64) -> TenantFigures {
    let asked = Class::ALL.into_iter().filter(|class| {
        let class = stats.class(*class);
        class.offered + class.answered > 0
    });
    TenantFigures {
        name: stats.tenant.clone(),
        tag: stats.tag.clone(),
        weight,
        total: load(outcome, &stats.total()),
        classes: asked
            .map(|class| ClassFigures {
                class: class.name().into(),
                load: load(outcome, stats.class(class)),
            })
            .collect(),
        errors: stats
            .errors
            .iter()
            .map(|(kind, error)| ErrorFigures {
                kind: kind.clone(),
                count: error.count,
                example: error.example.clone(),
            })
            .collect(),
        series: series(&stats.series),
    }
}

fn load(outcome: &Outcome, stats: &ClassStats) -> LoadFigures {
    let latency = stats.latency();
    let at = |percent| ms(latency.percentile_ns(percent) as f64);
    let per_s = |count: u64| count as f64 / outcome.elapsed_s.max(1e-9);
    LoadFigures {
        offered_per_s: per_s(stats.offered),
        rate_per_s: per_s(stats.answered),
        completed: stats.completed,
        failed: stats.failed,
        late: stats.late,
        missed: stats.missed,
        bytes_in_per_s: per_s(stats.bytes_in),
        bytes_out_per_s: per_s(stats.bytes_out),
        latency_ms: LatencyFigures {
            mean: ms(latency.mean_ns()),
            p50: at(50.0),
            p90: at(90.0),
            p95: at(95.0),
            p99: at(99.0),
            p999: at(99.9),
            max: ms(latency.max_ns() as f64),
        },
    }
}

/// The seconds of a series.
pub fn series(series: &Series) -> SeriesFigures {
    let seconds = series.seconds();
    SeriesFigures {
        t_s: (1..=seconds.len() as u64).collect(),
        offered_per_s: seconds.iter().map(|s| s.offered).collect(),
        rate_per_s: seconds.iter().map(|s| s.answered).collect(),
        failed_per_s: seconds.iter().map(|s| s.failed).collect(),
        p50_ms: seconds.iter().map(|s| s.percentile_ms(50.0)).collect(),
        p95_ms: seconds.iter().map(|s| s.percentile_ms(95.0)).collect(),
        p99_ms: seconds.iter().map(|s| s.percentile_ms(99.0)).collect(),
        outstanding: Vec::new(),
        share: Vec::new(),
        permits: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_name_what_was_asked_and_survive_json() {
        let mut stats = TenantStats::new("web", "");
        let get = stats.class_mut(Class::Get);
        (get.offered, get.answered, get.completed) = (20, 19, 19);
        stats.fail(Class::Get, "THROTTLED slow down");
        let outcome = Outcome {
            tenants: vec![stats],
            elapsed_s: 2.0,
            ..Outcome::default()
        };
        let made = figures(&outcome, |_| 3.0);
        let web = &made.tenants[0];
        assert_eq!((web.weight, web.classes.len()), (3.0, 1));
        assert_eq!((web.total.offered_per_s, web.total.rate_per_s), (10.0, 9.5));
        assert_eq!(web.errors[0].example, "THROTTLED slow down");
        let json = serde_json::to_value(&made).expect("JSON");
        assert_eq!(json["tenants"][0]["classes"][0]["rate_per_s"], 9.5);
        let again: Figures = serde_json::from_value(json).expect("figures");
        assert_eq!(again, made);
    }
}
