//! From a text to a [`Scenario`]: the one place that knows which key fills which field.

mod behaviour;
mod pace;

use std::collections::BTreeSet;
use std::time::Duration;

use settings::tenant::Terms;
use settings::units::Time;
use settings::{Foreign, Reader, Report, Section};
use toml::de::DeTable;

use super::schema::LANGUAGE;
use super::{Load, Loaded, Phase, Scenario, Tenant};
use crate::error::WorkloadError;

/// Longest name of several tenants: a number of five digits and a hyphen come behind it.
const GROUP_LENGTH_MAX: usize = 58;

/// Reads a text that `report` is about.
pub(super) fn read(text: &str, report: Report) -> Result<Loaded, WorkloadError> {
    let (scenario, reader) = read_all(text, report);
    let report = reader.report.into_inner();
    match scenario {
        Some(scenario) if !report.failed() => Ok(Loaded { scenario, report }),
        _ => Err(WorkloadError::Scenario(Box::new(report))),
    }
}

/// As [`read`], with the reader for a test to look into.
pub(super) fn read_all(text: &str, mut report: Report) -> (Option<Scenario>, Reader) {
    let (document, errors) = DeTable::parse_recoverable(text);
    for error in &errors {
        report.error(error.span(), "", format!("not TOML: {}", error.message()));
    }
    let reader = Reader::new(&LANGUAGE, report, !errors.is_empty());
    // What `[server]` says in another language is handed on as it was written.
    let written: toml::Table = text.parse().unwrap_or_default();
    let scenario = scenario(&reader.root(document.get_ref()), &written);
    (scenario, reader)
}

fn scenario(root: &Section, written: &toml::Table) -> Option<Scenario> {
    let titled = |tenant: &Section, place: usize| match tenant.raw_text("name") {
        Some(name) => format!("tenant {name:?}"),
        None => format!("tenant number {}", place + 1),
    };
    let tenants = root.tables("tenant", titled);
    let groups: Vec<Option<Vec<Tenant>>> = tenants.iter().map(group).collect();
    let _: Option<Foreign> = root.get("server");
    let server = written.get("server").and_then(toml::Value::as_table);
    let scenario = Scenario {
        name: name(root, "name", 64).unwrap_or_default(),
        about: root.get_or_default("about"),
        seed: root.get_or_default("seed"),
        duration: time(root, "duration").unwrap_or_default(),
        warm_up: time(root, "warm_up").unwrap_or_default(),
        drain: time(root, "drain").unwrap_or_default(),
        threads: root.get_or_default::<u32>("threads") as usize,
        spin: root.get_or_default("spin"),
        server: server.cloned().unwrap_or_default(),
        tenants: groups.into_iter().collect::<Option<Vec<_>>>()?.concat(),
    };
    if scenario.tenants.is_empty() && root.gives("tenant") {
        root.error(
            "tenant",
            "is empty",
            "write a [[tenant]] with a [[tenant.load]]",
        );
    } else if !root.gives("tenant") {
        let _: Option<Foreign> = root.get("tenant");
    }
    names(root, &scenario);
    threads(root, &scenario);
    ends(root, &scenario);
    Some(scenario)
}

/// Tenants alike.
fn group(section: &Section) -> Option<Vec<Tenant>> {
    let group = name(section, "name", GROUP_LENGTH_MAX);
    let count: u32 = section.get_or_default("count");
    let tag: String = section.get_or_default("tag");
    if tag.len() > 64 || !tag.bytes().all(|byte| byte.is_ascii_graphic()) {
        let advice = "use at most 64 printable characters without a space";
        section.error("tag", &format!("{tag:?} is no tag"), advice);
    }
    let password: Option<String> = section.get("password");
    if password
        .as_ref()
        .is_some_and(|p| !(1..=512).contains(&p.len()))
    {
        section.error(
            "password",
            "is too short or too long",
            "use 1 to 512 characters",
        );
    }
    let terms = Terms::read(section);
    let titled = |load: &Section, place: usize| match load.raw_text("name") {
        Some(name) => format!("load {name:?}"),
        None => format!("load {}", place + 1),
    };
    let sections = section.tables("load", titled);
    if sections.is_empty() {
        section.error(
            "load",
            "is missing",
            "write a [[tenant.load]] below the tenant",
        );
    }
    let loads: Vec<Option<Load>> = sections
        .iter()
        .enumerate()
        .map(|(i, s)| load(s, i))
        .collect();
    let loads: Vec<Load> = loads.into_iter().collect::<Option<_>>()?;
    let mut known = BTreeSet::new();
    for (load, section) in loads.iter().zip(&sections) {
        if !known.insert(load.name.clone()) {
            section.error(
                "name",
                "is that of another load of the tenant",
                "choose another one",
            );
        }
    }
    let group = group?;
    let one = |name: String| Tenant {
        name,
        group: group.clone(),
        password: password.clone(),
        tag: tag.clone(),
        terms: terms.clone(),
        loads: loads.clone(),
    };
    Some(match count {
        1 => vec![one(group.clone())],
        n => (1..=n).map(|i| one(format!("{group}-{i}"))).collect(),
    })
}

