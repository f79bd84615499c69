//! What a tenant is promised: the keys of `[[tenant]]` that the server's configuration and scenarios share, and their one
//! reader.

use crate::schema::Otherwise::{Required, Unset, Value};
use crate::schema::Takeover::{NotYet, Reload};
use crate::schema::Takes::{
    self, ByteRate, Bytes, Integer, Number, Rate, Table, Tables, Time, Word,
};
use crate::schema::{choices, key, Key};
use crate::units;
use crate::Section;
use policy::Durability;

const RATE: Takes = Rate("1/h", "100M/s");

/// The keys, in the order of the reference.
#[rustfmt::skip]
pub const KEYS: &[Key] = &[
    key("tenant.weight", Number(0.001, 1_000.0), Value("1"), Reload, "Its share is its weight's part of the weights of all tenants that want something."),
    key("tenant.sync", choices::<Durability>(), Value("\"every 1s\""), Reload, "When a write is safe from a power cut."),
    key("tenant.cache", Bytes("0B", "64TiB"), Unset("by weight, of what the others leave"), Reload, "Its allotment of the object cache: what it leaves is lent, and its own again within about a second. With 0B it has none, lent or not."),
    key("tenant.block_cache", Bytes("0B", "64TiB"), Unset("by weight, of what the others leave"), Reload, "Its allotment of the block cache: what it leaves is lent, and its own again within about a second."),
    key("tenant.write_buffers", Bytes("0B", "64TiB"), Unset("by weight, of what the others leave"), Reload, "Its allotment of the write buffers, lent likewise."),
    key("tenant.reserved_permits", Integer(0, 1_024), Value("0"), Reload, "Handler threads kept free for it; more shorten its waits, and idle while it wants nothing."),
    key("tenant.contract", RATE, Unset("all it offers"), Reload, "Offered rate up to which its promises hold; beyond it is served best effort."),
    key("tenant.reserve", Table, Unset("none"), Reload, "Rates promised whatever the others want, normalised to 1 KiB a request."),
    key("tenant.reserve.get", RATE, Unset("none"), Reload, "Reads promised."),
    key("tenant.reserve.put", RATE, Unset("none"), Reload, "Writes promised."),
    key("tenant.limit", Table, Unset("none"), Reload, "Rates not exceeded even on an idle server."),
    key("tenant.limit.requests", RATE, Unset("none"), Reload, "Requests served at most."),
    key("tenant.limit.bytes", ByteRate("1kB/s", "1TB/s"), Unset("none"), Reload, "Bytes of requests and replies together at most."),
    key("tenant.limit.burst", Time("1ms", "1min"), Value("\"100ms\""), Reload, "After a pause, so much time's worth of the limit may come at once."),
    key("tenant.limit.max_wait", Time("0s", "1min"), Value("\"100ms\""), Reload, "A request that would have to wait longer for a limit is answered -THROTTLED."),
    key("tenant.slo", Tables, Unset("none"), NotYet, "What a class of requests should get. Recorded and shown; no controller enforces it yet."),
    key("tenant.slo.class", Word(&["get", "put", "multiget", "scan"]), Required, NotYet, "The class of requests."),
    key("tenant.slo.latency", Table, Unset("none"), NotYet, "A latency target."),
    key("tenant.slo.latency.p", Number(1.0, 99.999), Value("99.0"), NotYet, "The percentile meant."),
    key("tenant.slo.latency.at_most", Time("1us", "1h"), Required, NotYet, "What that percentile should not exceed."),
    key("tenant.slo.throughput", RATE, Unset("none"), NotYet, "A rate that should be served."),
    key("tenant.slo.contract", RATE, Unset("all it offers"), NotYet, "Offered rate of the class up to which the target holds."),
    key("tenant.slo.importance", Integer(1, 100), Value("50"), NotYet, "Who gives way when not all targets can be met; 100 last."),
];

/// What a text says of a tenant; defaults where it says nothing.
#[derive(Clone, Debug, PartialEq)]
pub struct Terms {
    /// Its weight.
    pub weight: f64,
    /// When a write is safe.
    pub sync: Durability,
    /// Its allotment of the object cache; none: by weight, of what the others leave.
    pub cache: Option<units::Bytes>,
    /// Its allotment of the block cache; none: by weight, of what the others leave.
    pub block_cache: Option<units::Bytes>,
    /// Its allotment of the write buffers; none: by weight, of what the others leave.
    pub write_buffers: Option<units::Bytes>,
    /// Handler threads kept free for it.
    pub reserved_permits: u32,
    /// Offered rate up to which its promises hold.
    pub contract: Option<units::Rate>,
    /// Rates promised.
    pub reserve: Reserve,
    /// Rates not exceeded.
    pub limit: Limit,
    /// What classes of requests should get: recorded only.
    pub slos: Vec<Slo>,
    /// The keys that the text gives itself, without `tenant.`, in the order of [`KEYS`].
    pub given: Vec<&'static str>,
}

