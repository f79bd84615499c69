//! `ENTREMET STAGE [tenant]`: queues and permits, as the cores last wrote them down.

use std::collections::BTreeMap;

use policy::PrincipalId;

use super::Visit;
use crate::core::{Entry, Seen};
use crate::resp::Reply;

struct Row {
    core: usize,
    stage: &'static str,
    tenant: String,
    seen: Seen,
}

/// A row for each core and stage at which the tenant has ever asked for something: a tenant's own, one that an
/// operator names, or all for an operator who names none.
pub fn run(visit: &mut Visit<'_>) {
    let mut names: BTreeMap<PrincipalId, String> = BTreeMap::new();
    if visit.operator() && visit.args.len() == 2 {
        names.extend(
            visit
                .shared
                .tenants
                .list()
                .iter()
                .map(|tenant| (tenant.id, tenant.name.clone())),
        );
    } else {
        let Some(tenant) = super::named(visit, 2) else {
            return;
        };
        names.insert(tenant.id, tenant.name.clone());
    }
    let mut rows = Vec::new();
    for (core, entries) in visit.shared.board.cores().enumerate() {
        for Entry {
            principal,
            request,
            handler,
        } in entries.iter()
        {
            let Some(tenant) = names.get(principal) else {
                continue;
            };
            for (stage, seen) in [("request", request), ("handler", handler)] {
                if seen.admitted + seen.waiting > 0 {
                    rows.push(Row {
                        core,
                        stage,
                        tenant: tenant.clone(),
                        seen: *seen,
                    });
                }
            }
        }
    }
    let mut reply = visit.reply();
    reply.array(rows.len());
    rows.iter().for_each(|row| row.write(&mut reply));
}

impl Row {
    fn write(&self, reply: &mut Reply<'_>) {
        let Seen {
            waiting,
            permits_in_use,
            admitted,
            refused,
            waited_ns,
            occupied_ns,
            debt_ns,
            best_effort,
        } = self.seen;
        reply.map(11);
        reply.bulk(b"stage");
        reply.bulk(self.stage.as_bytes());
        reply.bulk(b"tenant");
        reply.bulk(self.tenant.as_bytes());
        for (field, value) in [
            ("core", self.core as u64),
            ("waiting", waiting),
            ("permits-in-use", u64::from(permits_in_use)),
            ("admitted", admitted),
            ("refused", refused),
            (
                "waited-mean-us",
                waited_ns.checked_div(admitted).unwrap_or(0) / 1_000,
            ),
            ("occupied-ms", occupied_ns / 1_000_000),
            ("debt-us", debt_ns / 1_000),
            ("best-effort", u64::from(best_effort)),
        ] {
            reply.bulk(field.as_bytes());
            reply.int(value as i64);
        }
    }
}
