use super::*;
use policy::Durability;
use settings::tenant::{Limit, Slo, SloClass};

fn spec(weight: f64, password: &str) -> TenantSpec {
    let mut spec = TenantSpec::new("beta");
    spec.settings.weight = weight;
    spec.password = Password::Hashed(password.into());
    spec
}

/// What is left of a change by the journal.
fn written(change: &Change) -> Change {
    serde_json::from_str(&serde_json::to_string(change).unwrap()).unwrap()
}

#[test]
fn every_field_can_be_taken_apart_and_put_together() {
    let mut rich = spec(0.1 + 0.2, "$argon2id$rich");
    rich.settings.limit = Limit {
        requests_per_s: Some(1.0 / 3.0),
        bytes_per_s: None,
        burst_ns: Some(7),
        wait_ns_max: Some(u64::MAX),
    };
    rich.settings.durability = Durability::Always;
    rich.settings.slos = vec![Slo {
        class: SloClass::Get,
        percentile: 99.9,
        at_most_ns: Some(20_000_000),
        throughput_per_s: Some(0.1),
        importance: 80,
        ..Slo::default()
    }];
    let plain = TenantSpec::new("beta");
    assert_eq!(with_fields(&plain, fields_of(&rich)), rich);
    assert_eq!(with_fields(&rich, fields_of(&plain)), plain);
    let change = Change::between(&rich, Some(&plain));
    let changed = "limit.burst limit.max_wait limit.requests password_hash slo sync weight";
    assert_eq!(change.keys().join(" "), changed, "as the file calls them");
    assert_eq!(
        lay("beta", Some(&plain), &written(&change)).spec,
        Some(rich)
    );
}

#[test]
fn a_field_follows_the_file_once_the_file_changes_it_and_the_others_always() {
    let mut set = spec(5.0, "old");
    let change = written(&Change::between(&set, Some(&spec(1.0, "old"))));
    // The same file: it holds.
    let laid = lay("beta", Some(&spec(1.0, "old")), &change);
    assert_eq!((laid.spec, &laid.change), (Some(set.clone()), &change));
    assert_eq!(laid.notes, [Note::Holds("weight = 5 (the file: 1)".into())]);
    // Another password in the file: it is rotated, and the weight holds.
    let rotated = lay("beta", Some(&spec(1.0, "new")), &change);
    set.password = Password::Hashed("new".into());
    assert_eq!((rotated.spec, rotated.change), (Some(set), change.clone()));
    // Another weight in the file: it wins, for good.
    let laid = lay("beta", Some(&spec(7.0, "old")), &change);
    assert_eq!(laid.spec, Some(spec(7.0, "old")));
    assert_eq!(laid.change, Change::Dropped);
    assert_eq!(
        laid.notes,
        [Note::Dropped("weight = 5 (the file: 7)".into())]
    );
    // The same weight in the file: there is nothing to hold or to say.
    let laid = lay("beta", Some(&spec(5.0, "old")), &change);
    assert_eq!((laid.change, laid.notes), (Change::Dropped, Vec::new()));
}

#[test]
fn what_was_set_is_said_as_the_file_writes_it() {
    let mut file = spec(1.0, "same");
    file.settings.limit.requests_per_s = Some(0.5);
    let mut set = file.clone();
    set.settings.durability = Durability::Always;
    set.settings.connections_max = Some(7);
    set.settings.limit.requests_per_s = None;
    set.settings.cache_bytes = Some(64 << 20);
    let laid = lay("beta", Some(&file), &Change::between(&set, Some(&file)));
    assert_eq!(
        laid.notes,
        [Note::Holds(
            "cache = 64MiB (the file: by weight, of what the others leave), \
             max_connections = 7 (the file: what is not kept for others of server.max_connections), \
             sync = always (the file: every 1s), limit.requests = none (the file: 30/min)"
                .into()
        )]
    );
}

#[test]
fn a_password_set_at_run_time_gives_way_to_a_new_one_in_the_file() {
    let change = Change::between(&spec(1.0, "set"), Some(&spec(1.0, "file")));
    assert_eq!(
        change.file_password(),
        Some(Password::Hashed("file".into()))
    );
    let laid = lay("beta", Some(&spec(1.0, "file")), &change);
    assert_eq!(laid.spec, Some(spec(1.0, "set")));
    let laid = lay("beta", Some(&spec(1.0, "rotated")), &change);
    assert_eq!(laid.spec, Some(spec(1.0, "rotated")));
    assert_eq!(
        laid.notes,
        [Note::Dropped("the password".into())],
        "no hash in the log"
    );
}

#[test]
fn lines_of_older_versions_hold_and_are_said() {
    let line = r#"{"change":"set","password_hash":"old","settings":{"weight":5.0}}"#;
    let change: Change = serde_json::from_str(line).unwrap();
    let laid = lay("beta", Some(&spec(1.0, "new")), &change);
    assert_eq!(laid.spec, Some(spec(5.0, "old")));
    let [Note::HoldsUnchecked(what)] = &laid.notes[..] else {
        panic!("{:?}", laid.notes)
    };
    assert_eq!(what, "the password, weight = 5 (the file: 1)");
    // From now on it is known what the file said: another word wins.
    let laid = lay("beta", Some(&spec(1.0, "newer")), &laid.change);
    assert_eq!(laid.spec, Some(spec(5.0, "newer")));
    let laid = lay("beta", None, &change);
    assert_eq!(laid.spec, Some(spec(5.0, "old")), "made at run time");
    assert!(matches!(laid.change, Change::Made(_)));
}

#[test]
fn a_tenant_made_at_run_time_is_the_files_once_it_is_named_there() {
    let made = Change::between(&spec(3.0, "made"), None);
    assert_eq!(lay("beta", None, &made).spec, Some(spec(3.0, "made")));
    let laid = lay("beta", Some(&spec(1.0, "file")), &made);
    assert_eq!(laid.spec, Some(spec(1.0, "file")));
    assert_eq!((laid.change, laid.notes.len()), (Change::Dropped, 1));
}

#[test]
fn a_tenant_removed_at_run_time_stays_away_until_the_file_forgets_it() {
    let laid = lay("beta", Some(&spec(1.0, "file")), &Change::Removed);
    assert_eq!((laid.spec, laid.change), (None, Change::Removed));
    assert_eq!(laid.notes, [Note::StaysRemoved]);
    assert_eq!(lay("beta", None, &Change::Removed).change, Change::Dropped);
    let back = lay("beta", Some(&spec(1.0, "file")), &Change::Dropped);
    assert_eq!(back.spec, Some(spec(1.0, "file")));
}

#[test]
fn a_tenant_that_leaves_the_file_goes_with_what_was_set() {
    let change = Change::between(&spec(5.0, "x"), Some(&spec(1.0, "x")));
    let laid = lay("beta", None, &change);
    assert_eq!((laid.spec, laid.change), (None, Change::Dropped));
    assert!(laid.notes[0].surprises());
}
