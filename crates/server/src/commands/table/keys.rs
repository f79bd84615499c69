//! Keys of any type, and whole keyspaces.

use telemetry::Class;

use crate::commands::keyspec::{KeySpec, DELETE, INSERT, OVERWRITE, PROBE, READ, TAKE, UPDATE};
use crate::commands::spec::{Flags, Group, Handler, Spec};
use crate::commands::{introspect, keys, keyspace};

/// Commands on keys of any type and on whole keyspaces.
pub(super) const KEYS: &[Spec] = &[
    Spec::new("copy", -3, Group::Generic, Handler::Data(keys::copy))
        .flags(Flags::WRITE.and(Flags::DENYOOM))
        .keys(&[KeySpec::one(READ, 1), KeySpec::one(OVERWRITE, 2)])
        .class(Class::Put)
        .doc(
            "6.2.0",
            "O(elements)",
            "source destination [DB 0] [REPLACE]",
            "Copies a key.",
        ),
    Spec::new(
        "dbsize",
        1,
        Group::Server,
        Handler::Keyspace(keyspace::dbsize),
    )
    .flags(Flags::READONLY.and(Flags::FAST))
    .categories(&["@keyspace"])
    .tips(&["request_policy:all_shards", "response_policy:agg_sum"])
    .class(Class::Scan)
    .doc(
        "1.0.0",
        "O(keys) up to 100,000, an estimate beyond",
        "",
        "Returns the number of keys.",
    ),
    Spec::new("del", -2, Group::Generic, Handler::Data(keys::del))
        .flags(Flags::WRITE)
        .keys(&[KeySpec::rest(DELETE, 1, 1)])
        .tips(&["request_policy:multi_shard", "response_policy:agg_sum"])
        .class(Class::Put)
        .doc(
            "1.0.0",
            "O(number of keys, and of elements up to 128 of each)",
            "key [key ...]",
            "Deletes keys.",
        ),
    Spec::new(
        "entremet.range",
        -3,
        Group::Generic,
        Handler::Keyspace(keyspace::range),
    )
    .flags(Flags::READONLY)
    .class(Class::Scan)
    .doc(
        "Entremet 0.1",
        "O(COUNT)",
        "start end [COUNT count] [KEYS | VALUES]",
        "Returns keys in byte order, with their values.",
    ),
    Spec::new("exists", -2, Group::Generic, Handler::Data(keys::exists))
        .flags(Flags::READONLY.and(Flags::FAST))
        .keys(&[KeySpec::rest(PROBE, 1, 1)])
        .tips(&["request_policy:multi_shard", "response_policy:agg_sum"])
        .class(Class::Multiget)
        .doc(
            "1.0.0",
            "O(number of keys)",
            "key [key ...]",
            "Counts how many of the keys exist.",
        ),
    Spec::new("expire", -3, Group::Generic, Handler::Data(keys::expire))
        .flags(Flags::WRITE.and(Flags::FAST))
        .keys(&[KeySpec::one(UPDATE, 1)])
        .class(Class::Put)
        .doc(
            "1.0.0",
            "O(1)",
            "key seconds [NX | XX | GT | LT]",
            "Lets a key expire after so many seconds.",
        ),
    Spec::new(
        "expireat",
        -3,
        Group::Generic,
        Handler::Data(keys::expireat),
    )
    .flags(Flags::WRITE.and(Flags::FAST))
    .keys(&[KeySpec::one(UPDATE, 1)])
    .class(Class::Put)
    .doc(
        "1.2.0",
        "O(1)",
        "key unix-time-seconds [NX | XX | GT | LT]",
        "Lets a key expire at a time.",
    ),
    Spec::new(
        "expiretime",
        2,
        Group::Generic,
        Handler::Data(keys::expiretime),
    )
    .flags(Flags::READONLY.and(Flags::FAST))
    .keys(&[KeySpec::one(READ, 1)])
    .class(Class::Get)
    .doc(
        "7.0.0",
        "O(1)",
        "key",
        "Returns the time at which a key expires, in seconds.",
    ),
    Spec::new(
        "flushall",
        -1,
        Group::Server,
        Handler::KeyspaceWriter(keyspace::flush),
    )
    .flags(Flags::WRITE)
    .categories(&["@keyspace", "@dangerous"])
    .tips(&["request_policy:all_shards", "response_policy:all_succeeded"])
    .class(Class::Put)
    .doc(
        "1.0.0",
        "O(1)",
        "[ASYNC | SYNC]",
        "Deletes every key of the tenant.",
    ),
    Spec::new(
        "flushdb",
        -1,
        Group::Server,
        Handler::KeyspaceWriter(keyspace::flush),
    )
    .flags(Flags::WRITE)
    .categories(&["@keyspace", "@dangerous"])
    .tips(&["request_policy:all_shards", "response_policy:all_succeeded"])
    .class(Class::Put)
    .doc(
        "1.0.0",
        "O(1)",
        "[ASYNC | SYNC]",
        "Deletes every key of the tenant.",
    ),
    Spec::new("keys", 2, Group::Generic, Handler::Keyspace(keyspace::keys))
        .flags(Flags::READONLY)
        .categories(&["@dangerous"])
        .tips(&["request_policy:all_shards", "nondeterministic_output_order"])
        .class(Class::Scan)
        .doc(
            "1.0.0",
            "O(keys with the literal start of the pattern)",
            "pattern",
            "Returns the keys that match a pattern.",
        ),
    Spec::new("memory", -2, Group::Server, Handler::Container)
        .subcommands(MEMORY)
        .doc("4.0.0", "", "", "Commands about memory."),
    Spec::new("object", -2, Group::Generic, Handler::Container)
        .subcommands(OBJECT)
        .doc("2.2.3", "", "", "Commands about objects."),
    Spec::new("persist", 2, Group::Generic, Handler::Data(keys::persist))
        .flags(Flags::WRITE.and(Flags::FAST))
        .keys(&[KeySpec::one(UPDATE, 1)])
        .class(Class::Put)
        .doc("2.2.0", "O(1)", "key", "Removes the expiry of a key."),
    Spec::new("pexpire", -3, Group::Generic, Handler::Data(keys::pexpire))
        .flags(Flags::WRITE.and(Flags::FAST))
        .keys(&[KeySpec::one(UPDATE, 1)])
        .class(Class::Put)
        .doc(
            "2.6.0",
            "O(1)",
            "key milliseconds [NX | XX | GT | LT]",
            "Lets a key expire after so many milliseconds.",
        ),
    Spec::new(
        "pexpireat",
        -3,
        Group::Generic,
        Handler::Data(keys::pexpireat),
    )
    .flags(Flags::WRITE.and(Flags::FAST))
    .keys(&[KeySpec::one(UPDATE, 1)])
    .class(Class::Put)
    .doc(
        "2.6.0",
        "O(1)",
        "key unix-time-milliseconds [NX | XX | GT | LT]",
        "Lets a key expire at a time given in milliseconds.",
    ),
    Spec::new(
        "pexpiretime",
        2,
        Group::Generic,
        Handler::Data(keys::pexpiretime),
    )
    .flags(Flags::READONLY.and(Flags::FAST))
    .keys(&[KeySpec::one(READ, 1)])
    .class(Class::Get)
    .doc(
        "7.0.0",
        "O(1)",
        "key",
        "Returns the time at which a key expires, in milliseconds.",
    ),
    Spec::new("pttl", 2, Group::Generic, Handler::Data(keys::pttl))
        .flags(Flags::READONLY.and(Flags::FAST))
        .keys(&[KeySpec::one(READ, 1)])
        .tips(&["nondeterministic_output"])
        .class(Class::Get)
        .doc(
            "2.6.0",
            "O(1)",
            "key",
            "Returns the milliseconds until a key expires.",
        ),
    Spec::new(
        "randomkey",
        1,
        Group::Generic,
        Handler::Keyspace(keyspace::randomkey),
    )
    .flags(Flags::READONLY)
    .tips(&["request_policy:all_shards", "nondeterministic_output"])
    .class(Class::Scan)
    .doc("1.0.0", "O(1)", "", "Returns a random key."),
    Spec::new("rename", 3, Group::Generic, Handler::Data(keys::rename))
        .flags(Flags::WRITE)
        .keys(&[KeySpec::one(TAKE, 1), KeySpec::one(OVERWRITE, 2)])
        .class(Class::Put)
        .doc("1.0.0", "O(1)", "key newkey", "Gives a key another name."),
    Spec::new("renamenx", 3, Group::Generic, Handler::Data(keys::renamenx))
        .flags(Flags::WRITE.and(Flags::FAST))
        .keys(&[KeySpec::one(TAKE, 1), KeySpec::one(INSERT, 2)])
        .class(Class::Put)
        .doc(
            "1.0.0",
            "O(1)",
            "key newkey",
            "Gives a key another name, if that is free.",
        ),
    Spec::new(
        "scan",
        -2,
        Group::Generic,
        Handler::Keyspace(keyspace::scan),
    )
    .flags(Flags::READONLY)
    .tips(&["nondeterministic_output", "request_policy:special"])
    .class(Class::Scan)
    .doc(
        "2.8.0",
        "O(COUNT) a call",
        "cursor [MATCH pattern] [COUNT count] [TYPE type]",
        "Walks over the keys.",
    ),
    Spec::new("touch", -2, Group::Generic, Handler::Data(keys::exists))
        .flags(Flags::READONLY.and(Flags::FAST))
        .keys(&[KeySpec::rest(PROBE, 1, 1)])
        .tips(&["request_policy:multi_shard", "response_policy:agg_sum"])
        .class(Class::Multiget)
        .doc(
            "3.2.1",
            "O(number of keys)",
            "key [key ...]",
            "Counts how many of the keys exist, and counts as a use of them.",
        ),
    Spec::new("ttl", 2, Group::Generic, Handler::Data(keys::ttl))
        .flags(Flags::READONLY.and(Flags::FAST))
        .keys(&[KeySpec::one(READ, 1)])
        .tips(&["nondeterministic_output"])
        .class(Class::Get)
        .doc(
            "1.0.0",
            "O(1)",
            "key",
            "Returns the seconds until a key expires.",
        ),
    Spec::new("type", 2, Group::Generic, Handler::Data(keys::type_of))
        .flags(Flags::READONLY.and(Flags::FAST))
        .keys(&[KeySpec::one(PROBE, 1)])
        .class(Class::Get)
        .doc("1.0.0", "O(1)", "key", "Returns the type of a key."),
    Spec::new("unlink", -2, Group::Generic, Handler::Data(keys::del))
        .flags(Flags::WRITE.and(Flags::FAST))
        .keys(&[KeySpec::rest(DELETE, 1, 1)])
        .tips(&["request_policy:multi_shard", "response_policy:agg_sum"])
        .class(Class::Put)
        .doc(
            "4.0.0",
            "O(number of keys, and of elements up to 128 of each)",
            "key [key ...]",
            "Deletes keys.",
        ),
];
const OBJECT: &[Spec] = &[
    Spec::new(
        "object|encoding",
        3,
        Group::Generic,
        Handler::Data(keys::encoding),
    )
    .flags(Flags::READONLY)
    .keys(&[KeySpec::one(PROBE, 2)])
    .tips(&["nondeterministic_output"])
    .class(Class::Get)
    .doc(
        "2.2.3",
        "O(1)",
        "key",
        "Names the encoding that Redis would choose.",
    ),
    Spec::new("object|freq", 3, Group::Generic, Handler::Data(keys::freq))
        .flags(Flags::READONLY)
        .keys(&[KeySpec::one(PROBE, 2)])
        .tips(&["nondeterministic_output"])
        .class(Class::Get)
        .doc(
            "4.0.0",
            "O(1)",
            "key",
            "Refused: access frequencies are not tracked.",
        ),
    Spec::new(
        "object|help",
        2,
        Group::Generic,
        Handler::Table(introspect::help),
    )
    .flags(Flags::LOADING.and(Flags::STALE))
    .doc("6.2.0", "O(1)", "", "Lists the subcommands of OBJECT."),
    Spec::new(
        "object|idletime",
        3,
        Group::Generic,
        Handler::Data(keys::idletime),
    )
    .flags(Flags::READONLY)
    .keys(&[KeySpec::one(PROBE, 2)])
    .tips(&["nondeterministic_output"])
    .class(Class::Get)
    .doc(
        "2.2.3",
        "O(1)",
        "key",
        "Always 0: nothing depends on how long a key was idle.",
    ),
    Spec::new(
        "object|refcount",
        3,
        Group::Generic,
        Handler::Data(keys::refcount),
    )
    .flags(Flags::READONLY)
    .keys(&[KeySpec::one(PROBE, 2)])
    .tips(&["nondeterministic_output"])
    .class(Class::Get)
    .doc("2.2.3", "O(1)", "key", "Always 1."),
];
const MEMORY: &[Spec] = &[
    Spec::new(
        "memory|help",
        2,
        Group::Server,
        Handler::Table(introspect::help),
    )
    .flags(Flags::LOADING.and(Flags::STALE))
    .doc("4.0.0", "O(1)", "", "Lists the subcommands of MEMORY."),
    Spec::new(
        "memory|usage",
        -3,
        Group::Server,
        Handler::Data(keys::memory_usage),
    )
    .flags(Flags::READONLY)
    .keys(&[KeySpec::one(PROBE, 2)])
    .class(Class::Get)
    .doc(
        "4.0.0",
        "O(samples)",
        "key [SAMPLES count]",
        "Estimates the bytes that a key takes.",
    ),
];
