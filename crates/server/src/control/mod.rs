//! The thread that keeps promises: it closes their windows, remembers how well they were kept, and
//! has a controller decide what is to be done about it.

mod charged;
mod kept;
mod steer;

use std::io;
use std::path::Path;
use std::sync::mpsc::{channel, Receiver, RecvTimeoutError, Sender};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use policy::slo::admission::Admission;
use policy::Nanos;
use telemetry::Class;

use crate::shared::{News, Shared};
use crate::slo::{Meter, Total, HOURS_KEPT, MINUTES_KEPT};
use crate::tenants::Tenant;
use kept::{remember, Kept, Line, Since};
use steer::Steering;

/// A window is closed at most this long after its end; it is judged by how long it really was.
const LOOK: Duration = Duration::from_millis(100);

/// How well promises were kept is written down so often; a crash forgets what came after.
const WRITE_NS: Nanos = 300_000_000_000;

/// Cores look so often how long promised requests have waited: a window is a second at least.
const WAITS_NS: Nanos = 500_000_000;

/// What requests asked for is looked at so often: it is for reckoning with minutes.
const DEMAND_NS: Nanos = 5_000_000_000;

/// The thread, and what ends it when it is dropped.
pub struct Controller {
    thread: JoinHandle<()>,
    end: Sender<()>,
}

impl Controller {
    /// Starts it.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn start(shared: &Arc<Shared>) -> io::Result<Self> {
        let (end, ended) = channel();
        let shared = Arc::clone(shared);
        let thread = thread::Builder::new().name("control".into());
        let thread = thread.spawn(move || {
            let _whole = threads::Whole;
            run(&shared, &ended);
        })?;
        Ok(Self { thread, end })
    }

    /// Ends it; what is known of the promises is written down.
    pub fn stop(self) {
        drop(self.end);
        // A panic would have ended the process.
        let _ = self.thread.join();
    }
}

fn run(shared: &Shared, ended: &Receiver<()>) {
    let mut watch = Watch::open(shared, &shared.options.data);
    let mut steering = Steering::new(shared);
    let mut demanded = shared.options.clock.now();
    let mut asked = demanded;
    while ended.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
        watch.look(shared);
        steering.look(shared);
        demanded = see_demand(shared, demanded);
        asked = ask_for_waits(shared, asked);
    }
    watch.end(shared);
}

/// Has cores look how long promised requests have waited, if that is due; returns when it was done.
fn ask_for_waits(shared: &Shared, last: Nanos) -> Nanos {
    let now = shared.options.clock.now();
    if now.saturating_sub(last) < WAITS_NS {
        return last;
    }
    let tenants = shared.tenants.list();
    if tenants
        .iter()
        .any(|tenant| !tenant.meters().all().is_empty())
    {
        shared.tell_all(|| News::Look);
    }
    now
}

/// Sees what requests asked for since it was done last, if that is long enough ago; returns when
/// it was done.
fn see_demand(shared: &Shared, last: Nanos) -> Nanos {
    let now = shared.options.clock.now();
    let elapsed_ns = now.saturating_sub(last);
    if elapsed_ns < DEMAND_NS || shared.tuning().admission == Admission::Off {
        return last;
    }
    let elapsed_s = elapsed_ns as f64 / 1e9;
    let tenants = shared.tenants.list();
    let mut demands = shared.demands.write();
    demands.keep(|who| tenants.iter().any(|tenant| tenant.id == who));
    for tenant in &tenants {
        let Some(totals) = shared.metrics.totals(&tenant.name) else {
            continue;
        };
        let disk = &shared.options.disk;
        let used = disk
            .stage()
            .and_then(|stage| stage.used(disk.number(&tenant.name)));
        for class in Class::ALL {
            let at_disk = used.map(|used| used.class(Some(class))).unwrap_or_default();
            let of = &totals.classes[class.index()];
            let total = Total {
                requests: of.requests,
                missing: of.disk.count(),
                ios: at_disk.ios,
                vops: at_disk.vops,
            };
            demands.see(tenant.id, class, total, elapsed_s);
        }
    }
    now
}

/// What it remembers between two looks.
struct Watch {
    kept: Kept,
    written: Nanos,
    /// The time of the day and year when it was, s.
    written_unix_s: u64,
}

impl Watch {
    /// Takes up what was known when the server ended last.
    fn open(shared: &Shared, directory: &Path) -> Self {
        let (kept, lines) = Kept::open(directory);
        for tenant in &shared.tenants.list() {
            for meter in tenant.meters().all() {
                let of = |all_fronts| {
                    let lines = lines.iter();
                    lines.filter(move |line| line.is_of(&tenant.name, meter.slo(), all_fronts))
                };
                remember(of(false), &mut meter.record.lock().history);
                remember(of(true), meter.whole.lock().history_mut());
            }
        }
        Self {
            kept,
            written: shared.options.clock.now(),
            written_unix_s: 0,
        }
    }

