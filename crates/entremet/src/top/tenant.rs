//! The page of one tenant.

use telemetry::live::view::{ClassLive, TenantDetail, TimeSpent};
use telemetry::{PromiseSnapshot, TenantSetting};

use super::line::{fit, Line, Look};
use super::numbers::{bytes, maybe, number, percent, rare};

/// Characters of the bar that shows where the time goes.
const BAR: usize = 40;

/// Everything about it.
pub fn page(detail: &TenantDetail) -> Vec<Line> {
    let mut lines = vec![title(detail)];
    lines.extend(figures(detail));
    lines.push(Line::default());
    lines.extend(time(&detail.time));
    lines.push(Line::default());
    lines.extend(classes(&detail.classes));
    lines.push(Line::default());
    lines.extend(promises(&detail.tenant.promises));
    lines.extend(stages(detail));
    lines.extend(places(detail));
    lines.extend(others(detail));
    lines.push(Line::default());
    lines.extend(held(detail));
    lines
}

fn title(detail: &TenantDetail) -> Line {
    let title = Line::new(format!(" {} ", detail.live.name), Look::Turned);
    let title = title.and(
        format!("  weight {}", number(detail.live.weight)),
        Look::Plain,
    );
    match &detail.live.write_error {
        Some(why) => title.and(format!("  writes are refused: {why}"), Look::Bad),
        None => title,
    }
}

fn figures(detail: &TenantDetail) -> Vec<Line> {
    let live = &detail.live;
    let class = live.class.map_or("", |class| class.name());
    let first = format!(
        "{} req/s of {} asked for, {class} p50 {} ms, p99 {} ms, share got {} %, entitled to {} %",
        number(live.rates.requests_per_s),
        number(live.asked_per_s),
        maybe(live.p50_ms),
        maybe(live.p99_ms),
        percent(live.share.got_percent),
        percent(live.share.entitled_percent),
    );
    let second = format!(
        "{} throttled/s, {} errors/s, occupancy {} %, CPU {} ms/s, {} connections",
        number(live.rates.throttled_per_s),
        maybe(live.errors_per_s),
        percent(100.0 * live.occupancy),
        number(1_000.0 * live.cpu_charged_per_s),
        live.connections,
    );
    let look = if live.rates.throttled_per_s > 0.0 {
        Look::Warn
    } else {
        Look::Plain
    };
    vec![Line::new(first, Look::Strong), Line::new(second, look)]
}

fn time(time: &TimeSpent) -> Vec<Line> {
    if time.mean_ms == 0.0 {
        return vec![Line::new("no request in the last seconds", Look::Faint)];
    }
    let heading = format!("the mean request takes {} ms:", number(time.mean_ms));
    let mut lines = vec![Line::new(heading, Look::Strong)];
    for part in time.parts.iter().filter(|part| part.mean_ms > 0.0) {
        let (name, ms) = (&part.words, part.mean_ms);
        let share = ms / time.mean_ms;
        let length = (share * BAR as f64).round() as usize;
        let text = format!(
            "  {name:36} {:>8} ms {:>5} % ",
            number(ms),
            percent(100.0 * share)
        );
        lines.push(Line::new(text, Look::Plain).and("#".repeat(length.min(BAR)), Look::Strong));
    }
    lines
}

fn classes(classes: &[ClassLive]) -> Vec<Line> {
    let heading = "class       req/s  p50 ms  p90 ms  p99 ms p999 ms turn p99 disk p99 disk %  thrott/s  err/s     in/s      out/s";
    let mut lines = vec![Line::new(heading, Look::Strong)];
    for one in classes {
        let disk = if one.latency.count == 0 {
            0.0
        } else {
            100.0 * one.disk.count as f64 / one.latency.count as f64
        };
        let text = format!(
            "{:8} {:>8} {:>7} {:>7} {:>7} {:>7} {:>8} {:>8} {:>6} {:>9} {:>6} {:>9} {:>9}",
            one.class.name(),
            number(one.rates.requests_per_s),
            number(one.latency.p50_ms),
            number(one.latency.p90_ms),
            number(one.latency.p99_ms),
            number(one.latency.p999_ms),
            number(one.queue.p99_ms),
            if one.disk.count == 0 {
                "–".into()
            } else {
                number(one.disk.p99_ms)
            },
            percent(disk),
            rare(one.rates.throttled_per_s),
            rare(one.errors_per_s),
            bytes(one.rates.bytes_in_per_s),
            bytes(one.rates.bytes_out_per_s),
        );
        lines.push(Line::new(text, Look::Plain));
    }
    lines
}

