//! The choice of one sender among servers that told it how they stand.

use policy::replica::{Feedback, Rule, Selector};

fn told(backlog_ns: u64, urgent_ns: u64) -> Feedback {
    Feedback {
        backlog_ns,
        urgent_ns,
        ..Feedback::default()
    }
}

/// Server 0 has much that is put off, server 1 a little that is not.
fn selector() -> Selector {
    let mut selector = Selector::new(Rule::LeastFinish, 2, 1);
    selector.told(0, 0, told(1_000_000, 1_000));
    selector.told(0, 1, told(100_000, 100_000));
    selector
}

#[test]
fn what_is_put_off_is_in_nobody_s_way_but_its_own() {
    let mut selector = selector();
    assert_eq!(selector.choose(0, &[0, 1], false), 0);
    assert_eq!(selector.choose(0, &[0, 1], true), 1);
}

#[test]
fn what_was_sent_since_counts_for_those_that_wait_for_it() {
    let mut selector = selector();
    selector.sent(0, 500_000, true);
    assert_eq!(selector.choose(0, &[0, 1], false), 0, "it is put off");
    selector.sent(0, 500_000, false);
    assert_eq!(selector.choose(0, &[0, 1], false), 1);
    assert_eq!(selector.expected_ns(0, 0, true), 2_000_000);
    assert_eq!(selector.expected_ns(0, 0, false), 501_000);
    // Worked off since.
    assert_eq!(selector.expected_ns(700, 0, false), 500_300);
}

#[test]
fn a_reply_says_how_a_server_stands() {
    let mut selector = selector();
    selector.sent(0, 500_000, false);
    selector.sent(0, 500_000, false);
    selector.replied(10, 0, 10, told(50, 40));
    // One is outstanding still, in the queue that was told or behind it.
    assert_eq!(selector.expected_ns(10, 0, false), 40 + 500_000);
    selector.replied(20, 0, 20, told(70, 30));
    assert_eq!(selector.expected_ns(20, 0, false), 30);
    assert_eq!(selector.expected_ns(20, 0, true), 70);
}
