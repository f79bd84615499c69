//! The `entremet` binary as a library, so that its parts can be tested: the command line, the
//! configuration, and the wiring of the server. Nothing else depends on this crate.

mod admin;
mod calibrate;
pub mod cli;
mod client;
mod cluster;
mod commands;
pub mod config;
mod explain;
mod export;
mod manual;
mod plan;
pub mod serve;
pub mod top;

pub use commands::run;
