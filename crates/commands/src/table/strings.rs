//! Strings and bitmaps.

use telemetry::Class::{Get, Multiget, Put};

use crate::data::StringCommand;
use crate::keyspec::{
    one, pair, rest, ADD, INSERT, OVERWRITE, PROBE, READ, READ_UPDATE, TAKE, UPDATE, VARIABLE,
};
use crate::spec::Group::{Bitmap, String};
use crate::spec::Spec;

use super::shapes::{string, GROWS, GROWS_FAST, READS, READS_FAST, WRITES_FAST};

/// Commands on strings.
#[rustfmt::skip]
pub(super) const STRINGS: &[Spec] = &[
    string("append",       3, String, GROWS_FAST,  Put,      &[one(ADD, 1)],                         StringCommand::Append)
        .doc("2.0.0", "O(length of the value)", "key value",
             "Appends to a string, which is created when there is none."),
    string("decr",         2, String, GROWS_FAST,  Put,      &[one(READ_UPDATE, 1)],                 StringCommand::Decr)
        .doc("1.0.0", "O(1)", "key", "Takes one from a number."),
    string("decrby",       3, String, GROWS_FAST,  Put,      &[one(READ_UPDATE, 1)],                 StringCommand::Decrby)
        .doc("1.0.0", "O(1)", "key decrement", "Takes an integer from a number."),
    string("get",          2, String, READS_FAST,  Get,      &[one(READ, 1)],                        StringCommand::Get)
        .doc("1.0.0", "O(1)", "key", "Returns a string."),
    string("getdel",       2, String, WRITES_FAST, Put,      &[one(TAKE, 1)],                        StringCommand::Getdel)
        .doc("6.2.0", "O(1)", "key", "Returns a string and deletes its key."),
    string("getex",       -2, String, WRITES_FAST, Put,      &[one(READ_UPDATE, 1)],                 StringCommand::Getex)
        .doc("6.2.0", "O(1)",
             "key [EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT unix-time-milliseconds \
              | PERSIST]", "Returns a string and sets or removes its expiry."),
    string("getrange",     4, String, READS,       Get,      &[one(READ, 1)],                        StringCommand::Getrange)
        .doc("2.4.0", "O(bytes returned)", "key start end", "Returns a part of a string."),
    string("getset",       3, String, GROWS_FAST,  Put,      &[one(READ_UPDATE, 1)],                 StringCommand::Getset)
        .doc("1.0.0", "O(1)", "key value", "Sets a string and returns what it was."),
    string("incr",         2, String, GROWS_FAST,  Put,      &[one(READ_UPDATE, 1)],                 StringCommand::Incr)
        .doc("1.0.0", "O(1)", "key", "Adds one to a number."),
    string("incrby",       3, String, GROWS_FAST,  Put,      &[one(READ_UPDATE, 1)],                 StringCommand::Incrby)
        .doc("1.0.0", "O(1)", "key increment", "Adds an integer to a number."),
    string("incrbyfloat",  3, String, GROWS_FAST,  Put,      &[one(READ_UPDATE, 1)],                 StringCommand::Incrbyfloat)
        .doc("2.6.0", "O(1)", "key increment", "Adds a decimal fraction to a number."),
    string("lcs",         -3, String, READS,       Multiget, &[pair(READ, 1)],                       StringCommand::Lcs)
        .doc("7.0.0", "O(N*M) in the lengths of the strings",
             "key1 key2 [LEN] [IDX] [MINMATCHLEN len] [WITHMATCHLEN]",
             "Finds the longest common subsequence of two strings."),
    string("mget",        -2, String, READS_FAST,  Multiget, &[rest(READ, 1, 1)],                    StringCommand::Mget)
        .doc("1.0.0", "O(number of keys)", "key [key ...]", "Returns several strings.")
        .tips(&["request_policy:multi_shard"]),
    string("mset",        -3, String, GROWS,       Multiget, &[rest(OVERWRITE, 1, 2)],               StringCommand::Mset)
        .doc("1.0.1", "O(number of keys)", "key value [key value ...]", "Sets several strings at once.")
        .tips(&["request_policy:multi_shard", "response_policy:all_succeeded"]),
    string("msetnx",      -3, String, GROWS,       Multiget, &[rest(INSERT, 1, 2)],                  StringCommand::Msetnx)
        .doc("1.0.1", "O(number of keys)", "key value [key value ...]",
             "Sets several strings at once, if none of the keys exists.")
        .tips(&["request_policy:multi_shard", "response_policy:agg_min"]),
    string("psetex",       4, String, GROWS,       Put,      &[one(OVERWRITE, 1)],                   StringCommand::Psetex)
        .doc("2.6.0", "O(1)", "key milliseconds value",
             "Sets a string that expires after a number of milliseconds."),
    string("set",         -3, String, GROWS,       Put,      &[one(VARIABLE, 1)],                    StringCommand::Set)
        .doc("1.0.0", "O(1)",
             "key value [NX | XX] [GET] [EX seconds | PX milliseconds | EXAT unix-time-seconds \
              | PXAT unix-time-milliseconds | KEEPTTL]", "Sets a string, whatever was there before."),
    string("setex",        4, String, GROWS,       Put,      &[one(OVERWRITE, 1)],                   StringCommand::Setex)
        .doc("2.0.0", "O(1)", "key seconds value", "Sets a string that expires after a number of seconds."),
    string("setnx",        3, String, GROWS_FAST,  Put,      &[one(INSERT, 1)],                      StringCommand::Setnx)
        .doc("1.0.0", "O(1)", "key value", "Sets a string if its key does not exist."),
    string("setrange",     4, String, GROWS,       Put,      &[one(UPDATE, 1)],                      StringCommand::Setrange)
        .doc("2.2.0", "O(length of the value)", "key offset value", "Overwrites a part of a string."),
    string("strlen",       2, String, READS_FAST,  Get,      &[one(PROBE, 1)],                       StringCommand::Strlen)
        .doc("2.2.0", "O(1)", "key", "Returns the length of a string."),
    string("substr",       4, String, READS,       Get,      &[one(READ, 1)],                        StringCommand::Getrange)
        .doc("1.0.0", "O(bytes returned)", "key start end", "The former name of GETRANGE."),
    string("bitcount",    -2, Bitmap, READS,       Get,      &[one(READ, 1)],                        StringCommand::Bitcount)
        .doc("2.6.0", "O(bytes looked through)", "key [start end [BYTE | BIT]]",
             "Counts the bits that are set."),
    string("bitfield",    -2, Bitmap, GROWS,       Put,      &[one(VARIABLE, 1)],                    StringCommand::Bitfield)
        .doc("3.2.0", "O(operations, and pieces of the string that they are on)",
             "key [GET encoding offset | [OVERFLOW <WRAP | SAT | FAIL>] \
              <SET encoding offset value | INCRBY encoding offset increment> ...]",
             "Reads, sets and adds to integers of any width at any place of a string."),
    string("bitfield_ro", -2, Bitmap, READS_FAST,  Get,      &[one(READ, 1)],                        StringCommand::Bitfield)
        .doc("6.0.0", "O(operations, and pieces of the string that they are on)", "key [GET encoding offset ...]",
             "Reads integers of any width at any place of a string."),
    string("bitop",       -4, Bitmap, GROWS,       Multiget, &[one(OVERWRITE, 2), rest(READ, 3, 1)], StringCommand::Bitop)
        .doc("2.6.0", "O(sum of the lengths of different sources)",
             "<AND | OR | XOR | NOT> destkey key [key ...]",
             "Combines strings bit by bit and stores the result."),
    string("bitpos",      -3, Bitmap, READS,       Get,      &[one(READ, 1)],                        StringCommand::Bitpos)
        .doc("2.8.7", "O(bytes looked through)", "key bit [start [end [BYTE | BIT]]]",
             "Finds the first bit that is set or clear."),
    string("getbit",       3, Bitmap, READS_FAST,  Get,      &[one(READ, 1)],                        StringCommand::Getbit)
        .doc("2.2.0", "O(1)", "key offset", "Returns one bit of a string."),
    string("setbit",       4, Bitmap, GROWS,       Put,      &[one(READ_UPDATE, 1)],                 StringCommand::Setbit)
        .doc("2.2.0", "O(1)", "key offset value", "Sets or clears one bit of a string."),
];
