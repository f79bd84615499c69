//! Every decision of Entremet, as plain code.
//!
//! There is no I/O here, no thread, no lock, no clock, no global randomness, no log and no map with
//! an order that differs from run to run. Time comes in as an argument ([`Nanos`]), randomness as a
//! seed. A question is answered with *this one*, *ask again at t* or *nothing*
//! ([`dispatch::Next`]); nothing ever sleeps. So the same code serves the server and a simulator,
//! and a bug seen in production is replayed from its seed.
//!
//! The map:
//!
//! * [`dispatch`] is what a core asks "who is next?". It composes
//!   * `fairness`: rounds in virtual time, charges by dominant resource, lottery, arrival order;
//!   * `rate`: reservation, limit and contract as tags;
//!   * `permits`: how much may be outstanding, and how much of it is kept for whom;
//!
//!   which know nothing of each other.
//! * [`promise`] says what a tenant's promise comes to at each stage;
//! * [`multiget`] is the order inside one tenant: bottlenecks, slack, levels;
//! * [`cost::device`] says what an I/O costs a device, in virtual IO operations, and
//!   [`cost::spans`] what a request took of an engine that shows only what several took together;
//! * [`depth`] finds how many I/Os to keep outstanding, and what a device is worth at present;
//! * [`window`] says how many requests to have out at a server that others send to as well;
//! * [`profile`] says what a request costs it, directly and later, and [`provision`] turns promised
//!   requests into VOPs;
//! * [`reserved`] says which requests before an engine go before shares;
//! * [`device`] emulates a hard disk or an SSD: it says when an I/O would be done;
//! * [`login`] says whose password is checked next;
//! * [`seats`] says who may hold a connection;
//! * [`look`] says whether something is worth looking for in memory;
//! * [`memory`] divides the caches and the write buffers among tenants;
//! * [`slo`] has promises of latency and throughput, and says whether they were kept;
//! * [`stall`] says how long writes pause so that a database never stalls them;
//! * [`replica`] chooses which of a partition's replicas is asked;
//! * [`placement`] moves tenants' shares between nodes to where they are wanted;
//! * [`portion`] says which part of a tenant's rates and weight each of several fronts has;
//! * [`balance`] says which connections should move to another core, and [`lend`] which permits
//!   cores lend each other;
//! * [`words`] has the names that people write for choices;
//! * [`generator`] draws reproducible numbers.
//!
//! The mathematics, with the names used here, is in docs/mechanisms/fair-queue.md; why each core
//! owns its dispatch, in docs/decisions/0004-core-owned-dispatch.md.

pub mod balance;
pub mod cost;
pub mod depth;
pub mod device;
pub mod dispatch;
pub mod generator;
pub mod lend;
pub mod login;
pub mod look;
pub mod memory;
pub mod multiget;
pub mod placement;
pub mod portion;
pub mod profile;
pub mod promise;
pub mod provision;
pub mod replica;
pub mod reserved;
pub mod seats;
pub mod slo;
pub mod stall;
pub mod supply;
pub mod window;
pub mod words;

mod fairness;
mod heap;
mod permits;
mod rate;

pub use cost::{Charge, Cost, Nanos, PrincipalId};
pub use promise::{Durability, Promise, Reads};
