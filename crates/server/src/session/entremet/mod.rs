//! `ENTREMET …`: tenants, what they were promised, where their time goes. Only operators change
//! anything or see another tenant; to everybody else there is one tenant, their own.

mod admission;
mod edits;
mod explain;
mod promise;
mod slo;
mod slowest;
mod stage;
mod tenant;
mod workload;

use std::sync::Arc;

use commands::EntremetCommand;
use resp::Reply;
use settings::tenant::Shown;

use super::Visit;
use crate::tenants::Tenant;

pub use explain::explained;
pub use slo::kept_at_all_fronts;
pub use slowest::line as slow_line;

/// Runs an `ENTREMET` subcommand.
pub fn run(command: EntremetCommand, visit: &mut Visit<'_>) {
    match command {
        EntremetCommand::Tenant => tenant::run(visit),
        EntremetCommand::Explain => explain::explain(visit),
        EntremetCommand::Slo => slo::run(visit),
        EntremetCommand::Slowest => slowest::run(visit),
        EntremetCommand::Stage => stage::run(visit),
        EntremetCommand::Workload => workload::run(visit),
    }
}

/// The tenant that word `at` names, or the asking one where there is no such word. None: the error
/// is written, and it is the same whether there is no such tenant or it is somebody else's to see.
fn named(visit: &mut Visit<'_>, at: usize) -> Option<Arc<Tenant>> {
    if visit.args.len() > at + 1 {
        visit.syntax_error();
        return None;
    }
    named_of(visit, at)
}

/// The same, where other words follow.
fn named_of(visit: &mut Visit<'_>, at: usize) -> Option<Arc<Tenant>> {
    let own = Arc::clone(visit.tenant);
    let Some(name) = visit.args.find(at) else {
        return Some(own);
    };
    if name == own.name.as_bytes() {
        return Some(own);
    }
    let name = String::from_utf8_lossy(name);
    let found = if visit.operator() {
        visit.shared.tenants.get(&name)
    } else {
        None
    };
    if found.is_none() {
        visit.error(&no_such(&name));
    }
    found
}

fn no_such(name: &str) -> String {
    format!("ERR no such tenant '{name}'")
}

/// Names and what they stand for.
fn map(reply: &mut Reply<'_>, facts: Vec<(String, Shown)>) {
    reply.map(facts.len());
    for (name, shown) in facts {
        reply.bulk(name.as_bytes());
        match shown {
            Shown::Nothing => reply.null(),
            Shown::Flag(yes) => reply.bulk(if yes { b"yes" } else { b"no" }),
            Shown::Number(number) => reply.double(number),
            Shown::Integer(number) => reply.int(i64::try_from(number).unwrap_or(i64::MAX)),
            Shown::Text(text) => reply.bulk(text.as_bytes()),
        }
    }
}

/// Lines of text for a person, each an item of its own so that every client shows them as lines.
fn lines(reply: &mut Reply<'_>, lines: &[String]) {
    reply.array(lines.len());
    lines.iter().for_each(|line| reply.bulk(line.as_bytes()));
}

/// A time as a person reads it.
fn time(ns: f64) -> String {
    match ns {
        ns if ns < 1e3 => format!("{ns:.0} ns"),
        ns if ns < 1e6 => format!("{:.1} µs", ns / 1e3),
        ns if ns < 1e9 => format!("{:.2} ms", ns / 1e6),
        ns => format!("{:.2} s", ns / 1e9),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn times_have_the_unit_that_fits() {
        assert_eq!(
            [0.0, 1_500.0, 2_340_000.0, 5e9].map(super::time),
            ["0 ns", "1.5 µs", "2.34 ms", "5.00 s"]
        );
    }
}
