//! The columns of the table of tenants: what they hold, what they sort by, which go first when it
//! is narrow.

use std::cmp::Ordering;

use clap::builder::PossibleValue;
use clap::ValueEnum;
use telemetry::live::view::TenantLive;
use telemetry::StageKind;

use super::numbers::{maybe, number, percent, rare};

/// A column; also the word after `--sort`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    /// Name of the tenant.
    Tenant,
    /// Weight.
    Weight,
    /// Requests answered per second.
    Rate,
    /// Requests asked for per second.
    Asked,
    /// Median latency of its busiest class.
    P50,
    /// 99th percentile of its latency.
    P99,
    /// The class that the latencies are of.
    Class,
    /// Share got of what was served.
    Got,
    /// Share that its weight entitles it to.
    Entitled,
    /// Mean wait at a stage.
    Wait(StageKind),
    /// Waiting now.
    Queue,
    /// Requests throttled per second.
    Throttled,
    /// Errors per second.
    Errors,
    /// Connections.
    Conns,
}

/// What a column is called.
struct Words {
    /// After `--sort`.
    word: &'static str,
    /// In `--help`.
    about: &'static str,
    /// Above it.
    heading: &'static str,
}

/// What a column sorts by.
enum Key<'a> {
    Text(&'a str),
    Number(Option<f64>),
}

impl ValueEnum for Column {
    fn value_variants<'a>() -> &'a [Self] {
        &Self::ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let Words { word, about, .. } = self.words();
        Some(PossibleValue::new(word).help(about))
    }
}

impl Column {
    /// All of them, from left to right.
    pub const ALL: [Self; 13 + StageKind::ALL.len()] = {
        use Column::{
            Asked, Class, Conns, Entitled, Errors, Got, Queue, Rate, Tenant, Throttled, Weight,
            P50, P99,
        };
        let before = [Tenant, Weight, Rate, Asked, P50, P99, Class, Got, Entitled];
        let after = [Queue, Throttled, Errors, Conns];
        let (mut all, waits) = ([Tenant; 13 + StageKind::ALL.len()], StageKind::ALL.len());
        let mut at = 0;
        while at < all.len() {
            all[at] = if at < before.len() {
                before[at]
            } else if at < before.len() + waits {
                Self::Wait(StageKind::ALL[at - before.len()])
            } else {
                after[at - before.len() - waits]
            };
            at += 1;
        }
        all
    };

    const fn words(self) -> Words {
        let (word, about, heading) = match self {
            Self::Tenant => ("tenant", "Name of the tenant", "tenant"),
            Self::Weight => ("weight", "Weight", "weight"),
            Self::Rate => ("rate", "Requests answered per second", "req/s"),
            Self::Asked => (
                "asked",
                "Requests asked for per second: answered, throttled and waiting",
                "asks/s",
            ),
            Self::P50 => ("p50", "Median latency of its busiest class", "p50 ms"),
            Self::P99 => ("p99", "99th percentile of its latency", "p99 ms"),
            Self::Class => ("class", "The class that the latencies are of", "of"),
            Self::Got => ("got", "Share got of what was served", "got %"),
            Self::Entitled => (
                "entitled",
                "Share that its weight entitles it to",
                "entit %",
            ),
            Self::Wait(stage) => {
                let column = stage.column();
                (column.word, column.about, column.heading)
            }
            Self::Queue => ("queue", "Waiting now", "queue"),
            Self::Throttled => ("throttled", "Requests throttled per second", "thrott/s"),
            Self::Errors => ("errors", "Errors per second", "err/s"),
            Self::Conns => ("conns", "Connections", "conns"),
        };
        Words {
            word,
            about,
            heading,
        }
    }

    /// Heading, width in characters, and rank: columns of a low rank stay when the terminal is
    /// narrow.
    pub const fn shape(self) -> (&'static str, usize, u8) {
        let (width, rank) = match self {
            Self::Tenant => (16, 0),
            Self::Rate => (7, 1),
            Self::P99 => (7, 2),
            Self::Got => (6, 3),
            Self::Entitled => (7, 4),
            Self::Asked => (7, 5),
            Self::Throttled => (8, 5),
            Self::Queue => (6, 6),
            Self::Wait(stage) => (stage.column().heading.len(), stage.column().rank),
            Self::P50 => (7, 8),
            Self::Errors => (6, 10),
            Self::Weight => (6, 11),
            Self::Class => (8, 12),
            Self::Conns => (6, 13),
        };
        (self.words().heading, width, rank)
    }

