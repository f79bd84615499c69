//! The mechanism that stands before a resource: queues, permits and what is observed of them.
//!
//! Every decision is [`policy::dispatch::Dispatch`]'s; a stage adds what a decision has no business with:
//!
//! * a [`Permit`] that gives itself back: settle it with [`Stage::settle`], or drop it and what was set aside
//!   is charged. It may travel to another thread while the work goes on there;
//! * two faces with one implementation: [`Stage::next`] for a loop that asks, and [`blocking`] for threads that block,
//!   an adapter over the first.
//!
//! A stage belongs to one thread and is driven by it (but for [`blocking`]). It has no lock on its path; the only thing
//! shared with other threads is the list to which permits dropped elsewhere return. The clock is the
//! caller's: methods take `now`, and [`Clock`] exists for those who must be able to ask.

pub mod blocking;

mod clock;
mod permit;
mod stage;

pub use clock::{Clock, ManualClock};
pub use permit::{Permit, Wake};
pub use policy::dispatch::{
    Allocation, Consumed, Discipline, DispatchOptions, Limit, Limited, Meter, Observation, Verdict,
};
pub use policy::{Cost, Nanos, PrincipalId};
pub use stage::{Admitted, Next, Stage};
