//! Fair shares across nodes: what every exchange keeps.

use policy::placement::{Entry, Shares};
use proptest::prelude::*;
use std::collections::BTreeMap;

fn entry(tenant: u32, node: u32, share: i64, demand: i64) -> Entry {
    Entry {
        tenant,
        node,
        share,
        demand,
    }
}

fn totals(shares: &Shares) -> (BTreeMap<u32, i64>, BTreeMap<u32, i64>) {
    let (mut tenants, mut nodes) = (BTreeMap::new(), BTreeMap::new());
    for entry in shares.entries() {
        *tenants.entry(entry.tenant).or_default() += entry.share;
        *nodes.entry(entry.node).or_default() += entry.share;
    }
    (tenants, nodes)
}

proptest! {
    /// Every tenant's total and every node's total stay, the worst mismatch never grows, squared slack falls
    /// with every cycle, and it ends.
    #[test]
    fn exchanges_keep_totals_and_help_the_worst(
        cells in prop::collection::vec((0u32..12, 0u32..6, 0i64..1_000, 0i64..1_000), 1..72),
        epsilon in 0i64..20,
    ) {
        let entries = cells.into_iter().map(|(t, n, share, demand)| entry(t, n, share, demand));
        let mut shares = Shares::new(entries.collect());
        let before = totals(&shares);
        let squares = |shares: &Shares| shares.entries().iter().map(|e| e.slack().pow(2)).sum::<i64>();
        let mut last = squares(&shares);
        let mut iterations = 0;
        loop {
            let done = shares.exchange(epsilon);
            prop_assert!(done.worst_after >= done.worst_before, "{done:?}");
            prop_assert_eq!(&totals(&shares), &before);
            let now = squares(&shares);
            prop_assert!(now <= last - i64::from(done.cycles), "{last} {now} {done:?}");
            last = now;
            if done.cycles == 0 {
                break;
            }
            iterations += 1;
            prop_assert!(iterations < 200, "it does not end");
        }
    }

    /// Where there is a bilateral exchange that helps the worst by more than epsilon, it does not stop.
    #[test]
    fn it_does_not_stop_early(cells in prop::collection::vec((0i64..1_000, 0i64..1_000), 16)) {
        let entries = cells.iter().enumerate().map(|(i, (share, demand))| {
            entry(i as u32 / 4, i as u32 % 4, *share, *demand)
        });
        let mut shares = Shares::new(entries.collect());
        shares.settle(2, 1_000);
        let slack = |t: usize, n: usize| shares.entries()[t * 4 + n].slack();
        for t in 0..4 {
            let n = (0..4).min_by_key(|n| slack(t, *n)).expect("nodes");
            if slack(t, n) >= -2 {
                continue;
            }
            for u in (0..4).filter(|u| *u != t) {
                for m in (0..4).filter(|m| *m != n) {
                    let take = (slack(u, n) - slack(t, n)) / 2;
                    let give = (slack(t, m) - slack(u, m)) / 2;
                    prop_assert!(take.min(give) <= 2, "{t} could take from {u} at {n} and give at {m}");
                }
            }
        }
    }
}

#[test]
fn mirrored_shares_become_what_is_wanted() {
    // Pisces figure 3.4: two tenants with equal weights and mirrored demands on two nodes.
    let cells = [
        entry(0, 0, 50, 80),
        entry(0, 1, 50, 20),
        entry(1, 0, 50, 20),
        entry(1, 1, 50, 80),
    ];
    let mut shares = Shares::new(cells.to_vec());
    assert_eq!(shares.worst(), -30);
    let done = shares.exchange(0);
    assert_eq!((done.cycles, done.moved, done.worst_after), (1, 30, 0));
    let local: Vec<i64> = shares.entries().iter().map(|e| e.share).collect();
    assert_eq!(local, [80, 20, 20, 80]);
    assert_eq!(shares.settle(0, 10), 0);
}

#[test]
fn the_widest_cycle_may_have_three_tenants() {
    // As in Pisces figure 4.2: t and u alone can exchange 3, but with v between them 4.
    let cells = [
        entry(0, 0, 10, 18), // t wants 8 at node 0 …
        entry(0, 1, 20, 12), // … and has 8 to give at node 1,
        entry(0, 2, 20, 12), // and 8 at node 2.
        entry(1, 0, 20, 12), // u can give 8 at node 0,
        entry(1, 1, 10, 8),  // has 2 at node 1 (so takes 3 there),
        entry(1, 3, 10, 18), // and wants 8 at node 3.
        entry(2, 3, 20, 12), // v can give 8 at node 3
        entry(2, 2, 10, 18), // and wants 8 at node 2.
    ];
    let mut shares = Shares::new(cells.to_vec());
    let done = shares.exchange(0);
    assert_eq!(done.worst_before, -8);
    assert_eq!(done.worst_after, 0);
    assert!(shares.entries().iter().all(|e| e.slack() >= 0));
}

#[test]
fn nothing_to_exchange_is_no_failure() {
    let mut none = Shares::new(Vec::new());
    assert_eq!((none.worst(), none.exchange(0).cycles), (0, 0));
    let mut alone = Shares::new(vec![entry(3, 2, 5, 9)]);
    assert_eq!((alone.exchange(0).cycles, alone.worst()), (0, -4));
}
