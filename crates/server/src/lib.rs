//! The server: clients in, RESP in between, tenants kept apart.
//!
//! * [`resp`] is the wire: requests and replies as bytes.
//! * [`commands`] is what commands mean: one table, plain functions over [`engine::Access`].
//! * [`connection`] is one client; `session` is what its commands leave behind.
//! * [`core`] is a thread that owns connections and decides, by its stage, whose turn it is.
//! * [`device`] is the stage under their databases.
//! * [`tenants`] is who they are.
//! * [`Server`] starts and ends it all; the binary gives it clocks and settings.

pub mod commands;
mod connection;
mod core;
mod descriptors;
pub mod device;
mod options;
mod provide;
pub mod resp;
mod seldom;
mod server;
mod session;
mod shared;
mod source;
pub mod tenants;
mod watchdog;

pub use connection::FREE_BYTES as CONNECTION_FREE_BYTES;
pub use descriptors::{Descriptors, Plan};
pub use options::{Capacity, Listen, Options, Tls, Tuning};
pub use server::{Server, ServerError};
pub use shared::Phase;
