//! Fair shares across nodes: what each tenant may have where.
//!
//! A tenant has one share of the whole system; its partitions, and so its demand, lie on some nodes and not evenly.
//! `weights` moves shares between nodes to where they are wanted, without anybody's total changing (Pisces 4.3.2);
//! the maths is in docs/theory/placement.md.

mod weights;

pub use weights::{Entry, Exchanged, Shares};
