//! The run itself: every stream of a plan on one readiness queue a thread.
//!
//! Open loops send when requests are due, whatever the server does; closed loops send when they
//! were answered. Both share connections, clock and counting, so that tenants of either kind can
//! meet in one run.

mod follow;
mod progress;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::Duration;

use threads::Duty;

use super::control::Control;
use super::fleet::Fleet;
use super::lane::Lane;
use super::plan::{Handshake, Plan, Stream};
use super::process::{raise_file_limit, thread_cpu_s};
use super::quota::Quota;
use super::schedule::Schedule;
use super::scout::Scout;
use super::timer::Timer;
use super::{Clock, Goal, Identity};
use crate::error::WorkloadError;
use crate::stats::{Generator, Latency, Outcome, Recorder, TenantStats, UNANSWERED};

use progress::Gauges;
pub use progress::Progress;

/// Progress is told, and interruption noticed, at least so often.
const TICK: Duration = Duration::from_millis(100);
/// Time allowed for a tenant's first login.
const PROBE: Duration = Duration::from_secs(5);
/// Ends a run of closed loops whose server has stopped answering.
const STALL_NS: u64 = 10_000_000_000;
/// Replies that are read before it is looked whether requests are due.
const READS: usize = 32;

/// Runs the plan, telling `progress` about ten times a second. `stop` ends it early with what there
/// is.
///
/// # Errors
/// [`WorkloadError::Unreachable`], [`WorkloadError::Refused`] before it starts,
/// [`WorkloadError::ServerGone`] when every connection is lost for good.
pub fn run(
    plan: Plan,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(&Progress),
) -> Result<Outcome, WorkloadError> {
    probe(&plan)?;
    play(plan, stop, progress)
}

/// The same for a plan that was probed.
pub(crate) fn play(
    plan: Plan,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(&Progress),
) -> Result<Outcome, WorkloadError> {
    // Thousands of connections are no reason to fail.
    raise_file_limit();
    let threads = plan.threads.max(1);
    let goal = plan.goal.clone();
    let spin = plan.spin;
    let times = Times {
        from_ns: plan.warm_up.as_nanos() as u64,
        until_ns: (plan.warm_up + plan.duration).as_nanos() as u64,
        drain_ns: plan.drain.as_nanos() as u64,
    };
    let quotas = plan.quotas();
    let parts = plan.split(threads);
    let mut drives = Vec::with_capacity(threads);
    for part in parts {
        drives.push(Drive::prepare(&goal, part, times, spin, quotas.clone())?);
    }
    // What is due goes before what closed loops on other threads make of their replies: those only
    // wait, where this is late. The first drive runs on this thread, whose nice value counts for
    // all, and which therefore never changes it.
    drives.sort_by_key(|drive| !drive.opens());
    let closed = drives.iter().any(Drive::opens).then_some(Duty::Background);
    let gauges = Gauges::default();
    let gauges = &gauges;
    let mut others = drives.split_off(1);
    let first = drives.remove(0);
    std::thread::scope(|scope| {
        let others: Vec<_> = others
            .drain(..)
            .map(|drive| scope.spawn(move || drive.play(closed, stop, gauges, &mut |_| {})))
            .collect();
        let mut merged = first.play(closed, stop, gauges, progress);
        for other in others {
            let other = match other.join() {
                Ok(outcome) => outcome?,
                Err(panic) => std::panic::resume_unwind(panic),
            };
            if let Ok(merged) = &mut merged {
                merged.add(other);
            }
        }
        merged
    })
}

/// Finds wrong passwords, missing servers and loads that cannot be played before anything is
/// measured.
pub(crate) fn probe(plan: &Plan) -> Result<(), WorkloadError> {
    plan.check()?;
    let mut known: Vec<&Identity> = Vec::new();
    for stream in &plan.streams {
        let full = |period: &super::plan::Period| period.manners.handshake == Handshake::Full;
        if stream.periods.iter().any(full) && !known.contains(&&stream.identity) {
            greet(plan, &stream.identity)?;
            known.push(&stream.identity);
        }
    }
    Ok(())
}

