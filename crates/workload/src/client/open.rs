//! The open loop: requests leave when they are due, whatever the server does.

use std::net::SocketAddr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use mio::unix::SourceFd;
use mio::Interest;
use rustix::time::{
    timerfd_create, timerfd_settime, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags,
    Timespec,
};

use super::conn::Status;
use super::control::Control;
use super::fleet::{Fleet, TIMER};
use super::process::thread_cpu_s;
use super::{Clock, Identity};
use crate::draw::Class;
use crate::encode::{self, KeyText};
use crate::error::WorkloadError;
use crate::source::{Arrival, Source};
use crate::stats::{Generator, Latency, Outcome, Recorder, StreamStats, UNANSWERED, UNSENT};

/// Requests of one stream sent before the server's replies are looked at again.
const BURST: usize = 128;
/// A stream with so many requests outstanding per connection counts the next as unsent: bounds the
/// memory of a run against a server that has stopped.
const OUTSTANDING_MAX: usize = 16_384;
/// The same in bytes that the socket has not taken.
const UNSENT_BYTES_MAX: usize = 16 << 20;
/// Progress is told, and interruption noticed, at least so often.
const TICK: Duration = Duration::from_millis(100);
/// Time allowed for the probe before the run.
const PROBE: Duration = Duration::from_secs(5);

/// One tenant's open loop.
pub struct OpenStream {
    /// Who it is.
    pub identity: Identity,
    /// Connections, at least 1; requests are dealt to them in turn.
    pub connections: usize,
    /// Length of keys, bytes (clamped to 16..=255).
    pub key_bytes: u16,
    /// Fixes the keys' text: streams with different seeds never meet in a key.
    pub key_seed: u64,
    /// What arrives when.
    pub source: Box<dyn Source>,
}

/// An open-loop run.
pub struct OpenPlan {
    /// The server.
    pub target: SocketAddr,
    /// All at once.
    pub streams: Vec<OpenStream>,
    /// Requests due within it are sent.
    pub duration: Duration,
    /// How long to wait for the last replies.
    pub drain: Duration,
}

/// How a run is going.
#[derive(Clone, Copy, Debug, Default)]
pub struct Progress {
    /// Seconds since it began.
    pub at_s: f64,
    /// Requests due so far.
    pub offered: u64,
    /// Requests answered so far.
    pub completed: u64,
    /// Requests failed so far.
    pub failed: u64,
    /// Requests sent and not answered.
    pub outstanding: usize,
}

/// Runs the plan, telling `progress` about ten times a second. `stop` ends it early with what there
/// is.
///
/// # Errors
/// [`WorkloadError::Unreachable`], [`WorkloadError::Refused`] before it starts,
/// [`WorkloadError::ServerGone`] when every connection is lost for good.
pub fn run(
    plan: OpenPlan,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(&Progress),
) -> Result<Outcome, WorkloadError> {
    for stream in &plan.streams {
        Control::connect(plan.target, &stream.identity, PROBE)?;
    }
    let mut run = Run::prepare(plan)?;
    let cpu_from_s = thread_cpu_s();
    let cut_short = run.send(stop, progress)?;
    let cpu_s = thread_cpu_s() - cpu_from_s;
    let elapsed_s = run.clock.now_ns().min(run.until_ns) as f64 / 1e9;
    run.recorder.until_ns = run.recorder.until_ns.min(run.clock.now_ns());
    run.drain(stop)?;
    let generator = Generator {
        lag: run.lag,
        busy: cpu_s / elapsed_s.max(1e-9),
        cpu_s,
    };
    let (streams, bytes_out) = (run.recorder.streams, run.fleet.bytes_out);
    Ok(Outcome {
        streams,
        elapsed_s,
        bytes_out,
        generator,
        cut_short,
    })
}

struct Lane {
    source: Box<dyn Source>,
    text: KeyText,
    tokens: Vec<usize>,
    /// Whose turn it is.
    turn: usize,
    /// The next request and its keys.
    next: Arrival,
    keys: Vec<u64>,
}

struct Run {
    fleet: Fleet,
    lanes: Vec<Lane>,
    recorder: Recorder,
    timer: OwnedFd,
    clock: Clock,
    until_ns: u64,
    drain_ns: u64,
    lag: Latency,
    offered: u64,
}

