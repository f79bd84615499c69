use std::collections::BTreeSet;
use std::{env, fs};

use settings::Report;

use super::reference::reference;
use super::schema::LANGUAGE;
use super::*;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

fn of(text: &str) -> Result<Loaded, WorkloadError> {
    Scenario::from_text(text, "test.toml")
}

fn good(text: &str) -> Scenario {
    of(text).unwrap_or_else(|e| panic!("{text}\n{e}")).scenario
}

fn refused(text: &str) -> String {
    of(text).expect_err("it should be refused").to_string()
}

/// A tenant with one load of these keys.
fn load(keys: &str) -> String {
    format!("[[tenant]]\nname = 'web'\n[[tenant.load]]\n{keys}\n")
}

fn behaviour(keys: &str) -> Behaviour {
    good(&load(keys)).tenants[0].loads[0].first.clone()
}

#[test]
fn the_language_is_well_declared() {
    assert_eq!(LANGUAGE.mistakes(), Vec::<String>::new());
}

#[test]
fn every_key_is_read_and_no_other() {
    let text = "server = {}
        [[tenant]]
        name = 'web'
        limit = {}
        reserve = {}
        [[tenant.workload]]
        name = 'batch'
        [[tenant.slo]]
        class = 'get'
        latency = { at_most = '1ms' }
        [[tenant.load]]
        name = 'a'
        [[tenant.load.phase]]
        at = '1s'";
    let (_, reader) = read::read_all(text, Report::new("test.toml", text));
    let declared: BTreeSet<&str> = LANGUAGE.keys().map(|key| key.path).collect();
    assert_eq!(reader.asked(), declared);
}

#[test]
fn the_reference_is_up_to_date() {
    let page = format!("{ROOT}/docs/reference/scenario.md");
    if env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&page, reference()).expect("the page can be written");
    }
    let written = fs::read_to_string(&page).expect("docs/reference/scenario.md");
    assert!(
        written == reference(),
        "docs/reference/scenario.md is out of date: UPDATE_DOCS=1 cargo test --release -p entremet-workload --lib scenario"
    );
}

#[test]
fn the_example_of_the_reference_is_good() {
    let page = reference();
    let text = page
        .split("```toml\n")
        .nth(1)
        .and_then(|rest| rest.split("```").next());
    let scenario = good(text.expect("an example"));
    let names: Vec<&str> = scenario.tenants.iter().map(|t| t.name.as_str()).collect();
    assert_eq!(names, ["web-1", "web-2", "web-3", "web-4"]);
    let web = &scenario.tenants[3];
    assert_eq!(
        (web.group.as_str(), web.terms.settings.weight),
        ("web", 10.0)
    );
    let (first, phase) = (&web.loads[0].first, &web.loads[0].phases[0]);
    assert_eq!(phase.at, Duration::from_secs(10));
    let rate = |behaviour: &Behaviour| match &behaviour.pace {
        Pace::Open {
            arrivals: Arrivals::Poisson(rate),
            ..
        } => *rate,
        other => panic!("{other:?}"),
    };
    assert_eq!((rate(first), rate(&phase.behaviour)), (2_000.0, 4_000.0));
    assert_eq!(first.mix, phase.behaviour.mix);
}

#[test]
fn phases_build_on_the_load_and_replace_whole_keys() {
    let scenario = good(&load(
        "rate = '10/s'
        mix = { get = 1, put = 1 }
        [[tenant.load.phase]]
        at = '1s'
        mix = { delete = 2 }
        [[tenant.load.phase]]
        at = '2s'
        misbehave = 'deep-pipelines'
        connections = 3
        [[tenant.load.phase]]
        at = '3s'",
    ));
    let load = &scenario.tenants[0].loads[0];
    let [deletes, deep, again] = &load.phases[..] else {
        panic!("{:?}", load.phases)
    };
    assert_eq!(
        (deletes.behaviour.mix.get, deletes.behaviour.mix.delete),
        (0.0, 2.0)
    );
    assert_eq!(deep.behaviour.pace, Pace::Closed { depth: 4_096 });
    assert_eq!(
        (deep.behaviour.connections, deep.behaviour.mix.get),
        (3, 1.0)
    );
    assert_eq!(deep.behaviour.mix.put, 0.0, "the way goes before the load");
    assert_eq!(again.behaviour, load.first);
}

