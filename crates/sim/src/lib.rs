//! A cluster in one thread: clients, senders, nodes, networks and faults as a discrete-event
//! simulation that runs the policies that ship.
//!
//! Time is integer nanoseconds, randomness one seed: the same [`Spec`] gives the same [`Outcome`],
//! to the byte. A node's stage is [`policy::dispatch::Ordered`] itself, a sender's choice of
//! replica [`policy::replica::Selector`]; nothing that decides is written twice.
//!
//! * `agenda`: what is to happen, in order of time;
//! * `spec`: what is simulated; [`scenario`] reads it from a text;
//! * `world`: what happens;
//! * `outcome`: what came out;
//! * [`cores`]: one node of several cores, with what keeps shares on them;
//! * [`rein`]: the cluster, the requests and the contenders of a published comparison.

mod agenda;
pub mod cli;
pub mod cores;
mod error;
mod friction;
mod keys;
mod outcome;
mod prices;
pub mod rein;
pub mod scenario;
mod spec;
mod summary;
mod world;

pub use agenda::Agenda;
pub use error::SimError;
pub use friction::{Copying, Friction};
pub use keys::KeyCount;
pub use outcome::{Outcome, TenantOutcome, Window};
pub use spec::{
    AheadKnown, Arrivals, Cluster, Control, CostKnown, Disk, Fault, FaultKind, Keeper, Machines,
    Noise, Pause, Quota, Redundancy, Requests, Resources, Routing, Scheduler, Selection, Service,
    Spec, Stream, Tenant, Tuning, Weighs,
};
pub use summary::Summary;
pub use world::{run, World};
