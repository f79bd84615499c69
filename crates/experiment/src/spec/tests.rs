//! Experiments from text: what is read, and what is refused.

use std::path::Path;

use super::*;

const GOOD: &str = r#"
title = "Two tenants"
source = "A paper, figure 1"
shows = "that two are two"
paper = ".98"
[quick]
points = ["even"]
scenario.duration = "1s"
[scenario]
duration = "10s"
[[scenario.tenant]]
name = "a"
load = [{ depth = 1 }]
[[variant]]
name = "fifo"
scenario.server.scheduler.request = "fifo"
[[variant]]
name = "fair"
scenario.server.scheduler.request = "fair"
[[point]]
name = "even"
[[point]]
name = "uneven"
scenario.tenant.load.depth = 2
[[point]]
name = "on disk"
later = "there is no device stage yet"
[[verdict]]
target = "even shares"
variant = "fair"
point = "*"
measure = "mmr"
bound = ">= 0.99"
[[verdict]]
target = "twice the baseline"
variant = "fair"
point = "even"
measure = "value"
figure = "p99"
tenants = "a"
against = { variant = "fifo", point = "uneven" }
bound = "<= 1.1"
quick = false
[[plot]]
title = "MMR"
kind = "bars"
measure = "mmr"
line = ">= 0.99"
"#;

fn read(text: &str) -> Result<Experiment, String> {
    let problems = Problems::default();
    let read = read::experiment("made", Path::new("made"), text, &problems);
    if let Some(experiment) = &read {
        check::check(experiment, &problems);
    }
    match problems.list() {
        none if none.is_empty() => Ok(read.expect("no problem, so an experiment")),
        some => Err(some.join("\n")),
    }
}

#[test]
fn a_good_one_is_understood() {
    let experiment = read(GOOD).expect("good");
    assert_eq!(experiment.repeats, 5);
    assert_eq!(experiment.verdicts[0].points, ["even", "uneven", "on disk"]);
    assert_eq!(experiment.verdicts[0].bound, Some(Bound::AtLeast(0.99)));
    let against = experiment.verdicts[1]
        .query
        .against
        .as_ref()
        .expect("against");
    assert_eq!(against.variant.as_deref(), Some("fifo"));
    // What the other side does not say is as on this side.
    assert_eq!(
        against.choice.as_ref(),
        Some(&experiment.verdicts[1].query.choice)
    );
    let names = |quick| {
        let (repeats, points) = experiment.extent(quick);
        let names: Vec<&str> = points.iter().map(|point| point.name.as_str()).collect();
        (repeats, names)
    };
    assert_eq!(names(false), (5, vec!["even", "uneven"]));
    assert_eq!(names(true), (1, vec!["even"]));
}

#[test]
fn a_scenario_is_base_point_variant_and_quick_in_turn() {
    let experiment = read(GOOD).expect("good");
    let (fair, uneven) = (&experiment.variants[1], &experiment.points[1]);
    let scenario = experiment.scenario(fair, uneven, true);
    let want = "duration = \"1s\"\ntenant = [{ name = \"a\", load = [{ depth = 2 }] }]\n\
                server.scheduler.request = \"fair\"";
    assert_eq!(scenario, want.parse().expect("toml"));
    assert_eq!(
        experiment.scenario(fair, uneven, false)["duration"].as_str(),
        Some("10s")
    );
}

#[test]
fn all_problems_are_told_at_once() {
    let bad = GOOD
        .replace("title = \"Two tenants\"", "titel = \"Two tenants\"")
        .replace(
            "variant = \"fair\"\npoint = \"even\"",
            "variant = \"fare\"\npoint = \"evn\"",
        )
        .replace("\">= 0.99\"\n[[verdict]]", "\"about 1\"\n[[verdict]]")
        .replace("measure = \"mmr\"\nline", "measure = \"mrm\"\nline");
    let problems = read(&bad).expect_err("bad");
    for part in [
        "title: is missing",
        "titel: means nothing here",
        "no variant \"fare\", only fifo, fair",
        "no point \"evn\", only \"even\", \"uneven\"",
        "\"about 1\" is neither",
        "\"mrm\" is none of value, share, mmr",
    ] {
        assert!(problems.contains(part), "{part} is not in:\n{problems}");
    }
}