    /// The text of a cell.
    pub fn text(self, tenant: &TenantLive) -> String {
        match self {
            Self::Tenant => tenant.name.clone(),
            Self::Weight => number(tenant.weight),
            Self::Rate => rare(tenant.rates.requests_per_s),
            Self::Asked => rare(tenant.asked_per_s),
            Self::P50 => maybe(tenant.p50_ms),
            Self::P99 => maybe(tenant.p99_ms),
            Self::Class => tenant.class.map_or("", |class| class.name()).to_string(),
            Self::Got => percent(tenant.share.got_percent),
            Self::Entitled => percent(tenant.share.entitled_percent),
            Self::Wait(stage) => maybe(wait(tenant, stage)),
            Self::Queue => rare(waiting(tenant) as f64),
            Self::Throttled => rare(tenant.rates.throttled_per_s),
            Self::Errors => tenant.errors_per_s.map_or_else(|| "–".into(), rare),
            Self::Conns => rare(tenant.connections as f64),
        }
    }

    fn key(self, tenant: &TenantLive) -> Key<'_> {
        let value = match self {
            Self::Tenant => return Key::Text(&tenant.name),
            Self::Class => return Key::Text(tenant.class.map_or("", |class| class.name())),
            Self::Weight => Some(tenant.weight),
            Self::Rate => Some(tenant.rates.requests_per_s),
            Self::Asked => Some(tenant.asked_per_s),
            Self::P50 => tenant.p50_ms,
            Self::P99 => tenant.p99_ms,
            Self::Got => Some(tenant.share.got_percent),
            Self::Entitled => Some(tenant.share.entitled_percent),
            Self::Wait(stage) => wait(tenant, stage),
            Self::Queue => Some(waiting(tenant) as f64),
            Self::Throttled => Some(tenant.rates.throttled_per_s),
            Self::Errors => tenant.errors_per_s,
            Self::Conns => Some(tenant.connections as f64),
        };
        Key::Number(value)
    }

    /// True for columns of words, which one reads from A.
    pub const fn is_text(self) -> bool {
        matches!(self, Self::Tenant | Self::Class)
    }

    /// The order of two tenants; what has no value comes last whichever way, then names decide.
    pub fn compare(self, descending: bool, a: &TenantLive, b: &TenantLive) -> Ordering {
        let turned = |order: Ordering| if descending { order.reverse() } else { order };
        let order = match (self.key(a), self.key(b)) {
            (Key::Text(a), Key::Text(b)) => turned(a.cmp(b)),
            (Key::Number(Some(a)), Key::Number(Some(b))) => turned(a.total_cmp(&b)),
            (Key::Number(a), Key::Number(b)) => b.is_some().cmp(&a.is_some()),
            _ => Ordering::Equal,
        };
        order.then_with(|| a.name.cmp(&b.name))
    }

    /// The columns that fit a width, and the width that is left for names.
    pub fn fitting(width: usize) -> (Vec<Self>, usize) {
        let mut ranked = Self::ALL;
        ranked.sort_by_key(|column| column.shape().2);
        let (mut chosen, mut used) = (Vec::new(), 0);
        for column in ranked {
            let more = column.shape().1 + usize::from(!chosen.is_empty());
            if !chosen.is_empty() && used + more > width {
                break;
            }
            used += more;
            chosen.push(column);
        }
        chosen.sort_by_key(|column| Self::ALL.iter().position(|other| other == column));
        let name = Self::Tenant.shape().1 + width.saturating_sub(used);
        (chosen, name.min(40).min(width))
    }
}

fn wait(tenant: &TenantLive, stage: StageKind) -> Option<f64> {
    let mut stages = tenant.stages.iter();
    stages.find(|one| one.stage == stage.name())?.wait_mean_ms
}

/// Waiting now, at all stages.
pub fn waiting(tenant: &TenantLive) -> u64 {
    tenant.stages.iter().map(|stage| stage.waiting).sum()
}

/// True when it asks for nothing.
pub fn is_idle(tenant: &TenantLive) -> bool {
    let rates = tenant.rates;
    rates.requests_per_s == 0.0 && rates.throttled_per_s == 0.0 && waiting(tenant) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tenant(name: &str, p99_ms: Option<f64>) -> TenantLive {
        TenantLive {
            name: name.into(),
            p99_ms,
            ..TenantLive::default()
        }
    }

    #[test]
    fn what_has_no_value_comes_last_either_way() {
        let mut tenants = [
            tenant("a", None),
            tenant("b", Some(1.0)),
            tenant("c", Some(2.0)),
        ];
        for (descending, expected) in [(true, ["c", "b", "a"]), (false, ["b", "c", "a"])] {
            tenants.sort_by(|a, b| Column::P99.compare(descending, a, b));
            let names: Vec<&str> = tenants.iter().map(|t| t.name.as_str()).collect();
            assert_eq!(names, expected);
        }
    }

    #[test]
    fn columns_fit_every_width() {
        for width in 1..300 {
            let (columns, name) = Column::fitting(width);
            let others: usize = columns[1..].iter().map(|column| 1 + column.shape().1).sum();
            assert_eq!(columns[0], Column::Tenant, "width {width}");
            assert!(name + others <= width, "width {width}: {name} + {others}");
        }
        assert_eq!(Column::fitting(200).0, Column::ALL);
        assert_eq!(
            Column::fitting(32).0,
            [Column::Tenant, Column::Rate, Column::P99]
        );
    }
}
