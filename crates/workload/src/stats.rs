//! What a load measured.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;

use crate::client::Completion;
use crate::client::Observer;
use crate::draw::{Class, CLASSES};

/// Latencies are kept from 1 µs to 10 minutes with three significant figures.
const LATENCY_NS: (u64, u64) = (1_000, 600_000_000_000);

/// A latency histogram in nanoseconds. What lies outside its range is counted at the nearer end.
#[derive(Clone, Debug)]
pub struct Latency(Histogram<u64>);

impl Default for Latency {
    fn default() -> Self {
        // Constant and valid bounds: 1 <= low, 2 * low <= high, figures <= 5.
        let made = Histogram::new_with_bounds(LATENCY_NS.0, LATENCY_NS.1, 3);
        Self(made.expect("constant bounds are valid"))
    }
}

impl Latency {
    /// Counts one latency.
    pub fn record(&mut self, latency_ns: u64) {
        self.0.saturating_record(latency_ns);
    }

    /// Adds another histogram's counts.
    pub fn add(&mut self, other: &Latency) {
        // Both have the same bounds, so this cannot fail.
        let _ = self.0.add(&other.0);
    }

    /// The latency that `percent` (0 to 100) of the requests did not exceed, ns; 0 when empty.
    pub fn percentile_ns(&self, percent: f64) -> u64 {
        if self.0.is_empty() {
            0
        } else {
            self.0.value_at_percentile(percent)
        }
    }

    /// The highest latency, ns; 0 when empty.
    pub fn max_ns(&self) -> u64 {
        self.0.max()
    }

    /// The mean latency, ns; 0 when empty.
    pub fn mean_ns(&self) -> f64 {
        if self.0.is_empty() {
            0.0
        } else {
            self.0.mean()
        }
    }
}

/// One class of one tenant.
#[derive(Clone, Debug, Default)]
pub struct ClassStats {
    /// Requests that the workload wanted to send.
    pub offered: u64,
    /// Requests answered without an error.
    pub completed: u64,
    /// Requests answered with an error, or never.
    pub failed: u64,
    /// Of the completed ones: answered after the run's end, while its last replies were awaited.
    /// They count for latency, not for the rate.
    pub late: u64,
    /// Keys that were not there (nulls in replies).
    pub missed: u64,
    /// Reply bytes received.
    pub bytes_in: u64,
    latency: Option<Box<Latency>>,
}

impl ClassStats {
    /// Latency of the completed requests.
    pub fn latency(&self) -> Latency {
        self.latency.as_deref().cloned().unwrap_or_default()
    }

    fn add(&mut self, other: &ClassStats) {
        self.offered += other.offered;
        self.completed += other.completed;
        self.failed += other.failed;
        self.late += other.late;
        self.missed += other.missed;
        self.bytes_in += other.bytes_in;
        if let Some(latency) = &other.latency {
            self.latency.get_or_insert_default().add(latency);
        }
    }
}

/// Errors of one kind (the first word of the server's text, or one of ours in lower case).
#[derive(Clone, Debug, Default)]
pub struct ErrorKind {
    /// How many.
    pub count: u64,
    /// The first one's whole text.
    pub example: String,
}

/// The connection broke before the reply came.
pub const LOST: &str = "connection-lost";
/// The request could not even be queued: no connection, or too much outstanding.
pub const UNSENT: &str = "unsent";
/// No reply when the run (and its drain time) ended.
pub const UNANSWERED: &str = "unanswered";

/// Error kinds kept per tenant; a server that invents more gets the rest counted as `other`.
const ERROR_KINDS_MAX: usize = 64;

/// One tenant's load.
#[derive(Clone, Debug, Default)]
pub struct StreamStats {
    /// Tenant (user) name.
    pub tenant: String,
    /// What was replayed; the workload tag.
    pub tag: String,
    classes: [ClassStats; CLASSES],
    /// By kind.
    pub errors: BTreeMap<String, ErrorKind>,
}

impl StreamStats {
    /// Empty counts for a tenant and a tag.
    pub fn new(tenant: &str, tag: &str) -> Self {
        Self {
            tenant: tenant.into(),
            tag: tag.into(),
            ..Self::default()
        }
    }

    /// One class.
    pub fn class(&self, class: Class) -> &ClassStats {
        &self.classes[class as usize]
    }

    /// All classes in one.
    pub fn total(&self) -> ClassStats {
        let mut total = ClassStats::default();
        self.classes.iter().for_each(|class| total.add(class));
        total
    }

    pub(crate) fn class_mut(&mut self, class: Class) -> &mut ClassStats {
        &mut self.classes[class as usize]
    }

    /// Adds what another client thread measured for the same tenant.
    pub fn add(&mut self, other: &StreamStats) {
        for (mine, theirs) in self.classes.iter_mut().zip(&other.classes) {
            mine.add(theirs);
        }
        for (kind, error) in &other.errors {
            let mine = self.errors.entry(kind.clone()).or_default();
            mine.count += error.count;
            if mine.example.is_empty() {
                mine.example.clone_from(&error.example);
            }
        }
    }

    pub(crate) fn fail(&mut self, class: Class, text: &str) {
        self.classes[class as usize].failed += 1;
        let mut kind = text.split(' ').next().unwrap_or_default();
        if self.errors.len() >= ERROR_KINDS_MAX && !self.errors.contains_key(kind) {
            kind = "other";
        }
        let error = match self.errors.get_mut(kind) {
            Some(error) => error,
            None => self.errors.entry(kind.to_string()).or_default(),
        };
        if error.count == 0 {
            error.example = text.to_string();
        }
        error.count += 1;
    }
}

