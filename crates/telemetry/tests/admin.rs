//! The admin address over real HTTP on the loopback interface.

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::Value as Json;
use support::{exchange, get, request, serve, serve_with};
use telemetry::admin::{Access, Token};
use telemetry::api::{HistogramsView, ServerView, TenantView};
use telemetry::{Class, Limit, State};

#[test]
fn health_follows_the_state() {
    let (admin, fake, _registry) = serve();
    let at = admin.address();
    assert_eq!(get(at, "/livez").status, 200);
    assert_eq!(get(at, "/readyz").body, "ready\n");
    for (state, text) in [
        (
            State::Starting("opening 3 databases".into()),
            "starting: opening 3 databases\n",
        ),
        (State::Draining("SIGTERM".into()), "draining: SIGTERM\n"),
        (
            State::Failed("the disk is full".into()),
            "failed: the disk is full\n",
        ),
    ] {
        *fake.state.lock() = state;
        let answer = get(at, "/readyz");
        assert_eq!((answer.status, answer.body.as_str()), (503, text));
        assert_eq!(get(at, "/livez").status, 200, "it lives all the same");
    }
}

#[test]
fn tenants_show_shares_and_latencies() {
    let (admin, _fake, registry) = serve();
    let mut web = registry.recorder("web", 0).expect("free");
    web.record_many(&request(Class::Get, 400_000), 30);
    let mut batch = registry.recorder("batch", 1).expect("free");
    batch.record_many(&request(Class::Scan, 9_000_000), 10);

    let tenants: Vec<TenantView> =
        serde_json::from_str(&get(admin.address(), "/api/tenants").body).unwrap();
    let names: Vec<&str> = tenants
        .iter()
        .map(|view| view.tenant.name.as_str())
        .collect();
    assert_eq!(names, ["batch", "idle", "web"]);
    assert!(tenants.iter().all(|view| view.settings.is_empty()));
    let web: TenantView =
        serde_json::from_str(&get(admin.address(), "/api/tenants/web").body).unwrap();
    assert_eq!(web.settings[0].key, "colour", "of one tenant, all settings");
    assert_eq!(web.classes.len(), 1);
    assert_eq!(
        (web.classes[0].class, web.classes[0].requests),
        (Class::Get, 30)
    );
    assert!((web.classes[0].latency.p99_ms - 0.4).abs() < 0.013);
    assert_eq!(web.share.configured_percent, 60.0);
    assert_eq!(web.share.entitled_percent, 75.0, "idle does not count");
    assert!((web.share.got_percent - 75.0).abs() < 0.1);
    assert!(web.recent.requests_per_s > 0.0);
}

#[test]
fn differences_of_histograms_are_what_came_between() {
    let (admin, _fake, registry) = serve();
    let mut web = registry.recorder("web", 0).expect("free");
    let ask = || -> Vec<HistogramsView> {
        let text = get(admin.address(), "/api/histograms").body;
        serde_json::from_str(&text).expect("as documented")
    };
    web.record(&request(Class::Get, 40_000_000));
    let before = ask();
    (0..99).for_each(|_| web.record(&request(Class::Get, 100_000)));
    web.record(&request(Class::Get, 900_000));
    web.record(&request(Class::Put, 900_000));
    let after = ask();
    let classes = |of: &[HistogramsView]| -> Vec<(String, Class)> {
        of.iter()
            .map(|one| (one.tenant.clone(), one.class))
            .collect()
    };
    assert_eq!(classes(&before), [("web".to_string(), Class::Get)]);
    assert_eq!(after[1].class, Class::Put);
    let between = after[0].latency.since(&before[0].latency);
    assert_eq!(between.count(), 100);
    assert!((between.quantile(0.99) - 100_000.0).abs() < 100_000.0 / 32.0);
    assert!((between.quantile(1.0) - 900_000.0).abs() < 900_000.0 / 32.0);
}

#[test]
fn the_server_and_its_stages_are_json() {
    let (admin, _fake, _registry) = serve();
    let text = get(admin.address(), "/api/server").body;
    let server: ServerView = serde_json::from_str(&text).expect("as documented");
    assert_eq!((server.server.cores, server.state), (2, State::Ready));
    let flat: Json = serde_json::from_str(&text).unwrap();
    assert_eq!(flat["state"], "ready");
    let stages: Json = serde_json::from_str(&get(admin.address(), "/api/stages").body).unwrap();
    assert_eq!(stages[0]["principals"][0]["name"], "web");
}

#[test]
fn errors_say_what_where_and_what_to_do() {
    let (admin, _fake, _registry) = serve();
    for (method, path, status, what) in [
        (
            "GET",
            "/api/tenants/nobody",
            404,
            "there is no tenant named \"nobody\"",
        ),
        ("GET", "/api/tenant", 404, "there is nothing at this path"),
        ("POST", "/metrics", 405, "POST is not possible here"),
    ] {
        let text =
            format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        let answer = exchange(admin.address(), text.as_bytes());
        let error: Json = serde_json::from_str(&answer.body).expect("JSON");
        assert_eq!(
            (answer.status, error["error"]["what"].as_str()),
            (status, Some(what))
        );
        assert_eq!(error["error"]["where"], path);
        assert!(error["error"]["do"]
            .as_str()
            .is_some_and(|advice| advice.contains("GET")));
    }
}

