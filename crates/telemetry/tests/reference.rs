//! The reference pages say what the code does.

mod support;

use std::collections::BTreeSet;
use std::{env, fs};

use serde_json::Value;

const PAGE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../docs/reference/metrics.md"
);

#[test]
fn the_metrics_page_is_up_to_date() {
    let written = telemetry::metrics::reference();
    if env::var_os("UPDATE_DOCS").is_some() {
        fs::write(PAGE, &written).expect("the page can be written");
    }
    let page = fs::read_to_string(PAGE).expect("docs/reference/metrics.md");
    assert!(
        page == written,
        "docs/reference/metrics.md is out of date: UPDATE_DOCS=1 cargo test -p entremet-telemetry --test reference"
    );
}

/// Every field that the API can answer with has its name in the page.
#[test]
fn the_admin_page_names_every_field() {
    let page = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/reference/admin-api.md"
    );
    let page = fs::read_to_string(page).expect("docs/reference/admin-api.md");
    let (admin, _fake, registry) = support::serve();
    let mut web = registry.recorder("web", 0).expect("free");
    web.record(&support::request(telemetry::Class::Get, 1_000));
    let mut fields = BTreeSet::new();
    // The second of the two readings that a live view needs must find something to tell.
    let at = admin.address();
    let mut events = support::Events::open(at, "/api/events/web");
    web.record(&support::request(telemetry::Class::Get, 1_000));
    for event in ["live", "tenant"] {
        collect(
            &serde_json::from_str(&events.next(event)).expect("JSON"),
            &mut fields,
        );
    }
    for path in [
        "/api/server",
        "/api/tenants",
        "/api/stages",
        "/api/delays",
        "/api/explain/web",
        "/api/attainment/web",
        "/api/cluster/web",
        "/api/nothing",
    ] {
        let text = support::get(admin.address(), path).body;
        collect(&serde_json::from_str(&text).expect("JSON"), &mut fields);
    }
    assert!(fields.len() > 90, "{fields:?}");
    let unnamed: Vec<_> = fields
        .iter()
        .filter(|field| !page.contains(&format!("`{field}`")))
        .collect();
    assert!(
        unnamed.is_empty(),
        "docs/reference/admin-api.md does not name {unnamed:?}"
    );
}

fn collect(json: &Value, fields: &mut BTreeSet<String>) {
    match json {
        Value::Object(object) => {
            for (name, value) in object {
                fields.insert(name.clone());
                collect(value, fields);
            }
        }
        Value::Array(list) => list.iter().for_each(|value| collect(value, fields)),
        _ => {}
    }
}
