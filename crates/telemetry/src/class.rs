//! The request classes that are told apart everywhere: in SLOs, shares, metrics and logs.

use serde::{Deserialize, Serialize};

/// How many classes there are.
pub const CLASSES: usize = 6;

/// What kind of work a request is. Latencies of different classes are never mixed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Class {
    /// Reads of one key.
    Get,
    /// Writes of one key.
    Put,
    /// Reads or writes of several keys in one request.
    Multiget,
    /// Walks over a range or a whole keyspace.
    Scan,
    /// Requests that touch no data: `PING`, `CLIENT`, `COMMAND`, …
    Other,
    /// Requests of an operator: `ENTREMET TENANT`, `CONFIG SET`, `SHUTDOWN`, …
    Admin,
}

impl Class {
    /// Every class, in the order of [`Class::index`].
    pub const ALL: [Self; CLASSES] = [
        Self::Get,
        Self::Put,
        Self::Multiget,
        Self::Scan,
        Self::Other,
        Self::Admin,
    ];

    /// The class's place in arrays of [`CLASSES`] elements.
    #[inline]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// The name used in metrics, config and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::Put => "put",
            Self::Multiget => "multiget",
            Self::Scan => "scan",
            Self::Other => "other",
            Self::Admin => "admin",
        }
    }

    /// The class of that name, if there is one.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|class| class.name() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_places_lead_back() {
        for (place, class) in Class::ALL.into_iter().enumerate() {
            assert_eq!(class.index(), place);
            assert_eq!(Class::from_name(class.name()), Some(class));
        }
        assert_eq!(Class::from_name("write"), None);
    }
}
