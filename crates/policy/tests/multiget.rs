//! Multigets: what splits, tags and queues keep, whatever comes.

use policy::multiget::{
    bottleneck, split, tag, Levels, Opset, Options, Order, Queue, Rates, Strategy as Rule, Tag,
};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

fn options(order: Order, guard_ns: Option<u64>) -> Options {
    Options {
        order,
        levels: Levels::exponential(4, 3.0, 1, Rates::Linear),
        guard_ns,
    }
}

fn order() -> impl Strategy<Value = Order> {
    prop::sample::select(vec![Order::Arrival, Order::Exact, Order::Levels])
}

fn opsets() -> impl Strategy<Value = Vec<Opset>> {
    let one = (1u64..500, 0u64..300).prop_map(|(cost, ahead)| Opset {
        group: 0,
        operations: cost as u32,
        cost,
        ahead,
    });
    prop::collection::vec(one, 1..20)
}

proptest! {
    /// Every operation is in exactly one opset, that of its group.
    #[test]
    fn a_split_loses_nothing(operations in prop::collection::vec((0u32..30, 1u64..1_000), 0..200)) {
        let mut opsets = Vec::new();
        split(operations.iter().copied(), &mut opsets);
        let mut sums: BTreeMap<u32, (u32, u64)> = BTreeMap::new();
        for (group, cost) in &operations {
            let sum = sums.entry(*group).or_default();
            *sum = (sum.0 + 1, sum.1 + cost);
        }
        let got: Vec<_> = opsets.iter().map(|o| (o.group, (o.operations, o.cost))).collect();
        prop_assert_eq!(got, sums.into_iter().collect::<Vec<_>>());
        let last = bottleneck(&opsets).map(|place| opsets[place].cost);
        prop_assert_eq!(last, opsets.iter().map(|o| o.cost).max());
    }

    /// Levels cover every cost once, in order, and exponentially.
    #[test]
    fn levels_tile_the_costs(count in 1usize..20, range in 1.0f64..10.0, first in 1u64..1_000) {
        let levels = Levels::exponential(count, range, first, Rates::Linear);
        prop_assert_eq!(levels.thresholds().len() + 1, levels.count());
        let mut last = 0;
        for cost in (0..5_000).chain([1 << 40, u64::MAX]) {
            let level = levels.of(cost);
            prop_assert!(level >= last && level < levels.count());
            last = level;
        }
        for pair in levels.thresholds().windows(2) {
            let wanted = pair[0] as f64 * range;
            prop_assert!((pair[1] as f64 - wanted).abs() <= range + 1.0, "{pair:?}");
        }
        for level in 1..levels.count() {
            prop_assert!(levels.rate(level - 1) > levels.rate(level) && levels.rate(level) > 0);
        }
    }

    /// Whatever the strategy, no opset of a multiget goes before its bottleneck by more than
    /// nothing: the bottleneck has the best tag of all, and more slack never means a better tag.
    #[test]
    fn the_bottleneck_is_tagged_best(opsets in opsets(), stretch_quarters in 0u32..40, slack_quarters in 0u32..9, tail in 0u64..900) {
        let levels = Levels::exponential(6, 2.5, 1, Rates::Linear);
        let strategies = [
            Rule::Agnostic, Rule::ShortestBottleneck, Rule::BottleneckAndSlack, Rule::SlackDriven, Rule::Rein,
            Rule::Deadline { stretch_quarters, slack_quarters, tail },
        ];
        let mut by_finish: Vec<usize> = (0..opsets.len()).collect();
        by_finish.sort_by_key(|&place| std::cmp::Reverse(opsets[place].finish()));
        for strategy in strategies {
            let mut tags = Vec::new();
            tag(strategy, 7, &opsets, &levels, &mut tags);
            prop_assert_eq!(tags.len(), opsets.len());
            for pair in by_finish.windows(2) {
                let (late, early) = (tags[pair[0]], tags[pair[1]]);
                prop_assert!(late.priority <= early.priority, "{strategy:?}: {late:?} {early:?}");
                prop_assert!(late.level <= early.level, "{strategy:?}: {late:?} {early:?}");
            }
        }
    }

    /// Shortest bottleneck first and Rein never tag a multiget with a larger bottleneck better than
    /// one with a smaller, bottleneck against bottleneck.
    #[test]
    fn smaller_bottlenecks_go_first(a in 1u64..10_000, b in 1u64..10_000) {
        let levels = Levels::exponential(6, 2.5, 1, Rates::Linear);
        for strategy in [Rule::ShortestBottleneck, Rule::Rein] {
            let best = |cost| {
                let opsets = [Opset { group: 0, operations: 1, cost, ahead: 0 }];
                let mut tags = Vec::new();
                tag(strategy, 0, &opsets, &levels, &mut tags);
                tags[0]
            };
            let (x, y) = (best(a.min(b)), best(a.max(b)));
            prop_assert!(x.priority <= y.priority && x.level <= y.level);
        }
    }

    /// Nothing is lost or served twice, counts and backlogs are right, and within equal tags the
    /// order of arrival holds; levels may change at any time.
    #[test]
    fn a_queue_loses_nothing(
        order in order(),
        guard_ns in prop::option::of(0u64..2_000),
        steps in prop::collection::vec((0u8..4, 0u8..6, 1u64..50, 0u64..300), 1..400),
    ) {
        let mut queue = Queue::new(options(order, guard_ns));
        let (mut now, mut next, mut count) = (0, 0u64, 4);
        // Item -> (level, cost, since)
        let mut inside: BTreeMap<u64, (u8, u64, u64)> = BTreeMap::new();
        for (step, level, cost, wait) in steps {
            now += wait;
            match step {
                0 | 1 => {
                    queue.push(now, Tag { priority: u64::from(level), level }, cost, next);
                    inside.insert(next, (level.min(count - 1), cost, now));
                    next += 1;
                }
                2 => {
                    let taken = queue.pop(now);
                    prop_assert_eq!(taken.is_some(), !inside.is_empty());
                    if let Some(taken) = taken {
                        let (level, _, since) = inside.remove(&taken.item).expect("queued once");
                        prop_assert_eq!(taken.waited_ns, now - since);
                        let guard = guard_ns.unwrap_or(u64::MAX);
                        prop_assert!(!taken.boosted || taken.waited_ns >= guard);
                        if order == Order::Levels && !taken.boosted && count == 4 {
                            let older = inside.iter().any(|(item, (l, _, _))| *item < taken.item && *l == level);
                            prop_assert!(!older, "an older one of the same level waits");
                        }
                    }
                }
                _ => {
                    count = level.clamp(1, 4).min(count);
                    queue.set_levels(Levels::exponential(usize::from(count), 3.0, 1, Rates::Geometric(2)));
                    for (level, _, _) in inside.values_mut() {
                        *level = (*level).min(count - 1);
                    }
                }
            }
            prop_assert_eq!(queue.len(), inside.len());
            for level in 0..4 {
                let sum: u64 = inside.values().filter(|(l, _, _)| *l <= level).map(|(_, c, _)| c).sum();
                prop_assert_eq!(queue.backlog_up_to(usize::from(level)), sum);
            }
        }
        let rest: BTreeSet<u64> = std::iter::from_fn(|| queue.pop(now)).map(|taken| taken.item).collect();
        prop_assert_eq!(rest, inside.into_keys().collect::<BTreeSet<_>>());
    }

    /// Exact order is what a sorted list gives, also when most of what came has gone.
    #[test]
    fn exact_order_agrees_with_a_sorted_model(steps in prop::collection::vec(prop::option::weighted(0.6, 0u64..40), 1..600)) {
        let mut queue = Queue::new(options(Order::Exact, None));
        let mut model = BTreeSet::new();
        for (number, step) in steps.into_iter().enumerate() {
            match step {
                Some(priority) => {
                    queue.push(0, Tag { priority, level: 0 }, 1, number);
                    model.insert((priority, number));
                }
                None => {
                    let wanted = model.pop_first().map(|(_, number)| number);
                    prop_assert_eq!(queue.pop(0).map(|taken| taken.item), wanted);
                }
            }
        }
    }

    /// While all levels have work, each is served in proportion to its rate, in cost, to within one
    /// visit.
    #[test]
    fn levels_share_by_rate(costs in prop::collection::vec(1u64..20, 4), turns in 200usize..2_000) {
        let mut queue = Queue::new(options(Order::Levels, None));
        let mut served = [0u64; 4];
        for (level, cost) in costs.iter().enumerate() {
            for _ in 0..3 {
                queue.push(0, Tag { priority: 0, level: level as u8 }, *cost, level);
            }
        }
        for _ in 0..turns {
            let level = queue.pop(0).expect("work").item;
            served[level] += costs[level];
            queue.push(0, Tag { priority: 0, level: level as u8 }, costs[level], level);
        }
        let total: u64 = served.iter().sum();
        // A visit is worth at most 4 times the largest mean cost, and a round four visits.
        let slack = 4.0 * 20.0 * 4.0;
        for (level, served) in served.iter().enumerate() {
            let wanted = total as f64 * (4 - level) as f64 / 10.0;
            prop_assert!((*served as f64 - wanted).abs() <= slack, "{level}: {served} of {total}, wanted {wanted}");
        }
    }

    /// With a guard nobody waits for ever: under a flood of better tags the oldest is served at the
    /// latest at the second turn after its guard.
    #[test]
    fn the_guard_ends_starvation(guard_ns in 1u64..1_000, flood in 1u64..8) {
        let mut queue = Queue::new(options(Order::Exact, Some(guard_ns)));
        queue.push(0, Tag { priority: 99, level: 3 }, 1, 0);
        for now in 1..=guard_ns + 2 {
            for _ in 0..flood {
                queue.push(now, Tag { priority: 1, level: 0 }, 1, now);
            }
            let taken = queue.pop(now).expect("work");
            if taken.item == 0 {
                prop_assert!(taken.boosted && now >= guard_ns);
                return Ok(());
            }
        }
        prop_assert!(false, "starved");
    }
}

