//! Every key of the configuration, declared once: the reader takes types, ranges and defaults from
//! here, error texts and docs/reference/config.md are written from here.

use policy::dispatch::Discipline;
use policy::slo::admission::Admission;
use policy::slo::control::Policy;
use settings::schema::{choices, key};
use settings::tenant;
use settings::Otherwise::{Required, Unset, Value};
use settings::Takeover::{Reload, Start};
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
    key("server", Table, Unset("defaults"), Start, "Where clients connect, and what one of them may ask for."),
    key("server.listen", Addresses, Value("\"127.0.0.1:6380\""), Start, "Where clients connect without TLS. `[]` with a `tls.listen` makes TLS the only way in."),
    key("server.admin", Address, Value("\"127.0.0.1:9380\""), Start, "Where metrics, health checks and the JSON API are. If other machines can reach it, it needs a token."),
    key("server.admin_names", Names, Unset("only by address"), Reload, "Host names that requests to the admin address may use, besides localhost and the address itself. Requests with another name are refused, so that a hostile web page cannot reach it by DNS rebinding."),
    key("server.admin_token_file", Path, Unset("no token"), Reload, "A file with the token that requests to the admin address must send, as a bearer token or as the password of any user. /livez and /readyz need none."),
    key("server.admin_token", Text("16 to 512 characters that can be seen, without blanks"), Unset("no token"), Reload, "The token itself. A file of its own is safer."),
    key("server.admin_tls", Table, Unset("no TLS"), Start, "Serves the admin address with TLS."),
    key("server.admin_tls.cert", Path, Unset("that of server.tls"), Reload, "Certificate chain, PEM, the server's own first."),
    key("server.admin_tls.key", Path, Unset("that of server.tls"), Reload, "Private key of the certificate, PEM."),
    key("server.cores", Integer(1, 64), Unset("as many as the process may use"), Start, "Threads that serve clients. Each has its own connections and its own scheduler."),
    key("server.max_connections", Integer(1, 1_000_000), Value("10000"), Reload, "Connections of all tenants together. Half of them are divided evenly among the tenants and kept for each. A log-in beyond gets an error and is closed."),
    key("server.max_newcomers", Integer(16, 1_000_000), Value("1000"), Reload, "Further connections, for clients that have not logged in yet. When all are taken, the address with the most of them loses the one that has been silent longest."),
    key("server.operator_connections", Integer(1, 10_000), Value("32"), Reload, "Further connections, for tenants with `admin = true` and a password when all others are taken."),
    key("server.login_timeout", TimeOrNever("1s", "1h"), Value("\"10s\""), Reload, "Closes a connection that has not logged in within this time. It does nothing if there is a tenant \"default\" without a password."),
    key("server.connection_rate", Rate("1/s", "1M/s"), Value("\"1000/s\""), Reload, "How often one address (with IPv6, one /64 network) may connect. After a pause it may make 10 seconds' worth of connections at once. Further connections get an error and are closed."),
    key("server.idle_timeout", TimeOrNever("1s", "365d"), Value("\"never\""), Reload, "Closes a connection that has sent nothing for this long."),
    key("server.stalled_timeout", Time("1s", "1h"), Value("\"1min\""), Reload, "Closes a client that has read nothing of a reply of more than 8 MiB for this long, because such a reply keeps a snapshot of its tenant's data. A tenant may have 4 such replies at a time and the server 256. While another one waits for its turn, the time is 1 s."),
    key("server.max_value", Bytes("1KiB", "512MiB"), Value("\"128MiB\""), Start, "The largest key, value or other argument of a request (Redis's proto-max-bulk-len)."),
    key("server.max_memory", Bytes("64MiB", "64TiB"), Unset("caches, write buffers, connections, and 2 GiB for requests; less on a small machine"), Start, "Memory that the process may use. What caches, write buffers, pending writes and connections leave of it is for requests and replies: half of that is divided among the tenants by weight, and half is lent. A request that finds no memory waits, and is refused after 3 s."),
    key("server.max_command_memory", Bytes("1MiB", "1TiB"), Value("\"1GiB\""), Start, "Memory that one command may use besides its request and its reply: for what it changes (about half a KiB for each member of a sorted set) and for what it gathers to sort or combine. A command that needs more is refused and changes nothing."),
    key("server.max_arguments", Integer(1_024, 16_777_216), Value("1048576"), Start, "The most arguments that one request may have."),
    key("server.drain", Time("0s", "1h"), Value("\"10s\""), Reload, "How long requests under way may still take after SIGTERM. Then connections are closed."),
    key("server.slow_log_over", TimeOrNever("0s", "1h"), Value("\"10ms\""), Reload, "Commands that run longer go to the tenant's slow log."),
    key("server.slow_log_length", Integer(0, 100_000), Value("128"), Reload, "Entries kept in each tenant's slow log."),
    key("server.tls", Table, Unset("no TLS"), Start, "Serves TLS 1.2 and 1.3, too."),
    key("server.tls.listen", Addresses, Required, Start, "Where clients connect with TLS. `[]` with a `cluster.tls_listen` leaves that only."),
    key("server.tls.cert", Path, Required, Reload, "Certificate chain, PEM, the server's own first."),
    key("server.tls.key", Path, Required, Reload, "Private key of the certificate, PEM (PKCS#8, PKCS#1 or SEC1)."),
    key("server.tls.client_ca", Path, Unset("clients need no certificate"), Reload, "Clients must show a certificate that one of these has signed, PEM."),

    key("server.cluster", Table, Unset("clients see this server alone"), Start, "Before a Redis Cluster: makes this server one of several fronts, which cluster-aware clients see as the nodes of one cluster ([how](../guide/cluster.md))."),
    key("server.cluster.listen", Address, Unset("only `tls_listen`"), Start, "Where cluster-aware clients connect without TLS, after they were told to. It serves what has its home at this front, and answers `MOVED` to the rest."),
    key("server.cluster.announce", Text("HOST:PORT"), Unset("`server.cluster.listen`"), Start, "What clients are told instead, if that is not how they reach it."),
    key("server.cluster.tls_listen", Address, Unset("only `listen`"), Start, "The same with TLS, with the certificate of `server.tls`. One of the two is needed. Clients with TLS are told of places with TLS only, and others of the others."),
    key("server.cluster.tls_announce", Text("HOST:PORT"), Unset("`server.cluster.tls_listen`"), Start, "What clients with TLS are told instead."),
    key("server.cluster.node", Text("HOST:PORT"), Unset("the only node of the cluster on the same host"), Start, "The node of the cluster before which this front stands: it is the home of what that node has."),
    key("server.cluster.divide_weights", Flag, Value("true"), Start, "Whether a tenant's weight is one of all fronts together, and is where the tenant is served. `false`, for comparison: each front goes by all of it."),

    key("engine", Table, Unset("defaults"), Start, "Where and how data is stored."),
    key("engine.kind", Word(&["rocksdb", "redis", "redis-cluster"]), Value("\"rocksdb\""), Start, "Where data is kept: by this process in RocksDB, or by a Redis or Valkey before which it stands ([how](../guide/front.md)), or by a cluster of them ([how](../guide/cluster.md)). Then what is said of storage, of the device and of `sync` is an error."),
    key("engine.url", Text("redis://HOST:PORT or redis://USER:PASSWORD@HOST:PORT; redis-cluster:// and several of HOST:PORT, with commas between; with rediss by TLS"), Unset("needed if the kind is \"redis\" or \"redis-cluster\""), Start, "Where that Redis or Valkey is. Of a cluster one node that answers is enough: it tells the others."),
    key("engine.tls", Table, Unset("needed if the URL is rediss:// or rediss-cluster://"), Start, "How TLS (1.2 or 1.3) is spoken to it ([how](../guide/front.md#tls-to-the-engine))."),
    key("engine.tls.ca", Path, Required, Reload, "Certificates, PEM. One of these must have signed that of the engine."),
    key("engine.tls.cert", Path, Unset("none is shown"), Reload, "Certificate chain that this server shows the engine, PEM, its own first. A Redis asks for one unless it has `tls-auth-clients no`."),
    key("engine.tls.key", Path, Unset("none is shown"), Reload, "Private key of that certificate, PEM."),
    key("engine.tls.name", Text("a host name or an address"), Unset("the host by which a node is reached"), Reload, "Whose certificate that of the engine must be; of a cluster, that of each node."),
    key("engine.timeout", Time("100ms", "10min"), Value("\"10s\""), Start, "How long it may say nothing while requests wait for it. Then these get an error, and the connection to it is made anew."),
    key("engine.waiting", Integer(0, 10_000), Value("1000"), Start, "Clients that may wait there until something comes (`BLPOP`, `XREAD` with `BLOCK`), watch keys (`WATCH`) or have subscribed to channels, all tenants together, and as many connections to it: its `maxclients` must have room for them. One tenant may have as many as are left, so half of all at most."),
    key("engine.unmarked", Text("a tenant's name"), Unset("nobody"), Start, "The tenant whose keys have no mark: those that were there before. Not before a cluster. All other tenants' keys begin with `{@NAME}` there."),
    key("engine.path", Path, Value("\"./data\""), Start, "The data directory: one RocksDB database for each tenant, and the tenants made at run time. Before a Redis only the latter."),
    key("engine.object_cache", Bytes("1MiB", "64TiB"), Value("\"512MiB\""), Start, "Objects kept in memory above RocksDB, all tenants together."),
    key("engine.block_cache", Bytes("8MiB", "64TiB"), Value("\"256MiB\""), Start, "RocksDB's cache of file blocks, all tenants together."),
    key("engine.write_buffers", Bytes("8MiB", "64TiB"), Value("\"512MiB\""), Start, "Memory for writes that are not in files yet, all tenants together."),
    key("engine.memtable", Bytes("1MiB", "4GiB"), Value("\"64MiB\""), Start, "The size at which a tenant's writes in memory become a file. It is smaller for a tenant with few write buffers. A tenant has at most four at once."),
    key("engine.memory", Word(&["allotted", "shared"]), Value("\"allotted\""), Start, "How caches and write buffers are divided. `allotted`: each tenant has its allotment, and what others leave unused. `shared`, for comparison: whoever asks for most gets most; of the object cache each tenant has its allotment alone."),
    key("engine.pending", Bytes("64KiB", "1GiB"), Value("\"32MiB\""), Start, "How much of one tenant's writes may wait for their commit. Further writes are not read from the socket yet."),
    key("engine.handlers", Integer(1, 1_024), Value("16"), Start, "Threads that read from the disk. Each core has its part of them and lends what it does not use. Reserved permits are some of these. Tenants that have had less than their share may use as many more."),
    key("engine.committers", Integer(1, 64), Value("2"), Start, "Threads that commit writes."),
    key("engine.flush_threads", Integer(1, 64), Value("4"), Start, "Threads that write memtables to files. With only one, a slow flush of one tenant delays the others'."),
    key("engine.compaction_threads", Integer(1, 64), Value("2"), Start, "Threads that merge files."),
    key("engine.direct_io", Flag, Value("true"), Start, "Whether data files bypass the kernel's page cache. The log never does."),
    key("engine.max_open_files", Integer(16, 1_000_000), Value("256"), Start, "Data files that one tenant's database keeps open."),
    key("engine.idle_close", TimeOrNever("1s", "365d"), Value("\"1min\""), Start, "Closes a tenant's database when nobody has used it for this long. The next request opens it again."),

    key("scheduler", Table, Unset("defaults"), Start, "How the server is divided among tenants."),
    key("scheduler.request", DISCIPLINE, Value("\"fair\""), Reload, "Which request is served next, and which gets the next handler."),
    key("scheduler.device", DISCIPLINE, Value("\"fair\""), Start, "Which I/O goes to the device next, unless `device.stage` is false."),
    key("scheduler.requests", Rate("100/s", "100M/s"), Value("\"100000/s\""), Start, "Requests that one core can serve in a second. This is no limit: it is what makes numbers of requests comparable with bytes."),
    key("scheduler.bandwidth_in", ByteRate("1MB/s", "1TB/s"), Value("\"1250MB/s\""), Start, "Bytes of requests that one core can read in a second. This is no limit, likewise."),
    key("scheduler.bandwidth_out", ByteRate("1MB/s", "1TB/s"), Value("\"1250MB/s\""), Start, "Bytes of replies that one core can send in a second. This is no limit, likewise."),
    key("scheduler.chunk", Bytes("4KiB", "16MiB"), Value("\"64KiB\""), Start, "How much one connection may read or write before others get their turn."),
    key("scheduler.seed", Integer(0, 9_223_372_036_854_775_807), Unset("another at each start"), Start, "Seed of the lottery, to repeat a run."),

    key("device", Table, Unset("defaults"), Start, "The device under the data directory. Every I/O of the databases is priced, and queued by tenant."),
    key("device.stage", Flag, Value("true"), Start, "Whether I/O is priced and queued even if no profile or model is named. The server then measures the disk for some seconds after its first start in a data directory, and keeps the result there as device.toml."),
    key("device.profile", Path, Unset("device.toml in the data directory"), Start, "The profile that `entremet calibrate` made of the device."),
    key("device.learn_prices", Flag, Value("true"), Start, "How reserved requests are priced. `true`: by what such requests have cost the device so far, with their flushes and compactions. `false`: as one I/O of their size."),
    key("device.overbook", Flag, Value("false"), Start, "Whether reservations may need more than may be promised of the device to their mix of reads and writes, or of the processors. `true`: all are scaled down evenly. `false`: `ENTREMET TENANT SET` refuses the one that is too much."),
    key("device.model", Word(&["hdd", "ssd"]), Unset("the real device"), Start, "Emulates a device, for experiments. The real device must be faster."),

    key("device.disks", Integer(1, 64), Value("1"), Start, "Emulated disks. Each file is whole on one of them, and each has a queue of its own."),
    key("device.span", Bytes("64MiB", "64TiB"), Unset("anywhere on it"), Start, "Files lie within this much of each emulated disk, from its outer edge on: what a seek costs depends on how far data lies apart."),

    key("control", Table, Unset("defaults"), Reload, "What keeps promises of latency and throughput (`[[tenant.slo]]`). Without one it does nothing."),
    key("control.policy", choices::<Policy>(), Value("\"auto\""), Reload, "How they are kept."),
    key("control.interval", Time("100ms", "1s"), Value("\"1s\""), Reload, "How often it decides."),
    key("control.admission", choices::<Admission>(), Value("\"warn\""), Reload, "What becomes of a promise that is made by command and does not fit beside the others."),

    key("tenant", Tables, Unset("only \"default\", without a password, which may administer; not where clients can connect from elsewhere"), Reload, "Who shares the server. Clients that do not log in use the tenant \"default\", if there is one without a password. Otherwise all clients must log in."),
    key("tenant.name", Text("1 to 64 characters of A-Z a-z 0-9 _ . -, the first not a point"), Required, Reload, "Its name, and its user name at AUTH and HELLO."),
    key("tenant.password_hash", Text("an Argon2 hash in PHC form, as `entremet hash-password` prints it"), Unset("no password"), Reload, "Hash of its password."),
    key("tenant.password", Text("1 to 512 characters"), Unset("no password"), Reload, "Its password in plain text. It is hashed in memory, but a hash in the file is safer."),
];

#[cfg(test)]
mod tests {
    #[test]
    fn the_language_is_well_declared() {
        assert_eq!(super::LANGUAGE.mistakes(), Vec::<String>::new());
    }
}
