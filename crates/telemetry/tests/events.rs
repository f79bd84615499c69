//! The dashboard's files and its stream of events, over real HTTP on the loopback interface.

mod support;

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value as Json;
use support::{get, request, serve, Events};
use telemetry::live::view::{LiveView, TenantDetail};
use telemetry::{Class, State};

/// Streams that the admin address serves at once (docs/reference/admin-api.md).
const SEATS: usize = 32;

#[test]
fn the_page_and_everything_it_names_are_there() {
    let (admin, _fake, _registry) = serve();
    let page = get(admin.address(), "/");
    assert_eq!(page.status, 200);
    assert!(
        page.head.contains("content-type: text/html"),
        "{}",
        page.head
    );
    let mut named: Vec<String> = page
        .body
        .split('"')
        .filter(|word| word.starts_with("/ui/"))
        .map(str::to_string)
        .collect();
    let mut place = 0;
    while let Some(path) = named.get(place).cloned() {
        let file = get(admin.address(), &path);
        assert_eq!(file.status, 200, "{path}");
        assert!(file
            .head
            .contains("content-security-policy: default-src 'none'"));
        assert!(!file.body.is_empty(), "{path} is empty");
        // Modules name other modules beside them.
        for word in file.body.split("from \"./").skip(1) {
            let other = format!("/ui/{}", word.split('"').next().unwrap_or_default());
            if !named.contains(&other) {
                named.push(other);
            }
        }
        place += 1;
    }
    assert!(named.len() > 10, "{named:?}");
    // What the policy forbids must not be needed.
    for forbidden in ["<script>", "onclick=", "style=\"", "javascript:"] {
        assert!(!page.body.contains(forbidden), "{forbidden} in the page");
    }
    assert_eq!(get(admin.address(), "/ui/nothing.js").status, 404);
}

#[test]
fn events_tell_what_is_new_and_agree_with_the_api() {
    let (admin, _fake, registry) = serve();
    let mut web = registry.recorder("web", 0).expect("free");
    web.record_many(&request(Class::Get, 9_000_000), 1_000);
    let mut events = Events::open(admin.address(), "/api/events/web");
    assert!(events.head.contains("text/event-stream"), "{}", events.head);
    let first: LiveView = serde_json::from_str(&events.next("live")).expect("JSON");
    assert_eq!(
        first.server.rates.requests_per_s, 0.0,
        "what was before is not lately"
    );
    assert_eq!(first.server.state, State::Ready);
    web.record_many(&request(Class::Get, 400_000), 30);
    let live: LiveView = serde_json::from_str(&events.next("live")).expect("JSON");
    let (name, rate) = (&live.tenants[0].name, live.tenants[0].rates.requests_per_s);
    assert_eq!(name, "web");
    assert!(
        (rate * live.span_s - 30.0).abs() < 0.1,
        "{rate} over {} s",
        live.span_s
    );
    let detail: TenantDetail = serde_json::from_str(&events.next("tenant")).expect("JSON");
    assert_eq!(
        (detail.live.name.as_str(), detail.classes.len()),
        ("web", 1)
    );
    assert_eq!(detail.classes[0].latency.count, 30);
    assert_eq!(detail.tenant.limit_requests_per_s, Some(50_000.0));
    assert_eq!(detail.settings[0].text, "red");

    let asked: LiveView =
        serde_json::from_str(&get(admin.address(), "/api/live").body).expect("JSON");
    assert!(asked.at_ms >= live.at_ms);
    let asked = get(admin.address(), "/api/live/web").body;
    let asked: TenantDetail = serde_json::from_str(&asked).expect("JSON");
    assert_eq!(asked.tenant.name, "web");
    let missing = get(admin.address(), "/api/live/nobody");
    assert_eq!(missing.status, 404);
}

#[test]
fn the_first_question_is_answered_from_nothing() {
    let (admin, _fake, _registry) = serve();
    let answer = get(admin.address(), "/api/live");
    let live: LiveView = serde_json::from_str(&answer.body).expect("JSON");
    assert_eq!((answer.status, live.tenants_total), (200, 3));
}

#[test]
fn a_tenant_that_is_not_there_is_null() {
    let (admin, _fake, _registry) = serve();
    let mut events = Events::open(admin.address(), "/api/events/nobody");
    assert_eq!(events.next("tenant"), "null");
}

#[test]
fn seats_are_bounded_and_given_back() {
    let (admin, _fake, _registry) = serve();
    let mut seats: Vec<Events> = (0..SEATS)
        .map(|_| Events::open(admin.address(), "/api/events"))
        .collect();
    assert!(seats.iter().all(|seat| seat.head.contains("200 OK")));
    let refused = get(admin.address(), "/api/events");
    let error: Json = serde_json::from_str(&refused.body).expect("JSON");
    assert_eq!(refused.status, 503);
    assert_eq!(
        error["error"]["what"],
        "32 streams are open, no more are served"
    );
    assert_eq!(
        get(admin.address(), "/livez").status,
        200,
        "others are served"
    );
    seats.pop();
    // The server notices the broken stream by its next event at the latest.
    let mut tries = 0;
    while Events::open(admin.address(), "/api/events")
        .head
        .contains("503")
    {
        assert!(!seats[0].next("live").is_empty());
        tries += 1;
        assert!(tries < 5, "the seat was not given back");
    }
}

#[test]
fn a_watcher_who_does_not_read_holds_nobody() {
    let (admin, _fake, _registry) = serve();
    let mut slow = TcpStream::connect(admin.address()).expect("connect");
    slow.write_all(b"GET /api/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .expect("ask");
    let mut quick = Events::open(admin.address(), "/api/events");
    let mut at_ms = 0;
    for _ in 0..3 {
        let live: LiveView = serde_json::from_str(&quick.next("live")).expect("JSON");
        assert!(live.at_ms > at_ms);
        at_ms = live.at_ms;
    }
    drop(slow);
}

#[test]
fn streams_end_with_the_server() {
    let (admin, _fake, _registry) = serve();
    let mut events = Events::open(admin.address(), "/api/events");
    assert!(!events.next("live").is_empty());
    // Far more patience than it may take: only the end of the stream lets it return early.
    let stopping = std::thread::spawn(move || admin.stop(Duration::from_secs(600)));
    assert!(events.next("live").is_empty());
    stopping.join().expect("stopped");
}

#[test]
fn a_stream_does_not_begin_after_a_bad_request() {
    let (admin, _fake, _registry) = serve();
    let mut stream = TcpStream::connect(admin.address()).expect("connect");
    stream
        .write_all(b"POST /api/events HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        .expect("ask");
    let mut text = String::new();
    match stream.read_to_string(&mut text) {
        Ok(_) => assert!(text.starts_with("HTTP/1.1 405"), "{text}"),
        Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset),
    }
}
