//! A scenario said back in words.

use std::fmt::Write;
use std::time::Duration;

use super::behaviour::{
    Arrivals, Behaviour, Counts, CurveFrom, Favour, Handshake, Pace, Scale, Values,
};
use super::{Load, Scenario};
use crate::draw::Class;
use crate::report::rate;

/// What the scenario means. Tenants that are alike are said once.
pub fn words(scenario: &Scenario) -> String {
    let mut text = String::new();
    let _ = write!(text, "{}", scenario.name);
    if !scenario.about.is_empty() {
        let _ = write!(text, ": {}", scenario.about);
    }
    let _ = writeln!(
        text,
        "\nMeasures {} after a warm-up of {}; waits up to {} for the last replies. Seed {}, {}.",
        time(scenario.duration),
        time(scenario.warm_up),
        time(scenario.drain),
        scenario.seed,
        many(scenario.threads as u64, "thread"),
    );
    if scenario.spin {
        let _ = writeln!(text, "Its threads never sleep.");
    }
    if !scenario.server.is_empty() {
        let sections: Vec<&str> = scenario.server.keys().map(String::as_str).collect();
        let _ = writeln!(
            text,
            "Says how the server is configured ({}); that is for who starts one.",
            sections.join(", ")
        );
    }
    let mut told: Vec<&str> = Vec::new();
    for tenant in &scenario.tenants {
        if told.contains(&tenant.group.as_str()) {
            continue;
        }
        told.push(&tenant.group);
        let alike = scenario
            .tenants
            .iter()
            .filter(|other| other.group == tenant.group);
        let title = match alike.count() {
            1 => format!("Tenant {}", tenant.name),
            n => format!("Tenants {0}-1 to {0}-{n}, each", tenant.group),
        };
        let tag = match tenant.tag.as_str() {
            "" => String::new(),
            tag => format!(", tagged {tag}"),
        };
        let _ = writeln!(
            text,
            "\n{title} (weight {}{tag}):",
            tenant.terms.settings.weight
        );
        for load in &tenant.loads {
            said(&mut text, load);
        }
    }
    text
}

fn said(text: &mut String, load: &Load) {
    let mut when = String::new();
    if let Some(from) = load.from {
        let _ = write!(when, ", joins at {}", time(from));
    }
    if let Some(until) = load.until {
        let _ = write!(when, ", leaves at {}", time(until));
    }
    if let Some(thread) = load.thread {
        let _ = write!(when, ", on thread {thread}");
    }
    if let Some(requests) = load.requests {
        let _ = write!(when, ", sends {requests} requests in all");
    }
    let _ = writeln!(
        text,
        "  load {}{when}: {}",
        load.name,
        behaviour(&load.first)
    );
    for phase in &load.phases {
        let again = match phase.behaviour == load.first {
            true => "as it began".to_string(),
            false => behaviour(&phase.behaviour),
        };
        let _ = writeln!(text, "    from {} on: {again}", time(phase.at));
    }
}

fn behaviour(behaviour: &Behaviour) -> String {
    let mut parts = Vec::new();
    if let Some(way) = &behaviour.misbehave {
        parts.push(format!("misbehaves ({way})"));
    }
    let connections = many(behaviour.connections as u64, "connection");
    if behaviour.handshake == Handshake::Partial {
        parts.push(format!(
            "{connections} that send half a command and then nothing"
        ));
        return parts.join("; ");
    }
    parts.push(format!("{} over {connections}", pace(&behaviour.pace)));
    if !matches!(
        &behaviour.pace,
        Pace::Open {
            arrivals: Arrivals::Trace(_),
            ..
        }
    ) {
        parts.push(asks(behaviour));
    }
    if behaviour.handshake == Handshake::None {
        parts.push("without AUTH".into());
    }
    if behaviour.reconnect_after > 0 {
        let after = many(behaviour.reconnect_after, "request");
        parts.push(format!("makes a new connection after {after}"));
    }
    if let Some(bytes_per_s) = behaviour.read_rate {
        parts.push(format!("reads {} B/s on each", rate(bytes_per_s)));
    }
    parts.join("; ")
}

