//! Every key of a scenario, declared once: the reader takes types, ranges and defaults from here,
//! error texts and docs/reference/scenario.md are written from here.

use settings::schema::{key as declared, Key};
use settings::Otherwise::{self, Required, Unset, Value};
use settings::Takes::{
    self, ByteList, ByteRate, Bytes, Flag, Foreign, Integer, Number, NumberList, Path, Rate, Table,
    Tables, Text, Time, Word,
};
use settings::{tenant, Language, Takeover};

use super::misbehave::WAYS;
use crate::replay::STREAMS;
use crate::trace::meta::WORKLOADS;
use crate::trace::rate::SERIES;

/// Scenarios.
pub static LANGUAGE: Language = Language {
    parts: &[TOP, tenant::KEYS, LOAD, DRAWN, PHASE],
    alike: &[("tenant.load.phase", "tenant.load")],
};

const fn key(path: &'static str, takes: Takes, otherwise: Otherwise, effect: &'static str) -> Key {
    declared(path, takes, otherwise, Takeover::Start, effect)
}

const RATE: Takes = Rate("0/s", "100M/s");
/// The span of a run: longer ones belong to several.
const SPAN: Takes = Time("0s", "7d");
const SIZE: Takes = Bytes("1B", "64MiB");
const KEYS_OF_ONE: Takes = Integer(1, 100_000);
const SHARE: Takes = Number(0.0, 1e6);

/// The run and its tenants.
#[rustfmt::skip]
const TOP: &[Key] = &[
    key("name", Text("1 to 64 characters of A-Z a-z 0-9 _ . -, the first not a point"), Value("\"load\""), "What results call it."),
    key("about", Text("any text"), Value("\"\""), "One line on what it is for."),
    key("seed", Integer(0, i64::MAX as u64), Value("1"), "Fixes everything random: the same seed sends the same requests."),
    key("duration", Time("10ms", "7d"), Value("\"30s\""), "How long is measured."),
    key("warm_up", Time("0s", "1h"), Value("\"2s\""), "Run before it and not measured. All other times count from the end of the warm-up."),
    key("drain", Time("0s", "10min"), Value("\"5s\""), "How long the last replies are waited for; what has not come then has failed as `unanswered`."),
    key("threads", Integer(1, 64), Value("1"), "Threads of the load generator. Loads are dealt to them in turn, connections of closed loops evenly."),
    key("spin", Flag, Value("false"), "The threads never sleep: they look for replies and for what is due without end. A thread that slept takes its time to wake, which is then in the latencies of the load and in none of the server's. Each needs a processor to itself."),
    key("server", Foreign("a table in the language of `entremet.toml`, without `[[tenant]]`"), Unset("the server is as it is"), "Configuration of the server under test, for who starts one (`entremet experiment`). `entremet load` says that it leaves it alone."),
    key("tenant", Tables, Required, "Who asks. The keys below from `admin` on mean what they mean in `entremet.toml`; `entremet load` sends them to the server only with `--provision`."),
    key("tenant.name", Text("1 to 58 characters of A-Z a-z 0-9 _ . -, the first not a point"), Required, "Its name: its user at AUTH."),
    key("tenant.count", Integer(1, 10_000), Value("1"), "So many tenants alike: NAME-1, NAME-2, …; with 1 just NAME."),
    key("tenant.password", Text("1 to 512 characters"), Unset("`--password`, or one made up with `--provision`"), "Its password at AUTH."),
    key("tenant.tag", Text("0 to 64 printable characters without a space"), Value("\"\""), "Workload tag: `CLIENT SETNAME`, and a column of the report."),
];

