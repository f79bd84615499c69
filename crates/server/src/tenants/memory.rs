//! What each tenant is entitled to of the memories that tenants share.

use settings::tenant::room::{Claimed, Totals, MEMORIES};
use settings::tenant::Settings;

/// How the memories are allotted: to each tenant what was set, or by weight of what those with an
/// allotment of their own leave.
pub struct Allotments {
    objects: policy::memory::Allotments,
    blocks: policy::memory::Allotments,
    buffers: policy::memory::Allotments,
}

impl Allotments {
    /// Of memories of this many bytes, in the order of [`MEMORIES`].
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
