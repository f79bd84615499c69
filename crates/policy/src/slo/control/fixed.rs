//! What is set stays.

use super::{Given, Held, PromiseGiven};

/// Gives the same at every step.
#[derive(Clone, Debug, Default)]
pub struct Fixed {
    /// What it gives. Promises that it has no entry for have no due times.
    pub given: Given,
}

impl Fixed {
    pub(super) fn step(&self, held: &[Held]) -> Given {
        let mut given = self.given.clone();
        given.promises.resize(held.len(), PromiseGiven::default());
        given
    }
}
