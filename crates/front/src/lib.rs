//! What a tenant may say to an engine that it shares with others, and what it hears of the reply.
//!
//! The engine is one Redis or Valkey, or a cluster of them. All tenants' keys lie in its one
//! keyspace, and what keeps them apart is how they are called there ([`Space`]): each tenant's keys
//! begin with its own mark. In a cluster a tenant may have several partitions: each has a mark, and
//! by that a hash slot of the engine.
//!
//! * [`Table`] is the engine's own list of commands (`COMMAND`), with what becomes of each
//!   ([`Way`]): it goes to the engine, the front answers it, or it is refused by name.
//! * [`Command::write`] writes a request as the engine is sent it, every key with its mark.
//! * [`ScriptUser`] is the user of the engine as which a tenant's scripts run.
//! * [`Scanner`] finds where a reply ends; [`Shows`] takes the marks out of one.
//!
//! Several fronts before one cluster know of each other by entries there ([`Fronts`]). [`Homes`]
//! says which of them cluster-aware clients are sent to.
//!
//! Nothing here has a socket or a clock. Where it is not certain which words are keys, a request is
//! refused: a word that is taken for something else would be a key without a mark.

mod channels;
mod demand;
mod draft;
mod elsewhere;
mod find;
mod fronts;
mod halve;
mod health;
mod moves;
mod pages;
mod peer;
mod reply;
mod request;
mod scan;
mod scripts;
mod slot;
mod space;
mod split;
mod table;
mod value;
mod view;
mod walk;
mod way;
mod written;

pub use channels::{Push, Subscribed};
pub use demand::{Demand, TenantDemand};
pub use draft::{Draft, Pieces};
pub use elsewhere::{bracketed, host_of, settled_slots, Elsewhere, Replica, Topology};
pub use find::{Find, KeySpec, Search};
pub use fronts::{Fronts, Home, Homes, Shard, AGREED_NS, SILENT_NS};
pub use halve::{halve, Half};
pub use health::{Health, ONLINE};
pub use moves::{begun, row, Begun, Moves, LEASE_NS};
pub use pages::{scan, Asked, Lies};
pub use peer::{Both, Endpoint, Peer};
pub use reply::Shows;
pub use request::Written;
pub use scan::{Broken, Scanner};
pub use scripts::ScriptUser;
pub use slot::{first, slot, PARTS_MAX, SLOTS};
pub use space::Space;
pub use split::{joined, Gather, Kept, Part};
pub use table::{Command, Table, TableError};
pub use value::{frame, Value};
pub use view::{Node, Open, View};
pub use walk::{Step, Walker};
pub use way::{Walk, Way};
pub use written::{CATALOGUE, CONTROL, DEMAND, FRONTS, KEPT, MOVES, PROMISES, RATES, TENANT};

#[cfg(test)]
mod tests;
