//! What a multiget asks of each replica group.

/// The operations of one multiget that go to one replica group.
///
/// Costs are in any unit in which the sender can compare them: operations (Rein 3.2.1), or expected
/// nanoseconds where value sizes and caches are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opset {
    /// The replica group (partition), or the server where that is already chosen.
    pub group: u32,
    /// Number of operations, at least 1.
    pub operations: u32,
    /// Sum of the operations' costs.
    pub cost: u64,
    /// Cost of what is expected to be served there before it; 0 if nothing is known (Rein).
    pub ahead: u64,
}

impl Opset {
    /// When it is expected to be done, as a cost from now.
    #[must_use]
    pub fn finish(&self) -> u64 {
        self.ahead.saturating_add(self.cost)
    }
}

/// Splits a multiget, given as (group, cost) of each operation, into its opsets in order of group
/// (Rein 3.1). `opsets` is emptied first; groups without operations do not occur.
pub fn split(operations: impl IntoIterator<Item = (u32, u64)>, opsets: &mut Vec<Opset>) {
    opsets.clear();
    opsets.extend(operations.into_iter().map(|(group, cost)| Opset {
        group,
        operations: 1,
        cost,
        ahead: 0,
    }));
    opsets.sort_unstable_by_key(|opset| opset.group);
    opsets.dedup_by(|next, kept| {
        let same = next.group == kept.group;
        if same {
            kept.operations += next.operations;
            kept.cost = kept.cost.saturating_add(next.cost);
        }
        same
    });
}

/// The opset that is expected to be done last: its place in the list. Of several, the first; their
/// tags come out equal. `None` for an empty list.
#[must_use]
pub fn bottleneck(opsets: &[Opset]) -> Option<usize> {
    let latest = opsets.iter().map(Opset::finish).max()?;
    opsets.iter().position(|opset| opset.finish() == latest)
}
