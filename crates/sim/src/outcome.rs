//! What came out of a run.

use hdrhistogram::Histogram;
use policy::slo::{Counts, Objective, Outcome as Verdict};
use policy::Nanos;
use workload::stats::Series;

/// What came out of a run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// By tenant, in the order of the spec.
    pub tenants: Vec<TenantOutcome>,
    /// Events that happened.
    pub events: u64,
    /// Share of the nodes' permits in use, warm-up excluded, 0 to 1.
    pub utilisation: f64,
    /// Simulated time, warm-up excluded.
    pub measured_ns: Nanos,
    /// Requests without their last reply, of loads that send so many in all; `None`: there are none
    /// such.
    pub left: Option<u64>,
    /// Replicas that the controller gave a node, or another one.
    pub moves: u64,
}

/// What a window showed of a tenant's promise.
#[derive(Clone, Copy, Debug, Default)]
pub struct Window {
    /// Its requests.
    pub counts: Counts,
    /// The promise's percentile of latency, of requests in contract; `None`: there were none.
    pub latency_ns: Option<Nanos>,
}

/// What came out for one tenant.
#[derive(Clone, Debug)]
pub struct TenantOutcome {
    /// Its name.
    pub name: String,
    /// Requests sent after the warm-up.
    pub offered: u64,
    /// Requests answered after the warm-up, whenever they were sent.
    pub answered: u64,
    /// Requests sent after the warm-up and answered, late ones included.
    pub requests: u64,
    /// Of these, answered after the measured time.
    pub late: u64,
    /// Requests sent after the warm-up and refused for a limit.
    pub refused: u64,
    /// Operations of requests sent and answered in the measured time, each counted once however
    /// often it was sent.
    pub operations: u64,
    /// Bytes of values read and written by operations that were answered after the warm-up, each
    /// counted once.
    pub bytes: [u64; 2],
    /// Latencies of `requests` in nanoseconds, to three digits. Counts of 32 bits: with many
    /// tenants histograms are most of a run's memory.
    pub latency_ns: Histogram<u32>,
    /// What was sent and answered in each second after the warm-up.
    pub series: Series,
    /// What became of its promise, window by window after the warm-up; the last that ended.
    pub windows: Vec<Window>,
    /// Most operations that were outstanding at a time, in each of these seconds.
    pub outstanding_max: Vec<u64>,
    /// Its share of the handlers in each interval of a controller of promises, as that set it, or
    /// else its part of what the disks did, 0 to 1. Empty: there is no controller.
    pub shares: Vec<f64>,
    /// What it may have outstanding, together with all others that were promised nothing, in each
    /// interval of a controller of promises: handlers where that sizes their pool, else I/Os at all
    /// disks. Empty: there is no controller, or it was promised something.
    pub permits: Vec<u64>,
    /// Operations of requests sent and not answered, the warm-up's included.
    outstanding: u64,
    /// Of `refused`, after the measured time.
    refused_late: u64,
}

impl TenantOutcome {
    pub(crate) fn new(name: &str) -> Self {
        // Three digits, and no bound: a failure to build either is not possible.
        let latency_ns = Histogram::new(3).unwrap_or_else(|_| unreachable!("three digits"));
        TenantOutcome {
            name: name.into(),
            offered: 0,
            answered: 0,
            requests: 0,
            late: 0,
            refused: 0,
            operations: 0,
            bytes: [0; 2],
            latency_ns,
            series: Series::default(),
            windows: Vec::new(),
            outstanding_max: Vec::new(),
            shares: Vec::new(),
            permits: Vec::new(),
            outstanding: 0,
            refused_late: 0,
        }
    }

    /// Of its windows that said something, in order, in which its promise was kept.
    #[must_use]
    pub fn windows_kept(&self, promised: &Objective) -> Vec<bool> {
        let outcomes = self.windows.iter().map(|one| promised.judge(&one.counts));
        let judged = outcomes.filter(|outcome| *outcome != Verdict::NoData);
        judged.map(|outcome| outcome == Verdict::Met).collect()
    }

