//! The servers under test, as processes of their own on chosen cores.

use std::fs::{self, File};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{getrlimit, setrlimit, Resource, Rlimit};
use rustix::thread::{sched_setaffinity, CpuSet};
use workload::client::control::Control;
use workload::client::{process, Identity};
use workload::WorkloadError;

use crate::Setup;

/// How long a server may take until it answers.
const READY: Duration = Duration::from_secs(60);
/// How long it may take to end.
const ENDED: Duration = Duration::from_secs(10);
/// A tenant as configured: name and weight.
pub type Tenant = (String, u32);

/// How an Entremet is to be started.
pub struct Entremet {
    /// Its name in messages.
    pub label: &'static str,
    /// `[scheduler] request`.
    pub request: &'static str,
    /// The cores that it may use; one data path thread on each.
    pub cores: Vec<usize>,
    /// Tenants. They have no passwords, so that logging in costs nothing (any password will do).
    pub tenants: Vec<Tenant>,
    /// Object cache of each tenant, MiB, so that data stay in memory as the claims say; 0 leaves the
    /// server's defaults.
    pub cache_mib: u64,
    /// More lines for `[scheduler]`.
    pub scheduler: String,
}

/// A running server; dropping it ends it.
pub struct Server {
    child: Child,
    /// Where it listens.
    pub address: SocketAddr,
    folder: tempfile::TempDir,
    label: &'static str,
}

impl Server {
    /// redis-server with Entremet's own promise (`appendfsync everysec`) on one core.
    pub fn redis(core: usize) -> Result<Self, WorkloadError> {
        let folder = folder()?;
        let address = free_address()?;
        let mut command = pinned(&[core], Path::new("redis-server"));
        command
            .args(["--port", &address.port().to_string(), "--bind", "127.0.0.1"])
            .args([
                "--appendonly",
                "yes",
                "--appendfsync",
                "everysec",
                "--save",
                "",
            ])
            .args(["--maxclients", "20000"])
            .arg("--dir")
            .arg(folder.path());
        Self::start(command, address, folder, "redis-server")
    }

    /// Entremet with a configuration of its own.
    pub fn entremet(setup: &Setup, options: &Entremet) -> Result<Self, WorkloadError> {
        let folder = folder()?;
        let (address, admin) = (free_address()?, free_address()?);
        let config = folder.path().join("entremet.toml");
        let text = config_text(setup, options, address, admin, folder.path());
        fs::write(&config, text).map_err(|source| WorkloadError::Output {
            path: config.clone(),
            source,
        })?;
        let mut command = pinned(&options.cores, &setup.binary);
        command.arg("serve").arg("--config").arg(&config);
        Self::start(command, address, folder, options.label)
    }

    fn start(
        mut command: Command,
        address: SocketAddr,
        folder: tempfile::TempDir,
        label: &'static str,
    ) -> Result<Self, WorkloadError> {
        let log = folder.path().join("bench-server.log");
        let file = File::create(&log).map_err(|source| WorkloadError::Output {
            path: log.clone(),
            source,
        })?;
        let errors = file.try_clone();
        let errors = errors.map_err(|source| WorkloadError::Output { path: log, source })?;
        let child = command
            .stdin(Stdio::null())
            .stdout(file)
            .stderr(errors)
            .spawn()
            .map_err(|source| WorkloadError::System {
                what: "starting a server",
                source,
            })?;
        let mut server = Self {
            child,
            address,
            folder,
            label,
        };
        server.wait_ready()?;
        Ok(server)
    }

