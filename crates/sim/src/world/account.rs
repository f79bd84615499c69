//! What nodes count, and tell the controller.

/// Bytes in, requests, bytes out, and nanoseconds of a permit.
pub(super) const R: usize = 4;

/// What a tenant was charged and used at a node, for how many operations, and how long it had work
/// queued there, ns.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Account {
    pub(super) charged_ns: u64,
    pub(super) operations: u64,
    pub(super) occupied_ns: u64,
    /// By resource, as the time that it would take one node.
    pub(super) used_ns: [f64; R],
}

impl Account {
    /// What came since another account of the same tenant and node.
    pub(super) fn since(mut self, was: Account) -> Account {
        self.charged_ns = self.charged_ns.saturating_sub(was.charged_ns);
        self.operations = self.operations.saturating_sub(was.operations);
        self.occupied_ns = self.occupied_ns.saturating_sub(was.occupied_ns);
        for (ns, was) in self.used_ns.iter_mut().zip(was.used_ns) {
            *ns = (*ns - was).max(0.0);
        }
        self
    }
}