#[test]
fn every_way_to_misbehave_can_be_read_and_changed() {
    for way in misbehave::WAYS {
        let first = behaviour(&format!("misbehave = '{way}'\nconnections = 77"));
        assert_eq!(first.misbehave.as_deref(), Some(*way));
        assert_eq!(first.connections, 77);
    }
}

#[test]
fn everything_that_is_wrong_is_said_at_once() {
    let text = "sed = 1
        duration = '5'
        [[tenant]]
        name = 'a b'
        wieght = 3
        [[tenant.load]]
        lop = 'open'
        mix = { gets = 1 }
        values = { kind = 'log-normal', size = '1KiB' }
        popularity = { kind = 'zipf', hot_keys = 3 }
        [[tenant.load.phase]]
        rate = 5
        [[tenant]]
        name = 'idle'";
    let said = refused(text);
    for part in [
        "test.toml:1:1: error: sed: there is no such key",
        "did you mean \"seed\"?",
        "test.toml:2:20: error: duration: \"5\" has no unit",
        "error: tenant \"a b\", name: \"a b\" is not a name",
        "tenant \"a b\", wieght: there is no such key\n    do: did you mean \"weight\"?",
        "tenant \"a b\", load 1, lop: there is no such key\n    do: did you mean \"loop\"?",
        "load 1, mix.gets: there is no such key\n    do: did you mean \"get\"?",
        "load 1, values.size: has no effect with kind = \"log-normal\"",
        "load 1, popularity.hot_keys: has no effect with kind = \"zipf\"",
        "load 1, rate: is missing for arrivals = \"poisson\"",
        "load 1, phase 1, at: is missing",
        "load 1, phase 1, rate: is the number 5; write it in quotes, as \"2000/s\"",
        "tenant \"idle\", load: is missing",
    ] {
        assert!(said.contains(part), "{part}\nnot in\n{said}");
    }
    assert_eq!(
        said.matches("values.size").count(),
        1,
        "a phase repeats nothing\n{said}"
    );
}

#[test]
fn a_load_is_for_a_thread_that_there_is() {
    let said = refused(&load("loop = 'closed'\nthread = 1"));
    assert!(
        said.contains("threads: is 1, and a load is for thread 1"),
        "{said}"
    );
    let two = format!("threads = 2\n{}", load("loop = 'closed'\nthread = 1"));
    assert_eq!(good(&two).tenants[0].loads[0].thread, Some(1));
}

#[test]
fn what_cannot_take_effect_is_refused() {
    for (keys, part) in [
        (
            "loop = 'closed'\nrate = '5/s'",
            "rate: has no effect in a closed loop",
        ),
        (
            "rate = '5/s'\ndepth = 4",
            "depth: has no effect in an open loop",
        ),
        ("arrivals = 'curve'", "curve: is missing"),
        (
            "arrivals = 'curve'\ncurve = {}",
            "trace: is missing, and so is `file`",
        ),
        (
            "arrivals = 'curve'\ncurve = { trace = 'rate-nasa-http', mean = '1/s', peak = '2/s' }",
            "peak: is given as well",
        ),
        (
            "arrivals = 'trace'\ntrace = { name = 'meta' }\nmix = { get = 1 }",
            "mix: has no effect",
        ),
        (
            "arrivals = 'trace'\ntrace = { name = 'mta' }",
            "\"mta\" is not known",
        ),
        ("loop = 'closed'\nttl_together = true", "without `ttl`"),
        ("loop = 'closed'\nmix = {}", "all others are 0"),
        (
            "loop = 'closed'\npopularity = { kind = 'hotspot', hot_keys = 20_000 }",
            "more than there are keys",
        ),
        (
            "loop = 'closed'\nvalues = { kind = 'histogram', sizes = ['1B'], weights = [1, 2] }",
            "are 2 for 1 sizes",
        ),
        (
            "loop = 'closed'\nmultiget = { kind = 'uniform', min = 9, max = 3 }",
            "is more than `max`",
        ),
        (
            "loop = 'closed'\nfrom = '3s'\nuntil = '3s'",
            "is not after `from`",
        ),
        ("phase = [{ at = '2s', requests = 3 }]", "cannot change in"),
        (
            "loop = 'closed'\nmisbehave = 'sulk'",
            "\"sulk\" is not known",
        ),
        (
            "loop = 'closed'\n[[tenant.load.phase]]\nat = '2s'\n[[tenant.load.phase]]\nat = '1s'",
            "not after the phase before",
        ),
        (
            "loop = 'closed'\n[[tenant.load.phase]]\nat = '2s'\nfrom = '1s'",
            "cannot change in a phase",
        ),
    ] {
        let said = refused(&load(keys));
        assert!(said.contains(part), "{keys}: {part}\nnot in\n{said}");
    }
    let twice = "[[tenant]]\nname = 'a-1'\n[[tenant.load]]\nloop = 'closed'\n[[tenant]]\nname = 'a'\ncount = 2\n[[tenant.load]]\nloop = 'closed'";
    assert!(refused(twice).contains("two tenants are named \"a-1\""));
    assert!(refused("").contains("tenant: is missing"));
    assert!(refused("tenant = 3").contains("[[tenant]]"));
    assert!(refused("[[tenant]").contains("not TOML"));
}

