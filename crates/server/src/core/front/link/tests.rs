//! Links to an engine that is away.

use std::net::TcpListener;

use mio::Poll;

use super::*;
use crate::upstream::tests::options;

const SECOND: Nanos = 1_000_000_000;

#[test]
fn nobody_waits_for_what_others_have_waited_for_in_vain() {
    // It takes connections, and says nothing.
    let engine = TcpListener::bind("127.0.0.1:0").expect("a port");
    let at = engine.local_addr().expect("an address");
    let (poll, options) = (Poll::new().expect("a poll"), options(&at.to_string()));
    let mut link = Link::new(Protocol::Resp2, false, 0);
    let tried = |link: &mut Link, now| link.ready(now, "node", at, &options, poll.registry());
    assert!(tried(&mut link, 0).is_ok(), "nothing is known of it yet");
    assert!(tried(&mut link, SECOND).is_ok());
    let why = || "silence".to_owned();
    link.lost(SECOND, why());

    // It is told so at once, and yet is tried again when its time has come.
    assert_eq!(tried(&mut link, SECOND), Err(why()));
    assert!(!link.greets());
    assert_eq!(tried(&mut link, 2 * SECOND), Err(why()));
    assert!(link.greets());
    assert_eq!(tried(&mut link, 2 * SECOND), Err(why()));

    // One that gives an answer at once is waited for: it may be about to start.
    link.lost(2 * SECOND, "no".to_owned());
    assert!(tried(&mut link, 3 * SECOND).is_ok());

    // So is one that has served.
    link.lost(4 * SECOND, why());
    assert!(tried(&mut link, 5 * SECOND).is_err());
    while link.greets() {
        link.greeted(b"+OK").expect("no error");
    }
    assert!(tried(&mut link, 6 * SECOND).is_ok());
    link.lost(7 * SECOND, why());
    assert!(tried(&mut link, 8 * SECOND).is_ok());
}
