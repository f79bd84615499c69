//! `engine.kind = "redis"` or `"redis-cluster"`: the data is kept by a Redis or Valkey, or by a
//! cluster of them, and this server stands before it.

use std::time::Duration;

use server::UpstreamOptions;
use settings::tenant::{LAG, READS, SCRIPTS};
use settings::units::{Bytes, Time};
use settings::{Reader, Section};

use super::{Config, Engine, Overrides};

/// Where an engine listens that does not say.
const PORT: u16 = 6379;

/// Settings of the storage in this process. Before an engine they would do nothing.
const STORAGE: [&str; 13] = [
    "object_cache",
    "block_cache",
    "write_buffers",
    "memtable",
    "memory",
    "pending",
    "handlers",
    "committers",
    "flush_threads",
    "compaction_threads",
    "direct_io",
    "max_open_files",
    "idle_close",
];

const NOT_HERE: &str = "has no effect: an engine keeps the data, and none is kept here";

/// Settings that name an engine, or whose keys those at it are: who gives one wants no storage
/// here.
const NAMED: [&str; 2] = ["url", "unmarked"];

/// What of a tenant's settings is about the storage in this process.
pub const OF_STORAGE: [&str; 7] = [
    "sync",
    "cache",
    "block_cache",
    "write_buffers",
    "reserved_ios",
    "reserve.get",
    "reserve.put",
];

/// What of a tenant's settings is about a cluster.
pub const OF_CLUSTERS: [&str; 3] = ["partitions", READS, LAG];

/// The engine, if there is one; what contradicts that is reported.
pub(super) fn upstream(section: &Section, overrides: &Overrides) -> Option<UpstreamOptions> {
    let kind: Option<String> = section.get("kind");
    let timeout: Time = section.get_or_default("timeout");
    let unmarked: Option<String> = section.get("unmarked");
    let waiting: u32 = section.get_or_default("waiting");
    let given: Option<String> = section.get("url");
    let kind = kind.filter(|kind| kind != "rocksdb");
    if overrides.engine.is_none() && kind.is_none() {
        let what = "has no effect: engine.kind is \"rocksdb\", and data is kept here";
        let advice = "set engine.kind = \"redis\" or \"redis-cluster\", or leave it out";
        for key in NAMED.iter().filter(|key| section.gives(key)) {
            section.error(key, what, advice);
        }
        for key in ["timeout", "waiting"]
            .iter()
            .filter(|key| section.gives(key))
        {
            section.warn(key, what, advice);
        }
        return None;
    }
    for key in STORAGE.iter().filter(|key| section.gives(key)) {
        section.error(key, NOT_HERE, "leave it out");
    }
    let Some(url) = overrides.engine.clone().or(given) else {
        let kind = kind.unwrap_or_default();
        let what = format!("is missing: engine.kind is \"{kind}\"");
        section.error("url", &what, &format!("write url = \"{kind}://HOST:PORT\""));
        return None;
    };
    match of_url(&url, timeout.duration(), unmarked) {
        Ok(options) => {
            let said = kind.filter(|_| overrides.engine.is_none());
            if said.is_some_and(|kind| (kind == "redis-cluster") != options.cluster) {
                let what = "is of another kind than engine.kind says";
                let advice = "redis:// is for engine.kind = \"redis\", redis-cluster:// for \"redis-cluster\"";
                section.error("url", what, advice);
            }
            if options.cluster && options.unmarked.is_some() {
                let what =
                    "has no meaning before a cluster: which node has a key follows from its mark";
                section.error("unmarked", what, "leave it out");
            }
            Some(UpstreamOptions { waiting, ..options })
        }
        Err(why) => {
            let what = format!("is no address of an engine: {why}");
            let advice = "write redis://HOST:PORT, or redis://USER:PASSWORD@HOST:PORT; redis-cluster:// for a cluster";
            section.error("url", &what, advice);
            None
        }
    }
}

/// Reads `redis://[[USER]:PASSWORD@]HOST[:PORT][/0]`; for a cluster `redis-cluster://`, and several
/// of `HOST[:PORT]` with commas between.
///
/// # Errors
/// What is wrong.
pub fn of_url(
    url: &str,
    patience: Duration,
    unmarked: Option<String>,
) -> Result<UpstreamOptions, String> {
    let (scheme, rest) = url
        .split_once("://")
        .ok_or("it does not begin with redis://")?;
    let cluster = match scheme {
        "redis" | "valkey" => false,
        "redis-cluster" | "valkey-cluster" => true,
        "rediss" | "valkeys" => return Err("TLS to an engine is not possible yet".into()),
        _ => return Err(format!("{scheme} is no protocol that is spoken here")),
    };
    let (login, place) = match rest.rsplit_once('@') {
        Some((login, place)) => (Some(login), place),
        None => (None, rest),
    };
    let place = match place.split_once('/') {
        None | Some((_, "" | "0")) => place.split('/').next().unwrap_or_default(),
        Some(_) => return Err("tenants before an engine have its database 0".into()),
    };
    let (user, password) = match login.map(|login| login.split_once(':')) {
        None => (None, None),
        Some(Some((user, password))) => (
            Some(decoded(user)?).filter(|user| !user.is_empty()),
            Some(decoded(password)?),
        ),
        Some(None) => return Err("there is a user without a password".into()),
    };
    let places: Vec<&str> = match cluster {
        true => place.split(',').collect(),
        false => vec![place],
    };
    let addresses = places.into_iter().map(address);
    Ok(UpstreamOptions {
        addresses: addresses.collect::<Result<_, _>>()?,
        cluster,
        user,
        password,
        patience,
        unmarked,
        // Who serves says how many.
        waiting: 0,
        fronts: None,
    })
}