/// A stream of requests.
#[rustfmt::skip]
const LOAD: &[Key] = &[
    key("tenant.load", Tables, Required, "A stream of requests; a tenant has one or several, all at once."),
    key("tenant.load.name", Text("1 to 64 characters of A-Z a-z 0-9 _ . -, the first not a point"), Unset("its number, from 1"), "What messages call it; with the tenant's name it fixes what is random."),
    key("tenant.load.from", SPAN, Unset("it is there from the warm-up on"), "When it joins."),
    key("tenant.load.until", SPAN, Unset("it stays to the end"), "When it leaves: it sends nothing more and closes its connections."),
    key("tenant.load.requests", Integer(1, 1_000_000_000_000), Unset("there is no end"), "What it sends in all. The run ends when every load that has this was answered in full, and at `duration` at the latest."),
    key("tenant.load.thread", Integer(0, 63), Unset("it is dealt to all threads"), "Which of the generator's `threads`, counted from 0, plays this load, all of it: one that keeps its thread busy then makes no other late."),
    key("tenant.load.loop", Word(&["open", "closed"]), Value("\"open\""), "`open` sends when `arrivals` say so, whether or not replies have come; latency counts from that time. `closed` keeps `connections` x `depth` requests outstanding; latency counts from sending."),
    key("tenant.load.arrivals", Word(&["poisson", "constant", "curve", "trace"]), Value("\"poisson\""), "Open loop: at random, evenly spaced, at random along a `curve`, or the requests of a `trace` at their own times."),
    key("tenant.load.rate", RATE, Unset("must be given for `poisson` and `constant`"), "Open loop: requests per second. 0/s pauses."),
    key("tenant.load.connections", Integer(0, 100_000), Value("8"), "Connections. 0 closes them all."),
    key("tenant.load.depth", Integer(1, 65_536), Value("1"), "Closed loop: requests sent at once on a connection, then all replies are awaited, as `redis-benchmark -P`."),
    key("tenant.load.outstanding", Integer(1, 1_000_000), Value("16384"), "Open loop: with so many unanswered on every connection, further requests are not sent and fail as `unsent`."),
    key("tenant.load.ttl", Time("1ms", "365d"), Unset("none"), "Time to live of what `put` stores."),
    key("tenant.load.ttl_together", Flag, Value("false"), "All that is put in one `ttl` expires at the same moment, the next multiple of `ttl`."),
    key("tenant.load.handshake", Word(&["full", "none", "partial"]), Value("\"full\""), "`none` leaves out AUTH, HELLO and the tag; `partial` sends half a command and then nothing."),
    key("tenant.load.reconnect_after", Integer(0, 1_000_000_000), Value("0"), "A connection is closed after so many replies and made anew; 0 keeps it."),
    key("tenant.load.read_rate", ByteRate("1B/s", "1TB/s"), Unset("as fast as replies come"), "Reads replies no faster than this on each connection."),
    key("tenant.load.misbehave", Word(WAYS), Unset("it behaves"), "A named way to misbehave: settings that hold where this table says nothing else. See below."),

    key("tenant.load.mix", Table, Unset("get = 1"), "What is asked, as weights."),
    key("tenant.load.mix.get", SHARE, Value("0"), "`GET`."),
    key("tenant.load.mix.put", SHARE, Value("0"), "`SET`, with `PX` if there is a `ttl`."),
    key("tenant.load.mix.multiget", SHARE, Value("0"), "`MGET` of as many keys as `multiget` says."),
    key("tenant.load.mix.range", SHARE, Value("0"), "`ENTREMET.RANGE` from a key on, of as many keys as `range` says."),
    key("tenant.load.mix.delete", SHARE, Value("0"), "`DEL` of one key."),
    key("tenant.load.mix.increment", SHARE, Value("0"), "`INCR` of a counter that belongs to the key."),
    key("tenant.load.mix.bitcount", SHARE, Value("0"), "`BITCOUNT` of a value: work in proportion to its size, and a short reply."),
    key("tenant.load.mix.ping", SHARE, Value("0"), "`PING`."),
    key("tenant.load.mix.invalid", SHARE, Value("0"), "Commands that fail, in turn: an unknown one, one without its arguments, one whose option is none, one whose number is none."),

    key("tenant.load.keys", Table, Unset("defaults"), "Which keys there are."),
    key("tenant.load.keys.count", Integer(1, 1_000_000_000), Value("10000"), "How many."),
    key("tenant.load.keys.bytes", Integer(16, 255), Value("16"), "Their length."),
    key("tenant.load.keys.space", Text("any text"), Value("\"\""), "Loads of one tenant with the same word here share their keys."),
    key("tenant.load.keys.preload", Flag, Value("true"), "Every key is stored before the run, so that reads find something."),

    key("tenant.load.popularity", Table, Unset("uniform"), "Which keys are asked for."),
    key("tenant.load.popularity.kind", Word(&["uniform", "zipf", "hotspot", "shifting", "sequential", "trace"]), Value("\"uniform\""), "All alike; Zipf's law; a few hot keys; Zipf's law whose hot keys move; one after the other, round and round; as measured."),
    key("tenant.load.popularity.alpha", Number(0.0, 5.0), Value("0.99"), "`zipf` and `shifting`: the exponent."),
    key("tenant.load.popularity.hot_keys", Integer(1, 1_000_000_000), Value("1"), "`hotspot`: how many keys are hot."),
    key("tenant.load.popularity.hot_share", Number(0.0, 1.0), Value("0.9"), "`hotspot`: the part of requests that goes to them."),
    key("tenant.load.popularity.every", Time("10ms", "7d"), Value("\"10s\""), "`shifting`: how long popularity stays as it is."),
    key("tenant.load.popularity.by", Number(0.000_001, 1.0), Value("0.1"), "`shifting`: by what part of the keys it then moves on."),
    key("tenant.load.popularity.trace", Word(WORKLOADS), Value("\"kvcache_reg\""), "`trace`: which of the workloads measured at Meta (kv-meta-cachelib)."),

    key("tenant.load.values", Table, Unset("defaults"), "How large values are. The size belongs to the key: it is the same whenever it is put."),
    key("tenant.load.values.kind", Word(&["constant", "uniform", "log-normal", "histogram"]), Value("\"constant\""), "The distribution."),
    key("tenant.load.values.size", SIZE, Value("\"1KiB\""), "`constant`: the size."),
    key("tenant.load.values.min", SIZE, Value("\"1B\""), "`uniform`, `log-normal`: no smaller than this."),
    key("tenant.load.values.max", SIZE, Value("\"1MiB\""), "`uniform`, `log-normal`: no larger than this."),
    key("tenant.load.values.mean", SIZE, Value("\"1KiB\""), "`log-normal`: the mean, not the median."),
    key("tenant.load.values.sigma", Number(0.0, 5.0), Value("0.5"), "`log-normal`: standard deviation of the logarithm."),
    key("tenant.load.values.trace", Word(WORKLOADS), Unset("`sizes`"), "`histogram`: sizes measured at Meta (kv-meta-cachelib)."),
    key("tenant.load.values.sizes", ByteList("1B", "64MiB"), Unset("`trace`"), "`histogram`: the sizes."),
    key("tenant.load.values.weights", NumberList(0.0, 1e12), Unset("all alike"), "`histogram`: how often each of `sizes` is met."),
];