fn load(section: &Section, place: usize) -> Option<Load> {
    let name = match section.gives("name") {
        true => name(section, "name", 64),
        false => {
            let _: Option<String> = section.get("name");
            Some((place + 1).to_string())
        }
    };
    let (from, until) = (time(section, "from"), time(section, "until"));
    let thread: Option<u32> = section.get("thread");
    let thread = thread.map(|thread| thread as usize);
    let requests: Option<u64> = section.get("requests");
    if until.is_some_and(|until| until <= from.unwrap_or_default()) {
        section.error(
            "until",
            "is not after `from`",
            "let it join before it leaves",
        );
    }
    let base = behaviour::with_way(section.clone());
    let first = behaviour::read(&base);
    let mut phases = Vec::new();
    let mut last = None;
    for own in section.tables("phase", |_, place| format!("phase {}", place + 1)) {
        for name in ["name", "from", "until", "thread", "requests", "phase"] {
            if own.gives(name) {
                let advice = "set it in [[tenant.load]], or write another load";
                own.error(name, "cannot change in a phase", advice);
            }
        }
        let at = time(&own, "at");
        if at.is_some() && at <= last {
            own.error(
                "at",
                "is not after the phase before",
                "write phases in the order of time",
            );
        }
        last = at.or(last);
        let behaviour = behaviour::read(&behaviour::with_way(own).over(&base));
        phases.push(Phase {
            at: at.unwrap_or_default(),
            behaviour: behaviour?,
        });
    }
    Some(Load {
        name: name?,
        from,
        until,
        thread,
        requests,
        first: first?,
        phases,
    })
}

/// Names must differ once `count` is spelt out.
fn names(root: &Section, scenario: &Scenario) {
    let mut known = BTreeSet::new();
    for tenant in &scenario.tenants {
        if !known.insert(&tenant.name) {
            let what = format!("two tenants are named {:?}", tenant.name);
            root.error(
                "tenant",
                &what,
                "choose other names (count makes NAME-1, NAME-2, …)",
            );
        }
    }
}

/// Loads are played on threads that there are.
fn threads(root: &Section, scenario: &Scenario) {
    let loads = scenario.tenants.iter().flat_map(|tenant| &tenant.loads);
    if let Some(thread) = loads.filter_map(|load| load.thread).max() {
        if thread >= scenario.threads {
            let what = format!("is {}, and a load is for thread {thread}", scenario.threads);
            let advice = format!("set it to {}, they are counted from 0", thread + 1);
            root.error("threads", &what, &advice);
        }
    }
}

/// What begins after the end never happens.
fn ends(root: &Section, scenario: &Scenario) {
    let mut groups = BTreeSet::new();
    for tenant in &scenario.tenants {
        if !groups.insert(&tenant.group) {
            continue;
        }
        for load in &tenant.loads {
            let starts = load.from.into_iter().map(|from| ("joins", from));
            let phases = load.phases.iter().map(|phase| ("has a phase", phase.at));
            for (what, at) in starts.chain(phases) {
                if at >= scenario.duration {
                    let (name, load) = (&tenant.group, &load.name);
                    let what =
                        format!("ends before load {load:?} of tenant {name:?} {what} at {at:?}");
                    root.warn("duration", &what, "make the run longer, or leave that out");
                }
            }
        }
    }
}

/// A time as the standard library's type.
fn time(section: &Section, name: &str) -> Option<Duration> {
    section.get::<Time>(name).map(Time::duration)
}

/// A name that is safe in file names, metric labels and command lines.
fn name(section: &Section, key: &str, length_max: usize) -> Option<String> {
    let name: String = section.get(key)?;
    let good = (1..=length_max).contains(&name.len())
        && !name.starts_with('.')
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-'));
    if !good {
        let what = format!("{name:?} is not a name that can be used");
        let advice = format!("use 1 to {length_max} of A-Z a-z 0-9 _ . -, the first not a point");
        section.error(key, &what, &advice);
    }
    Some(name)
}
