//! One number from some tenants' figures.

use workload::report::figures::LoadFigures;

use crate::observed::Observed;

use super::{finite, Measured};

/// A figure that every tenant has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Figure {
    /// Requests answered per second.
    #[default]
    Rate,
    /// Requests offered per second.
    Offered,
    /// Part of the offered requests that were answered in time, 0 to 1.
    Served,
    /// Requests that failed.
    Failed,
    /// Bytes of replies and requests per second.
    Bytes,
    /// Bytes of replies per second.
    BytesIn,
    /// Bytes of requests per second.
    BytesOut,
    /// Processor time that the server charged, seconds per second.
    Cpu,
    /// Part of the windows in which its promise was kept, by the server, 0 to 1.
    Kept,
    /// Windows before the first from which on its promise was kept in all; infinite if the last
    /// was missed.
    Converged,
    /// What it lacked of its promise, weighted by importance; simulated runs only.
    Badness,
    /// Latency, ms: mean, percentiles, highest.
    Mean,
    /// Median.
    P50,
    /// 90th percentile.
    P90,
    /// 95th percentile.
    P95,
    /// 99th percentile.
    P99,
    /// 99.9th percentile.
    P999,
    /// Highest.
    Max,
    /// Median of the server's own histogram.
    ServerP50,
    /// Its 99th percentile.
    ServerP99,
    /// Median of the client less the server's: what the way between them takes.
    Network,
    /// The client's 99th percentile less that.
    P99LessNetwork,
    /// Most operations outstanding at a time; second by second only.
    Outstanding,
    /// Share of the handlers as a controller set it, or else part of what disks did, percent;
    /// second by second only.
    Share,
    /// What tenants without a promise may have outstanding; second by second only.
    Permits,
    /// Processor time of the load generator for each request answered, ns.
    Generator,
    /// Seconds until all loads that send so many requests in all were answered.
    Finished,
    /// A figure of the whole run, which no tenant has: of the simulator, of nodes or of a program.
    Whole(&'static str),
}

impl Figure {
    /// Names in experiments, with the figure and its unit.
    pub const WORDS: [(&'static str, Self, &'static str); 80] = [
        ("rate", Self::Rate, "req/s"),
        ("offered", Self::Offered, "req/s"),
        ("served", Self::Served, ""),
        ("failed", Self::Failed, "requests"),
        ("bytes", Self::Bytes, "B/s"),
        ("bytes-in", Self::BytesIn, "B/s"),
        ("bytes-out", Self::BytesOut, "B/s"),
        ("cpu", Self::Cpu, "s/s"),
        ("kept", Self::Kept, ""),
        ("converged", Self::Converged, "windows"),
        ("badness", Self::Badness, ""),
        ("mean", Self::Mean, "ms"),
        ("p50", Self::P50, "ms"),
        ("p90", Self::P90, "ms"),
        ("p95", Self::P95, "ms"),
        ("p99", Self::P99, "ms"),
        ("p999", Self::P999, "ms"),
        ("max", Self::Max, "ms"),
        ("server-p50", Self::ServerP50, "ms"),
        ("server-p99", Self::ServerP99, "ms"),
        ("network", Self::Network, "ms"),
        ("p99-less-network", Self::P99LessNetwork, "ms"),
        ("outstanding", Self::Outstanding, "operations"),
        ("share", Self::Share, "%"),
        ("permits", Self::Permits, ""),
        ("generator", Self::Generator, "ns"),
        ("finished", Self::Finished, "s"),
        ("utilisation", Self::Whole("utilisation"), ""),
        ("moves", Self::Whole("moves"), ""),
        ("events", Self::Whole("events"), ""),
        ("operations", Self::Whole("operations"), "op/s"),
        ("inversions", Self::Whole("inversions"), ""),
        ("processor-each", Self::Whole("processor-each"), "us"),
        ("took", Self::Whole("took"), "s"),
        ("beside-p50", Self::Whole("beside-p50"), "ms"),
        ("beside-p99", Self::Whole("beside-p99"), "ms"),
        ("beside-worst", Self::Whole("beside-worst"), "ms"),
        ("quiet-worst", Self::Whole("quiet-worst"), "ms"),
        ("turn", Self::Whole("turn"), "ms"),
        ("forgiven", Self::Whole("forgiven"), "ms"),
        ("charged", Self::Whole("charged"), ""),
        ("answers-right", Self::Whole("answers-right"), ""),
        ("promises-broken", Self::Whole("promises-broken"), ""),
        ("needlessly-refused", Self::Whole("needlessly-refused"), ""),
        ("let-in", Self::Whole("let-in"), ""),
        ("all-kept", Self::Whole("all-kept"), ""),
        ("solve", Self::Whole("solve"), "s"),
        ("iterations", Self::Whole("iterations"), ""),
        ("highest-use", Self::Whole("highest-use"), ""),
        ("least-slack", Self::Whole("least-slack"), ""),
        ("slack-short", Self::Whole("slack-short"), ""),
        ("mmr-least", Self::Whole("mmr-least"), ""),
        ("mmr-median", Self::Whole("mmr-median"), ""),
        ("vop-mmr-least", Self::Whole("vop-mmr-least"), ""),
        ("vop-read", Self::Whole("vop-read"), "VOP/KiB"),
        ("vop-write", Self::Whole("vop-write"), "VOP/KiB"),
        ("vop-least", Self::Whole("vop-least"), "VOP/s"),
        ("vop-p1", Self::Whole("vop-p1"), "VOP/s"),
        ("vop-median", Self::Whole("vop-median"), "VOP/s"),
        ("vop-max", Self::Whole("vop-max"), "VOP/s"),
        ("vop-floor", Self::Whole("vop-floor"), "VOP/s"),
        ("vop-promisable", Self::Whole("vop-promisable"), "VOP/s"),
        ("vop-capacity", Self::Whole("vop-capacity"), "VOP/s"),
        ("vop-reserved", Self::Whole("vop-reserved"), "VOP/s"),
        ("vop-overbooked", Self::Whole("vop-overbooked"), "VOP/s"),
        ("overbooked-mmr", Self::Whole("overbooked-mmr"), ""),
        ("reserved-scale", Self::Whole("reserved-scale"), ""),
        ("capacity-held", Self::Whole("capacity-held"), ""),
        ("floor-held", Self::Whole("floor-held"), ""),
        ("vop-rate", Self::Whole("vop-rate"), "VOP/s"),
        ("vop-direct", Self::Whole("vop-direct"), "VOP/s"),
        ("vop-flush", Self::Whole("vop-flush"), "VOP/s"),
        ("vop-compaction", Self::Whole("vop-compaction"), "VOP/s"),
        ("vop-charged", Self::Whole("vop-charged"), "VOP/s"),
        ("vop-priced", Self::Whole("vop-priced"), "VOP/s"),
        ("processor", Self::Whole("processor"), "s/s"),
        ("get-direct", Self::Whole("get-direct"), "VOP"),
        ("put-direct", Self::Whole("put-direct"), "VOP"),
        ("put-flush", Self::Whole("put-flush"), "VOP"),
        ("put-compaction", Self::Whole("put-compaction"), "VOP"),
    ];

