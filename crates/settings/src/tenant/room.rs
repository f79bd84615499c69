//! What tenants claim together, and whether it is there to give: one check for the file, for
//! commands and for the simulator, in the same words.

use std::fmt;

use super::Settings;
use crate::units::{Bytes, Rate};

/// A memory that tenants share by allotments.
pub struct Memory {
    /// The key of a tenant's allotment, without `tenant.`.
    pub key: &'static str,
    /// The key of all of it.
    pub all: &'static str,
    /// A tenant's part, if it is fixed.
    pub allotment: fn(&Settings) -> Option<u64>,
}

/// All of them.
pub const MEMORIES: [Memory; 3] = [
    Memory {
        key: "cache",
        all: "engine.object_cache",
        allotment: |settings| settings.cache_bytes,
    },
    Memory {
        key: "block_cache",
        all: "engine.block_cache",
        allotment: |settings| settings.block_cache_bytes,
    },
    Memory {
        key: "write_buffers",
        all: "engine.write_buffers",
        allotment: |settings| settings.write_buffer_bytes,
    },
];

/// What there is to promise.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    /// Cores.
    pub cores: usize,
    /// Fronts that keep promises together; 1: this server alone.
    pub fronts: usize,
    /// Requests per second that the cores of all of them serve.
    pub requests_per_s: f64,
    /// Handlers, of which reserved permits are taken; `None`: they are taken of nothing (before an
    /// engine they come beside what the others may have out).
    pub handlers: Option<u64>,
    /// Bytes of each of [`MEMORIES`].
    pub memories: [u64; MEMORIES.len()],
}

/// A promise that cannot be kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Infeasible {
    /// The key that asks for too much, without `tenant.`: a setting or a table of them.
    pub key: &'static str,
    /// Why it cannot be kept.
    pub what: String,
    /// What to do.
    pub advice: String,
}

impl fmt::Display for Infeasible {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.what, self.advice)
    }
}

/// The sums over some tenants, so that a change of one looks at no other. Rates and weights that
/// are no whole numbers may be off in their last digits after many changes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Totals {
    /// Tenants that may administer the server.
    pub operators: u64,
    /// Weights.
    pub weight: f64,
    /// Reserved requests per second.
    pub reserved_per_s: f64,
    /// Reserved permits.
    pub reserved_permits: u64,
    /// Of each of [`MEMORIES`].
    pub memories: [Claimed; MEMORIES.len()],
}

/// Of one memory.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Claimed {
    /// Fixed allotments, bytes.
    pub fixed: u64,
    /// Weights of the tenants without one.
    pub weights: f64,
}

impl Totals {
    /// With a tenant more.
    #[must_use]
    pub fn with(mut self, settings: &Settings) -> Self {
        self.operators += u64::from(settings.admin);
        self.weight += settings.weight;
        self.reserved_per_s += settings.promise().requests_per_s();
        self.reserved_permits += u64::from(settings.reserved_permits);
        for (claimed, memory) in self.memories.iter_mut().zip(&MEMORIES) {
            match (memory.allotment)(settings) {
                Some(bytes) => claimed.fixed = claimed.fixed.saturating_add(bytes),
                None => claimed.weights += settings.weight,
            }
        }
        self
    }

    /// Without a tenant that was counted with these settings.
    #[must_use]
    pub fn without(mut self, settings: &Settings) -> Self {
        self.operators -= u64::from(settings.admin);
        self.weight -= settings.weight;
        self.reserved_per_s -= settings.promise().requests_per_s();
        self.reserved_permits -= u64::from(settings.reserved_permits);
        for (claimed, memory) in self.memories.iter_mut().zip(&MEMORIES) {
            match (memory.allotment)(settings) {
                Some(bytes) => claimed.fixed = claimed.fixed.saturating_sub(bytes),
                None => claimed.weights -= settings.weight,
            }
        }
        self
    }

    /// Everything of this that is not there to give.
    #[must_use]
    pub fn unkept(&self, room: &Room) -> Vec<Infeasible> {
        let rates = (self.reserved_per_s > room.requests_per_s).then(|| {
            let cores = match room.cores {
                1 => "1 core".to_owned(),
                cores => format!("{cores} cores"),
            };
            let serve = match (room.cores, room.fronts) {
                (1, 1) => format!("{cores} serves"),
                (_, 1) => format!("{cores} serve"),
                (_, fronts) => format!("{fronts} fronts with {cores} each serve"),
            };
            Infeasible {
                key: "reserve",
                what: format!(
                    "reservations of all tenants come to {:.0}/s, but {serve} {:.0}/s",
                    self.reserved_per_s, room.requests_per_s
                ),
                advice: "promise less, or raise scheduler.requests if the machine has been measured to do more".into(),
            }
        });
        let permits = (room.handlers)
            .and_then(|handlers| permits(self.reserved_permits, handlers, "engine.handlers"));
        let memories = MEMORIES.iter().zip(self.memories).zip(room.memories);
        let short = memories.filter(|((_, claimed), bytes)| claimed.fixed > *bytes);
        let memories = short.map(|((memory, claimed), bytes)| Infeasible {
            key: memory.key,
            what: format!(
                "{} allotments of all tenants come to {}, but {} is {}",
                memory.key,
                Bytes::new(claimed.fixed),
                memory.all,
                Bytes::new(bytes)
            ),
            advice: format!("allot less, or raise {}", memory.all),
        });
        rates.into_iter().chain(permits).chain(memories).collect()
    }
}

impl<'s> FromIterator<&'s Settings> for Totals {
    fn from_iter<I: IntoIterator<Item = &'s Settings>>(tenants: I) -> Self {
        tenants.into_iter().fold(Self::default(), Self::with)
    }
}

