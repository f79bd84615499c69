//! The table of settings: one row for each field of [`Settings`].

use policy::{Durability, Reads};

use super::held::{self, Held, Shown};
use super::{lists, Settings};
use crate::schema::Otherwise::{Required, Unset, Value};
use crate::schema::Takeover::{Reload, Start};
use crate::schema::Takes::{
    self, ByteRate, Bytes, Flag, Integer, Number, Rate, Table, Tables, Time,
};
use crate::schema::{choices, key, Key};
use crate::{Otherwise, Section};

/// One setting of a tenant.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// Its key in the file: type, range, default, what it does.
    pub key: Key,
    /// As the data directory keeps it: the path of its field.
    pub stored: &'static str,
    /// What `entremet check` says of it where it is set, with `{}` for the value. Empty: nothing,
    /// or of a word its meaning.
    sentence: &'static str,
    held: fn(&Settings) -> &dyn Held,
    held_mut: fn(&mut Settings) -> &mut dyn Held,
}

const fn row(key: Key, sentence: &'static str, field: Field) -> Setting {
    Setting {
        key,
        stored: field.0,
        sentence,
        held: field.1,
        held_mut: field.2,
    }
}

type Field = (
    &'static str,
    fn(&Settings) -> &dyn Held,
    fn(&mut Settings) -> &mut dyn Held,
);

/// A field of [`Settings`].
macro_rules! at {
    ($field:ident) => {
        (stringify!($field), |s| &s.$field, |s| &mut s.$field)
    };
    ($table:ident.$field:ident) => {
        (
            concat!(stringify!($table), ".", stringify!($field)),
            |s| &s.$table.$field,
            |s| &mut s.$table.$field,
        )
    };
}

/// The settings about reads from replicas: the bound is said where they are allowed.
pub const READS: &str = "reads";
/// How far behind replicas may be.
pub const LAG: &str = "replica_lag_max";
/// The setting about scripts: without an engine behind the server it has no effect.
pub const SCRIPTS: &str = "scripts";

const RATE: Takes = Rate("1/h", "100M/s");
const MEMORY: Takes = Bytes("0B", "64TiB");
const BY_WEIGHT: Otherwise = Unset("by weight, of what the others leave");

