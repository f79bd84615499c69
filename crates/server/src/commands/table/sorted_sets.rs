//! Sorted sets: members, and sets together.

use telemetry::Class::{Get, Put, Scan};

use crate::commands::keyspec::{
    counted, one, OVERWRITE, PROBE, READ, READ_UPDATE, REMOVE, TAKE, UPDATE,
};
use crate::commands::sorted_sets as sets;
use crate::commands::spec::Group::SortedSet;
use crate::commands::spec::Spec;

use super::shapes::{data, GROWS, GROWS_FAST, READS, READS_FAST, WRITES, WRITES_FAST};

/// Commands on members of sorted sets, and on several sets.
#[rustfmt::skip]
pub(super) const SORTED_SETS: &[Spec] = &[
    data("zadd",        -4, SortedSet, GROWS_FAST,  Put,  &[one(UPDATE, 1)],                      sets::zadd)
        .doc("1.2.0", "O(log N) a member",
             "key [NX | XX] [GT | LT] [CH] [INCR] score member [score member ...]",
             "Adds members to a sorted set, or changes their scores."),
    data("zcard",        2, SortedSet, READS_FAST,  Get,  &[one(PROBE, 1)],                       sets::zcard)
        .doc("1.2.0", "O(1)", "key", "Returns the number of members of a sorted set."),
    data("zdiff",       -3, SortedSet, READS,       Scan, &[counted(READ, 1)],                    sets::zdiff)
        .doc("6.2.0", "O(members of all sets)", "numkeys key [key ...] [WITHSCORES]",
             "Returns what the first sorted set has and the others have not."),
    data("zdiffstore",  -4, SortedSet, GROWS,       Scan, &[one(OVERWRITE, 1), counted(READ, 2)], sets::zdiffstore)
        .doc("6.2.0", "O(members of all sets)", "destination numkeys key [key ...]",
             "Stores what the first sorted set has and the others have not."),
    data("zincrby",      4, SortedSet, GROWS_FAST,  Put,  &[one(READ_UPDATE, 1)],                 sets::zincrby)
        .doc("1.2.0", "O(log N)", "key increment member", "Adds to the score of a member."),
    data("zinter",      -3, SortedSet, READS,       Scan, &[counted(READ, 1)],                    sets::zinter)
        .doc("6.2.0", "O(members of all sets)",
             "numkeys key [key ...] [WEIGHTS weight [weight ...]] [AGGREGATE <SUM | MIN | MAX>] [WITHSCORES]",
             "Returns what all of the sorted sets have."),
    data("zintercard",  -3, SortedSet, READS,       Scan, &[counted(READ, 1)],                    sets::zintercard)
        .doc("7.0.0", "O(members of all sets)", "numkeys key [key ...] [LIMIT limit]",
             "Counts what all of the sorted sets have."),
    data("zinterstore", -4, SortedSet, GROWS,       Scan, &[one(OVERWRITE, 1), counted(READ, 2)], sets::zinterstore)
        .doc("2.0.0", "O(members of all sets)",
             "destination numkeys key [key ...] [WEIGHTS weight [weight ...]] [AGGREGATE <SUM | MIN | MAX>]",
             "Stores what all of the sorted sets have."),
    data("zmpop",       -4, SortedSet, WRITES,      Put,  &[counted(TAKE, 1)],                      sets::zmpop)
        .doc("7.0.0", "O(number of keys + log N + members removed)",
             "numkeys key [key ...] <MIN | MAX> [COUNT count]",
             "Removes and returns members with the lowest or highest scores of the first set that has any."),
    data("zmscore",     -3, SortedSet, READS_FAST,  Get,  &[one(READ, 1)],                        sets::zmscore)
        .doc("6.2.0", "O(members named)", "key member [member ...]", "Returns the scores of several members."),
    data("zpopmax",     -2, SortedSet, WRITES_FAST, Put,  &[one(TAKE, 1)],                        sets::zpopmax)
        .doc("5.0.0", "O(log N + members removed)", "key [count]",
             "Removes and returns the members with the highest scores."),
    data("zpopmin",     -2, SortedSet, WRITES_FAST, Put,  &[one(TAKE, 1)],                        sets::zpopmin)
        .doc("5.0.0", "O(log N + members removed)", "key [count]",
             "Removes and returns the members with the lowest scores."),
    data("zrem",        -3, SortedSet, WRITES_FAST, Put,  &[one(REMOVE, 1)],                      sets::zrem)
        .doc("1.2.0", "O(log N) a member", "key member [member ...]", "Removes members of a sorted set."),
    data("zscore",       3, SortedSet, READS_FAST,  Get,  &[one(READ, 1)],                        sets::zscore)
        .doc("1.2.0", "O(1)", "key member", "Returns the score of a member."),
    data("zunion",      -3, SortedSet, READS,       Scan, &[counted(READ, 1)],                    sets::zunion)
        .doc("6.2.0", "O(members of all sets)",
             "numkeys key [key ...] [WEIGHTS weight [weight ...]] [AGGREGATE <SUM | MIN | MAX>] [WITHSCORES]",
             "Returns what any of the sorted sets has."),
    data("zunionstore", -4, SortedSet, GROWS,       Scan, &[one(OVERWRITE, 1), counted(READ, 2)], sets::zunionstore)
        .doc("2.0.0", "O(members of all sets)",
             "destination numkeys key [key ...] [WEIGHTS weight [weight ...]] [AGGREGATE <SUM | MIN | MAX>]",
             "Stores what any of the sorted sets has."),
];
