//! What a core counts for each tenant.

use std::collections::BTreeMap;

use policy::{Nanos, PrincipalId};
use telemetry::{Recorder, Request};

use super::Used;
use crate::connection::Connection;
use crate::tenants::Tenant;

/// The tenants' counters of one core.
pub struct Principals {
    core: usize,
    recorders: BTreeMap<PrincipalId, Recorder>,
}

impl Principals {
    /// No tenant yet.
    pub fn new(core: usize) -> Self {
        Self {
            core,
            recorders: BTreeMap::new(),
        }
    }

    /// Starts counting for a tenant, if that has not begun.
    pub fn enter(&mut self, tenant: &Tenant, registry: &telemetry::Registry) {
        if !self.recorders.contains_key(&tenant.id) {
            if let Some(recorder) = registry.recorder(&tenant.name, self.core) {
                self.recorders.insert(tenant.id, recorder);
            }
        }
    }

    /// Stops counting for a tenant that is gone.
    pub fn leave(&mut self, tenant: &Tenant) {
        self.recorders.remove(&tenant.id);
    }

    /// Everybody counted here.
    pub fn ids(&self) -> impl Iterator<Item = PrincipalId> + '_ {
        self.recorders.keys().copied()
    }

    /// The counters of a tenant.
    pub fn of(&mut self, tenant: &Tenant) -> Option<&mut Recorder> {
        self.recorders.get_mut(&tenant.id)
    }

    /// Counts the requests whose replies have left, with what their turn used; a connection with
    /// replies still held back is counted later.
    pub fn count(&mut self, connection: &mut Connection, used: &Used, begin: Nanos, end: Nanos) {
        let tally = &mut connection.tally;
        tally.bytes_in += used.bytes_in;
        tally.bytes_out += used.bytes_out;
        tally.cpu_ns += end - begin;
        if tally.answered.is_empty() || !connection.output.is_empty() || connection.parked.is_some()
        {
            return;
        }
        let tally = std::mem::take(tally);
        let Some(recorder) = self.recorders.get_mut(&connection.tenant.id) else {
            return;
        };
        let mut request = Request {
            class: tally.answered[0].class,
            latency_ns: end.saturating_sub(tally.since),
            queue_ns: tally.queue_ns,
            disk_ns: tally.disk_ns,
            bytes_in: tally.bytes_in,
            bytes_out: tally.bytes_out,
            cpu_ns: tally.cpu_ns,
            failed: false,
        };
        recorder.failed(request.class, u64::from(tally.failed));
        for answered in tally.answered {
            request.class = answered.class;
            recorder.record_many(&request, u64::from(answered.count));
            // Bytes and time are the turn's, not each request's: they are booked once.
            (request.bytes_in, request.bytes_out, request.cpu_ns) = (0, 0, 0);
        }
    }
}
