//! Servers that are not ours, and engines that ours stand before.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use workload::client::control::Control;
use workload::client::{Identity, SLOTS};

use super::{data_in, folder, free_address, pinned, Ready, Server, LOOK, READY, REDIS};
use crate::error::ExperimentError;

/// How the store of the usual design is to be started: what it is compared with.
#[derive(Clone, Copy, Debug)]
pub struct PlainStore<'a> {
    /// The binary.
    pub binary: &'a Path,
    /// The processors that it may use.
    pub cores: &'a [usize],
    /// Event loops.
    pub threads: usize,
    /// Size of its block cache, bytes.
    pub cache_bytes: u64,
}

impl PlainStore<'_> {
    /// To do this with the files at `data`, on its processors.
    pub fn command(&self, what: &str, data: &Path) -> Command {
        let mut command = pinned(self.cores, self.binary);
        command.arg(what).arg(data);
        command
    }
}

impl Server {
    /// redis-server, or `program` in its place, with Entremet's own promise (`appendfsync
    /// everysec`) on one processor, where these users may do everything.
    ///
    /// # Errors
    /// [`ExperimentError::Server`] with its last words when it does not come up.
    pub fn redis(program: &Path, core: usize, users: &[String]) -> Result<Self, ExperimentError> {
        let everything = ["on", "nopass", "~*", "&*", "+@all"];
        let users = users
            .iter()
            .flat_map(|user| ["--user", user].into_iter().chain(everything));
        Self::redis_with(program, core, users)
    }

    /// redis-servers on one processor that are a cluster, each with as many of its slots.
    ///
    /// # Errors
    /// [`ExperimentError::Server`] with its last words when one does not come up or refuses them.
    pub fn redis_cluster(core: usize, count: u16) -> Result<Vec<Self>, ExperimentError> {
        let nodes = (0..count).map(|_| {
            // Its own choice is ten thousand above the other, which may be beyond the last port.
            let bus = free_address()?.port().to_string();
            let more = ["--cluster-enabled", "yes", "--cluster-port", &bus];
            Ok((Self::redis_with(Path::new(REDIS), core, more)?, bus))
        });
        let nodes = nodes.collect::<Result<Vec<_>, ExperimentError>>()?;
        let bound = |node: usize| usize::from(SLOTS) * node / nodes.len();
        for (number, (node, _)) in nodes.iter().enumerate() {
            let mut control = Control::connect(node.address, &Identity::default(), READY)?;
            let (from, to) = (bound(number), bound(number + 1) - 1);
            let mut asked = vec![format!("ADDSLOTSRANGE {from} {to}")];
            for (other, bus) in &nodes[..number] {
                let (host, port) = (other.address.ip(), other.address.port());
                asked.push(format!("MEET {host} {port} {bus}"));
            }
            for words in &asked {
                let words = words.split(' ').map(str::as_bytes);
                let words: Vec<&[u8]> = [&b"CLUSTER"[..]].into_iter().chain(words).collect();
                if let Some(told) = control.command(&words)? {
                    let why = format!("it becomes no part of a cluster: {told}");
                    return Err(node.failed(why));
                }
            }
        }
        for (node, _) in &nodes {
            node.await_cluster()?;
        }
        Ok(nodes.into_iter().map(|(node, _)| node).collect())
    }

    /// A node serves its slots a moment after all have been given away and are known to it.
    fn await_cluster(&self) -> Result<(), ExperimentError> {
        let mut control = Control::connect(self.address, &Identity::default(), READY)?;
        let begun = Instant::now();
        while let Some(told) = control.command(&[b"GET", b"any"])? {
            if told.contains("MOVED") {
                break;
            }
            if begun.elapsed() > READY {
                return Err(self.failed(format!("its cluster does not come up: {told}")));
            }
            std::thread::sleep(LOOK);
        }
        Ok(())
    }

    fn redis_with<'a>(
        program: &Path,
        core: usize,
        more: impl IntoIterator<Item = &'a str>,
    ) -> Result<Self, ExperimentError> {
        let folder = folder()?;
        let address = free_address()?;
        let mut command = pinned(&[core], program);
        command
            .args(["--port", &address.port().to_string(), "--bind", "127.0.0.1"])
            .args(["--appendonly", "yes", "--appendfsync", "everysec"])
            .args(["--save", "", "--maxclients", "20000"])
            .args(more)
            .arg("--dir")
            .arg(folder.path());
        let label = program.file_name().unwrap_or(program.as_os_str());
        let label = label.to_string_lossy();
        Self::start(command, Ready::Answer(address), folder, &label)
    }

    /// nutcracker (twemproxy) before `engine`.
    ///
    /// # Errors
    /// [`ExperimentError::Server`] with its last words when it does not come up.
    pub fn nutcracker(
        program: &Path,
        core: usize,
        engine: SocketAddr,
    ) -> Result<Self, ExperimentError> {
        let folder = folder()?;
        let (address, figures) = (free_address()?, free_address()?);
        let path = folder.path().join("nutcracker.yml");
        let pool =
            format!("pool:\n  listen: {address}\n  redis: true\n  servers:\n    - {engine}:1\n");
        fs::write(&path, pool).map_err(|source| ExperimentError::Output {
            path: path.clone(),
            source,
        })?;
        let mut command = pinned(&[core], program);
        command.arg("--conf-file").arg(&path);
        command.args(["--stats-addr", "127.0.0.1", "--stats-port"]);
        command.arg(figures.port().to_string());
        Self::start(command, Ready::Answer(address), folder, "nutcracker")
    }

    /// A store of the usual design, with a copy of what one that has ended left at `from`.
    ///
    /// # Errors
    /// [`ExperimentError::Server`] with its last words when it does not come up.
    pub fn plain(store: &PlainStore, from: Option<&Path>) -> Result<Self, ExperimentError> {
        let folder = folder()?;
        let data = data_in(&folder, from)?;
        let mut command = store.command("serve", &data);
        command.args([store.threads.to_string(), store.cache_bytes.to_string()]);
        Self::start(command, Ready::Line, folder, "plain store")
    }

    /// The small store with queues of this design, a worker for each processor.
    ///
    /// # Errors
    /// [`ExperimentError::Server`] with its last words when it does not come up.
    pub fn queue_store(
        binary: &Path,
        design: &str,
        cores: &[usize],
    ) -> Result<Self, ExperimentError> {
        let mut command = pinned(cores, binary);
        command.args([design, &cores.len().to_string()]);
        Self::start(command, Ready::Line, folder()?, "queue store")
    }
}
