//! When a load asks: the keys from `loop` to `spike`.

use settings::units::Rate;
use settings::Section;

use super::behaviour::idle;
use super::time;
use crate::scenario::behaviour::{Arrivals, CurveFrom, Curved, Pace, Replayed, Scale, Spike};

/// What belongs to open loops only.
const TIMED: [&str; 6] = ["arrivals", "rate", "curve", "trace", "spike", "outstanding"];

/// When requests leave; none when something that it needs is missing or wrong.
pub(super) fn pace(section: &Section) -> Option<Pace> {
    // Every table is read, so that all problems in it are found.
    let curve = curve(&section.table("curve"));
    let trace = trace(&section.table("trace"));
    let spike = spike(&section.table("spike"));
    let rate = section.get::<Rate>("rate").map(Rate::per_s);
    let depth: u32 = section.get_or_default("depth");
    let outstanding: u32 = section.get_or_default("outstanding");
    let arrivals: String = section.get_or_default("arrivals");
    if section.get_or_default::<String>("loop") == "closed" {
        idle(
            section,
            &TIMED,
            "in a closed loop, which sends when it was answered",
        );
        let depth = depth as usize;
        return Some(Pace::Closed { depth });
    }
    idle(
        section,
        &["depth"],
        "in an open loop, which sends when requests are due",
    );
    out_of_place(section, &arrivals);
    let due = match arrivals.as_str() {
        "curve" => curve.map(Arrivals::Curve),
        "trace" => trace.map(Arrivals::Trace),
        "constant" => rate.map(Arrivals::Constant),
        _ => rate.map(Arrivals::Poisson),
    };
    if due.is_none() {
        missing(section, &arrivals);
    }
    Some(Pace::Open {
        arrivals: due?,
        spike,
        outstanding: outstanding as usize,
    })
}

/// Refuses what does not go with these arrivals.
fn out_of_place(section: &Section, arrivals: &str) {
    let others: &[&str] = match arrivals {
        "curve" => &["rate", "trace"],
        "trace" => &["rate", "curve", "spike"],
        _ => &["curve", "trace"],
    };
    let mut with = format!("with arrivals = {arrivals:?}");
    if section.gives("rate") && others.contains(&"rate") {
        with.push_str(", whose height `curve.mean`, `curve.peak` or `trace.rate_scale` set");
    }
    idle(section, others, &with);
}

/// Says what these arrivals need, unless it is there and wrong, which has been said.
fn missing(section: &Section, arrivals: &str) {
    let (name, advice) = match arrivals {
        "curve" => (
            "curve",
            "add curve = { trace = \"rate-worldcup98\", mean = \"1000/s\" }",
        ),
        "trace" => ("trace", "add trace = { name = \"mooncake\" }"),
        _ => ("rate", "add rate = \"1000/s\""),
    };
    if !section.gives(name) {
        section.error(
            name,
            &format!("is missing for arrivals = {arrivals:?}"),
            advice,
        );
    }
}

fn curve(section: &Section) -> Option<Curved> {
    let (series, file) = (section.get::<String>("trace"), section.get("file"));
    let step = time(section, "step")?;
    let (mean, peak): (Option<Rate>, Option<Rate>) = (section.get("mean"), section.get("peak"));
    let (offset, speed_up) = (time(section, "from")?, section.get_or_default("speed_up"));
    if !section.present() {
        return None;
    }
    if mean.is_some() && peak.is_some() {
        section.error("peak", "is given as well as `mean`", "keep one of them");
    }
    let scale = match (mean, peak) {
        (Some(rate), _) => Scale::Mean(rate.per_s()),
        (_, Some(rate)) => Scale::Peak(rate.per_s()),
        _ => Scale::Own,
    };
    let from = match (series, file) {
        (Some(_), Some(_)) => {
            section.error("file", "is given as well as `trace`", "keep one of them");
            return None;
        }
        (Some(series), None) => {
            idle(section, &["step"], "with `trace`, which has its own");
            CurveFrom::Series(series)
        }
        (None, Some(path)) => CurveFrom::File { path, step },
        (None, None) => {
            if !section.gives("trace") && !section.gives("file") {
                let advice = "add trace = \"rate-worldcup98\" or file = \"curve.txt\"";
                section.error("trace", "is missing, and so is `file`", advice);
            }
            return None;
        }
    };
    Some(Curved {
        from,
        offset,
        speed_up,
        scale,
    })
}

fn trace(section: &Section) -> Option<Replayed> {
    let name = section.get("name");
    let (speed_up, rate_scale) = (
        section.get_or_default("speed_up"),
        section.get_or_default("rate_scale"),
    );
    Some(Replayed {
        name: name?,
        speed_up,
        rate_scale,
    })
}

fn spike(section: &Section) -> Option<Spike> {
    let (at, length, every) = (
        time(section, "at"),
        time(section, "length"),
        time(section, "every"),
    );
    let times = section.get_or_default("times");
    let spike = Spike {
        at: at?,
        length: length?,
        times,
        every,
    };
    if spike.every.is_some_and(|every| every < spike.length) {
        section.error(
            "every",
            "is shorter than `length`",
            "let it end before it comes again",
        );
    }
    Some(spike)
}
