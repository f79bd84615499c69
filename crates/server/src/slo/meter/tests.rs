use super::*;
use settings::tenant::SloClass;

const S: Nanos = 1_000_000_000;

#[test]
fn within_and_beyond_the_contract_are_counted_apart_over_all_cores() {
    let slo = Slo {
        class: SloClass::Get,
        at_most_ns: Some(20_000_000),
        contract_per_s: Some(100.0),
        ..Slo::default()
    };
    let meter = Meter::new(slo, 2, S);
    // Eleven are a burst of the contract and the one after it; late or not.
    let took = |latency_ns| Took {
        came: S,
        latency_ns,
        ..Took::default()
    };
    assert_eq!(meter.answered(0, &took(10_000_000), 8), 0);
    assert_eq!(meter.answered(1, &took(30_000_000), 8), 3);
    let counts = meter.read().counts;
    assert_eq!((counts.requests, counts.late), (11, 3));
    assert_eq!((counts.beyond, counts.beyond_late), (5, 5));
    assert_eq!(counts.under_way_ns, 8 * 40_000_000);
}

/// What is beyond its part of the contract here is beyond it, however late: another front has
/// the rest.
#[test]
fn of_several_fronts_each_judges_by_its_part_of_the_contract() {
    let slo = Slo {
        class: SloClass::Get,
        workload: Some("batch".into()),
        at_most_ns: Some(20_000_000),
        contract_per_s: Some(100.0),
        ..Slo::default()
    };
    let meter = Meter::new(slo, 1, S);
    assert_eq!((meter.name(), meter.portion()), ("get:batch".into(), 1.0));
    assert!(meter.set_portion(S, 0.2) && !meter.set_portion(S, 0.2));
    let late = (0..1_000).map(|number| {
        let took = Took {
            came: 2 * S + number * S / 1_000,
            latency_ns: 30_000_000,
            ..Took::default()
        };
        meter.answered(0, &took, 1)
    });
    let late: u64 = late.sum();
    assert!((20..=23).contains(&late), "{late}");
    assert_eq!(meter.offered(), Some((100.0, 1_000)));
}

const MS: Nanos = 1_000_000;

fn of_20_ms() -> Meter {
    let slo = Slo {
        at_most_ns: Some(20 * MS),
        ..Slo::default()
    };
    Meter::new(slo, 1, S)
}

#[test]
fn what_is_promised_is_due_a_margin_before_its_end() {
    let meter = of_20_ms();
    assert_eq!(meter.due_at(DEVICE, S), None);
    let mut given = PromiseGiven {
        margin_ns: Some([30 * MS, 5 * MS]),
        ..PromiseGiven::default()
    };
    meter.give(&given);
    assert_eq!(meter.due_at(DEVICE, S), Some(S + 15 * MS));
    assert_eq!(meter.due_at(HANDLERS, S), Some(S), "at once");
    given.part = 0.5;
    meter.give(&given);
    assert_eq!(
        meter.due_at(DEVICE, S),
        Some(S + 35 * MS),
        "half is aimed at"
    );
    given.part = 0.0;
    meter.give(&given);
    assert_eq!(meter.due_at(DEVICE, S), None, "given up");
}

#[test]
fn what_was_late_before_it_came_to_a_stage_is_told_apart() {
    let meter = of_20_ms();
    let late = |queued_ms, granted_ms| Took {
        came: S,
        latency_ns: 30 * MS,
        turns: [
            Some(Turn {
                queued: S + queued_ms * MS,
                granted: S + granted_ms * MS,
            }),
            None,
        ],
        ..Took::default()
    };
    assert_eq!(meter.answered(0, &late(11, 12), 2), 2, "late all the same");
    assert_eq!(meter.answered(0, &late(9, 9), 1), 1);
    assert_eq!(meter.answered(0, &late(9, 11), 4), 4);
    let stages = meter.take_stages();
    assert_eq!((stages.held, stages.unhandled), (2, 4));
}

#[test]
fn waiting_before_it_is_due_needs_no_margin() {
    let meter = of_20_ms();
    meter.give(&PromiseGiven {
        margin_ns: Some([10 * MS, 5 * MS]),
        ..PromiseGiven::default()
    });
    let at = |ms| S + ms * MS;
    // Due at the handlers after 10 ms, at the device after 15: it waited until then.
    let took = Took {
        came: S,
        latency_ns: 19 * MS,
        turns: [
            Some(Turn {
                queued: at(1),
                granted: at(3),
            }),
            Some(Turn {
                queued: at(4),
                granted: at(16),
            }),
        ],
        handled_ns: 16 * MS,
    };
    assert_eq!(meter.answered(0, &took, 1), 0);
    let seen = meter.take_stages();
    let after = |stage: usize| seen.after[stage].quantile(0.5).expect("one") / 100_000;
    // 15 to 19; 3 to 19 less the 11 from 4 to 15.
    assert_eq!((after(DEVICE) / 10, after(HANDLERS) / 10), (4, 5));
    assert_eq!(seen.waited_ns, [2 * MS, 12 * MS]);
    assert_eq!(seen.handled, (1, 16 * MS));
    assert_eq!(meter.take_stages().handled, (0, 0), "it was taken");
}
