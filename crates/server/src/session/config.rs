//! `CONFIG …`: what there is to set, and what clients ask for because Redis has it.
//!
//! A parameter is listed only if its value says something true of this server, and `CONFIG SET`
//! refuses what would have no effect. What it changes lasts until the server ends or reads its
//! configuration file anew, as in Redis without `CONFIG REWRITE`.

use std::collections::BTreeSet;

use commands::{glob_matches, ConfigCommand, PATTERN_BYTES_MAX, PATTERN_TOO_LONG};
use policy::dispatch::Discipline;
use policy::slo::admission::Admission;
use policy::slo::control::Policy;
use policy::words::Words;
use policy::Durability;
use resp::parse_i64;

use super::Visit;
use crate::options::Tuning;

/// Slow commands that a log may keep, each of at most about 4 KiB.
const SLOW_LOG_LENGTH_MAX: i64 = 100_000;

/// Runs a `CONFIG` subcommand.
pub fn run(command: ConfigCommand, visit: &mut Visit<'_>) {
    match command {
        ConfigCommand::Get => get(visit),
        ConfigCommand::Set => set(visit),
        ConfigCommand::Resetstat => {
            let tenant = visit.tenant;
            *tenant.counted_from.lock() =
                crate::tenants::Counted::of(&visit.shared.metrics, tenant);
            tenant.calls.reset();
            visit.reply().ok();
        }
        ConfigCommand::Rewrite => {
            visit.error(
                "ERR the configuration file is the operator's: edit it and send the server SIGHUP",
            );
        }
    }
}

/// A parameter's name and how its value is found; none: it is not the asking tenant's business.
type Parameter = (&'static str, fn(&Visit<'_>) -> Option<String>);

/// In the order of `CONFIG GET *`.
#[rustfmt::skip]
const PARAMETERS: &[Parameter] = &[
    ("appendfsync", |v| Some(fsync_word(v.tenant.settings().durability).into())),
    ("appendonly", |_| Some("yes".into())),
    ("bind", |v| Some(bind(v))),
    ("cluster-enabled", |_| Some("no".into())),
    ("databases", |_| Some(engine::DATABASES.to_string())),
    ("dir", |v| v.operator().then(|| v.shared.options.data.display().to_string())),
    ("entremet-admission", |v| Some(v.shared.tuning().admission.word().into())),
    ("entremet-control", |v| Some(v.shared.tuning().control.word().into())),
    ("entremet-scheduler", |v| Some(v.shared.tuning().discipline.word().into())),
    ("io-threads", |v| Some(v.shared.options.cores.to_string())),
    ("latency-monitor-threshold", |_| Some("0".into())),
    ("maxclients", |v| Some(connections_max(v).to_string())),
    // Data is bounded by the disk; the cache's allotment is the tenant's `cache`.
    ("maxmemory", |_| Some("0".into())),
    ("maxmemory-policy", |_| Some("noeviction".into())),
    ("notify-keyspace-events", |_| Some(String::new())),
    ("port", |v| Some(super::info::plain_port(v.shared).to_string())),
    ("proto-max-bulk-len", |v| Some(v.shared.options.value_bytes_max.to_string())),
    ("save", |_| Some(String::new())),
    ("slowlog-log-slower-than", |v| Some(v.shared.tuning().slow_log_over_us.to_string())),
    ("slowlog-max-len", |v| Some(v.shared.tuning().slow_log_length.to_string())),
    ("tcp-keepalive", |_| Some(crate::options::KEEPALIVE.as_secs().to_string())),
    ("timeout", |v| Some((v.shared.tuning().idle_timeout_ms / 1_000).to_string())),
];

/// An operator's is the server's number, which it may change; a tenant's is its own.
fn connections_max(visit: &Visit<'_>) -> usize {
    match visit.operator() {
        true => visit.shared.plan().connections,
        false => visit.shared.house.connections_max(visit.tenant.id),
    }
}

fn bind(visit: &Visit<'_>) -> String {
    let addresses = visit.shared.bound(false);
    let distinct: BTreeSet<String> = addresses.map(|(_, addr)| addr.ip().to_string()).collect();
    distinct.into_iter().collect::<Vec<_>>().join(" ")
}

fn all<T: Words>() -> Vec<(&'static str, T)> {
    let rows = T::ALL.iter();
    rows.map(|(value, (word, _))| (*word, *value)).collect()
}

