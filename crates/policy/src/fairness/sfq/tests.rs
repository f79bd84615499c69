//! Accounts and the axis they stand on.

use super::axis::REBASE_AT;
use super::*;
use proptest::prelude::*;

fn bounds() -> DebtBounds {
    DebtBounds {
        debt_max: Charge::from_ns(1_000_000_000),
        turns_max: Charge::from_ns(1_000_000_000),
        estimate_max: Charge::from_ns(100_000),
    }
}

proptest! {
    /// Refund conservation: whatever was estimated and in whatever order turns end, what remains on
    /// the account is what was used.
    #[test]
    fn set_aside_and_refund_make_what_was_used(
        weight in 0.001f64..1000.0,
        turns in prop::collection::vec((0u64..200_000, 0usize..5), 1..200),
    ) {
        let rounds = Rounds::new(1_000_000);
        let estimate = Charge::from_ns(100_000);
        let mut account = Account::new(0, Weight::new(weight), estimate, &rounds);
        let (mut open, mut used) = (Vec::new(), 0);
        for (cost, pick) in turns {
            open.push(account.set_aside().0);
            if open.len() > pick {
                let aside = open.swap_remove(pick % open.len());
                let forgiven = account.settle(aside, Charge::from_ns(cost), &rounds, &bounds());
                prop_assert_eq!(forgiven, Charge::ZERO);
                used += account.weight.scale(Charge::from_ns(cost));
            }
        }
        for aside in open {
            account.settle(aside, Charge::ZERO, &rounds, &bounds());
        }
        prop_assert_eq!(account.service, used);
    }

    /// A weight is kept to a millionth and its inverse loses nothing of that.
    #[test]
    fn scaling_is_exact_enough(weight in 0.001f64..1000.0, ns in 1_000u64..1_000_000) {
        let weight = Weight::new(weight);
        let scaled = weight.scale(Charge::from_ns(ns)) as f64;
        let exact = ns as f64 * 65_536.0 * 1e6 / f64::from(weight.micro());
        prop_assert!((scaled - exact).abs() <= exact * 2e-9 + 0.5, "{scaled} {exact}");
    }
}

#[test]
fn weights_out_of_range_are_clamped() {
    assert_eq!(Weight::new(0.0).micro(), 1_000);
    assert_eq!(Weight::new(1e9).micro(), 1_000_000_000);
    assert_eq!(Weight::new(f64::NAN).micro(), 1_000_000);
    assert_eq!(Weight::new(0.333).micro(), 333_000);
}

#[test]
fn a_debt_keeps_its_size_when_the_weight_changes() {
    let rounds = Rounds::new(1_000_000);
    let mut account = Account::new(0, Weight::new(1.0), Charge::ZERO, &rounds);
    account.debit(Charge::from_ns(5_000_000), &rounds, &bounds());
    account.reweigh(Weight::new(10.0), &rounds);
    assert_eq!(account.debt(&rounds).ns(), 5_000_000);
}

#[test]
fn moving_the_base_changes_no_distance() {
    let mut rounds = Rounds::new(1_000_000);
    let mut account = Account::new(0, Weight::new(1.0), Charge::ZERO, &rounds);
    assert_eq!(rounds.rebase(), None);
    account.service = REBASE_AT + 77;
    rounds.advance(REBASE_AT);
    let number = rounds.number();
    let distance = rounds.rebase().expect("beyond the threshold");
    account.rebase(distance);
    assert_eq!(
        (account.service - rounds.now, rounds.number()),
        (77, number)
    );
    assert!(rounds.now <= 2 * rounds.length);
}
