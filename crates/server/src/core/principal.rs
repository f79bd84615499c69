//! What a core counts for each tenant.

use policy::{Cost, Nanos, PrincipalId};
use telemetry::{Class, Recorder, Request};

use super::RESOURCES;
use crate::connection::Connection;
use crate::tenants::Tenant;

/// The tenants' counters of one core.
pub struct Principals {
    core: usize,
    /// By principal: those are numbered densely.
    counted: Vec<Option<Counted>>,
}

struct Counted {
    recorder: Recorder,
    /// Of the stage's total, what the recorder was told.
    occupied_ns: Nanos,
}

impl Principals {
    /// No tenant yet.
    pub fn new(core: usize) -> Self {
        Self {
            core,
            counted: Vec::new(),
        }
    }

    /// Starts counting for a tenant, if that has not begun.
    pub fn enter(&mut self, tenant: &Tenant, registry: &telemetry::Registry) {
        let index = tenant.id.index();
        if self.counted.len() <= index {
            self.counted.resize_with(index + 1, || None);
        }
        if self.counted[index].is_none() {
            let recorder = registry.recorder(&tenant.name, self.core);
            self.counted[index] = recorder.map(|recorder| Counted {
                recorder,
                occupied_ns: 0,
            });
        }
    }

    /// Stops counting for a tenant that is gone.
    pub fn leave(&mut self, tenant: &Tenant) {
        if let Some(counted) = self.counted.get_mut(tenant.id.index()) {
            *counted = None;
        }
    }

    /// Everybody counted here.
    pub fn ids(&self) -> impl Iterator<Item = PrincipalId> + '_ {
        let ids = (0..).map(PrincipalId);
        let pairs = ids.zip(&self.counted);
        pairs.filter_map(|(id, counted)| counted.as_ref().map(|_| id))
    }

    /// Books the time for which a principal had something queued, by the stage's total.
    pub fn occupied(&mut self, principal: PrincipalId, total_ns: Nanos) {
        if let Some(Some(counted)) = self.counted.get_mut(principal.index()) {
            let more_ns = total_ns.saturating_sub(counted.occupied_ns);
            counted.recorder.occupied(more_ns);
            counted.occupied_ns = total_ns;
        }
    }

    /// Counts what a connection that closes has used for requests that nobody was answered.
    pub fn left(&mut self, connection: &Connection) {
        let tally = &connection.tally;
        if let Some(recorder) = self.of(&connection.tenant) {
            let (bytes_in, bytes_out) = (tally.bytes_in, tally.bytes_out);
            recorder.spent(Class::Other, bytes_in, bytes_out, tally.cpu_ns);
        }
    }

    /// The counters of a tenant.
    pub fn of(&mut self, tenant: &Tenant) -> Option<&mut Recorder> {
        let counted = self.counted.get_mut(tenant.id.index())?.as_mut()?;
        Some(&mut counted.recorder)
    }

    /// Counts the requests whose replies have left, with what their turn, which ended at `end`,
    /// used; a connection with replies still held back is counted later.
    pub fn count(&mut self, connection: &mut Connection, used: &Cost<RESOURCES>, end: Nanos) {
        let tally = &mut connection.tally;
        let Cost([_, bytes_in, bytes_out, cpu_ns]) = *used;
        tally.bytes_in += bytes_in;
        tally.bytes_out += bytes_out;
        tally.cpu_ns += cpu_ns;
        let waits = connection.parked.is_some() || connection.uncommitted.awaits.is_some();
        if tally.answered.is_empty() || !connection.output.is_empty() || waits {
            return;
        }
        let tally = tally.take();
        if connection.input.may_hold_request() {
            // What its turn left over came with what it answered.
            connection.tally.begin(tally.since, end);
        }
        let Some(recorder) = self.of(&connection.tenant) else {
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
            parts: tally.parts(),
        };
        recorder.failed(request.class, u64::from(tally.failed));
        recorder.looked_up(tally.lookups.found.into(), tally.lookups.missed.into());
        for answered in tally.answered {
            request.class = answered.class;
            recorder.record_many(&request, u64::from(answered.count));
            // Bytes and time are the turn's, not each request's: they are booked once.
            (request.bytes_in, request.bytes_out, request.cpu_ns) = (0, 0, 0);
        }
    }
}