const FSYNC: [(&str, Durability); 3] = [
    ("everysec", Durability::EverySecond),
    ("always", Durability::Always),
    ("no", Durability::Never),
];

fn fsync_word(durability: Durability) -> &'static str {
    FSYNC
        .iter()
        .find(|(_, other)| *other == durability)
        .expect("every durability has a word")
        .0
}

fn get(visit: &mut Visit<'_>) {
    let words = visit.args.from(2);
    if words
        .iter()
        .any(|pattern| pattern.len() > PATTERN_BYTES_MAX)
    {
        return visit.error(PATTERN_TOO_LONG);
    }
    let patterns: Vec<Vec<u8>> = words.iter().map(<[u8]>::to_ascii_lowercase).collect();
    let found: Vec<(&str, String)> = PARAMETERS
        .iter()
        .filter(|(name, _)| {
            patterns
                .iter()
                .any(|pattern| glob_matches(pattern, name.as_bytes()))
        })
        .filter_map(|(name, value)| Some((*name, value(visit)?)))
        .collect();
    let mut reply = visit.reply();
    reply.map(found.len());
    for (name, value) in found {
        reply.bulk(name.as_bytes());
        reply.bulk(value.as_bytes());
    }
}

/// A change that was found good.
#[derive(Debug, PartialEq)]
enum Edit {
    Discipline(Discipline),
    Control(Policy),
    Admission(Admission),
    SlowLogOverUs(i64),
    SlowLogLength(usize),
    IdleTimeoutMs(u64),
    ConnectionsMax(usize),
    Durability(Durability),
    /// It is so already.
    Nothing,
}

impl Edit {
    fn apply(&self, tuning: &mut Tuning) {
        match *self {
            Self::Discipline(discipline) => tuning.discipline = discipline,
            Self::Control(policy) => tuning.control = policy,
            Self::Admission(admission) => tuning.admission = admission,
            Self::SlowLogOverUs(us) => tuning.slow_log_over_us = us,
            Self::SlowLogLength(length) => tuning.slow_log_length = length,
            Self::IdleTimeoutMs(ms) => tuning.idle_timeout_ms = ms,
            Self::ConnectionsMax(count) => tuning.connections_max = count,
            Self::Durability(_) | Self::Nothing => {}
        }
    }
}

fn set(visit: &mut Visit<'_>) {
    if !visit.operator() {
        return visit.error(super::NOT_OPERATOR);
    }
    if visit.args.len() % 2 != 0 {
        return visit.syntax_error();
    }
    match edits(visit) {
        Err(text) => visit.error(&text),
        Ok(edits) => {
            visit
                .shared
                .tune(|tuning| edits.iter().for_each(|edit| edit.apply(tuning)));
            for edit in edits {
                if let Edit::Durability(durability) = edit {
                    visit.shared.set_durability(visit.tenant, durability);
                }
            }
            visit.reply().ok();
        }
    }
}

/// Checks every pair before any is applied; names are checked before values, as Redis does.
fn edits(visit: &Visit<'_>) -> Result<Vec<Edit>, String> {
    let pairs = || (2..visit.args.len()).step_by(2);
    let mut seen = BTreeSet::new();
    let mut parameters = Vec::new();
    for at in pairs() {
        let name = visit.text(at).to_ascii_lowercase();
        let Some(parameter) = PARAMETERS.iter().find(|(known, _)| *known == name) else {
            let name = visit.text(at);
            return Err(format!(
                "ERR Unknown option or number of arguments for CONFIG SET - '{name}'"
            ));
        };
        if !seen.insert(parameter.0) {
            return Err(failed(&visit.text(at), "duplicate parameter"));
        }
        parameters.push(parameter);
    }
    let edit = |(at, (name, value)): (usize, &Parameter)| {
        let now = value(visit).unwrap_or_default();
        let shared = visit.shared;
        let (tenants, tuning) = (shared.tenants.count(), shared.tuning());
        let limit = shared
            .options
            .descriptors
            .connections_limit(tenants, &tuning);
        edit(name, &now, visit.arg(at + 1), limit).map_err(|why| failed(&visit.text(at), &why))
    };
    pairs().zip(parameters).map(edit).collect()
}

fn failed(name: &str, why: &str) -> String {
    format!("ERR CONFIG SET failed (possibly related to argument '{name}') - {why}")
}