    /// Those that a server must be asked for while it is loaded.
    pub const OF_SERVERS: [Self; 7] = [
        Self::Cpu,
        Self::Kept,
        Self::Converged,
        Self::ServerP50,
        Self::ServerP99,
        Self::Network,
        Self::P99LessNetwork,
    ];

    /// Whether it is a time that requests take.
    pub fn is_latency(self) -> bool {
        self.unit() == "ms"
    }

    /// Its unit, empty for a ratio.
    pub fn unit(self) -> &'static str {
        let found = Self::WORDS.iter().find(|(_, figure, _)| *figure == self);
        found.map_or("", |(_, _, unit)| unit)
    }

    /// Whether figures of several tenants add up; latencies do not.
    fn adds(self) -> bool {
        matches!(
            self,
            Self::Rate
                | Self::Offered
                | Self::Failed
                | Self::Bytes
                | Self::BytesIn
                | Self::BytesOut
                | Self::Cpu
        )
    }

    /// The figure's value.
    pub fn of(self, figures: &LoadFigures) -> f64 {
        let latency = &figures.latency_ms;
        match self {
            Self::Rate => figures.rate_per_s,
            Self::Offered => figures.offered_per_s,
            Self::Served => figures.rate_per_s / figures.offered_per_s,
            Self::Failed => figures.failed as f64,
            Self::Bytes => figures.bytes_in_per_s + figures.bytes_out_per_s,
            Self::BytesIn => figures.bytes_in_per_s,
            Self::BytesOut => figures.bytes_out_per_s,
            Self::Mean => latency.mean,
            Self::P50 => latency.p50,
            Self::P90 => latency.p90,
            Self::P95 => latency.p95,
            Self::P99 => latency.p99,
            Self::P999 => latency.p999,
            Self::Max => latency.max,
            // Asked of the seconds or of the run, in `value`, and of the tenant, in `each`.
            Self::Outstanding | Self::Share | Self::Permits => f64::NAN,
            Self::Generator | Self::Whole(_) => f64::NAN,
            Self::Cpu | Self::Kept | Self::Converged | Self::Badness => f64::NAN,
            Self::ServerP50 | Self::ServerP99 | Self::Finished => f64::NAN,
            Self::Network | Self::P99LessNetwork => f64::NAN,
        }
    }
}

