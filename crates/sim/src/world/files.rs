//! Where on a node's disks values are.

use super::Op;
use crate::prices::PAGE_BYTES;
use crate::spec::Disk as Wanted;
use policy::device::Layout;
use policy::generator::mix64;
use workload::rng::Rng;

/// Where reads go.
#[derive(Debug)]
pub(super) struct Files {
    span_bytes: u64,
    /// Where files of so many bytes lie, as a server over emulated disks has them; `None`: values
    /// are anywhere.
    layout: Option<(Layout, u64)>,
}

/// What is near, where values are in no files.
const NEAR_BYTES: u64 = 64 << 20;

/// A disk like any other.
pub(super) fn any_disk(disks: usize, rng: &mut Rng) -> usize {
    match disks {
        1 => 0,
        many => (rng.bits() % many as u64) as usize,
    }
}

impl Files {
    pub(super) fn new(wanted: &Wanted, seed: u64) -> Self {
        let span_bytes = wanted.span_bytes.max(PAGE_BYTES);
        let layout = Layout {
            disks: wanted.disks.max(1),
            span_bytes,
            seed,
        };
        Files {
            span_bytes,
            layout: wanted.file_bytes.map(|bytes| (layout, bytes)),
        }
    }

    /// Any byte of any disk.
    pub(super) fn anywhere(&self, disks: usize, rng: &mut Rng) -> (usize, u64) {
        let disk = any_disk(disks, rng);
        let pages = self.span_bytes / PAGE_BYTES;
        (disk, rng.bits() % pages * PAGE_BYTES)
    }

    /// A byte of the same file, or where it would be.
    pub(super) fn near(&self, offset: u64, rng: &mut Rng) -> u64 {
        let file_bytes = self.layout.map_or(NEAR_BYTES, |(_, bytes)| bytes);
        let pages = (file_bytes.min(self.span_bytes) / PAGE_BYTES).max(1);
        (offset + rng.bits() % pages * PAGE_BYTES) % self.span_bytes
    }

    /// The disk and the byte of it where a read begins. A tenant's values lie in the order of their
    /// keys; what would go beyond the end of a file is read before it.
    pub(super) fn place(&self, tenant: u32, op: &Op, disks: usize, rng: &mut Rng) -> (usize, u64) {
        let Some((layout, file_bytes)) = &self.layout else {
            return self.anywhere(disks, rng);
        };
        let at = op.key * u64::from(op.bytes) / u64::from(op.keys.max(1));
        // Compactions leave files of any numbers.
        let spot = layout.spot(tenant.into(), mix64(at / file_bytes));
        let last = file_bytes.saturating_sub(op.bytes.into());
        let offset = (at % file_bytes).min(last) / PAGE_BYTES * PAGE_BYTES;
        (spot.disk, layout.byte(spot, offset))
    }
}