/// Introduces itself as the clients of a stream will, wherever they will.
fn greet(plan: &Plan, identity: &Identity) -> Result<(), WorkloadError> {
    let places = plan.goal.places(identity, PROBE)?;
    let several = places.len() > 1;
    for place in places {
        let connected = Control::connect(place, identity, PROBE);
        connected.map_err(|error| if several { error.at(place) } else { error })?;
    }
    Ok(())
}

#[derive(Clone, Copy)]
struct Times {
    /// Measuring begins, ns since the run began …
    from_ns: u64,
    /// … and ends.
    until_ns: u64,
    drain_ns: u64,
}

struct Drive {
    fleet: Fleet,
    lanes: Vec<Lane>,
    schedule: Schedule,
    /// The lanes that are due now; kept to be filled again.
    due: Vec<usize>,
    recorder: Recorder,
    timer: Timer,
    clock: Clock,
    times: Times,
    /// What the run ends with: of all streams, whoever plays them.
    quotas: Vec<Arc<Quota>>,
    lag: Latency,
    /// Of loads that know of a cluster.
    scout: Option<Scout>,
    /// Requests that a front sent on.
    moved: u64,
    news: Vec<String>,
    told: (u64, u64, u64, u64),
    /// Never sleeps.
    spin: bool,
}

impl Drive {
    fn prepare(
        goal: &Goal,
        streams: Vec<Stream>,
        times: Times,
        spin: bool,
        quotas: Vec<Arc<Quota>>,
    ) -> Result<Self, WorkloadError> {
        let identities: Vec<Identity> = streams.iter().map(|s| s.identity.clone()).collect();
        let names = streams
            .iter()
            .map(|s| (s.tenant.clone(), s.identity.tag.clone()));
        let own = streams.iter().map(|s| s.quota.clone()).collect();
        let mut recorder = Recorder::new(names, own, times.from_ns, times.until_ns);
        let clock = Clock::start();
        let mut fleet = Fleet::new(goal.clone(), identities, clock)?;
        let timer = Timer::new(fleet.registry())?;
        let mut lanes = Vec::with_capacity(streams.len());
        let mut schedule = Schedule::default();
        for (index, stream) in streams.into_iter().enumerate() {
            let asks = stream.periods.iter().any(|p| p.connections > 0);
            let map = asks.then(|| goal.map(&stream.identity, PROBE));
            let mut lane = Lane::new(index, stream, map.transpose()?.flatten());
            lane.advance(&mut fleet, 0, &mut recorder, true)?;
            schedule.enter(index, lane.due_ns());
            lanes.push(lane);
        }
        let scout = goal.is_cluster().then(|| Scout::start(lanes.len()));
        Ok(Self {
            fleet,
            scout: scout.transpose()?,
            moved: 0,
            lanes,
            schedule,
            due: Vec::new(),
            recorder,
            timer,
            clock,
            times,
            quotas,
            lag: Latency::default(),
            news: Vec::new(),
            told: (0, 0, 0, 0),
            spin,
        })
    }

    fn opens(&self) -> bool {
        self.lanes.iter().any(Lane::opens)
    }

    /// `closed`: the duty of a thread without an open loop, if it has one.
    fn play(
        mut self,
        closed: Option<Duty>,
        stop: &AtomicBool,
        gauges: &Gauges,
        progress: &mut dyn FnMut(&Progress),
    ) -> Result<Outcome, WorkloadError> {
        let duty = if self.opens() {
            Some(Duty::Prompt)
        } else {
            closed
        };
        if let Some(duty) = duty {
            duty.begin();
        }
        // The connects took their time: the run begins now.
        self.clock = Clock::start();
        self.fleet.set_clock(self.clock);
        let (cpu_s, cut_short) = self.send(stop, gauges, progress)?;
        let ended_ns = self.clock.now_ns().min(self.times.until_ns);
        let left = Quota::left(&self.quotas);
        self.recorder.close(ended_ns);
        self.drain(stop, gauges, progress)?;
        let elapsed_s = ended_ns.saturating_sub(self.times.from_ns) as f64 / 1e9;
        let generator = Generator {
            lag: self.lag,
            busy: cpu_s / elapsed_s.max(1e-9),
            cpu_s,
            moved: self.moved,
            spins: self.spin,
        };
        let (tenants, pace) = self.recorder.finish();
        Ok(Outcome {
            tenants,
            pace,
            elapsed_s,
            warm_up_s: self.times.from_ns as f64 / 1e9,
            bytes_out: self.fleet.bytes_out,
            generator,
            left,
            cut_short,
        })
    }

