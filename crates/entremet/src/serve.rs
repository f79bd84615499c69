//! Wires the rooms together into a running server: clocks, signals, addresses.

mod certificates;
mod clocks;
mod descriptors;
mod device;
mod log;
mod options;

use std::error::Error;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::mpsc::{channel, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use server::Server;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use telemetry::admin::{self, Access, AdminHandle, AdminOptions};

use certificates::{config_of, Certificates};
use log::Log;

use crate::config::{self, Config, Overrides};

/// How often a draining server looks whether it is done.
const DRAIN_LOOK: Duration = Duration::from_millis(20);

/// Patience with admin requests under way at the end.
const ADMIN_PATIENCE: Duration = Duration::from_secs(1);

type Failure = Box<dyn Error>;

/// Where the configuration came from, so that SIGHUP can read it again through
/// [`crate::config::load`].
#[derive(Clone, Debug)]
pub struct Source {
    /// The file; none: defaults.
    pub file: Option<PathBuf>,
    /// What the command line says instead.
    pub overrides: Overrides,
}

/// Runs the server until it is told to stop.
///
/// # Errors
/// What kept it from starting or from going on.
pub fn run(config: Config, source: Source) -> Result<(), Failure> {
    let log = Log::start();
    threads::say_and_end(|thread, what| {
        log::at_once(|| {
            tracing::error!(
                thread,
                "a thread panicked, and the server ends with it, at once; nothing that was acknowledged is lost, and \
                 starting it again is safe: {what}"
            );
        });
    });
    // The allocator's threads, which give memory back to the system: it names and starts them
    // itself.
    threads::Duty::Background.begin_for("jemalloc");
    let signals = watch_signals()?;
    let shutdown = || {
        // SHUTDOWN from a client is the operator's SIGTERM by another way.
        let _ = signal_hook::low_level::raise(SIGTERM);
    };
    let certificates = Certificates::load(&config)?;
    certificates.say();
    let options = options::of(&config, &source, &certificates, &log)?;
    let server = Server::start(options, Box::new(shutdown))?;
    server.certificates(certificates.snapshots());
    let admin = admin::start(AdminOptions {
        address: config.server.admin,
        access: access(&config),
        tls: config_of(certificates.admin.as_ref()),
        registry: server.metrics(),
        source: server.admin_source(),
    })?;
    say_ready(&server, &admin)?;
    let mut running = Running {
        server,
        admin,
        certificates,
        patience: config.server.drain.duration(),
    };
    while signals.recv() == Ok(SIGHUP) {
        running.reload(&source);
    }
    let Running {
        server,
        admin,
        patience,
        ..
    } = running;
    drain(&server, &signals, patience);
    server.stop();
    admin.stop(ADMIN_PATIENCE);
    Ok(())
}

fn watch_signals() -> Result<Receiver<i32>, Failure> {
    let (sender, receiver) = channel();
    let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP])?;
    thread::Builder::new()
        .name("signals".into())
        .spawn(move || {
            for signal in signals.forever() {
                if sender.send(signal).is_err() {
                    return;
                }
            }
        })?;
    Ok(receiver)
}

fn say_ready(server: &Server, admin: &AdminHandle) -> io::Result<()> {
    let [listen, aware] = [false, true].map(|aware| {
        let addresses = server.addresses(aware).into_iter();
        let addresses: Vec<String> = addresses.map(|at| at.to_string()).collect();
        addresses.join(" and ")
    });
    let aware = match aware.is_empty() {
        true => String::new(),
        false => format!(", clients of the cluster at {aware}"),
    };
    let mut out = io::stdout().lock();
    writeln!(
        out,
        "entremet is ready: clients on {listen}{aware}, admin on http{}://{}",
        if admin.tls() { "s" } else { "" },
        admin.address()
    )?;
    out.flush()
}

/// What the admin address asks of requests.
fn access(config: &Config) -> Access {
    Access {
        names: config.server.admin_names.clone(),
        token: config.server.admin_token.clone(),
    }
}

/// What a reload works on.
struct Running {
    server: Server,
    admin: AdminHandle,
    certificates: Certificates,
    /// With requests under way at the end.
    patience: Duration,
}

impl Running {
    /// Reads the configuration again; one with errors changes nothing.
    fn reload(&mut self, source: &Source) {
        let loaded = config::load(source.file.as_deref(), &source.overrides)
            .map_err(|report| format!("{}\n{report}", report.summary()));
        let renewed = loaded.and_then(|loaded| {
            let certificates = self.certificates.renew(&loaded.config)?;
            Ok((loaded, certificates))
        });
        let (loaded, certificates) = match renewed {
            Ok(renewed) => renewed,
            Err(why) => {
                self.server.reload_refused();
                tracing::error!("the configuration was not reloaded, the old one stays: {why}");
                return;
            }
        };
        eprint!("{}", loaded.report);
        let config = &loaded.config;
        if self.admin.tls() != config.server.admin_tls.is_some() {
            tracing::warn!("TLS of the admin address can be switched on or off only by a restart");
        }
        if let Some(tls) = config_of(certificates.clients.as_ref()) {
            self.server.renew(&tls);
        }
        if let Some(tls) = config_of(certificates.admin.as_ref()) {
            self.admin.set_tls(tls);
        }
        if let Some(trust) = certificates.trust(config) {
            self.server.trust(trust);
        }
        self.admin.set_access(access(config));
        self.server.certificates(certificates.snapshots());
        certificates.say();
        self.certificates = certificates;
        self.patience = config.server.drain.duration();
        self.server
            .reload(&options::tenants(config), options::tuning(config));
        tracing::info!("the configuration was reloaded");
    }
}

/// Lets requests under way finish; a second signal means now.
fn drain(server: &Server, signals: &Receiver<i32>, patience: Duration) {
    tracing::info!("shutting down: finishing requests under way, a second signal ends at once");
    server.drain();
    let begin = Instant::now();
    while !server.drained() && begin.elapsed() < patience {
        match signals.recv_timeout(DRAIN_LOOK) {
            Ok(SIGHUP) | Err(RecvTimeoutError::Timeout) => {}
            Ok(_) | Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}