/// `HOST[:PORT]` with its port.
pub(super) fn address(place: &str) -> Result<String, String> {
    let bare = place.strip_prefix('[').and_then(|v6| v6.split_once(']'));
    let (host, port) = match (bare, place.rsplit_once(':')) {
        (Some((_, "")), _) | (None, None) => (place, None),
        (_, Some((host, port))) => (host, Some(port)),
        (Some(_), None) => (place, None),
    };
    let port = match port {
        None => PORT,
        Some(port) => port.parse().map_err(|_| format!("{port} is no port"))?,
    };
    if host.is_empty() || host.contains(',') {
        return Err("it names no host".into());
    }
    Ok(format!("{host}:{port}"))
}

/// `%xx` of a URL as what it stands for.
fn decoded(text: &str) -> Result<String, String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, behind @ ..] = rest {
        let hex = |digits: &[u8]| {
            let digits = std::str::from_utf8(digits.get(..2)?).ok()?;
            u8::from_str_radix(digits, 16).ok()
        };
        rest = match first {
            b'%' => {
                bytes.push(hex(behind).ok_or("% stands before two hexadecimal digits")?);
                &behind[2..]
            }
            byte => {
                bytes.push(*byte);
                behind
            }
        };
    }
    String::from_utf8(bytes).map_err(|_| "its login is not UTF-8".to_owned())
}

/// The least that the storage takes when nothing is stored.
pub(super) fn without_storage(engine: &mut Engine) {
    engine.object_cache = Bytes::new(1 << 20);
    engine.block_cache = Bytes::new(8 << 20);
    engine.write_buffers = Bytes::new(8 << 20);
}

/// What of the rest of the configuration contradicts that no data is kept here.
pub(super) fn check(config: &Config, reader: &Reader) {
    if !config.engine.upstream.as_ref().is_some_and(|it| it.cluster) {
        let what =
            "has no effect: engine.kind is not \"redis-cluster\", and all data is in one place";
        for (place, tenant) in config.tenants.iter().enumerate() {
            for key in OF_CLUSTERS.iter().filter(|key| tenant.settings.asks(key)) {
                let span = reader.place(&format!("tenant[{place}].{key}"));
                let mut report = reader.report.borrow_mut();
                report.error(span, key, what).advice("leave it out");
            }
        }
    }
    let Some(upstream) = &config.engine.upstream else {
        let what = "has no effect: engine.kind is \"rocksdb\", and no scripts are run here";
        let tenants = config.tenants.iter().enumerate();
        for (place, _) in tenants.filter(|(_, tenant)| tenant.settings.asks(SCRIPTS)) {
            let span = reader.place(&format!("tenant[{place}].{SCRIPTS}"));
            let mut report = reader.report.borrow_mut();
            report.error(span, SCRIPTS, what).advice("leave it out");
        }
        return;
    };
    let mut report = reader.report.borrow_mut();
    if let Some(name) = &upstream.unmarked {
        if !config.tenants.iter().any(|tenant| tenant.name == *name) {
            let what = format!("{name:?} is the name of no tenant of this file");
            report
                .error(reader.place("engine.unmarked"), "engine.unmarked", what)
                .advice("name the tenant whose keys are those that are there already");
        }
    }
    let what = NOT_HERE;
    for key in ["device", "scheduler.device"] {
        if let Some(span) = reader.place(key) {
            report
                .error(Some(span), key, what)
                .advice("leave it out: what the engine writes to the disk is not scheduled");
        }
    }
    for place in 0..config.tenants.len() {
        for key in OF_STORAGE {
            if let Some(span) = reader.place(&format!("tenant[{place}].{key}")) {
                report.error(Some(span), key, what).advice("leave it out");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(url: &str) -> Result<(String, Option<String>, Option<String>), String> {
        let options = of_url(url, Duration::from_secs(1), None)?;
        Ok((options.addresses.join(","), options.user, options.password))
    }

    #[test]
    fn a_url_says_where_the_engine_is_and_how_to_log_in() {
        let some = |text: &str| Some(text.to_owned());
        for (url, address, user, password) in [
            ("redis://host", "host:6379", None, None),
            ("redis://host:1/", "host:1", None, None),
            ("redis://host:1/0", "host:1", None, None),
            ("valkey://[::1]", "[::1]:6379", None, None),
            ("redis://[::1]:7", "[::1]:7", None, None),
            ("redis://:p%40ss@host", "host:6379", None, some("p@ss")),
            ("redis://u:a:b@c@host:2", "host:2", some("u"), some("a:b@c")),
            (
                "redis-cluster://:p@a,b:2,[::1]",
                "a:6379,b:2,[::1]:6379",
                None,
                some("p"),
            ),
        ] {
            assert_eq!(read(url), Ok((address.to_owned(), user, password)), "{url}");
        }
        for url in [
            "host:6379",
            "http://host",
            "rediss://host",
            "redis://",
            "redis://:1",
            "redis://host:x",
            "redis://host/3",
            "redis://a,b",
            "redis-cluster://a,",
            "redis://user@host",
            "redis://u:%zz@host",
        ] {
            assert!(read(url).is_err(), "{url}");
        }
    }
}