/// Sizes of requests, and when they come.
#[rustfmt::skip]
const DRAWN: &[Key] = &[
    key("tenant.load.multiget", Table, Unset("defaults"), "Keys of a `multiget`."),
    key("tenant.load.multiget.kind", Word(&["constant", "uniform", "log-normal", "trace"]), Value("\"constant\""), "The distribution."),
    key("tenant.load.multiget.keys", KEYS_OF_ONE, Value("10"), "`constant`: how many."),
    key("tenant.load.multiget.min", KEYS_OF_ONE, Value("1"), "`uniform`, `log-normal`: no fewer than this."),
    key("tenant.load.multiget.max", KEYS_OF_ONE, Value("1000"), "`uniform`, `log-normal`: no more than this."),
    key("tenant.load.multiget.mean", Number(1.0, 100_000.0), Value("10"), "`log-normal`: the mean, not the median."),
    key("tenant.load.multiget.sigma", Number(0.0, 5.0), Value("1"), "`log-normal`: standard deviation of the logarithm."),
    key("tenant.load.multiget.trace", Word(&["kosarak", "mooncake"]), Value("\"kosarak\""), "`trace`: the sizes of a real one's requests."),

    key("tenant.load.range", Table, Unset("defaults"), "Keys of a `range`."),
    key("tenant.load.range.kind", Word(&["constant", "uniform", "log-normal"]), Value("\"constant\""), "The distribution."),
    key("tenant.load.range.keys", KEYS_OF_ONE, Value("100"), "`constant`: how many."),
    key("tenant.load.range.min", KEYS_OF_ONE, Value("1"), "`uniform`, `log-normal`: no fewer than this."),
    key("tenant.load.range.max", KEYS_OF_ONE, Value("1000"), "`uniform`, `log-normal`: no more than this."),
    key("tenant.load.range.mean", Number(1.0, 100_000.0), Value("100"), "`log-normal`: the mean, not the median."),
    key("tenant.load.range.sigma", Number(0.0, 5.0), Value("1"), "`log-normal`: standard deviation of the logarithm."),
    key("tenant.load.range.values", Flag, Value("true"), "Their values are asked for too."),

    key("tenant.load.curve", Table, Unset("must be given for `arrivals = \"curve\"`"), "A rate that changes with time, and begins again at its end. In the warm-up the rate is that of time 0."),
    key("tenant.load.curve.trace", Word(SERIES), Unset("`file`"), "A real one."),
    key("tenant.load.curve.file", Path, Unset("`trace`"), "A text file, perhaps gzip'd: a line for each step with its requests per second; the first line may be a heading."),
    key("tenant.load.curve.step", Time("1ms", "365d"), Value("\"1s\""), "`file`: how long a line holds."),
    key("tenant.load.curve.from", Time("0s", "365d"), Value("\"0s\""), "Where in the curve the run begins, in the curve's own time."),
    key("tenant.load.curve.speed_up", Number(0.001, 1e7), Value("1"), "How many times faster its time passes. Its height stays."),
    key("tenant.load.curve.mean", RATE, Unset("as measured"), "Scales it so that its mean, over the part that the run covers, is this."),
    key("tenant.load.curve.peak", RATE, Unset("as measured"), "Scales it so that its highest step, in the part that the run covers, is this."),

    key("tenant.load.spike", Table, Unset("none"), "A crowd: multiplies the rate of `poisson`, `constant` or `curve` for a while."),
    key("tenant.load.spike.at", SPAN, Required, "When it begins."),
    key("tenant.load.spike.length", Time("1ms", "7d"), Required, "How long it lasts."),
    key("tenant.load.spike.times", Number(0.0, 1e6), Value("10"), "By what it multiplies the rate."),
    key("tenant.load.spike.every", Time("1ms", "7d"), Unset("it comes once"), "When it comes again, from beginning to beginning."),

    key("tenant.load.trace", Table, Unset("must be given for `arrivals = \"trace\"`"), "Requests of a real trace: they bring their own mix, keys and sizes (`entremet load --help` describes them)."),
    key("tenant.load.trace.name", Word(STREAMS), Required, "Which one."),
    key("tenant.load.trace.speed_up", Number(0.001, 1e7), Value("1"), "How many times faster its time passes: with arrival times (mooncake, meta) requests come so many times as often, rate curves keep their height."),
    key("tenant.load.trace.rate_scale", Number(0.000_001, 1e6), Value("1"), "Multiplies the rate of those that have a rate curve."),
];

/// What changes while it runs.
#[rustfmt::skip]
const PHASE: &[Key] = &[
    key("tenant.load.phase", Tables, Unset("none"), "From `at` until the next phase, these settings hold instead of those of `[[tenant.load]]`: any of its keys but `name`, `from`, `until`, `thread` and `requests`, each as a whole. A phase builds on the load, not on the phase before: one with `at` alone is the load as it began."),
    key("tenant.load.phase.at", SPAN, Required, "When it begins."),
];
