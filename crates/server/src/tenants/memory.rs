//! The memories that tenants share, and what each is entitled to of them.

use super::totals::Claimed;
use super::{Settings, Totals};

/// A memory that tenants share by allotments.
pub struct Memory {
    /// As its allotments are called.
    pub name: &'static str,
    /// As it is called itself.
    pub has: &'static str,
    /// A tenant's part, if it is fixed.
    pub allotment: fn(&Settings) -> Option<u64>,
}

/// All of them.
pub const MEMORIES: [Memory; 3] = [
    Memory {
        name: "cache",
        has: "object cache has",
        allotment: |settings| settings.cache_bytes,
    },
    Memory {
        name: "block cache",
        has: "block cache has",
        allotment: |settings| settings.block_cache_bytes,
    },
    Memory {
        name: "write buffer",
        has: "write buffers have",
        allotment: |settings| settings.write_buffer_bytes,
    },
];

/// How the memories are allotted: to each tenant what was set, or by weight of what those with an allotment of their own
/// leave.
pub struct Allotments {
    objects: policy::memory::Allotments,
    blocks: policy::memory::Allotments,
    buffers: policy::memory::Allotments,
}

impl Allotments {
    /// Of memories of so many bytes, in the order of [`MEMORIES`].
    pub fn new(budgets: [u64; MEMORIES.len()], totals: &Totals) -> Self {
        let of = |budget: u64, claimed: &Claimed| {
            let claims = [(Some(claimed.fixed), 0.0), (None, claimed.weights)];
            policy::memory::Allotments::new(budget, claims)
        };
        let [objects, blocks, buffers] = budgets;
        let [of_objects, of_blocks, of_buffers] = &totals.memories;
        Self {
            objects: of(objects, of_objects),
            blocks: of(blocks, of_blocks),
            buffers: of(buffers, of_buffers),
        }
    }

    /// Of the tenant with these settings.
    pub fn of(&self, settings: &Settings) -> engine::Allotments {
        let of = |rule: &policy::memory::Allotments, fixed| rule.of(fixed, settings.weight);
        engine::Allotments {
            object_cache_bytes: of(&self.objects, settings.cache_bytes),
            block_cache_bytes: of(&self.blocks, settings.block_cache_bytes),
            write_buffer_bytes: of(&self.buffers, settings.write_buffer_bytes),
            weight: settings.weight,
        }
    }
}
