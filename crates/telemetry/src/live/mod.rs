//! The last seconds, renewed every second for those who watch.
//!
//! Counters only grow, so what happened lately is the difference of two readings. Readings are
//! taken once a second while somebody watches, on the admin thread, from the counters that cores
//! keep anyway: a request pays nothing, and when nobody watches nothing is read.

mod compact;
mod frame;
mod past;
mod reading;
pub mod view;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::model::AdminSource;
use crate::registry::Registry;
use frame::Gauges;
use reading::Reading;

pub(crate) use frame::Frame;
pub(crate) use past::Past;

/// Time between two frames.
pub(crate) const STEP: Duration = Duration::from_secs(1);

/// Steps that a frame looks back: rates and latencies are over the last 3 s. Shorter, and the 99th
/// percentile of a hundred requests a second is one request; longer, and a change takes long to be
/// seen.
const STEPS: usize = 3;

/// The readings that frames are made from.
#[derive(Default)]
pub(crate) struct History {
    readings: VecDeque<Arc<Reading>>,
}

impl History {
    /// Reads everything; a frame comes with the second reading. `now_ns` never goes back.
    pub(crate) fn step(
        &mut self,
        source: &dyn AdminSource,
        registry: &Registry,
        now_ns: u64,
    ) -> Option<Frame> {
        let gauges = Gauges {
            at_ms: unix_ms(),
            state: source.state(),
            server: source.server(),
            tenants: source.tenants(),
            newcomers: source.newcomers(),
            stages: source.stages(),
        };
        let stages_of = gauges
            .everybody()
            .map(|tenant| (tenant.name.clone(), tenant.stages.clone()))
            .collect();
        let now = Arc::new(Reading::take(
            registry,
            stages_of,
            &gauges.stages,
            gauges.server.cpu_user_s + gauges.server.cpu_system_s,
            (self.readings.back().map(Arc::as_ref), now_ns),
        ));
        self.readings.push_back(Arc::clone(&now));
        while self.readings.len() > STEPS + 1 {
            self.readings.pop_front();
        }
        let before = self.readings.front().filter(|_| self.readings.len() > 1)?;
        Some(Frame::new(gauges, Arc::clone(before), now))
    }
}

/// Time of day, milliseconds since 1970.
pub(crate) fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_millis() as u64)
}

#[cfg(test)]
mod tests;
