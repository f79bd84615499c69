//! Partitions on their way to where the controller wants them.

use super::{Event, World};
use crate::spec::Tenant;
use policy::Nanos;

/// Keys of which a tenant's mean value is drawn.
const SAMPLED: u64 = 1_000;

/// Bytes of each partition of a tenant: those of all its keys, of the stream that has the most.
pub(super) fn partition_bytes(number: usize, tenant: &Tenant) -> f64 {
    let of_all = tenant.streams.iter().map(|stream| {
        let requests = &stream.requests;
        let keys = requests.popularity.keys();
        let sampled = keys.clamp(1, SAMPLED);
        let bytes = (0..sampled).map(|key| f64::from(requests.values.of(key, number as u64)));
        bytes.sum::<f64>() / sampled as f64 * keys as f64
    });
    of_all.fold(0.0, f64::max) / f64::from(tenant.partitions.max(1))
}

impl World<'_> {
    /// Begins to copy what is wanted where it is not, from a node that has it and lives; without a
    /// rate of copying it is there at once.
    pub(super) fn copy_partitions(&mut self) {
        let now = self.agenda.now();
        let copying = self.spec.cluster.friction.copy;
        let partitions = &self.controller.partitions;
        for (number, (group, partition)) in (0..).zip(self.groups.iter_mut().zip(partitions)) {
            let wanted = &partition.nodes;
            let Some(copying) = copying else {
                group.held.clone_from(wanted);
                continue;
            };
            let tenant = group.tenant as usize;
            for &node in wanted {
                let lives = |node: &u32| !self.nodes[*node as usize].given_up;
                let has_it = group.held.contains(&node) || group.coming.contains(&node);
                let source = group.held.iter().copied().find(|source| lives(source));
                let Some(source) = source.filter(|_| !has_it && lives(&node)) else {
                    continue;
                };
                let ends = [source, node].map(|end| self.nodes[end as usize].copying_until);
                let begins_at = ends.into_iter().fold(now, Nanos::max);
                let takes_ns = self.partition_bytes[tenant] * 1e9 / copying.bytes_per_s;
                let ends_at = begins_at + takes_ns as Nanos;
                for end in [source, node] {
                    self.nodes[end as usize].copying_until = ends_at;
                }
                group.coming.push(node);
                let group = number;
                self.agenda
                    .after(ends_at - now, Event::Copied { group, node });
            }
        }
    }

    /// A node has a copy. Once all that are wanted are there the others are dropped.
    pub(super) fn copied(&mut self, group: u32, node: u32) {
        let number = group as usize;
        let wanted = self.controller.partitions[number].nodes.clone();
        let group = &mut self.groups[number];
        group.coming.retain(|other| *other != node);
        let lives = !self.nodes[node as usize].dead;
        if lives && wanted.contains(&node) {
            group.held.push(node);
            if wanted.iter().all(|node| group.held.contains(node)) {
                group.held = wanted;
            }
            self.regroup([number]);
        }
    }

    /// How many times as long an operation takes at a node.
    pub(super) fn slowed(&self, node: u32) -> f64 {
        let at = &self.nodes[node as usize];
        let load = match self.spec.cluster.friction.copy {
            Some(copying) if self.agenda.now() < at.copying_until => copying.load,
            _ => 0.0,
        };
        at.slowness / (1.0 - load)
    }
}