    /// Sends until the end. Returns the CPU time of the measured part, and why it ended early if it
    /// did.
    fn send(
        &mut self,
        stop: &AtomicBool,
        gauges: &Gauges,
        progress: &mut dyn FnMut(&Progress),
    ) -> Result<(f64, Option<String>), WorkloadError> {
        let (mut cpu_from_s, mut counting, mut told_ns) = (thread_cpu_s(), false, 0);
        let (mut answered, mut answered_ns) = (0, 0);
        let cut = loop {
            let now_ns = self.clock.now_ns();
            if !counting && now_ns >= self.times.from_ns {
                // What the warm-up did to the generator is not measured either.
                (cpu_from_s, counting, self.lag) = (thread_cpu_s(), true, Latency::default());
                self.moved = 0;
            }
            if now_ns >= self.times.until_ns {
                self.catch_up();
                break None;
            }
            if counting && Quota::left(&self.quotas) == Some(0) {
                break None;
            }
            if stop.load(Ordering::Relaxed) {
                let at_s = (now_ns as f64 - self.times.from_ns as f64) / 1e9;
                break Some(format!("interrupted after {at_s:.1} s"));
            }
            if now_ns - told_ns >= TICK.as_nanos() as u64 {
                told_ns = now_ns;
                self.tell(now_ns, false, gauges, progress);
            }
            if self.fleet.completed != answered {
                (answered, answered_ns) = (self.fleet.completed, now_ns);
            } else if now_ns - answered_ns > STALL_NS && self.stalled() {
                break Some(format!("no reply for {} s", STALL_NS / 1_000_000_000));
            }
            self.turn(now_ns)?;
        };
        Ok((thread_cpu_s() - cpu_from_s, cut))
    }

    /// All that is to be done now, and then a wait for what comes.
    fn turn(&mut self, now_ns: u64) -> Result<(), WorkloadError> {
        let next_ns = self.send_due(now_ns)?;
        self.follow()?;
        self.greet();
        self.fleet.flush(&mut self.recorder);
        let wake_ns = next_ns.min(self.times.until_ns).min(self.fleet.rested_ns());
        self.wait(wake_ns.saturating_sub(self.clock.now_ns()))?;
        let mut reads = 0;
        while let Some(token) = self.fleet.next_read(&mut self.recorder) {
            self.answered(token)?;
            reads += 1;
            if reads % READS == 0 && self.clock.now_ns() >= next_ns {
                self.send_due(self.clock.now_ns())?;
                self.fleet.flush(&mut self.recorder);
            }
        }
        Ok(())
    }

    /// Sends what was due before the end.
    fn catch_up(&mut self) {
        for lane in &mut self.lanes {
            let (fleet, recorder) = (&mut self.fleet, &mut self.recorder);
            lane.catch_up(self.times.until_ns, fleet, recorder, &mut self.lag);
        }
        self.fleet.flush(&mut self.recorder);
    }

