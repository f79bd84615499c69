//! Sorted sets: ranges and ranks.

use telemetry::Class::Scan;

use crate::commands::keyspec::{one, OVERWRITE, READ, REMOVE};
use crate::commands::sorted_sets as sets;
use crate::commands::spec::Group::SortedSet;
use crate::commands::spec::Spec;

use super::shapes::{data, GROWS, READS, READS_FAST, VARIES, WRITES};

/// Commands on ranges and ranks of sorted sets.
#[rustfmt::skip]
pub(super) const SORTED_SET_RANGES: &[Spec] = &[
    data("zcount",            4, SortedSet, READS_FAST, Scan, &[one(READ, 1)],                    sets::zcount)
        .doc("2.0.0", "O(log N + members counted)", "key min max",
             "Counts the members with a score in a range."),
    data("zlexcount",         4, SortedSet, READS_FAST, Scan, &[one(READ, 1)],                    sets::zlexcount)
        .doc("2.8.9", "O(log N + members counted)", "key min max", "Counts the members in a range of names."),
    data("zrandmember",      -2, SortedSet, READS,      Scan, &[one(READ, 1)],                    sets::zrandmember)
        .doc("6.2.0", "O(N)", "key [count [WITHSCORES]]", "Returns random members of a sorted set.")
        .tips(VARIES),
    data("zrange",           -4, SortedSet, READS,      Scan, &[one(READ, 1)],                    sets::zrange)
        .doc("1.2.0", "O(log N + members returned and, before them, skipped)",
             "key start stop [BYSCORE | BYLEX] [REV] [LIMIT offset count] [WITHSCORES]",
             "Returns the members in a range of ranks, scores or names."),
    data("zrangebylex",      -4, SortedSet, READS,      Scan, &[one(READ, 1)],                    sets::zrangebylex)
        .doc("2.8.9", "O(log N + offset + members returned)", "key min max [LIMIT offset count]",
             "Returns the members in a range of names."),
    data("zrangebyscore",    -4, SortedSet, READS,      Scan, &[one(READ, 1)],                    sets::zrangebyscore)
        .doc("1.0.5", "O(log N + offset + members returned)", "key min max [WITHSCORES] [LIMIT offset count]",
             "Returns the members with a score in a range."),
    data("zrangestore",      -5, SortedSet, GROWS,      Scan, &[one(OVERWRITE, 1), one(READ, 2)], sets::zrangestore)
        .doc("6.2.0", "O(log N + members stored and, before them, skipped)",
             "dst src min max [BYSCORE | BYLEX] [REV] [LIMIT offset count]",
             "Stores the members in a range of another sorted set."),
    data("zrank",             3, SortedSet, READS_FAST, Scan, &[one(READ, 1)],                    sets::zrank)
        .doc("2.0.0", "O(rank)", "key member", "Returns how many members come before this one."),
    data("zremrangebylex",    4, SortedSet, WRITES,     Scan, &[one(REMOVE, 1)],                  sets::zremrangebylex)
        .doc("2.8.9", "O(log N + members removed)", "key min max", "Removes the members in a range of names."),
    data("zremrangebyrank",   4, SortedSet, WRITES,     Scan, &[one(REMOVE, 1)],                  sets::zremrangebyrank)
        .doc("2.0.0", "O(members removed and, before them, skipped)", "key start stop",
             "Removes the members in a range of ranks."),
    data("zremrangebyscore",  4, SortedSet, WRITES,     Scan, &[one(REMOVE, 1)],                  sets::zremrangebyscore)
        .doc("1.2.0", "O(log N + members removed)", "key min max",
             "Removes the members with a score in a range."),
    data("zrevrange",        -4, SortedSet, READS,      Scan, &[one(READ, 1)],                    sets::zrevrange)
        .doc("1.2.0", "O(members returned and, before them, skipped)", "key start stop [WITHSCORES]",
             "Returns the members in a range of ranks, the highest score first."),
    data("zrevrangebylex",   -4, SortedSet, READS,      Scan, &[one(READ, 1)],                    sets::zrevrangebylex)
        .doc("2.8.9", "O(log N + offset + members returned)", "key max min [LIMIT offset count]",
             "Returns the members in a range of names, the last first."),
    data("zrevrangebyscore", -4, SortedSet, READS,      Scan, &[one(READ, 1)],                    sets::zrevrangebyscore)
        .doc("2.2.0", "O(log N + offset + members returned)", "key max min [WITHSCORES] [LIMIT offset count]",
             "Returns the members with a score in a range, the highest first."),
    data("zrevrank",          3, SortedSet, READS_FAST, Scan, &[one(READ, 1)],                    sets::zrevrank)
        .doc("2.0.0", "O(rank from the lowest score)", "key member",
             "Returns how many members come after this one."),
    data("zscan",            -3, SortedSet, READS,      Scan, &[one(READ, 1)],                    sets::zscan)
        .doc("2.8.0", "O(COUNT) a call", "key cursor [MATCH pattern] [COUNT count]",
             "Walks over the members and scores of a sorted set.").tips(VARIES),
];
