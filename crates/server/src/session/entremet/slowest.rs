//! `ENTREMET SLOWEST [tenant] [COUNT n]`: the slowest requests of the last hour, and why.

use resp::parse_i64;
use telemetry::{Part, TimeParts};

use super::{lines, time, Visit};
use crate::slo::{Delays, Slow};

/// So many are shown where nobody says.
const SHOWN: usize = 10;

/// Runs it.
pub fn run(visit: &mut Visit<'_>) {
    let words = visit.args.len();
    let counted = words >= 4 && visit.is(words - 2, "COUNT");
    let count = match counted {
        true => parse_i64(visit.arg(words - 1)).and_then(|count| usize::try_from(count).ok()),
        false => Some(SHOWN),
    };
    let Some(count) = count else {
        return visit.error("ERR COUNT must be a whole number");
    };
    let named = words - if counted { 2 } else { 0 };
    if named > 3 {
        return visit.syntax_error();
    }
    let tenant = match named {
        3 => super::named_of(visit, 2),
        _ => Some(std::sync::Arc::clone(visit.tenant)),
    };
    let Some(tenant) = tenant else { return };
    let slowest = tenant.slowest.list();
    let now_s = visit.now_ms / 1_000;
    let text: Vec<String> = slowest
        .iter()
        .take(count)
        .map(|slow| line(slow, now_s))
        .collect();
    lines(&mut visit.reply(), &text);
}

/// One of them.
pub fn line(slow: &Slow, now_s: u64) -> String {
    let together = match slow.requests {
        0 | 1 => String::new(),
        more => format!(" and {} more", more - 1),
    };
    let workload = slow.workload.as_ref();
    let workload = workload.map_or(String::new(), |name| format!(" of {name}"));
    format!(
        "{}: {}{together} ({}{workload}) by {}, {} s ago: {}{}",
        time(slow.latency_ns as f64),
        slow.command,
        slow.class.name(),
        slow.client,
        now_s.saturating_sub(slow.unix_s),
        parts(&slow.parts, 1),
        behind(&slow.behind, 1),
    )
}

/// Where the time of this many requests went: the parts of a tenth and more, the longest first.
pub fn parts(parts: &TimeParts, requests: u64) -> String {
    let all = parts.sum().max(1);
    let mut longest: Vec<Part> = Part::ALL.into_iter().collect();
    longest.sort_by_key(|part| std::cmp::Reverse(parts[*part]));
    let of_a_tenth = longest.into_iter().filter(|part| parts[*part] * 10 >= all);
    let said = of_a_tenth.map(|part| {
        let ns = parts[part];
        let percent = 100.0 * ns as f64 / all as f64;
        let each = time(ns as f64 / requests.max(1) as f64);
        format!("{} {each} ({percent:.0} %)", part.words().words)
    });
    said.collect::<Vec<_>>().join(", ")
}

/// Behind whom they waited, the longest first.
pub fn behind(behind: &Delays, requests: u64) -> String {
    /// More names tell no more.
    const NAMED: usize = 4;
    let mut longest: Vec<_> = behind.iter().collect();
    longest.sort_by_key(|(_, ns)| std::cmp::Reverse(**ns));
    let said = longest.iter().take(NAMED).map(|((line, whom), ns)| {
        let each = time(**ns as f64 / requests.max(1) as f64);
        format!("{whom} {each} ({})", line.name())
    });
    let said: Vec<String> = said.collect();
    match said.is_empty() {
        true => String::new(),
        false => format!("; waited behind {}", said.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slo::Line;
    use telemetry::Class;

    #[test]
    fn a_slow_request_is_told_in_one_line() {
        let mut parts = TimeParts::default();
        (parts[Part::Device], parts[Part::Disk], parts[Part::Cpu]) = (30_000_000, 9_000_000, 5_000);
        let slow = Slow {
            at: 0,
            unix_s: 100,
            latency_ns: 39_005_000,
            class: Class::Get,
            workload: Some("pages".into()),
            command: "get",
            client: "web-1".into(),
            requests: 3,
            parts,
            behind: Delays::from([
                ((Line::Device, "batch".into()), 28_000_000),
                ((Line::Core, "web".into()), 1_000),
            ]),
        };
        assert_eq!(
            line(&slow, 107),
            "39.01 ms: get and 2 more (get of pages) by web-1, 7 s ago: waiting for the disk 30.00 ms (77 %), \
             with a handler 9.00 ms (23 %); waited behind batch 28.00 ms (device), web 1.0 µs (core)"
        );
    }
}
