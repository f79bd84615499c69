//! What memory the process may take, and how much of it is for what requests hold.
//!
//! Caches and write buffers keep to their own bounds, and so does what waits for commit. What is
//! left is the pool of requests and replies ([`server::tenants::Pool`]), which every command takes
//! from before it works with more than a little.

use std::fs;
use std::path::Path;

use settings::units::Bytes;
use settings::Reader;

use super::Config;

/// Code, threads' stacks, a check of a password, what RocksDB keeps of open files.
const BASE_BYTES: u64 = 128 << 20;

/// A connection that holds little is not counted to its tenant.
const CONNECTION_BYTES: u64 = server::CONNECTION_FREE_BYTES + (2 << 10);

/// So much is for requests where nothing is said, if the machine has it.
const REQUESTS_BYTES: u64 = 2 << 30;

/// Less for requests is of no use.
const REQUESTS_BYTES_MIN: u64 = 64 << 20;

/// Part of what requests hold that the allocator loses between them: one in this many.
const LOST: u64 = 10;

/// A value is held as it was read, and once more in the write of it.
const VALUE_COPIES: u64 = 2;

/// What the process may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Footprint {
    /// Of memory, all in all.
    pub max: u64,
    /// Of that, what requests may hold.
    pub requests: u64,
}

impl Footprint {
    /// As configured, or as much as suits the configuration and this machine.
    pub fn of(config: &Config) -> Self {
        Self::on(config, machine_bytes())
    }

    fn on(config: &Config, machine: Option<u64>) -> Self {
        let fixed = fixed_bytes(config);
        let room = machine.map_or(u64::MAX, |bytes| bytes / 5 * 4);
        let wanted = (fixed + with_loss(REQUESTS_BYTES)).min(room);
        let least = fixed + with_loss(REQUESTS_BYTES_MIN);
        let max = config
            .server
            .max_memory
            .map_or_else(|| wanted.max(least), Bytes::get);
        let left = max.saturating_sub(fixed);
        Self {
            max,
            requests: left - left / (LOST + 1),
        }
    }

    /// What a tenant with this much of all weights may hold of requests.
    fn of_tenant(self, part: f64) -> u64 {
        server::tenants::Pool::new(self.requests).bytes_max(part)
    }
}

/// In whole MiB, to be read.
pub(super) fn whole(bytes: u64) -> Bytes {
    Bytes::new(bytes >> 20 << 20)
}

fn with_loss(bytes: u64) -> u64 {
    bytes + bytes / LOST
}

/// What everything but requests may take.
fn fixed_bytes(config: &Config) -> u64 {
    let (engine, server) = (&config.engine, &config.server);
    let connections = u64::from(server.max_connections)
        + u64::from(server.max_newcomers)
        + u64::from(server.operator_connections);
    engine.object_cache.get()
        + engine.block_cache.get()
        + engine.write_buffers.get()
        + engine::PENDING_BYTES
        + connections * CONNECTION_BYTES
        + BASE_BYTES
}

/// Memory that this process may take, where the system says: the machine's, or less in a control
/// group.
fn machine_bytes() -> Option<u64> {
    let read = |path: &Path| fs::read_to_string(path).ok();
    let number = |path: &Path| read(path)?.trim().parse::<u64>().ok();
    let meminfo = read(Path::new("/proc/meminfo"))?;
    let total = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))?;
    let total_kib: u64 = total.trim().trim_end_matches(" kB").parse().ok()?;
    let groups = read(Path::new("/proc/self/cgroup")).unwrap_or_default();
    let limits = groups.lines().flat_map(|line| {
        let (_, name) = line.split_once(':').unwrap_or_default();
        let (controllers, group) = name.split_once(':').unwrap_or_default();
        let (root, file) = match controllers {
            "" => ("/sys/fs/cgroup", "memory.max"),
            _ => ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
        };
        // Each of the groups around it holds it too.
        let path = Path::new(root).join(group.trim_start_matches('/'));
        let found: Vec<u64> = path
            .ancestors()
            .take_while(|path| path.starts_with(root))
            .filter_map(|path| number(&path.join(file)))
            .collect();
        found
    });
    Some(limits.fold(total_kib << 10, u64::min))
}

