//! The admin address: HTTP on a thread of its own.

mod ask;
mod connections;
mod events;
mod gather;
mod guard;
mod pages;
mod routes;

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, RwLock};
use rustls::ServerConfig;
use tokio::runtime::Builder;
use tokio::sync::watch;

use self::guard::Guard;
use crate::error::TelemetryError;
use crate::live::{unix_ms, Past};
use crate::model::AdminSource;
use crate::registry::Registry;

pub use ask::{ask, Answer};
pub use gather::gather;
pub use guard::{Access, Token};

/// One turn of the window over which shares and rates are computed: they span one to two turns.
pub(crate) const TURN: Duration = Duration::from_secs(5);

/// What the admin server shows.
pub struct AdminOptions {
    /// Where to listen; port 0 takes any free one.
    pub address: SocketAddr,
    /// What is asked of requests.
    pub access: Access,
    /// Requests come by TLS, with this.
    pub tls: Option<Arc<ServerConfig>>,
    /// The cores' counters.
    pub registry: Arc<Registry>,
    /// The rest.
    pub source: Arc<dyn AdminSource>,
}

/// The running admin server. Dropping it stops it within a second.
pub struct AdminHandle {
    address: SocketAddr,
    guard: Arc<Guard>,
    tls: Option<Tls>,
    stop: watch::Sender<Option<Duration>>,
    thread: Option<JoinHandle<()>>,
}

impl AdminHandle {
    /// The address in use, with the real port.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Asks something else of requests from now on.
    pub fn set_access(&self, access: Access) {
        self.guard.set(access);
    }

    /// Serves connections that come from now on with another certificate, where it serves TLS.
    pub fn set_tls(&self, config: Arc<ServerConfig>) {
        if let Some(tls) = &self.tls {
            *tls.write() = config;
        }
    }

    /// Whether requests come by TLS.
    pub fn tls(&self) -> bool {
        self.tls.is_some()
    }

    /// Takes no new connections, waits at most `patience` for answers under way, and ends the
    /// thread.
    pub fn stop(mut self, patience: Duration) {
        self.finish(patience);
    }

    fn finish(&mut self, patience: Duration) {
        self.stop.send_replace(Some(patience));
        if let Some(thread) = self.thread.take() {
            // A panic there has been reported by the panic hook; there is nothing left to stop.
            let _ = thread.join();
        }
    }
}

impl Drop for AdminHandle {
    fn drop(&mut self) {
        self.finish(Duration::from_secs(1));
    }
}

/// What new connections are served with; exchanged while it runs.
type Tls = Arc<RwLock<Arc<ServerConfig>>>;

/// What the routes share.
pub(crate) struct Shared {
    pub(crate) registry: Arc<Registry>,
    pub(crate) source: Arc<dyn AdminSource>,
    feed: events::Feed,
    pub(crate) past: Mutex<Past>,
    /// The order to stop, for answers that would go on for ever.
    stop: watch::Receiver<Option<Duration>>,
    started: Instant,
}

impl Shared {
    /// Time since the admin server started, ns: the clock of [`Registry::turn`].
    pub(crate) fn now_ns(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}

/// Binds the address and starts serving.
///
/// # Errors
/// The address cannot be bound, or there is no thread or event loop to be had.
pub fn start(options: AdminOptions) -> Result<AdminHandle, TelemetryError> {
    let address = options.address;
    let listen = |cause| TelemetryError::Listen { address, cause };
    let listener = TcpListener::bind(address).map_err(listen)?;
    listener.set_nonblocking(true).map_err(listen)?;
    let address = listener.local_addr().map_err(listen)?;
    let (stop, stopped) = watch::channel(None);
    let shared = Arc::new(Shared {
        registry: options.registry,
        source: options.source,
        feed: events::Feed::default(),
        past: Mutex::default(),
        stop: stopped.clone(),
        started: Instant::now(),
    });
    let runtime = Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(TelemetryError::Thread)?;
    let listener = {
        let _inside = runtime.enter();
        tokio::net::TcpListener::from_std(listener).map_err(TelemetryError::Thread)?
    };
    let guard = Arc::new(Guard::new(address.ip(), options.access));
    let app = routes::router(Arc::clone(&shared), Arc::clone(&guard));
    let tls: Option<Tls> = options.tls.map(|config| Arc::new(RwLock::new(config)));
    let served = tls.clone();
    let thread = thread::Builder::new()
        .name("admin".into())
        .spawn(move || {
            let turns = runtime.spawn(turn(Arc::clone(&shared)));
            let feed = runtime.spawn(events::feed(Arc::clone(&shared)));
            runtime.block_on(connections::serve(listener, served, app, stopped));
            turns.abort();
            feed.abort();
        })
        .map_err(|e: io::Error| TelemetryError::Thread(e))?;
    Ok(AdminHandle {
        address,
        guard,
        tls,
        stop,
        thread: Some(thread),
    })
}

async fn turn(shared: Arc<Shared>) {
    let mut ticks = tokio::time::interval(TURN);
    loop {
        ticks.tick().await;
        let now_ns = shared.now_ns();
        shared.registry.turn(now_ns);
        let capacities = shared.source.server().capacities;
        let mut past = shared.past.lock();
        past.step(&shared.registry, &capacities, (now_ns, unix_ms()));
    }
}
