//! Servers under test: processes of their own on chosen processors, ended on every way out.
//!
//! Dropping a [`Server`] ends it in order. Should this process itself be killed, the kernel kills
//! the server with it (`setpriv --pdeathsig`, which needs no code between fork and exec). The
//! kernel means the *thread* that started the server, so that one has to live as long.

pub mod check;
pub mod config;
pub mod pin;
mod rivals;
pub mod times;
mod told;
pub mod watch;
mod windows;

use std::fs::{self, File};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use toml::Table;
use workload::client::control::Control;
use workload::client::{process, Identity};

pub use self::rivals::PlainStore;
use crate::error::ExperimentError;
use crate::nodes::Nodes;

/// Debian's, on the path.
pub const REDIS: &str = "redis-server";
/// How long a server may take until it answers; machines may be busy.
const READY: Duration = Duration::from_secs(60);
/// How long it may take to end.
const ENDED: Duration = Duration::from_secs(10);
/// How long after its connections broke a server that crashed may still be there.
const GONE: Duration = Duration::from_secs(1);
/// How often any of these is looked for.
const LOOK: Duration = Duration::from_millis(5);
/// In its folder.
const CONFIG: &str = "entremet.toml";
const DATA: &str = "data";
/// A server that uses less of a processor than this does nothing.
const QUIET: f64 = 0.02;
/// Seconds after which one that is never quiet is taken as it is.
const SETTLE_S: u32 = 60;
/// Lines of a server's log that an error shows.
const LAST_WORDS: usize = 10;

/// How an Entremet is to be started.
#[derive(Clone, Debug)]
pub struct Launch<'a> {
    /// What messages call it.
    pub label: &'a str,
    /// The binary.
    pub binary: &'a Path,
    /// The processors that it may use; one data path thread on each.
    pub cores: &'a [usize],
    /// Its configuration, without addresses and data directory.
    pub config: &'a Table,
    /// The data directory of a server that has ended: it begins with a copy.
    pub data: Option<&'a Path>,
}

/// A running server; dropping it ends it.
pub struct Server {
    child: Child,
    /// Where it listens.
    pub address: SocketAddr,
    /// Where it tells of itself, if it does.
    pub admin: Option<SocketAddr>,
    folder: tempfile::TempDir,
    label: String,
    /// Data path threads, of Entremet.
    cores: usize,
}

/// How a server tells that it is ready.
enum Ready {
    /// By a line on its standard output.
    Line,
    /// By answering at this address.
    Answer(SocketAddr),
}

impl Server {
    /// Entremet with a configuration, a temporary data directory and free ports of its own.
    ///
    /// # Errors
    /// [`ExperimentError::Server`] with its last words when it does not come up.
    pub fn entremet(launch: &Launch) -> Result<Self, ExperimentError> {
        let folder = folder()?;
        let path = folder.path().join(CONFIG);
        let data = data_in(&folder, launch.data)?;
        let any = config::ANY_PORT;
        let config = config::place(launch.config, any, any, launch.cores.len(), &data);
        fs::write(&path, config.to_string()).map_err(|source| ExperimentError::Output {
            path: path.clone(),
            source,
        })?;
        let mut command = pinned(launch.cores, launch.binary);
        command.arg("serve").arg("--config").arg(&path);
        let mut server = Self::start(command, Ready::Line, folder, launch.label)?;
        server.cores = launch.cores.len();
        Ok(server)
    }

    /// A cluster of nodes, each an engine and a front.
    ///
    /// # Errors
    /// [`ExperimentError::Server`] with its last words when it does not come up.
    pub fn nodes(launch: &Launch, nodes: &Nodes) -> Result<Self, ExperimentError> {
        let folder = folder()?;
        let path = folder.path().join(CONFIG);
        let any = config::ANY_PORT;
        let config = config::place(launch.config, any, any, 1, folder.path());
        fs::write(&path, config.to_string()).map_err(|source| ExperimentError::Output {
            path: path.clone(),
            source,
        })?;
        let mut command = pinned(launch.cores, launch.binary);
        command.args(["cluster", "dev", "--config"]).arg(&path);
        command.args(["--engine", REDIS]).args(nodes.words());
        Self::start(command, Ready::Line, folder, launch.label)
    }

