//! Settings as files and commands write them.

use std::collections::BTreeSet;

use policy::Durability;
use toml::de::DeTable;

use super::*;
use crate::schema::{key, Key, Language};
use crate::{Otherwise, Reader, Report, Takeover, Takes};

mod lists;

static LANGUAGE: Language = Language {
    parts: &[TENANT, KEYS],
    alike: &[],
};

const TENANT: &[Key] = &[key(
    "tenant",
    Takes::Table,
    Otherwise::Unset("none"),
    Takeover::Reload,
    "A tenant.",
)];

/// What a file with these lines below `[tenant]` says, or what is wrong with it.
fn file(lines: &str) -> Result<Terms, String> {
    let text = format!("[tenant]\n{lines}\n");
    let document = DeTable::parse(&text).map_err(|error| error.to_string())?;
    let reader = Reader::new(&LANGUAGE, Report::new("test.toml", &text), false);
    let terms = Terms::read(&reader.root(document.get_ref()).table("tenant"));
    let report = reader.report.into_inner();
    match report.failed() {
        true => Err(report.to_string()),
        false => Ok(terms),
    }
}

fn taken(words: &[(&str, &str)]) -> Settings {
    let mut settings = Settings::default();
    for (name, word) in words {
        let setting = Setting::named(name).expect(name);
        let taken = setting.take(&mut settings, word);
        taken.unwrap_or_else(|why| panic!("{name} {word} {why}"));
    }
    settings
}

/// A value that is not the setting's default, as it is said: an end of its range, or another word.
fn another(setting: &Setting) -> String {
    let ends = |min: &dyn ToString, max: &dyn ToString| vec![min.to_string(), max.to_string()];
    let values = match setting.key.takes {
        Takes::Flag => ends(&false, &true),
        Takes::Integer(min, max) => ends(&min, &max),
        Takes::Number(min, max) => ends(&min, &max),
        Takes::Bytes(min, max)
        | Takes::Time(min, max)
        | Takes::Rate(min, max)
        | Takes::ByteRate(min, max) => ends(&min, &max),
        Takes::Choice(choices) => {
            let words = choices();
            words.iter().map(|(word, _)| (*word).to_string()).collect()
        }
        other => panic!("{}: {other:?} is not tried", setting.name()),
    };
    let other = |value: &String| *value != setting.text(&Settings::default());
    values.into_iter().find(other).expect("more than one value")
}

/// As a file has the value.
fn line(name: &str, value: &str) -> String {
    let bare = match Setting::named(name).expect(name).key.takes {
        Takes::Flag | Takes::Integer(..) | Takes::Number(..) => value.to_string(),
        _ => format!("{value:?}"),
    };
    format!("{name} = {bare}")
}

/// The fields of an object, those of tables by their path.
fn fields(value: &serde_json::Value, before: &str) -> BTreeSet<String> {
    let object = value.as_object().expect("an object");
    let each = object.iter().flat_map(|(name, value)| match value {
        serde_json::Value::Object(_) => fields(value, &format!("{name}.")),
        _ => BTreeSet::from([format!("{before}{name}")]),
    });
    each.collect()
}

#[test]
fn every_field_has_its_row_and_every_row_its_field() {
    let kept = serde_json::to_value(Settings::default()).expect("JSON");
    let rows = SETTINGS.iter().map(|setting| setting.stored.to_string());
    assert_eq!(fields(&kept, ""), rows.collect());
    let options: BTreeSet<String> = SETTINGS.iter().map(Setting::option).collect();
    assert_eq!(
        options.len(),
        SETTINGS.len(),
        "names of commands are unique"
    );
    assert_eq!(LANGUAGE.mistakes(), Vec::<String>::new());
}

#[test]
fn a_file_that_says_nothing_leaves_the_defaults() {
    let terms = file("").expect("good");
    assert_eq!(terms.given, Vec::<&str>::new());
    for setting in SETTINGS {
        assert!(setting.is_default(&terms.settings), "{}", setting.name());
        assert!(setting.is_default(&Settings::default()));
        assert!(!terms.settings.asks(setting.name()));
    }
    assert_eq!(terms.settings.promise(), Settings::default().promise());
}

/// What is said can be read again, by the file and by commands, as the same.
#[test]
fn file_and_commands_take_what_is_said() {
    let (mut all, mut lines) = (file("").expect("good").settings, Vec::new());
    for setting in SETTINGS.iter().filter(|setting| setting.one_word()) {
        let (name, value) = (setting.name(), another(setting));
        setting.take(&mut all, &value).expect(name);
        lines.push(line(name, &value));
        let read = file(&line(name, &value)).unwrap_or_else(|why| panic!("{why}"));
        assert_eq!(read.given, [name]);
        assert_eq!(setting.text(&read.settings), value);
        assert!(!setting.is_default(&read.settings) && read.settings.asks(name));
        let taken = taken(&[(name, &value)]);
        assert_eq!(setting.text(&taken), value);
    }
    assert_eq!(file(&lines.join("\n")).expect("good").settings, all);
    assert_ne!(all, Settings::default());
}

