//! Promises of latency and of throughput: what was promised, and whether it was kept.
//!
//! An [`Objective`] is judged a window at a time, by counts: how many requests were answered, and
//! how many of them late. Counts of several cores add up, and a percentile is met exactly if few
//! enough were late, so that no verdict depends on how finely latencies are recorded.
//! [`Contract`] tells requests within the rate that the promise holds for from those beyond it, and
//! [`control`] has what keeps promises, and [`admission`] says beforehand which can be kept.

pub mod admission;
pub mod control;

mod attainment;
mod contract;
mod objective;
mod tail;

pub use attainment::{Attainment, Budget};
pub use contract::{asked, Contract};
pub use objective::{Counts, Latency, Objective, Outcome, Served};
pub use tail::Tail;
