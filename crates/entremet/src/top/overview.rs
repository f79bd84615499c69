//! The page of all tenants.

use telemetry::live::view::{LiveView, StageLive, TenantLive};

use super::column::{is_idle, Column};
use super::line::{fit, Line, Look};
use super::numbers::{bytes, duration, number, percent};
use super::view::View;

/// Stages listed under the table; more are summed up in a line.
const STAGES_MAX: usize = 8;
/// Rows of tenants that stages must leave.
const ROWS_MIN: usize = 5;

/// The server in two lines.
pub fn server(live: &LiveView) -> Vec<Line> {
    let server = &live.server;
    let (state, look) = match server.state.reason() {
        None => ("ready".to_string(), Look::Plain),
        Some(why) => (format!("{}: {why}", server.state.name()), Look::Bad),
    };
    let about = format!(
        " entremet {}, up {}, {} cores, {}",
        server.version,
        duration(server.uptime_s),
        server.cores,
        server.scheduler
    );
    let rates = &server.rates;
    let facts = format!(
        " {} req/s, {} throttled/s, CPU {} of {}, {} connections, memory {} of {}, caches {} of {}{}",
        number(rates.requests_per_s),
        number(rates.throttled_per_s),
        number(server.cpu_per_s),
        server.cores,
        server.connections,
        bytes(server.memory_resident as f64),
        bytes(server.memory_process_max as f64),
        bytes(server.memory_used as f64),
        bytes(server.memory_max as f64),
        before_login(&live.newcomers),
    );
    let first = Line::new(about, Look::Strong).and(", ", Look::Plain);
    vec![first.and(state, look), Line::new(facts, Look::Plain)]
}

/// What connections took that have not logged in, if that can be seen.
fn before_login(newcomers: &TenantLive) -> String {
    match newcomers.share.got_percent {
        share if share < 0.1 => String::new(),
        share => format!(", before log-in {} %", percent(share)),
    }
}

/// The heading of the table.
pub fn heading(view: &View, columns: &[Column], name: usize) -> Line {
    let mut text = String::new();
    for column in columns {
        let (label, width, _) = column.shape();
        let arrow = match (view.sort == *column, view.descending) {
            (false, _) => "",
            (true, true) => "↓",
            (true, false) => "↑",
        };
        let label = format!("{label}{arrow}");
        if column.is_text() {
            let width = if *column == Column::Tenant {
                name
            } else {
                width
            };
            text += &fit(&label, width, false);
        } else {
            text += &fit(&label, width, true);
        }
        text.push(' ');
    }
    text.pop();
    Line::new(text, Look::Strong)
}

/// One tenant's row.
pub fn row(tenant: &TenantLive, columns: &[Column], name: usize) -> Line {
    let base = if is_idle(tenant) {
        Look::Faint
    } else {
        Look::Plain
    };
    let mut line = Line::default();
    for (place, column) in columns.iter().enumerate() {
        let (_, width, _) = column.shape();
        let text = column.text(tenant);
        let text = match column {
            Column::Tenant => fit(&text, name, false),
            Column::Class => fit(&text, width, false),
            _ => fit(&text, width, true),
        };
        let look = match column {
            Column::Tenant if tenant.write_error.is_some() => Look::Bad,
            Column::Throttled if tenant.rates.throttled_per_s > 0.0 => Look::Warn,
            Column::Errors if tenant.errors_per_s.is_some_and(|rate| rate > 0.0) => Look::Warn,
            _ => base,
        };
        if place > 0 {
            line = line.and(" ", Look::Plain);
        }
        line = line.and(text, look);
    }
    line
}

/// Heading and rows for a width; `height` rows at most, those around the selected one.
pub fn table(view: &View, live: &LiveView, width: usize, height: usize) -> Vec<Line> {
    let (columns, name) = Column::fitting(width);
    let rows = view.rows(live);
    let selected = view.selected.as_deref();
    let at = rows
        .iter()
        .position(|row| selected == Some(row.name.as_str()));
    let mut lines = vec![heading(view, &columns, name).filled(width, Look::Turned)];
    // The bar stays in view: the window of rows ends with it at the latest.
    let first = at.map_or(0, |at| (at + 1).saturating_sub(height));
    for (place, tenant) in rows.iter().enumerate().skip(first).take(height) {
        let line = row(tenant, &columns, name);
        lines.push(if at == Some(place) {
            line.filled(width, Look::Turned)
        } else {
            line
        });
    }
    if rows.is_empty() {
        lines.push(Line::new(nobody(view, live), Look::Faint));
    }
    lines
}

fn nobody(view: &View, live: &LiveView) -> String {
    if live.tenants_total == 0 {
        return "no tenant is configured".into();
    }
    if view.filter.is_empty() {
        return "all tenants are idle; press i to show them".into();
    }
    format!(
        "no tenant's name holds {:?}; Esc clears the filter",
        view.filter
    )
}

/// How many, and what is left out.
pub fn count(view: &View, live: &LiveView, shown: usize) -> Line {
    let idle = live.tenants.iter().filter(|tenant| is_idle(tenant)).count();
    let mut text = format!("{} tenants, {idle} idle", live.tenants_total);
    if shown < live.tenants.len() {
        text = format!("{shown} of {text}");
    }
    if live.tenants_total > live.tenants.len() as u64 {
        text += &format!(", the busiest {} listed", live.tenants.len());
    }
    if !view.filter.is_empty() || view.editing {
        let cursor = if view.editing { "_" } else { "" };
        text += &format!("   filter: {}{cursor}", view.filter);
    }
    Line::new(text, Look::Faint)
}

/// The stages, in as many lines as `room` leaves after some rows of tenants.
pub fn stages(live: &LiveView, room: usize) -> Vec<Line> {
    let lines_max = room.saturating_sub(ROWS_MIN + 2).min(STAGES_MAX);
    if live.stages.is_empty() || lines_max == 0 {
        return Vec::new();
    }
    let heading = "stage    core      busy  let through/s waiting  who waits";
    let mut lines = vec![Line::new(heading, Look::Strong)];
    let mut busiest: Vec<&StageLive> = live.stages.iter().collect();
    busiest.sort_by(|a, b| {
        let busier = b.permits_busy.total_cmp(&a.permits_busy);
        b.waiting.cmp(&a.waiting).then(busier)
    });
    let mut shown: Vec<&StageLive> = busiest.iter().take(lines_max).copied().collect();
    shown.sort_by(|a, b| b.stage.cmp(&a.stage).then(a.core.cmp(&b.core)));
    lines.extend(shown.into_iter().map(stage));
    lines
}

fn stage(stage: &StageLive) -> Line {
    let waiting = stage.principals.iter().filter(|one| one.waiting > 0);
    let who: Vec<String> = waiting
        .take(6)
        .map(|one| format!("{} {}", one.name, one.waiting))
        .collect();
    let permits = format!("{}/{}", number(stage.permits_busy), stage.permits);
    let text = format!(
        "{:8} {:>4} {:>9}  {:>13} {:>7}  {}",
        stage.stage,
        stage.core,
        permits,
        number(stage.admitted_per_s),
        stage.waiting,
        who.join(", ")
    );
    Line::new(text, Look::Plain)
}