    /// Closes the windows that are over.
    fn look(&mut self, shared: &Shared) {
        let now = shared.options.clock.now();
        let unix_s = (shared.options.wall_ms)() / 1_000;
        for tenant in shared.tenants.list() {
            tenant.slowest.forget_old(now);
            for meter in tenant.meters().all() {
                let mut record = meter.record.lock();
                if record.ends(meter.objective()) <= now {
                    record.close(meter.objective(), meter.read(), now, unix_s);
                }
                drop(record);
                let mut whole = meter.whole.lock();
                whole.close(meter.objective(), || meter.read(), now, unix_s);
            }
        }
        if now.saturating_sub(self.written) >= WRITE_NS {
            self.written = now;
            self.write(shared);
        }
    }

    /// Writes down all that was counted.
    fn end(&mut self, shared: &Shared) {
        let unix_s = (shared.options.wall_ms)() / 1_000;
        for tenant in shared.tenants.list() {
            for meter in tenant.meters().all() {
                meter.record.lock().end(meter.read(), unix_s);
                meter.whole.lock().end(|| meter.read(), unix_s);
            }
        }
        self.write(shared);
    }

    /// Writes down the hours and minutes that may have changed since it was done last, or all.
    fn write(&mut self, shared: &Shared) {
        let unix_s = (shared.options.wall_ms)() / 1_000;
        // A clock that was set back counts in earlier hours again.
        let changed = self.written_unix_s.min(unix_s);
        let (hour, minute) = (unix_s / 3_600 + 1, unix_s / 60 + 1);
        let since = match self.kept.wants_all() {
            true => Since {
                hour: hour.saturating_sub(HOURS_KEPT),
                minute: minute.saturating_sub(MINUTES_KEPT),
            },
            false => Since {
                hour: changed / 3_600,
                minute: changed / 60,
            },
        };
        let tenants = shared.tenants.list();
        let lines = tenants.iter().flat_map(|tenant| lines(tenant, since));
        self.kept.write(&lines.collect::<Vec<_>>());
        self.written_unix_s = unix_s;
    }
}

