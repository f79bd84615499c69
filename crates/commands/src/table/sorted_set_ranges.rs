//! Sorted sets: ranges and ranks.

use telemetry::Class::Scan;

use crate::data::SortedSetCommand;
use crate::keyspec::{one, OVERWRITE, READ, REMOVE};
use crate::spec::Group::SortedSet;
use crate::spec::Spec;

use super::shapes::{sorted_set, GROWS, READS, READS_FAST, VARIES, WRITES};

/// Commands on ranges and ranks of sorted sets.
#[rustfmt::skip]
pub(super) const SORTED_SET_RANGES: &[Spec] = &[
    sorted_set("zcount",            4, SortedSet, READS_FAST, Scan, &[one(READ, 1)],                    SortedSetCommand::Zcount)
        .doc("2.0.0", "O(log N + members counted)", "key min max",
             "Counts the members with a score in a range."),
    sorted_set("zlexcount",         4, SortedSet, READS_FAST, Scan, &[one(READ, 1)],                    SortedSetCommand::Zlexcount)
        .doc("2.8.9", "O(log N + members counted)", "key min max", "Counts the members in a range of names."),
    sorted_set("zrandmember",      -2, SortedSet, READS,      Scan, &[one(READ, 1)],                    SortedSetCommand::Zrandmember)
        .doc("6.2.0", "O(N)", "key [count [WITHSCORES]]", "Returns random members of a sorted set.")
        .tips(VARIES),
    sorted_set("zrange",           -4, SortedSet, READS,      Scan, &[one(READ, 1)],                    SortedSetCommand::Zrange)
        .doc("1.2.0", "O(log N + members returned and, before them, skipped)",
             "key start stop [BYSCORE | BYLEX] [REV] [LIMIT offset count] [WITHSCORES]",
             "Returns the members in a range of ranks, scores or names."),
    sorted_set("zrangebylex",      -4, SortedSet, READS,      Scan, &[one(READ, 1)],                    SortedSetCommand::Zrangebylex)
        .doc("2.8.9", "O(log N + offset + members returned)", "key min max [LIMIT offset count]",
             "Returns the members in a range of names."),
    sorted_set("zrangebyscore",    -4, SortedSet, READS,      Scan, &[one(READ, 1)],                    SortedSetCommand::Zrangebyscore)
        .doc("1.0.5", "O(log N + offset + members returned)", "key min max [WITHSCORES] [LIMIT offset count]",
             "Returns the members with a score in a range."),
    sorted_set("zrangestore",      -5, SortedSet, GROWS,      Scan, &[one(OVERWRITE, 1), one(READ, 2)], SortedSetCommand::Zrangestore)
        .doc("6.2.0", "O(log N + members stored and, before them, skipped)",
             "dst src min max [BYSCORE | BYLEX] [REV] [LIMIT offset count]",
             "Stores the members in a range of another sorted set."),
    sorted_set("zrank",             3, SortedSet, READS_FAST, Scan, &[one(READ, 1)],                    SortedSetCommand::Zrank)
        .doc("2.0.0", "O(rank)", "key member", "Returns how many members come before this one."),
    sorted_set("zremrangebylex",    4, SortedSet, WRITES,     Scan, &[one(REMOVE, 1)],                  SortedSetCommand::Zremrangebylex)
        .doc("2.8.9", "O(log N + members removed)", "key min max", "Removes the members in a range of names."),
    sorted_set("zremrangebyrank",   4, SortedSet, WRITES,     Scan, &[one(REMOVE, 1)],                  SortedSetCommand::Zremrangebyrank)
        .doc("2.0.0", "O(members removed and, before them, skipped)", "key start stop",
             "Removes the members in a range of ranks."),
    sorted_set("zremrangebyscore",  4, SortedSet, WRITES,     Scan, &[one(REMOVE, 1)],                  SortedSetCommand::Zremrangebyscore)
        .doc("1.2.0", "O(log N + members removed)", "key min max",
             "Removes the members with a score in a range."),
    sorted_set("zrevrange",        -4, SortedSet, READS,      Scan, &[one(READ, 1)],                    SortedSetCommand::Zrevrange)
        .doc("1.2.0", "O(members returned and, before them, skipped)", "key start stop [WITHSCORES]",
             "Returns the members in a range of ranks, the highest score first."),
    sorted_set("zrevrangebylex",   -4, SortedSet, READS,      Scan, &[one(READ, 1)],                    SortedSetCommand::Zrevrangebylex)
        .doc("2.8.9", "O(log N + offset + members returned)", "key max min [LIMIT offset count]",
             "Returns the members in a range of names, the last first."),
    sorted_set("zrevrangebyscore", -4, SortedSet, READS,      Scan, &[one(READ, 1)],                    SortedSetCommand::Zrevrangebyscore)
        .doc("2.2.0", "O(log N + offset + members returned)", "key max min [WITHSCORES] [LIMIT offset count]",
             "Returns the members with a score in a range, the highest first."),
    sorted_set("zrevrank",          3, SortedSet, READS_FAST, Scan, &[one(READ, 1)],                    SortedSetCommand::Zrevrank)
        .doc("2.0.0", "O(rank from the lowest score)", "key member",
             "Returns how many members come after this one."),
    sorted_set("zscan",            -3, SortedSet, READS,      Scan, &[one(READ, 1)],                    SortedSetCommand::Zscan)
        .doc("2.8.0", "O(COUNT) a call", "key cursor [MATCH pattern] [COUNT count]",
             "Walks over the members and scores of a sorted set.").tips(VARIES),
];