    /// Where the engines of a cluster are, in the order of its nodes.
    pub fn engines(&self) -> Vec<String> {
        config::engines(&self.log())
    }

    /// Lines of its log that begin so.
    pub fn said(&self, begin: &str) -> usize {
        let log = self.log();
        log.lines().filter(|line| line.starts_with(begin)).count()
    }

    /// Gives it another configuration and has it read that anew. Where it listens and keeps its
    /// data stays.
    ///
    /// # Errors
    /// [`ExperimentError::Output`] if it cannot be written down.
    pub fn reconfigure(&self, config: &Table) -> Result<(), ExperimentError> {
        let path = self.folder.path().join(CONFIG);
        let (data, any) = (self.folder.path().join(DATA), config::ANY_PORT);
        let config = config::place(config, any, any, self.cores, &data);
        fs::write(&path, config.to_string())
            .map_err(|source| ExperimentError::Output { path, source })?;
        if let Some(pid) = rustix::process::Pid::from_raw(self.pid() as i32) {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::HUP);
        }
        Ok(())
    }

    fn start(
        mut command: Command,
        ready: Ready,
        folder: tempfile::TempDir,
        label: &str,
    ) -> Result<Self, ExperimentError> {
        let log = log_path(&folder);
        let output = |source| ExperimentError::Output {
            path: log.clone(),
            source,
        };
        let file = File::create(&log).map_err(output)?;
        let errors = file.try_clone().map_err(output)?;
        let child = command
            .stdin(Stdio::null())
            .stdout(file)
            .stderr(errors)
            .spawn()
            .map_err(|source| ExperimentError::System {
                what: "starting a server (taskset and setpriv of util-linux are needed)",
                source,
            })?;
        let mut server = Self {
            child,
            address: SocketAddr::from(([127, 0, 0, 1], 0)),
            admin: None,
            folder,
            label: label.into(),
            cores: 0,
        };
        server.wait_ready(&ready)?;
        Ok(server)
    }

    fn wait_ready(&mut self, ready: &Ready) -> Result<(), ExperimentError> {
        let begun = Instant::now();
        loop {
            let found = match ready {
                Ready::Line => config::ready_address(&self.log()),
                Ready::Answer(address) => answers(*address).then_some(*address),
            };
            if let Some(address) = found {
                self.address = address;
                self.admin = config::admin_address(&self.log());
                return Ok(());
            }
            if let Some(status) = self.ended() {
                return Err(self.failed(format!("the server did not come up and ended ({status})")));
            }
            if begun.elapsed() > READY {
                let patience_s = READY.as_secs();
                return Err(self.failed(format!("the server was not ready after {patience_s} s")));
            }
            std::thread::sleep(LOOK);
        }
    }

    /// How it ended, if it did.
    pub fn ended(&mut self) -> Option<String> {
        match self.child.try_wait() {
            Ok(Some(status)) => Some(status.to_string()),
            _ => None,
        }
    }

    /// How it ended, if it does within a moment: connections break before a process is gone.
    pub fn ended_soon(&mut self) -> Option<String> {
        let begun = Instant::now();
        loop {
            let ended = self.ended();
            if ended.is_some() || begun.elapsed() > GONE {
                return ended;
            }
            std::thread::sleep(LOOK);
        }
    }

    /// An error about this server, with its last words.
    pub fn failed(&self, what: String) -> ExperimentError {
        let log = self.log();
        let lines: Vec<&str> = log.lines().collect();
        let tail = lines[lines.len().saturating_sub(LAST_WORDS)..].join("\n");
        ExperimentError::Server {
            label: self.label.clone(),
            what,
            log: if tail.is_empty() {
                "(nothing)".into()
            } else {
                tail
            },
        }
    }

    /// What it has said.
    pub fn log(&self) -> String {
        fs::read_to_string(log_path(&self.folder)).unwrap_or_default()
    }

    /// Where its data are.
    pub fn data(&self) -> PathBuf {
        self.folder.path().join(DATA)
    }

    /// Ends it; what it stored stays as long as this value.
    pub fn end(&mut self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        // Not if it has ended: the kernel may have given its number to another process.
        if self.ended().is_none() {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        }
        let begun = Instant::now();
        while self.ended().is_none() {
            if begun.elapsed() > ENDED {
                let _ = self.child.kill();
                let _ = self.child.wait();
                break;
            }
            std::thread::sleep(LOOK);
        }
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// CPU time used so far by it and what it has started, seconds; 0 when it is gone.
    pub fn cpu_s(&self) -> f64 {
        let each = family(self.pid()).into_iter();
        each.filter_map(process::cpu_s).sum()
    }

    /// Waits until it has had nothing to do for a second, such as compacting what was stored; for a
    /// minute at most.
    pub fn settle(&self) {
        let mut before = self.cpu_s();
        for _ in 0..SETTLE_S {
            std::thread::sleep(Duration::from_secs(1));
            let now = self.cpu_s();
            if now - before < QUIET {
                return;
            }
            before = now;
        }
    }

    /// Resident memory of it and what it has started, bytes; 0 when it is gone.
    pub fn resident_bytes(&self) -> u64 {
        let each = family(self.pid()).into_iter();
        each.filter_map(process::resident_bytes).sum()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end();
    }
}