#[test]
fn half_the_turns_keep_the_order_under_overload() {
    let mut queue = Queue::new(options(Order::Exact, Some(10)));
    for number in 0..100 {
        queue.push(
            0,
            Tag {
                priority: 100 - number,
                level: 0,
            },
            1,
            number,
        );
    }
    let boosted = (0..60).filter(|_| queue.pop(1_000).expect("work").boosted);
    assert_eq!(boosted.count(), 30);
}

#[test]
fn rates_of_levels_hold_beside_the_guard() {
    // Two levels at rates of 2 and 1. More comes than is served, most of it to the slow one: the
    // oldest is always there, and the guard gives it every second turn. That is more than its rate,
    // so the other half is the fast one's (algorithm 1).
    let mut queue = Queue::new(Options {
        levels: Levels::exponential(2, 3.0, 1, Rates::Linear),
        ..options(Order::Levels, Some(10))
    });
    let mut served = [0u32; 2];
    for now in 0..20_000u64 {
        for number in 0..29 {
            // Nine of them to the fast level in ten turns, twenty to the slow one.
            if number % 10 == now % 10 {
                let level = u8::from(number >= 9);
                queue.push(now, Tag { priority: 0, level }, 1, level);
            }
        }
        if let Some(taken) = queue.pop(now) {
            served[usize::from(taken.item)] += 1;
        }
    }
    let fast = f64::from(served[0]) / f64::from(served[0] + served[1]);
    assert!((fast - 0.5).abs() < 0.005, "{served:?}");
}

#[test]
fn what_a_level_had_by_the_guard_is_forgotten_when_nothing_waits() {
    let mut queue = Queue::new(options(Order::Levels, Some(10)));
    for item in 0..1_000 {
        queue.push(
            0,
            Tag {
                priority: 0,
                level: 3,
            },
            1,
            item,
        );
        queue.push(
            0,
            Tag {
                priority: 0,
                level: 0,
            },
            1,
            item,
        );
    }
    while queue.pop(1_000).is_some() {}
    // One of ten turns is its again, at once.
    for item in 0..100 {
        queue.push(
            2_000,
            Tag {
                priority: 0,
                level: 3,
            },
            1,
            item,
        );
        queue.push(
            2_000,
            Tag {
                priority: 0,
                level: 0,
            },
            1,
            1_000 + item,
        );
    }
    let first: Vec<i32> = (0..25)
        .filter_map(|_| queue.pop(2_000))
        .map(|taken| taken.item)
        .collect();
    let slow = first.iter().filter(|item| **item < 1_000).count();
    assert_eq!(slow, 5, "{first:?}");
}
