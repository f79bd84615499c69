//! Engines that are a cluster: started, introduced to each other, given their slots.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use std::{fs, io};

use super::Failure;
use crate::client::{Client, Reply, Target};

/// After a node has been silent for so long, its replica takes its place.
const NODE_TIMEOUT_MS: &str = "2000";
/// Between two looks whether something has happened.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// In which a limited engine has its part of a processor.
const PERIOD_NS: f64 = 1e6;
/// What takes longer does not happen.
const PATIENCE: Duration = Duration::from_secs(30);

/// A process that ends with this one, whatever ends it.
pub fn command(program: &Path) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL"]).arg(program);
    command
}

/// Ports of the loopback address that nobody listens on, all different.
fn free_ports(count: usize) -> io::Result<Vec<u16>> {
    let open = |_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
    let open: Vec<TcpListener> = (0..count).map(open).collect::<Result<_, _>>()?;
    let port = |listener: &TcpListener| Ok(listener.local_addr()?.port());
    open.iter().map(port).collect()
}

/// One engine.
pub struct Engine {
    /// Its process.
    pub process: Child,
    /// Where it listens.
    pub at: SocketAddr,
    bus: u16,
}

impl Engine {
    fn start(program: &Path, folder: &Path, port: u16, bus: u16) -> Result<Self, Failure> {
        fs::create_dir_all(folder)?;
        let log = fs::File::create(folder.join("engine.log"))?;
        let (port_text, bus_text) = (port.to_string(), bus.to_string());
        let process = command(program)
            .args(["--bind", "127.0.0.1", "--port", &port_text])
            .args(["--cluster-enabled", "yes", "--cluster-port", &bus_text])
            .args(["--cluster-config-file", "nodes.conf"])
            .args(["--cluster-node-timeout", NODE_TIMEOUT_MS])
            .args(["--cluster-require-full-coverage", "no"])
            .args(["--cluster-allow-replica-migration", "no"])
            .args(["--save", "", "--appendonly", "no", "--dir"])
            .arg(folder)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .map_err(|why| format!("{} cannot be started: {why}", program.display()))?;
        let at = (Ipv4Addr::LOCALHOST, port).into();
        Ok(Self { process, at, bus })
    }

    /// It may use this part of a processor from now on. The kernel's scheduler of deadlines sees to
    /// it, millisecond by millisecond: a node with a control group's quota runs and pauses for so
    /// long that hundreds of requests wait at it meanwhile.
    ///
    /// # Errors
    /// The kernel does not let this process.
    pub fn limit(&self, part: f64) -> Result<(), Failure> {
        if part >= 1.0 {
            return Ok(());
        }
        let of_period = |part| ((PERIOD_NS * part) as u64).to_string();
        let [period, runs] = [1.0, part].map(of_period);
        // What it starts, to write a snapshot, has no part of its own.
        let done = Command::new("chrt")
            .args(["--reset-on-fork", "--deadline", "--sched-runtime", &runs])
            .args(["--sched-deadline", &period, "--sched-period", &period])
            .args(["--pid", "0", &self.process.id().to_string()])
            .stdin(Stdio::null())
            .output()
            .map_err(|why| format!("chrt of util-linux cannot be started: {why}"))?;
        match done.status.success() {
            true => Ok(()),
            false => Err(format!(
                "an engine cannot have {part} of a processor: {}; it takes root, all processors of the machine, and less for all engines than nine tenths of these",
                String::from_utf8_lossy(&done.stderr).trim()
            )
            .into()),
        }
    }

    fn ask(&self, words: &[&str]) -> Result<Reply, Failure> {
        let target = Target {
            address: self.at,
            tls: None,
            client: "entremet-cluster".into(),
            patience: PATIENCE,
        };
        let mut client = Client::connect(&target, "", None)?;
        let words = words.iter().map(|word| word.as_bytes()).collect();
        Ok(client.ask(words)?)
    }

    /// What `CLUSTER INFO` says, or the name of the node.
    fn text(&self, words: &[&str]) -> Result<String, Failure> {
        match self.ask(words)? {
            Reply::Bulk(text) => Ok(String::from_utf8_lossy(&text).into_owned()),
            other => {
                Err(format!("the engine at {} answers {words:?} with {other:?}", self.at).into())
            }
        }
    }

    fn says(&self, line: &str) -> Result<bool, Failure> {
        let info = self.text(&["CLUSTER", "INFO"])?;
        Ok(info.lines().any(|said| said == line))
    }
}

/// Starts an engine for each master, whose `slots` at first these are, with so many `replicas` of
/// each, and makes a cluster of them.
///
/// # Errors
/// What kept them from that.
pub fn cluster(
    program: &Path,
    folder: &Path,
    slots: &[Vec<(u16, u16)>],
    replicas: usize,
) -> Result<Vec<Engine>, Failure> {
    let masters = slots.len();
    let count = masters * (1 + replicas);
    let ports = free_ports(2 * count)?;
    let mut engines: Vec<Engine> = Vec::new();
    for (number, ports) in ports.chunks_exact(2).enumerate() {
        let folder = folder.join(format!("engine{number}"));
        engines.push(Engine::start(program, &folder, ports[0], ports[1])?);
    }
    for engine in &engines {
        eventually("an engine answers", || Ok(engine.ask(&["PING"]).is_ok()))?;
    }
    for (number, engine) in engines.iter().enumerate() {
        engine.ask(&["CLUSTER", "SET-CONFIG-EPOCH", &(number + 1).to_string()])?;
    }
    for engine in &engines[1..] {
        let (port, bus) = (engine.at.port().to_string(), engine.bus.to_string());
        engines[0].ask(&["CLUSTER", "MEET", "127.0.0.1", &port, &bus])?;
    }
    for (engine, rows) in engines.iter().zip(slots) {
        let ends = rows.iter().flat_map(|(first, last)| [first, last]);
        let ends: Vec<String> = ends.map(ToString::to_string).collect();
        let words = ["CLUSTER", "ADDSLOTSRANGE"].into_iter();
        engine.ask(
            &words
                .chain(ends.iter().map(String::as_str))
                .collect::<Vec<_>>(),
        )?;
    }
    let known = format!("cluster_known_nodes:{count}");
    for engine in &engines {
        eventually("all engines know each other", || engine.says(&known))?;
    }
    for (number, engine) in engines[masters..].iter().enumerate() {
        let master = engines[number % masters].text(&["CLUSTER", "MYID"])?;
        let words = ["CLUSTER", "REPLICATE", &master];
        eventually("a replica has its master", || {
            Ok(engine.ask(&words).is_ok())
        })?;
    }
    for engine in &engines {
        eventually("the cluster is up", || engine.says("cluster_state:ok"))?;
    }
    Ok(engines)
}

/// Looks until it is so.
fn eventually(what: &str, mut is_so: impl FnMut() -> Result<bool, Failure>) -> Result<(), Failure> {
    let end = Instant::now() + PATIENCE;
    while !is_so()? {
        if Instant::now() > end {
            return Err(format!("not within {} s: {what}", PATIENCE.as_secs()).into());
        }
        thread::sleep(LOOK_EVERY);
    }
    Ok(())
}
