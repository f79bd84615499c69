//! What a tenant was promised, as `entremet.toml` says it, for whoever keeps it.
//!
//! The load client measures; keeping promises is the work of the server, or of the simulator. So it only hands them on.

use policy::dispatch::Limit;
use policy::words::Words;
use policy::Promise;
use settings::promise::Terms;
use settings::units::{ByteRate, Bytes, Rate};

/// For the simulator: the same as a server makes of the same keys.
#[must_use]
pub fn promise(terms: &Terms) -> Promise {
    let (reserve, limit) = (&terms.reserve, &terms.limit);
    Promise {
        weight: terms.weight,
        reserved_permits: terms.reserved_permits,
        reserved_per_s: [reserve.get, reserve.put].map(|rate| rate.map_or(0.0, Rate::per_s)),
        limit: Limit {
            requests_per_s: limit.requests.map(Rate::per_s),
            bytes_per_s: limit.bytes.map(ByteRate::per_s),
            burst_ns: limit.burst.ns(),
            max_wait_ns: limit.max_wait.ns(),
        },
        contract_per_s: terms.contract.map(Rate::per_s),
    }
}

/// For a server that runs: the words of `ENTREMET TENANT SET name …`, and the keys given that the command has no option
/// for. What is not given is left as it is there.
#[must_use]
pub fn options(terms: &Terms) -> (Vec<String>, Vec<&'static str>) {
    let rate = |rate: Option<Rate>| rate.map(|rate| rate.per_s().to_string());
    let bytes = |bytes: Option<Bytes>| bytes.map(|bytes| bytes.get().to_string());
    let given = |path: &str, word: String| terms.gives(path).then_some(word);
    let limit_bytes = terms.limit.bytes.map(|rate| rate.per_s().to_string());
    let options = [
        ("WEIGHT", given("weight", terms.weight.to_string())),
        (
            "RESERVED-PERMITS",
            given("reserved_permits", terms.reserved_permits.to_string()),
        ),
        ("RESERVE-GET", rate(terms.reserve.get)),
        ("RESERVE-PUT", rate(terms.reserve.put)),
        ("LIMIT-REQUESTS", rate(terms.limit.requests)),
        ("LIMIT-BYTES", limit_bytes),
        ("CONTRACT", rate(terms.contract)),
        ("CACHE", bytes(terms.cache)),
        ("BLOCK-CACHE", bytes(terms.block_cache)),
        ("WRITE-BUFFERS", bytes(terms.write_buffers)),
        ("SYNC", given("sync", terms.sync.word().into())),
    ];
    let words = options
        .into_iter()
        .filter_map(|(option, word)| Some([option.to_string(), word?]));
    let left = ["limit.burst", "limit.max_wait", "slo"];
    let left = left.into_iter().filter(|path| terms.gives(path));
    (words.flatten().collect(), left.collect())
}
