//! The closed loop: so many connections, each with a batch of requests outstanding.
//!
//! A connection sends `depth` requests in one write, waits for all replies and sends the next batch,
//! as redis-benchmark `-P` does. What differs is the price: one read and one write per batch, and no
//! change to the readiness queue, so that the server and not the client is measured.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::conn::Status;
use super::fleet::Fleet;
use super::process::thread_cpu_s;
use super::{Clock, Identity};
use crate::draw::{Asks, Class, Mixture};
use crate::encode::{self, KeyText};
use crate::error::WorkloadError;
use crate::stats::{Generator, Outcome, Recorder, StreamStats, UNANSWERED};

/// Ends a run whose server has stopped answering.
const STALL: Duration = Duration::from_secs(10);

/// One tenant's closed loop.
#[derive(Clone, Debug)]
pub struct ClosedStream {
    /// Who it is.
    pub identity: Identity,
    /// Connections, at least 1.
    pub connections: usize,
    /// Requests outstanding per connection, at least 1.
    pub depth: usize,
    /// Length of keys, bytes (clamped to 16..=255).
    pub key_bytes: u16,
    /// What it asks.
    pub asks: Asks,
}

/// A closed-loop run.
#[derive(Clone, Debug)]
pub struct ClosedPlan {
    /// The server.
    pub target: SocketAddr,
    /// All at once.
    pub streams: Vec<ClosedStream>,
    /// Run but not counted.
    pub warm_up: Duration,
    /// Counted.
    pub duration: Duration,
    /// Client threads, at least 1; connections are dealt to them in turn.
    pub threads: usize,
    /// Fixes keys, sizes and mixes.
    pub seed: u64,
}

/// Runs the plan. `stop` ends it early with what there is.
///
/// # Errors
/// [`WorkloadError::Unreachable`], [`WorkloadError::Refused`] before it starts,
/// [`WorkloadError::ServerGone`] when every connection is lost for good.
pub fn run(plan: &ClosedPlan, stop: &AtomicBool) -> Result<Outcome, WorkloadError> {
    for stream in &plan.streams {
        super::control::Control::connect(plan.target, &stream.identity, STALL)?;
    }
    let threads = plan.threads.max(1);
    let mut outcomes = std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads)
            .map(|thread| scope.spawn(move || run_thread(plan, thread, stop)))
            .collect();
        let mut outcomes = vec![run_thread(plan, 0, stop)];
        outcomes.extend(others.into_iter().map(|other| match other.join() {
            Ok(outcome) => outcome,
            Err(panic) => std::panic::resume_unwind(panic),
        }));
        outcomes.into_iter()
    });
    let mut merged = outcomes.next().expect("thread 0 always runs")?;
    for other in outcomes {
        let other = other?;
        for (mine, theirs) in merged.streams.iter_mut().zip(&other.streams) {
            mine.add(theirs);
        }
        merged.bytes_out += other.bytes_out;
        merged.generator.add(&other.generator);
        merged.cut_short = merged.cut_short.or(other.cut_short);
    }
    Ok(merged)
}

/// What one thread needs to make the next request of a stream.
struct Feed {
    mixture: Mixture,
    text: KeyText,
    depth: usize,
}