/// Adds what does not fit to the report.
pub(super) fn check(config: &Config, reader: &Reader) {
    let machine = machine_bytes();
    check_on(config, reader, machine);
}

fn check_on(config: &Config, reader: &Reader, machine: Option<u64>) {
    let footprint = Footprint::on(config, machine);
    let fixed = fixed_bytes(config);
    let mut report = reader.report.borrow_mut();
    let place = reader.place("server.max_memory");
    let key = "server.max_memory";
    let lower = "lower engine.object_cache, engine.block_cache, engine.write_buffers or server.max_connections";
    if footprint.requests < REQUESTS_BYTES_MIN {
        let what = format!(
            "{} leaves less than {} for requests: caches, write buffers, connections and the process itself take {}",
            whole(footprint.max),
            whole(REQUESTS_BYTES_MIN),
            whole(fixed)
        );
        let least = (fixed + with_loss(REQUESTS_BYTES_MIN)).div_ceil(1 << 20);
        let advice = format!("raise it to {least}MiB or more, or {lower}");
        report.error(place, key, what).advice(advice);
        return;
    }
    if let Some(machine) = machine.filter(|bytes| *bytes < footprint.max) {
        let what = format!(
            "the server may come to take {}, more than the {} that this machine or its control group has",
            whole(footprint.max),
            whole(machine)
        );
        let advice = match config.server.max_memory {
            Some(_) => "lower it".to_string(),
            None => lower.to_string(),
        };
        report.warn(place, key, what).advice(advice);
    }
    let each = config.tenants.iter().map(|tenant| tenant.settings.weight);
    let (weights, weight_min) = (each.clone().sum::<f64>(), each.reduce(f64::min));
    let part = weight_min.map_or(1.0, |weight| weight / weights);
    let needed = config.server.max_value.get() * VALUE_COPIES;
    let has = footprint.of_tenant(part);
    if needed > has {
        let (key, place) = ("server.max_value", reader.place("server.max_value"));
        let what = format!(
            "a write of a value of {} takes twice that, and some tenants may hold no more than {} of requests: \
             theirs are refused",
            config.server.max_value,
            whole(has)
        );
        let advice = "lower it, or raise server.max_memory";
        report.warn(place, key, what).advice(advice);
    }
    for (index, tenant) in config.tenants.iter().enumerate() {
        let has = footprint.of_tenant(tenant.settings.weight / weights);
        if let Some(wanted) = tenant.settings.request_bytes.filter(|bytes| *bytes > has) {
            let what = format!(
                "{} is more than it can have: {}, by its weight and server.max_memory",
                Bytes::new(wanted),
                whole(has)
            );
            let key = format!("tenant {:?}, request_memory", tenant.name);
            report
                .warn(
                    reader.place(&format!("tenant[{index}].request_memory")),
                    &key,
                    what,
                )
                .advice("raise server.max_memory, or leave it out");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{parse, Overrides};

    const SMALL: &str =
        "[engine]\nobject_cache = '64MiB'\nblock_cache = '64MiB'\nwrite_buffers = '64MiB'\n";

    fn footprint(text: &str, machine: Option<u64>) -> Footprint {
        let loaded = parse("test.toml", text, &Overrides::default()).expect("it is good");
        Footprint::on(&loaded.config, machine)
    }

    #[test]
    fn requests_have_what_the_rest_leaves() {
        let whole = footprint("", None);
        assert_eq!(whole.requests, REQUESTS_BYTES);
        // On a small machine they have less, but never nothing.
        let small = footprint(SMALL, Some(1 << 30));
        assert_eq!(small.max, (1 << 30) / 5 * 4);
        assert!(small.requests < REQUESTS_BYTES && small.requests > REQUESTS_BYTES_MIN);
        let least = footprint("", Some(1 << 30));
        assert_eq!(least.requests, REQUESTS_BYTES_MIN);
        let said = footprint(
            &format!("[server]\nmax_memory = '2GiB'\n{SMALL}"),
            Some(1 << 30),
        );
        assert_eq!(said.max, 2 << 30, "what is said holds");
    }
}
