//! Allotments, lending and regaining.

use policy::memory::{buffers_need, lend, Allotments, CacheUse, Claim, Lent, Reason, ALL_IT_GETS};
use proptest::prelude::*;

const MIB: u64 = 1 << 20;

fn claim(allotment: u64, granted: u64, need: u64) -> Claim {
    Claim {
        allotment,
        weight: 1.0,
        granted,
        need,
    }
}

#[test]
fn fixed_allotments_come_first_and_weights_share_the_rest() {
    let rest = Allotments::new(1_000, [(Some(100), 9.0), (None, 1.0), (None, 2.0)]);
    assert_eq!(
        [
            rest.of(Some(100), 9.0),
            rest.of(None, 1.0),
            rest.of(None, 2.0)
        ],
        [100, 300, 600]
    );
    assert_eq!(Allotments::new(10, [(Some(11), 1.0)]).of(None, 1.0), 0);
}

#[test]
fn memory_moves_only_when_somebody_needs_more() {
    let calm = [claim(50, 90, 60), claim(50, 10, 10)];
    assert_eq!(
        lend(100, &calm),
        Lent {
            grants: vec![90, 10],
            reason: Reason::Enough
        }
    );
    let pressed = [claim(50, 90, 60), claim(50, 10, ALL_IT_GETS)];
    assert_eq!(
        lend(100, &pressed),
        Lent {
            grants: vec![50, 50],
            reason: Reason::Moved { lent: 0 }
        }
    );
}

#[test]
fn what_others_leave_goes_by_weight() {
    let mut claims = [
        claim(100, 0, 10),
        claim(100, 0, ALL_IT_GETS),
        claim(100, 0, ALL_IT_GETS),
        claim(100, 0, 120),
    ];
    claims[2].weight = 2.0;
    // 90 are left: 20 are enough for the last, 70 go 1 to 2.
    assert_eq!(lend(400, &claims).grants, [10, 124, 146, 120]);
}

#[test]
fn a_cache_needs_more_when_it_is_full_and_misses() {
    let cache = |used, hits, misses| CacheUse {
        used,
        hits,
        misses,
        lost: 0,
    };
    let (allotment, granted) = (64 * MIB, 100 * MIB);
    let need = |cache: CacheUse| cache.need(allotment, granted);
    assert_eq!(need(cache(99 * MIB, 5, 1)), ALL_IT_GETS);
    assert_eq!(need(cache(80 * MIB, 5, 1)), 90 * MIB, "not full");
    let uneven = CacheUse {
        lost: 1,
        ..cache(80 * MIB, 5, 1)
    };
    assert_eq!(need(uneven), ALL_IT_GETS, "a part of it is full");
    assert_eq!(
        need(cache(99 * MIB, 5, 0)),
        99 * MIB + 99 * MIB / 8,
        "nothing missed"
    );
    assert_eq!(need(cache(99 * MIB, 0, 0)), allotment, "borrowed and idle");
    assert_eq!(need(cache(3 * MIB, 0, 0)), 4 * MIB, "its own, and idle");
    assert_eq!(need(cache(3 * MIB, 1, 1)), 4 * MIB);
    assert_eq!(
        cache(0, 0, 1).need(allotment, 0),
        ALL_IT_GETS,
        "nothing granted yet"
    );
}

#[test]
fn write_buffers_need_what_a_flush_is_worth() {
    assert_eq!(buffers_need(10, true, 100), 100);
    assert_eq!(buffers_need(110, true, 100), 110);
    assert_eq!(buffers_need(10, false, 100), 10);
}

/// A tenant gives everything back one step after its neighbour is there, and holds that against it
/// for good.
#[test]
fn a_share_is_regained_in_one_step_after_its_need_is_seen() {
    let budget = 256 * MIB;
    let greedy = |granted| claim(128 * MIB, granted, ALL_IT_GETS);
    let alone = lend(budget, &[greedy(0), claim(128 * MIB, 0, 0)]);
    assert_eq!(alone.grants, [budget, 0]);
    // The neighbour comes, and finds nothing; its first misses are its claim.
    let first = CacheUse {
        misses: 1,
        ..CacheUse::default()
    };
    let back = claim(128 * MIB, 0, first.need(128 * MIB, 0));
    let step = lend(budget, &[greedy(alone.grants[0]), back]);
    assert_eq!(step.grants, [128 * MIB; 2]);
}

fn claims() -> impl Strategy<Value = Vec<Claim>> {
    let bytes = || 0..4 * MIB;
    let need = prop_oneof![3 => bytes(), 1 => Just(ALL_IT_GETS)];
    let weight = (1u32..2_000).prop_map(|w| f64::from(w) / 10.0);
    let one = (bytes(), weight, bytes(), need);
    let one = one.prop_map(|(allotment, weight, granted, need)| Claim {
        allotment,
        weight,
        granted,
        need,
    });
    prop::collection::vec(one, 1..40)
}

proptest! {
    #[test]
    fn grants_keep_to_the_budget_and_to_allotments(budget in 0..80 * MIB, claims in claims()) {
        let Lent { grants, reason } = lend(budget, &claims);
        let sum = |values: &mut dyn Iterator<Item = u64>| values.map(u128::from).sum::<u128>();
        let granted = sum(&mut grants.iter().copied());
        prop_assert!(granted <= u128::from(budget));
        let allotted = sum(&mut claims.iter().map(|claim| claim.allotment));
        let part = (budget as f64 / allotted as f64).min(1.0);
        for (claim, grant) in claims.iter().zip(&grants) {
            let own = (claim.allotment as f64 * part) as u64;
            prop_assert!(grant + 1 >= own.min(claim.need), "{claim:?} {grant}");
            prop_assert!(reason == Reason::Enough || *grant <= claim.need);
        }
        // Nothing stays unused while somebody needs it, but for what rounding leaves.
        let hungry = claims.iter().zip(&grants).any(|(claim, grant)| claim.need > *grant);
        prop_assert!(!hungry || u128::from(budget) - granted <= claims.len() as u128);
    }

    #[test]
    fn borrowers_have_parts_by_weight(budget in MIB..80 * MIB, claims in claims()) {
        let Lent { grants, reason } = lend(budget, &claims);
        prop_assume!(reason != Reason::Enough);
        let allotted: u64 = claims.iter().map(|claim| claim.allotment).sum();
        prop_assume!(allotted <= budget);
        // Of what is lent, nobody left hungry has less for its weight than anybody has.
        let borrowed = |at: usize| {
            let claim = &claims[at];
            grants[at].saturating_sub(claim.allotment) as f64
        };
        for hungry in (0..claims.len()).filter(|at| claims[*at].need > grants[*at]) {
            for other in 0..claims.len() {
                let (a, b) = (claims[hungry].weight, claims[other].weight);
                let few = claims.len() as f64 * (1.0 + b / a);
                prop_assert!(borrowed(hungry) / a * b + few >= borrowed(other));
            }
        }
    }

    #[test]
    fn the_same_needs_move_nothing_twice(budget in 0..80 * MIB, claims in claims()) {
        let first = lend(budget, &claims);
        let again: Vec<Claim> = claims
            .iter()
            .zip(&first.grants)
            .map(|(claim, granted)| Claim { granted: *granted, ..*claim })
            .collect();
        prop_assert_eq!(lend(budget, &again).grants, first.grants);
    }
}
