//! What a load measured.

mod generator;
mod latency;
mod pace;
mod recorder;
mod series;
mod tenant;

pub use generator::Generator;
pub use latency::Latency;
pub use pace::{Pace, WINDOW_NS};
pub use series::{Second, Series};
pub use tenant::{ClassStats, ErrorKind, TenantStats};

pub(crate) use recorder::Recorder;

/// The connection broke before the reply came.
pub const LOST: &str = "connection-lost";
/// The request could not even be queued: no connection, or too much outstanding.
pub const UNSENT: &str = "unsent";
/// One front sent it on to another again and again.
pub const MOVED: &str = "moved";
/// No reply when the run (and its drain time) ended.
pub const UNANSWERED: &str = "unanswered";

/// What a run measured.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// One per tenant and tag, in the order of the plan.
    pub tenants: Vec<TenantStats>,
    /// How evenly all of them were answered.
    pub pace: Pace,
    /// Length of the measured time, seconds.
    pub elapsed_s: f64,
    /// What ran before it, seconds.
    pub warm_up_s: f64,
    /// Request bytes sent, in the warm-up too.
    pub bytes_out: u64,
    /// The client's own behaviour.
    pub generator: Generator,
    /// Requests that were neither answered nor failed at the end, of streams that send so many in
    /// all; `None`: there are none such.
    pub left: Option<u64>,
    /// The run was interrupted or cut short, and why.
    pub cut_short: Option<String>,
}

impl Outcome {
    /// Requests per second answered over all tenants.
    pub fn rate_per_s(&self) -> f64 {
        let rates = self.tenants.iter().map(|t| self.achieved_per_s(&t.total()));
        rates.sum()
    }

    /// Requests of `class` answered per second of the measured time.
    pub fn achieved_per_s(&self, class: &ClassStats) -> f64 {
        class.answered as f64 / self.elapsed_s.max(1e-9)
    }

    /// Failed requests over all tenants.
    pub fn failed(&self) -> u64 {
        self.tenants.iter().map(|t| t.total().failed).sum()
    }
}
