//! Load for a server that speaks RESP: scenarios, real workloads replayed, and the closed loops of
//! the benches.
//!
//! ```text
//! scenario (a text) ──▶ scenario::build ──┐
//! trace (files) ──▶ source (what is due when) ──▶ client::plan ──▶ client::drive ──▶ client::fleet ──▶ server
//!        absent: trace::synthetic                      ▲                stats ◀── replies ──┘
//! draw::Mixture (what is asked) ───────────────────────┘                  └──▶ report: table, result.json
//! ```
//!
//! An **open loop** sends when the workload says so, whether or not the server has answered, and
//! measures every latency from the intended send time; a server that stalls therefore pays for all
//! the requests that arrived meanwhile (no coordinated omission). A **closed loop** keeps a fixed
//! number of requests outstanding per connection, as redis-benchmark does, and measures capacity.
//!
//! Both run side by side, on one thread with one readiness queue over all connections (or a few
//! such threads): the client must cost less per request than the server that it measures, and
//! [`stats::Generator`] says so when it does not.
//!
//! Everything random is drawn from one seed: the same arguments give the same requests in the same
//! order. Only what the clock decides (which requests share a write, latency) differs between runs.

pub mod arrivals;
pub mod cli;
pub mod client;
pub mod draw;
mod encode;
mod error;
pub mod replay;
pub mod report;
pub mod rng;
pub mod scenario;
pub mod source;
pub mod stats;
pub mod trace;

pub use cli::run;
pub use error::WorkloadError;