/// What setting `name`, which is `now`, to `wanted` would change, with room for `limit`
/// connections; the error is Redis's reason.
fn edit(name: &str, now: &str, wanted: &[u8], limit: usize) -> Result<Edit, String> {
    Ok(match name {
        "appendfsync" => Edit::Durability(word(wanted, &FSYNC)?),
        "entremet-admission" => Edit::Admission(word(wanted, &all())?),
        "entremet-control" => Edit::Control(word(wanted, &all())?),
        "entremet-scheduler" => Edit::Discipline(word(wanted, &all())?),
        "maxclients" => Edit::ConnectionsMax(connections(wanted, limit)?),
        "slowlog-log-slower-than" => Edit::SlowLogOverUs(number(wanted, -1, i64::MAX)?),
        "slowlog-max-len" => Edit::SlowLogLength(number(wanted, 0, SLOW_LOG_LENGTH_MAX)? as usize),
        "timeout" => Edit::IdleTimeoutMs(number(wanted, 0, i64::from(i32::MAX))? as u64 * 1_000),
        // The present value of what is fixed holds without doing anything.
        _ if wanted.eq_ignore_ascii_case(now.as_bytes()) => Edit::Nothing,
        _ => return Err("can't set immutable config".into()),
    })
}

fn connections(wanted: &[u8], limit: usize) -> Result<usize, String> {
    let wanted = number(wanted, 1, i64::from(u32::MAX))? as usize;
    if wanted > limit {
        return Err(format!(
            "The operating system is not able to handle the specified number of clients, try with {limit}"
        ));
    }
    Ok(wanted)
}

fn number(wanted: &[u8], min: i64, max: i64) -> Result<i64, String> {
    match parse_i64(wanted) {
        None => Err("argument couldn't be parsed into an integer".into()),
        Some(value) if (min..=max).contains(&value) => Ok(value),
        Some(_) => Err(format!(
            "argument must be between {min} and {max} inclusive"
        )),
    }
}

fn word<T: Copy>(wanted: &[u8], known: &[(&'static str, T)]) -> Result<T, String> {
    let found = known
        .iter()
        .find(|(word, _)| wanted.eq_ignore_ascii_case(word.as_bytes()));
    found.map(|(_, value)| *value).ok_or_else(|| {
        let words: Vec<_> = known.iter().map(|(word, _)| *word).collect();
        format!(
            "argument(s) must be one of the following: {}",
            words.join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_checked_with_the_words_of_redis() {
        for (name, wanted, result) in [
            ("timeout", "70", Ok(Edit::IdleTimeoutMs(70_000))),
            (
                "timeout",
                "x",
                Err("argument couldn't be parsed into an integer"),
            ),
            (
                "timeout",
                "-1",
                Err("argument must be between 0 and 2147483647 inclusive"),
            ),
            ("slowlog-log-slower-than", "-1", Ok(Edit::SlowLogOverUs(-1))),
            (
                "appendfsync",
                "ALWAYS",
                Ok(Edit::Durability(Durability::Always)),
            ),
            (
                "appendfsync",
                "x",
                Err("argument(s) must be one of the following: everysec, always, no"),
            ),
            (
                "entremet-scheduler",
                "fifo",
                Ok(Edit::Discipline(Discipline::Fifo)),
            ),
            ("maxclients", "1000", Ok(Edit::ConnectionsMax(1_000))),
            (
                "maxclients",
                "1001",
                Err("The operating system is not able to handle the specified number of clients, try with 1000"),
            ),
            ("save", "", Ok(Edit::Nothing)),
            ("save", "900 1", Err("can't set immutable config")),
        ] {
            assert_eq!(
                edit(name, "", wanted.as_bytes(), 1_000),
                result.map_err(str::to_string),
                "{name} {wanted}"
            );
        }
        assert_eq!(edit("appendonly", "yes", b"YES", 1_000), Ok(Edit::Nothing));
    }

    #[test]
    fn parameters_are_sorted_and_lower_case() {
        let names: Vec<&str> = PARAMETERS.iter().map(|(name, _)| *name).collect();
        assert!(names.windows(2).all(|pair| pair[0] < pair[1]));
        let found = |pattern: &[u8]| {
            names
                .iter()
                .filter(|name| glob_matches(pattern, name.as_bytes()))
                .count()
        };
        assert_eq!(
            (
                found(b"*"),
                found(b"slowlog-*"),
                found(b"max[cm]*"),
                found(b"nosuch")
            ),
            (names.len(), 2, 3, 0)
        );
    }
}
