//! What is written down at a cluster beside tenants' keys. All of it has the same hash tag, which
//! is no tenant's mark, and so lies in one slot.

/// A hash: tenants, as [`TENANT`] and their names, with how many partitions each has; and its
/// version.
pub const CATALOGUE: &[u8] = b"{@}catalogue";

/// What a tenant's name stands behind in the catalogue. No name has a colon.
pub const TENANT: &str = "tenant:";

/// A hash: an entry for each front, by its name.
pub const FRONTS: &[u8] = b"{@}fronts";

/// A hash: what each front tells of tenants' rates, by its name.
pub const RATES: &[u8] = b"{@}rates";

/// A hash: what each front tells of what became of tenants' promises there, by its name.
pub const PROMISES: &[u8] = b"{@}promises";

/// A text: how well each promise was kept at all fronts, a line each, as one of them says it.
pub const KEPT: &[u8] = b"{@}kept";

/// A hash: slots that are being moved, with from where and to where.
pub const MOVES: &[u8] = b"{@}moves";

/// A hash: what each front tells of what partitions are asked for, by its name.
pub const DEMAND: &[u8] = b"{@}demand";

/// A hash: who places partitions, what was decided last, and which nodes are emptied.
pub const CONTROL: &[u8] = b"{@}control";
