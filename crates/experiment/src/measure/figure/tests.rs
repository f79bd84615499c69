use super::*;
use crate::measure::made;
use crate::observed::LEFT;
use crate::server::times::Latencies;
use workload::report::figures::LatencyFigures;

fn choice(tenants: &[&str], figure: Figure) -> Choice {
    Choice {
        tenants: tenants.iter().map(ToString::to_string).collect(),
        figure,
        ..Choice::default()
    }
}

#[test]
fn rates_add_up_and_latencies_do_not() {
    let run = made::rates(&[
        ("web", 1.0, 100.0),
        ("web", 1.0, 300.0),
        ("bulk", 1.0, 50.0),
    ]);
    assert_eq!(value(&run, &choice(&[], Figure::Rate)), Ok(450.0));
    assert_eq!(value(&run, &choice(&["web"], Figure::Rate)), Ok(400.0));
    assert_eq!(value(&run, &choice(&["web-2"], Figure::Rate)), Ok(300.0));
    // `made` gives a tenant of rate r a p99 of r / 10 ms.
    assert_eq!(value(&run, &choice(&["web"], Figure::P99)), Ok(30.0));
    let lowest = Choice {
        combine: Some(Combine::Lowest),
        ..choice(&["web"], Figure::P99)
    };
    assert_eq!(value(&run, &lowest), Ok(10.0));
}

#[test]
fn the_server_has_figures_of_its_own() {
    let mut run = made::rates(&[("web", 1.0, 100.0)]);
    let told = |p50, p99| LatencyFigures {
        p50,
        p99,
        ..LatencyFigures::default()
    };
    run.tenants[0].server_ms = Latencies::from([
        ("all".into(), told(0.25, 8.0)),
        ("scan".into(), told(0.5, 9.0)),
    ]);
    assert_eq!(value(&run, &choice(&[], Figure::ServerP50)), Ok(0.25));
    assert_eq!(value(&run, &choice(&[], Figure::ServerP99)), Ok(8.0));
    run.tenants[0].load.total.latency_ms = told(0.5, 8.5);
    assert_eq!(value(&run, &choice(&[], Figure::Network)), Ok(0.25));
    assert_eq!(value(&run, &choice(&[], Figure::P99LessNetwork)), Ok(8.25));
    let of = |class: &str| Choice {
        class: Some(class.into()),
        ..choice(&[], Figure::ServerP99)
    };
    assert_eq!(value(&run, &of("range")), Ok(9.0));
    assert!(value(&run, &of("put")).is_err());
}

#[test]
fn a_run_is_finished_when_nothing_is_left() {
    let mut run = made::rates(&[("web", 1.0, 100.0)]);
    run.elapsed_s = 12.5;
    assert!(value(&run, &choice(&[], Figure::Finished)).is_err());
    for (left, took) in [(0.0, 12.5), (3.0, f64::INFINITY)] {
        run.figures.insert(LEFT.into(), left);
        assert_eq!(value(&run, &choice(&[], Figure::Finished)), Ok(took));
    }
}

#[test]
fn where_nothing_was_asked_nothing_was_without_failure() {
    let run = made::rates(&[("idle", 1.0, 0.0), ("web", 1.0, 100.0)]);
    assert_eq!(value(&run, &choice(&[], Figure::Failed)), Ok(0.0));
    assert!(value(&run, &choice(&["idle"], Figure::Failed)).is_err());
}

#[test]
fn the_generator_takes_time_for_each_request() {
    let mut run = made::rates(&[("web", 1.0, 100.0), ("bulk", 1.0, 300.0)]);
    (run.elapsed_s, run.generator.cpu_s) = (10.0, 0.02);
    assert_eq!(value(&run, &choice(&[], Figure::Generator)), Ok(5_000.0));
}

#[test]
fn what_is_not_there_is_an_error() {
    let run = made::rates(&[("web", 1.0, 100.0)]);
    assert!(value(&run, &choice(&["wob"], Figure::Rate))
        .expect_err("no such tenant")
        .contains("no tenant \"wob\""));
    let class = Choice {
        class: Some("put".into()),
        ..Choice::default()
    };
    assert!(value(&run, &class).is_err());
    assert!(value(&Observed::default(), &Choice::default()).is_err());
}

#[test]
fn every_figure_has_one_name() {
    for (word, figure, _) in Figure::WORDS {
        let same = Figure::WORDS
            .iter()
            .filter(|other| other.0 == word || other.1 == figure);
        assert_eq!(same.count(), 1, "{word}");
    }
}

#[test]
fn a_promise_is_converged_from_the_window_on_behind_which_none_is_missed() {
    let mut run = made::rates(&[("web", 1.0, 100.0), ("bulk", 1.0, 50.0)]);
    let cases = [
        ("1111", 0.0, 1.0),
        ("0111", 1.0, 0.75),
        ("1011", 2.0, 0.75),
        ("0110", f64::INFINITY, 0.5),
    ];
    for (windows, after, kept) in cases {
        run.tenants[0].windows = windows.chars().map(|one| one == '1').collect();
        let of = |figure| value(&run, &choice(&["web"], figure));
        assert_eq!(of(Figure::Converged), Ok(after), "{windows}");
        assert_eq!(of(Figure::Kept), Ok(kept), "{windows}");
    }
    assert!(value(&run, &choice(&["bulk"], Figure::Converged)).is_err());
    assert!(value(&run, &choice(&["bulk"], Figure::Kept)).is_err());
}