/// How the load generator itself fared.
#[derive(Clone, Debug, Default)]
pub struct Generator {
    /// From the intended to the real send time (open loop only).
    pub lag: Latency,
    /// Share of the run's wall time that the busiest client thread spent on a CPU; above 0.95 a
    /// closed loop measures the client.
    pub busy: f64,
    /// CPU time of all client threads, seconds.
    pub cpu_s: f64,
}

/// A lag above this is the generator's own delay, not the timer's.
const LAG_NS_MAX: u64 = 2_000_000;

impl Generator {
    /// Says so when the numbers describe the generator rather than the server.
    pub fn complaint(&self) -> Option<String> {
        let lag_ns = self.lag.percentile_ns(99.0);
        let busy = self.busy * 100.0;
        if lag_ns > LAG_NS_MAX {
            let lag_ms = lag_ns as f64 / 1e6;
            return Some(format!(
                "the load generator was late, not only the server: 1 % of requests were sent \
                 {lag_ms:.1} ms or more after their time (CPU {busy:.0} % busy); lower the rate \
                 or give it a core of its own"
            ));
        }
        if self.busy > 0.95 {
            return Some(format!(
                "the load generator used its whole core (CPU {busy:.0} % busy): the server may be \
                 able to do more than this"
            ));
        }
        None
    }

    pub(crate) fn add(&mut self, other: &Generator) {
        self.lag.add(&other.lag);
        self.busy = self.busy.max(other.busy);
        self.cpu_s += other.cpu_s;
    }
}

/// What a run measured.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// One per tenant and tag, in the order of the plan.
    pub streams: Vec<StreamStats>,
    /// Length of the measured window, seconds.
    pub elapsed_s: f64,
    /// Request bytes sent.
    pub bytes_out: u64,
    /// The client's own behaviour.
    pub generator: Generator,
    /// The run was interrupted or cut short, and why.
    pub cut_short: Option<String>,
}

impl Outcome {
    /// Completed requests per second over all tenants.
    pub fn rate_per_s(&self) -> f64 {
        self.streams
            .iter()
            .map(|stream| self.achieved_per_s(&stream.total()))
            .sum()
    }

    /// Requests of `class` completed per second within the window.
    pub fn achieved_per_s(&self, class: &ClassStats) -> f64 {
        (class.completed - class.late) as f64 / self.elapsed_s.max(1e-9)
    }

    /// Failed requests over all tenants.
    pub fn failed(&self) -> u64 {
        self.streams
            .iter()
            .map(|stream| stream.total().failed)
            .sum()
    }
}

/// Counts completions that fall into a window of the run.
pub(crate) struct Recorder {
    pub(crate) streams: Vec<StreamStats>,
    /// Counted from here (ns since the run began) …
    pub(crate) from_ns: u64,
    /// … to here.
    pub(crate) until_ns: u64,
    /// Completions after `until_ns` are counted as late (open loop) rather than not at all.
    pub(crate) keep_late: bool,
    /// What a request that lost its connection is counted as.
    pub(crate) loss: &'static str,
}

impl Recorder {
    pub(crate) fn new(streams: Vec<StreamStats>, from_ns: u64, until_ns: u64) -> Self {
        Self {
            streams,
            from_ns,
            until_ns,
            keep_late: false,
            loss: LOST,
        }
    }
}

impl Observer for Recorder {
    fn completed(&mut self, completion: Completion<'_>) {
        let Completion {
            stream,
            class,
            start_ns,
            now_ns,
            reply,
        } = completion;
        let late = now_ns >= self.until_ns;
        if now_ns < self.from_ns || (late && !self.keep_late) {
            return;
        }
        let stream = &mut self.streams[stream];
        if !reply.error.is_empty() {
            return stream.fail(class, &String::from_utf8_lossy(reply.error));
        }
        let class = stream.class_mut(class);
        class.completed += 1;
        class.late += u64::from(late);
        class.missed += u64::from(reply.nulls);
        class.bytes_in += reply.bytes;
        class
            .latency
            .get_or_insert_default()
            .record(now_ns.saturating_sub(start_ns));
    }

    fn lost(&mut self, stream: usize, class: Class) {
        self.streams[stream].fail(class, self.loss);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_counted_by_their_first_word() {
        let mut stream = StreamStats::new("web", "twitter");
        stream.fail(Class::Get, "THROTTLED tenant web");
        stream.fail(Class::Put, "THROTTLED again");
        stream.fail(Class::Put, LOST);
        assert_eq!(stream.errors["THROTTLED"].count, 2);
        assert_eq!(stream.errors["THROTTLED"].example, "THROTTLED tenant web");
        assert_eq!(stream.total().failed, 3);
        for i in 0..1_000 {
            stream.fail(Class::Get, &format!("E{i} x"));
        }
        assert!(stream.errors.len() <= ERROR_KINDS_MAX + 1);
        assert_eq!(stream.total().failed, 1_003);
    }

    #[test]
    fn the_generator_owns_up() {
        let mut generator = Generator {
            busy: 0.5,
            ..Generator::default()
        };
        generator.lag.record(50_000);
        assert!(generator.complaint().is_none());
        generator.busy = 0.99;
        assert!(generator.complaint().expect("busy").contains("whole core"));
        (0..100).for_each(|_| generator.lag.record(30_000_000));
        assert!(generator.complaint().expect("late").contains("was late"));
    }

    #[test]
    fn latency_saturates_and_answers_when_empty() {
        let mut latency = Latency::default();
        assert_eq!((latency.percentile_ns(99.0), latency.max_ns()), (0, 0));
        latency.record(u64::MAX);
        latency.record(0);
        assert!(latency.max_ns() >= LATENCY_NS.1);
    }
}
