//! Hashes.

use telemetry::Class::{Get, Put, Scan};

use crate::data::HashCommand;
use crate::keyspec::{one, ADD, PROBE, READ, READ_UPDATE, REMOVE, UPDATE};
use crate::spec::Group::Hash;
use crate::spec::Spec;

use super::shapes::{hash, GROWS_FAST, READS, READS_FAST, VARIES, VARIES_IN_ORDER, WRITES_FAST};

/// Commands on hashes.
#[rustfmt::skip]
pub(super) const HASHES: &[Spec] = &[
    hash("hdel",         -3, Hash, WRITES_FAST, Put,  &[one(REMOVE, 1)],      HashCommand::Hdel)
        .doc("2.0.0", "O(fields named)", "key field [field ...]", "Deletes fields of a hash."),
    hash("hexists",       3, Hash, READS_FAST,  Get,  &[one(PROBE, 1)],       HashCommand::Hexists)
        .doc("2.0.0", "O(1)", "key field", "Tells whether a hash has a field."),
    hash("hget",          3, Hash, READS_FAST,  Get,  &[one(READ, 1)],        HashCommand::Hget)
        .doc("2.0.0", "O(1)", "key field", "Returns the value of a field."),
    hash("hgetall",       2, Hash, READS,       Scan, &[one(READ, 1)],        HashCommand::Hgetall)
        .doc("2.0.0", "O(fields)", "key", "Returns every field and value of a hash.").tips(VARIES_IN_ORDER),
    hash("hincrby",       4, Hash, GROWS_FAST,  Put,  &[one(READ_UPDATE, 1)], HashCommand::Hincrby)
        .doc("2.0.0", "O(1)", "key field increment", "Adds an integer to the number in a field."),
    hash("hincrbyfloat",  4, Hash, GROWS_FAST,  Put,  &[one(READ_UPDATE, 1)], HashCommand::Hincrbyfloat)
        .doc("2.6.0", "O(1)", "key field increment", "Adds a decimal fraction to the number in a field."),
    hash("hkeys",         2, Hash, READS,       Scan, &[one(READ, 1)],        HashCommand::Hkeys)
        .doc("2.0.0", "O(fields)", "key", "Returns every field of a hash.").tips(VARIES_IN_ORDER),
    hash("hlen",          2, Hash, READS_FAST,  Get,  &[one(PROBE, 1)],       HashCommand::Hlen)
        .doc("2.0.0", "O(1)", "key", "Returns the number of fields of a hash."),
    hash("hmget",        -3, Hash, READS_FAST,  Get,  &[one(READ, 1)],        HashCommand::Hmget)
        .doc("2.0.0", "O(fields named)", "key field [field ...]", "Returns the values of several fields."),
    hash("hmset",        -4, Hash, GROWS_FAST,  Put,  &[one(UPDATE, 1)],      HashCommand::Hmset)
        .doc("2.0.0", "O(fields named)", "key field value [field value ...]", "Sets several fields of a hash."),
    hash("hrandfield",   -2, Hash, READS,       Scan, &[one(READ, 1)],        HashCommand::Hrandfield)
        .doc("6.2.0", "O(fields)", "key [count [WITHVALUES]]", "Returns random fields of a hash.").tips(VARIES),
    hash("hscan",        -3, Hash, READS,       Scan, &[one(READ, 1)],        HashCommand::Hscan)
        .doc("2.8.0", "O(COUNT) a call", "key cursor [MATCH pattern] [COUNT count]",
             "Walks over the fields and values of a hash.").tips(VARIES),
    hash("hset",         -4, Hash, GROWS_FAST,  Put,  &[one(UPDATE, 1)],      HashCommand::Hset)
        .doc("2.0.0", "O(fields named)", "key field value [field value ...]", "Sets fields of a hash."),
    hash("hsetnx",        4, Hash, GROWS_FAST,  Put,  &[one(ADD, 1)],         HashCommand::Hsetnx)
        .doc("2.0.0", "O(1)", "key field value", "Sets a field of a hash if it does not exist."),
    hash("hstrlen",       3, Hash, READS_FAST,  Get,  &[one(PROBE, 1)],       HashCommand::Hstrlen)
        .doc("3.2.0", "O(1)", "key field", "Returns the length of the value of a field."),
    hash("hvals",         2, Hash, READS,       Scan, &[one(READ, 1)],        HashCommand::Hvals)
        .doc("2.0.0", "O(fields)", "key", "Returns every value of a hash.").tips(VARIES_IN_ORDER),
];
