//! What is printed: the verdicts of an experiment, one line each.

use workload::report::Table;

use crate::verdict::{Judged, Judgement, Sampled};

/// A number as people read it: three digits that matter, more for ratios close to one.
pub fn number(value: f64) -> String {
    let size = value.abs();
    if value.is_infinite() {
        return "never".into();
    }
    match size {
        0.0 => "0".into(),
        s if s >= 1000.0 => workload::report::rate(value),
        s if s >= 100.0 => format!("{value:.0}"),
        s if s >= 10.0 => format!("{value:.1}"),
        s if s >= 0.01 => format!("{value:.3}"),
        _ => format!("{value:.2e}"),
    }
}

/// What is judged, and the range where there are several samples.
pub fn measured(sampled: &Sampled) -> (String, String) {
    let (least, most) = sampled.range();
    let range = if sampled.samples.len() > 1 {
        format!("[{} {}]", number(least), number(most))
    } else {
        String::new()
    };
    (number(sampled.value), range)
}

/// One word for how a verdict came out.
pub fn word(judgement: &Judgement) -> &'static str {
    match judgement {
        Judgement::Pass => "pass",
        Judgement::Miss => "MISS",
        Judgement::NotJudged(why) if why == "shown" => "shown",
        Judgement::NotJudged(why) if why.starts_with("later") => "later",
        Judgement::NotJudged(_) => "not judged",
        Judgement::Disturbed(_) => "disturbed",
        Judgement::Idle(_) => "idle",
    }
}

/// The other variants' figures in words, one each; first the one in which what is claimed is
/// switched off.
pub fn beside(judged: &Judged) -> Vec<String> {
    let off = judged
        .off
        .iter()
        .map(|off| (&off.variant, off.value, "off: "));
    let switched = judged.off.as_ref().map(|off| &off.variant);
    let others = judged.beside.iter();
    let others = others.filter(|(variant, _)| Some(variant) != switched);
    let all = off.chain(others.map(|(variant, value)| (variant, *value, "")));
    all.map(|(variant, value, mark)| format!("{mark}{variant} {}", number(value)))
        .collect()
}

/// What must be reached, in words.
pub fn bound(judged: &Judged) -> Option<String> {
    let each = if judged.worst { " in each" } else { "" };
    judged.bound.map(|bound| format!("{bound}{each}"))
}

/// The table.
pub fn verdicts(judged: &[Judged]) -> String {
    let mut table = Table::default();
    table.row([
        "",
        "measured",
        "range",
        "bound",
        "paper",
        "beside it",
        "target",
    ]);
    for one in judged {
        let (median, range) = one.measured.as_ref().map(measured).unwrap_or_default();
        let target = match one.judgement.why() {
            Some(why) => format!("{} ({why})", one.target),
            None => one.target.clone(),
        };
        table.row([
            word(&one.judgement).to_string(),
            median,
            range,
            bound(one).unwrap_or_default(),
            one.paper.clone(),
            beside(one).join(", "),
            target,
        ]);
    }
    // Everything to the left: the columns are words as often as numbers.
    table.render(7)
}

/// How many were met of all that have a bound, in one line: what was not judged is not met.
pub fn summary(judged: &[Judged]) -> String {
    let (mut met, mut missed, mut disturbed, mut idle, mut open) = (0, 0, 0, 0, 0);
    for one in judged.iter().filter(|one| one.bound.is_some()) {
        *match one.judgement {
            Judgement::Pass => &mut met,
            Judgement::Miss => &mut missed,
            Judgement::Disturbed(_) => &mut disturbed,
            Judgement::Idle(_) => &mut idle,
            Judgement::NotJudged(_) => &mut open,
        } += 1;
    }
    let all = met + missed + disturbed + idle + open;
    let mut text = format!("{met} of {all} targets met");
    for (count, what) in [
        (missed, "missed"),
        (disturbed, "disturbed"),
        (idle, "idle"),
        (open, "not judged"),
    ] {
        if count > 0 {
            text += &format!(", {count} {what}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::Bound;

    fn judged(target: &str, judgement: Judgement) -> Judged {
        Judged {
            target: target.into(),
            point: String::new(),
            measured: Some(Sampled {
                value: 0.98,
                samples: vec![0.97, 0.98, 0.99],
            }),
            beside: vec![("fifo".into(), 0.5)],
            bound: Some(Bound::AtLeast(0.99)),
            worst: false,
            off: None,
            paper: ".98".into(),
            judgement,
        }
    }

    #[test]
    fn a_line_holds_target_measure_range_bound_paper_and_verdict() {
        let later = Judgement::NotJudged("later: no disk".into());
        let disturbed = Judgement::Disturbed("3 of 3 repeats were disturbed".into());
        let all = [
            judged("even", Judgement::Miss),
            judged("disk", later),
            judged("odd", disturbed),
        ];
        let text = verdicts(&all);
        let line = text.lines().nth(1).expect("a line");
        let want = "MISS       0.980     [0.970 0.990]  >= 0.99  .98    fifo 0.500  even";
        assert_eq!(line, want, "{text}");
        assert!(text.contains("disk (later: no disk)"), "{text}");
        assert!(
            text.contains("odd (3 of 3 repeats were disturbed)"),
            "{text}"
        );
        assert_eq!(
            summary(&all),
            "0 of 3 targets met, 1 missed, 1 disturbed, 1 not judged"
        );
        let shown = Judged {
            bound: None,
            ..judged("shown", Judgement::NotJudged("shown".into()))
        };
        let all = [judged("even", Judgement::Pass), shown];
        assert_eq!(summary(&all), "1 of 1 targets met");
    }

    #[test]
    fn numbers_read_well() {
        let words = [0.0, 0.98, 12.34, 123.4, 12345.6, f64::INFINITY, 0.0001].map(number);
        assert_eq!(
            words,
            ["0", "0.980", "12.3", "123", "12,346", "never", "1.00e-4"]
        );
    }
}
