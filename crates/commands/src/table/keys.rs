//! Keys of any type, and whole keyspaces.

use telemetry::Class::{Get, Multiget, Put};

use crate::data::{KeyCommand, KeyspaceCommand};
use crate::keyspec::{one, rest, DELETE, INSERT, OVERWRITE, PROBE, READ, TAKE, UPDATE};
use crate::session::MemoryCommand;
use crate::session::SessionCommand::Memory;
use crate::spec::Group::{Generic, Server};
use crate::spec::{Flags, Spec};

use super::shapes::{
    container, help, key, keyspace_reader, keyspace_writer, report, ALL_SHARDS, GROWS, READS,
    READS_FAST, SUM_OF_SHARDS, VARIES, VARIES_BY_NODE, WRITES, WRITES_FAST,
};

/// Commands on keys of any type and on whole keyspaces.
#[rustfmt::skip]
pub(super) const KEYS: &[Spec] = &[
    key("copy",        -3, Generic, GROWS,       Put,      &[one(READ, 1), one(OVERWRITE, 2)], KeyCommand::Copy)
        .doc("6.2.0", "O(elements)", "source destination [DB destination-db] [REPLACE]",
             "Copies a key, to another database if one is named."),
    keyspace_reader("dbsize",          1, Server,  READS_FAST, KeyspaceCommand::Dbsize)
        .doc("1.0.0", "O(keys) up to 100,000, an estimate beyond", "", "Returns the number of keys.")
        .categories(&["@keyspace"]).tips(&["request_policy:all_shards", "response_policy:agg_sum"]),
    key("del",         -2, Generic, WRITES,      Put,      &[rest(DELETE, 1, 1)],              KeyCommand::Del)
        .doc("1.0.0", "O(number of keys, and of elements up to 128 of each)", "key [key ...]", "Deletes keys.")
        .tips(SUM_OF_SHARDS),
    key("dump",         2, Generic, READS,       Get,      &[one(READ, 1)],                    KeyCommand::Dump)
        .doc("2.6.0", "O(bytes of the value)", "key", "Returns a value as Redis writes it in its dumps.").tips(VARIES),
    keyspace_reader("entremet.range", -3, Generic, READS,      KeyspaceCommand::Range)
        .doc("Entremet 0.1", "O(COUNT)", "start end [COUNT count] [KEYS | VALUES] [EXPIRES]",
             "Returns keys in byte order, with their values."),
    key("exists",      -2, Generic, READS_FAST,  Multiget, &[rest(PROBE, 1, 1)],               KeyCommand::Exists)
        .doc("1.0.0", "O(number of keys)", "key [key ...]", "Counts how many of the keys exist.")
        .tips(SUM_OF_SHARDS),
    key("expire",      -3, Generic, WRITES_FAST, Put,      &[one(UPDATE, 1)],                  KeyCommand::Expire)
        .doc("1.0.0", "O(1)", "key seconds [NX | XX | GT | LT]", "Lets a key expire after a number of seconds."),
    key("expireat",    -3, Generic, WRITES_FAST, Put,      &[one(UPDATE, 1)],                  KeyCommand::Expireat)
        .doc("1.2.0", "O(1)", "key unix-time-seconds [NX | XX | GT | LT]", "Lets a key expire at a time."),
    key("expiretime",   2, Generic, READS_FAST,  Get,      &[one(READ, 1)],                    KeyCommand::Expiretime)
        .doc("7.0.0", "O(1)", "key", "Returns the time at which a key expires, in seconds."),
    keyspace_writer("flushall", -1, Server, WRITES, KeyspaceCommand::Flushall)
        .doc("1.0.0", "O(1)", "[ASYNC | SYNC]", "Deletes every key of the tenant, in all of its databases.")
        .categories(&["@keyspace", "@dangerous"]).tips(ALL_SHARDS),
    keyspace_writer("flushdb",  -1, Server, WRITES, KeyspaceCommand::Flushdb)
        .doc("1.0.0", "O(1)", "[ASYNC | SYNC]", "Deletes every key of the selected database.")
        .categories(&["@keyspace", "@dangerous"]).tips(ALL_SHARDS),
    keyspace_reader("keys",            2, Generic, READS,      KeyspaceCommand::Keys)
        .doc("1.0.0", "O(keys with the literal start of the pattern)", "pattern",
             "Returns the keys that match a pattern.")
        .categories(&["@dangerous"]).tips(&["request_policy:all_shards", "nondeterministic_output_order"]),
    container("memory", Server,  MEMORY, "4.0.0", "Commands about memory."),
    key("move",         3, Generic, WRITES_FAST, Put,      &[one(TAKE, 1)],                    KeyCommand::Move)
        .doc("1.0.0", "O(elements)", "key db", "Moves a key to another database, if there is none of that name."),
    container("object", Generic, OBJECT, "2.2.3", "Commands about objects."),
    key("persist",      2, Generic, WRITES_FAST, Put,      &[one(UPDATE, 1)],                  KeyCommand::Persist)
        .doc("2.2.0", "O(1)", "key", "Removes the expiry of a key."),
    key("pexpire",     -3, Generic, WRITES_FAST, Put,      &[one(UPDATE, 1)],                  KeyCommand::Pexpire)
        .doc("2.6.0", "O(1)", "key milliseconds [NX | XX | GT | LT]",
             "Lets a key expire after a number of milliseconds."),
    key("pexpireat",   -3, Generic, WRITES_FAST, Put,      &[one(UPDATE, 1)],                  KeyCommand::Pexpireat)
        .doc("2.6.0", "O(1)", "key unix-time-milliseconds [NX | XX | GT | LT]",
             "Lets a key expire at a time given in milliseconds."),
    key("pexpiretime",  2, Generic, READS_FAST,  Get,      &[one(READ, 1)],                    KeyCommand::Pexpiretime)
        .doc("7.0.0", "O(1)", "key", "Returns the time at which a key expires, in milliseconds."),
    key("pttl",         2, Generic, READS_FAST,  Get,      &[one(READ, 1)],                    KeyCommand::Pttl)
        .doc("2.6.0", "O(1)", "key", "Returns the milliseconds until a key expires.").tips(VARIES),
    keyspace_reader("randomkey",       1, Generic, READS,      KeyspaceCommand::Randomkey)
        .doc("1.0.0", "O(1)", "", "Returns a random key.")
        .tips(&["request_policy:all_shards", "nondeterministic_output"]),
    key("rename",       3, Generic, WRITES,      Put,      &[one(TAKE, 1), one(OVERWRITE, 2)], KeyCommand::Rename)
        .doc("1.0.0", "O(1)", "key newkey", "Gives a key another name."),
    key("renamenx",     3, Generic, WRITES_FAST, Put,      &[one(TAKE, 1), one(INSERT, 2)],    KeyCommand::Renamenx)
        .doc("1.0.0", "O(1)", "key newkey", "Gives a key another name, if that is free."),
    key("restore",     -4, Generic, GROWS,       Put,      &[one(OVERWRITE, 1)],               KeyCommand::Restore)
        .doc("2.6.0", "O(bytes of the value)",
             "key ttl serialized-value [REPLACE] [ABSTTL] [IDLETIME seconds] [FREQ frequency]",
             "Stores a value that DUMP returned, here or in Redis.").categories(&["@dangerous"]),
    keyspace_reader("scan",           -2, Generic, READS,      KeyspaceCommand::Scan)
        .doc("2.8.0", "O(COUNT) a call", "cursor [MATCH pattern] [COUNT count] [TYPE type]",
             "Walks over the keys.").tips(&["nondeterministic_output", "request_policy:special"]),
    keyspace_writer("swapdb",   3, Server, WRITES_FAST, KeyspaceCommand::Swapdb)
        .doc("4.0.0", "O(1), and O(watched keys that are absent)", "index1 index2", "Exchanges two databases.")
        .categories(&["@keyspace", "@dangerous"]),
    key("touch",       -2, Generic, READS_FAST,  Multiget, &[rest(PROBE, 1, 1)],               KeyCommand::Exists)
        .doc("3.2.1", "O(number of keys)", "key [key ...]",
             "Counts how many of the keys exist, and counts as a use of them.").tips(SUM_OF_SHARDS),
    key("ttl",          2, Generic, READS_FAST,  Get,      &[one(READ, 1)],                    KeyCommand::Ttl)
        .doc("1.0.0", "O(1)", "key", "Returns the seconds until a key expires.").tips(VARIES),
    key("type",         2, Generic, READS_FAST,  Get,      &[one(PROBE, 1)],                   KeyCommand::Type)
        .doc("1.0.0", "O(1)", "key", "Returns the type of a key."),
    key("unlink",      -2, Generic, WRITES_FAST, Put,      &[rest(DELETE, 1, 1)],              KeyCommand::Del)
        .doc("4.0.0", "O(number of keys, and of elements up to 128 of each)", "key [key ...]", "Deletes keys.")
        .tips(SUM_OF_SHARDS),
];

