//! The `entremet` binary as a library, so that its parts can be tested: the command line, the
//! configuration, and the wiring of the server. Nothing else depends on this crate.

mod admin;
mod calibrate;
pub mod cli;
mod commands;
pub mod config;
mod explain;
mod manual;
pub mod serve;
pub mod top;

pub use commands::run;
