//! Reading a profile: every problem at once, each with its key.

use super::{date, Profile, FORMAT};
use crate::calibrate::{Load, Measured, Mix, Rate, Seen};
use crate::Machine;
use toml::{Table, Value};

/// A table, and what is wrong with it so far.
struct Reader<'a> {
    table: &'a Table,
    place: String,
    known: Vec<&'static str>,
    problems: Vec<String>,
}

impl<'a> Reader<'a> {
    fn new(table: &'a Table, place: String) -> Reader<'a> {
        Reader {
            table,
            place,
            known: Vec::new(),
            problems: Vec::new(),
        }
    }

    /// The value of a key as what is wanted of it.
    fn get<T>(
        &mut self,
        key: &'static str,
        wanted: &str,
        read: impl Fn(&Value) -> Option<T>,
    ) -> Option<T> {
        self.known.push(key);
        let place = format!("{}{key}", self.place);
        let Some(value) = self.table.get(key) else {
            self.problems
                .push(format!("{place} is missing; it must be {wanted}"));
            return None;
        };
        let found = read(value);
        if found.is_none() {
            self.problems
                .push(format!("{place} = {value} is not {wanted}"));
        }
        found
    }

    fn text(&mut self, key: &'static str) -> Option<String> {
        self.get(key, "a text", |value| value.as_str().map(str::to_owned))
    }

    fn count(&mut self, key: &'static str) -> Option<u64> {
        self.get(key, "a whole number", whole)
    }

    fn positive(&mut self, key: &'static str) -> Option<u64> {
        self.get(key, "a whole number above 0", |value| {
            whole(value).filter(|number| *number > 0)
        })
    }

    fn rate(&mut self, key: &'static str) -> Option<f64> {
        self.get(key, "a number above 0", |value| {
            real(value).filter(|rate| *rate > 0.0)
        })
    }

    fn inner<T>(
        &mut self,
        key: &'static str,
        read: impl FnOnce(&mut Reader<'a>) -> Option<T>,
    ) -> Option<T> {
        self.known.push(key);
        let table: &'a Table = self.table;
        let Some(inner) = table.get(key).and_then(Value::as_table) else {
            self.problems
                .push(format!("the table [{}{key}] is missing", self.place));
            return None;
        };
        let mut reader = Reader::new(inner, format!("{}{key}.", self.place));
        let found = read(&mut reader);
        self.problems.extend(reader.end());
        found
    }

    fn list<T>(
        &mut self,
        key: &'static str,
        read: impl Fn(&mut Reader<'a>) -> Option<T>,
    ) -> Vec<T> {
        self.known.push(key);
        let table: &'a Table = self.table;
        let Some(list) = table.get(key).and_then(Value::as_array) else {
            self.problems
                .push(format!("the list {}{key} is missing", self.place));
            return Vec::new();
        };
        let mut all = Vec::new();
        for (at, item) in list.iter().enumerate() {
            let place = format!("{}{key}[{at}]", self.place);
            let Some(item) = item.as_table() else {
                self.problems
                    .push(format!("{place} must be a table {{ … }}"));
                continue;
            };
            let mut reader = Reader::new(item, format!("{place}."));
            all.extend(read(&mut reader));
            self.problems.extend(reader.end());
        }
        all
    }

    fn end(mut self) -> Vec<String> {
        let unknown = self
            .table
            .keys()
            .filter(|key| !self.known.contains(&key.as_str()));
        let text = |key: &String| format!("{}{key} is no key of a profile", self.place);
        let unknown: Vec<String> = unknown.map(text).collect();
        self.problems.extend(unknown);
        self.problems
    }
}

fn whole(value: &Value) -> Option<u64> {
    value
        .as_integer()
        .and_then(|number| u64::try_from(number).ok())
}

fn real(value: &Value) -> Option<f64> {
    let number = value
        .as_float()
        .or_else(|| value.as_integer().map(|number| number as f64));
    number.filter(|number| number.is_finite())
}

fn microseconds(value: &Value) -> Option<(u64, u64)> {
    let pair: Option<Vec<f64>> = value.as_array()?.iter().map(real).collect();
    let ns = |us: f64| (us * 1e3).round() as u64;
    match pair?[..] {
        [median, high] if median >= 0.0 && high >= 0.0 => Some((ns(median), ns(high))),
        _ => None,
    }
}

fn rate(reader: &mut Reader<'_>) -> Option<Rate> {
    let (bytes, per_s) = (reader.count("bytes"), reader.rate("per_s"));
    let spread = reader.get("spread", "a part, 0 or more", |value| {
        real(value).filter(|part| *part >= 0.0)
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

fn seen(reader: &mut Reader<'_>) -> Option<Seen> {
    let mix = reader.get("reads", "a percentage or \"halves\"", mix);
    let (read_bytes, write_bytes) = (reader.count("read_bytes"), reader.count("write_bytes"));
    let (workers, vop_per_s) = (reader.count("workers"), reader.rate("vop_per_s"));
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

fn machine(reader: &mut Reader<'_>) -> Option<Machine> {
    let (host, kernel, processors) = (
        reader.text("host"),
        reader.text("kernel"),
        reader.count("processors"),
    );
    let (disk, model, disk_bytes) = (
        reader.text("disk"),
        reader.text("model"),
        reader.count("disk_bytes"),
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
fn measured(root: &mut Reader<'_>) -> Option<Measured> {
    let capacity = root.inner("capacity", |inner| {
        let floor = inner.rate("floor_vop_per_s");
        let depth = inner.positive("depth");
        let chunk = inner.positive("chunk_bytes");
        Some((floor?, depth?, chunk?))
    });
    let latency = root.inner("latency", |inner| {
        let wanted = "two numbers of microseconds";
        let read = inner.get("read_us", wanted, microseconds);
        let write = inner.get("write_us", wanted, microseconds);
        Some((read?, write?))
    });
    let rates = root.inner("rates", |inner| {
        let (syncs, deletes) = (inner.rate("syncs"), inner.rate("deletes"));
        let (read, write) = (inner.list("read", rate), inner.list("write", rate));
        let seen = inner.list("interference", seen);
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

fn whole_profile(root: &mut Reader<'_>) -> Option<Profile> {
    root.known.push("format");
    let made_s = root.get("made", "a date like 2026-01-31T12:00:00Z", |value| {
        date::seconds(value.as_str()?)
    });
    let (version, directory) = (root.text("version"), root.text("directory"));
    let quick = root.get("quick", "true or false", Value::as_bool);
    let (machine, measured) = (root.inner("machine", machine), measured(root));
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
    let mut reader = Reader::new(&table, String::new());
    let profile = whole_profile(&mut reader);
    let problems = reader.end();
    profile.filter(|_| problems.is_empty()).ok_or(problems)
}