/// Every setting, in the order of the reference.
#[rustfmt::skip]
pub const SETTINGS: &[Setting] = &[
    row(key("tenant.admin", Flag, Value("false"), Reload, "Whether it may administer the server: tenants, settings, SHUTDOWN. If the file names no tenant, \"default\" may."),
        "It may administer the server.", at!(admin)),
    row(key("tenant.max_connections", Integer(1, 1_000_000), Unset("what is not kept for others of server.max_connections"), Reload, "The most connections that it may have."),
        "It may have {} connections.", at!(connections_max)),
    row(key("tenant.request_memory", Bytes("1MiB", "64TiB"), Unset("its part by weight, and what it may be lent"), Reload, "The most memory that its requests, queued transactions and replies may hold."),
        "Its requests and replies may hold {}.", at!(request_bytes)),
    row(key("tenant.weight", Number(0.001, 1_000.0), Value("1"), Reload, "Its share is its weight divided by the weights of all tenants that want something."),
        "", at!(weight)),
    row(key("tenant.partitions", Integer(1, 256), Value("1"), Start, "Before a Redis Cluster: of how many parts its data is made, each of which lies on one node. It is fixed when the tenant is made. With 1, all its commands work as at a single server; with more, what takes several keys is as in Redis Cluster ([how](../guide/cluster.md))."),
        "Its data has {} partitions.", at!(partitions)),
    row(key("tenant.reads", choices::<Reads>(), Value("\"master\""), Reload, "Before a Redis Cluster: where commands go that only read. From replicas they may be stale ([how](../guide/cluster.md#reads-from-replicas))."),
        "", at!(reads)),
    row(key("tenant.replica_lag_max", Time("500ms", "1min"), Value("\"1s\""), Reload, "With reads = \"replica\": a read sees every write that was answered longer than this before it. A replica that is not known to be so near is not asked, its master is."),
        "Reads see every write that was answered longer than {} before them.", at!(replica_lag_ns_max)),
    row(key("tenant.scripts", Flag, Value("false"), Reload, "Before an engine: whether it may run scripts (`EVAL`, `EVALSHA`, …). They reach its own keys only. But a script that writes and does not end stops the engine for all tenants, and only who ends the engine ends it ([more](../guide/front.md#scripts))."),
        "It may run scripts, which can stop the engine for everybody.", at!(scripts)),
    row(key("tenant.sync", choices::<Durability>(), Value("\"every 1s\""), Reload, "When a write is safe from a power cut."),
        "", at!(durability)),
    row(key("tenant.cache", MEMORY, BY_WEIGHT, Reload, "Its part of the object cache. What it does not use is lent to others, and comes back within about a second. With 0B it has none and is lent none."),
        "Its part of the object cache is {}.", at!(cache_bytes)),
    row(key("tenant.block_cache", MEMORY, BY_WEIGHT, Reload, "Its part of the block cache. What it does not use is lent to others, and comes back within about a second."),
        "Its part of the block cache is {}.", at!(block_cache_bytes)),
    row(key("tenant.write_buffers", MEMORY, BY_WEIGHT, Reload, "Its part of the write buffers, lent in the same way."),
        "Its part of the write buffers is {}.", at!(write_buffer_bytes)),
    row(key("tenant.reserved_permits", Integer(0, 1_024), Value("0"), Reload, "Handler threads that are kept free for it. More of them shorten its waits. They idle while it wants nothing. Before an engine: so many of its requests may be out at each node, of each front, beside what all may have out there."),
        "Handlers kept free for it: {}.", at!(reserved_permits)),
    row(key("tenant.reserved_ios", Integer(0, 1_024), Value("0"), Reload, "I/Os at the device kept free for its requests, of all disks together; while it has none, so many permits of the device idle."),
        "I/Os at the device kept free for it: {}.", at!(reserved_ios)),
    row(key("tenant.contract", RATE, Unset("all it offers"), Reload, "The rate of requests up to which its promises hold. If it asks for more, it is served as well as is possible."),
        "Promises hold while it offers at most {}; beyond, best effort.", at!(contract_per_s)),
    row(key("tenant.reserve.get", RATE, Unset("none"), Reload, "Reads that it is promised. Before an engine they go before shares; of several fronts it is one rate of all."),
        "Promised whatever the others want: {} reads of 1 KiB.", at!(reserve_get_per_s)),
    row(key("tenant.reserve.put", RATE, Unset("none"), Reload, "Writes that it is promised, likewise."),
        "Promised whatever the others want: {} writes of 1 KiB.", at!(reserve_put_per_s)),
    row(key("tenant.limit.requests", RATE, Unset("none"), Reload, "The most requests that it is served."),
        "Never more than {} requests.", at!(limit.requests_per_s)),
    row(key("tenant.limit.bytes", ByteRate("1kB/s", "1TB/s"), Unset("none"), Reload, "The most bytes of requests and replies together."),
        "Never more than {} in and out.", at!(limit.bytes_per_s)),
    row(key("tenant.limit.burst", Time("1ms", "1min"), Value("\"100ms\""), Reload, "After a pause, it may use this much time's worth of the limit at once."),
        "After a pause, {} of that may come at once.", at!(limit.burst_ns)),
    row(key("tenant.limit.max_wait", Time("0s", "1min"), Value("\"100ms\""), Reload, "A request that would have to wait longer than this for a limit is answered -THROTTLED. Those of up to 1 KiB about the connection itself or the map of a cluster (`HELLO`, `AUTH`, `PING`, `CLUSTER SLOTS`, …) never are, so that clients can connect."),
        "A request that would wait longer than {} for that is answered -THROTTLED.", at!(limit.wait_ns_max)),
    row(key("tenant.workload", Tables, Unset("none"), Reload, "Connections that are used for one thing, by what they call themselves: each workload has a queue of its own, so that a batch job and interactive requests of one tenant do not wait behind each other."),
        "Its workloads: {}.", at!(workloads)),
    row(key("tenant.slo", Tables, Unset("none"), Reload, "What a class of requests is promised: measured, shown, and kept by `[control]`."),
        "Promised: {}.", at!(slos)),
];

/// The tables that settings are in.
#[rustfmt::skip]
const TABLES: [Key; 2] = [
    key("tenant.reserve", Table, Unset("none"), Reload, "Rates that it gets whatever others want, counted in requests of 1 KiB."),
    key("tenant.limit", Table, Unset("none"), Reload, "Rates that it never exceeds, even if the server is idle."),
];

const ALL: usize = TABLES.len() + SETTINGS.len() + lists::KEYS.len();

const fn all() -> [Key; ALL] {
    let mut keys = [TABLES[0]; ALL];
    let mut at = 0;
    while at < ALL {
        let (setting, of_list) = (TABLES.len(), TABLES.len() + SETTINGS.len());
        keys[at] = if at < setting {
            TABLES[at]
        } else if at < of_list {
            SETTINGS[at - setting].key
        } else {
            lists::KEYS[at - of_list]
        };
        at += 1;
    }
    keys
}

