//! The settings of a load or of one of its phases.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use settings::units::{ByteRate, Bytes};
use settings::Section;
use toml::de::DeTable;

use super::pace::pace;
use super::time;
use crate::draw::Shares;
use crate::scenario::behaviour::{
    Arrivals, Behaviour, Counts, Favour, Handshake, Keys, Pace, Values,
};
use crate::scenario::misbehave;

/// The settings that the named ways stand for.
static WAYS: LazyLock<BTreeMap<&'static str, DeTable<'static>>> = LazyLock::new(|| {
    let parsed = |way: &misbehave::Way| {
        let (table, errors) = DeTable::parse_recoverable(way.settings);
        debug_assert!(errors.is_empty(), "{}: {errors:?}", way.name);
        (way.name, table.into_inner())
    };
    misbehave::ALL.iter().map(parsed).collect()
});

/// The section with the settings of its own way to misbehave beneath.
pub(super) fn with_way<'a>(section: Section<'a>) -> Section<'a> {
    match section
        .raw_text("misbehave")
        .and_then(|name| WAYS.get(name))
    {
        Some(table) => section.over_table(table),
        None => section,
    }
}

/// Settings that cannot take effect beside `what` are refused rather than passed over.
pub(super) fn idle(section: &Section, names: &[&str], what: &str) {
    for name in names.iter().filter(|name| section.gives(name)) {
        section.error(name, &format!("has no effect {what}"), "remove it");
    }
}

/// Everything that a phase can change.
pub(super) fn read(section: &Section) -> Option<Behaviour> {
    let keys = keys(&section.table("keys"));
    let ttl = time(section, "ttl");
    let ttl_together = section.get_or_default("ttl_together");
    if ttl_together && ttl.is_none() {
        section.error(
            "ttl_together",
            "has no effect without `ttl`",
            "add ttl = \"10s\"",
        );
    }
    let popularity = popularity(&section.table("popularity"), &keys);
    let pace = pace(section);
    if matches!(
        pace,
        Some(Pace::Open {
            arrivals: Arrivals::Trace(_),
            ..
        })
    ) {
        let asks = [
            "mix",
            "keys",
            "popularity",
            "values",
            "multiget",
            "range",
            "ttl",
            "ttl_together",
        ];
        idle(
            section,
            &asks,
            "with arrivals = \"trace\": the trace says what is asked",
        );
    }
    let range_section = section.table("range");
    Some(Behaviour {
        connections: section.get_or_default::<u32>("connections") as usize,
        mix: mix(&section.table("mix")),
        values: values(&section.table("values")),
        multiget: counts(&section.table("multiget"), true),
        range: counts(&range_section, false),
        range_values: range_section.get_or_default("values"),
        handshake: section
            .word("handshake", &Handshake::WORDS)
            .unwrap_or(Handshake::Full),
        reconnect_after: section.get_or_default("reconnect_after"),
        read_rate: section.get::<ByteRate>("read_rate").map(ByteRate::per_s),
        misbehave: section.get("misbehave"),
        pace: pace?,
        keys,
        popularity,
        ttl,
        ttl_together,
    })
}

fn mix(section: &Section) -> Shares {
    let shares = Shares {
        get: section.get_or_default("get"),
        put: section.get_or_default("put"),
        multiget: section.get_or_default("multiget"),
        range: section.get_or_default("range"),
        delete: section.get_or_default("delete"),
        increment: section.get_or_default("increment"),
        bitcount: section.get_or_default("bitcount"),
        ping: section.get_or_default("ping"),
        invalid: section.get_or_default("invalid"),
    };
    if !section.present() {
        return Shares {
            get: 1.0,
            ..Shares::default()
        };
    }
    if shares == Shares::default() {
        section.error("get", "and all others are 0", "give one of them a weight");
    }
    shares
}

fn keys(section: &Section) -> Keys {
    Keys {
        count: section.get_or_default("count"),
        bytes: section.get_or_default::<u32>("bytes") as u16,
        space: section.get_or_default("space"),
        preload: section.get_or_default("preload"),
    }
}

fn popularity(section: &Section, keys: &Keys) -> Favour {
    let (alpha, share, by): (f64, f64, f64) = (
        section.get_or_default("alpha"),
        section.get_or_default("hot_share"),
        section.get_or_default("by"),
    );
    let (hot, every): (u64, _) = (section.get_or_default("hot_keys"), time(section, "every"));
    let trace: String = section.get_or_default("trace");
    let kind: String = section.get_or_default("kind");
    let (favour, used): (Favour, &[&str]) = match kind.as_str() {
        "zipf" => (Favour::Zipf(alpha), &["alpha"]),
        "hotspot" => (
            Favour::Hotspot { keys: hot, share },
            &["hot_keys", "hot_share"],
        ),
        "shifting" => {
            let every = every.unwrap_or_default();
            (
                Favour::Shifting { alpha, every, by },
                &["alpha", "every", "by"],
            )
        }
        "sequential" => (Favour::Sequential, &[]),
        "trace" => (Favour::Trace(trace), &["trace"]),
        _ => (Favour::Uniform, &[]),
    };
    rest(
        section,
        &["alpha", "hot_keys", "hot_share", "every", "by", "trace"],
        used,
        &kind,
    );
    if matches!(favour, Favour::Hotspot { keys: hot, .. } if hot > keys.count) {
        section.error(
            "hot_keys",
            "is more than there are keys",
            "raise keys.count",
        );
    }
    favour
}

