//! Promises, and what an interval showed of them.

use policy::dispatch::LaneId;
use policy::slo::control::{Held, PromiseSeen, Seen};
use policy::slo::{Counts, Latency, Objective, Tail};
use policy::PrincipalId;

use super::{MS, S};

/// A promise to a tenant.
pub fn held(tenant: u32, at_most_ms: Option<u64>, rate: Option<f64>, importance: u32) -> Held {
    Held {
        principal: PrincipalId(tenant),
        lane: LaneId::REST,
        objective: Objective {
            latency: at_most_ms.map(|ms| Latency {
                percentile: 99.0,
                at_most_ns: ms * MS,
            }),
            throughput_per_s: rate,
            contract_per_s: None,
            importance,
            window_ns: 10 * S,
        },
    }
}

/// This many requests, this many of them late, and a percentile of this value.
pub fn latency(requests: u64, late: u64, ms: u64) -> PromiseSeen {
    let mut latencies = Tail::default();
    latencies.record_many(ms * MS, requests);
    PromiseSeen {
        counts: Counts {
            requests,
            late,
            ..Counts::default()
        },
        latencies,
        ..PromiseSeen::default()
    }
}

/// An interval that showed this.
pub fn seen(elapsed_ns: u64, promises: Vec<PromiseSeen>) -> Seen {
    Seen {
        elapsed_ns,
        promises,
        ..Seen::default()
    }
}
