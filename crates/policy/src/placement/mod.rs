//! Fair shares across nodes: what each tenant may have where.
//!
//! A tenant has one share of the whole system; its partitions, and so its demand, lie on some nodes
//! and not evenly. `fair` says what each may have of the whole; `plan` which node holds which
//! partition, so that all shares fit (Pisces 4.3.1), `price` what it costs that one moves, and
//! `placer` when they do; `weights` moves shares between nodes to where
//! they are wanted, without anybody's total changing (Pisces 4.3.2); `lag` and `spread` correct
//! what each may have by what it was served and by what it used of the system's resources; `learnt`
//! keeps the averages; `control` is the step that does it all. Before an engine of somebody else's
//! `asking` says what partitions are asked for, with `parts` as many looks have them, and there is
//! the placer alone. The maths is in docs/theory/placement.md.

mod asking;
mod control;
mod entry;
mod fair;
mod lag;
mod learnt;
mod parts;
mod placer;
mod plan;
mod price;
mod seen;
mod spread;
mod weights;

pub use asking::{demands, speeds, Asking, NodeSeen};
pub use control::{Control, ControlOptions, Decided, Local};
pub use entry::Entry;
pub use fair::{fair_shares, Claim};
pub use parts::Parts;
pub use placer::{Looked, Placer, PlacerOptions};
pub use plan::{fair_demand, plan, Node, Partition, Planned};
pub use price::{Move, Moves, Price};
pub use seen::{Asked, Seen, Served, TenantSeen};
pub use weights::{Exchanged, Shares};