/// A process, and those that it has started.
fn family(pid: u32) -> Vec<u32> {
    let path = format!("/proc/{pid}/task/{pid}/children");
    let children = fs::read_to_string(path).unwrap_or_default();
    let children = children
        .split_whitespace()
        .filter_map(|pid| pid.parse().ok());
    std::iter::once(pid).chain(children).collect()
}

fn log_path(folder: &tempfile::TempDir) -> PathBuf {
    folder.path().join("server.log")
}

fn answers(address: SocketAddr) -> bool {
    let any = Identity {
        resp2: true,
        ..Identity::default()
    };
    let answer =
        Control::connect(address, &any, READY).and_then(|mut control| control.command(&[b"PING"]));
    matches!(answer, Ok(None))
}

/// Where a server in this folder keeps its data: a copy of those at `from`, or none yet.
fn data_in(folder: &tempfile::TempDir, from: Option<&Path>) -> Result<PathBuf, ExperimentError> {
    let data = folder.path().join(DATA);
    if let Some(from) = from {
        copy(from, &data).map_err(|source| ExperimentError::System {
            what: "copying a server's data",
            source,
        })?;
    }
    Ok(data)
}

fn folder() -> Result<tempfile::TempDir, ExperimentError> {
    let made = tempfile::Builder::new().prefix("entremet-").tempdir();
    made.map_err(|source| ExperimentError::System {
        what: "making a temporary folder",
        source,
    })
}

/// A folder and all that is in it. Tables are never written again: they are the same files in both,
/// so that they lie in the same place on the disk, which is worth a quarter of what can be read of
/// them.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let to = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &to)?;
        } else if to.extension().is_some_and(|kind| kind == "sst") {
            fs::hard_link(entry.path(), to)?;
        } else {
            fs::copy(entry.path(), to)?;
        }
    }
    Ok(())
}

fn free_address() -> Result<SocketAddr, ExperimentError> {
    TcpListener::bind(config::ANY_PORT)
        .and_then(|listener| listener.local_addr())
        .map_err(|source| ExperimentError::System {
            what: "finding a free port",
            source,
        })
}

/// A command that runs on some processors only, and not longer than the thread that starts it.
pub fn pinned(cores: &[usize], program: &Path) -> Command {
    let list: Vec<String> = cores.iter().map(usize::to_string).collect();
    let mut command = Command::new("taskset");
    command
        .args(["-c", &list.join(",")])
        .args(["setpriv", "--pdeathsig", "KILL"])
        .arg(program);
    command
}
