//! Sorted sets: members, and sets together.

use telemetry::Class::{Get, Put, Scan};

use crate::data::SortedSetCommand;
use crate::keyspec::{counted, one, OVERWRITE, PROBE, READ, READ_UPDATE, REMOVE, TAKE, UPDATE};
use crate::spec::Group::SortedSet;
use crate::spec::Spec;

use super::shapes::{sorted_set, GROWS, GROWS_FAST, READS, READS_FAST, WRITES, WRITES_FAST};

/// Commands on members of sorted sets, and on several sets.
#[rustfmt::skip]
pub(super) const SORTED_SETS: &[Spec] = &[
    sorted_set("zadd",        -4, SortedSet, GROWS_FAST,  Put,  &[one(UPDATE, 1)],                      SortedSetCommand::Zadd)
        .doc("1.2.0", "O(log N) a member",
             "key [NX | XX] [GT | LT] [CH] [INCR] score member [score member ...]",
             "Adds members to a sorted set, or changes their scores."),
    sorted_set("zcard",        2, SortedSet, READS_FAST,  Get,  &[one(PROBE, 1)],                       SortedSetCommand::Zcard)
        .doc("1.2.0", "O(1)", "key", "Returns the number of members of a sorted set."),
    sorted_set("zdiff",       -3, SortedSet, READS,       Scan, &[counted(READ, 1)],                    SortedSetCommand::Zdiff)
        .doc("6.2.0", "O(members of all sets)", "numkeys key [key ...] [WITHSCORES]",
             "Returns what the first sorted set has and the others have not."),
    sorted_set("zdiffstore",  -4, SortedSet, GROWS,       Scan, &[one(OVERWRITE, 1), counted(READ, 2)], SortedSetCommand::Zdiffstore)
        .doc("6.2.0", "O(members of all sets)", "destination numkeys key [key ...]",
             "Stores what the first sorted set has and the others have not."),
    sorted_set("zincrby",      4, SortedSet, GROWS_FAST,  Put,  &[one(READ_UPDATE, 1)],                 SortedSetCommand::Zincrby)
        .doc("1.2.0", "O(log N)", "key increment member", "Adds to the score of a member."),
    sorted_set("zinter",      -3, SortedSet, READS,       Scan, &[counted(READ, 1)],                    SortedSetCommand::Zinter)
        .doc("6.2.0", "O(members of all sets)",
             "numkeys key [key ...] [WEIGHTS weight [weight ...]] [AGGREGATE <SUM | MIN | MAX>] [WITHSCORES]",
             "Returns what all of the sorted sets have."),
    sorted_set("zintercard",  -3, SortedSet, READS,       Scan, &[counted(READ, 1)],                    SortedSetCommand::Zintercard)
        .doc("7.0.0", "O(members of all sets)", "numkeys key [key ...] [LIMIT limit]",
             "Counts what all of the sorted sets have."),
    sorted_set("zinterstore", -4, SortedSet, GROWS,       Scan, &[one(OVERWRITE, 1), counted(READ, 2)], SortedSetCommand::Zinterstore)
        .doc("2.0.0", "O(members of all sets)",
             "destination numkeys key [key ...] [WEIGHTS weight [weight ...]] [AGGREGATE <SUM | MIN | MAX>]",
             "Stores what all of the sorted sets have."),
    sorted_set("zmpop",       -4, SortedSet, WRITES,      Put,  &[counted(TAKE, 1)],                      SortedSetCommand::Zmpop)
        .doc("7.0.0", "O(number of keys + log N + members removed)",
             "numkeys key [key ...] <MIN | MAX> [COUNT count]",
             "Removes and returns members with the lowest or highest scores of the first set that has any."),
    sorted_set("zmscore",     -3, SortedSet, READS_FAST,  Get,  &[one(READ, 1)],                        SortedSetCommand::Zmscore)
        .doc("6.2.0", "O(members named)", "key member [member ...]", "Returns the scores of several members."),
    sorted_set("zpopmax",     -2, SortedSet, WRITES_FAST, Put,  &[one(TAKE, 1)],                        SortedSetCommand::Zpopmax)
        .doc("5.0.0", "O(log N + members removed)", "key [count]",
             "Removes and returns the members with the highest scores."),
    sorted_set("zpopmin",     -2, SortedSet, WRITES_FAST, Put,  &[one(TAKE, 1)],                        SortedSetCommand::Zpopmin)
        .doc("5.0.0", "O(log N + members removed)", "key [count]",
             "Removes and returns the members with the lowest scores."),
    sorted_set("zrem",        -3, SortedSet, WRITES_FAST, Put,  &[one(REMOVE, 1)],                      SortedSetCommand::Zrem)
        .doc("1.2.0", "O(log N) a member", "key member [member ...]", "Removes members of a sorted set."),
    sorted_set("zscore",       3, SortedSet, READS_FAST,  Get,  &[one(READ, 1)],                        SortedSetCommand::Zscore)
        .doc("1.2.0", "O(1)", "key member", "Returns the score of a member."),
    sorted_set("zunion",      -3, SortedSet, READS,       Scan, &[counted(READ, 1)],                    SortedSetCommand::Zunion)
        .doc("6.2.0", "O(members of all sets)",
             "numkeys key [key ...] [WEIGHTS weight [weight ...]] [AGGREGATE <SUM | MIN | MAX>] [WITHSCORES]",
             "Returns what any of the sorted sets has."),
    sorted_set("zunionstore", -4, SortedSet, GROWS,       Scan, &[one(OVERWRITE, 1), counted(READ, 2)], SortedSetCommand::Zunionstore)
        .doc("2.0.0", "O(members of all sets)",
             "destination numkeys key [key ...] [WEIGHTS weight [weight ...]] [AGGREGATE <SUM | MIN | MAX>]",
             "Stores what any of the sorted sets has."),
];
