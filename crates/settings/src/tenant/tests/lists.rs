//! Workloads and promises: read, changed field by field, doubted.

use super::*;

const LISTS: &str = r#"
[[tenant.workload]]
name = "batch"
clients = ["etl-*", "report-?"]
libraries = "spark*"
weight = 0.5
[[tenant.workload]]
name = "jobs"
[[tenant.slo]]
class = "get"
latency = { p = 99.9, at_most = "20ms", window = "1min" }
contract = "1500/s"
importance = 80
[[tenant.slo]]
workload = "batch"
class = "scan"
throughput = "40/s"
"#;

#[test]
fn lists_are_read_and_said() {
    let settings = file(LISTS).unwrap_or_else(|why| panic!("{why}")).settings;
    let said = |name: &str| Setting::named(name).expect(name).text(&settings);
    assert_eq!(
        said("workload"),
        "batch (clients named etl-* or report-? or libraries named spark*; weight 0.5); jobs (clients named jobs; weight 1)"
    );
    assert_eq!(
        said("slo"),
        "get: 99.9 % of requests within 20ms in every 1min, up to 1500/s offered; scan of batch: 40/s served in every 10s"
    );
    let objective = settings.slos[0].objective();
    assert_eq!(objective.window_ns, 60_000_000_000);
    assert_eq!(
        objective.latency.map(|latency| latency.at_most_ns),
        Some(20_000_000)
    );
    assert_eq!(settings.doubts(), []);
}

/// Fields by the names that commands have for them.
#[test]
fn commands_take_the_fields_of_lists() {
    fn take<T>(
        fields: &'static [Field<T>],
        one: &mut T,
        option: &str,
        word: &str,
    ) -> Result<(), String> {
        let field = fields.iter().find(|field| field.option() == option);
        field.expect(option).take(one, word)
    }
    let mut slo = Slo::default();
    for (option, word) in [
        ("CLASS", "GET"),
        ("P", "99.9"),
        ("AT-MOST", "20ms"),
        ("WINDOW", "1min"),
        ("CONTRACT", "1500"),
        ("IMPORTANCE", "80"),
        ("THROUGHPUT", "1/s"),
        ("THROUGHPUT", "none"),
    ] {
        assert_eq!(take(SLO, &mut slo, option, word), Ok(()), "{option} {word}");
    }
    assert_eq!(slo, file(LISTS).expect("good").settings.slos[0]);
    let mut batch = Workload {
        name: "batch".into(),
        ..Workload::default()
    };
    for (option, word) in [
        ("CLIENTS", "etl-*,report-?"),
        ("LIBRARIES", "spark*"),
        ("WEIGHT", "0.5"),
    ] {
        assert_eq!(
            take(WORKLOAD, &mut batch, option, word),
            Ok(()),
            "{option} {word}"
        );
    }
    assert_eq!(batch, file(LISTS).expect("good").settings.workloads[0]);
    for (option, word, must) in [
        ("P", "100", "must be a number from 1 to 99.999"),
        ("AT-MOST", "none", "must be a time from 1us to 1h"),
        ("WINDOW", "100ms", "must be a time from 1s to 1h, or AUTO"),
        (
            "CLASS",
            "write",
            "must be \"get\", \"put\", \"multiget\", \"scan\" or \"any\"",
        ),
    ] {
        assert_eq!(
            take(SLO, &mut slo, option, word),
            Err(must.into()),
            "{option} {word}"
        );
    }
    for wrong in ["", "a,,b", "a b"] {
        assert!(
            take(WORKLOAD, &mut batch, "CLIENTS", wrong).is_err(),
            "{wrong}"
        );
    }
}

/// Every contradiction, with its place in the file.
#[test]
fn promises_that_contradict_each_other_are_all_found() {
    let text = r#"
contract = "1000/s"
limit = { requests = "2000/s" }
[[tenant.workload]]
name = "a b"
[[tenant.workload]]
name = "jobs"
[[tenant.workload]]
name = "jobs"
[[tenant.slo]]
class = "get"
[[tenant.slo]]
class = "get"
throughput = "1500/s"
[[tenant.slo]]
workload = "night"
class = "put"
latency = { at_most = "5ms", window = "1s" }
contract = "20/s"
[[tenant.slo]]
class = "scan"
latency = { p = 99.0 }
"#;
    let wrong = file(text).expect_err("wrong");
    for (line, what) in [
        (6, "\"a b\" is not a workload's name"),
        (10, "there is another workload \"jobs\""),
        (12, "the promise for get promises nothing"),
        (14, "the promise for get is given twice"),
        (15, "is for 1500/s, but beyond contract = 1000/s no promise holds"),
        (17, "is for a workload \"night\" that the tenant does not have"),
        (19, "is judged in windows of 1s, of about 20 requests: one that is late breaks it, since p99 of fewer than 100 requests"),
        (23, "at_most: is missing"),
    ] {
        let found = wrong.lines().find(|said| said.contains(what));
        let place = format!("test.toml:{line}:");
        assert!(found.is_some_and(|said| said.starts_with(&place)), "{what}: {wrong}");
    }
}