#[rustfmt::skip]
const OBJECT: &[Spec] = &[
    key("object|encoding", 3, Generic, READS, Get, &[one(PROBE, 2)], KeyCommand::Encoding)
        .doc("2.2.3", "O(1)", "key", "Names the encoding that Redis would choose.").tips(VARIES),
    key("object|freq",     3, Generic, READS, Get, &[one(PROBE, 2)], KeyCommand::Freq)
        .doc("4.0.0", "O(1)", "key", "Refused: access frequencies are not tracked.").tips(VARIES),
    help("object|help", Generic, "6.2.0", "Lists the subcommands of OBJECT."),
    key("object|idletime", 3, Generic, READS, Get, &[one(PROBE, 2)], KeyCommand::Idletime)
        .doc("2.2.3", "O(1)", "key", "Always 0: nothing depends on how long a key was idle.").tips(VARIES),
    key("object|refcount", 3, Generic, READS, Get, &[one(PROBE, 2)], KeyCommand::Refcount)
        .doc("2.2.3", "O(1)", "key", "Always 1.").tips(VARIES),
];

#[rustfmt::skip]
const MEMORY: &[Spec] = &[
    report("memory|doctor",       2, Server, Flags::NONE, Memory(MemoryCommand::Doctor))
        .doc("4.0.0", "O(1)", "", "Tells of problems with the tenant’s memory.").tips(VARIES_BY_NODE),
    help("memory|help", Server, "4.0.0", "Lists the subcommands of MEMORY."),
    report("memory|malloc-stats", 2, Server, Flags::NONE, Memory(MemoryCommand::MallocStats))
        .doc("4.0.0", "O(1)", "", "Says that the allocator is not told of by tenant.").tips(VARIES_BY_NODE),
    report("memory|stats",        2, Server, Flags::NONE, Memory(MemoryCommand::Stats))
        .doc("4.0.0", "O(1)", "", "Tells what the tenant’s memory is used for.").tips(VARIES_BY_NODE),
    key("memory|usage", -3, Server, READS, Get, &[one(PROBE, 2)], KeyCommand::MemoryUsage)
        .doc("4.0.0", "O(samples)", "key [SAMPLES count]", "Estimates the bytes that a key takes."),
];
