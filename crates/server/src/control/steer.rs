//! What a controller is shown each interval, and what becomes of what it gives.
//!
//! The controllers are `policy::slo::control`; here is nothing that decides. A promise's margins
//! are left with its meter, where cores find them; what stages are told goes to the cores as news,
//! and to the device directly.

use std::collections::BTreeMap;
use std::sync::Arc;

use policy::cost::device::AHEAD_BYTES_MAX;
use policy::slo::control::{
    are_those_of, Auto, AutoOptions, Cake, CakeOptions, Controller, Given, Held, Piece, Policy,
    PromiseSeen, Restart, Seen, ShareGiven, DEVICE, HANDLERS, STAGES,
};
use policy::slo::Counts;
use policy::words::Words;
use policy::{Nanos, PrincipalId};
use stage::LaneId;

use super::charged::Charged;
use crate::device::{Device, OthersDid};
use crate::shared::{News, Shared, Steered};
use crate::slo::{AtStages, Meter};
use crate::tenants::Tenant;

/// The controller at work.
pub struct Steering {
    policy: Policy,
    /// Whether the device was known when the controller was made.
    measured: bool,
    controller: Controller,
    /// [`Controller::step`]; tests have others.
    step: fn(&mut Controller, &[Held], &Seen) -> Given,
    /// After failures of a controller: when the next one begins.
    restart: Restart,
    since: Nanos,
    /// The promises that it was asked about last.
    held: Vec<Held>,
    /// Of work without due times at the device, as it was read last.
    others: OthersDid,
    /// What the promises were charged at the device.
    charged: Charged,
    /// What is in force.
    steered: Arc<Steered>,
}

/// One promise, and whose it is.
pub struct Promise {
    pub tenant: Arc<Tenant>,
    pub lane: usize,
    pub meter: Arc<Meter>,
}

impl Steering {
    /// It begins with what is configured.
    pub fn new(shared: &Shared) -> Self {
        let policy = shared.tuning().control;
        shared.note_control(|control, at| control.decided(policy.word(), Vec::new(), at));
        Self {
            policy,
            measured: measured(shared),
            controller: controller(policy, shared),
            step: Controller::step,
            restart: Restart::default(),
            since: shared.options.clock.now(),
            held: Vec::new(),
            others: OthersDid::default(),
            charged: Charged::default(),
            steered: Arc::default(),
        }
    }

    /// Decides, if an interval is over or another controller is wanted, or if promises are others:
    /// requests of a new one have due times at once, though nothing is known of it. Another part of
    /// a throughput that several fronts keep together is for the next interval. A disk that is
    /// measured while the server runs wants another, too: the one at work took it for a usual one.
    /// After one has failed, what it gave stays in force until the next begins.
    pub fn look(&mut self, shared: &Shared) {
        let (now, tuning) = (shared.options.clock.now(), shared.tuning());
        let elapsed_ns = now.saturating_sub(self.since);
        let mut due = elapsed_ns >= tuning.control_interval_ns;
        let measured = measured(shared);
        let renew = (tuning.control, measured) != (self.policy, self.measured);
        if tuning.control != self.policy {
            tracing::info!(
                before = self.policy.word(),
                now = tuning.control.word(),
                "another controller keeps the promises"
            );
        }
        if renew {
            (self.policy, self.measured) = (tuning.control, measured);
            self.controller = controller(self.policy, shared);
            self.restart = Restart::default();
            let word = self.policy.word();
            shared.note_control(|control, at| control.decided(word, Vec::new(), at));
            due = true;
        }
        if now < self.restart.begins_at() {
            return;
        }
        let promises = promises(shared);
        let held: Vec<Held> = promises.iter().map(Promise::held).collect();
        if !due && are_those_of(&held, self.held.iter()) {
            return;
        }
        self.held = held;
        if due {
            self.since = now;
        }
        if promises.is_empty() && *self.steered == Steered::default() {
            return;
        }
        let seen = match due {
            true => self.see(shared, &promises, elapsed_ns),
            false => Seen::default(),
        };
        match threads::contained(|| (self.step)(&mut self.controller, &self.held, &seen)) {
            Ok(given) => self.apply(shared, &promises, given),
            Err(what) => self.fail(shared, now, what),
        }
    }

