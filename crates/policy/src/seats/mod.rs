//! Who may hold a connection.
//!
//! * A connection that speaks for nobody yet is a newcomer. Newcomers have seats of their own
//!   ([`Newcomers`]): when they are taken, one of those who take most has to go, so that no number
//!   of silent sockets keeps anybody out.
//! * A connection that speaks for a tenant has one of the tenants' seats ([`Seats`]). Half of them
//!   are divided evenly and kept, so that each tenant can always have its part; the other half goes
//!   to whoever comes. Operators have some more.
//! * How often a peer may come is a rate ([`Arrivals`]).

mod arrivals;
mod newcomers;
mod tenants;

pub use arrivals::Arrivals;
pub use newcomers::{Newcomer, Newcomers, Welcome};
pub use tenants::{Claim, Seat, Seats, SeatsOptions};
