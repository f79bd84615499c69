//! Wires the rooms together into a running server: clocks, signals, addresses.

mod clocks;
mod descriptors;
mod device;
mod options;

use std::error::Error;
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::sync::mpsc::{channel, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use server::Server;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use telemetry::admin::{self, AdminHandle, AdminOptions};

use crate::config::{self, Config, Overrides};

/// How often a draining server looks whether it is done.
const DRAIN_LOOK: Duration = Duration::from_millis(20);

/// Patience with admin requests under way at the end.
const ADMIN_PATIENCE: Duration = Duration::from_secs(1);

type Failure = Box<dyn Error>;

/// Where the configuration came from, so that SIGHUP can read it again through [`crate::config::load`].
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
    tracing_subscriber::fmt()
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal())
        .with_env_filter(
            tracing_subscriber::EnvFilter::try_from_env("ENTREMET_LOG")
                .unwrap_or_else(|_| "info".into()),
        )
        .init();
    threads::say_and_end(|thread, what| {
        tracing::error!(
            thread,
            "a thread panicked, and the server ends with it, at once; nothing that was acknowledged is lost, and \
             starting it again is safe: {what}"
        );
    });
    // The allocator's threads, which give memory back to the system: it names and starts them itself.
    threads::Duty::Background.begin_for("jemalloc");
    let signals = watch_signals()?;
    let patience = config.server.drain.duration();
    let shutdown = || {
        // SHUTDOWN from a client is the operator's SIGTERM by another way.
        let _ = signal_hook::low_level::raise(SIGTERM);
    };
    let server = Server::start(options::of(&config, &source)?, Box::new(shutdown))?;
    let admin = admin::start(AdminOptions {
        address: config.server.admin,
        registry: server.metrics(),
        source: server.admin_source(),
    })?;
    say_ready(&server, &admin)?;
    wait(&server, &signals, &source);
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
    let listen: Vec<String> = server.addresses().iter().map(ToString::to_string).collect();
    let mut out = io::stdout().lock();
    writeln!(
        out,
        "entremet is ready: clients on {}, admin on http://{}",
        listen.join(" and "),
        admin.address()
    )?;
    out.flush()
}

/// Until a signal says to end; SIGHUP reloads.
fn wait(server: &Server, signals: &Receiver<i32>, source: &Source) {
    while let Ok(signal) = signals.recv() {
        if signal != SIGHUP {
            return;
        }
        match config::load(source.file.as_deref(), &source.overrides) {
            Ok(loaded) => {
                eprint!("{}", loaded.report);
                server.reload(
                    &options::tenants(&loaded.config),
                    options::tuning(&loaded.config),
                );
                tracing::info!("the configuration was reloaded");
            }
            Err(report) => {
                server.reload_refused();
                tracing::error!(
                    "the configuration was not reloaded, the old one stays: {}\n{report}",
                    report.summary()
                );
            }
        }
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