fn pace(pace: &Pace) -> String {
    let (arrivals, spike) = match pace {
        Pace::Closed { depth } => {
            return format!("closed loop, {} at a time", many(*depth as u64, "request"))
        }
        Pace::Open {
            arrivals, spike, ..
        } => (arrivals, spike),
    };
    let mut text = match arrivals {
        Arrivals::Poisson(per_s) => format!("open loop, {}/s at random", rate(*per_s)),
        Arrivals::Constant(per_s) => format!("open loop, {}/s evenly spaced", rate(*per_s)),
        Arrivals::Curve(curved) => {
            let from = match &curved.from {
                CurveFrom::Series(name) => name.clone(),
                CurveFrom::File { path, .. } => path.display().to_string(),
            };
            let height = match curved.scale {
                Scale::Own => "as high as measured".into(),
                Scale::Mean(per_s) => format!("{}/s on average", rate(per_s)),
                Scale::Peak(per_s) => format!("{}/s at its peak", rate(per_s)),
            };
            format!(
                "open loop along {from} from {} on, {} times as fast, {height}",
                time(curved.offset),
                curved.speed_up
            )
        }
        Arrivals::Trace(traced) => {
            format!("replays {} {} times as fast", traced.name, traced.speed_up)
        }
    };
    if let Some(spike) = spike {
        let _ = write!(
            text,
            ", times {} for {} at {}",
            spike.times,
            time(spike.length),
            time(spike.at)
        );
        if let Some(every) = spike.every {
            let _ = write!(text, " and every {} from then on", time(every));
        }
    }
    text
}

fn asks(behaviour: &Behaviour) -> String {
    let weights = behaviour.mix.weights();
    let total: f64 = weights.iter().sum();
    let shares = Class::ALL
        .iter()
        .zip(weights)
        .filter(|(_, weight)| *weight > 0.0);
    let mut parts: Vec<String> = Vec::new();
    for (class, weight) in shares {
        let of = match class {
            Class::Multiget => format!(" of {}", counts(&behaviour.multiget)),
            Class::Range => format!(" of {}", counts(&behaviour.range)),
            _ => String::new(),
        };
        parts.push(
            format!("{:.4} % {}{of}", weight / total * 100.0, class.name()).replace(".0000", ""),
        );
    }
    let keys = &behaviour.keys;
    let stored = if keys.preload {
        "stored before"
    } else {
        "not stored before"
    };
    format!(
        "{}; {} keys ({stored}), {}; values of {}",
        parts.join(", "),
        rate(keys.count as f64),
        favour(&behaviour.popularity),
        values(&behaviour.values)
    )
}

fn favour(favour: &Favour) -> String {
    match favour {
        Favour::Uniform => "all alike".into(),
        Favour::Zipf(alpha) => format!("Zipf {alpha}"),
        Favour::Hotspot { keys, share } => {
            format!("{} % of requests for {}", share * 100.0, many(*keys, "key"))
        }
        Favour::Shifting { alpha, every, by } => {
            format!(
                "Zipf {alpha}, moving on by {} % every {}",
                by * 100.0,
                time(*every)
            )
        }
        Favour::Sequential => "one after the other".into(),
        Favour::Trace(name) => format!("as popular as in {name}"),
    }
}

fn values(values: &Values) -> String {
    match values {
        Values::Constant(bytes) => format!("{bytes} B"),
        Values::Uniform(min, max) => format!("{min} to {max} B"),
        Values::LogNormal { mean, sigma, .. } => format!("{mean} B on average, log-normal {sigma}"),
        Values::Trace(name) => format!("sizes as in {name}"),
        Values::Histogram(sizes) => format!("{} sizes", sizes.len()),
    }
}

fn counts(counts: &Counts) -> String {
    match counts {
        Counts::Constant(keys) => many(u64::from(*keys), "key"),
        Counts::Uniform(min, max) => format!("{min} to {max} keys"),
        Counts::LogNormal { mean, sigma, .. } => {
            format!("{mean} keys on average, log-normal {sigma}")
        }
        Counts::Trace(name) => format!("as many keys as in {name}"),
    }
}

fn many(count: u64, noun: &str) -> String {
    match count {
        1 => format!("1 {noun}"),
        n => format!("{} {noun}s", rate_of(n)),
    }
}

fn rate_of(count: u64) -> String {
    match count {
        n if n < 100 => n.to_string(),
        n => rate(n as f64),
    }
}

fn time(time: Duration) -> String {
    settings::units::Time::from_ns(time.as_nanos() as u64).to_string()
}