    /// The controller has panicked, so its state is worth nothing: the next one has none. Promises
    /// may be what it fails of, so they are asked about again, too.
    fn fail(&mut self, shared: &Shared, now: Nanos, what: String) {
        self.controller = controller(self.policy, shared);
        self.held.clear();
        if self.restart.failed(now) {
            tracing::error!(
                policy = self.policy.word(),
                "the controller failed; what it gave last stays in force, and it begins anew by \
                 itself. Please report this. If ENTREMET EXPLAIN says that it fails again and \
                 again, CONFIG SET entremet-control static, or another: {what}"
            );
        }
        shared.note_control(|control, at| control.failed(what, at));
    }

    fn see(&mut self, shared: &Shared, promises: &[Promise], elapsed_ns: Nanos) -> Seen {
        let device = shared.options.disk.stage().cloned();
        let device = device.as_deref();
        let elapsed = elapsed_ns.max(1) as f64;
        let mut handled = (0, 0);
        let charged = match device {
            Some(device) => self.charged.see(shared, device, promises),
            None => vec![0.0; promises.len()],
        };
        let mut one = |(promise, charged_ns): (&Promise, f64)| {
            let at_stages = promise.meter.take_stages();
            if promise.meter.objective().latency.is_some() {
                handled.0 += at_stages.handled.0;
                handled.1 += at_stages.handled.1;
            }
            promise.seen(at_stages, charged_ns, elapsed)
        };
        let promises = promises.iter().zip(charged).map(&mut one).collect();
        let now = device.map_or_else(OthersDid::default, Device::of_others);
        let others = now.since(&self.others);
        self.others = now;
        Seen {
            elapsed_ns,
            promises,
            handled: handled.0,
            handled_ns: handled.1,
            others_bytes_per_s: others.bytes as f64 * 1e9 / elapsed,
            others_occupied: (others.waited_ns as f64 / elapsed).min(1.0),
            others_piece: Piece::mean(others.pieces, others.bytes, others.out_ns),
            compaction: device.map_or(0.0, |device| {
                let all = device.state().capacity_per_s * elapsed / 1e9;
                (others.compaction as f64 / 1e6 / all.max(1.0)).min(1.0)
            }),
        }
    }

    fn apply(&mut self, shared: &Shared, promises: &[Promise], given: Given) {
        for (promise, given) in promises.iter().zip(&given.promises) {
            promise.meter.give(given);
        }
        for why in &given.why {
            tracing::debug!(policy = self.policy.word(), "{why}");
        }
        let parts = promises.iter().zip(&given.promises);
        let mut parts_of: BTreeMap<PrincipalId, f64> = BTreeMap::new();
        for (promise, given) in parts {
            *parts_of.entry(promise.tenant.id).or_default() += given.device;
        }
        let next = Steered {
            handlers: given.permits[HANDLERS],
            others: given.others[HANDLERS],
            shares: shares(shared, &given),
            parts: parts_of,
        };
        let word = self.policy.word();
        shared.note_control(|control, at| control.decided(word, given.why, at));
        if let Some(device) = shared.options.disk.stage() {
            let others = given.others[DEVICE];
            device.steer(given.permits[DEVICE], others, given.chunk_bytes);
            device.bound_compaction(given.compaction);
        }
        if next == *self.steered {
            return;
        }
        let before = std::mem::replace(&mut self.steered, Arc::new(next));
        shared.steer(Arc::clone(&self.steered));
        for tenant in shared.tenants.list() {
            let differs = before.of(tenant.id) != self.steered.of(tenant.id);
            if differs {
                let _ = shared.device_hook(&tenant);
                shared.tell_all(|| News::Configure(Arc::clone(&tenant)));
            }
        }
        if (before.handlers, before.others) != (self.steered.handlers, self.steered.others) {
            shared.tell_all(|| News::Steered);
        }
    }
}