    /// Enters the periods that have begun and sends what is due; returns when the next thing is.
    fn send_due(&mut self, now_ns: u64) -> Result<u64, WorkloadError> {
        let until_ns = self.times.until_ns;
        self.schedule.take_due(now_ns, &mut self.due);
        for index in self.due.drain(..) {
            let lane = &mut self.lanes[index];
            let (fleet, recorder) = (&mut self.fleet, &mut self.recorder);
            if lane.changes_ns() <= now_ns {
                lane.catch_up(now_ns, fleet, recorder, &mut self.lag);
                self.news
                    .extend(lane.advance(fleet, now_ns, recorder, false)?);
                if let Some(scout) = &mut self.scout {
                    // Its map is from before the run.
                    scout.doubt(index);
                }
            }
            lane.send_due(now_ns, until_ns, fleet, recorder, &mut self.lag);
            self.schedule.enter(index, lane.due_ns());
        }
        Ok(self.schedule.next_ns())
    }

    /// Lets closed loops begin on connections that have nothing to wait for.
    fn greet(&mut self) {
        let now_ns = self.clock.now_ns();
        for token in self.fleet.opened() {
            if let Some(stream) = self.fleet.find(token).map(|conn| conn.whose.stream) {
                let (fleet, recorder) = (&mut self.fleet, &mut self.recorder);
                self.lanes[stream].batch(token, fleet, now_ns, recorder);
            }
        }
    }

    /// A connection was read.
    fn answered(&mut self, token: usize) -> Result<(), WorkloadError> {
        if self.fleet.has_moved() {
            self.follow()?;
        }
        if self.fleet.left(token) {
            return Ok(());
        }
        let stream = self.fleet.conn(token).whose.stream;
        if self.lanes[stream].closed() {
            let now_ns = self.clock.now_ns();
            let (fleet, recorder) = (&mut self.fleet, &mut self.recorder);
            self.lanes[stream].batch(token, fleet, now_ns, recorder);
            self.fleet.flush(&mut self.recorder);
        }
        Ok(())
    }

    /// Waits for something to read or write, at most `wait_ns`.
    fn wait(&mut self, wait_ns: u64) -> Result<(), WorkloadError> {
        let mut timeout = TICK;
        if wait_ns == 0 || self.spin {
            timeout = Duration::ZERO;
        } else if wait_ns < TICK.as_nanos() as u64 {
            self.timer.arm(wait_ns)?;
        }
        self.fleet.poll(Some(timeout), &mut self.recorder)
    }

    /// Nothing but closed loops that behave, and they wait for replies.
    fn stalled(&self) -> bool {
        let closed = |lane: &Lane| lane.closed() && !lane.manners().rude();
        self.lanes.iter().all(closed) && self.fleet.outstanding() > 0
    }

    /// Waits for the replies that are still out; what does not come is counted as unanswered.
    fn drain(
        &mut self,
        stop: &AtomicBool,
        gauges: &Gauges,
        progress: &mut dyn FnMut(&Progress),
    ) -> Result<(), WorkloadError> {
        let end_ns = self.clock.now_ns() + self.times.drain_ns;
        let stopped = stop.load(Ordering::Relaxed);
        while self.fleet.expected() > 0 {
            let now_ns = self.clock.now_ns();
            // An interrupt in this phase ends it; one that ended the run before has its last
            // replies awaited.
            if now_ns >= end_ns || (!stopped && stop.load(Ordering::Relaxed)) {
                break;
            }
            self.tell(now_ns, true, gauges, progress);
            self.fleet.flush(&mut self.recorder);
            self.fleet.poll(Some(TICK), &mut self.recorder)?;
            while self.fleet.next_read(&mut self.recorder).is_some() {}
            self.follow()?;
        }
        self.recorder.loss = UNANSWERED;
        self.fleet.abandon(&mut self.recorder);
        Ok(())
    }
}

impl Outcome {
    /// Adds what another thread measured of the same plan.
    fn add(&mut self, other: Outcome) {
        for (mine, theirs) in self.tenants.iter_mut().zip(&other.tenants) {
            TenantStats::add(mine, theirs);
        }
        self.pace.add(&other.pace);
        self.bytes_out += other.bytes_out;
        self.generator.add(&other.generator);
        self.cut_short = self.cut_short.take().or(other.cut_short);
    }
}
