//! What the admin address shows of the device stage.

use engine::device::{Activity, Op};
use policy::dispatch::Observation;
use policy::profile::Request;
use policy::words::Words;
use telemetry::{
    Class, DeviceOperation, DeviceSnapshot, DeviceUse, PrincipalSnapshot, RequestCost, StageKind,
    StageSnapshot, TenantDevice, TenantStage,
};

use crate::device::Used;
use crate::shared::Shared;

/// The stage under this server, if there is one.
pub(super) fn server(shared: &Shared) -> Option<DeviceSnapshot> {
    let device = shared.options.disk.stage()?;
    let (state, booked) = (device.state(), device.booked());
    let operations = Op::ALL.into_iter().zip(device.done());
    Some(DeviceSnapshot {
        floor_vops_per_s: device.options().supply.sweep.floor_per_s(),
        promisable_vops_per_s: device.promisable_per_s(),
        capacity_vops_per_s: state.capacity_per_s,
        missing_vops_per_s: state.missing_per_s.unwrap_or_default(),
        used_vops_per_s: booked.used_per_s,
        reserved_vops_per_s: booked.wanted_per_s,
        overbooked_vops_per_s: booked.overbooked_per_s,
        reservation_scale: booked.scale,
        learn_prices: device.options().pricing == crate::device::Pricing::Profiles,
        permits: state.permits,
        in_flight: state.in_flight,
        waiting: state.queued,
        operations: operations
            .map(|(op, done)| DeviceOperation {
                operation: op.name().to_string(),
                ios: done.ios,
                vops: done.vops.get(),
                device_s: done.ns as f64 / 1e9,
            })
            .collect(),
    })
}

/// Why the device is not scheduled, or may be at wrong prices.
pub(super) fn doubt(shared: &Shared) -> Option<String> {
    shared.options.disk.doubt()
}

/// A tenant's part of it, and its place before it.
pub(super) fn tenant(shared: &Shared, name: &str) -> Option<(TenantDevice, TenantStage)> {
    let device = shared.options.disk.stage()?;
    let number = shared.options.disk.number(name);
    let promised = device.promised(number);
    let costs = Request::ALL.into_iter().enumerate().map(|(at, request)| {
        let cost = promised.provisioned.costs[at];
        RequestCost {
            request: request.name().to_string(),
            direct: cost.direct,
            flush: cost.indirect[0],
            compaction: cost.indirect[1],
            measured: promised.provisioned.measured[at],
        }
    });
    let [requests, later] = device.observe(number)?;
    let told = TenantDevice {
        reserved_vops_per_s: promised.provisioned.wanted.total(),
        allocated_vops_per_s: promised.provisioned.allocated.total(),
        used_vops_per_s: promised.used_per_s,
        costs: costs.collect(),
        used: uses(&device.used(number)?),
    };
    let stage = TenantStage {
        stage: StageKind::Device.name().into(),
        waiting: (requests.queued + later.queued) as u64,
        permits_in_use: requests.in_flight + later.in_flight,
        admitted: requests.granted + later.granted,
        refused: [requests, later]
            .map(|seen| seen.refused + seen.rejected)
            .iter()
            .sum(),
        busy_ns: requests.busy_ns + later.busy_ns,
        waited_ns: requests.waited_ns.saturating_add(later.waited_ns),
    };
    Some((told, stage))
}

fn uses(used: &Used) -> Vec<DeviceUse> {
    let classes = std::iter::once(None).chain(Class::ALL.map(Some));
    let cells = classes.flat_map(|class| Activity::ALL.map(|activity| (class, activity)));
    let uses = cells.map(|(class, activity)| {
        let sum = used.cell(class, activity);
        DeviceUse {
            class: class.map_or("none", Class::name).to_string(),
            activity: activity.name().to_string(),
            ios: sum.ios,
            vops: sum.vops.get(),
        }
    });
    uses.filter(|used| used.ios > 0).collect()
}

/// The stage as `/api/stages` shows it: foreground under the tenant's name, background beside it.
pub(super) fn stage(shared: &Shared) -> Option<StageSnapshot> {
    let device = shared.options.disk.stage()?;
    let state = device.state();
    let (mut principals, mut admitted) = (Vec::new(), 0);
    let (mut charged_ns, mut forgiven_ns, mut busy_ns) = (0, 0, 0);
    for tenant in shared.tenants.list() {
        let Some([requests, later]) = device.observe(shared.options.disk.number(&tenant.name))
        else {
            continue;
        };
        admitted += requests.granted + later.granted;
        charged_ns += requests.charged_ns + later.charged_ns;
        busy_ns += requests.busy_ns + later.busy_ns;
        forgiven_ns += requests.forgiven_ns + later.forgiven_ns;
        principals.push(principal(tenant.name.clone(), &requests));
        principals.push(principal(format!("{} (background)", tenant.name), &later));
    }
    principals.retain(|principal| principal.waiting > 0 || principal.permits_in_use > 0);
    Some(StageSnapshot {
        stage: StageKind::Device.name().into(),
        core: 0,
        policy: device.options().discipline.word().to_string(),
        at_ns: shared.options.clock.now(),
        permits: state.permits,
        // Nothing of the device's permits is reserved.
        permits_missing: 0,
        permits_in_use: state.in_flight,
        busy_ns,
        admitted,
        charged_ns,
        forgiven_ns,
        principals,
    })
}

fn principal(name: String, seen: &Observation<1>) -> PrincipalSnapshot {
    PrincipalSnapshot {
        name,
        waiting: seen.queued as u64,
        permits_in_use: seen.in_flight,
        reserved_permits: 0,
        admitted: seen.granted,
        explanation: None,
    }
}