/// What is known of a tenant's promises since then, here and at all fronts.
fn lines(tenant: &Tenant, since: Since) -> Vec<Line> {
    let meters = tenant.meters();
    let of = |meter: &Arc<Meter>| {
        let line = |all, history: &_| Line::new(&tenant.name, meter.slo(), all, history, since);
        let own = line(false, &meter.record.lock().history);
        let whole = line(true, meter.whole.lock().history());
        own.into_iter().chain(whole)
    };
    meters.all().iter().flat_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shared::tests::shared;
    use crate::slo::{Elsewhere, Took, Unanswered};
    use policy::slo::control::{Turn, DEVICE, HANDLERS};
    use settings::tenant::{Slo, SloClass};
    use stage::Clock;

    const S: Nanos = 1_000_000_000;

    pub(super) fn promise(shared: &Shared, at_most_ns: u64) {
        let slo = Slo {
            class: SloClass::Get,
            at_most_ns: Some(at_most_ns),
            ..Slo::default()
        };
        let changed = shared.change_tenant("web", |spec| {
            spec.settings.slos = vec![slo];
            Ok(())
        });
        changed.expect("changed");
    }

    fn begun(directory: &Path, clock: &stage::ManualClock) -> Shared {
        let mut begun = shared(directory, &["web"]);
        begun.options.clock = Arc::new(clock.clone());
        begun
    }

    /// Windows kept and missed in the last 30 days, as the server has them after a restart.
    fn known(shared: &Shared, directory: &Path) -> (u32, u32) {
        Watch::open(shared, directory);
        let meters = shared.tenants.get("web").expect("there").meters();
        let record = meters.all()[0].record.lock();
        let bucket = record
            .history
            .last_30_days((shared.options.wall_ms)() / 1_000);
        (bucket.met, bucket.missed)
    }

    #[test]
    fn what_became_of_a_promise_outlives_the_server_and_not_the_promise() {
        let directory = tempfile::tempdir().expect("a folder");
        let clock = stage::ManualClock::default();
        let begin = || begun(directory.path(), &clock);
        let first = begin();
        promise(&first, 20_000_000);
        let mut watch = Watch::open(&first, directory.path());
        let meters = first.tenants.get("web").expect("there").meters();
        for latency_ns in [10_000_000, 30_000_000, 10_000_000] {
            clock.advance(5 * S);
            watch.look(&first);
            let took = Took {
                latency_ns,
                ..Took::default()
            };
            meters.all()[0].answered(0, &took, 1);
            clock.advance(5 * S);
            watch.look(&first);
        }
        watch.write(&first);
        first.engine.shutdown();
        drop(first);
        let second = begin();
        assert_eq!(known(&second, directory.path()), (2, 1));
        promise(&second, 30_000_000);
        assert_eq!(known(&second, directory.path()), (0, 0), "another promise");
        second.engine.shutdown();
    }

    /// Two fronts: what all of them kept is known after a restart of this one, by the minute, and
    /// what came in a window that was cut short counts.
    #[test]
    fn what_became_of_a_promise_at_all_fronts_outlives_the_server() {
        let directory = tempfile::tempdir().expect("a folder");
        let clock = stage::ManualClock::default();
        let begin = || begun(directory.path(), &clock);
        let meter = |shared: &Shared| {
            let meters = shared.tenants.get("web").expect("there").meters();
            Arc::clone(&meters.all()[0])
        };
        let of_hour = |shared: &Shared| {
            let unix_s = (shared.options.wall_ms)() / 1_000;
            let meter = meter(shared);
            let (own, whole) = (meter.record.lock(), meter.whole.lock());
            [
                own.history.last_hour(unix_s),
                whole.history().last_hour(unix_s),
            ]
            .map(|hour| (hour.met, hour.missed, hour.requests))
        };
        let first = begin();
        promise(&first, 20_000_000);
        let mut watch = Watch::open(&first, directory.path());
        let meet = |shared: &Shared, requests| {
            let meter = meter(shared);
            let mut told = Elsewhere::default();
            told.more.counts.requests = requests;
            let mut whole = meter.whole.lock();
            whole.hear(2, &told, || meter.read(), clock.now());
        };
        let answer = |shared: &Shared| {
            meter(shared).answered(0, &Took::default(), 1);
        };
        meet(&first, 0);
        answer(&first);
        meet(&first, 40);
        clock.advance(10 * S);
        watch.look(&first);
        answer(&first);
        watch.end(&first);
        let known = [(1, 0, 2), (1, 0, 42)];
        assert_eq!(of_hour(&first), known);
        first.engine.shutdown();
        drop(first);
        let second = begin();
        let mut watch = Watch::open(&second, directory.path());
        assert_eq!(of_hour(&second), known);
        // It hears of the other again, which has counted more meanwhile; once is enough.
        meet(&second, 0);
        answer(&second);
        meet(&second, 5);
        clock.advance(10 * S);
        watch.look(&second);
        assert_eq!(of_hour(&second), [(2, 0, 3), (2, 0, 48)]);
        watch.end(&second);
        second.engine.shutdown();
        drop(second);
        let third = begin();
        Watch::open(&third, directory.path());
        assert_eq!(of_hour(&third), [(2, 0, 3), (2, 0, 48)]);
        third.engine.shutdown();
    }

    #[test]
    fn a_new_promise_has_due_times_before_an_interval_is_over() {
        let directory = tempfile::tempdir().expect("a folder");
        let shared = shared(directory.path(), &["web"]);
        let mut steering = Steering::new(&shared);
        steering.look(&shared);
        promise(&shared, 20_000_000);
        steering.look(&shared);
        let meters = shared.tenants.get("web").expect("there").meters();
        let due_at = meters.all()[0].due_at(HANDLERS, S);
        assert!(due_at.is_some_and(|at| (S..S + 20_000_000).contains(&at)));
        shared.engine.shutdown();
    }

    /// As at a start: for four seconds requests wait until their database is open, and then each
    /// takes 10 ms.
    #[test]
    fn what_waited_for_its_database_to_open_teaches_nothing_about_the_stages() {
        const MS: Nanos = 1_000_000;
        let directory = tempfile::tempdir().expect("a folder");
        let clock = stage::ManualClock::default();
        let shared = begun(directory.path(), &clock);
        promise(&shared, 100 * MS);
        let mut steering = Steering::new(&shared);
        let meters = shared.tenants.get("web").expect("there").meters();
        let meter = &meters.all()[0];
        let mut next = |waits| {
            meter.waits(0, waits);
            clock.advance(S);
            steering.look(&shared);
            (meter.due_at(DEVICE, 0), shared.last_control().why)
        };
        let first = next(Unanswered::default());
        for waited_s in 1..=4 {
            let mut waits = Unanswered::default();
            waits.count(meter.objective(), waited_s * S, true);
            assert_eq!(waits.overdue, 1, "it is late in its window");
            assert_eq!(next(waits), first);
        }
        let turn = |after_ms| {
            let at = 4 * S + after_ms * MS;
            let (queued, granted) = (at, at);
            Some(Turn { queued, granted })
        };
        let took = Took {
            latency_ns: 4 * S + 10 * MS,
            turns: [turn(0), turn(1)],
            ..Took::default()
        };
        assert_eq!(meter.answered(0, &took, 64), 64);
        assert_eq!(next(Unanswered::default()), first);
        shared.engine.shutdown();
    }
}
