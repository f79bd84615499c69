//! Sorted sets.

use telemetry::Class;

use crate::commands::keyspec::{
    KeySpec, OVERWRITE, PROBE, READ, READ_UPDATE, REMOVE, TAKE, UPDATE,
};
use crate::commands::sorted_sets;
use crate::commands::spec::{Flags, Group, Handler, Spec};

/// Commands on sorted sets.
pub(super) const SORTED_SETS: &[Spec] = &[
    Spec::new("zadd", -4, Group::SortedSet, Handler::Data(sorted_sets::zadd)).flags(Flags::WRITE.and(Flags::DENYOOM).and(Flags::FAST)).keys(&[KeySpec::one(UPDATE, 1)]).class(Class::Put)
        .doc("1.2.0", "O(log N) a member", "key [NX | XX] [GT | LT] [CH] [INCR] score member [score member ...]", "Adds members to a sorted set, or changes their scores."),
    Spec::new("zcard", 2, Group::SortedSet, Handler::Data(sorted_sets::zcard)).flags(Flags::READONLY.and(Flags::FAST)).keys(&[KeySpec::one(PROBE, 1)]).class(Class::Get)
        .doc("1.2.0", "O(1)", "key", "Returns the number of members of a sorted set."),
    Spec::new("zcount", 4, Group::SortedSet, Handler::Data(sorted_sets::zcount)).flags(Flags::READONLY.and(Flags::FAST)).keys(&[KeySpec::one(READ, 1)]).class(Class::Scan)
        .doc("2.0.0", "O(log N + members counted)", "key min max", "Counts the members with a score in a range."),
    Spec::new("zdiff", -3, Group::SortedSet, Handler::Data(sorted_sets::zdiff)).flags(Flags::READONLY).keys(&[KeySpec::counted(READ, 1)]).class(Class::Scan)
        .doc("6.2.0", "O(members of all sets)", "numkeys key [key ...] [WITHSCORES]", "Returns what the first sorted set has and the others have not."),
    Spec::new("zdiffstore", -4, Group::SortedSet, Handler::Data(sorted_sets::zdiffstore)).flags(Flags::WRITE.and(Flags::DENYOOM)).keys(&[KeySpec::one(OVERWRITE, 1), KeySpec::counted(READ, 2)]).class(Class::Scan)
        .doc("6.2.0", "O(members of all sets)", "destination numkeys key [key ...]", "Stores what the first sorted set has and the others have not."),
    Spec::new("zincrby", 4, Group::SortedSet, Handler::Data(sorted_sets::zincrby)).flags(Flags::WRITE.and(Flags::DENYOOM).and(Flags::FAST)).keys(&[KeySpec::one(READ_UPDATE, 1)]).class(Class::Put)
        .doc("1.2.0", "O(log N)", "key increment member", "Adds to the score of a member."),
    Spec::new("zinter", -3, Group::SortedSet, Handler::Data(sorted_sets::zinter)).flags(Flags::READONLY).keys(&[KeySpec::counted(READ, 1)]).class(Class::Scan)
        .doc("6.2.0", "O(members of all sets)", "numkeys key [key ...] [WEIGHTS weight [weight ...]] [AGGREGATE SUM | MIN | MAX] [WITHSCORES]", "Returns what all of the sorted sets have."),
    Spec::new("zintercard", -3, Group::SortedSet, Handler::Data(sorted_sets::zintercard)).flags(Flags::READONLY).keys(&[KeySpec::counted(READ, 1)]).class(Class::Scan)
        .doc("7.0.0", "O(members of all sets)", "numkeys key [key ...] [LIMIT limit]", "Counts what all of the sorted sets have."),
    Spec::new("zinterstore", -4, Group::SortedSet, Handler::Data(sorted_sets::zinterstore)).flags(Flags::WRITE.and(Flags::DENYOOM)).keys(&[KeySpec::one(OVERWRITE, 1), KeySpec::counted(READ, 2)]).class(Class::Scan)
        .doc("2.0.0", "O(members of all sets)", "destination numkeys key [key ...] [WEIGHTS weight [weight ...]] [AGGREGATE SUM | MIN | MAX]", "Stores what all of the sorted sets have."),
    Spec::new("zlexcount", 4, Group::SortedSet, Handler::Data(sorted_sets::zlexcount)).flags(Flags::READONLY.and(Flags::FAST)).keys(&[KeySpec::one(READ, 1)]).class(Class::Scan)
        .doc("2.8.9", "O(log N + members counted)", "key min max", "Counts the members in a range of names."),
    Spec::new("zmscore", -3, Group::SortedSet, Handler::Data(sorted_sets::zmscore)).flags(Flags::READONLY.and(Flags::FAST)).keys(&[KeySpec::one(READ, 1)]).class(Class::Get)
        .doc("6.2.0", "O(members named)", "key member [member ...]", "Returns the scores of several members."),
    Spec::new("zpopmax", -2, Group::SortedSet, Handler::Data(sorted_sets::zpopmax)).flags(Flags::WRITE.and(Flags::FAST)).keys(&[KeySpec::one(TAKE, 1)]).class(Class::Put)
        .doc("5.0.0", "O(log N + members removed)", "key [count]", "Removes and returns the members with the highest scores."),
    Spec::new("zpopmin", -2, Group::SortedSet, Handler::Data(sorted_sets::zpopmin)).flags(Flags::WRITE.and(Flags::FAST)).keys(&[KeySpec::one(TAKE, 1)]).class(Class::Put)
        .doc("5.0.0", "O(log N + members removed)", "key [count]", "Removes and returns the members with the lowest scores."),
    Spec::new("zrandmember", -2, Group::SortedSet, Handler::Data(sorted_sets::zrandmember)).flags(Flags::READONLY).keys(&[KeySpec::one(READ, 1)]).tips(&["nondeterministic_output"]).class(Class::Scan)
        .doc("6.2.0", "O(N)", "key [count [WITHSCORES]]", "Returns random members of a sorted set."),
    Spec::new("zrange", -4, Group::SortedSet, Handler::Data(sorted_sets::zrange)).flags(Flags::READONLY).keys(&[KeySpec::one(READ, 1)]).class(Class::Scan)
        .doc("1.2.0", "O(log N + members returned and, before them, skipped)", "key start stop [BYSCORE | BYLEX] [REV] [LIMIT offset count] [WITHSCORES]", "Returns the members in a range of ranks, scores or names."),
    Spec::new("zrangebylex", -4, Group::SortedSet, Handler::Data(sorted_sets::zrangebylex)).flags(Flags::READONLY).keys(&[KeySpec::one(READ, 1)]).class(Class::Scan)
        .doc("2.8.9", "O(log N + offset + members returned)", "key min max [LIMIT offset count]", "Returns the members in a range of names."),
    Spec::new("zrangebyscore", -4, Group::SortedSet, Handler::Data(sorted_sets::zrangebyscore)).flags(Flags::READONLY).keys(&[KeySpec::one(READ, 1)]).class(Class::Scan)
        .doc("1.0.5", "O(log N + offset + members returned)", "key min max [WITHSCORES] [LIMIT offset count]", "Returns the members with a score in a range."),
    Spec::new("zrangestore", -5, Group::SortedSet, Handler::Data(sorted_sets::zrangestore)).flags(Flags::WRITE.and(Flags::DENYOOM)).keys(&[KeySpec::one(OVERWRITE, 1), KeySpec::one(READ, 2)]).class(Class::Scan)
        .doc("6.2.0", "O(log N + members stored and, before them, skipped)", "dst src min max [BYSCORE | BYLEX] [REV] [LIMIT offset count]", "Stores the members in a range of another sorted set."),
    Spec::new("zrank", 3, Group::SortedSet, Handler::Data(sorted_sets::zrank)).flags(Flags::READONLY.and(Flags::FAST)).keys(&[KeySpec::one(READ, 1)]).class(Class::Scan)
        .doc("2.0.0", "O(rank)", "key member", "Returns how many members come before this one."),
    Spec::new("zrem", -3, Group::SortedSet, Handler::Data(sorted_sets::zrem)).flags(Flags::WRITE.and(Flags::FAST)).keys(&[KeySpec::one(REMOVE, 1)]).class(Class::Put)
        .doc("1.2.0", "O(log N) a member", "key member [member ...]", "Removes members of a sorted set."),
    Spec::new("zremrangebylex", 4, Group::SortedSet, Handler::Data(sorted_sets::zremrangebylex)).flags(Flags::WRITE).keys(&[KeySpec::one(REMOVE, 1)]).class(Class::Scan)
        .doc("2.8.9", "O(log N + members removed)", "key min max", "Removes the members in a range of names."),
    Spec::new("zremrangebyrank", 4, Group::SortedSet, Handler::Data(sorted_sets::zremrangebyrank)).flags(Flags::WRITE).keys(&[KeySpec::one(REMOVE, 1)]).class(Class::Scan)
        .doc("2.0.0", "O(members removed and, before them, skipped)", "key start stop", "Removes the members in a range of ranks."),
    Spec::new("zremrangebyscore", 4, Group::SortedSet, Handler::Data(sorted_sets::zremrangebyscore)).flags(Flags::WRITE).keys(&[KeySpec::one(REMOVE, 1)]).class(Class::Scan)
        .doc("1.2.0", "O(log N + members removed)", "key min max", "Removes the members with a score in a range."),
    Spec::new("zrevrange", -4, Group::SortedSet, Handler::Data(sorted_sets::zrevrange)).flags(Flags::READONLY).keys(&[KeySpec::one(READ, 1)]).class(Class::Scan)
        .doc("1.2.0", "O(members returned and, before them, skipped)", "key start stop [WITHSCORES]", "Returns the members in a range of ranks, the highest score first."),
    Spec::new("zrevrangebylex", -4, Group::SortedSet, Handler::Data(sorted_sets::zrevrangebylex)).flags(Flags::READONLY).keys(&[KeySpec::one(READ, 1)]).class(Class::Scan)
        .doc("2.8.9", "O(log N + offset + members returned)", "key max min [LIMIT offset count]", "Returns the members in a range of names, the last first."),
    Spec::new("zrevrangebyscore", -4, Group::SortedSet, Handler::Data(sorted_sets::zrevrangebyscore)).flags(Flags::READONLY).keys(&[KeySpec::one(READ, 1)]).class(Class::Scan)
        .doc("2.2.0", "O(log N + offset + members returned)", "key max min [WITHSCORES] [LIMIT offset count]", "Returns the members with a score in a range, the highest first."),
    Spec::new("zrevrank", 3, Group::SortedSet, Handler::Data(sorted_sets::zrevrank)).flags(Flags::READONLY.and(Flags::FAST)).keys(&[KeySpec::one(READ, 1)]).class(Class::Scan)
        .doc("2.0.0", "O(rank from the lowest score)", "key member", "Returns how many members come after this one."),
    Spec::new("zscan", -3, Group::SortedSet, Handler::Data(sorted_sets::zscan)).flags(Flags::READONLY).keys(&[KeySpec::one(READ, 1)]).tips(&["nondeterministic_output"]).class(Class::Scan)
        .doc("2.8.0", "O(COUNT) a call", "key cursor [MATCH pattern] [COUNT count]", "Walks over the members and scores of a sorted set."),
    Spec::new("zscore", 3, Group::SortedSet, Handler::Data(sorted_sets::zscore)).flags(Flags::READONLY.and(Flags::FAST)).keys(&[KeySpec::one(READ, 1)]).class(Class::Get)
        .doc("1.2.0", "O(1)", "key member", "Returns the score of a member."),
    Spec::new("zunion", -3, Group::SortedSet, Handler::Data(sorted_sets::zunion)).flags(Flags::READONLY).keys(&[KeySpec::counted(READ, 1)]).class(Class::Scan)
        .doc("6.2.0", "O(members of all sets)", "numkeys key [key ...] [WEIGHTS weight [weight ...]] [AGGREGATE SUM | MIN | MAX] [WITHSCORES]", "Returns what any of the sorted sets has."),
    Spec::new("zunionstore", -4, Group::SortedSet, Handler::Data(sorted_sets::zunionstore)).flags(Flags::WRITE.and(Flags::DENYOOM)).keys(&[KeySpec::one(OVERWRITE, 1), KeySpec::counted(READ, 2)]).class(Class::Scan)
        .doc("2.0.0", "O(members of all sets)", "destination numkeys key [key ...] [WEIGHTS weight [weight ...]] [AGGREGATE SUM | MIN | MAX]", "Stores what any of the sorted sets has."),
];
