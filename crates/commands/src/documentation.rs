//! `docs/reference/commands.md`, written from the table.

use crate::spec::{Group, Spec};
use crate::table::all;

const INTRODUCTION: &str = "\
# Commands

This page is generated from the server's own table of commands (`crates/commands/src/table`);
a test fails when it is out of date. Replies and error texts are those of Redis 7.0 unless a section
below says otherwise.

`class` is what shares, SLOs and metrics file a command under. Complexities are those of this
server: elements of collections are records of their own in byte order, so some costs differ from
Redis's. Of a string longer than 64 KiB, pieces of 16 KiB are read and written; deleting or
replacing one takes a record for each piece, done elsewhere than on the core.
";

const DEVIATIONS: &str = "\
## What differs from Redis

- **Order.** Keys, fields of hashes and, in `ZSCAN` of long sets, members come in byte order.
  Redis's order is arbitrary, so no client can rely on it.
- **`SCAN`, `HSCAN`, `ZSCAN`.** Every element that is there from the first call to the last is
  returned, and none twice. A cursor is a number for a remembered position: for each tenant the
  server keeps at least the 4,096 most recently used, unless their names exceed 512 KiB. A cursor
  that it no longer knows (or never knew, or from before a restart) starts again from the beginning,
  so that a walk may repeat elements but never lacks one. `MATCH user:*` reads only the keys that
  start with `user:`.
- **`DBSIZE`** counts up to 100,000 keys; beyond, it is the storage engine's estimate.
- **`RANDOMKEY`** is uniform for up to 255 keys; beyond, keys in dense regions come up less often.
- **`HRANDFIELD`, `ZRANDMEMBER`** with a negative count return at most 1,048,576 elements.
- **`ZRANGEBYLEX` and its kin** on sets whose members differ in score go by name alone; Redis leaves
  that case open.
- **Ranks.** There is no index of ranks: `ZRANK`, and `ZRANGE` by rank, walk from the nearer end
  where they can.
- **`OBJECT ENCODING`** names what Redis's defaults would choose by length; `OBJECT IDLETIME` is 0,
  `OBJECT FREQ` is refused.
- **`INFO`** is about the tenant that asks. `used_memory` is its caches, write buffers, and
  requests; `used_memory_rss` is the same. `expires` and `avg_ttl` are counted over the first
  100,000 keys. `instantaneous_ops_per_sec` is of the last whole five seconds.
- **`SAVE`, `BGSAVE`.** Writes are in the tenant's log when they are answered. Either command has
  the log synced to the disk, whatever the tenant's `sync` is, and is answered then; neither runs in
  a transaction. `LASTSAVE` and `rdb_last_save_time` tell of the last sync, whoever asked for it,
  and `rdb_changes_since_last_save` counts the writes that a power cut could take.
- **`CLIENT KILL`**, and connections that end: what a handler works on for such a connection may
  still be done a moment later, whole, or not at all. Redis is done with a command before it does
  anything else.
- **`CLIENT PAUSE`** holds back commands of the tenant that says so, and of nobody else; `CLIENT
  UNPAUSE` always runs. Of a connection that is held back the server keeps its request and a chunk
  of what it sent behind it, counted to its tenant. When the server ends, pauses do.
- **`WAIT`** returns 0 at once: there is no replica to wait for.
- **`MEMORY DOCTOR`, `LATENCY DOCTOR`** tell of the tenant's own memory, and where the time of its
  requests went (`ENTREMET EXPLAIN`).
