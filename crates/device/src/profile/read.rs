//! Reading a profile: every problem at once, each with its key.

use super::{date, Profile, FORMAT};
use crate::calibrate::{Load, Measured, Mix, Rate, Seen};
use crate::Machine;
use settings::table::{self, number, whole, Fields, Problems};
use toml::{Table, Value};

fn text(fields: &Fields, key: &'static str) -> Option<String> {
    fields.required(key, "a text", table::text)
}

fn count(fields: &Fields, key: &'static str) -> Option<u64> {
    fields.required(key, "a whole number", whole)
}

fn positive(fields: &Fields, key: &'static str) -> Option<u64> {
    fields.required(key, "a whole number above 0", |value| {
        whole(value).filter(|number| *number > 0)
    })
}

/// A number a second.
fn rate(fields: &Fields, key: &'static str) -> Option<f64> {
    fields.required(key, "a number above 0", |value| {
        number(value).filter(|rate| *rate > 0.0)
    })
}

/// What a table says.
fn inner<T>(
    fields: &Fields,
    key: &'static str,
    read: impl FnOnce(&Fields) -> Option<T>,
) -> Option<T> {
    fields.required(key, "a table", Value::as_table)?;
    let inner = fields.inner(key)?;
    let found = read(&inner);
    inner.finish();
    found
}

/// What the tables of a list say.
fn list<T>(fields: &Fields, key: &'static str, read: fn(&Fields) -> Option<T>) -> Vec<T> {
    if fields.required(key, "a list", Value::as_array).is_none() {
        return Vec::new();
    }
    let read = |item: &Fields| {
        let found = read(item);
        item.finish();
        found
    };
    fields.list(key, "").iter().filter_map(read).collect()
}

fn microseconds(value: &Value) -> Option<(u64, u64)> {
    let pair: Option<Vec<f64>> = value.as_array()?.iter().map(number).collect();
    let ns = |us: f64| (us * 1e3).round() as u64;
    match pair?[..] {
        [median, high] if median >= 0.0 && high >= 0.0 => Some((ns(median), ns(high))),
        _ => None,
    }
}

fn measured_rate(fields: &Fields) -> Option<Rate> {
    let (bytes, per_s) = (count(fields, "bytes"), rate(fields, "per_s"));
    let spread = fields.required("spread", "a part, 0 or more", |value| {
        number(value).filter(|part| *part >= 0.0)
    });
    Some(Rate {
        bytes: bytes?,
        per_s: per_s?,
        spread: spread?,
    })
}

fn mix(value: &Value) -> Option<Mix> {
    match value.as_str() {
        Some("halves") => Some(Mix::Halves),
        Some(_) => None,
        None => whole(value)
            .filter(|percent| *percent <= 100)
            .map(|percent| Mix::Reads(percent as u32)),
    }
}

fn seen(fields: &Fields) -> Option<Seen> {
    let mix = fields.required("reads", "a percentage or \"halves\"", mix);
    let (read_bytes, write_bytes) = (count(fields, "read_bytes"), count(fields, "write_bytes"));
    let (workers, vop_per_s) = (count(fields, "workers"), rate(fields, "vop_per_s"));
    let load = Load {
        workers: workers? as usize,
        read_bytes: read_bytes?,
        write_bytes: write_bytes?,
        mix: mix?,
    };
    Some(Seen {
        load,
        vop_per_s: vop_per_s?,
    })
}

fn machine(fields: &Fields) -> Option<Machine> {
    let (host, kernel, processors) = (
        text(fields, "host"),
        text(fields, "kernel"),
        count(fields, "processors"),
    );
    let (disk, model, disk_bytes) = (
        text(fields, "disk"),
        text(fields, "model"),
        count(fields, "disk_bytes"),
    );
    Some(Machine {
        host: host?,
        kernel: kernel?,
        processors: processors?,
        disk: disk?,
        model: model?,
        disk_bytes: disk_bytes?,
    })
}

/// The tables of what was measured.
fn measured(root: &Fields) -> Option<Measured> {
    let capacity = inner(root, "capacity", |inner| {
        let floor = rate(inner, "floor_vop_per_s");
        let depth = positive(inner, "depth");
        let chunk = positive(inner, "chunk_bytes");
        Some((floor?, depth?, chunk?))
    });
    let latency = inner(root, "latency", |inner| {
        let wanted = "two numbers of microseconds";
        let read = inner.required("read_us", wanted, microseconds);
        let write = inner.required("write_us", wanted, microseconds);
        Some((read?, write?))
    });
    let rates = inner(root, "rates", |inner| {
        let (syncs, deletes) = (rate(inner, "syncs"), rate(inner, "deletes"));
        let (read, write) = (
            list(inner, "read", measured_rate),
            list(inner, "write", measured_rate),
        );
        let seen = list(inner, "interference", seen);
        Some((syncs?, deletes?, read, write, seen))
    });
    let (floor_per_s, depth, chunk_bytes) = capacity?;
    let (read_ns, write_ns) = latency?;
    let (sync_per_s, delete_per_s, read, write, seen) = rates?;
    Some(Measured {
        read,
        write,
        sync_per_s,
        delete_per_s,
        seen,
        floor_per_s,
        depth: depth as usize,
        chunk_bytes,
        read_ns,
        write_ns,
    })
}

fn whole_profile(root: &Fields) -> Option<Profile> {
    let made_s = root.required("made", "a date like 2026-01-31T12:00:00Z", |value| {
        date::seconds(value.as_str()?)
    });
    let (version, directory) = (text(root, "version"), text(root, "directory"));
    let quick = root.required("quick", "true or false", Value::as_bool);
    let (machine, measured) = (inner(root, "machine", machine), measured(root));
    Some(Profile {
        made_s: made_s?,
        version: version?,
        quick: quick?,
        directory: directory?,
        machine: machine?,
        measured: measured?,
    })
}

fn not_toml(text: &str, error: &toml::de::Error) -> String {
    let before = error.span().and_then(|span| text.get(..span.start));
    let line = before.map_or(0, |before| before.matches('\n').count()) + 1;
    format!("line {line} is not TOML: {}", error.message())
}

/// The profile that a text says, or everything that is wrong with it.
pub(super) fn profile(text: &str) -> Result<Profile, Vec<String>> {
    let table: Table = text
        .parse()
        .map_err(|error: toml::de::Error| vec![not_toml(text, &error)])?;
    let format = table.get("format");
    if format.and_then(whole) != Some(FORMAT) {
        // Nothing else can be relied on to mean what it says.
        let found = format.map_or("missing".to_owned(), Value::to_string);
        return Err(vec![format!(
            "format is {found}; this version reads {FORMAT} only: calibrate again"
        )]);
    }
    let problems = Problems::default();
    let root = Fields::new(&table, "", &problems);
    let profile = whole_profile(&root);
    let _ = root.has("format");
    root.finish();
    let problems = problems.list();
    profile.filter(|_| problems.is_empty()).ok_or(problems)
}