fn promises(promises: &[PromiseSnapshot]) -> Vec<Line> {
    if promises.is_empty() {
        return Vec::new();
    }
    let heading =
        "promised                      at most ms  last ms   sample  outcome  kept 1h %  kept 30d %  budget left 30d %";
    let mut lines = vec![Line::new(heading, Look::Strong)];
    for one in promises {
        let last = one.last.as_ref();
        let whose = match &one.workload {
            Some(workload) => format!("{} of {workload}", one.class),
            None => one.class.clone(),
        };
        let what = match one.percentile {
            Some(percentile) => format!("p{percentile} of {whose}"),
            None => format!("rate of {whose}"),
        };
        let outcome = last.map_or("–", |last| last.outcome.as_str());
        let part = |value: Option<f64>| value.map_or("–".to_string(), percent);
        let text = format!(
            "{what:28} {:>11} {:>8} {:>8} {outcome:>8} {:>10} {:>11} {:>18}",
            maybe(one.at_most_ms),
            maybe(last.and_then(|last| last.latency_ms)),
            last.map_or("–".to_string(), |last| number(last.sample as f64)),
            part(one.hour.met_percent),
            part(one.days.met_percent),
            part(one.days.budget_left_percent),
        );
        let look = match outcome {
            "missed" => Look::Bad,
            _ => Look::Plain,
        };
        lines.push(Line::new(text, look));
    }
    lines.push(Line::default());
    lines
}

fn stages(detail: &TenantDetail) -> Vec<Line> {
    let heading = "stage     asked/s  let through/s  wait ms  permits busy  waiting";
    let line = |one: &telemetry::live::view::WaitLive| {
        let text = format!(
            "{:8} {:>8} {:>14} {:>8} {:>13} {:>8}",
            one.stage,
            number(one.asked_per_s),
            number(one.admitted_per_s),
            maybe(one.wait_mean_ms),
            number(one.permits_busy),
            rare(one.waiting as f64),
        );
        Line::new(text, Look::Plain)
    };
    let mut lines = vec![Line::new(heading, Look::Strong)];
    lines.extend(detail.live.stages.iter().map(line));
    lines
}

fn places(detail: &TenantDetail) -> Vec<Line> {
    let line = |place: &telemetry::live::view::PlaceLive| {
        let why = place.principal.explanation.as_deref().unwrap_or_default();
        let text = format!(
            "at the {} stage of core {}: {} of {} waiting are its own {why}",
            place.stage, place.core, place.principal.waiting, place.waiting_all,
        );
        Line::new(text, Look::Plain)
    };
    if detail.places.is_empty() {
        return vec![Line::new(
            "nothing of it waits or is outstanding",
            Look::Faint,
        )];
    }
    detail.places.iter().map(line).collect()
}

fn others(detail: &TenantDetail) -> Vec<Line> {
    let other = |other: &telemetry::live::view::TenantLive| {
        let (got, entitled) = (other.share.got_percent, other.share.entitled_percent);
        format!(
            "{} {} %, entitled to {} %",
            other.name,
            percent(got),
            percent(entitled)
        )
    };
    let others: Vec<String> = detail.others.iter().map(other).collect();
    if others.is_empty() {
        return vec![Line::new("nobody else was served", Look::Faint)];
    }
    vec![Line::new(
        format!("others got: {}", others.join(", ")),
        Look::Plain,
    )]
}

/// Characters of a line of settings.
const SETTINGS_LINE: usize = 90;

/// Settings in as many lines as that takes.
fn listed<'s>(settings: impl Iterator<Item = &'s TenantSetting>) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for one in settings {
        let by = match one.set_at_run_time {
            true => " (set at run time)",
            false => "",
        };
        let text = format!("{} {}{by}", one.key, one.text);
        match lines.last_mut() {
            Some(line) if line.len() + text.len() < SETTINGS_LINE => *line += &format!(", {text}"),
            _ => lines.push(text),
        }
    }
    lines
}

/// What is set of it, what it has by default, and what it holds.
fn held(detail: &TenantDetail) -> Vec<Line> {
    let label = |text: &str| Line::new(fit(text, 10, false), Look::Strong);
    let (default, set): (Vec<_>, Vec<_>) = detail.settings.iter().partition(|one| one.default);
    let default = default.into_iter().filter(|one| one.value.is_some());
    let mut lines = Vec::new();
    for (name, texts) in [
        ("set", listed(set.into_iter())),
        ("default", listed(default)),
    ] {
        let names = std::iter::once(name).chain(std::iter::repeat(""));
        let of = texts.into_iter().zip(names);
        lines.extend(of.map(|(text, name)| label(name).and(text, Look::Plain)));
    }
    let tenant = &detail.tenant;
    let held = format!(
        "about {} keys, cache {} of {}, blocks {} of {}, files {}, not committed {}",
        number(tenant.keys as f64),
        bytes(tenant.cache_bytes as f64),
        bytes(tenant.cache_granted_bytes as f64),
        bytes(tenant.block_cache_bytes as f64),
        bytes(tenant.block_cache_granted_bytes as f64),
        bytes(tenant.disk_bytes as f64),
        bytes(tenant.uncommitted_bytes as f64),
    );
    lines.push(label("held").and(held, Look::Plain));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_set_is_shown_whatever_it_is() {
        let one = |key: &str, text: &str, set_at_run_time| TenantSetting {
            key: key.into(),
            text: text.into(),
            set_at_run_time,
            ..TenantSetting::default()
        };
        assert_eq!(listed([].iter()), Vec::<String>::new());
        let settings = [
            one("colour", "red", true),
            one("limit.requests", "5000/s", false),
            one("about", &"x".repeat(80), false),
        ];
        let lines = listed(settings.iter());
        assert_eq!(
            lines[0],
            "colour red (set at run time), limit.requests 5000/s"
        );
        assert!(lines.len() == 2 && lines[1].starts_with("about xxx"));
    }
}