    /// What it lacked of its promise in its windows, weighted by importance (Frosting 2.3), in the
    /// mean; `None`: no window said anything.
    #[must_use]
    pub fn badness(&self, promised: &Objective) -> Option<f64> {
        let window_s = promised.window_ns as f64 / 1e9;
        let performance = |window: &Window| {
            let latency = promised.latency.and_then(|wanted| {
                let is_ns = window.latency_ns?;
                Some(wanted.at_most_ns as f64 / is_ns as f64)
            });
            let served = (window.counts.requests + window.counts.beyond) as f64;
            let rate = promised.throughput_per_s;
            let rate = rate.map(|wanted| served / (wanted * window_s));
            latency.into_iter().chain(rate).reduce(f64::min)
        };
        let each: Vec<f64> = self.windows.iter().filter_map(performance).collect();
        let lacks = each.iter().map(|performance| (1.0 - performance).max(0.0));
        let mean = lacks.sum::<f64>() / each.len() as f64;
        (!each.is_empty()).then(|| f64::from(promised.importance) * mean)
    }

    /// Requests sent after the warm-up that never had a reply.
    #[must_use]
    pub fn unanswered(&self) -> u64 {
        self.offered - self.requests - self.refused
    }

    /// The operations of a request are on their way; `at_ns` after the warm-up, in the measured
    /// time.
    pub(crate) fn begun(&mut self, at_ns: Option<Nanos>, operations: u32) {
        self.note_outstanding(at_ns);
        self.outstanding += u64::from(operations);
        self.note_outstanding(at_ns);
    }

    /// The last of a request's operations is answered.
    pub(crate) fn ended(&mut self, at_ns: Option<Nanos>, operations: u32) {
        self.note_outstanding(at_ns);
        self.outstanding -= u64::from(operations);
    }

    fn note_outstanding(&mut self, at_ns: Option<Nanos>) {
        let Some(second) = at_ns.map(|at_ns| (at_ns / 1_000_000_000) as usize) else {
            return;
        };
        if self.outstanding_max.len() <= second {
            self.outstanding_max.resize(second + 1, self.outstanding);
        }
        let most = &mut self.outstanding_max[second];
        *most = self.outstanding.max(*most);
    }

    /// No more comes; the series have exactly so many seconds. What failed after that, or has no
    /// reply, counts in the last.
    pub(crate) fn finish(&mut self, seconds: usize) {
        let last_ns = (seconds as u64).saturating_sub(1) * 1_000_000_000;
        for _ in 0..self.unanswered() + self.refused_late {
            self.series.failed(last_ns);
        }
        self.series.finish(seconds);
        self.outstanding_max.resize(seconds, self.outstanding);
    }

    /// A request is sent, so long after the warm-up.
    pub(crate) fn sent(&mut self, at_ns: Nanos) {
        self.offered += 1;
        self.series.offered(at_ns);
    }

    /// An operation on a value of this many bytes is answered after the warm-up.
    #[inline]
    pub(crate) fn moved(&mut self, bytes: u32, put: bool) {
        self.bytes[usize::from(put)] += u64::from(bytes);
    }

    /// A request is answered, so long after the warm-up; `operations` unless it was sent in the
    /// warm-up.
    pub(crate) fn answered(&mut self, at_ns: Nanos, latency_ns: Nanos, operations: Option<u32>) {
        self.answered += 1;
        self.series.answered(at_ns, latency_ns);
        if let Some(operations) = operations {
            self.requests += 1;
            self.operations += u64::from(operations);
            record(&mut self.latency_ns, latency_ns);
        }
    }

    /// A request that was sent after the warm-up is answered when the measured time is over.
    pub(crate) fn answered_late(&mut self, latency_ns: Nanos) {
        self.requests += 1;
        self.late += 1;
        record(&mut self.latency_ns, latency_ns);
    }

    /// A request that was sent after the warm-up is refused; `at_ns` after the warm-up, in the
    /// measured time.
    pub(crate) fn refused(&mut self, at_ns: Option<Nanos>) {
        self.refused += 1;
        match at_ns {
            Some(at_ns) => self.series.failed(at_ns),
            None => self.refused_late += 1,
        }
    }

    /// The latency that a share `p` (0 to 1) of the requests does not exceed, in nanoseconds.
    #[must_use]
    pub fn quantile_ns(&self, p: f64) -> Nanos {
        self.latency_ns.value_at_quantile(p)
    }
}

/// Counts a value in a histogram that grows with its values.
pub(crate) fn record(histogram: &mut Histogram<u32>, value: u64) {
    if histogram.record(value).is_err() {
        unreachable!("only a histogram of fixed size refuses a value");
    }
}
