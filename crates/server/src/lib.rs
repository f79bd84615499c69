//! The server: clients in, RESP in between, tenants kept apart.
//!
//! * [`data`] is what commands on data do: plain functions over [`engine::Access`].
//! * `slo` is what they were promised of latency, and what became of it.
//! * [`tenants`] is who they are.
//! * [`device`] is the stage under their databases.
//! * `socket` is a byte stream, to a client or to an engine behind this server (`upstream`).
//! * [`shared`] is what all cores look at; `session` what a client's commands leave behind.
//! * [`connection`] is one client; [`unit`] is what it has run as one.
//! * [`core`] is a thread that owns connections and decides, by its stage, whose turn it is.
//! * [`Server`] starts and ends it all; the binary gives it clocks and settings.

mod connection;
mod control;
mod core;
pub mod data;
pub mod device;
mod options;
mod provide;
mod seldom;
mod server;
mod session;
mod shared;
mod slo;
mod socket;
mod source;
pub mod tenants;
mod unit;
mod upstream;
mod watchdog;

pub use connection::FREE_BYTES as CONNECTION_FREE_BYTES;
pub use options::{Capacity, Descriptors, Listen, Options, Plan, StorageFiles, Tls, Tuning};
pub use server::{Server, ServerError};
pub use shared::Phase;
pub use upstream::{weights_told, EngineTls, FrontsOptions, Trust, UpstreamOptions};