#[test]
fn promises_are_handed_on() {
    let scenario = good(
        "server = { scheduler = { request = 'fifo' } }
        [[tenant]]
        name = 'web'
        weight = 2.5
        sync = 'every 1s'
        cache = '1MiB'
        block_cache = '2MiB'
        write_buffers = '3MiB'
        reserve = { get = '60/min' }
        limit = { bytes = '1kB/s', burst = '1s' }
        [[tenant.load]]
        loop = 'closed'",
    );
    assert_eq!(
        scenario.server["scheduler"]["request"].as_str(),
        Some("fifo")
    );
    let terms = &scenario.tenants[0].terms;
    assert_eq!(terms.given.len(), 8);
    let (words, left) = promise::options(terms);
    assert_eq!(
        words.join(" "),
        "WEIGHT 2.5 SYNC every 1s CACHE 1MiB BLOCK-CACHE 2MiB WRITE-BUFFERS 3MiB RESERVE-GET 1/s LIMIT-BYTES 1kB/s LIMIT-BURST 1s"
    );
    assert_eq!(left, Vec::<&str>::new());
    let wished = load("loop = 'closed'\n[[tenant.slo]]\nclass = 'get'\nthroughput = '5/s'");
    let (words, left) = promise::options(&good(&wished).tenants[0].terms);
    assert_eq!((words, left), (Vec::new(), vec!["slo"]));
    let wrong = "[[tenant]]\nname = 'web'\nweight = 0\nlimit = { request = '1/s' }\n[[tenant.load]]\nloop = 'closed'";
    let said = refused(wrong);
    assert!(
        said.contains("weight: 0 is too small") && said.contains("did you mean \"requests\"?"),
        "{said}"
    );
}

#[test]
fn a_table_is_read_like_a_text_but_has_no_places() {
    let text = load("loop = 'closed'\ndepth = 7");
    let table: toml::Table = text.parse().expect("TOML");
    assert_eq!(
        Scenario::from_table(table.clone(), "base + variant").expect("good"),
        good(&text)
    );
    let mut wrong = table;
    wrong.insert("duraton".into(), "3s".into());
    let said = Scenario::from_table(wrong, "base + variant")
        .expect_err("wrong")
        .to_string();
    assert!(
        said.contains("base + variant: error: duraton: there is no such key"),
        "{said}"
    );
}

#[test]
fn what_never_happens_is_warned_about() {
    let text = format!("duration = '5s'\n{}", load("loop = 'closed'\nfrom = '9s'"));
    let loaded = of(&text).expect("good");
    assert!(loaded
        .report
        .to_string()
        .contains("ends before load \"1\" of tenant \"web\" joins at 9s"));
}
