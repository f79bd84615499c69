//! What kinds of requests there are, and how often each is asked.

/// Request classes of a load (DESIGN §8).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// `GET` of one key.
    Get,
    /// `SET` of one key.
    Put,
    /// `MGET` of several keys.
    Multiget,
    /// `ENTREMET.RANGE`: keys in order.
    Range,
    /// `DEL` of one key.
    Delete,
    /// `INCR` of a counter.
    Increment,
    /// `BITCOUNT` of one value.
    Bitcount,
    /// `PING`.
    Ping,
    /// A command that fails.
    Invalid,
}

/// How many classes there are.
pub const CLASSES: usize = 9;

impl Class {
    /// It is about one key, so that one node of a cluster has all of it.
    pub fn has_home(self) -> bool {
        matches!(
            self,
            Class::Get | Class::Put | Class::Delete | Class::Increment | Class::Bitcount
        )
    }

    /// Every class, in the order of reports.
    pub const ALL: [Class; CLASSES] = [
        Class::Get,
        Class::Put,
        Class::Multiget,
        Class::Range,
        Class::Delete,
        Class::Increment,
        Class::Bitcount,
        Class::Ping,
        Class::Invalid,
    ];

    /// The name used in scenarios and reports.
    pub fn name(self) -> &'static str {
        match self {
            Class::Get => "get",
            Class::Put => "put",
            Class::Multiget => "multiget",
            Class::Range => "range",
            Class::Delete => "delete",
            Class::Increment => "increment",
            Class::Bitcount => "bitcount",
            Class::Ping => "ping",
            Class::Invalid => "invalid",
        }
    }
}

/// How often each class is asked, as weights.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Shares {
    /// Weight of `get`.
    pub get: f64,
    /// Weight of `put`.
    pub put: f64,
    /// Weight of `multiget`.
    pub multiget: f64,
    /// Weight of `range`.
    pub range: f64,
    /// Weight of `delete`.
    pub delete: f64,
    /// Weight of `increment`.
    pub increment: f64,
    /// Weight of `bitcount`.
    pub bitcount: f64,
    /// Weight of `ping`.
    pub ping: f64,
    /// Weight of `invalid`.
    pub invalid: f64,
}

impl Shares {
    /// Reads only.
    pub const GETS: Self = Self {
        get: 1.0,
        ..Self::NONE
    };
    /// Writes only.
    pub const PUTS: Self = Self {
        put: 1.0,
        ..Self::NONE
    };
    /// Nothing: to be laid under what there is.
    pub const NONE: Self = Self {
        get: 0.0,
        put: 0.0,
        multiget: 0.0,
        range: 0.0,
        delete: 0.0,
        increment: 0.0,
        bitcount: 0.0,
        ping: 0.0,
        invalid: 0.0,
    };

    /// The weights in the order of [`Class::ALL`].
    pub fn weights(self) -> [f64; CLASSES] {
        [
            self.get,
            self.put,
            self.multiget,
            self.range,
            self.delete,
            self.increment,
            self.bitcount,
            self.ping,
            self.invalid,
        ]
    }

    /// The classes that are asked.
    pub fn classes(self) -> impl Iterator<Item = Class> {
        let weighed = Class::ALL.into_iter().zip(self.weights());
        weighed.filter_map(|(class, weight)| (weight > 0.0).then_some(class))
    }

    /// Each class's upper end on the way from 0 to 1.
    pub(super) fn cumulative(self) -> [f64; CLASSES] {
        let weights = self.weights();
        let total: f64 = weights.iter().sum();
        let mut sum = 0.0;
        weights.map(|weight| {
            sum += weight;
            if total > 0.0 {
                sum / total
            } else {
                1.0
            }
        })
    }
}
