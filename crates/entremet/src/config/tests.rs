use std::collections::BTreeSet;
use std::path::Path;
use std::{env, fs};

use proptest::prelude::*;

use super::reference::reference;
use super::schema::LANGUAGE;
use super::*;
use settings::{Otherwise, Takes};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

fn of(text: &str) -> Result<Loaded, Report> {
    parse("test.toml", text, &Overrides::default())
}

fn refused(text: &str) -> String {
    of(text).expect_err("it should be refused").to_string()
}

/// Whether every key has a value or the section it is in.
const EVERYTHING: &str = "
    [server]
    [server.tls]
    listen = '127.0.0.1:6381'
    cert = 'no.pem'
    key = 'no.pem'
    [engine]
    [scheduler]
    [device]
    [control]
    [[tenant]]
    name = 'web'
    reserve = {}
    limit = { requests = '1/s' }
    [[tenant.workload]]
    name = 'jobs'
    [[tenant.slo]]
    class = 'get'
    latency = { at_most = '1ms' }
";

#[test]
fn every_key_of_the_schema_is_read_and_no_other() {
    let (_, reader) = read_all("test.toml", EVERYTHING, &Overrides::default());
    let declared: BTreeSet<&str> = LANGUAGE.keys().map(|key| key.path).collect();
    assert_eq!(reader.asked(), declared);
}

#[test]
fn every_default_is_in_its_own_range() {
    of("").expect("a server without a configuration file");
    let places = ["server", "engine", "scheduler", "device", "control"];
    for key in LANGUAGE.keys() {
        let Otherwise::Value(default) = key.otherwise else {
            continue;
        };
        if !places.contains(&key.section()) {
            continue;
        }
        let text = format!("[{}]\n{} = {default}\n", key.section(), key.name());
        assert_eq!(
            of(&text).expect(&text).config,
            of("").expect("defaults").config,
            "{}",
            key.path
        );
    }
}

#[test]
fn the_reference_is_up_to_date() {
    let page = format!("{ROOT}/docs/reference/config.md");
    if env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&page, reference()).expect("the page can be written");
    }
    let written = fs::read_to_string(&page).expect("docs/reference/config.md");
    assert!(
        written == reference(),
        "docs/reference/config.md is out of date: UPDATE_DOCS=1 cargo test --release -p entremet --lib config"
    );
}

/// The sample is good as it stands, and still good with every commented key made a real one.
#[test]
fn the_sample_shows_every_key() {
    let sample = fs::read_to_string(format!("{ROOT}/entremet.toml")).expect("entremet.toml");
    of(&sample).expect("the sample is good");
    let known: BTreeSet<&str> = LANGUAGE.keys().map(|key| key.name()).collect();
    let key_line = |line: &str| {
        let name = line
            .trim_start_matches(['#', ' '])
            .split(['=', ' ', '.'])
            .next()
            .unwrap_or("");
        known.contains(name) && line.contains('=')
            || line.trim_start_matches(['#', ' ']).starts_with('[')
    };
    let shown: Vec<&str> = sample
        .lines()
        .filter(|line| key_line(line))
        .map(|line| line.trim_start_matches(['#', ' ']))
        .collect();
    let full = shown.join("\n");
    let (_, reader) = read_all("entremet.toml", &full, &Overrides::default());
    for key in LANGUAGE.keys() {
        let exact = key
            .path
            .replace("tenant.", "tenant[0].")
            .replace("].slo.", "].slo[0].")
            .replace("].workload.", "].workload[0].");
        let shown = reader.place(&exact).is_some()
            || reader.place(&exact.replace("[0].", "[1].")).is_some();
        assert!(
            shown || key.path == "tenant.password",
            "{} is not in entremet.toml",
            key.path
        );
    }
    // Files for TLS, with a token and with a profile are not there, both forms of a password are,
    // and data is kept here and elsewhere; nothing else may be wrong.
    let report = reader.report.borrow().to_string();
    for line in report.lines().filter(|line| line.contains(": error: ")) {
        assert!(
            [
                "server.tls.",
                "server.admin_t",
                "engine.kind is",
                "server.cluster:",
                "device.profile",
                "password"
            ]
            .iter()
            .any(|expected| line.contains(expected)),
            "{line}"
        );
    }
}

