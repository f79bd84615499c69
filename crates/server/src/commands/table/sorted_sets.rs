//! Sorted sets: members, and sets together.

use telemetry::Class;

use crate::commands::keyspec::{
    KeySpec, OVERWRITE, PROBE, READ, READ_UPDATE, REMOVE, TAKE, UPDATE,
};
use crate::commands::sorted_sets;
use crate::commands::spec::{Flags, Group, Handler, Spec};

/// Commands on members of sorted sets, and on several sets.
pub(super) const SORTED_SETS: &[Spec] = &[
    Spec::new(
        "zadd",
        -4,
        Group::SortedSet,
        Handler::Data(sorted_sets::zadd),
    )
    .flags(Flags::WRITE.and(Flags::DENYOOM).and(Flags::FAST))
    .keys(&[KeySpec::one(UPDATE, 1)])
    .class(Class::Put)
    .doc(
        "1.2.0",
        "O(log N) a member",
        "key [NX | XX] [GT | LT] [CH] [INCR] score member [score member \
                ...]",
        "Adds members to a sorted set, or changes their scores.",
    ),
    Spec::new(
        "zcard",
        2,
        Group::SortedSet,
        Handler::Data(sorted_sets::zcard),
    )
    .flags(Flags::READONLY.and(Flags::FAST))
    .keys(&[KeySpec::one(PROBE, 1)])
    .class(Class::Get)
    .doc(
        "1.2.0",
        "O(1)",
        "key",
        "Returns the number of members of a sorted set.",
    ),
    Spec::new(
        "zdiff",
        -3,
        Group::SortedSet,
        Handler::Data(sorted_sets::zdiff),
    )
    .flags(Flags::READONLY)
    .keys(&[KeySpec::counted(READ, 1)])
    .class(Class::Scan)
    .doc(
        "6.2.0",
        "O(members of all sets)",
        "numkeys key [key ...] [WITHSCORES]",
        "Returns what the first sorted set has and the others have not.",
    ),
    Spec::new(
        "zdiffstore",
        -4,
        Group::SortedSet,
        Handler::Data(sorted_sets::zdiffstore),
    )
    .flags(Flags::WRITE.and(Flags::DENYOOM))
    .keys(&[KeySpec::one(OVERWRITE, 1), KeySpec::counted(READ, 2)])
    .class(Class::Scan)
    .doc(
        "6.2.0",
        "O(members of all sets)",
        "destination numkeys key [key ...]",
        "Stores what the first sorted set has and the others have not.",
    ),
    Spec::new(
        "zincrby",
        4,
        Group::SortedSet,
        Handler::Data(sorted_sets::zincrby),
    )
    .flags(Flags::WRITE.and(Flags::DENYOOM).and(Flags::FAST))
    .keys(&[KeySpec::one(READ_UPDATE, 1)])
    .class(Class::Put)
    .doc(
        "1.2.0",
        "O(log N)",
        "key increment member",
        "Adds to the score of a member.",
    ),
    Spec::new(
        "zinter",
        -3,
        Group::SortedSet,
        Handler::Data(sorted_sets::zinter),
    )
    .flags(Flags::READONLY)
    .keys(&[KeySpec::counted(READ, 1)])
    .class(Class::Scan)
    .doc(
        "6.2.0",
        "O(members of all sets)",
        "numkeys key [key ...] [WEIGHTS weight [weight ...]] [AGGREGATE \
                SUM | MIN | MAX] [WITHSCORES]",
        "Returns what all of the sorted sets have.",
    ),
    Spec::new(
        "zintercard",
        -3,
        Group::SortedSet,
        Handler::Data(sorted_sets::zintercard),
    )
    .flags(Flags::READONLY)
    .keys(&[KeySpec::counted(READ, 1)])
    .class(Class::Scan)
    .doc(
        "7.0.0",
        "O(members of all sets)",
        "numkeys key [key ...] [LIMIT limit]",
        "Counts what all of the sorted sets have.",
    ),
    Spec::new(
        "zinterstore",
        -4,
        Group::SortedSet,
        Handler::Data(sorted_sets::zinterstore),
    )
    .flags(Flags::WRITE.and(Flags::DENYOOM))
    .keys(&[KeySpec::one(OVERWRITE, 1), KeySpec::counted(READ, 2)])
    .class(Class::Scan)
    .doc(
        "2.0.0",
        "O(members of all sets)",
        "destination numkeys key [key ...] [WEIGHTS weight [weight ...]] \
                [AGGREGATE SUM | MIN | MAX]",
        "Stores what all of the sorted sets have.",
    ),
    Spec::new(
        "zmscore",
        -3,
        Group::SortedSet,
        Handler::Data(sorted_sets::zmscore),
    )
    .flags(Flags::READONLY.and(Flags::FAST))
    .keys(&[KeySpec::one(READ, 1)])
    .class(Class::Get)
    .doc(
        "6.2.0",
        "O(members named)",
        "key member [member ...]",
        "Returns the scores of several members.",
    ),
    Spec::new(
        "zpopmax",
        -2,
        Group::SortedSet,
        Handler::Data(sorted_sets::zpopmax),
    )
    .flags(Flags::WRITE.and(Flags::FAST))
    .keys(&[KeySpec::one(TAKE, 1)])
    .class(Class::Put)
    .doc(
        "5.0.0",
        "O(log N + members removed)",
        "key [count]",
        "Removes and returns the members with the highest scores.",
    ),
    Spec::new(
        "zpopmin",
        -2,
        Group::SortedSet,
        Handler::Data(sorted_sets::zpopmin),
    )
    .flags(Flags::WRITE.and(Flags::FAST))
    .keys(&[KeySpec::one(TAKE, 1)])
    .class(Class::Put)
    .doc(
        "5.0.0",
        "O(log N + members removed)",
        "key [count]",
        "Removes and returns the members with the lowest scores.",
    ),
    Spec::new(
        "zrem",
        -3,
        Group::SortedSet,
        Handler::Data(sorted_sets::zrem),
    )
    .flags(Flags::WRITE.and(Flags::FAST))
    .keys(&[KeySpec::one(REMOVE, 1)])
    .class(Class::Put)
    .doc(
        "1.2.0",
        "O(log N) a member",
        "key member [member ...]",
        "Removes members of a sorted set.",
    ),
    Spec::new(
        "zscore",
        3,
        Group::SortedSet,
        Handler::Data(sorted_sets::zscore),
    )
    .flags(Flags::READONLY.and(Flags::FAST))
    .keys(&[KeySpec::one(READ, 1)])
    .class(Class::Get)
    .doc(
        "1.2.0",
        "O(1)",
        "key member",
        "Returns the score of a member.",
    ),
    Spec::new(
        "zunion",
        -3,
        Group::SortedSet,
        Handler::Data(sorted_sets::zunion),
    )
    .flags(Flags::READONLY)
    .keys(&[KeySpec::counted(READ, 1)])
    .class(Class::Scan)
    .doc(
        "6.2.0",
        "O(members of all sets)",
        "numkeys key [key ...] [WEIGHTS weight [weight ...]] [AGGREGATE \
                SUM | MIN | MAX] [WITHSCORES]",
        "Returns what any of the sorted sets has.",
    ),
    Spec::new(
        "zunionstore",
        -4,
        Group::SortedSet,
        Handler::Data(sorted_sets::zunionstore),
    )
    .flags(Flags::WRITE.and(Flags::DENYOOM))
    .keys(&[KeySpec::one(OVERWRITE, 1), KeySpec::counted(READ, 2)])
    .class(Class::Scan)
    .doc(
        "2.0.0",
        "O(members of all sets)",
        "destination numkeys key [key ...] [WEIGHTS weight [weight ...]] \
                [AGGREGATE SUM | MIN | MAX]",
        "Stores what any of the sorted sets has.",
    ),
];
