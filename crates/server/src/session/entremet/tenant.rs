//! `ENTREMET TENANT LIST | GET name | SET name … | DEL name`.
//!
//! `SET` and `DEL` write the list of tenants to the disk before they are answered, and a plain
//! password takes tens of milliseconds to hash.

use settings::tenant::{Shown, SETTINGS};

use super::promise::{NewPassword, Promise};
use super::Visit;
use crate::tenants::{Password, RegistryError, Tenant};

/// Runs it.
pub fn run(visit: &mut Visit<'_>) {
    let words = visit.args.len();
    if visit.is(2, "LIST") && words == 3 {
        list(visit);
    } else if visit.is(2, "GET") && words == 4 {
        if let Some(tenant) = super::named(visit, 3) {
            get(visit, &tenant);
        }
    } else if visit.is(2, "SET") && words >= 4 {
        let changed = set(visit);
        reply(visit, changed);
    } else if visit.is(2, "DEL") && words == 4 {
        let removed = delete(visit);
        reply(visit, removed);
    } else {
        visit.error(
            "ERR syntax: ENTREMET TENANT LIST | GET name | SET name [option value ...] | DEL name",
        );
    }
}

fn reply(visit: &mut Visit<'_>, ended: Result<(), String>) {
    match ended {
        Ok(()) => visit.reply().ok(),
        Err(text) => visit.error(&text),
    }
}

fn list(visit: &mut Visit<'_>) {
    let names: Vec<String> = if visit.operator() {
        visit
            .shared
            .tenants
            .list()
            .iter()
            .map(|tenant| tenant.name.clone())
            .collect()
    } else {
        vec![visit.tenant.name.clone()]
    };
    super::lines(&mut visit.reply(), &names);
}

/// What holds of a tenant; its settings follow where this has nothing of their name.
fn facts(visit: &Visit<'_>, tenant: &Tenant) -> Vec<(&'static str, Shown)> {
    let settings = tenant.settings();
    let share_percent = 100.0 * settings.weight / visit.shared.tenants.totals().weight;
    let allotments = visit.shared.allotments().of(&settings);
    let connections_max = visit.shared.house.connections_max(tenant.id) as u64;
    let password = if tenant.open() { "none" } else { "set" };
    vec![
        ("name", Shown::Text(tenant.name.clone())),
        ("password", Shown::Text(password.into())),
        ("share-percent", Shown::Number(share_percent)),
        ("connections", Shown::Integer(tenant.connections().into())),
        ("max-connections", Shown::Integer(connections_max)),
        ("request-memory", Shown::Integer(tenant.budget.held())),
        (
            "max-request-memory",
            Shown::Integer(tenant.budget.bytes_max()),
        ),
        ("cache", Shown::Integer(allotments.object_cache_bytes)),
        ("block-cache", Shown::Integer(allotments.block_cache_bytes)),
        (
            "write-buffers",
            Shown::Integer(allotments.write_buffer_bytes),
        ),
        (
            "set-at-run-time",
            Shown::Text(tenant.set_at_run_time().join(" ")),
        ),
    ]
}

fn get(visit: &mut Visit<'_>, tenant: &Tenant) {
    let facts = facts(visit, tenant);
    let settings = tenant.settings();
    let set = SETTINGS.iter().map(|setting| {
        let name = setting.option().to_ascii_lowercase();
        (name, setting.shown(&settings))
    });
    let set: Vec<_> = set
        .filter(|(name, _)| !facts.iter().any(|(fact, _)| fact == name))
        .collect();
    let facts = facts
        .into_iter()
        .map(|(name, shown)| (name.to_string(), shown));
    super::map(&mut visit.reply(), facts.chain(set).collect());
}

fn set(visit: &Visit<'_>) -> Result<(), String> {
    if !visit.operator() {
        return Err(super::super::NOT_OPERATOR.into());
    }
    let mut promise = Promise::read(visit.args.from(4))?;
    let password = match promise.password.take() {
        None => None,
        Some(NewPassword::Known(password)) => Some(password),
        Some(NewPassword::Plain(plain)) => {
            Some(Password::hash(&plain).map_err(|why| format!("ERR the password {why}"))?)
        }
    };
    let changed = visit.shared.change_tenant(&visit.text(3), |spec| {
        promise.apply(&mut spec.settings);
        if let Some(idle) = promise.idle(&spec.settings) {
            return Err(RegistryError::Infeasible(idle));
        }
        if let Some(password) = password {
            spec.password = password;
        }
        Ok(())
    });
    changed.map_err(|error| format!("ERR {error}"))
}

fn delete(visit: &Visit<'_>) -> Result<(), String> {
    if !visit.operator() {
        return Err(super::super::NOT_OPERATOR.into());
    }
    let name = visit.text(3);
    if name == visit.tenant.name {
        return Err("ERR a tenant cannot remove itself: let another operator do it".into());
    }
    let removed = visit.shared.remove_tenant(&name);
    removed.map_err(|error| format!("ERR {error}"))
}