fn run_thread(
    plan: &ClosedPlan,
    thread: usize,
    stop: &AtomicBool,
) -> Result<Outcome, WorkloadError> {
    let clock = Clock::start();
    let identities = plan
        .streams
        .iter()
        .map(|stream| stream.identity.clone())
        .collect();
    let mut fleet = Fleet::new(plan.target, identities, clock)?;
    let (mut feeds, mut dealt) = (Vec::new(), 0);
    for (index, stream) in plan.streams.iter().enumerate() {
        feeds.push(feed(plan, index, thread));
        for _ in 0..stream.connections {
            if dealt % plan.threads.max(1) == thread {
                fleet.open(index)?;
            }
            dealt += 1;
        }
    }
    let stats = plan
        .streams
        .iter()
        .map(|stream| StreamStats::new(stream.identity.tenant(), &stream.identity.tag))
        .collect();
    // The window opens after the connects, which take their time when there are thousands.
    let from_ns = clock.now_ns() + plan.warm_up.as_nanos() as u64;
    let until_ns = from_ns + plan.duration.as_nanos() as u64;
    let mut recorder = Recorder::new(stats, from_ns, until_ns);
    let mut turn = Loop {
        fleet: &mut fleet,
        feeds,
        clock,
        keys: Vec::new(),
    };
    let (cpu_from_s, window) = turn.spin(&mut recorder, stop)?;
    let cpu_s = thread_cpu_s() - cpu_from_s;
    recorder.loss = UNANSWERED;
    let elapsed_s = (window.ended_ns.saturating_sub(from_ns) as f64 / 1e9).max(1e-9);
    let generator = Generator {
        busy: cpu_s / elapsed_s,
        cpu_s,
        ..Generator::default()
    };
    for stream in &mut recorder.streams {
        for class in Class::ALL {
            let class = stream.class_mut(class);
            class.offered = class.completed + class.failed;
        }
    }
    let bytes_out = fleet.bytes_out;
    Ok(Outcome {
        streams: recorder.streams,
        elapsed_s,
        bytes_out,
        generator,
        cut_short: window.cut,
    })
}

fn feed(plan: &ClosedPlan, index: usize, thread: usize) -> Feed {
    let stream = &plan.streams[index];
    let random = (plan.seed, (thread * plan.streams.len() + index) as u64);
    Feed {
        mixture: Mixture::new(random, stream.asks.clone()),
        text: KeyText::new(plan.seed, stream.key_bytes),
        depth: stream.depth.max(1),
    }
}

struct Window {
    ended_ns: u64,
    cut: Option<String>,
}

struct Loop<'a> {
    fleet: &'a mut Fleet,
    feeds: Vec<Feed>,
    clock: Clock,
    keys: Vec<u64>,
}

impl Loop<'_> {
    /// Runs until the window closes. Returns the thread's CPU time when it opened, and its end.
    fn spin(
        &mut self,
        recorder: &mut Recorder,
        stop: &AtomicBool,
    ) -> Result<(f64, Window), WorkloadError> {
        let (mut cpu_from_s, mut counting) = (thread_cpu_s(), false);
        let (mut answered_ns, mut answered) = (self.clock.now_ns(), 0);
        loop {
            self.fleet.flush(recorder);
            self.fleet.poll(Some(Duration::from_millis(50)), recorder)?;
            while let Some(token) = self.fleet.next_read(recorder) {
                self.batch(token);
                self.fleet.flush_one(token, recorder);
            }
            let now_ns = self.clock.now_ns();
            if !counting && now_ns >= recorder.from_ns {
                (cpu_from_s, counting) = (thread_cpu_s(), true);
            }
            if self.fleet.completed != answered {
                (answered, answered_ns) = (self.fleet.completed, now_ns);
            }
            let cut = if now_ns >= recorder.until_ns {
                None
            } else if stop.load(Ordering::Relaxed) {
                Some("interrupted".to_string())
            } else if now_ns - answered_ns > STALL.as_nanos() as u64 {
                Some(format!("no reply for {} s", STALL.as_secs()))
            } else {
                continue;
            };
            let ended_ns = now_ns.min(recorder.until_ns);
            return Ok((cpu_from_s, Window { ended_ns, cut }));
        }
    }

    /// Sends the next batch if the last one (at first: the handshake) is answered.
    fn batch(&mut self, token: usize) {
        let conn = self.fleet.conn(token);
        if conn.status != Status::Up || conn.outstanding() > 0 {
            return;
        }
        let feed = &mut self.feeds[conn.stream];
        let now_ns = self.clock.now_ns();
        for _ in 0..feed.depth {
            let draw = feed.mixture.draw(now_ns, &mut self.keys);
            let (keys, text) = (&self.keys, feed.text);
            self.fleet.push(token, draw.class, now_ns, |out| {
                encode::request(out, draw, keys, text)
            });
        }
    }
}
