//! `ENTREMET STAGE [tenant]`: queues and permits, as the cores last wrote them down, and the
//! device's as it is.

use std::collections::BTreeMap;

use engine::device::Activity;
use policy::PrincipalId;
use resp::Reply;
use telemetry::StageKind;

use super::Visit;
use crate::device::Device;
use crate::shared::Seen;
use crate::tenants::Tenant;

struct Row {
    core: usize,
    stage: String,
    tenant: String,
    seen: Seen,
    /// What the device stage adds: its numbers by name.
    device: Vec<(String, u64)>,
}

/// A row for each core and stage at which the tenant has ever asked for something: a tenant's own,
/// one that an operator names, or all for an operator who names none.
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
    for (core, posted) in visit.shared.board.cores().enumerate() {
        for posted in posted.iter() {
            let named = |(id, seen): &(PrincipalId, Seen)| Some((names.get(id)?.clone(), *seen));
            rows.extend(
                posted
                    .seen
                    .iter()
                    .filter_map(named)
                    .map(|(tenant, seen)| Row {
                        core,
                        stage: posted.kind.name().to_string(),
                        tenant,
                        seen,
                        device: Vec::new(),
                    }),
            );
        }
    }
    let disk = &visit.shared.options.disk;
    if let Some(device) = disk.stage() {
        let tenants = &visit.shared.tenants;
        let owed = |name: &str| {
            tenants
                .get(name)
                .map(|tenant| owed(&tenant))
                .unwrap_or_default()
        };
        let at = |name: &String| at_the_device(device, name, disk.number(name), owed(name));
        rows.extend((names.values()).flat_map(at));
    }
    let mut reply = visit.reply();
    reply.array(rows.len());
    rows.iter().for_each(|row| row.write(&mut reply));
}

/// How near a tenant's database is to stalling its writes, and how long they have paused for that.
fn owed(tenant: &Tenant) -> Vec<(String, u64)> {
    let stats = tenant.keyspace().map(|keyspace| keyspace.stats());
    let stats = stats.unwrap_or_default();
    vec![
        (
            "write-pressure-percent".to_string(),
            (100.0 * stats.write_pressure).round() as u64,
        ),
        (
            "write-paused-ms".to_string(),
            stats.write_paused_ns / 1_000_000,
        ),
    ]
}

/// A tenant's requests there, and what is flushed and compacted for it, with what is still to be.
fn at_the_device(device: &Device, name: &str, number: u32, owed: Vec<(String, u64)>) -> Vec<Row> {
    let (Some(observed), Some(used)) = (device.observe(number), device.used(number)) else {
        return Vec::new();
    };
    let promised = device.promised(number);
    let allocated = promised.provisioned.allocated;
    let whole = |vops_per_s: f64| vops_per_s.round() as u64;
    let mut of_requests = vec![
        (
            "vops-allocated-per-s".to_string(),
            whole(allocated.foreground),
        ),
        ("vops-used-per-s".to_string(), whole(promised.used_per_s)),
    ];
    for activity in Activity::ALL {
        let vops = used.activity(activity).vops.get();
        if vops > 0.0 {
            of_requests.push((format!("vops-{}", activity.name()), whole(vops)));
        }
    }
    let mut later = vec![(
        "vops-allocated-per-s".to_string(),
        whole(allocated.background),
    )];
    later.extend(owed);
    let kind = StageKind::Device.name();
    let parts = [
        (kind.to_string(), of_requests),
        (format!("{kind}-background"), later),
    ];
    let rows = parts.into_iter().zip(observed);
    let rows = rows.map(|((stage, device), seen)| Row {
        core: 0,
        stage,
        tenant: name.to_string(),
        seen: Seen::from(seen),
        device,
    });
    rows.filter(|row| row.seen.admitted + row.seen.waiting > 0)
        .collect()
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
            busy_ns,
            debt_ns,
            charged_ns,
            forgiven_ns,
            best_effort,
        } = self.seen;
        reply.map(14 + self.device.len());
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
            ("busy-ms", busy_ns / 1_000_000),
            ("debt-us", debt_ns / 1_000),
            ("charged-us", charged_ns / 1_000),
            ("forgiven-us", forgiven_ns / 1_000),
            ("best-effort", u64::from(best_effort)),
        ] {
            reply.bulk(field.as_bytes());
            reply.int(value as i64);
        }
        for (field, value) in &self.device {
            reply.bulk(field.as_bytes());
            reply.int(*value as i64);
        }
    }
}