- **`DUMP`** writes the plainest form that a type has in the format of Redis 7.0, without
  compression. **`RESTORE`** reads strings, hashes and sorted sets of Redis 4.0 to 7.4 and of Valkey
  up to 9.1, compressed, and as ziplist or listpack, too. It refuses other types (also a hash of
  Valkey's of which a field expires), sets `IDLETIME` and `FREQ` aside, and lets the last of two
  equal fields win, where Redis calls that damaged.
- **`INFO commandstats`** and `errorstats` are the tenant's own, as is what `CONFIG RESETSTAT` sets
  to zero. The time of a command that runs in memory is counted from the end of the one before it in
  the same turn, so that it holds its reading and parsing.
- **`MEMORY USAGE`** estimates the bytes of the records.
- **Databases.** A tenant has 16. `FLUSHALL` empties all of one tenant's, never another's. `MOVE`
  and `COPY … DB` copy the elements of a collection. A watched key of two databases that `SWAPDB`
  exchanges counts as changed if it was there before or is there afterwards.
- **Limits.** A request has at most 1,048,576 words; a value at most what is configured (128 MiB),
  where Redis has 512 MiB; a key, field or member at most 64 KiB, where Redis has 512 MiB.

## ENTREMET.RANGE

`ENTREMET.RANGE start end [COUNT count] [KEYS | VALUES] [EXPIRES]` returns the live keys between two
bounds in byte order: `[key` with the key, `(key` without it, `-` before the first, `+` behind the
last. The reply is an array of key, value, key, value, …; of keys only with `KEYS`, of values only
with `VALUES`. In place of the value of what is not a string stands the name of its type (`hash`,
`zset`) as a simple string, so that it cannot be taken for a value. With `EXPIRES` each is followed
by the time at which its key expires, in milliseconds since 1970, or -1. `COUNT` is 1,000 unless
given, and at most what is configured. To go on, ask from `(` and the last key.
";

const UNSUPPORTED: &str = "\
## What is not supported

These get Redis's own error for an unknown command, or the error named here.

| Redis commands | why |
|---|---|
| Lists: `LPUSH`, `RPUSH`, `LPOP`, `LRANGE`, `BLPOP`, … | not a type of this server; blocking pops hold a connection's turn |
| Sets: `SADD`, `SREM`, `SMEMBERS`, `SINTER`, … | not a type of this server yet; a sorted set with equal scores does most of it |
| Streams: `XADD`, `XREAD`, `XGROUP`, … | not a type of this server |
| Geo, HyperLogLog: `GEOADD`, `GEOSEARCH`, `PFADD`, `PFCOUNT`, … | not types of this server |
| Pub/Sub: `PUBLISH`, `SUBSCRIBE`, `PSUBSCRIBE`, `SSUBSCRIBE`, `PUBSUB` | messages are not data; keyspace notifications likewise |
| Scripts and functions: `EVAL`, `EVALSHA`, `SCRIPT`, `FCALL`, `FUNCTION LOAD`, … | a script's cost is not known before it runs; `FUNCTION FLUSH` succeeds, as there is nothing to flush |
| `SORT`, `SORT_RO` | sorts lists and sets, which are missing |
| `BZPOPMIN`, `BZPOPMAX`, `BZMPOP` | they would block |
| `MIGRATE` | the server opens no connections on a client's word: `DUMP` here and `RESTORE` there |
| `CLIENT TRACKING ON`, `CLIENT CACHING` | a cache that is not told of every change goes stale |
| `REPLICAOF`, `PSYNC`, `FAILOVER` | there is no replication on one node |
| `BGREWRITEAOF` | the storage engine writes its log and its files by itself |
| `MONITOR`, `DEBUG`, `MODULE LOAD`, `ACL SETUSER`, … | tenants are managed with `ENTREMET TENANT` |
| `OBJECT FREQ`, and so `redis-cli --hotkeys` | answers the error of a Redis without an LFU policy: to count reads by key would take eight bytes of each cached object and a write at each read, for this command alone. `--bigkeys` and `--memkeys` work |
";

const GROUPS: [(Group, &str); 10] = [
    (Group::String, "Strings"),
    (Group::Bitmap, "Bitmaps"),
    (Group::Generic, "Keys"),
    (Group::Hash, "Hashes"),
    (Group::SortedSet, "Sorted sets"),
    (Group::Transactions, "Transactions"),
    (Group::Connection, "Connection"),
    (Group::Server, "Server"),
    (Group::Cluster, "Cluster"),
    (Group::Scripting, "Functions"),
];

/// The whole page, in Markdown.
pub fn commands_page() -> String {
    let mut page = INTRODUCTION.to_owned();
    for (group, title) in GROUPS {
        page.push_str(&format!(
            "\n## {title}\n\n| command | class | complexity | since | |\n|---|---|---|---|---|\n"
        ));
        let mut specs: Vec<&Spec> = all()
            .flat_map(|spec| [spec].into_iter().chain(spec.subcommands))
            .filter(|spec| spec.group == group && !spec.is_container())
            .collect();
        specs.sort_by_key(|spec| spec.name);
        specs.iter().for_each(|spec| page.push_str(&row(spec)));
    }
    [&page, DEVIATIONS, UNSUPPORTED].join("\n")
}

fn row(spec: &Spec) -> String {
    let name = spec.name.replace('|', " ").to_uppercase();
    let line = format!("{name} {}", spec.syntax);
    // A bar ends a cell of a Markdown table even inside code, unless it is escaped.
    let line = line.trim_end().replace('|', "\\|");
    let class = spec.class.name();
    format!(
        "| `{line}` | {class} | {} | {} | {} |\n",
        spec.complexity, spec.since, spec.summary
    )
}
