//! What a tenant was promised, as `entremet.toml` says it.

use policy::dispatch::{Allocation, Limit};
use settings::units::{ByteRate, Rate, Time};
use settings::{Section, Value};

/// The keys of a `[[tenant]]` of `entremet.toml` that a scenario gives, as they were written.
///
/// The load client measures; keeping promises is the server's work. So it only hands them on: to a configuration that
/// somebody writes (`table`), to `ENTREMET TENANT SET` with `--provision`, or to the simulator (`allocation`).
#[derive(Clone, Debug, PartialEq)]
pub struct Promise {
    /// Its weight; 1 where the scenario says nothing.
    pub weight: f64,
    /// Its share, permits and rates; where the scenario says nothing, as on a server whose configuration says nothing.
    pub allocation: Allocation,
    /// Exactly the keys that were given (`weight`, `sync`, `cache`, `block_cache`, `write_buffers`, `reserved_permits`,
    /// `contract`, `reserve`, `limit`, `slo`), ready to be put into a `[[tenant]]` table.
    pub table: toml::Table,
}

impl Promise {
    /// REQUIRES: `written` is the tenant's table in the text that `section` reads.
    pub(super) fn read(section: &Section, written: Option<&toml::Table>) -> Self {
        check(section);
        let allocation = allocation(section);
        let given = |key: &str| Some((key.to_string(), written?.get(key)?.clone()));
        let names = settings::promise::KEYS
            .iter()
            .filter(|key| key.section() == "tenant");
        Self {
            weight: allocation.weight,
            allocation,
            table: names.filter_map(|key| given(key.name())).collect(),
        }
    }

    /// The words of `ENTREMET TENANT SET name …`, and the keys that the command has no option for.
    pub fn options(&self) -> (Vec<String>, Vec<&'static str>) {
        let mut words = Vec::new();
        let mut add = |option: &str, path: &[&str], show: fn(&toml::Value) -> Option<String>| {
            let mut value = self.table.get(path[0]);
            for name in &path[1..] {
                value = value.and_then(|table| table.get(name));
            }
            if let Some(word) = value.and_then(show) {
                words.extend([option.to_string(), word]);
            }
        };
        add("WEIGHT", &["weight"], number);
        add("RESERVED-PERMITS", &["reserved_permits"], number);
        add("RESERVE-GET", &["reserve", "get"], rate);
        add("RESERVE-PUT", &["reserve", "put"], rate);
        add("LIMIT-REQUESTS", &["limit", "requests"], rate);
        add("LIMIT-BYTES", &["limit", "bytes"], |value| {
            let rate: settings::units::ByteRate = value.as_str()?.parse().ok()?;
            Some(rate.per_s().to_string())
        });
        add("CONTRACT", &["contract"], rate);
        add("CACHE", &["cache"], bytes);
        add("BLOCK-CACHE", &["block_cache"], bytes);
        add("WRITE-BUFFERS", &["write_buffers"], bytes);
        add("SYNC", &["sync"], |value| match value.as_str()? {
            "every 1s" => Some("EVERYSEC".into()),
            word => Some(word.to_ascii_uppercase()),
        });
        let mut left = Vec::new();
        let limit = self.table.get("limit");
        for (key, name) in [("limit.burst", "burst"), ("limit.max_wait", "max_wait")] {
            if limit.is_some_and(|limit| limit.get(name).is_some()) {
                left.push(key);
            }
        }
        if self.table.contains_key("slo") {
            left.push("slo");
        }
        (words, left)
    }
}

fn number(value: &toml::Value) -> Option<String> {
    match value {
        toml::Value::Integer(n) => Some(n.to_string()),
        toml::Value::Float(n) => Some(n.to_string()),
        _ => None,
    }
}

fn rate(value: &toml::Value) -> Option<String> {
    let rate: Rate = value.as_str()?.parse().ok()?;
    Some(rate.per_s().to_string())
}

fn bytes(value: &toml::Value) -> Option<String> {
    let bytes: settings::units::Bytes = value.as_str()?.parse().ok()?;
    Some(bytes.get().to_string())
}

fn allocation(section: &Section) -> Allocation {
    let reserve = section.table("reserve");
    let per_s = |section: &Section, name: &str| section.get(name).map(Rate::per_s);
    let reserved = [per_s(&reserve, "get"), per_s(&reserve, "put")];
    let limit = section.table("limit");
    let bytes: Option<ByteRate> = limit.get("bytes");
    let ns = |name: &str| limit.get_or_default::<Time>(name).ns();
    Allocation {
        weight: section.get_or_default("weight"),
        reserved_permits: section.get_or_default("reserved_permits"),
        reservation_per_s: match reserved {
            [None, None] => None,
            [get, put] => Some(get.unwrap_or(0.0) + put.unwrap_or(0.0)),
        },
        limit: Limit {
            requests_per_s: per_s(&limit, "requests"),
            bytes_per_s: bytes.map(ByteRate::per_s),
            burst_ns: ns("burst"),
            max_wait_ns: ns("max_wait"),
        },
        contract_per_s: per_s(section, "contract"),
    }
}

/// Reads every other key for the sake of what is wrong with it.
fn check(section: &Section) {
    use settings::units::Bytes;
    ask::<String>(section, &["sync"]);
    ask::<Bytes>(section, &["cache", "block_cache", "write_buffers"]);
    for slo in section.tables("slo", |_, place| format!("slo number {}", place + 1)) {
        ask::<String>(&slo, &["class"]);
        ask::<Rate>(&slo, &["throughput", "contract"]);
        ask::<u32>(&slo, &["importance"]);
        let latency = slo.table("latency");
        ask::<f64>(&latency, &["p"]);
        ask::<Time>(&latency, &["at_most"]);
    }
}

fn ask<T: Value>(section: &Section, names: &[&str]) {
    for name in names {
        let _: Option<T> = section.get(name);
    }
}
