//! `disk-speed`: gets from the disk by a whole server, by a store of the usual design, and by
//! threads that do nothing but read.
//!
//! Each fills a database of its own, is started anew, so that all of it is in tables, and waits
//! until these are compacted. Clients are closed loops on the load's processors; `outstanding` is
//! what may be with the disk at a time: handlers, event loops, or threads.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use toml::Table;

use settings::table::Fields;

use super::{Host, Program, Work};
use crate::examples::{self, PLAIN_STORE};
use crate::observed::Observed;
use crate::player::{LoadClient, Player};
use crate::server::{Launch, PlainStore, Server};

/// `store`: `entremet`, `plain` or `threads`; `outstanding`, 16; `connections`, 96; `keys`, 150000;
/// `value_bytes`, 4096; `cache_bytes` of file blocks, 16 MiB; `seconds`, 6.
pub(super) const DISK_SPEED: Program = Program {
    name: "disk-speed",
    timed: true,
    prepare,
};

/// Not by name: a cache of objects would answer.
const OBJECT_CACHE: &str = "1MiB";

struct Trial {
    store: &'static str,
    outstanding: usize,
    connections: usize,
    keys: usize,
    value_bytes: usize,
    cache_bytes: usize,
    seconds: f64,
}

fn prepare(parameters: &Fields) -> Work {
    let trial = Trial {
        store: parameters.word("store", &["entremet", "plain", "threads"]),
        outstanding: parameters.count("outstanding").unwrap_or(16),
        connections: parameters.count("connections").unwrap_or(96),
        keys: parameters.count("keys").unwrap_or(150_000),
        value_bytes: parameters.count("value_bytes").unwrap_or(4 << 10),
        cache_bytes: parameters.count("cache_bytes").unwrap_or(16 << 20),
        seconds: parameters.amount("seconds").unwrap_or(6.0),
    };
    Box::new(move |host| match trial.store {
        "entremet" => trial.entremet(host),
        "plain" => trial.plain(host),
        _ => trial.threads(host),
    })
}

impl Trial {
    fn entremet(&self, host: &Host) -> Result<Observed, String> {
        let config = format!(
            "[engine]\nhandlers = {}\nobject_cache = \"{OBJECT_CACHE}\"\nblock_cache = \"{}B\"\n\
             [[tenant]]\nname = \"reader\"\npassword = \"none\"\n",
            self.outstanding, self.cache_bytes
        );
        let config: Table = config.parse().map_err(|error| format!("{error}"))?;
        let start = |data: Option<&Path>| {
            let launch = Launch {
                label: "entremet",
                binary: host.binary,
                cores: host.cores,
                config: &config,
                data,
            };
            Server::entremet(&launch).map_err(|error| error.to_string())
        };
        let filled = self.filled(start(None)?)?;
        self.read(&start(Some(&filled.data()))?)
    }

    fn plain(&self, host: &Host) -> Result<Observed, String> {
        let binary = examples::built(host.binary, PLAIN_STORE)?;
        let store = self.plain_store(&binary, host);
        let start =
            |data: Option<&Path>| Server::plain(&store, data).map_err(|error| error.to_string());
        let filled = self.filled(start(None)?)?;
        self.read(&start(Some(&filled.data()))?)
    }

    fn threads(&self, host: &Host) -> Result<Observed, String> {
        let binary = examples::built(host.binary, PLAIN_STORE)?;
        let store = self.plain_store(&binary, host);
        let start =
            |data: Option<&Path>| Server::plain(&store, data).map_err(|error| error.to_string());
        let filled = self.filled(start(None)?)?;
        let mut tables = start(Some(&filled.data()))?;
        tables.settle();
        tables.end();
        let mut command = store.command("read", &tables.data());
        let output = command
            .args([self.outstanding.to_string(), self.cache_bytes.to_string()])
            .arg(self.seconds.to_string())
            .output()
            .map_err(|error| format!("starting threads that read: {error}"))?;
        let told = String::from_utf8_lossy(&output.stdout);
        let mut numbers = told.split_whitespace().flat_map(str::parse);
        match (numbers.next(), numbers.next()) {
            (Some(per_s), Some(each_us)) => Ok(super::figures([
                ("operations", per_s),
                ("processor-each", each_us),
            ])),
            _ => Err(format!(
                "threads that read said: {told}{}",
                String::from_utf8_lossy(&output.stderr)
            )),
        }
    }

    fn plain_store<'a>(&self, binary: &'a Path, host: &Host<'a>) -> PlainStore<'a> {
        PlainStore {
            binary,
            cores: host.cores,
            threads: self.outstanding,
            cache_bytes: self.cache_bytes as u64,
        }
    }

    /// Ends the server once all keys are stored.
    fn filled(&self, mut server: Server) -> Result<Server, String> {
        self.play(&server, true, 0.2, &mut |_| {})?;
        server.settle();
        server.end();
        Ok(server)
    }

    fn read(&self, server: &Server) -> Result<Observed, String> {
        server.settle();
        let mut spent: Vec<(f64, f64)> = Vec::new();
        let mut observed = self.play(server, false, self.seconds, &mut |at_s| {
            if at_s >= 0.0 {
                spent.push((at_s, server.cpu_s()));
            }
        })?;
        let (Some(first), Some(last)) = (spent.first(), spent.last()) else {
            return Err("the load was over before it was looked at".into());
        };
        let cpu_per_s = (last.1 - first.1) / (last.0 - first.0);
        let gets = observed.tenants.iter().map(|one| one.load.total.rate_per_s);
        let gets: f64 = gets.sum();
        let each_us = cpu_per_s * 1e6 / gets;
        observed.figures =
            super::figures([("operations", gets), ("processor-each", each_us)]).figures;
        Ok(observed)
    }

    fn play(
        &self,
        server: &Server,
        preload: bool,
        seconds: f64,
        at: &mut dyn FnMut(f64),
    ) -> Result<Observed, String> {
        let scenario = format!(
            "duration = \"{}ms\"\nwarm_up = \"{}ms\"\n[[tenant]]\nname = \"reader\"\n[[tenant.load]]\nloop = \"closed\"\n\
             connections = {}\nmix = {{ get = 1 }}\nkeys = {{ count = {}, preload = {preload} }}\nvalues = {{ size = \"{}B\" }}\n",
            (seconds * 1e3).round(),
            if preload { 0.0 } else { (seconds * 500.0).round() },
            self.connections,
            self.keys,
            self.value_bytes
        );
        let scenario: Table = scenario.parse().map_err(|error| format!("{error}"))?;
        let played = LoadClient.play(
            &scenario,
            server.address.into(),
            &AtomicBool::new(false),
            at,
        );
        let observed = played.map_err(|error| error.to_string())?;
        match observed
            .tenants
            .iter()
            .map(|one| one.load.total.failed)
            .sum()
        {
            0 => Ok(observed),
            failed => Err(format!("{failed} requests failed")),
        }
    }
}
