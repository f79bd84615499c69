//! The thread that looks at the engine, and meets the other fronts.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{channel, RecvTimeoutError, Sender};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use front::Both;
use policy::Nanos;
use stage::Clock;

use super::fronts::Round;
use super::rates::House;
use super::watch::Watch;
use super::{Looks, Upstream};

/// Between two looks at the engine.
pub(super) const LOOK_EVERY_NS: Nanos = 1_000_000_000;
/// Not more often than this, whoever calls for it: while a slot moves, each of its requests does,
/// and looks take the time of nodes.
const LOOK_AGAIN_NS: Nanos = 100_000_000;

/// Between two rounds of fronts that tell each other: rates follow clients that move from one front
/// to another within three.
pub(super) const ROUND_EVERY: Duration = Duration::from_millis(250);

/// What the lookout is told.
pub(super) enum Call {
    Look,
    Busy,
    End,
}

/// The thread that looks.
pub struct Lookout {
    calls: Sender<Call>,
    thread: JoinHandle<()>,
    /// Of a cluster: how far behind replicas are.
    watch: Option<Watch>,
}

impl Lookout {
    /// Looks once a second, and tells `house` what follows. Clients that know of the fronts reach
    /// this one at `at`.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn start(
        upstream: Arc<Upstream>,
        at: Both<Option<SocketAddr>>,
        clock: Arc<dyn Clock + Send + Sync>,
        house: impl House + 'static,
    ) -> io::Result<Self> {
        let (calls, called) = channel();
        let _ = upstream.lookout.set(calls.clone());
        let watch = (upstream.options.cluster)
            .then(|| Watch::start(Arc::clone(&upstream), Arc::clone(&clock)));
        let watch = watch.transpose()?;
        let thread = thread::Builder::new().name("lookout".into());
        let thread = thread.spawn(move || {
            let options = upstream.options.fronts.as_ref();
            let mut round =
                options.and_then(|options| Round::new(&upstream, options, &at, clock.now()));
            let mut go = || {
                let found = upstream.found();
                round
                    .as_mut()
                    .is_some_and(|round| round.go(&found, &house, || clock.now()))
            };
            if upstream.wants(&house) | go() {
                house.changed();
            }
            let every = options.map_or(Duration::from_nanos(LOOK_EVERY_NS), |_| ROUND_EVERY);
            let (mut looks, mut looked_at) = (Looks::default(), clock.now());
            let called_for = || upstream.called.load(Ordering::Acquire);
            loop {
                let again_at = looked_at + LOOK_AGAIN_NS;
                let wait = match called_for() {
                    true => every.min(Duration::from_nanos(again_at.saturating_sub(clock.now()))),
                    false => every,
                };
                match called.recv_timeout(wait) {
                    Ok(Call::Look) | Err(RecvTimeoutError::Timeout) => {}
                    Ok(Call::Busy) => upstream.busy.end_scripts(&upstream.options),
                    _ => break,
                }
                let passed = clock.now().saturating_sub(looked_at);
                let look = match called_for() {
                    true => passed >= LOOK_AGAIN_NS,
                    false => passed >= LOOK_EVERY_NS,
                };
                if look {
                    looked_at = clock.now();
                    upstream.called.store(false, Ordering::Release);
                }
                if (look && upstream.look(&mut looks, &house, clock.now())) | go() {
                    house.changed();
                }
            }
            if let Some(round) = round {
                round.leave(&house, clock.now());
            }
        })?;
        Ok(Self {
            calls,
            thread,
            watch,
        })
    }

    /// Ends it.
    pub fn stop(self) {
        let _ = self.calls.send(Call::End);
        if let Some(watch) = self.watch {
            watch.stop();
        }
        // A panic would have ended the process.
        let _ = self.thread.join();
    }
}
