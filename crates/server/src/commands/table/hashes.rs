//! Hashes.

use telemetry::Class::{Get, Put, Scan};

use crate::commands::hashes;
use crate::commands::keyspec::{one, ADD, PROBE, READ, READ_UPDATE, REMOVE, UPDATE};
use crate::commands::spec::Group::Hash;
use crate::commands::spec::Spec;

use super::shapes::{data, GROWS_FAST, READS, READS_FAST, VARIES, VARIES_IN_ORDER, WRITES_FAST};

/// Commands on hashes.
#[rustfmt::skip]
pub(super) const HASHES: &[Spec] = &[
    data("hdel",         -3, Hash, WRITES_FAST, Put,  &[one(REMOVE, 1)],      hashes::hdel)
        .doc("2.0.0", "O(fields named)", "key field [field ...]", "Deletes fields of a hash."),
    data("hexists",       3, Hash, READS_FAST,  Get,  &[one(PROBE, 1)],       hashes::hexists)
        .doc("2.0.0", "O(1)", "key field", "Tells whether a hash has a field."),
    data("hget",          3, Hash, READS_FAST,  Get,  &[one(READ, 1)],        hashes::hget)
        .doc("2.0.0", "O(1)", "key field", "Returns the value of a field."),
    data("hgetall",       2, Hash, READS,       Scan, &[one(READ, 1)],        hashes::hgetall)
        .doc("2.0.0", "O(fields)", "key", "Returns every field and value of a hash.").tips(VARIES_IN_ORDER),
    data("hincrby",       4, Hash, GROWS_FAST,  Put,  &[one(READ_UPDATE, 1)], hashes::hincrby)
        .doc("2.0.0", "O(1)", "key field increment", "Adds an integer to the number in a field."),
    data("hincrbyfloat",  4, Hash, GROWS_FAST,  Put,  &[one(READ_UPDATE, 1)], hashes::hincrbyfloat)
        .doc("2.6.0", "O(1)", "key field increment", "Adds a decimal fraction to the number in a field."),
    data("hkeys",         2, Hash, READS,       Scan, &[one(READ, 1)],        hashes::hkeys)
        .doc("2.0.0", "O(fields)", "key", "Returns every field of a hash.").tips(VARIES_IN_ORDER),
    data("hlen",          2, Hash, READS_FAST,  Get,  &[one(PROBE, 1)],       hashes::hlen)
        .doc("2.0.0", "O(1)", "key", "Returns the number of fields of a hash."),
    data("hmget",        -3, Hash, READS_FAST,  Get,  &[one(READ, 1)],        hashes::hmget)
        .doc("2.0.0", "O(fields named)", "key field [field ...]", "Returns the values of several fields."),
    data("hmset",        -4, Hash, GROWS_FAST,  Put,  &[one(UPDATE, 1)],      hashes::hmset)
        .doc("2.0.0", "O(fields named)", "key field value [field value ...]", "Sets several fields of a hash."),
    data("hrandfield",   -2, Hash, READS,       Scan, &[one(READ, 1)],        hashes::hrandfield)
        .doc("6.2.0", "O(fields)", "key [count [WITHVALUES]]", "Returns random fields of a hash.").tips(VARIES),
    data("hscan",        -3, Hash, READS,       Scan, &[one(READ, 1)],        hashes::hscan)
        .doc("2.8.0", "O(COUNT) a call", "key cursor [MATCH pattern] [COUNT count]",
             "Walks over the fields and values of a hash.").tips(VARIES),
    data("hset",         -4, Hash, GROWS_FAST,  Put,  &[one(UPDATE, 1)],      hashes::hset)
        .doc("2.0.0", "O(fields named)", "key field value [field value ...]", "Sets fields of a hash."),
    data("hsetnx",        4, Hash, GROWS_FAST,  Put,  &[one(ADD, 1)],         hashes::hsetnx)
        .doc("2.0.0", "O(1)", "key field value", "Sets a field of a hash if it does not exist."),
    data("hstrlen",       3, Hash, READS_FAST,  Get,  &[one(PROBE, 1)],       hashes::hstrlen)
        .doc("3.2.0", "O(1)", "key field", "Returns the length of the value of a field."),
    data("hvals",         2, Hash, READS,       Scan, &[one(READ, 1)],        hashes::hvals)
        .doc("2.0.0", "O(fields)", "key", "Returns every value of a hash.").tips(VARIES_IN_ORDER),
];