/// The ends of each range, as both write them, and what lies beyond.
#[test]
fn commands_keep_the_ranges_of_the_file() {
    for (name, first, last, beyond) in [
        ("max_connections", "1", "1000000", ["0", "1000001"]),
        ("request_memory", "1MiB", "64TiB", ["1023KiB", "65TiB"]),
        ("weight", "0.001", "1000", ["0.0009", "1000.1"]),
        ("cache", "0B", "64TiB", ["65TiB", "-1B"]),
        ("reserved_permits", "0", "1024", ["-1", "1025"]),
        ("contract", "1/h", "100M/s", ["0/s", "101M/s"]),
        ("reserve.get", "1/h", "100M/s", ["0/s", "101M/s"]),
        ("limit.requests", "1/h", "100M/s", ["0/s", "101M/s"]),
        ("limit.bytes", "1kB/s", "1TB/s", ["999B/s", "2TB/s"]),
        ("limit.burst", "1ms", "1min", ["999us", "61s"]),
        ("limit.max_wait", "0s", "1min", ["61s", "-1s"]),
    ] {
        let setting = Setting::named(name).expect(name);
        let command = |word: &str| setting.take(&mut Settings::default(), word);
        for word in [first, last] {
            assert_eq!(command(word), Ok(()), "{name} {word}");
            assert!(file(&line(name, word)).is_ok(), "{name} {word}");
        }
        for word in beyond {
            let must = command(word).expect_err(word);
            assert!(must.contains(&setting.key.takes.describe()), "{must}");
            assert!(file(&line(name, word)).is_err(), "{name} {word}");
        }
    }
}

#[test]
fn commands_take_numbers_a_second_and_redis_sizes() {
    let settings = taken(&[
        ("reserve.get", "2000"),
        ("reserve.put", "0.5/s"),
        ("limit.requests", "5e4"),
        ("limit.bytes", "1000000/s"),
        ("cache", "64mb"),
        ("block_cache", "5k"),
        ("write_buffers", "1048576"),
        ("request_memory", "64MB"),
        ("sync", "EVERYSEC"),
        ("admin", "YES"),
    ]);
    assert_eq!(
        (settings.reserve_get_per_s, settings.reserve_put_per_s),
        (Some(2_000.0), Some(0.5))
    );
    assert_eq!(settings.limit.requests_per_s, Some(50_000.0));
    assert_eq!(settings.limit.bytes_per_s, Some(1e6));
    assert_eq!(settings.cache_bytes, Some(64 << 20));
    assert_eq!(settings.block_cache_bytes, Some(5_000));
    assert_eq!(settings.write_buffer_bytes, Some(1 << 20));
    // In the file's spelling it is what the file means by it.
    assert_eq!(settings.request_bytes, Some(64_000_000));
    assert_eq!(settings.durability, Durability::EverySecond);
    assert!(settings.admin);
    // Said so that the file or a command takes it again.
    let said = |name: &str| Setting::named(name).expect(name).text(&settings);
    assert_eq!(
        (said("reserve.put"), said("block_cache")),
        ("30/min".into(), "5kB".into())
    );
}

#[test]
fn what_makes_no_sense_is_refused_and_changes_nothing() {
    for (name, word, error) in [
        ("weight", "0", "must be a number from 0.001 to 1000"),
        ("weight", "nan", "must be a number from 0.001 to 1000"),
        ("weight", "none", "must be a number from 0.001 to 1000"),
        (
            "reserved_permits",
            "1.5",
            "must be a whole number from 0 to 1024",
        ),
        (
            "contract",
            "1e-320",
            "must be a rate of requests from 1/h to 100M/s, or NONE",
        ),
        (
            "contract",
            "inf",
            "must be a rate of requests from 1/h to 100M/s, or NONE",
        ),
        (
            "limit.bytes",
            "1",
            "must be a rate of bytes from 1kB/s to 1TB/s, or NONE",
        ),
        ("limit.burst", "20", "must be a time from 1ms to 1min"),
        ("limit.burst", "auto", "must be a time from 1ms to 1min"),
        (
            "sync",
            "often",
            "must be \"always\", \"every 1s\" or \"never\"",
        ),
        (
            "cache",
            "5x",
            "must be an amount of data from 0B to 64TiB, or AUTO",
        ),
        (
            "cache",
            "99999999999999999999",
            "must be an amount of data from 0B to 64TiB, or AUTO",
        ),
        (
            "cache",
            "17179869184gb",
            "must be an amount of data from 0B to 64TiB, or AUTO",
        ),
        (
            "max_connections",
            "0",
            "must be a whole number from 1 to 1000000, or AUTO",
        ),
        ("admin", "maybe", "must be true or false"),
        (
            "weight",
            "1.0000000000000000000000000000000000000000000000000000000000000000",
            "must be a number from 0.001 to 1000",
        ),
    ] {
        let mut settings = Settings::default();
        let taken = Setting::named(name).expect(name).take(&mut settings, word);
        assert_eq!(taken.expect_err(name), error, "{name} {word}");
        assert_eq!(settings, Settings::default());
    }
}