/// Refuses what belongs to other kinds.
fn rest(section: &Section, all: &[&str], used: &[&str], kind: &str) {
    let unused: Vec<&str> = all
        .iter()
        .filter(|name| !used.contains(name))
        .copied()
        .collect();
    idle(section, &unused, &format!("with kind = {kind:?}"));
}

fn values(section: &Section) -> Values {
    let size = |name: &str| section.get_or_default::<Bytes>(name).get() as u32;
    let (constant, min, max, mean) = (size("size"), size("min"), size("max"), size("mean"));
    let sigma = section.get_or_default("sigma");
    let trace: Option<String> = section.get("trace");
    let sizes: Option<Vec<Bytes>> = section.get("sizes");
    let weights: Option<Vec<f64>> = section.get("weights");
    let kind: String = section.get_or_default("kind");
    let (values, used): (Values, &[&str]) = match kind.as_str() {
        "uniform" => (Values::Uniform(min, max), &["min", "max"]),
        "log-normal" => {
            let mean = f64::from(mean);
            (
                Values::LogNormal {
                    mean,
                    sigma,
                    min,
                    max,
                },
                &["mean", "sigma", "min", "max"],
            )
        }
        "histogram" => (
            histogram(section, trace, sizes, weights),
            &["trace", "sizes", "weights"],
        ),
        _ => (Values::Constant(constant), &["size"]),
    };
    let all = [
        "size", "min", "max", "mean", "sigma", "trace", "sizes", "weights",
    ];
    rest(section, &all, used, &kind);
    ordered(section, u64::from(min), u64::from(max), used);
    values
}

fn histogram(
    section: &Section,
    trace: Option<String>,
    sizes: Option<Vec<Bytes>>,
    weights: Option<Vec<f64>>,
) -> Values {
    let Some(sizes) = sizes else {
        idle(section, &["weights"], "without `sizes`");
        if trace.is_none() && !section.gives("trace") && !section.gives("sizes") {
            let advice = "add trace = \"kvcache_reg\" or sizes = [\"100B\", \"1KiB\"]";
            section.error("trace", "is missing, and so is `sizes`", advice);
        }
        return Values::Trace(trace.unwrap_or_default());
    };
    idle(section, &["trace"], "with `sizes`");
    let weights = weights.unwrap_or_else(|| vec![1.0; sizes.len()]);
    if weights.len() != sizes.len() {
        let what = format!("are {} for {} sizes", weights.len(), sizes.len());
        section.error("weights", &what, "give each size a weight");
    }
    if !weights.iter().any(|weight| *weight > 0.0) {
        section.error("weights", "are all 0", "give one of them a weight");
    }
    let bytes = sizes.iter().map(|size| size.get() as u32);
    Values::Histogram(bytes.zip(weights).collect())
}

/// `traced`: the section has the kind "trace".
fn counts(section: &Section, traced: bool) -> Counts {
    let number = |name: &str| section.get_or_default::<u32>(name);
    let (keys, min, max) = (number("keys"), number("min"), number("max"));
    let (mean, sigma) = (
        section.get_or_default("mean"),
        section.get_or_default("sigma"),
    );
    let trace = if traced { section.get("trace") } else { None };
    let kind: String = section.get_or_default("kind");
    let (counts, used): (Counts, &[&str]) = match (kind.as_str(), trace) {
        ("uniform", _) => (Counts::Uniform(min, max), &["min", "max"]),
        ("log-normal", _) => (
            Counts::LogNormal {
                mean,
                sigma,
                min,
                max,
            },
            &["mean", "sigma", "min", "max"],
        ),
        ("trace", Some(trace)) => (Counts::Trace(trace), &["trace"]),
        _ => (Counts::Constant(keys), &["keys"]),
    };
    rest(
        section,
        &["keys", "min", "max", "mean", "sigma", "trace"],
        used,
        &kind,
    );
    ordered(section, u64::from(min), u64::from(max), used);
    counts
}

fn ordered(section: &Section, min: u64, max: u64, used: &[&str]) {
    if used.contains(&"min") && min > max {
        section.error("min", "is more than `max`", "swap them");
    }
}
