//! What one tenant got.

use std::collections::BTreeMap;

use super::{Latency, Series};
use crate::draw::{Class, CLASSES};

/// One class of one tenant.
///
/// A request belongs to the measured time by when it was due (open loop) or sent (closed loop):
/// only such requests count for `offered`, `completed`, `failed`, `missed` and latency. Rates count
/// what happened in the measured time, whenever it was asked for: in overload the two differ.
#[derive(Clone, Debug, Default)]
pub struct ClassStats {
    /// Requests that the workload wanted to send.
    pub offered: u64,
    /// Requests answered without an error.
    pub completed: u64,
    /// Requests answered with an error, or never.
    pub failed: u64,
    /// Of the completed ones: answered after the run's end, while its last replies were awaited.
    pub late: u64,
    /// Keys that were not there (nulls in replies).
    pub missed: u64,
    /// Requests answered without an error within the measured time.
    pub answered: u64,
    /// Reply bytes received within the measured time.
    pub bytes_in: u64,
    /// Request bytes sent within the measured time.
    pub bytes_out: u64,
    pub(super) latency: Option<Box<Latency>>,
}

impl ClassStats {
    /// Latency of the completed requests.
    pub fn latency(&self) -> Latency {
        self.latency.as_deref().cloned().unwrap_or_default()
    }

    fn add(&mut self, other: &ClassStats) {
        self.offered += other.offered;
        self.completed += other.completed;
        self.failed += other.failed;
        self.late += other.late;
        self.missed += other.missed;
        self.answered += other.answered;
        self.bytes_in += other.bytes_in;
        self.bytes_out += other.bytes_out;
        if let Some(latency) = &other.latency {
            self.latency.get_or_insert_default().add(latency);
        }
    }
}

/// Errors of one kind (the first word of the server's text, or one of ours in lower case).
#[derive(Clone, Debug, Default)]
pub struct ErrorKind {
    /// How many.
    pub count: u64,
    /// The first one's whole text.
    pub example: String,
}

/// Error kinds kept per tenant; a server that invents more gets the rest counted as `other`.
const ERROR_KINDS_MAX: usize = 64;

/// One tenant's load.
#[derive(Clone, Debug, Default)]
pub struct TenantStats {
    /// Tenant (user) name.
    pub tenant: String,
    /// Workload tag; may be empty.
    pub tag: String,
    classes: [ClassStats; CLASSES],
    /// By kind.
    pub errors: BTreeMap<String, ErrorKind>,
    /// Second by second, from the beginning of the measured time.
    pub series: Series,
}

impl TenantStats {
    /// Empty counts for a tenant and a tag.
    pub fn new(tenant: &str, tag: &str) -> Self {
        Self {
            tenant: tenant.into(),
            tag: tag.into(),
            ..Self::default()
        }
    }

    /// One class.
    pub fn class(&self, class: Class) -> &ClassStats {
        &self.classes[class as usize]
    }

    /// All classes in one.
    pub fn total(&self) -> ClassStats {
        let mut total = ClassStats::default();
        self.classes.iter().for_each(|class| total.add(class));
        total
    }

    pub(crate) fn class_mut(&mut self, class: Class) -> &mut ClassStats {
        &mut self.classes[class as usize]
    }

    /// Adds what another client thread measured for the same tenant.
    pub fn add(&mut self, other: &TenantStats) {
        for (mine, theirs) in self.classes.iter_mut().zip(&other.classes) {
            mine.add(theirs);
        }
        for (kind, error) in &other.errors {
            let mine = self.errors.entry(kind.clone()).or_default();
            mine.count += error.count;
            if mine.example.is_empty() {
                mine.example.clone_from(&error.example);
            }
        }
        self.series.add(&other.series);
    }

    pub(crate) fn fail(&mut self, class: Class, text: &str) {
        self.classes[class as usize].failed += 1;
        let mut kind = text.split(' ').next().unwrap_or_default();
        if self.errors.len() >= ERROR_KINDS_MAX && !self.errors.contains_key(kind) {
            kind = "other";
        }
        let error = match self.errors.get_mut(kind) {
            Some(error) => error,
            None => self.errors.entry(kind.to_string()).or_default(),
        };
        if error.count == 0 {
            error.example = text.to_string();
        }
        error.count += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::LOST;

    #[test]
    fn errors_are_counted_by_their_first_word() {
        let mut stream = TenantStats::new("web", "twitter");
        stream.fail(Class::Get, "THROTTLED tenant web");
        stream.fail(Class::Put, "THROTTLED again");
        stream.fail(Class::Put, LOST);
        assert_eq!(stream.errors["THROTTLED"].count, 2);
        assert_eq!(stream.errors["THROTTLED"].example, "THROTTLED tenant web");
        assert_eq!(stream.total().failed, 3);
        for i in 0..1_000 {
            stream.fail(Class::Get, &format!("E{i} x"));
        }
        assert!(stream.errors.len() <= ERROR_KINDS_MAX + 1);
        assert_eq!(stream.total().failed, 1_003);
    }
}
