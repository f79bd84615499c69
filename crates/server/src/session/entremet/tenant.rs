//! `ENTREMET TENANT LIST | GET name | SET name … | DEL name`.
//!
//! `SET` and `DEL` write the list of tenants to the disk before they are answered, and a plain password takes tens of
//! milliseconds to hash.

use policy::words::Words;

use super::promise::{NewPassword, Promise};
use super::Visit;
use crate::tenants::{Password, Tenant};

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

fn get(visit: &mut Visit<'_>, tenant: &Tenant) {
    let settings = tenant.settings();
    let share_percent = 100.0 * settings.weight / visit.shared.tenants.totals().weight;
    let allotments = visit.shared.allotments().of(&settings);
    let sync = settings.durability.word();
    let connections_max = visit.shared.house.connections_max(tenant.id);
    let changed = tenant.set_at_run_time();
    let mut reply = visit.reply();
    reply.map(20);
    for (field, value) in [
        ("name", tenant.name.as_str()),
        ("password", if tenant.open() { "none" } else { "set" }),
        ("sync", sync),
        ("admin", if settings.admin { "yes" } else { "no" }),
    ] {
        reply.bulk(field.as_bytes());
        reply.bulk(value.as_bytes());
    }
    for (field, value) in [
        ("weight", Some(settings.weight)),
        ("share-percent", Some(share_percent)),
        ("reserve-get", settings.reserve_get_per_s),
        ("reserve-put", settings.reserve_put_per_s),
        ("limit-requests", settings.limit.requests_per_s),
        ("limit-bytes", settings.limit.bytes_per_s),
        ("contract", settings.contract_per_s),
    ] {
        reply.bulk(field.as_bytes());
        match value {
            Some(value) => reply.double(value),
            None => reply.null(),
        }
    }
    for (field, value) in [
        ("connections", i64::from(tenant.connections())),
        ("max-connections", connections_max as i64),
        ("request-memory", tenant.budget.held() as i64),
        ("max-request-memory", tenant.budget.bytes_max() as i64),
        ("reserved-permits", i64::from(settings.reserved_permits)),
        ("cache", allotments.object_cache_bytes as i64),
        ("block-cache", allotments.block_cache_bytes as i64),
        ("write-buffers", allotments.write_buffer_bytes as i64),
    ] {
        reply.bulk(field.as_bytes());
        reply.int(value);
    }
    reply.bulk(b"set-at-run-time");
    reply.bulk(changed.join(" ").as_bytes());
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
        if let Some(password) = password {
            spec.password = password;
        }
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
