//! What a tenant is promised: the keys of `[[tenant]]` that the server's configuration and scenarios share.

use crate::schema::Otherwise::{Required, Unset, Value};
use crate::schema::Takeover::{NotYet, Reload};
use crate::schema::Takes::{
    self, ByteRate, Bytes, Integer, Number, Rate, Table, Tables, Time, Word,
};
use crate::schema::{key, Key};

const RATE: Takes = Rate("1/h", "100M/s");

/// The keys, in the order of the reference.
#[rustfmt::skip]
pub const KEYS: &[Key] = &[
    key("tenant.weight", Number(0.001, 1_000.0), Value("1"), Reload, "Its share is its weight's part of the weights of all tenants that want something."),
    key("tenant.sync", Word(&["always", "every 1s", "never"]), Value("\"every 1s\""), Reload, "When a write is safe from a power cut: before its reply, within a second, or when the system writes it."),
    key("tenant.cache", Bytes("0B", "64TiB"), Unset("by weight, of what the others leave"), Reload, "Its allotment of the object cache."),
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