/// `tenant.reserve`: normalised to 1 KiB a request.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Reserve {
    /// Reads.
    pub get: Option<units::Rate>,
    /// Writes.
    pub put: Option<units::Rate>,
}

/// `tenant.limit`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limit {
    /// Requests.
    pub requests: Option<units::Rate>,
    /// Bytes, in and out together.
    pub bytes: Option<units::ByteRate>,
    /// After a pause so much time's worth may come at once.
    pub burst: units::Time,
    /// Longest wait before -THROTTLED.
    pub max_wait: units::Time,
}

/// `[[tenant.slo]]`: recorded only.
#[derive(Clone, Debug, PartialEq)]
pub struct Slo {
    /// The word for the class of requests.
    pub class: String,
    /// Percentile and what it should not exceed.
    pub latency: Option<(f64, units::Time)>,
    /// Rate that should be served.
    pub throughput: Option<units::Rate>,
    /// Offered rate up to which it holds.
    pub contract: Option<units::Rate>,
    /// 1 to 100.
    pub importance: u32,
}

impl Terms {
    /// Reads a tenant's table. What is wrong is reported, and stands for its default or for nothing; none where that is no
    /// terms at all, because an SLO is wrong.
    pub fn read(tenant: &Section) -> Option<Self> {
        let (reserve, limit) = (tenant.table("reserve"), tenant.table("limit"));
        let slos = slos(tenant);
        let gives = |path: &str| match path.split_once('.') {
            None => tenant.gives(path),
            Some(("reserve", name)) => reserve.gives(name),
            Some(("limit", name)) => limit.gives(name),
            Some(_) => false,
        };
        let paths = KEYS
            .iter()
            .filter_map(|key| key.path.strip_prefix("tenant."));
        let terms = Self {
            weight: tenant.get_or_default("weight"),
            sync: tenant.get_or_default("sync"),
            cache: tenant.get("cache"),
            block_cache: tenant.get("block_cache"),
            write_buffers: tenant.get("write_buffers"),
            reserved_permits: tenant.get_or_default("reserved_permits"),
            contract: tenant.get("contract"),
            reserve: Reserve {
                get: reserve.get("get"),
                put: reserve.get("put"),
            },
            limit: Limit {
                requests: limit.get("requests"),
                bytes: limit.get("bytes"),
                burst: limit.get_or_default("burst"),
                max_wait: limit.get_or_default("max_wait"),
            },
            given: paths.filter(|path| gives(path)).collect(),
            slos: slos.into_iter().collect::<Option<_>>()?,
        };
        Some(terms)
    }

    /// Whether the text gives the key itself; `path` is without `tenant.`.
    #[must_use]
    pub fn gives(&self, path: &str) -> bool {
        self.given.contains(&path)
    }
}

/// One for each table of the list; none for what is wrong.
fn slos(tenant: &Section) -> Vec<Option<Slo>> {
    let titled = |slo: &Section, place: usize| match slo.raw_text("class") {
        Some(class) => format!("slo {class:?}"),
        None => format!("slo number {}", place + 1),
    };
    let slos = tenant.tables("slo", titled);
    if !slos.is_empty() {
        let what = "SLOs are recorded and shown but not yet enforced: there is no controller in this version";
        let advice = "keep promises with weight, reserve and reserved_permits until then";
        tenant.warn("slo", what, advice);
    }
    slos.iter().map(slo).collect()
}

fn slo(section: &Section) -> Option<Slo> {
    let latency = section.table("latency");
    let (percentile, at_most) = (latency.get("p"), latency.get("at_most"));
    if !latency.present() && !section.gives("throughput") {
        let advice = "add latency = { p = 99.0, at_most = \"20ms\" } or throughput = \"40/s\"";
        section.error("class", "promises nothing", advice);
    }
    let (class, throughput) = (section.get("class"), section.get("throughput"));
    let (contract, importance) = (
        section.get("contract"),
        section.get_or_default("importance"),
    );
    let latency = match latency.present() {
        true => Some((percentile?, at_most?)),
        false => None,
    };
    Some(Slo {
        class: class?,
        latency,
        throughput,
        contract,
        importance,
    })
}
