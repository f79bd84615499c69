//! Published results, shown again: a folder for each, run against the real server, or the simulator
//! where it takes many machines, beside its baselines.
//!
//! ```text
//! experiments/NAME/experiment.toml ──▶ spec ──▶ plan (what runs, baselines and ours in turn)
//!                                                │ for each run
//!                        server (the real one, pinned), or nodes (a real cluster)
//!                                                          ◀── workload::scenario (the load)
//!                        or simulated ([cluster]), or program (an internal measurement)
//!                                                │ observed
//!                            measure (pure) ──▶ verdict ──▶ table, result.json, report.html
//! ```
//!
//! A run is one server, started with the scenario's configuration, loaded, and ended; or one
//! simulated cluster. A verdict is a named measure over the runs of one repeat, its median over all
//! repeats held against a bound. What is missing is an error and never a pass.

pub mod cli;
pub mod done;
mod error;
mod examples;
pub mod find;
pub mod kept;
mod list;
pub mod machine;
pub mod measure;
pub mod nodes;
pub mod observed;
mod pace;
pub mod plan;
pub mod player;
pub mod program;
pub mod report;
pub mod result;
pub mod runner;
pub mod server;
pub mod simulated;
pub mod spec;
mod summary;
pub mod table;
pub mod verdict;
pub mod way;

pub use cli::run;
pub use error::ExperimentError;
