//! The mechanism that stands before a resource: queues, permits and what is observed of them.
//!
//! [`policy::dispatch::Dispatch`] makes every decision. A stage adds what is not a decision:
//!
//! * a [`Permit`] that gives itself back: settle it with [`Stage::settle`]; if it is dropped, what
//!   was set aside is charged. It may go to another thread with its work;
//! * two faces with one implementation: [`Stage::next`] for a loop that asks, and [`blocking`] for
//!   threads that block, an adapter over the first.
//!
//! A stage belongs to one thread, which drives it (except for [`blocking`]). On its path it takes
//! no lock: all that it shares with other threads is the list to which permits return that were
//! dropped elsewhere. The clock is the caller's: methods take `now`. [`Clock`] is for callers that
//! have no time at hand.

pub mod blocking;

mod clock;
mod permit;
mod stage;

pub use clock::{Clock, ManualClock};
pub use permit::{Permit, Wake};
pub use policy::dispatch::{
    Allocation, Consumed, Discipline, DispatchOptions, LaneAllocation, LaneId, LaneObservation,
    Limit, Limited, Meter, Observation, Others, Terms, Verdict,
};
pub use policy::{Cost, Nanos, PrincipalId};
pub use stage::{Admitted, Next, Stage};
