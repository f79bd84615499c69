//! Verdicts over runs made by hand.

use super::*;
use crate::measure::made::{rates, series};
use crate::observed::Observed;

const TWO: &str = "
[[verdict]]
target = \"even\"
variant = \"fair\"
point = [\"a\", \"b\"]
measure = \"mmr\"
bound = \">= 0.9\"
quick = false
[[verdict]]
target = \"no slower\"
variant = \"fair\"
point = \"a\"
measure = \"value\"
against = { variant = \"fifo\" }
bound = \">= 1\"
";

fn experiment() -> Experiment {
    crate::spec::made(&["fifo", "fair"], &["a", "b"], TWO)
}

/// Runs of both variants at both points: `fair` divides as it is told, `fifo` always 1:2.
fn runs(fair: &[(f64, f64)]) -> Runs {
    let mut runs = Runs::default();
    for (repeat, (one, other)) in fair.iter().enumerate() {
        for point in ["a", "b"] {
            let load = |one, other| rates(&[("x", 1.0, one), ("y", 1.0, other)]);
            runs.add(repeat, "fair", point, load(*one, *other));
            runs.add(repeat, "fifo", point, load(50.0, 100.0));
        }
    }
    runs
}

fn judgements(runs: &Runs, extent: Extent) -> Vec<Judgement> {
    let judged = judge(&experiment(), runs, extent).expect("judged");
    judged.into_iter().map(|judged| judged.judgement).collect()
}

#[test]
fn the_median_is_judged_and_the_spread_is_kept() {
    let runs = runs(&[(100.0, 100.0), (10.0, 100.0), (100.0, 95.0)]);
    let judged = judge(&experiment(), &runs, Extent::default()).expect("judged");
    assert_eq!(judged[0].target, "even: a");
    let measured = judged[0].measured.as_ref().expect("measured");
    assert_eq!(measured.value, 0.95);
    assert_eq!(measured.range(), (0.1, 1.0));
    assert_eq!(judged[0].judgement, Judgement::Pass);
    assert_eq!(judged[0].beside, [("fifo".to_string(), 0.5)]);
    // Ratios are taken inside a repeat: 200/150, 110/150, 195/150.
    assert_eq!(judged[2].measured.as_ref().expect("measured").value, 1.3);
    assert!(judged[2].beside.is_empty());
}

#[test]
fn repeats_that_the_host_disturbed_do_not_count_and_when_most_are_nothing_is_judged() {
    let mut runs = runs(&[(100.0, 100.0), (10.0, 100.0), (100.0, 99.0)]);
    let disturb = |runs: &mut Runs, repeat: usize, variant: &str| {
        let key = (repeat, variant.to_string(), "a".to_string());
        runs.0.get_mut(&key).expect("a run").withheld = 0.1;
    };
    disturb(&mut runs, 1, "fair");
    let judged = judge(&experiment(), &runs, Extent::default()).expect("judged");
    let measured = judged[0].measured.as_ref().expect("measured");
    assert_eq!(measured.samples, [1.0, 0.99]);
    assert_eq!(judged[0].judgement, Judgement::Pass);
    // A comparison rests on both sides: two of its three repeats are disturbed now, and one of the
    // figure alone.
    disturb(&mut runs, 0, "fifo");
    let judged = judge(&experiment(), &runs, Extent::default()).expect("judged");
    let why = "2 of 3 repeats were disturbed";
    assert_eq!(judged[0].judgement, Judgement::Pass);
    assert_eq!(judged[2].judgement, Judgement::Disturbed(why.into()));
    assert_eq!(judged[2].judgement.pass(), None);
    let samples = &judged[2].measured.as_ref().expect("measured").samples;
    assert_eq!(samples.len(), 3, "they are shown all the same");
}

#[test]
fn of_a_guarantee_the_worst_repeat_counts() {
    let text =
        "[[verdict]]\ntarget = \"even\"\nvariant = \"fair\"\npoint = \"a\"\nmeasure = \"mmr\"\n\
                bound = \">= 0.9\"\nworst = true\n";
    let experiment = crate::spec::made(&["fifo", "fair"], &["a", "b"], text);
    let judged = |runs: &Runs| {
        let judged = judge(&experiment, runs, Extent::default()).expect("judged");
        let measured = judged[0].measured.clone().expect("measured");
        (judged[0].judgement.clone(), measured.value)
    };
    let all = [(100.0, 100.0), (10.0, 100.0), (100.0, 95.0)];
    assert_eq!(judged(&runs(&all)), (Judgement::Miss, 0.1));
    assert_eq!(judged(&runs(&[all[0], all[2]])), (Judgement::Pass, 0.95));
    // What a host disturbed says nothing of it either.
    let mut runs = runs(&all);
    let key = (1, "fair".to_string(), "a".to_string());
    runs.0.get_mut(&key).expect("a run").withheld = 0.1;
    assert_eq!(judged(&runs), (Judgement::Pass, 0.95));
}

#[test]
fn a_verdict_that_is_met_with_its_mechanism_off_shows_nothing() {
    let judged = |bound: &str, quick: bool| {
        let text = format!(
            "[[verdict]]\ntarget = \"even\"\nvariant = \"fair\"\npoint = \"a\"\nmeasure = \"mmr\"\n\
             off = \"fifo\"\nbound = \"{bound}\"\nquick = false\n"
        );
        let experiment = crate::spec::made(&["fifo", "fair"], &["a", "b"], &text);
        let extent = Extent {
            quick,
            partial: false,
        };
        let judged = judge(&experiment, &runs(&[(100.0, 100.0)]), extent);
        judged.expect("judged").remove(0)
    };
    let fails = |fails| {
        Some(Off {
            variant: "fifo".into(),
            value: 0.5,
            fails,
        })
    };
    let good = judged(">= 0.9", false);
    assert_eq!((good.judgement, good.off), (Judgement::Pass, fails(true)));
    let idle = judged(">= 0.5", false);
    let why = "met with it switched off, too: fifo 0.500";
    assert_eq!(idle.judgement, Judgement::Idle(why.into()));
    assert_eq!((idle.judgement.pass(), idle.off), (None, fails(false)));
    // A short run tells what it saw of it, whatever it judges.
    assert_eq!(judged(">= 0.9", true).off, fails(true));
    assert_eq!(judged("<= 0.1", false).judgement, Judgement::Miss);
}

#[test]
fn a_short_run_does_not_ask_that_a_time_is_missed_with_the_mechanism_off() {
    let text =
        "[[verdict]]\ntarget = \"soon\"\nvariant = \"fair\"\npoint = \"a\"\nmeasure = \"settle\"\n\
                from = \"0s\"\nwindow = \"1s\"\nlevel = 0.5\noff = \"fifo\"\nbound = \"<= 5\"\n";
    let experiment = crate::spec::made(&["fifo", "fair"], &["a", "b"], text);
    let mut runs = Runs::default();
    runs.add(
        0,
        "fair",
        "a",
        series(&[("x", &[10, 10]), ("y", &[10, 10])]),
    );
    runs.add(0, "fifo", "a", series(&[("x", &[1, 1]), ("y", &[10, 10])]));
    let asked = |quick| {
        let extent = Extent {
            quick,
            partial: false,
        };
        let judged = judge(&experiment, &runs, extent).expect("judged");
        judged[0].off.as_ref().map(|off| off.fails)
    };
    assert_eq!((asked(false), asked(true)), (Some(true), None));
}

#[test]
fn a_failure_counts_whatever_the_host_does() {
    let text = "[[verdict]]\ntarget = \"none fails\"\nvariant = \"fair\"\npoint = \"a\"\nmeasure = \"value\"\n\
                figure = \"failed\"\nbound = \"<= 0\"\n";
    let experiment = crate::spec::made(&["fair"], &["a"], text);
    let mut runs = Runs::default();
    let disturbed = Observed {
        withheld: 0.1,
        ..rates(&[("x", 1.0, 50.0)])
    };
    runs.add(0, "fair", "a", disturbed.clone());
    let judgement = |runs: &Runs| {
        let judged = judge(&experiment, runs, Extent::default()).expect("judged");
        judged[0].judgement.clone()
    };
    assert_eq!(judgement(&runs), Judgement::Pass);
    let mut failing = disturbed;
    failing.tenants[0].load.total.failed = 1;
    runs.add(0, "fair", "a", failing);
    assert_eq!(judgement(&runs), Judgement::Miss);
}

#[test]
fn what_falls_short_is_a_miss() {
    let runs = runs(&[(40.0, 100.0)]);
    let want = [Judgement::Miss, Judgement::Miss, Judgement::Miss];
    assert_eq!(judgements(&runs, Extent::default()), want);
}

#[test]
fn a_missing_run_is_an_error_and_no_pass() {
    let mut runs = runs(&[(100.0, 100.0), (100.0, 100.0)]);
    runs.0.remove(&(1, "fifo".into(), "a".into()));
    let error = judge(&experiment(), &runs, Extent::default()).expect_err("a run is missing");
    let text = error.to_string();
    assert!(
        text.contains("no slower") && text.contains("repeat 2: there is no run of fifo/a"),
        "{text}"
    );
    let none = judge(&experiment(), &Runs::default(), Extent::default());
    assert!(none.is_err(), "no runs at all");
}

#[test]
fn a_missing_figure_is_an_error() {
    let mut runs = runs(&[(100.0, 100.0)]);
    runs.add(0, "fair", "a", rates(&[("x", 1.0, 0.0), ("y", 1.0, 0.0)]));
    let error = judge(&experiment(), &runs, Extent::default()).expect_err("nothing was served");
    assert!(
        error.to_string().contains("no tenant got anything"),
        "{error}"
    );
}

#[test]
fn a_short_run_does_not_judge_what_it_cannot_tell() {
    let runs = runs(&[(100.0, 100.0)]);
    let quick = Extent {
        quick: true,
        partial: false,
    };
    let not = Judgement::NotJudged("too short a run to tell".into());
    assert_eq!(
        judgements(&runs, quick),
        [not.clone(), not, Judgement::Pass]
    );
}

#[test]
fn a_short_run_need_not_measure_what_it_does_not_judge() {
    let mut runs = runs(&[(100.0, 100.0)]);
    runs.add(0, "fair", "b", rates(&[("x", 1.0, 1.0)]));
    let quick = Extent {
        quick: true,
        partial: false,
    };
    let Judgement::NotJudged(why) = &judgements(&runs, quick)[1] else {
        panic!("not judged");
    };
    assert!(why.contains("fewer than two tenants"), "{why}");
    let whole = judge(&experiment(), &runs, Extent::default());
    assert!(whole.is_err(), "the full form needs every figure");
}

#[test]
fn what_only_leaves_out_is_not_judged() {
    let mut runs = runs(&[(100.0, 100.0)]);
    runs.0.retain(|key, _| key.1 == "fair" && key.2 == "a");
    let partial = Extent {
        quick: false,
        partial: true,
    };
    let not = Judgement::NotJudged("runs for it were not made".into());
    assert_eq!(
        judgements(&runs, partial),
        [Judgement::Pass, not.clone(), not]
    );
}

#[test]
fn a_repeat_that_was_not_made_whole_says_nothing() {
    let mut runs = runs(&[(100.0, 100.0), (100.0, 90.0)]);
    runs.0.retain(|key, _| key.0 == 0 || key.1 == "fair");
    let partial = Extent {
        quick: false,
        partial: true,
    };
    let judged = judge(&experiment(), &runs, partial).expect("judged");
    let samples = judged.iter().map(|judged| {
        let measured = judged.measured.as_ref().expect("at least one repeat");
        measured.samples.len()
    });
    // Only the last compares with the variant that is missing in the second repeat.
    assert_eq!(samples.collect::<Vec<_>>(), [2, 2, 1]);
    let whole = judge(&experiment(), &runs, Extent::default());
    assert!(whole.is_err(), "a run is missing that was to be made");
}

#[test]
fn what_cannot_run_yet_says_why() {
    let rest = TWO.replace("point = [\"a\", \"b\"]", "point = [\"a\", \"disk\"]")
        + "[[point]]\nname = \"disk\"\nlater = \"there is no device stage\"\n";
    let experiment = crate::spec::made(&["fifo", "fair"], &["a"], &rest);
    let judged = judge(&experiment, &runs(&[(100.0, 100.0)]), Extent::default()).expect("judged");
    assert_eq!(judged[0].judgement, Judgement::Pass);
    let later = Judgement::NotJudged("later: there is no device stage".into());
    assert_eq!(judged[1].judgement, later);
    assert!(judged[1].measured.is_none());
}

#[test]
fn the_best_of_a_sweep_is_what_a_figure_is_divided_by() {
    let measured = |best: &str| {
        let text = format!(
            "[[verdict]]\ntarget = \"as much\"\nvariant = \"fair\"\npoint = \"a\"\nmeasure = \"value\"\n\
             against = {{ {best} }}\nbound = \">= 0.8\"\n"
        );
        let experiment = crate::spec::made(&["fifo", "fair"], &["a", "b"], &text);
        let judged = judge(&experiment, &runs(&[(60.0, 60.0)]), Extent::default());
        let judged = judged.expect("judged");
        judged[0].measured.as_ref().expect("measured").value
    };
    // 120 of ours; of `fifo` 150 at each point.
    for (best, ratio) in [
        ("highest_of = [\"fifo\", \"fair\"]", 0.8),
        ("lowest_of = [\"fifo\", \"fair\"]", 1.0),
        ("highest_of = [\"fair\"], points = [\"b\"]", 1.0),
    ] {
        assert_eq!(measured(best), ratio, "{best}");
    }
}

#[test]
fn the_best_of_those_that_keep_a_promise_is_no_better_one_that_does_not() {
    let text = |least: f64| {
        format!(
            "[[verdict]]\ntarget = \"as much\"\nvariant = \"fair\"\npoint = \"a\"\nmeasure = \"value\"\n\
             against = {{ highest_of = [\"fifo\", \"fair\"], keeping = {{ least = {least} }} }}\n\
             bound = \">= 0.8\"\n"
        )
    };
    let mut runs = Runs::default();
    for (variant, other, missed) in [("fair", 60.0, 0), ("fifo", 90.0, 1)] {
        let mut one = rates(&[("x", 1.0, 60.0), ("y", 1.0, other)]);
        let windows: Vec<bool> = (0..10).map(|window| window >= missed).collect();
        let tenants = one.tenants.iter_mut();
        tenants.for_each(|one| one.windows.clone_from(&windows));
        runs.add(0, variant, "a", one);
    }
    let measured = |least: f64| {
        let experiment = crate::spec::made(&["fifo", "fair"], &["a"], &text(least));
        let judged = judge(&experiment, &runs, Extent::default()).expect("judged");
        judged[0].measured.as_ref().map(|measured| measured.value)
    };
    // 120 of ours; of `fifo` 150.
    assert_eq!(measured(0.9), Some(0.8));
    assert_eq!(measured(0.99), Some(1.0));
}

#[test]
fn what_is_beyond_something_else_is_a_difference() {
    let text = "[[verdict]]\ntarget = \"as much\"\nvariant = \"fair\"\npoint = \"a\"\nmeasure = \"value\"\n\
                against = { variant = \"fifo\", less = true }\nbound = \"<= -30\"\n";
    let experiment = crate::spec::made(&["fifo", "fair"], &["a", "b"], text);
    let judged = judge(&experiment, &runs(&[(60.0, 60.0)]), Extent::default()).expect("judged");
    assert_eq!(judged[0].measured.as_ref().expect("measured").value, -30.0);
    assert_eq!(judged[0].judgement, Judgement::Pass);
}
