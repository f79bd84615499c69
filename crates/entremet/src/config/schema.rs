//! Every key of the configuration, declared once: the reader takes types, ranges and defaults from
//! here, error texts and docs/reference/config.md are written from here.

use policy::dispatch::Discipline;
use settings::schema::{choices, key};
use settings::tenant;
use settings::Otherwise::{Required, Unset, Value};
use settings::Takeover::{NotYet, Reload, Start};
use settings::Takes::{
    self, Address, Addresses, ByteRate, Bytes, Flag, Integer, Names, Path, Rate, Table, Tables,
    Text, Time, TimeOrNever, Word,
};
use settings::{Key, Language};

/// Who is next.
const DISCIPLINE: Takes = choices::<Discipline>();

/// `entremet.toml`.
pub static LANGUAGE: Language = Language {
    parts: &[KEYS, tenant::KEYS],
    alike: &[],
};

/// Its own keys, section by section; the settings of tenants follow.
#[rustfmt::skip]
const KEYS: &[Key] = &[
    key("server", Table, Unset("defaults"), Start, "Where clients connect and what they may ask."),
    key("server.listen", Addresses, Value("\"127.0.0.1:6380\""), Start, "Where clients connect without TLS. `[]` with a `tls.listen` makes TLS the only way in."),
    key("server.admin", Address, Value("\"127.0.0.1:9380\""), Start, "Where metrics, health and the JSON API are. Beyond loopback it needs a token."),
    key("server.admin_names", Names, Unset("only by address"), Reload, "Names by which the admin address may be called, beside localhost and its address: others are refused, so that no page from elsewhere can have its own name resolve to it."),
    key("server.admin_token_file", Path, Unset("no token"), Reload, "File with the token that requests to the admin address must bring (as a bearer's, or as the password of any user), but for /livez and /readyz."),
    key("server.admin_token", Text("16 to 512 characters that can be seen, without blanks"), Unset("no token"), Reload, "The token itself; better in a file of its own."),
    key("server.admin_tls", Table, Unset("no TLS"), Start, "Serves the admin address by TLS."),
    key("server.admin_tls.cert", Path, Unset("that of server.tls"), Reload, "Certificate chain, PEM, the server's own first."),
    key("server.admin_tls.key", Path, Unset("that of server.tls"), Reload, "Private key of the certificate, PEM."),
    key("server.cores", Integer(1, 64), Unset("as many as the process may use"), Start, "Threads that serve clients, each with connections and a scheduler of its own."),
    key("server.max_connections", Integer(1, 1_000_000), Value("10000"), Reload, "Connections of all tenants together. Half of them are divided evenly and kept, so that no tenant can take another's part; further log-ins are told so and closed."),
    key("server.max_newcomers", Integer(16, 1_000_000), Value("1000"), Reload, "Connections beside those that speak for no tenant yet. When they are as many, a new one takes the place of the one that has been silent longest, of the address that has most."),
    key("server.operator_connections", Integer(1, 10_000), Value("32"), Reload, "Connections beside those for tenants with `admin = true` and a password, when there is no other room for them."),
    key("server.login_timeout", TimeOrNever("1s", "1h"), Value("\"10s\""), Reload, "Closes a connection that has not logged in after so long, where it must: where there is no \"default\" without a password."),
    key("server.connection_rate", Rate("1/s", "1M/s"), Value("\"1000/s\""), Reload, "How often one address (an IPv6 network of 64 bits) may connect; after a pause 10 s' worth of that at once. Further ones are told so and closed."),
    key("server.idle_timeout", TimeOrNever("1s", "365d"), Value("\"never\""), Reload, "Closes a connection that asked for nothing for so long."),
    key("server.stalled_timeout", Time("1s", "1h"), Value("\"1min\""), Reload, "Cuts off a client that takes nothing of a reply of more than 8 MiB for so long: it keeps a snapshot of its tenant's data. While somebody waits for a place for such a reply (a tenant has 4, all together 256), after 1 s."),
    key("server.max_value", Bytes("1KiB", "512MiB"), Value("\"128MiB\""), Start, "Largest key, value or other argument of a request (Redis's proto-max-bulk-len)."),
    key("server.max_memory", Bytes("64MiB", "64TiB"), Unset("caches, write buffers, connections, and 2 GiB for requests; less on a small machine"), Start, "Memory that the process may take. What caches, write buffers, pending writes and connections leave of it is for requests and replies: half of that is the tenants' own by weight, half is lent, and who finds none left waits, and is refused after 3 s."),
    key("server.max_command_memory", Bytes("1MiB", "1TiB"), Value("\"1GiB\""), Start, "Memory that one command may work with beside its request and its reply: what it changes (a member of a sorted set takes about half a KiB) and what it gathers to sort or combine. Beyond, it is refused and changes nothing."),
    key("server.max_arguments", Integer(1_024, 16_777_216), Value("1048576"), Start, "Most arguments of one request."),
    key("server.drain", Time("0s", "1h"), Value("\"10s\""), Reload, "After SIGTERM, how long requests under way may take before connections are closed."),
    key("server.slow_log_over", TimeOrNever("0s", "1h"), Value("\"10ms\""), Reload, "Commands that run longer go to the tenant's slow log."),
    key("server.slow_log_length", Integer(0, 100_000), Value("128"), Reload, "Entries kept in each tenant's slow log."),
    key("server.tls", Table, Unset("no TLS"), Start, "Serves TLS 1.2 and 1.3 as well."),
    key("server.tls.listen", Addresses, Required, Start, "Where clients connect with TLS."),
    key("server.tls.cert", Path, Required, Reload, "Certificate chain, PEM, the server's own first."),
    key("server.tls.key", Path, Required, Reload, "Private key of the certificate, PEM (PKCS#8, PKCS#1 or SEC1)."),
    key("server.tls.client_ca", Path, Unset("clients need no certificate"), Reload, "Clients must show a certificate signed by one of these, PEM."),

    key("engine", Table, Unset("defaults"), Start, "Where and how data is stored."),
    key("engine.kind", Word(&["rocksdb"]), Value("\"rocksdb\""), Start, "The storage engine."),
    key("engine.path", Path, Value("\"./data\""), Start, "The data directory: one RocksDB database for each tenant, and the tenants made at run time."),
    key("engine.object_cache", Bytes("1MiB", "64TiB"), Value("\"512MiB\""), Start, "Objects kept in memory above RocksDB, all tenants together."),
    key("engine.block_cache", Bytes("8MiB", "64TiB"), Value("\"256MiB\""), Start, "RocksDB's cache of file blocks, all tenants together."),
    key("engine.write_buffers", Bytes("8MiB", "64TiB"), Value("\"512MiB\""), Start, "Writes in memory that are not in files yet, all tenants together."),
    key("engine.memtable", Bytes("1MiB", "4GiB"), Value("\"64MiB\""), Start, "Size at which a tenant's writes in memory become a file, smaller where it has less of the write buffers; at most four exist at once for each tenant."),
    key("engine.memory", Word(&["allotted", "shared"]), Value("\"allotted\""), Start, "Who has how much of the caches and write buffers: each tenant its allotment, and what others leave; or, to compare, whoever asks most, and of the object cache its allotment alone."),
    key("engine.pending", Bytes("64KiB", "1GiB"), Value("\"32MiB\""), Start, "Writes of one tenant that may wait for their commit; further ones wait unread."),
    key("engine.handlers", Integer(1, 1_024), Value("16"), Start, "Threads that read from the disk. Reserved permits are taken from these. Reads of tenants that have had less than their share may use as many again."),
    key("engine.committers", Integer(1, 64), Value("2"), Start, "Threads that commit writes."),
    key("engine.flush_threads", Integer(1, 64), Value("4"), Start, "Threads that write memtables to files; with one, a tenant's slow flush delays another's."),
    key("engine.compaction_threads", Integer(1, 64), Value("2"), Start, "Threads that merge files."),
    key("engine.direct_io", Flag, Value("true"), Start, "Reads and writes data files around the page cache. The log is always buffered."),
    key("engine.max_open_files", Integer(16, 1_000_000), Value("256"), Start, "Data files that one tenant's database keeps open."),
    key("engine.idle_close", TimeOrNever("1s", "365d"), Value("\"1min\""), Start, "Closes a tenant's database that was not used for so long; the next request opens it again."),

    key("scheduler", Table, Unset("defaults"), Start, "How the server is divided among tenants."),
    key("scheduler.request", DISCIPLINE, Value("\"fair\""), Reload, "Who is next where requests come in, and for handlers."),
    key("scheduler.device", DISCIPLINE, Value("\"fair\""), Start, "Who is next at the device, unless `device.stage` is false."),
    key("scheduler.requests", Rate("100/s", "100M/s"), Value("\"100000/s\""), Start, "Requests that one core serves in a second: the yardstick that request counts are compared with bandwidth by, not a limit."),
    key("scheduler.bandwidth_in", ByteRate("1MB/s", "1TB/s"), Value("\"1250MB/s\""), Start, "Bytes of requests that one core takes in a second: a yardstick, not a limit."),
    key("scheduler.bandwidth_out", ByteRate("1MB/s", "1TB/s"), Value("\"1250MB/s\""), Start, "Bytes of replies that one core sends in a second: a yardstick, not a limit."),
    key("scheduler.chunk", Bytes("4KiB", "16MiB"), Value("\"64KiB\""), Start, "Bytes that one connection may read or write before others get their turn."),
    key("scheduler.seed", Integer(0, 9_223_372_036_854_775_807), Unset("another at each start"), Start, "Seed of the lottery, to repeat a run."),

    key("device", Table, Unset("defaults"), Start, "The device under the data directory. Every I/O of the databases is priced, and queued by tenant."),
    key("device.stage", Flag, Value("true"), Start, "Whether I/O is priced and queued where no profile or model is named. The server measures the disk for some seconds after its first start in a data directory, and keeps the result there in device.toml."),
    key("device.profile", Path, Unset("device.toml in the data directory"), Start, "What `entremet calibrate` measured of the device."),
    key("device.profiles", Flag, Value("true"), Start, "What a reserved request is taken to cost the device: what such requests were seen to cost, flushes and compactions included, or one I/O of its size."),
    key("device.overbook", Flag, Value("false"), Start, "Takes reservations that need more VOPs than the device's floor, and scales all down evenly. Otherwise `ENTREMET TENANT SET` refuses them."),
    key("device.model", Word(&["hdd", "ssd"]), Unset("the real device"), Start, "Emulates a device, for experiments; the real one must be faster."),

    key("control", Table, Unset("defaults"), NotYet, "What adjusts shares and permits to meet SLOs."),
    key("control.policy", Word(&["auto", "cake", "frosting", "static"]), Value("\"static\""), NotYet, "The controller; \"static\" leaves everything as configured."),
    key("control.interval", Time("100ms", "1h"), Value("\"1s\""), NotYet, "How often the controller decides."),

    key("tenant", Tables, Unset("only \"default\", without a password, which may administer; not where clients can connect from elsewhere"), Reload, "Who shares the server. A tenant named \"default\" without a password is that of connections that do not log in; where there is none, all must."),
    key("tenant.name", Text("1 to 64 characters of A-Z a-z 0-9 _ . -, the first not a point"), Required, Reload, "Its name, and its user name at AUTH and HELLO."),
    key("tenant.password_hash", Text("an Argon2 hash in PHC form, as `entremet hash-password` prints it"), Unset("no password"), Reload, "Hash of its password."),
    key("tenant.password", Text("1 to 512 characters"), Unset("no password"), Reload, "Its password in plain text; hashed in memory, but better not in a file at all."),
];

#[cfg(test)]
mod tests {
    #[test]
    fn the_language_is_well_declared() {
        assert_eq!(super::LANGUAGE.mistakes(), Vec::<String>::new());
    }
}
