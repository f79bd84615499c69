//! The page of one tenant.

use telemetry::live::view::{ClassLive, TenantDetail, TimeSpent};

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
    lines.extend(stages(detail));
    lines.extend(places(detail));
    lines.extend(others(detail));
    lines.push(Line::default());
    lines.extend(promised(detail));
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

fn promised(detail: &TenantDetail) -> Vec<Line> {
    let tenant = &detail.tenant;
    let rate = |name: &str, value: Option<f64>, unit: &str| {
        let value = value.map_or_else(|| "none".into(), |value| number(value) + unit);
        format!("{name} {value}")
    };
    let promised = [
        rate("reservation get", tenant.reserve_get_per_s, "/s"),
        rate("put", tenant.reserve_put_per_s, "/s"),
        rate("limit requests", tenant.limit_requests_per_s, "/s"),
        tenant.limit_bytes_per_s.map_or_else(
            || "limit bytes none".into(),
            |limit| format!("limit bytes {}/s", bytes(limit)),
        ),
        rate("contract", tenant.contract_per_s, " req/s"),
        format!("{} reserved permits", tenant.reserved_permits),
        format!("sync {}", tenant.sync),
    ];
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
    let label = |text: &str| fit(text, 10, false);
    vec![
        Line::new(label("promised"), Look::Strong).and(promised.join(", "), Look::Plain),
        Line::new(label("held"), Look::Strong).and(held, Look::Plain),
    ]
}
