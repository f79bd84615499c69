//! What requests are charged of a server that shows only how long groups of them took.

use policy::cost::spans::{Member, Spans};
use policy::generator::Generator;
use policy::{Nanos, PrincipalId};
use proptest::prelude::*;

/// Replies of tenants that came together after so long; all have the same weight.
type Group = (Nanos, Vec<u32>);

/// What each tenant is charged for a reply in the mean, and all of what was taken.
fn charged(groups: &[Group], tenants: usize) -> (Vec<f64>, f64) {
    let mut spans = Spans::default();
    let (mut sums, mut counts) = (vec![0.0; tenants], vec![0.0; tenants]);
    let (mut all, mut taken) = (0.0, 0.0);
    for (turn, (span, group)) in groups.iter().enumerate() {
        let member = |tenant: &u32| Member {
            tenant: PrincipalId(*tenant),
            weight: 5,
        };
        spans.see(*span, group.iter().map(member));
        // At first nothing is known.
        if turn < groups.len() / 8 {
            continue;
        }
        taken += *span as f64;
        for tenant in group {
            let one = spans.charge(member(tenant)) as f64;
            (sums[*tenant as usize], all) = (sums[*tenant as usize] + one, all + one);
            counts[*tenant as usize] += 1.0;
        }
    }
    let means = sums.iter().zip(&counts).map(|(sum, count)| sum / count);
    (means.collect(), all / taken)
}

/// A group takes 100 us and 10 more for each reply, in a mean.
fn span(dice: &mut Generator, replies: usize) -> Nanos {
    let mean = 100_000.0 + 10_000.0 * replies as f64;
    (mean * (0.5 + dice.below(1_000) as f64 / 1_000.0)) as Nanos
}

#[test]
fn who_is_answered_among_few_pays_as_who_is_answered_among_many() {
    let mut dice = Generator::new(3);
    let groups = (0..20_000).map(|turn| {
        // The first two come in groups of up to twenty, the others alone or two together.
        let (tenants, most) = [([0, 1], 20), ([2, 3], 2)][turn % 2];
        let count = most / 2 + 1 + dice.below(most as u64 / 2) as usize;
        let group: Vec<u32> = (0..count)
            .map(|_| tenants[dice.below(2) as usize])
            .collect();
        (span(&mut dice, count), group)
    });
    let groups: Vec<Group> = groups.collect();
    let (means, all) = charged(&groups, 4);
    for mean in &means {
        assert!((mean / means[0] - 1.0).abs() < 0.01, "{means:?}");
    }
    assert!((all - 1.0).abs() < 0.02, "{all} of what was taken");
}

/// A turn of the engine may be read in two parts, of which the second took no time.
#[test]
fn whose_replies_come_second_pays_as_those_whose_come_first() {
    let mut dice = Generator::new(4);
    let groups = (0..20_000).flat_map(|_| {
        let mut parts = [Vec::new(), Vec::new()];
        let count = 4 + dice.below(12) as usize;
        for _ in 0..count {
            let tenant = dice.below(4) as u32;
            let second = dice.below(10) < if tenant == 0 { 9 } else { 1 };
            parts[usize::from(second)].push(tenant);
        }
        let [first, second] = parts;
        [(span(&mut dice, count), first), (1_000, second)]
    });
    let groups: Vec<Group> = groups.filter(|(_, group)| !group.is_empty()).collect();
    let (means, all) = charged(&groups, 4);
    for mean in &means {
        assert!((mean / means[1] - 1.0).abs() < 0.01, "{means:?}");
    }
    assert!((all - 1.0).abs() < 0.02, "{all} of what was taken");
}

/// Each tenant has a connection of its own, and the one that asks seldom is always read first: all
/// that the others were served in the same turn came before it.
#[test]
fn who_asks_seldom_and_is_read_first_pays_as_the_others() {
    let mut dice = Generator::new(6);
    let groups = (0..20_000).flat_map(|_| {
        let seldom = usize::from(dice.below(50) == 0);
        let count = 4 + dice.below(24) as usize;
        let mut parts = vec![vec![0; seldom], Vec::new(), Vec::new(), Vec::new()];
        for _ in 0..count {
            let tenant = 1 + dice.below(3) as u32;
            parts[tenant as usize].push(tenant);
        }
        parts.retain(|part| !part.is_empty());
        let first = span(&mut dice, count + seldom);
        let spans = std::iter::once(first).chain(std::iter::repeat(1_000));
        spans.zip(parts).collect::<Vec<_>>()
    });
    let groups: Vec<Group> = groups.collect();
    let (means, all) = charged(&groups, 4);
    assert!((means[0] / means[1] - 1.0).abs() < 0.1, "{means:?}");
    assert!((all - 1.0).abs() < 0.02, "{all} of what was taken");
}