/// How the figures of several tenants become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Combine {
    /// Their sum.
    Sum,
    /// Their mean.
    Mean,
    /// The highest.
    Highest,
    /// The lowest.
    Lowest,
}

impl Combine {
    /// Names in experiments.
    pub const WORDS: [(&'static str, Self); 4] = [
        ("sum", Self::Sum),
        ("mean", Self::Mean),
        ("highest", Self::Highest),
        ("lowest", Self::Lowest),
    ];
}

/// Which figure of whom.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Choice {
    /// Names or groups; none means all.
    pub tenants: Vec<String>,
    /// One class; `None` all together.
    pub class: Option<String>,
    /// The figure.
    pub figure: Figure,
    /// `None`: the sum of what adds up, the highest of what does not.
    pub combine: Option<Combine>,
}

impl Choice {
    /// One value for each chosen tenant, with its weight.
    pub(super) fn each(&self, run: &Observed) -> Result<Vec<(f64, f64)>, String> {
        let tenants = run.select(&self.tenants)?;
        tenants
            .iter()
            .map(|tenant| {
                let class = self.class.as_deref();
                let name = &tenant.load.name;
                let network = || -> Measured {
                    Ok(tenant.figures(class)?.latency_ms.p50 - tenant.server_ms(class)?.p50)
                };
                let value = match (self.figure, &self.class) {
                    (Figure::Cpu, Some(_)) => {
                        return Err("processor time is not charged by class".into())
                    }
                    (Figure::Cpu, None) => tenant.cpu_per_s.unwrap_or(f64::NAN),
                    (Figure::Kept | Figure::Converged | Figure::Badness, Some(_)) => {
                        return Err("promises are not told apart by class here".into())
                    }
                    (Figure::Kept, None) => tenant.kept().unwrap_or(f64::NAN),
                    (Figure::Converged, None) => tenant.converged().unwrap_or(f64::NAN),
                    (Figure::Badness, None) => tenant.badness.unwrap_or(f64::NAN),
                    (Figure::ServerP50, _) => tenant.server_ms(class)?.p50,
                    (Figure::ServerP99, _) => tenant.server_ms(class)?.p99,
                    (Figure::Network, _) => network()?,
                    (Figure::P99LessNetwork, _) => {
                        tenant.figures(class)?.latency_ms.p99 - network()?
                    }
                    (figure, _) => figure.of(tenant.figures(class)?),
                };
                let never = self.figure == Figure::Converged && value.is_infinite();
                let value = if never { value } else { finite(value, name)? };
                Ok((value, tenant.load.weight))
            })
            .collect()
    }
}

/// The figure of the chosen tenants, as one number.
///
/// # Errors
/// Why there is none.
pub fn value(run: &Observed, choice: &Choice) -> Measured {
    if let Figure::Whole(name) = choice.figure {
        let found = run.figures.get(name).copied();
        return found.ok_or_else(|| format!("the run has no figure {name:?}"));
    }
    if choice.figure == Figure::Finished {
        return run.finished_s();
    }
    if choice.figure == Figure::Generator {
        let tenants = run.tenants.iter();
        let rate: f64 = tenants.map(|one| one.load.total.rate_per_s).sum();
        return finite(
            run.generator.cpu_s * 1e9 / (rate * run.elapsed_s),
            "the figure",
        );
    }
    if choice.figure == Figure::Failed && nothing_asked(run, choice)? {
        return Err(
            "nothing was asked for in the measured time, so nothing can have failed".into(),
        );
    }
    let each = choice.each(run)?;
    let values = each.iter().map(|(value, _)| *value);
    let usual = if choice.figure.adds() {
        Combine::Sum
    } else {
        Combine::Highest
    };
    let combined = match choice.combine.unwrap_or(usual) {
        Combine::Sum => values.sum(),
        Combine::Mean => values.sum::<f64>() / each.len() as f64,
        Combine::Highest => values.fold(f64::NEG_INFINITY, f64::max),
        Combine::Lowest => values.fold(f64::INFINITY, f64::min),
    };
    match choice.figure {
        Figure::Converged => Ok(combined),
        _ => finite(combined, "the figure"),
    }
}

/// Whether the chosen tenants offered no request at all: a closed loop that a busy machine kept
/// waiting for what it had sent before.
fn nothing_asked(run: &Observed, choice: &Choice) -> Result<bool, String> {
    let offered = Choice {
        figure: Figure::Offered,
        ..choice.clone()
    };
    let each = offered.each(run)?;
    Ok(each.iter().all(|(rate, _)| *rate == 0.0))
}

#[cfg(test)]
mod tests;
