//! Hashes.

use telemetry::Class;

use crate::commands::hashes;
use crate::commands::keyspec::{KeySpec, ADD, PROBE, READ, READ_UPDATE, REMOVE, UPDATE};
use crate::commands::spec::{Flags, Group, Handler, Spec};

/// Commands on hashes.
pub(super) const HASHES: &[Spec] = &[
    Spec::new("hdel", -3, Group::Hash, Handler::Data(hashes::hdel))
        .flags(Flags::WRITE.and(Flags::FAST))
        .keys(&[KeySpec::one(REMOVE, 1)])
        .class(Class::Put)
        .doc(
            "2.0.0",
            "O(fields named)",
            "key field [field ...]",
            "Deletes fields of a hash.",
        ),
    Spec::new("hexists", 3, Group::Hash, Handler::Data(hashes::hexists))
        .flags(Flags::READONLY.and(Flags::FAST))
        .keys(&[KeySpec::one(PROBE, 1)])
        .class(Class::Get)
        .doc(
            "2.0.0",
            "O(1)",
            "key field",
            "Tells whether a hash has a field.",
        ),
    Spec::new("hget", 3, Group::Hash, Handler::Data(hashes::hget))
        .flags(Flags::READONLY.and(Flags::FAST))
        .keys(&[KeySpec::one(READ, 1)])
        .class(Class::Get)
        .doc(
            "2.0.0",
            "O(1)",
            "key field",
            "Returns the value of a field.",
        ),
    Spec::new("hgetall", 2, Group::Hash, Handler::Data(hashes::hgetall))
        .flags(Flags::READONLY)
        .keys(&[KeySpec::one(READ, 1)])
        .tips(&["nondeterministic_output_order"])
        .class(Class::Scan)
        .doc(
            "2.0.0",
            "O(fields)",
            "key",
            "Returns every field and value of a hash.",
        ),
    Spec::new("hincrby", 4, Group::Hash, Handler::Data(hashes::hincrby))
        .flags(Flags::WRITE.and(Flags::DENYOOM).and(Flags::FAST))
        .keys(&[KeySpec::one(READ_UPDATE, 1)])
        .class(Class::Put)
        .doc(
            "2.0.0",
            "O(1)",
            "key field increment",
            "Adds an integer to the number in a field.",
        ),
    Spec::new(
        "hincrbyfloat",
        4,
        Group::Hash,
        Handler::Data(hashes::hincrbyfloat),
    )
    .flags(Flags::WRITE.and(Flags::DENYOOM).and(Flags::FAST))
    .keys(&[KeySpec::one(READ_UPDATE, 1)])
    .class(Class::Put)
    .doc(
        "2.6.0",
        "O(1)",
        "key field increment",
        "Adds a decimal fraction to the number in a field.",
    ),
    Spec::new("hkeys", 2, Group::Hash, Handler::Data(hashes::hkeys))
        .flags(Flags::READONLY)
        .keys(&[KeySpec::one(READ, 1)])
        .tips(&["nondeterministic_output_order"])
        .class(Class::Scan)
        .doc(
            "2.0.0",
            "O(fields)",
            "key",
            "Returns every field of a hash.",
        ),
    Spec::new("hlen", 2, Group::Hash, Handler::Data(hashes::hlen))
        .flags(Flags::READONLY.and(Flags::FAST))
        .keys(&[KeySpec::one(PROBE, 1)])
        .class(Class::Get)
        .doc(
            "2.0.0",
            "O(1)",
            "key",
            "Returns the number of fields of a hash.",
        ),
    Spec::new("hmget", -3, Group::Hash, Handler::Data(hashes::hmget))
        .flags(Flags::READONLY.and(Flags::FAST))
        .keys(&[KeySpec::one(READ, 1)])
        .class(Class::Get)
        .doc(
            "2.0.0",
            "O(fields named)",
            "key field [field ...]",
            "Returns the values of several fields.",
        ),
    Spec::new("hmset", -4, Group::Hash, Handler::Data(hashes::hmset))
        .flags(Flags::WRITE.and(Flags::DENYOOM).and(Flags::FAST))
        .keys(&[KeySpec::one(UPDATE, 1)])
        .class(Class::Put)
        .doc(
            "2.0.0",
            "O(fields named)",
            "key field value [field value ...]",
            "Sets several fields of a hash.",
        ),
    Spec::new(
        "hrandfield",
        -2,
        Group::Hash,
        Handler::Data(hashes::hrandfield),
    )
    .flags(Flags::READONLY)
    .keys(&[KeySpec::one(READ, 1)])
    .tips(&["nondeterministic_output"])
    .class(Class::Scan)
    .doc(
        "6.2.0",
        "O(fields)",
        "key [count [WITHVALUES]]",
        "Returns random fields of a hash.",
    ),
    Spec::new("hscan", -3, Group::Hash, Handler::Data(hashes::hscan))
        .flags(Flags::READONLY)
        .keys(&[KeySpec::one(READ, 1)])
        .tips(&["nondeterministic_output"])
        .class(Class::Scan)
        .doc(
            "2.8.0",
            "O(COUNT) a call",
            "key cursor [MATCH pattern] [COUNT count]",
            "Walks over the fields and values of a hash.",
        ),
    Spec::new("hset", -4, Group::Hash, Handler::Data(hashes::hset))
        .flags(Flags::WRITE.and(Flags::DENYOOM).and(Flags::FAST))
        .keys(&[KeySpec::one(UPDATE, 1)])
        .class(Class::Put)
        .doc(
            "2.0.0",
            "O(fields named)",
            "key field value [field value ...]",
            "Sets fields of a hash.",
        ),
    Spec::new("hsetnx", 4, Group::Hash, Handler::Data(hashes::hsetnx))
        .flags(Flags::WRITE.and(Flags::DENYOOM).and(Flags::FAST))
        .keys(&[KeySpec::one(ADD, 1)])
        .class(Class::Put)
        .doc(
            "2.0.0",
            "O(1)",
            "key field value",
            "Sets a field of a hash if it does not exist.",
        ),
    Spec::new("hstrlen", 3, Group::Hash, Handler::Data(hashes::hstrlen))
        .flags(Flags::READONLY.and(Flags::FAST))
        .keys(&[KeySpec::one(PROBE, 1)])
        .class(Class::Get)
        .doc(
            "3.2.0",
            "O(1)",
            "key field",
            "Returns the length of the value of a field.",
        ),
    Spec::new("hvals", 2, Group::Hash, Handler::Data(hashes::hvals))
        .flags(Flags::READONLY)
        .keys(&[KeySpec::one(READ, 1)])
        .tips(&["nondeterministic_output_order"])
        .class(Class::Scan)
        .doc(
            "2.0.0",
            "O(fields)",
            "key",
            "Returns every value of a hash.",
        ),
];