/// Every metric of the page is in the reference with its type, every metric of the reference on the
/// page, and another's parser reads it all.
#[test]
fn metrics_are_what_the_reference_says() {
    let (admin, _fake, registry) = serve();
    let mut web = registry.recorder("web", 0).expect("free");
    web.record(&request(Class::Get, 400_000));
    web.throttled(Class::Get, Limit::Requests);
    let page = get(admin.address(), "/metrics");
    assert!(
        page.head
            .contains("content-type: text/plain; version=0.0.4"),
        "{}",
        page.head
    );

    let typed: BTreeMap<&str, &str> = page
        .body
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '))
        .collect();
    let reference = telemetry::metrics::reference();
    let documented: BTreeMap<&str, &str> = reference
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once("` | "))
        .map(|(name, rest)| (name, rest.split_once(' ').unwrap().0))
        .collect();
    assert_eq!(typed, documented);

    let lines = page.body.lines().map(|line| Ok(line.to_string()));
    let scrape = prometheus_parse::Scrape::parse(lines).expect("the page parses");
    let sampled: BTreeSet<&str> = scrape
        .samples
        .iter()
        .map(|sample| sample.metric.as_str())
        .collect();
    for name in documented.keys() {
        assert!(sampled.contains(name), "{name} has a sample");
    }
    let value = |metric: &str| {
        scrape
            .samples
            .iter()
            .find(|sample| sample.metric == metric)
            .unwrap()
    };
    assert!(matches!(value("redis_up").value, prometheus_parse::Value::Gauge(up) if up == 1.0));
    assert!(matches!(&value("entremet_tenant_latency_seconds").value,
        prometheus_parse::Value::Histogram(buckets)
            if buckets.iter().any(|b| b.less_than == 0.0005 && b.count == 1.0)
            && buckets.iter().any(|b| b.less_than == 0.0002 && b.count == 0.0)));
}

#[test]
fn a_peer_that_says_nothing_does_not_keep_the_server_from_stopping() {
    let (admin, _fake, _registry) = serve();
    let mut silent = TcpStream::connect(admin.address()).expect("connect");
    silent.write_all(b"GET /livez HT").expect("half a head");
    let started = Instant::now();
    admin.stop(Duration::from_millis(300));
    assert!(started.elapsed() < Duration::from_secs(3));
    let mut rest = Vec::new();
    // Closed or reset, but over.
    let _ = silent.read_to_end(&mut rest);
    assert!(rest.is_empty());
}

#[test]
fn a_taken_address_is_named() {
    let (admin, fake, registry) = serve();
    let options = telemetry::admin::AdminOptions {
        address: admin.address(),
        access: Access::default(),
        tls: None,
        registry,
        source: fake,
    };
    let Err(error) = telemetry::admin::start(options) else {
        panic!("it is taken")
    };
    let text = error.to_string();
    assert!(
        text.contains(&admin.address().to_string()) && text.contains("--admin"),
        "{text}"
    );
}

#[test]
fn an_oversized_head_is_refused() {
    let (admin, _fake, _registry) = serve();
    let mut text = b"GET /livez HTTP/1.1\r\nHost: localhost\r\nX: ".to_vec();
    text.resize(200_000, b'a');
    let answer = exchange(admin.address(), &text);
    assert!(
        answer.status == 431 || answer.status == 0,
        "{}",
        answer.head
    );
    assert_eq!(get(admin.address(), "/livez").status, 200);
}

#[test]
fn who_calls_it_by_another_name_or_brings_no_token_learns_nothing() {
    let access = Access {
        names: vec!["metrics.example.org".into()],
        token: Some(Token::new("a token of some letters")),
    };
    let (admin, _fake, _registry) = serve_with(access, None);
    let ask = |path: &str, head: &str| {
        let text = format!("GET {path} HTTP/1.1\r\n{head}Connection: close\r\n\r\n");
        exchange(admin.address(), text.as_bytes())
    };
    let token = "Authorization: Bearer a token of some letters\r\n";
    let ours = "Host: metrics.example.org:9380\r\n";
    for path in [
        "/",
        "/ui/dashboard.js",
        "/metrics",
        "/api/server",
        "/api/events",
        "/nothing",
    ] {
        let answer = ask(path, &format!("Host: evil.example.org\r\n{token}"));
        assert_eq!(answer.status, 403, "{path}");
        assert!(
            answer.body.contains("server.admin_names"),
            "{}",
            answer.body
        );
        let answer = ask(path, ours);
        assert_eq!(answer.status, 401, "{path}");
        let challenge = "www-authenticate: bearer realm=\"entremet\", basic realm=\"entremet\"";
        assert!(
            answer.head.to_lowercase().contains(challenge),
            "{}",
            answer.head
        );
        assert!(!answer.body.contains("web"), "{}", answer.body);
    }
    assert_eq!(ask("/metrics", &format!("{ours}{token}")).status, 200);
    assert_eq!(ask("/livez", "Host: probe\r\n").status, 200);
    admin.set_access(Access::default());
    assert_eq!(ask("/metrics", "Host: localhost\r\n").status, 200);
}
