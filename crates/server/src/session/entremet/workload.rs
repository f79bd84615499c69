//! `ENTREMET WORKLOAD LIST tenant | SET tenant name … | DEL tenant name`: kinds of a tenant's
//! connections that are told apart.

use settings::tenant::{Workload, WORKLOAD};

use super::edits::Edits;
use super::Visit;
use crate::session::NOT_OPERATOR;
use crate::tenants::RegistryError;

const SYNTAX: &str = "ERR syntax: ENTREMET WORKLOAD LIST [tenant] | SET tenant name [option value ...] | DEL tenant name";

/// Runs it.
pub fn run(visit: &mut Visit<'_>) {
    let words = visit.args.len();
    if visit.is(2, "LIST") && words <= 4 {
        let Some(tenant) = super::named(visit, 3) else {
            return;
        };
        let workloads = tenant.settings().workloads;
        let text: Vec<String> = workloads.iter().map(ToString::to_string).collect();
        return super::lines(&mut visit.reply(), &text);
    }
    let ended = match words {
        5.. if visit.is(2, "SET") => set(visit),
        5 if visit.is(2, "DEL") => delete(visit),
        _ => Err(SYNTAX.into()),
    };
    match ended {
        Ok(()) => visit.reply().ok(),
        Err(text) => visit.error(&text),
    }
}

fn set(visit: &Visit<'_>) -> Result<(), String> {
    if !visit.operator() {
        return Err(NOT_OPERATOR.into());
    }
    let name = visit.text(4);
    let fields = WORKLOAD.iter().filter(|field| field.option() != "NAME");
    let edits = Edits::read(
        visit.args.from(5),
        visit.args.len() - 5,
        fields,
        "ENTREMET WORKLOAD SET",
    )?;
    change(visit, |workloads| {
        let at = workloads.iter().position(|one| one.name == name);
        let at = at.unwrap_or_else(|| {
            workloads.push(Workload {
                name: name.to_string(),
                ..Workload::default()
            });
            workloads.len() - 1
        });
        edits.apply(&mut workloads[at]);
        Ok(())
    })
}

fn delete(visit: &Visit<'_>) -> Result<(), String> {
    if !visit.operator() {
        return Err(NOT_OPERATOR.into());
    }
    let name = visit.text(4);
    change(visit, |workloads| {
        let before = workloads.len();
        workloads.retain(|one| one.name != name);
        match workloads.len() < before {
            true => Ok(()),
            false => Err(format!("no such workload '{name}'")),
        }
    })
}

/// Changes the workloads of the tenant that word 3 names, which must be there.
fn change(
    visit: &Visit<'_>,
    edit: impl FnOnce(&mut Vec<Workload>) -> Result<(), String>,
) -> Result<(), String> {
    let name = visit.text(3);
    if visit.shared.tenants.get(&name).is_none() {
        return Err(super::no_such(&name));
    }
    let changed = visit.shared.change_tenant(&name, |spec| {
        edit(&mut spec.settings.workloads).map_err(RegistryError::Infeasible)
    });
    changed.map_err(|error| format!("ERR {error}"))
}
