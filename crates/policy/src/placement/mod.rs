//! Fair shares across nodes: what each tenant may have where.
//!
//! A tenant has one share of the whole system; its partitions, and so its demand, lie on some nodes and not evenly.
//! `fair` says what each may have of the whole; `plan` which node holds which partition, so that all shares fit (Pisces
//! 4.3.1); `weights` moves shares between nodes to where they are wanted, without anybody's total changing (Pisces
//! 4.3.2); `control` is the step that does all three; the maths is in docs/theory/placement.md.

mod control;
mod fair;
mod plan;
mod weights;

pub use control::{Asked, Control, ControlOptions, Decided, Local, Seen, Served, TenantSeen};
pub use fair::{fair_shares, Claim};
pub use plan::{fair_demand, plan, Node, Partition, Planned};
pub use weights::{Entry, Exchanged, Shares};
