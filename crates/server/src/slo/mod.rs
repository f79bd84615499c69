//! What tenants were promised of latency and throughput: whose requests each promise is for, and
//! what became of them.
//!
//! ```text
//! Workloads: what a connection calls itself ─▶ its lane ─┐
//!                                                        ├─▶ Meters: one a promise ─▶ Meter: counts of each core
//! what it was answered: class, arrival, latency ─────────┘                              │ every window
//!                                                                                       ▼
//!                                        Record: windows, the last hour, 30 days ◀── judged by policy::slo
//! ```
//!
//! Cores count without a lock that anybody holds for long; windows are closed elsewhere.

mod demand;
mod history;
mod late;
mod meter;
mod meters;
mod reading;
mod record;
mod reserves;
mod slowest;
mod trail;
mod unanswered;
mod whole;
mod workloads;

pub use demand::{Demands, Total};
pub use history::{Bucket, History, HOURS_KEPT, MINUTES_KEPT};
pub use late::{Delays, Line, Where};
pub use meter::{AtStages, Meter, Took};
pub use meters::{classes, in_lane, lanes_beyond, throughput, Meters, Within};
pub use reading::Reading;
pub use record::{Record, Window};
pub use reserves::RESERVED;
pub use slowest::{Slow, Slowest};
pub use trail::{Behind, Trail};
pub use unanswered::Unanswered;
pub use whole::Elsewhere;
pub use workloads::Workloads;