/// Whether this many reserved permits can be kept free among this many handlers, which `key` says:
/// one must be left for all.
#[must_use]
pub fn permits(reserved: u64, handlers: u64, key: &str) -> Option<Infeasible> {
    (reserved > 0 && reserved >= handlers).then(|| Infeasible {
        key: "reserved_permits",
        what: format!(
            "reserved_permits of all tenants come to {reserved}, and with {handlers} handlers nobody else could read from \
             the disk"
        ),
        advice: format!("reserve fewer, or set {key} to {} or more", reserved + 1),
    })
}

impl Settings {
    /// A promise that the tenant's own contract or limit does not let it have.
    #[must_use]
    pub fn beyond_its_own(&self) -> Option<Infeasible> {
        let promised = self.promise().requests_per_s();
        let beyond = |most: Option<f64>| most.filter(|most| promised > *most).map(Rate::words);
        let promises = Rate::words(promised);
        let (what, advice) = if let Some(contract) = beyond(self.contract_per_s) {
            let what =
                format!("its reservations come to {promises}, but beyond contract = {contract} no promise holds");
            (what, "raise the contract or promise less")
        } else {
            let limit = beyond(self.limit.requests_per_s)?;
            let what =
                format!("its reservations come to {promises}, more than limit.requests = {limit} lets through");
            (what, "raise the limit or promise less")
        };
        Some(Infeasible {
            key: "reserve",
            what,
            advice: advice.into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_comes_and_goes_leaves_the_others_sums() {
        let plain = Settings {
            weight: 4.0,
            reserve_get_per_s: Some(100.0),
            ..Settings::default()
        };
        let rich = Settings {
            admin: true,
            weight: 2.0,
            reserved_permits: 3,
            reserve_put_per_s: Some(50.0),
            cache_bytes: Some(1 << 20),
            write_buffer_bytes: Some(2 << 20),
            ..Settings::default()
        };
        let both: Totals = [&plain, &rich].into_iter().collect();
        assert_eq!(both.without(&rich), Totals::default().with(&plain));
        assert_eq!(both.without(&plain), Totals::default().with(&rich));
        assert_eq!((both.operators, both.weight), (1, 6.0));
        assert_eq!((both.reserved_per_s, both.reserved_permits), (150.0, 3));
        let [cache, blocks, buffers] = both.memories;
        assert_eq!((cache.fixed, cache.weights), (1 << 20, 4.0));
        assert_eq!((blocks.fixed, blocks.weights), (0, 6.0));
        assert_eq!((buffers.fixed, buffers.weights), (2 << 20, 4.0));
    }

    #[test]
    fn what_is_not_there_is_named() {
        let room = Room {
            cores: 1,
            fronts: 1,
            requests_per_s: 10_000.0,
            handlers: Some(4),
            memories: [1 << 20, 2 << 20, 3 << 20],
        };
        let fits = Settings {
            reserve_get_per_s: Some(10_000.0),
            reserved_permits: 3,
            cache_bytes: Some(1 << 20),
            block_cache_bytes: Some(2 << 20),
            write_buffer_bytes: Some(3 << 20),
            limit: super::super::Limit {
                requests_per_s: Some(10_000.0),
                ..Default::default()
            },
            ..Settings::default()
        };
        let unkept = |settings: &Settings| Totals::default().with(settings).unkept(&room);
        assert_eq!(unkept(&fits), []);
        let before_engine = Room {
            handlers: None,
            ..room
        };
        let many = Settings {
            reserved_permits: 900,
            ..Settings::default()
        };
        let totals = Totals::default().with(&many);
        assert_eq!(totals.unkept(&before_engine), []);
        assert_eq!(fits.beyond_its_own(), None);
        let mut more = fits.clone();
        more.reserve_put_per_s = Some(1.0);
        more.reserved_permits = 4;
        more.cache_bytes = Some((1 << 20) + 1);
        more.block_cache_bytes = Some(3 << 20);
        more.write_buffer_bytes = Some(4 << 20);
        let said: Vec<String> = unkept(&more).iter().map(ToString::to_string).collect();
        assert_eq!(
            said,
            [
                "reservations of all tenants come to 10001/s, but 1 core serves 10000/s; \
                 promise less, or raise scheduler.requests if the machine has been measured to do more",
                "reserved_permits of all tenants come to 4, and with 4 handlers nobody else could read from the disk; \
                 reserve fewer, or set engine.handlers to 5 or more",
                "cache allotments of all tenants come to 1048577B, but engine.object_cache is 1MiB; \
                 allot less, or raise engine.object_cache",
                "block_cache allotments of all tenants come to 3MiB, but engine.block_cache is 2MiB; \
                 allot less, or raise engine.block_cache",
                "write_buffers allotments of all tenants come to 4MiB, but engine.write_buffers is 3MiB; \
                 allot less, or raise engine.write_buffers",
            ]
        );
        let several = Room { fronts: 3, ..room };
        let said = Totals::default().with(&more).unkept(&several);
        let three = "but 3 fronts with 1 core each serve 10000/s";
        assert!(said[0].what.ends_with(three), "{}", said[0].what);
        let beyond = more.beyond_its_own().expect("more than its limit");
        assert_eq!(
            beyond.what,
            "its reservations come to 10001/s, more than limit.requests = 10000/s lets through"
        );
        let keys: Vec<&str> = unkept(&more).iter().map(|problem| problem.key).collect();
        assert!(keys.iter().all(|key| more.asks(key)));
        assert!(!keys.iter().any(|key| Settings::default().asks(key)));
    }
}
