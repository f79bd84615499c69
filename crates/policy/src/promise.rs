//! What a tenant was promised and is held to, and what that comes to at each stage.
//!
//! A server makes promises of its configuration, the simulator of a scenario; both take from here
//! what each of their stages is told. Rates are counted once, where requests come in. Permits are
//! kept free where threads wait for a disk. A device keeps none free, because its permits are few;
//! it shares by weight, and what was reserved of requests is priced for it ([`crate::provision`]).

use crate::dispatch::{Allocation, Limit};
use crate::portion::Portions;
use crate::provision::Reservation;
use crate::words::{Choice, Words};

/// When a write counts as done, so that its reply may go out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// When its log record is on the device (fdatasync).
    Always,
    /// When its log record is with the kernel; the log is synced once a second.
    EverySecond,
    /// When its log record is with the kernel.
    Never,
}

impl Words for Durability {
    #[rustfmt::skip]
    const ALL: &'static [(Self, Choice)] = &[
        (Self::Always, ("always", "Writes are on the disk before they are answered.")),
        (Self::EverySecond, ("every 1s", "Writes are safe within a second; a power cut can cost the last second's.")),
        (Self::Never, ("never", "Writes reach the disk when the system pleases; a power cut can cost many.")),
    ];
}

/// Where before a cluster a tenant's reads go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reads {
    /// To the master of their keys: they see all that was answered.
    Master,
    /// To a replica that is known to be near enough, while there is one.
    Replica,
}

impl Words for Reads {
    #[rustfmt::skip]
    const ALL: &'static [(Self, Choice)] = &[
        (Self::Master, ("master", "Its reads see every write that was answered before.")),
        (Self::Replica, ("replica", "Its reads may go to replicas, and miss what was written just before.")),
    ];
}

/// What a tenant was promised and is held to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Promise {
    /// Share relative to other tenants, 0.001 to 1000.
    pub weight: f64,
    /// Handlers kept free for this tenant.
    pub reserved_permits: u32,
    /// Reads and writes a second promised, normalised to 1 KiB; 0: none.
    pub reserved_per_s: Reservation,
    /// Rates not exceeded.
    pub limit: Limit,
    /// Normalised requests a second up to which the rest is kept; `None`: any number.
    pub contract_per_s: Option<f64>,
}

impl Promise {
    /// A share and nothing else.
    #[must_use]
    pub fn share(weight: f64) -> Self {
        Promise {
            weight,
            reserved_permits: 0,
            reserved_per_s: Reservation::default(),
            limit: Limit::default(),
            contract_per_s: None,
        }
    }

    /// Requests a second promised, reads and writes together.
    #[must_use]
    pub fn requests_per_s(&self) -> f64 {
        self.reserved_per_s.iter().sum()
    }

    /// Whether it has any rate: a limit, a reservation or a contract.
    #[must_use]
    pub fn has_rates(&self) -> bool {
        let limit = &self.limit;
        let rates = [limit.requests_per_s, limit.bytes_per_s, self.contract_per_s];
        rates.iter().any(Option::is_some) || self.requests_per_s() > 0.0
    }

    /// At the stage where requests come in, the same on every core: rates count what other cores
    /// serve too. A turn there ends before the next begins, so there is no permit to keep free.
    #[must_use]
    pub fn at_requests(&self) -> Allocation {
        let reserved = self.requests_per_s();
        Allocation {
            weight: self.weight,
            reserved_permits: 0,
            reservation_per_s: (reserved > 0.0).then_some(reserved),
            limit: self.limit,
            contract_per_s: self.contract_per_s,
        }
    }

    /// At the handlers of one of `cores` cores, counted from `seat`: 0 for the one that gets the
    /// first of the reserved permits. Over all cores they come to exactly their number. Rates were
    /// counted where requests came in.
    #[must_use]
    pub fn at_handlers(&self, seat: u32, cores: u32) -> Allocation {
        let (each, over) = (self.reserved_permits / cores, self.reserved_permits % cores);
        Allocation {
            reserved_permits: each + u32::from(seat < over),
            ..Allocation::share(self.weight)
        }
    }

    /// At one of several fronts that keep a promise together: these portions of its rates and of
    /// its weight. Permits are kept free at every one.
    #[must_use]
    pub fn portions(&self, portions: &Portions) -> Self {
        let limit = |per_s: Option<f64>| per_s.map(|per_s| per_s * portions.limit);
        let promised = |per_s: f64| per_s * portions.promised;
        let [get, put] = self.reserved_per_s;
        Promise {
            weight: self.weight * portions.weight,
            reserved_per_s: [get * portions.reserved[0], put * portions.reserved[1]],
            limit: Limit {
                requests_per_s: limit(self.limit.requests_per_s),
                bytes_per_s: limit(self.limit.bytes_per_s),
                ..self.limit
            },
            contract_per_s: self.contract_per_s.map(promised),
            ..*self
        }
    }
}