impl Promise {
    fn held(&self) -> Held {
        Held {
            principal: self.tenant.id,
            lane: LaneId(u8::try_from(self.lane).unwrap_or_default()),
            objective: self.meter.here(),
        }
    }

    /// What became of it in an interval of `elapsed` ns.
    fn seen(&self, at_stages: AtStages, charged_ns: f64, elapsed: f64) -> PromiseSeen {
        let reading = self.meter.read();
        let now = reading.counts;
        let mut last = self.meter.steered.lock();
        let counts = now.since(&last);
        *last = now;
        let waiting = reading.unanswered.at_stages;
        PromiseSeen {
            counts: Counts {
                overdue: waiting.overdue,
                ..counts
            },
            held: at_stages.held,
            unhandled: at_stages.unhandled,
            latencies: at_stages.latencies,
            after: at_stages.after,
            occupied: at_stages.waited_ns.map(|ns| (ns as f64 / elapsed).min(1.0)),
            device: (charged_ns / elapsed).min(1.0),
            waiting_ns: waiting.longest_ns,
        }
    }
}

/// What each tenant has in place of what was set.
fn shares(shared: &Shared, given: &Given) -> BTreeMap<PrincipalId, ShareGiven> {
    let tenants = shared.tenants.list().into_iter();
    let set = tenants.map(|tenant| {
        let settings = tenant.settings();
        ShareGiven {
            principal: tenant.id,
            share: [settings.weight; STAGES],
            reserved: [settings.promise().reserved_permits, settings.reserved_ios],
        }
    });
    let set: Vec<ShareGiven> = set.collect();
    let unlisted = set.iter().filter(|one| !given.lists(one.principal));
    let unlisted: f64 = unlisted.map(|one| one.share[HANDLERS]).sum();
    let shares = set.iter().filter_map(|one| given.share(one, unlisted));
    shares.map(|one| (one.principal, one)).collect()
}

/// All promises of all tenants.
fn promises(shared: &Shared) -> Vec<Promise> {
    let mut promises = Vec::new();
    for tenant in shared.tenants.list() {
        let meters = tenant.meters();
        for meter in meters.all() {
            let workload = meter.slo().workload.as_deref();
            let lane = workload.map_or(Some(0), |name| meters.workloads.named(name));
            promises.extend(lane.map(|lane| Promise {
                tenant: Arc::clone(&tenant),
                lane,
                meter: Arc::clone(meter),
            }));
        }
    }
    promises
}

fn measured(shared: &Shared) -> bool {
    shared.options.disk.stage().is_some()
}