#[test]
fn a_verdict_judges_or_says_that_it_does_not() {
    let neither = GOOD.replace("bound = \">= 0.99\"", "");
    assert!(read(&neither)
        .expect_err("no bound")
        .contains("shown = true"));
    let shown = GOOD.replace("bound = \">= 0.99\"", "shown = true");
    assert_eq!(read(&shown).expect("shown").verdicts[0].bound, None);
}

#[test]
fn what_a_verdict_asks_for_is_run_where_it_asks() {
    let with = |from: &str, to: &str| read(&GOOD.replacen(from, to, 1));
    let off = with(
        "measure = \"mmr\"",
        "measure = \"mmr\"\noff = \"fifo\"\nworst = true",
    );
    let verdict = &off.expect("good").verdicts[0];
    assert!(verdict.worst && verdict.off.as_deref() == Some("fifo"));
    let unknown = with("measure = \"mmr\"", "measure = \"mmr\"\noff = \"fofi\"");
    assert!(unknown.expect_err("bad").contains("no variant \"fofi\""));
    let few = "name = \"fair\"\npoints = [\"even\"]\nrepeats = 1";
    let elsewhere = with("name = \"fair\"", few).expect_err("bad");
    let part = "verdict \"even shares\": variant \"fair\" is not run at point \"uneven\"";
    assert!(elsewhere.contains(part), "{elsewhere}");
    let shown = with("bound = \">= 0.99\"", "shown = true\nworst = true");
    assert!(shown
        .expect_err("bad")
        .contains("neither `off` nor `worst`"));
}

#[test]
fn a_verdict_of_many_points_names_its_own() {
    let none = GOOD.replace("point = \"*\"\n", "");
    assert!(read(&none)
        .expect_err("no point")
        .contains("which of the points"));
}

#[test]
fn bounds() {
    assert_eq!(Bound::parse(">= 0.5"), Some(Bound::AtLeast(0.5)));
    assert_eq!(Bound::parse("<=2"), Some(Bound::AtMost(2.0)));
    for wrong in ["", ">", "> 1", ">= x", "= 1", ">= inf", "≥ 1"] {
        assert_eq!(Bound::parse(wrong), None, "{wrong}");
    }
    assert!(Bound::AtLeast(0.5).met_by(0.5) && !Bound::AtLeast(0.5).met_by(0.49));
    assert!(Bound::AtMost(0.5).met_by(0.5) && !Bound::AtMost(0.5).met_by(0.51));
    assert!(!Bound::AtLeast(0.5).met_by(f64::NAN) && !Bound::AtMost(0.5).met_by(f64::NAN));
}

/// An experiment of some variants and points, and what `rest` adds; for tests of other modules.
pub(crate) fn made(variants: &[&str], points: &[&str], rest: &str) -> Experiment {
    let mut text = String::from(
        "title = \"T\"\nsource = \"S\"\nshows = \"W\"\npaper = \"P\"\nquick.scenario.duration = \"1s\"\n\
         scenario.duration = \"10s\"\n",
    );
    for variant in variants {
        text += &format!("[[variant]]\nname = \"{variant}\"\n");
    }
    for point in points {
        text += &format!("[[point]]\nname = \"{point}\"\n");
    }
    read(&(text + rest)).expect("a good experiment")
}

#[test]
fn a_real_disk_takes_the_place_of_an_emulated_one_and_of_nothing_else() {
    let with = |scenario: &str| {
        let mut experiment = read(GOOD).expect("a good experiment");
        experiment.base = scenario.parse().expect("toml");
        let used = experiment.on_disk(Path::new("/a/device.toml"));
        (used, experiment.base)
    };
    let table = |text: &str| text.parse::<Table>().expect("toml");
    let (used, base) = with("server.device = { model = \"ssd\", overbook = true }");
    assert!(used);
    let real = "server.device = { profile = \"/a/device.toml\", overbook = true }";
    assert_eq!(base, table(real));
    let (used, base) = with("program = \"device-prices\"");
    assert!(used && base["profile"].as_str() == Some("/a/device.toml"));
    for none in [
        "program = \"rein\"",
        "duration = \"1s\"",
        "server.device.profile = \"b\"",
    ] {
        assert_eq!(with(none), (false, table(none)));
    }
}
