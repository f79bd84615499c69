//! Sorted sets: ranges and ranks.

use telemetry::Class;

use crate::commands::keyspec::{KeySpec, OVERWRITE, READ, REMOVE};
use crate::commands::sorted_sets;
use crate::commands::spec::{Flags, Group, Handler, Spec};

/// Commands on ranges and ranks of sorted sets.
pub(super) const SORTED_SET_RANGES: &[Spec] = &[
    Spec::new(
        "zcount",
        4,
        Group::SortedSet,
        Handler::Data(sorted_sets::zcount),
    )
    .flags(Flags::READONLY.and(Flags::FAST))
    .keys(&[KeySpec::one(READ, 1)])
    .class(Class::Scan)
    .doc(
        "2.0.0",
        "O(log N + members counted)",
        "key min max",
        "Counts the members with a score in a range.",
    ),
    Spec::new(
        "zlexcount",
        4,
        Group::SortedSet,
        Handler::Data(sorted_sets::zlexcount),
    )
    .flags(Flags::READONLY.and(Flags::FAST))
    .keys(&[KeySpec::one(READ, 1)])
    .class(Class::Scan)
    .doc(
        "2.8.9",
        "O(log N + members counted)",
        "key min max",
        "Counts the members in a range of names.",
    ),
    Spec::new(
        "zrandmember",
        -2,
        Group::SortedSet,
        Handler::Data(sorted_sets::zrandmember),
    )
    .flags(Flags::READONLY)
    .keys(&[KeySpec::one(READ, 1)])
    .tips(&["nondeterministic_output"])
    .class(Class::Scan)
    .doc(
        "6.2.0",
        "O(N)",
        "key [count [WITHSCORES]]",
        "Returns random members of a sorted set.",
    ),
    Spec::new(
        "zrange",
        -4,
        Group::SortedSet,
        Handler::Data(sorted_sets::zrange),
    )
    .flags(Flags::READONLY)
    .keys(&[KeySpec::one(READ, 1)])
    .class(Class::Scan)
    .doc(
        "1.2.0",
        "O(log N + members returned and, before them, skipped)",
        "key start stop [BYSCORE | BYLEX] [REV] [LIMIT offset count] \
                [WITHSCORES]",
        "Returns the members in a range of ranks, scores or names.",
    ),
    Spec::new(
        "zrangebylex",
        -4,
        Group::SortedSet,
        Handler::Data(sorted_sets::zrangebylex),
    )
    .flags(Flags::READONLY)
    .keys(&[KeySpec::one(READ, 1)])
    .class(Class::Scan)
    .doc(
        "2.8.9",
        "O(log N + offset + members returned)",
        "key min max [LIMIT offset count]",
        "Returns the members in a range of names.",
    ),
    Spec::new(
        "zrangebyscore",
        -4,
        Group::SortedSet,
        Handler::Data(sorted_sets::zrangebyscore),
    )
    .flags(Flags::READONLY)
    .keys(&[KeySpec::one(READ, 1)])
    .class(Class::Scan)
    .doc(
        "1.0.5",
        "O(log N + offset + members returned)",
        "key min max [WITHSCORES] [LIMIT offset count]",
        "Returns the members with a score in a range.",
    ),
    Spec::new(
        "zrangestore",
        -5,
        Group::SortedSet,
        Handler::Data(sorted_sets::zrangestore),
    )
    .flags(Flags::WRITE.and(Flags::DENYOOM))
    .keys(&[KeySpec::one(OVERWRITE, 1), KeySpec::one(READ, 2)])
    .class(Class::Scan)
    .doc(
        "6.2.0",
        "O(log N + members stored and, before them, skipped)",
        "dst src min max [BYSCORE | BYLEX] [REV] [LIMIT offset count]",
        "Stores the members in a range of another sorted set.",
    ),
    Spec::new(
        "zrank",
        3,
        Group::SortedSet,
        Handler::Data(sorted_sets::zrank),
    )
    .flags(Flags::READONLY.and(Flags::FAST))
    .keys(&[KeySpec::one(READ, 1)])
    .class(Class::Scan)
    .doc(
        "2.0.0",
        "O(rank)",
        "key member",
        "Returns how many members come before this one.",
    ),
    Spec::new(
        "zremrangebylex",
        4,
        Group::SortedSet,
        Handler::Data(sorted_sets::zremrangebylex),
    )
    .flags(Flags::WRITE)
    .keys(&[KeySpec::one(REMOVE, 1)])
    .class(Class::Scan)
    .doc(
        "2.8.9",
        "O(log N + members removed)",
        "key min max",
        "Removes the members in a range of names.",
    ),
    Spec::new(
        "zremrangebyrank",
        4,
        Group::SortedSet,
        Handler::Data(sorted_sets::zremrangebyrank),
    )
    .flags(Flags::WRITE)
    .keys(&[KeySpec::one(REMOVE, 1)])
    .class(Class::Scan)
    .doc(
        "2.0.0",
        "O(members removed and, before them, skipped)",
        "key start stop",
        "Removes the members in a range of ranks.",
    ),
    Spec::new(
        "zremrangebyscore",
        4,
        Group::SortedSet,
        Handler::Data(sorted_sets::zremrangebyscore),
    )
    .flags(Flags::WRITE)
    .keys(&[KeySpec::one(REMOVE, 1)])
    .class(Class::Scan)
    .doc(
        "1.2.0",
        "O(log N + members removed)",
        "key min max",
        "Removes the members with a score in a range.",
    ),
    Spec::new(
        "zrevrange",
        -4,
        Group::SortedSet,
        Handler::Data(sorted_sets::zrevrange),
    )
    .flags(Flags::READONLY)
    .keys(&[KeySpec::one(READ, 1)])
    .class(Class::Scan)
    .doc(
        "1.2.0",
        "O(members returned and, before them, skipped)",
        "key start stop [WITHSCORES]",
        "Returns the members in a range of ranks, the highest score first.",
    ),
    Spec::new(
        "zrevrangebylex",
        -4,
        Group::SortedSet,
        Handler::Data(sorted_sets::zrevrangebylex),
    )
    .flags(Flags::READONLY)
    .keys(&[KeySpec::one(READ, 1)])
    .class(Class::Scan)
    .doc(
        "2.8.9",
        "O(log N + offset + members returned)",
        "key max min [LIMIT offset count]",
        "Returns the members in a range of names, the last first.",
    ),
    Spec::new(
        "zrevrangebyscore",
        -4,
        Group::SortedSet,
        Handler::Data(sorted_sets::zrevrangebyscore),
    )
    .flags(Flags::READONLY)
    .keys(&[KeySpec::one(READ, 1)])
    .class(Class::Scan)
    .doc(
        "2.2.0",
        "O(log N + offset + members returned)",
        "key max min [WITHSCORES] [LIMIT offset count]",
        "Returns the members with a score in a range, the highest first.",
    ),
    Spec::new(
        "zrevrank",
        3,
        Group::SortedSet,
        Handler::Data(sorted_sets::zrevrank),
    )
    .flags(Flags::READONLY.and(Flags::FAST))
    .keys(&[KeySpec::one(READ, 1)])
    .class(Class::Scan)
    .doc(
        "2.0.0",
        "O(rank from the lowest score)",
        "key member",
        "Returns how many members come after this one.",
    ),
    Spec::new(
        "zscan",
        -3,
        Group::SortedSet,
        Handler::Data(sorted_sets::zscan),
    )
    .flags(Flags::READONLY)
    .keys(&[KeySpec::one(READ, 1)])
    .tips(&["nondeterministic_output"])
    .class(Class::Scan)
    .doc(
        "2.8.0",
        "O(COUNT) a call",
        "key cursor [MATCH pattern] [COUNT count]",
        "Walks over the members and scores of a sorted set.",
    ),
];