impl Run {
    fn prepare(plan: OpenPlan) -> Result<Self, WorkloadError> {
        let identities: Vec<Identity> = plan.streams.iter().map(|s| s.identity.clone()).collect();
        let stats = identities
            .iter()
            .map(|i| StreamStats::new(i.tenant(), &i.tag))
            .collect();
        let mut fleet = Fleet::new(plan.target, identities, Clock::start())?;
        let mut lanes = Vec::new();
        for (index, mut stream) in plan.streams.into_iter().enumerate() {
            let mut tokens = Vec::new();
            for _ in 0..stream.connections.max(1) {
                tokens.push(fleet.open(index)?);
            }
            let mut keys = Vec::new();
            let next = stream.source.next(&mut keys);
            let text = KeyText::new(stream.key_seed, stream.key_bytes);
            lanes.push(Lane {
                source: stream.source,
                text,
                tokens,
                turn: 0,
                next,
                keys,
            });
        }
        let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK)
            .map_err(|e| WorkloadError::system("making a timer")(e.into()))?;
        fleet
            .registry()
            .register(&mut SourceFd(&timer.as_raw_fd()), TIMER, Interest::READABLE)
            .map_err(WorkloadError::system("watching a timer"))?;
        // The connects took their time: the run begins now.
        let clock = Clock::start();
        fleet.set_clock(clock);
        let until_ns = plan.duration.as_nanos() as u64;
        let mut recorder = Recorder::new(stats, 0, until_ns);
        recorder.keep_late = true;
        let drain_ns = plan.drain.as_nanos() as u64;
        let (lag, offered) = (Latency::default(), 0);
        Ok(Self {
            fleet,
            lanes,
            recorder,
            timer,
            clock,
            until_ns,
            drain_ns,
            lag,
            offered,
        })
    }

    /// Sends everything that is due until the end. Returns why it ended early, if it did.
    fn send(
        &mut self,
        stop: &AtomicBool,
        progress: &mut dyn FnMut(&Progress),
    ) -> Result<Option<String>, WorkloadError> {
        let mut told_ns = 0;
        loop {
            let now_ns = self.clock.now_ns();
            if now_ns >= self.until_ns {
                return Ok(None);
            }
            if stop.load(Ordering::Relaxed) {
                return Ok(Some(format!(
                    "interrupted after {:.1} s",
                    now_ns as f64 / 1e9
                )));
            }
            if now_ns - told_ns >= TICK.as_nanos() as u64 {
                told_ns = now_ns;
                progress(&self.progress(now_ns));
            }
            let next_ns = self.send_due(now_ns);
            self.fleet.flush(&mut self.recorder);
            let now_ns = self.clock.now_ns();
            self.wait(next_ns.min(self.until_ns).saturating_sub(now_ns))?;
        }
    }

    /// Sends what is due by `now_ns`; returns when the next request is due.
    fn send_due(&mut self, now_ns: u64) -> u64 {
        let (fleet, recorder) = (&mut self.fleet, &mut self.recorder);
        let mut next_ns = u64::MAX;
        for (index, lane) in self.lanes.iter_mut().enumerate() {
            for _ in 0..BURST {
                let Arrival { at_ns, draw } = lane.next;
                if at_ns > now_ns || at_ns >= self.until_ns {
                    break;
                }
                self.offered += 1;
                self.lag.record(now_ns - at_ns);
                recorder.streams[index].class_mut(draw.class).offered += 1;
                match lane.pick(fleet) {
                    Some(token) => {
                        let (keys, text) = (&lane.keys, lane.text);
                        fleet.push(token, draw.class, at_ns, |out| {
                            encode::request(out, draw, keys, text);
                        });
                    }
                    None => recorder.streams[index].fail(draw.class, UNSENT),
                }
                lane.next = lane.source.next(&mut lane.keys);
            }
            next_ns = next_ns.min(lane.next.at_ns);
        }
        next_ns
    }

    /// Waits for replies, at most `wait_ns`. The readiness queue counts in milliseconds, which is too
    /// coarse for arrivals, so a timer in it does the waiting.
    fn wait(&mut self, wait_ns: u64) -> Result<(), WorkloadError> {
        let timeout = if wait_ns == 0 {
            Duration::ZERO
        } else {
            if wait_ns < TICK.as_nanos() as u64 {
                self.arm(wait_ns)?;
            }
            TICK
        };
        self.fleet.poll(Some(timeout), &mut self.recorder)?;
        while self.fleet.next_read(&mut self.recorder).is_some() {}
        Ok(())
    }

    fn arm(&mut self, wait_ns: u64) -> Result<(), WorkloadError> {
        let zero = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        let value = Timespec {
            tv_sec: 0,
            tv_nsec: wait_ns as i64,
        };
        let spec = Itimerspec {
            it_interval: zero,
            it_value: value,
        };
        timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &spec)
            .map(|_| ())
            .map_err(|e| WorkloadError::system("setting a timer")(e.into()))
    }

    /// Waits for the replies that are still out; what does not come is counted as unanswered.
    fn drain(&mut self, stop: &AtomicBool) -> Result<(), WorkloadError> {
        let end_ns = self.clock.now_ns() + self.drain_ns;
        while self.fleet.outstanding() > 0
            && self.clock.now_ns() < end_ns
            && !stop.load(Ordering::Relaxed)
        {
            self.fleet.flush(&mut self.recorder);
            self.fleet.poll(Some(TICK), &mut self.recorder)?;
            while self.fleet.next_read(&mut self.recorder).is_some() {}
        }
        self.recorder.loss = UNANSWERED;
        self.fleet.abandon(&mut self.recorder);
        Ok(())
    }

    fn progress(&self, now_ns: u64) -> Progress {
        let mut failed = 0;
        for stream in &self.recorder.streams {
            failed += Class::ALL
                .iter()
                .map(|class| stream.class(*class).failed)
                .sum::<u64>();
        }
        Progress {
            at_s: now_ns as f64 / 1e9,
            offered: self.offered,
            completed: self.fleet.completed,
            failed,
            outstanding: self.fleet.outstanding(),
        }
    }
}

impl Lane {
    /// The next connection in turn that can take a request.
    fn pick(&mut self, fleet: &Fleet) -> Option<usize> {
        for _ in 0..self.tokens.len() {
            let token = self.tokens[self.turn];
            self.turn = (self.turn + 1) % self.tokens.len();
            let conn = fleet.conn(token);
            if conn.status == Status::Up
                && conn.outstanding() < OUTSTANDING_MAX
                && conn.unsent_bytes() < UNSENT_BYTES_MAX
            {
                return Some(token);
            }
        }
        None
    }
}