/// Every key of a tenant's settings, for a language: that of each row, the tables they are in, and
/// what is in the tables of lists.
pub const KEYS: &[Key] = &all();

impl Setting {
    /// The setting of that name: its key without `tenant.`.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        SETTINGS.iter().find(|setting| setting.name() == name)
    }

    /// The setting that the data directory keeps by that name.
    #[must_use]
    pub fn stored(name: &str) -> Option<&'static Self> {
        SETTINGS.iter().find(|setting| setting.stored == name)
    }

    /// Its key without `tenant.`, as `limit.max_wait`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.key.path.trim_start_matches("tenant.")
    }

    /// Its name in commands, as `LIMIT-MAX-WAIT`.
    #[must_use]
    pub fn option(&self) -> String {
        self.name().replace(['.', '_'], "-").to_ascii_uppercase()
    }

    /// Whether a word can set it, so that `ENTREMET TENANT SET` has it.
    #[must_use]
    pub fn one_word(&self) -> bool {
        !matches!(self.key.takes, Tables)
    }

    /// Reads it from a table of the file that has it as `name`.
    pub(super) fn read(&self, settings: &mut Settings, section: &Section, name: &str) {
        (self.held_mut)(settings).read(section, name, &self.key.takes);
    }

    /// Sets it to what a word of a command says: as the file writes it without quotes, or as Redis
    /// writes sizes and switches; `none` or `auto` takes a value back.
    ///
    /// # Errors
    /// What it must be, in words.
    pub fn take(&self, settings: &mut Settings, word: &str) -> Result<(), String> {
        held::take(&self.key, (self.held_mut)(settings), word)
    }

    /// Its value as the file writes it, without quotes; none where nothing is set.
    #[must_use]
    pub fn value(&self, settings: &Settings) -> Option<String> {
        (self.held)(settings).said(&self.key.takes)
    }

    /// Its value or its default, as the file writes it; none where nothing is set and there is no
    /// default.
    #[must_use]
    pub fn value_or_default(&self, settings: &Settings) -> Option<String> {
        let default = || match self.key.otherwise {
            Value(text) => Some(text.trim_matches('"').to_string()),
            Unset(_) | Required => None,
        };
        self.value(settings).or_else(default)
    }

    /// The same, or what holds without one.
    #[must_use]
    pub fn text(&self, settings: &Settings) -> String {
        let otherwise = match self.key.otherwise {
            Unset(words) => words,
            Value(_) | Required => "",
        };
        let value = self.value_or_default(settings);
        value.unwrap_or_else(|| otherwise.to_string())
    }

    /// Its value as replies have it.
    #[must_use]
    pub fn shown(&self, settings: &Settings) -> Shown {
        (self.held)(settings).shown(&self.key.takes)
    }

    /// Whether it is what it is where nobody says anything.
    #[must_use]
    pub fn is_default(&self, settings: &Settings) -> bool {
        self.text(settings) == self.text(&Settings::default())
    }

    /// Whether it stands in a table below the tenant's.
    fn in_table(&self) -> bool {
        self.key.section() != "tenant"
    }
}

impl Settings {
    /// Whether something is set of `name`: a setting, or the settings of a table.
    #[must_use]
    pub fn asks(&self, name: &str) -> bool {
        let of = |setting: &&Setting| {
            let rest = setting.name().strip_prefix(name);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        let mut of = SETTINGS.iter().filter(of);
        of.any(|setting| !setting.is_default(self))
    }

    /// What is set, in sentences; of a table of which something is set, all.
    #[must_use]
    pub fn sentences(&self) -> Vec<String> {
        self.sentences_but(&[])
    }

    /// The same without those of the settings of these names.
    #[must_use]
    pub fn sentences_but(&self, unsaid: &[&str]) -> Vec<String> {
        let sentence = |setting: &Setting| {
            if let (Takes::Choice(choices), Some(word)) = (setting.key.takes, setting.value(self)) {
                let choices = choices();
                let chosen = choices.iter().find(|(known, _)| *known == word);
                return chosen.map(|(_, meaning)| (*meaning).to_string());
            }
            let table = setting.key.section().trim_start_matches("tenant.");
            let beside = setting.name() == LAG && self.asks(READS);
            let said =
                !setting.is_default(self) || setting.in_table() && self.asks(table) || beside;
            let value = setting.value_or_default(self)?;
            (said && !setting.sentence.is_empty()).then(|| setting.sentence.replace("{}", &value))
        };
        let said = |setting: &&Setting| !unsaid.contains(&setting.name());
        SETTINGS.iter().filter(said).filter_map(sentence).collect()
    }
}