#[test]
fn a_value_can_be_taken_back() {
    let mut settings = taken(&[
        ("contract", "5/s"),
        ("cache", "1MiB"),
        ("max_connections", "5"),
    ]);
    for (name, word) in [
        ("contract", "none"),
        ("cache", "AUTO"),
        ("max_connections", "auto"),
    ] {
        let setting = Setting::named(name).expect(name);
        assert_eq!(setting.take(&mut settings, word), Ok(()));
        assert_eq!(setting.value(&settings), None);
    }
    assert_eq!(settings, Settings::default());
}

/// Data directories hold these names: a change of one loses what was set at run time.
#[test]
fn the_names_in_the_data_directory_stay() {
    let kept = r#"{"admin":false,"weight":1.0,"connections_max":null,"partitions":1,"reads":"master","replica_lag_ns_max":null,"scripts":false,"reserved_permits":0,"reserved_ios":0,"reserve_get_per_s":null,"reserve_put_per_s":null,"limit":{"requests_per_s":null,"bytes_per_s":null,"burst_ns":null,"wait_ns_max":null},"contract_per_s":null,"durability":"every-second","cache_bytes":null,"block_cache_bytes":null,"write_buffer_bytes":null,"request_bytes":null,"workloads":[],"slos":[]}"#;
    let settings = Settings::default();
    assert_eq!(serde_json::to_string(&settings).expect("JSON"), kept);
    let slo = r#"{"durability":"always","slos":[{"class":"scan","latency":[99.0,20000000],"throughput_per_s":null,"contract_per_s":1500.0,"importance":80}]}"#;
    let settings: Settings = serde_json::from_str(slo).expect("an older one");
    let scan = Slo {
        class: SloClass::Scan,
        at_most_ns: Some(20_000_000),
        contract_per_s: Some(1_500.0),
        importance: 80,
        ..Slo::default()
    };
    assert_eq!(
        (&settings.slos[0], settings.durability),
        (&scan, Durability::Always)
    );
    let kept = r#"{"workload":null,"class":"scan","percentile":99.0,"at_most_ns":20000000,"window_ns":null,"throughput_per_s":null,"contract_per_s":1500.0,"importance":80}"#;
    assert_eq!(serde_json::to_string(&scan).expect("JSON"), kept);
    assert_eq!(serde_json::from_str::<Slo>(kept).expect("the same"), scan);
    let kept = r#"{"name":"batch","clients":[],"libraries":[],"weight":1.0}"#;
    let batch = Workload {
        name: "batch".into(),
        ..Workload::default()
    };
    assert_eq!(serde_json::to_string(&batch).expect("JSON"), kept);
}

const READS_MASTERS: &str = "Its reads see every write that was answered before.";

#[test]
fn what_is_set_is_said_in_sentences() {
    assert_eq!(
        Settings::default().sentences(),
        [
            READS_MASTERS,
            "Writes are safe within a second; a power cut can cost the last second's."
        ]
    );
    let settings = taken(&[
        ("admin", "yes"),
        ("reserve.get", "60/min"),
        ("limit.requests", "5/s"),
    ]);
    assert_eq!(
        settings.sentences(),
        [
            "It may administer the server.",
            READS_MASTERS,
            "Writes are safe within a second; a power cut can cost the last second's.",
            "Promised whatever the others want: 1/s reads of 1 KiB.",
            "Never more than 5/s requests.",
            "After a pause, 100ms of that may come at once.",
            "A request that would wait longer than 100ms for that is answered -THROTTLED.",
        ]
    );
}

#[test]
fn how_stale_reads_may_be_is_said_with_it() {
    let settings = taken(&[("reads", "REPLICA")]);
    let said = settings.sentences_but(&["sync"]);
    assert_eq!(
        said,
        [
            "Its reads may go to replicas, and miss what was written just before.",
            "Reads see every write that was answered longer than 1s before them.",
        ]
    );
    assert_eq!(settings.may_lag_ns(), Some(1_000_000_000));
    let settings = taken(&[("reads", "replica"), ("replica_lag_max", "5s")]);
    assert_eq!(settings.may_lag_ns(), Some(5_000_000_000));
    assert_eq!(taken(&[("replica_lag_max", "5s")]).may_lag_ns(), None);
    let kept = serde_json::to_string(&settings).expect("JSON");
    assert!(kept.contains("\"reads\":\"replica\""), "{kept}");
    assert_eq!(
        serde_json::from_str::<Settings>(&kept).expect("the same"),
        settings
    );
}
