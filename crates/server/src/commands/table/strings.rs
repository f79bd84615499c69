//! Strings and bitmaps.

use telemetry::Class;

use crate::commands::keyspec::{
    KeySpec, ADD, INSERT, OVERWRITE, PROBE, READ, READ_UPDATE, TAKE, UPDATE, VARIABLE,
};
use crate::commands::spec::{Flags, Group, Handler, Spec};
use crate::commands::strings;

/// Commands on strings.
pub(super) const STRINGS: &[Spec] = &[
    Spec::new("append", 3, Group::String, Handler::Data(strings::append))
        .flags(Flags::WRITE.and(Flags::DENYOOM).and(Flags::FAST))
        .keys(&[KeySpec::one(ADD, 1)])
        .class(Class::Put)
        .doc(
            "2.0.0",
            "O(length of the value)",
            "key value",
            "Appends to a string, which is created when there is none.",
        ),
    Spec::new("decr", 2, Group::String, Handler::Data(strings::decr))
        .flags(Flags::WRITE.and(Flags::DENYOOM).and(Flags::FAST))
        .keys(&[KeySpec::one(READ_UPDATE, 1)])
        .class(Class::Put)
        .doc("1.0.0", "O(1)", "key", "Takes one from a number."),
    Spec::new("decrby", 3, Group::String, Handler::Data(strings::decrby))
        .flags(Flags::WRITE.and(Flags::DENYOOM).and(Flags::FAST))
        .keys(&[KeySpec::one(READ_UPDATE, 1)])
        .class(Class::Put)
        .doc(
            "1.0.0",
            "O(1)",
            "key decrement",
            "Takes an integer from a number.",
        ),
    Spec::new("get", 2, Group::String, Handler::Data(strings::get))
        .flags(Flags::READONLY.and(Flags::FAST))
        .keys(&[KeySpec::one(READ, 1)])
        .class(Class::Get)
        .doc("1.0.0", "O(1)", "key", "Returns a string."),
    Spec::new("getdel", 2, Group::String, Handler::Data(strings::getdel))
        .flags(Flags::WRITE.and(Flags::FAST))
        .keys(&[KeySpec::one(TAKE, 1)])
        .class(Class::Put)
        .doc(
            "6.2.0",
            "O(1)",
            "key",
            "Returns a string and deletes its key.",
        ),
    Spec::new("getex", -2, Group::String, Handler::Data(strings::getex))
        .flags(Flags::WRITE.and(Flags::FAST))
        .keys(&[KeySpec::one(READ_UPDATE, 1)])
        .class(Class::Put)
        .doc(
            "6.2.0",
            "O(1)",
            "key [EX seconds | PX milliseconds | EXAT unix-time-seconds | \
                PXAT unix-time-milliseconds | PERSIST]",
            "Returns a string and sets or removes its expiry.",
        ),
    Spec::new(
        "getrange",
        4,
        Group::String,
        Handler::Data(strings::getrange),
    )
    .flags(Flags::READONLY)
    .keys(&[KeySpec::one(READ, 1)])
    .class(Class::Get)
    .doc(
        "2.4.0",
        "O(bytes returned)",
        "key start end",
        "Returns a part of a string.",
    ),
    Spec::new("getset", 3, Group::String, Handler::Data(strings::getset))
        .flags(Flags::WRITE.and(Flags::DENYOOM).and(Flags::FAST))
        .keys(&[KeySpec::one(READ_UPDATE, 1)])
        .class(Class::Put)
        .doc(
            "1.0.0",
            "O(1)",
            "key value",
            "Sets a string and returns what it was.",
        ),
    Spec::new("incr", 2, Group::String, Handler::Data(strings::incr))
        .flags(Flags::WRITE.and(Flags::DENYOOM).and(Flags::FAST))
        .keys(&[KeySpec::one(READ_UPDATE, 1)])
        .class(Class::Put)
        .doc("1.0.0", "O(1)", "key", "Adds one to a number."),
    Spec::new("incrby", 3, Group::String, Handler::Data(strings::incrby))
        .flags(Flags::WRITE.and(Flags::DENYOOM).and(Flags::FAST))
        .keys(&[KeySpec::one(READ_UPDATE, 1)])
        .class(Class::Put)
        .doc(
            "1.0.0",
            "O(1)",
            "key increment",
            "Adds an integer to a number.",
        ),
    Spec::new(
        "incrbyfloat",
        3,
        Group::String,
        Handler::Data(strings::incrbyfloat),
    )
    .flags(Flags::WRITE.and(Flags::DENYOOM).and(Flags::FAST))
    .keys(&[KeySpec::one(READ_UPDATE, 1)])
    .class(Class::Put)
    .doc(
        "2.6.0",
        "O(1)",
        "key increment",
        "Adds a decimal fraction to a number.",
    ),
    Spec::new("lcs", -3, Group::String, Handler::Data(strings::lcs))
        .flags(Flags::READONLY)
        .keys(&[KeySpec::pair(READ, 1)])
        .class(Class::Multiget)
        .doc(
            "7.0.0",
            "O(N*M) in the lengths of the strings",
            "key1 key2 [LEN] [IDX] [MINMATCHLEN length] [WITHMATCHLEN]",
            "Finds the longest common subsequence of two strings.",
        ),
    Spec::new("mget", -2, Group::String, Handler::Data(strings::mget))
        .flags(Flags::READONLY.and(Flags::FAST))
        .keys(&[KeySpec::rest(READ, 1, 1)])
        .tips(&["request_policy:multi_shard"])
        .class(Class::Multiget)
        .doc(
            "1.0.0",
            "O(number of keys)",
            "key [key ...]",
            "Returns several strings.",
        ),
    Spec::new("mset", -3, Group::String, Handler::Data(strings::mset))
        .flags(Flags::WRITE.and(Flags::DENYOOM))
        .keys(&[KeySpec::rest(OVERWRITE, 1, 2)])
        .tips(&[
            "request_policy:multi_shard",
            "response_policy:all_succeeded",
        ])
        .class(Class::Multiget)
        .doc(
            "1.0.1",
            "O(number of keys)",
            "key value [key value ...]",
            "Sets several strings at once.",
        ),
    Spec::new("msetnx", -3, Group::String, Handler::Data(strings::msetnx))
        .flags(Flags::WRITE.and(Flags::DENYOOM))
        .keys(&[KeySpec::rest(INSERT, 1, 2)])
        .tips(&["request_policy:multi_shard", "response_policy:agg_min"])
        .class(Class::Multiget)
        .doc(
            "1.0.1",
            "O(number of keys)",
            "key value [key value ...]",
            "Sets several strings at once, if none of the keys exists.",
        ),
    Spec::new("psetex", 4, Group::String, Handler::Data(strings::psetex))
        .flags(Flags::WRITE.and(Flags::DENYOOM))
        .keys(&[KeySpec::one(OVERWRITE, 1)])
        .class(Class::Put)
        .doc(
            "2.6.0",
            "O(1)",
            "key milliseconds value",
            "Sets a string that expires after so many milliseconds.",
        ),
    Spec::new("set", -3, Group::String, Handler::Data(strings::set))
        .flags(Flags::WRITE.and(Flags::DENYOOM))
        .keys(&[KeySpec::one(VARIABLE, 1)])
        .class(Class::Put)
        .doc(
            "1.0.0",
            "O(1)",
            "key value [NX | XX] [GET] [EX seconds | PX milliseconds | EXAT \
                unix-time-seconds | PXAT unix-time-milliseconds | KEEPTTL]",
            "Sets a string, whatever was there before.",
        ),
    Spec::new("setex", 4, Group::String, Handler::Data(strings::setex))
        .flags(Flags::WRITE.and(Flags::DENYOOM))
        .keys(&[KeySpec::one(OVERWRITE, 1)])
        .class(Class::Put)
        .doc(
            "2.0.0",
            "O(1)",
            "key seconds value",
            "Sets a string that expires after so many seconds.",
        ),
    Spec::new("setnx", 3, Group::String, Handler::Data(strings::setnx))
        .flags(Flags::WRITE.and(Flags::DENYOOM).and(Flags::FAST))
        .keys(&[KeySpec::one(INSERT, 1)])
        .class(Class::Put)
        .doc(
            "1.0.0",
            "O(1)",
            "key value",
            "Sets a string if its key does not exist.",
        ),
    Spec::new(
        "setrange",
        4,
        Group::String,
        Handler::Data(strings::setrange),
    )
    .flags(Flags::WRITE.and(Flags::DENYOOM))
    .keys(&[KeySpec::one(UPDATE, 1)])
    .class(Class::Put)
    .doc(
        "2.2.0",
        "O(length of the value)",
        "key offset value",
        "Overwrites a part of a string.",
    ),
    Spec::new("strlen", 2, Group::String, Handler::Data(strings::strlen))
        .flags(Flags::READONLY.and(Flags::FAST))
        .keys(&[KeySpec::one(PROBE, 1)])
        .class(Class::Get)
        .doc("2.2.0", "O(1)", "key", "Returns the length of a string."),
    Spec::new("substr", 4, Group::String, Handler::Data(strings::getrange))
        .flags(Flags::READONLY)
        .keys(&[KeySpec::one(READ, 1)])
        .class(Class::Get)
        .doc(
            "1.0.0",
            "O(bytes returned)",
            "key start end",
            "The former name of GETRANGE.",
        ),
    Spec::new(
        "bitcount",
        -2,
        Group::Bitmap,
        Handler::Data(strings::bitcount),
    )
    .flags(Flags::READONLY)
    .keys(&[KeySpec::one(READ, 1)])
    .class(Class::Get)
    .doc(
        "2.6.0",
        "O(bytes looked through)",
        "key [start end [BYTE | BIT]]",
        "Counts the bits that are set.",
    ),
    Spec::new("bitop", -4, Group::Bitmap, Handler::Data(strings::bitop))
        .flags(Flags::WRITE.and(Flags::DENYOOM))
        .keys(&[KeySpec::one(OVERWRITE, 2), KeySpec::rest(READ, 3, 1)])
        .class(Class::Multiget)
        .doc(
            "2.6.0",
            "O(sum of the lengths of different sources)",
            "AND | OR | XOR | NOT destkey key [key ...]",
            "Combines strings bit by bit and stores the result.",
        ),
    Spec::new("bitpos", -3, Group::Bitmap, Handler::Data(strings::bitpos))
        .flags(Flags::READONLY)
        .keys(&[KeySpec::one(READ, 1)])
        .class(Class::Get)
        .doc(
            "2.8.7",
            "O(bytes looked through)",
            "key bit [start [end [BYTE | BIT]]]",
            "Finds the first bit that is set or clear.",
        ),
    Spec::new("getbit", 3, Group::Bitmap, Handler::Data(strings::getbit))
        .flags(Flags::READONLY.and(Flags::FAST))
        .keys(&[KeySpec::one(READ, 1)])
        .class(Class::Get)
        .doc(
            "2.2.0",
            "O(1)",
            "key offset",
            "Returns one bit of a string.",
        ),
    Spec::new("setbit", 4, Group::Bitmap, Handler::Data(strings::setbit))
        .flags(Flags::WRITE.and(Flags::DENYOOM))
        .keys(&[KeySpec::one(READ_UPDATE, 1)])
        .class(Class::Put)
        .doc(
            "2.2.0",
            "O(1)",
            "key offset value",
            "Sets or clears one bit of a string.",
        ),
];