/// A tenant that was dear for a while and is seldom answered since, for it is dear.
#[test]
fn what_was_dear_once_is_forgotten_while_others_are_answered() {
    let member = |tenant| Member {
        tenant: PrincipalId(tenant),
        weight: 1,
    };
    let mut spans = Spans::default();
    for _ in 0..2_000 {
        spans.see(100_000, [member(1)].into_iter());
        spans.see(2_000_000, [member(0)].into_iter());
    }
    assert!(spans.charge(member(0)) > 10 * spans.charge(member(1)));
    for _ in 0..1_000 {
        (0..100).for_each(|_| spans.see(100_000, [member(1)].into_iter()));
        spans.see(100_000, [member(0)].into_iter());
    }
    assert_eq!(spans.charge(member(0)), spans.charge(member(1)));
}

#[test]
fn whose_requests_take_longer_pays_for_it() {
    let mut dice = Generator::new(5);
    // The first one's requests take a millisecond each, and mostly come by themselves.
    let groups = (0..20_000).map(|_| {
        let slow = dice.below(4) == 0;
        let others = dice.below(if slow { 2 } else { 12 }) as usize + usize::from(!slow);
        let mut group: Vec<u32> = (0..others).map(|_| 1 + dice.below(3) as u32).collect();
        let time = span(&mut dice, others);
        if slow {
            group.push(0);
        }
        (time + if slow { 1_000_000 } else { 0 }, group)
    });
    let groups: Vec<Group> = groups.collect();
    let (means, all) = charged(&groups, 4);
    for mean in &means[1..] {
        assert!(means[0] > 5.0 * mean, "{means:?}");
    }
    assert!((all - 1.0).abs() < 0.05, "{all} of what was taken");
}

#[test]
fn one_that_stops_the_server_pays_for_it_at_once() {
    let member = |tenant| Member {
        tenant: PrincipalId(tenant),
        weight: 1,
    };
    let mut spans = Spans::default();
    for _ in 0..2_000 {
        spans.see(20_000, [member(1), member(2)].into_iter());
    }
    assert_eq!(spans.charge(member(1)), 10_000);
    spans.see(1_000_000_000, [member(0)].into_iter());
    let once = spans.charge(member(0));
    assert!((890_000_000..=1_000_000_000).contains(&once), "{once}");
    // The others pay what a server may take for itself, all together.
    spans.see(20_000, [member(1), member(2)].into_iter());
    let other = spans.charge(member(1));
    assert!((9_900..50_000).contains(&other), "{other}");
}

/// What was out of proportion is charged to those who were there, and to nobody who comes after.
#[test]
fn what_stopped_the_server_is_no_part_of_the_usual_price() {
    let member = |tenant| Member {
        tenant: PrincipalId(tenant),
        weight: 5,
    };
    let mut spans = Spans::default();
    for _ in 0..2_000 {
        spans.see(200_000, [member(0), member(1)].into_iter());
    }
    let usual = spans.usual(member(1));
    spans.see(3_000_000_000, [member(0)].into_iter());
    assert!(spans.charge(member(0)) > 2_000_000_000);
    let after = spans.usual(member(1));
    assert!(after < 2 * usual, "{usual} {after}");
}

#[test]
fn who_comes_in_the_place_of_another_is_not_taken_for_it() {
    let member = |tenant| Member {
        tenant: PrincipalId(tenant),
        weight: 1,
    };
    let mut spans = Spans::default();
    for _ in 0..2_000 {
        spans.see(6_000_000, [member(0)].into_iter());
        spans.see(60_000, [member(1)].into_iter());
    }
    let [dear, cheap] = [0, 1].map(|tenant| spans.charge(member(tenant)));
    assert!(dear > 20 * cheap, "{dear} and {cheap}");
    spans.forget(PrincipalId(1));
    assert_eq!(spans.charge(member(1)), spans.charge(member(2)));
    assert!(spans.charge(member(1)) > 10 * cheap);
}

proptest! {
    /// Whatever comes, as much is charged as was taken, within what prices are behind.
    #[test]
    fn as_much_is_charged_as_was_taken(
        groups in prop::collection::vec(
            (1_000..1_000_000u64, prop::collection::vec(0..4u32, 1..12)), 2_000..4_000),
    ) {
        let (_, all) = charged(&groups, 4);
        prop_assert!((all - 1.0).abs() < 0.1, "{all}");
    }
}