#[test]
fn the_command_line_wins() {
    let overrides = Overrides {
        listen: vec!["127.0.0.1:1".parse().expect("address")],
        admin: Some("127.0.0.1:2".parse().expect("address")),
        cluster_listen: None,
        node: None,
        engine: None,
        data: Some("/elsewhere".into()),
    };
    let loaded = parse(
        "test.toml",
        "[server]\nlisten = '127.0.0.1:9380'",
        &overrides,
    )
    .expect("good");
    let server = loaded.config.server;
    assert_eq!(
        (server.listen, Some(server.admin)),
        (overrides.listen, overrides.admin)
    );
    assert_eq!(Some(loaded.config.engine.path), overrides.data);
}

#[test]
fn a_plain_password_is_hashed_and_warned_about() {
    let loaded = of("[[tenant]]\nname = 'web'\npassword = 'secret'").expect("good");
    let Password::Hashed(hash) = &loaded.config.tenants[0].password else {
        panic!("no hash");
    };
    assert!(hash.starts_with("$argon2id$") && !format!("{:?}", loaded.config).contains("secret"));
    assert!(loaded
        .report
        .to_string()
        .contains("test.toml:3:12: warning: tenant \"web\", password: is in plain text"));
}

#[test]
fn a_missing_file_is_named() {
    let report = load(
        Some(Path::new("/nowhere/entremet.toml")),
        &Overrides::default(),
    )
    .expect_err("missing");
    assert!(report
        .to_string()
        .starts_with("/nowhere/entremet.toml: error: cannot be read: No such file"));
}

#[test]
fn problems_come_in_the_order_of_the_file() {
    let text =
        "[server]\nmax_value = 3\nlissten = 'x'\n[[tenant]]\nweight = 0\n[engine]\nhandlers = 0\n";
    let report = refused(text);
    let places: Vec<&str> = report
        .lines()
        .filter_map(|line| line.strip_prefix("test.toml:"))
        .collect();
    let lines: Vec<&str> = places
        .iter()
        .map(|place| place.split(':').next().expect("a line"))
        .collect();
    assert_eq!(lines, ["2", "3", "4", "5", "7"], "{report}");
}

proptest! {
    /// Whatever the file says, the answer is a configuration or errors.
    #[test]
    fn no_text_makes_it_panic(
        lines in prop::collection::vec((prop::sample::select(LANGUAGE.keys().collect::<Vec<_>>()), "[^\n]{0,12}"), 0..12),
    ) {
        let mut text = String::new();
        for (key, noise) in lines {
            let value = match key.otherwise { Otherwise::Value(default) => default, _ => &noise };
            text += &match key.takes {
                Takes::Table => format!("[{}]\n", key.path),
                Takes::Tables => format!("[[{}]]\n", key.path),
                _ => format!("{} = {value}\n", key.name()),
            };
        }
        if let Err(report) = of(&text) {
            prop_assert!(report.failed());
        }
    }
}

#[test]
fn reservations_before_an_engine_must_fit_the_front_unless_others_have_a_part() {
    let engine = "[engine]\nkind = 'redis-cluster'\nurl = 'redis-cluster://127.0.0.1:1'\n";
    let reserves = |server: &str, get: &str| {
        let tenant = format!("[[tenant]]\nname = 'web'\npassword = 'p'\nreserve.get = '{get}'\n");
        of(&format!("[server]\ncores = 1\n{server}\n{engine}{tenant}"))
    };
    reserves("", "2000/s").expect("it fits");
    let more = reserves("", "200000/s").expect_err("more than a core serves");
    let said = "reservations of all tenants come to 200000/s, but 1 core serves 100000/s";
    assert!(more.to_string().contains(said), "{more}");
    let several = "cluster = { listen = '127.0.0.1:6390' }";
    reserves(several, "200000/s").expect("others may serve the rest");
}

#[test]
fn permits_are_reserved_of_handlers_only_where_data_is_kept_here() {
    let tenant = "[[tenant]]\nname = 'web'\npassword = 'p'\nreserved_permits = 900\n";
    let here = refused(tenant);
    assert!(here.contains("with 16 handlers nobody else"), "{here}");
    let engine = "[engine]\nkind = 'redis'\nurl = 'redis://127.0.0.1:1'\n";
    of(&format!("{engine}{tenant}")).expect("nothing is taken from handlers");
}
