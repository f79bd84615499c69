//! The stages of one core.

use policy::{Cost, Nanos};
use stage::{DispatchOptions, Meter};

use super::front::engine_stage;
use super::RESOURCES;
use crate::shared::Shared;

/// A queue holds each connection at most once, so that no queue can be longer than the descriptors
/// allow.
const QUEUE_MAX: usize = 1 << 20;

/// A tenant keeps what it has not used for this long. Its clients are silent while they wait for a
/// commit (some ms where committer and core share a processor), and must not lose their share for
/// that: Pisces 4.3.5 waits for I/O-bound connections before it ends a round, for the same reason.
const ROUND_NS: Nanos = 10_000_000;

/// Requests of a pipeline that are answered together, some tens of us of them: in halves they cost
/// two replies, and their client is woken twice. It holds whatever capacity is configured for
/// requests.
const TOGETHER: u64 = 32;

/// The request stage of one core.
pub fn request_stage(shared: &Shared) -> DispatchOptions<RESOURCES> {
    let capacity = shared.options.capacity;
    let per_s = [
        capacity.requests_per_s,
        capacity.bytes_in_per_s,
        capacity.bytes_out_per_s,
        // One core has one second of CPU time a second.
        1_000_000_000,
    ];
    let meter = Meter {
        requests: 0,
        bytes: [false, true, true, false],
    };
    DispatchOptions {
        discipline: shared.tuning().discipline,
        queue_max: QUEUE_MAX,
        seed: shared.options.seed,
        turn_least: Cost([TOGETHER, 0, 0, 0]),
        round_ns: ROUND_NS,
        charge_max_ns: charge_max_ns(shared.options.args_max, capacity.requests_per_s),
        ..DispatchOptions::new(per_s, meter)
    }
}

/// The handler stage of one core: its part of the handler threads.
pub fn handler_stage(shared: &Shared) -> DispatchOptions<1> {
    DispatchOptions {
        discipline: shared.tuning().discipline,
        queue_max: QUEUE_MAX,
        seed: shared.options.seed,
        ..match shared.upstream {
            Some(_) => engine_stage(),
            None => DispatchOptions::handlers(shared.options.handlers_each()),
        }
    }
}

/// What a request can be charged at most: one request for each of its words, and what else happens
/// in its turn.
fn charge_max_ns(args_max: u32, requests_per_s: u64) -> Nanos {
    const TURN_NS: Nanos = 100_000_000;
    let words_ns = u128::from(args_max) * 1_000_000_000 / u128::from(requests_per_s.max(1));
    Nanos::try_from(words_ns)
        .unwrap_or(Nanos::MAX)
        .saturating_add(TURN_NS)
}
