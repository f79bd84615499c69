//! `engine.kind = "redis"` or `"redis-cluster"`: the data is kept by a Redis or Valkey, or by a
//! cluster of them, and this server stands before it.

use std::path::PathBuf;

use rustls::pki_types::ServerName;
use settings::tenant::{LAG, READS, SCRIPTS};
use settings::units::{Bytes, Time};
use settings::{Reader, Section};

use super::{Config, Engine, EngineTls, EngineUrl, KeyPair, Overrides, TrustFiles, Upstream};

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
const NAMED: [&str; 3] = ["url", "unmarked", "tls"];

/// What of a tenant's settings is about the storage in this process.
pub const OF_STORAGE: [&str; 5] = [
    "sync",
    "cache",
    "block_cache",
    "write_buffers",
    "reserved_ios",
];

/// What of a tenant's settings is about a cluster.
pub const OF_CLUSTERS: [&str; 3] = ["partitions", READS, LAG];

/// The engine, if there is one; what contradicts that is reported.
pub(super) fn upstream(section: &Section, overrides: &Overrides) -> Option<Upstream> {
    let kind: Option<String> = section.get("kind");
    let timeout: Time = section.get_or_default("timeout");
    let unmarked: Option<String> = section.get("unmarked");
    let waiting: u32 = section.get_or_default("waiting");
    let given: Option<String> = section.get("url");
    let tls = tls(&section.table("tls"));
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
    let url = match url.parse::<EngineUrl>() {
        Ok(url) => url,
        Err(why) => {
            let what = format!("is no address of an engine: {why}");
            let advice = "write redis://HOST:PORT, or redis://USER:PASSWORD@HOST:PORT; redis-cluster:// for a cluster; rediss:// or rediss-cluster:// for TLS";
            section.error("url", &what, advice);
            return None;
        }
    };
    let said = kind.filter(|_| overrides.engine.is_none());
    if said.is_some_and(|kind| (kind == "redis-cluster") != url.cluster) {
        let what = "is of another kind than engine.kind says";
        let advice =
            "redis:// is for engine.kind = \"redis\", redis-cluster:// for \"redis-cluster\"";
        section.error("url", what, advice);
    }
    if url.cluster && unmarked.is_some() {
        let what = "has no meaning before a cluster: which node has a key follows from its mark";
        section.error("unmarked", what, "leave it out");
    }
    as_asked(section, &url);
    Some(Upstream {
        url,
        tls,
        timeout,
        unmarked,
        waiting,
    })
}

/// Reports TLS that the URL asks for and nothing is said of, and the other way round.
fn as_asked(section: &Section, url: &EngineUrl) {
    match (url.tls, section.gives("tls")) {
        (true, false) => {
            let advice = "add [engine.tls] with ca = the file of the certificates of those who may sign the engine's";
            section.error("tls", "is missing: the engine's URL asks for TLS", advice);
        }
        (false, true) => {
            let what = "has no effect: the engine's URL does not ask for TLS";
            let advice = "write rediss:// or rediss-cluster:// in the URL, or leave it out";
            section.error("tls", what, advice);
        }
        _ => {}
    }
}

/// How TLS is spoken to it, if that is said; what is wrong is reported.
fn tls(section: &Section) -> Option<EngineTls> {
    let (ca, name): (Option<PathBuf>, Option<String>) = (section.get("ca"), section.get("name"));
    let (cert, key): (Option<PathBuf>, Option<PathBuf>) = (section.get("cert"), section.get("key"));
    let name = name.and_then(|name| {
        let read = ServerName::try_from(name);
        if read.is_err() {
            section.error("name", "is neither a name nor an address", "write HOST");
        }
        read.ok()
    });
    if cert.is_some() != key.is_some() {
        let missing = if cert.is_none() { "cert" } else { "key" };
        let what = "is missing beside the other of the two";
        section.error(missing, what, "name both cert and key, or neither");
    }
    let own = cert.zip(key).map(|(cert, key)| KeyPair { cert, key });
    let files = TrustFiles { ca: ca?, own };
    Some(EngineTls { files, name })
}

/// The least that the storage takes when nothing is stored.
pub(super) fn without_storage(engine: &mut Engine) {
    engine.object_cache = Bytes::new(1 << 20);
    engine.block_cache = Bytes::new(8 << 20);
    engine.write_buffers = Bytes::new(8 << 20);
}

/// What of the rest of the configuration contradicts that no data is kept here.
pub(super) fn check(config: &Config, reader: &Reader) {
    let cluster = |it: &Upstream| it.url.cluster;
    if !config.engine.upstream.as_ref().is_some_and(cluster) {
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