    fn wait_ready(&mut self) -> Result<(), WorkloadError> {
        let begun = Instant::now();
        loop {
            let ready = Control::connect(self.address, &Identity::default(), READY)
                .and_then(|mut control| control.command(&[b"PING"]));
            if matches!(ready, Ok(None)) {
                return Ok(());
            }
            let ended = matches!(self.child.try_wait(), Ok(Some(_)));
            if ended || begun.elapsed() > READY {
                let log = fs::read_to_string(self.folder.path().join("bench-server.log"));
                let log = log.unwrap_or_default();
                let tail: Vec<&str> = log.lines().rev().take(10).collect();
                let tail: Vec<&str> = tail.into_iter().rev().collect();
                return Err(WorkloadError::Usage(format!(
                    "{} did not come up{}; its last words:\n{}",
                    self.label,
                    if ended { " and ended" } else { "" },
                    tail.join("\n")
                )));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// CPU time used so far, seconds.
    pub fn cpu_s(&self) -> f64 {
        process::cpu_s(self.pid()).unwrap_or(0.0)
    }

    /// Resident memory, bytes.
    pub fn resident_bytes(&self) -> f64 {
        process::resident_bytes(self.pid()).unwrap_or(0) as f64
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        // If it has ended already there is nothing to tell it.
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        let begun = Instant::now();
        while matches!(self.child.try_wait(), Ok(None)) {
            if begun.elapsed() > ENDED {
                let _ = self.child.kill();
                let _ = self.child.wait();
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// The identity of a configured tenant.
pub fn identity(tenant: &str) -> Identity {
    Identity {
        credentials: Some((tenant.into(), "none".into())),
        tag: "bench".into(),
    }
}

fn config_text(
    setup: &Setup,
    options: &Entremet,
    address: SocketAddr,
    admin: SocketAddr,
    folder: &Path,
) -> String {
    let (cores, data) = (options.cores.len(), folder.join("data"));
    let (mut cache, mut cache_each) = (String::new(), String::new());
    if options.cache_mib > 0 {
        // The default tenant has its part of the cache too.
        let whole_mib = options.cache_mib * (options.tenants.len() as u64 + 1);
        cache = format!("object_cache = \"{whole_mib}MiB\"\n");
        cache_each = format!("cache = \"{}MiB\"\n", options.cache_mib);
    }
    let listen = format!("listen = \"{address}\"\nadmin = \"{admin}\"\n");
    let sections = [
        (
            "server",
            format!("{listen}cores = {cores}\nmax_connections = 12000\n"),
        ),
        ("engine", format!("path = \"{}\"\n{cache}", data.display())),
        (
            "scheduler",
            format!("request = \"{}\"\n{}", options.request, options.scheduler),
        ),
    ];
    let mut text = String::new();
    for (section, lines) in sections {
        text += &format!("[{section}]\n{lines}");
        for (_, line) in setup.set.iter().filter(|(name, _)| name == section) {
            text += &format!("{line}\n");
        }
    }
    for (name, weight) in &options.tenants {
        text += &format!("[[tenant]]\nname = \"{name}\"\nweight = {weight}\n{cache_each}");
    }
    text
}

fn folder() -> Result<tempfile::TempDir, WorkloadError> {
    tempfile::tempdir().map_err(|source| WorkloadError::System {
        what: "making a temporary folder",
        source,
    })
}

fn free_address() -> Result<SocketAddr, WorkloadError> {
    TcpListener::bind("127.0.0.1:0")
        .and_then(|listener| listener.local_addr())
        .map_err(|source| WorkloadError::System {
            what: "finding a free port",
            source,
        })
}

/// A command that runs on some cores only.
pub fn pinned(cores: &[usize], program: &Path) -> Command {
    let list: Vec<String> = cores.iter().map(usize::to_string).collect();
    let mut command = Command::new("taskset");
    command.arg("-c").arg(list.join(",")).arg(program);
    command
}

/// Moves this process (and the threads that it makes later) to some cores.
pub fn pin_client(cores: &[usize]) {
    let mut set = CpuSet::new();
    cores.iter().for_each(|core| set.set(*core));
    if let Err(error) = sched_setaffinity(None, &set) {
        println!("NOTE: the client could not be pinned to cores {cores:?}: {error}");
    }
}

/// Allows as many open files as the system lets us: thousands of connections need them, and
/// servers inherit the limit.
pub fn raise_file_limit() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    // The rows that need it say so when connections fail.
    let _ = setrlimit(Resource::Nofile, raised);
}
