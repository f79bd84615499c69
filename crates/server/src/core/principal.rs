//! What a core counts for each tenant.

use std::sync::Arc;

use policy::slo::control::STAGES;
use policy::{Cost, Nanos, PrincipalId};
use smallvec::SmallVec;
use stage::{LaneAllocation, Terms};
use telemetry::{Class, Part, Recorder, Request, TimeParts};

use super::RESOURCES;
use crate::connection::{Connection, Parked, Tally};
use crate::slo::{Meter, Meters, Took, Unanswered};
use crate::tenants::Tenant;

/// The tenants' counters of one core.
pub struct Principals {
    core: usize,
    /// By principal: those are numbered densely.
    counted: Vec<Option<Counted>>,
}

/// Requests that were late, or slow.
pub struct Noticed {
    /// What they cost and waited for.
    pub tally: Tally,
    /// How long they took, ns.
    pub latency_ns: Nanos,
    /// The parts of that.
    pub parts: TimeParts,
    /// The promises that they were late for, with how many they were.
    pub late: SmallVec<[(Arc<Meter>, u64); 2]>,
    /// They are among the slowest of their tenant.
    pub slow: bool,
}

struct Counted {
    name: String,
    recorder: Recorder,
    /// What it was promised.
    meters: Arc<Meters>,
    /// Of each of them, what waits, and how many of these have not begun, while that is counted.
    unanswered: Vec<(Unanswered, u64)>,
    /// How far behind a replica may be that it reads from.
    may_lag_ns: Option<Nanos>,
    /// It may run scripts at an engine.
    scripts: bool,
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
                name: tenant.name.clone(),
                recorder,
                unanswered: vec![<_>::default(); tenant.meters().all().len()],
                meters: tenant.meters(),
                may_lag_ns: tenant.may_lag_ns(),
                scripts: tenant.may_script(),
                occupied_ns: 0,
            });
        }
    }

    /// A tenant may be promised something else from now on; true if it has other workloads.
    pub fn promised(&mut self, tenant: &Tenant) -> bool {
        let Some(Some(counted)) = self.counted.get_mut(tenant.id.index()) else {
            return false;
        };
        counted.may_lag_ns = tenant.may_lag_ns();
        counted.scripts = tenant.may_script();
        let before = std::mem::replace(&mut counted.meters, tenant.meters());
        counted.unanswered = vec![<_>::default(); counted.meters.all().len()];
        before.workloads != counted.meters.workloads
    }

    /// How far behind a replica may be that a tenant reads from; none: it reads from masters.
    #[inline]
    pub fn may_lag_ns(&self, principal: PrincipalId) -> Option<Nanos> {
        self.counted.get(principal.index())?.as_ref()?.may_lag_ns
    }

    /// Whether a tenant may run scripts at an engine.
    pub fn may_script(&self, principal: PrincipalId) -> bool {
        let counted = self.counted.get(principal.index());
        counted.is_some_and(|counted| counted.as_ref().is_some_and(|counted| counted.scripts))
    }

    /// The name of a principal's tenant.
    pub fn name(&self, principal: PrincipalId) -> Option<String> {
        let counted = self.counted.get(principal.index())?.as_ref()?;
        Some(counted.name.clone())
    }

    /// The name of a connection's workload.
    pub fn workload(&self, connection: &Connection) -> Option<String> {
        let counted = self.counted.get(connection.tenant.id.index())?.as_ref()?;
        let name = counted.meters.workloads.name(connection.lane)?;
        Some(name.to_string())
    }

    /// On what terms a connection waits for its turn.
    #[inline]
    pub fn terms(&self, connection: &Connection) -> Terms {
        let last = connection.last.spec.map(|spec| spec.class);
        match self.counted.get(connection.tenant.id.index()) {
            Some(Some(counted)) => {
                let came = connection.tally.since;
                counted.meters.terms(connection.lane, last, came)
            }
            _ => Terms::default(),
        }
    }

    /// A request of a class begins: by stage, when it must have its turn. One beyond its contract
    /// has no due time at any, nor has what it waits for.
    pub fn begin(&self, connection: &mut Connection, class: Class) -> [Option<Nanos>; STAGES] {
        let Some(Some(counted)) = self.counted.get(connection.tenant.id.index()) else {
            return [None; STAGES];
        };
        let opening = matches!(connection.parked, Some(Parked::Opening));
        let lane = connection.lane;
        connection.tally.settle(class, opening, |came| {
            let within = counted.meters.begin(lane, class, came);
            let due_at = counted.meters.due_at((lane, class), &within, came);
            (within, due_at)
        })
    }

    /// A request of a class begins before an engine: whether it is reserved, and goes before
    /// shares.
    #[inline]
    pub fn reserved(&self, tenant: &Tenant, class: Class, now: Nanos) -> bool {
        match self.counted.get(tenant.id.index()) {
            Some(Some(counted)) => counted.meters.reserves.begin(class, now),
            _ => false,
        }
    }

    /// What the lanes of a tenant are entitled to where requests come in, and elsewhere.
    pub fn lanes(&self, tenant: &Tenant) -> [Vec<LaneAllocation>; 2] {
        match self.counted.get(tenant.id.index()) {
            Some(Some(counted)) => [true, false].map(|contracts| counted.meters.lanes(contracts)),
            _ => Default::default(),
        }
    }

    /// Whether anybody was promised anything.
    pub fn promised_any(&self) -> bool {
        let mut counted = self.counted.iter().flatten();
        counted.any(|counted| !counted.unanswered.is_empty())
    }

    /// A connection waits for a request of a class.
    pub fn unanswered(&mut self, connection: &Connection, class: Class, now: Nanos) {
        let Some(Some(counted)) = self.counted.get_mut(connection.tenant.id.index()) else {
            return;
        };
        let places = counted.meters.places(connection.lane, class);
        for (number, place) in places.iter().map(|place| usize::from(*place)).enumerate() {
            let (meter, came) = (&counted.meters.all()[place], connection.tally.since);
            let (unanswered, unbegun) = &mut counted.unanswered[place];
            let within = match &connection.tally.begun {
                Some(begun) if begun.class == class => begun.within.get(number) == Some(&true),
                _ => {
                    let within = meter.has_room(came, *unbegun, now);
                    *unbegun += u64::from(within);
                    within
                }
            };
            if within {
                let waited_ns = now.saturating_sub(came);
                let opening = matches!(connection.parked, Some(Parked::Opening));
                unanswered.count(meter.objective(), waited_ns, opening);
            }
        }
    }

    /// That is all that wait: their meters are told.
    pub fn tell_unanswered(&mut self) {
        for counted in self.counted.iter_mut().flatten() {
            let meters = counted.meters.all().iter();
            for (meter, unanswered) in meters.zip(&mut counted.unanswered) {
                let (unanswered, _) = std::mem::take(unanswered);
                meter.waits(self.core, unanswered);
            }
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
    ///
    /// Those that were late, or are among the slowest of their tenant, come back: it is worth
    /// finding out why.
    pub fn count(
        &mut self,
        connection: &mut Connection,
        used: &Cost<RESOURCES>,
        end: Nanos,
    ) -> Option<Noticed> {
        // What is still to come to who waits at the engine counts from when it comes.
        let parked = connection.parked.is_some() && !connection.waits_at_engine();
        let waits = parked || connection.uncommitted.awaits.is_some();
        let tally = &mut connection.tally;
        let Cost([_, bytes_in, bytes_out, cpu_ns]) = *used;
        tally.bytes_in += bytes_in;
        tally.bytes_out += bytes_out;
        tally.cpu_ns += cpu_ns;
        if tally.answered.is_empty() || !connection.output.is_empty() || waits {
            return None;
        }
        let tally = tally.take();
        if connection.input.may_hold_request() {
            // What its turn left over came with what it answered.
            connection.tally.begin(tally.since, end);
        }
        let counted = self.counted.get_mut(connection.tenant.id.index())?;
        let counted = counted.as_mut()?;
        let (core, recorder) = (self.core, &mut counted.recorder);
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
        let took = Took {
            came: tally.since,
            latency_ns: request.latency_ns,
            turns: tally.turns,
            handled_ns: tally.disk_ns.saturating_sub(request.parts[Part::Device]),
        };
        let mut late = SmallVec::new();
        for answered in &tally.answered {
            request.class = answered.class;
            let count = u64::from(answered.count);
            recorder.record_many(&request, count);
            for meter in counted.meters.of(connection.lane, answered.class) {
                let some = meter.answered(core, &took, count);
                if some > 0 {
                    late.push((Arc::clone(meter), some));
                }
            }
            let kib = (request.bytes_in + request.bytes_out) / 1024;
            // One of each was taken when it began.
            (counted.meters.reserves).take(answered.class, kib.saturating_sub(count), end);
            // Bytes and time are the turn's, not each request's: they are booked once.
            (request.bytes_in, request.bytes_out, request.cpu_ns) = (0, 0, 0);
        }
        let slow = connection.tenant.slowest.wants(request.latency_ns);
        (slow || !late.is_empty()).then_some(Noticed {
            tally,
            latency_ns: request.latency_ns,
            parts: request.parts,
            late,
            slow,
        })
    }
}