/// A controller, told what the device is like.
fn controller(policy: Policy, shared: &Shared) -> Controller {
    let Some(device) = shared.options.disk.stage() else {
        return Controller::new(policy);
    };
    let options = device.options();
    match policy {
        Policy::Cake => {
            let usual = CakeOptions::default();
            Controller::Cake(Box::new(Cake::new(CakeOptions {
                drives: device.drives() as u32,
                drive_permits: match options.seeks {
                    true => usual.drive_permits,
                    false => options.depth,
                },
                ..usual
            })))
        }
        Policy::Auto => Controller::Auto(Box::new(Auto::new(AutoOptions {
            seeks: options.seeks,
            drives: device.drives() as u32,
            depth: options.depth,
            stream_bytes_per_s: options.stream_bytes_per_s,
            piece_bytes_max: AHEAD_BYTES_MAX,
            handlers: shared.options.engine.handlers as u32,
            ..AutoOptions::default()
        }))),
        Policy::Static | Policy::Frosting => Controller::new(policy),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::tests::promise;
    use crate::device::tests::options;
    use crate::shared::tests::shared;

    #[test]
    fn a_disk_that_is_measured_later_is_not_taken_for_a_usual_one_for_ever() {
        let directory = tempfile::tempdir().expect("a directory");
        let shared = shared(directory.path(), &["web"]);
        let mut steering = Steering::new(&shared);
        let believes = |steering: &Steering, what: &str| {
            let controller = format!("{:?}", steering.controller);
            assert!(controller.contains(what), "{what}: {controller}");
        };
        believes(&steering, "seeks: true");
        let clock = Arc::clone(&shared.options.clock);
        let device = Device::new(options(), clock, None);
        shared.options.disk.schedule(device);
        steering.look(&shared);
        believes(&steering, "seeks: false");
    }

    const S: Nanos = 1_000_000_000;

    #[test]
    fn another_part_of_a_throughput_waits_for_the_next_interval() {
        let directory = tempfile::tempdir().expect("a directory");
        let clock = stage::ManualClock::default();
        let mut shared = shared(directory.path(), &["web"]);
        shared.options.clock = Arc::new(clock.clone());
        let changed = shared.change_tenant("web", |spec| {
            let slo = settings::tenant::Slo {
                throughput_per_s: Some(40.0),
                ..settings::tenant::Slo::default()
            };
            spec.settings.slos = vec![slo];
            Ok(())
        });
        changed.expect("changed");
        let mut steering = Steering::new(&shared);
        let wanted = |steering: &Steering| steering.held[0].objective.throughput_per_s;
        steering.look(&shared);
        assert_eq!(wanted(&steering), Some(40.0));
        let meters = shared.tenants.get("web").expect("there").meters();
        meters.all()[0].record.lock().set_part(S, 0.25);
        steering.look(&shared);
        assert_eq!(wanted(&steering), Some(40.0));
        clock.advance(S);
        steering.look(&shared);
        assert_eq!(wanted(&steering), Some(10.0));
        shared.engine.shutdown();
    }

    #[test]
    fn a_controller_that_panics_leaves_what_it_gave_and_begins_anew() {
        let directory = tempfile::tempdir().expect("a directory");
        let clock = stage::ManualClock::default();
        let mut shared = shared(directory.path(), &["web"]);
        shared.options.clock = Arc::new(clock.clone());
        promise(&shared, 20_000_000);
        let mut steering = Steering::new(&shared);
        let margin = || {
            let meters = shared.tenants.get("web").expect("there").meters();
            meters.all()[0].due_at(HANDLERS, S)
        };
        let look_after = |steering: &mut Steering, s: Nanos| {
            clock.advance(s * S);
            steering.look(&shared);
        };
        look_after(&mut steering, 1);
        let given = margin();
        assert!(given.is_some());
        steering.step = |_, _, _| panic!("it divides by nothing");
        look_after(&mut steering, 1);
        let last = shared.last_control();
        let failure = last.failure.expect("it failed");
        assert!(
            failure.what.contains("divides by nothing"),
            "{}",
            failure.what
        );
        assert!(!failure.begun_anew);
        look_after(&mut steering, 1);
        look_after(&mut steering, 1);
        assert_eq!(shared.last_control().failures, 2, "it waits for 2 s");
        assert_eq!(margin(), given, "what it gave last is in force");
        steering.step = |controller, held, seen| {
            let new = Controller::new(Policy::Auto);
            assert_eq!(
                format!("{controller:?}"),
                format!("{new:?}"),
                "it has no memory"
            );
            controller.step(held, seen)
        };
        look_after(&mut steering, 1);
        assert!(shared
            .last_control()
            .failure
            .is_some_and(|failure| failure.begun_anew));
        assert!(margin().is_some());
        steering.step = Controller::step;
        shared.tune(|tuning| tuning.control = Policy::Static);
        look_after(&mut steering, 1);
        assert!(shared.last_control().failure.is_none(), "that was another");
        shared.engine.shutdown();
    }
}
