//! Strings and bitmaps.

use telemetry::Class::{Get, Multiget, Put};

use crate::commands::keyspec::{
    one, pair, rest, ADD, INSERT, OVERWRITE, PROBE, READ, READ_UPDATE, TAKE, UPDATE, VARIABLE,
};
use crate::commands::spec::Group::{Bitmap, String};
use crate::commands::spec::Spec;
use crate::commands::strings;

use super::shapes::{data, GROWS, GROWS_FAST, READS, READS_FAST, WRITES_FAST};

/// Commands on strings.
#[rustfmt::skip]
pub(super) const STRINGS: &[Spec] = &[
    data("append",       3, String, GROWS_FAST,  Put,      &[one(ADD, 1)],                         strings::append)
        .doc("2.0.0", "O(length of the value)", "key value",
             "Appends to a string, which is created when there is none."),
    data("decr",         2, String, GROWS_FAST,  Put,      &[one(READ_UPDATE, 1)],                 strings::decr)
        .doc("1.0.0", "O(1)", "key", "Takes one from a number."),
    data("decrby",       3, String, GROWS_FAST,  Put,      &[one(READ_UPDATE, 1)],                 strings::decrby)
        .doc("1.0.0", "O(1)", "key decrement", "Takes an integer from a number."),
    data("get",          2, String, READS_FAST,  Get,      &[one(READ, 1)],                        strings::get)
        .doc("1.0.0", "O(1)", "key", "Returns a string."),
    data("getdel",       2, String, WRITES_FAST, Put,      &[one(TAKE, 1)],                        strings::getdel)
        .doc("6.2.0", "O(1)", "key", "Returns a string and deletes its key."),
    data("getex",       -2, String, WRITES_FAST, Put,      &[one(READ_UPDATE, 1)],                 strings::getex)
        .doc("6.2.0", "O(1)",
             "key [EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT unix-time-milliseconds \
              | PERSIST]", "Returns a string and sets or removes its expiry."),
    data("getrange",     4, String, READS,       Get,      &[one(READ, 1)],                        strings::getrange)
        .doc("2.4.0", "O(bytes returned)", "key start end", "Returns a part of a string."),
    data("getset",       3, String, GROWS_FAST,  Put,      &[one(READ_UPDATE, 1)],                 strings::getset)
        .doc("1.0.0", "O(1)", "key value", "Sets a string and returns what it was."),
    data("incr",         2, String, GROWS_FAST,  Put,      &[one(READ_UPDATE, 1)],                 strings::incr)
        .doc("1.0.0", "O(1)", "key", "Adds one to a number."),
    data("incrby",       3, String, GROWS_FAST,  Put,      &[one(READ_UPDATE, 1)],                 strings::incrby)
        .doc("1.0.0", "O(1)", "key increment", "Adds an integer to a number."),
    data("incrbyfloat",  3, String, GROWS_FAST,  Put,      &[one(READ_UPDATE, 1)],                 strings::incrbyfloat)
        .doc("2.6.0", "O(1)", "key increment", "Adds a decimal fraction to a number."),
    data("lcs",         -3, String, READS,       Multiget, &[pair(READ, 1)],                       strings::lcs)
        .doc("7.0.0", "O(N*M) in the lengths of the strings",
             "key1 key2 [LEN] [IDX] [MINMATCHLEN len] [WITHMATCHLEN]",
             "Finds the longest common subsequence of two strings."),
    data("mget",        -2, String, READS_FAST,  Multiget, &[rest(READ, 1, 1)],                    strings::mget)
        .doc("1.0.0", "O(number of keys)", "key [key ...]", "Returns several strings.")
        .tips(&["request_policy:multi_shard"]),
    data("mset",        -3, String, GROWS,       Multiget, &[rest(OVERWRITE, 1, 2)],               strings::mset)
        .doc("1.0.1", "O(number of keys)", "key value [key value ...]", "Sets several strings at once.")
        .tips(&["request_policy:multi_shard", "response_policy:all_succeeded"]),
    data("msetnx",      -3, String, GROWS,       Multiget, &[rest(INSERT, 1, 2)],                  strings::msetnx)
        .doc("1.0.1", "O(number of keys)", "key value [key value ...]",
             "Sets several strings at once, if none of the keys exists.")
        .tips(&["request_policy:multi_shard", "response_policy:agg_min"]),
    data("psetex",       4, String, GROWS,       Put,      &[one(OVERWRITE, 1)],                   strings::psetex)
        .doc("2.6.0", "O(1)", "key milliseconds value",
             "Sets a string that expires after so many milliseconds."),
    data("set",         -3, String, GROWS,       Put,      &[one(VARIABLE, 1)],                    strings::set)
        .doc("1.0.0", "O(1)",
             "key value [NX | XX] [GET] [EX seconds | PX milliseconds | EXAT unix-time-seconds \
              | PXAT unix-time-milliseconds | KEEPTTL]", "Sets a string, whatever was there before."),
    data("setex",        4, String, GROWS,       Put,      &[one(OVERWRITE, 1)],                   strings::setex)
        .doc("2.0.0", "O(1)", "key seconds value", "Sets a string that expires after so many seconds."),
    data("setnx",        3, String, GROWS_FAST,  Put,      &[one(INSERT, 1)],                      strings::setnx)
        .doc("1.0.0", "O(1)", "key value", "Sets a string if its key does not exist."),
    data("setrange",     4, String, GROWS,       Put,      &[one(UPDATE, 1)],                      strings::setrange)
        .doc("2.2.0", "O(length of the value)", "key offset value", "Overwrites a part of a string."),
    data("strlen",       2, String, READS_FAST,  Get,      &[one(PROBE, 1)],                       strings::strlen)
        .doc("2.2.0", "O(1)", "key", "Returns the length of a string."),
    data("substr",       4, String, READS,       Get,      &[one(READ, 1)],                        strings::getrange)
        .doc("1.0.0", "O(bytes returned)", "key start end", "The former name of GETRANGE."),
    data("bitcount",    -2, Bitmap, READS,       Get,      &[one(READ, 1)],                        strings::bitcount)
        .doc("2.6.0", "O(bytes looked through)", "key [start end [BYTE | BIT]]",
             "Counts the bits that are set."),
    data("bitfield",    -2, Bitmap, GROWS,       Put,      &[one(VARIABLE, 1)],                    strings::bitfield)
        .doc("3.2.0", "O(operations, and pieces of the string that they are on)",
             "key [GET encoding offset | [OVERFLOW <WRAP | SAT | FAIL>] \
              <SET encoding offset value | INCRBY encoding offset increment> ...]",
             "Reads, sets and adds to integers of any width at any place of a string."),
    data("bitfield_ro", -2, Bitmap, READS_FAST,  Get,      &[one(READ, 1)],                        strings::bitfield)
        .doc("6.0.0", "O(operations, and pieces of the string that they are on)", "key [GET encoding offset ...]",
             "Reads integers of any width at any place of a string."),
    data("bitop",       -4, Bitmap, GROWS,       Multiget, &[one(OVERWRITE, 2), rest(READ, 3, 1)], strings::bitop)
        .doc("2.6.0", "O(sum of the lengths of different sources)",
             "<AND | OR | XOR | NOT> destkey key [key ...]",
             "Combines strings bit by bit and stores the result."),
    data("bitpos",      -3, Bitmap, READS,       Get,      &[one(READ, 1)],                        strings::bitpos)
        .doc("2.8.7", "O(bytes looked through)", "key bit [start [end [BYTE | BIT]]]",
             "Finds the first bit that is set or clear."),
    data("getbit",       3, Bitmap, READS_FAST,  Get,      &[one(READ, 1)],                        strings::getbit)
        .doc("2.2.0", "O(1)", "key offset", "Returns one bit of a string."),
    data("setbit",       4, Bitmap, GROWS,       Put,      &[one(READ_UPDATE, 1)],                 strings::setbit)
        .doc("2.2.0", "O(1)", "key offset value", "Sets or clears one bit of a string."),
];
