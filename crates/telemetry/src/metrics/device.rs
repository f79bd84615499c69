//! Metrics of the device stage, where there is one.

use super::catalogue::{metric, Metric};
use super::Scrape;
use crate::device::{DeviceOperation, DeviceSnapshot, DeviceUse, TenantDevice};
use crate::exposition::Kind::{Counter, Gauge};
use crate::exposition::Page;

/// One sample each.
#[rustfmt::skip]
pub(super) const DEVICE: &[Metric<DeviceSnapshot>] = &[
    metric("entremet_device_floor_vops_per_second", Gauge, "VOP/s", "What the device was calibrated to do under the worst of mixes.", |d| d.floor_vops_per_s),
    metric("entremet_device_promisable_vops_per_second", Gauge, "VOP/s", "What may be promised to requests like those of the last seconds, in their proportions: by the calibration, and by the processor time that they take.", |d| d.promisable_vops_per_s),
    metric("entremet_device_capacity_vops_per_second", Gauge, "VOP/s", "What it does under the present mix, followed while somebody waits.", |d| d.capacity_vops_per_s),
    metric("entremet_device_missing_vops_per_second", Gauge, "VOP/s", "By how much the capacity is below the floor; what was promised cannot all be kept then.", |d| d.missing_vops_per_s),
    metric("entremet_device_used_vops_per_second", Gauge, "VOP/s", "What all tenants used in the last second.", |d| d.used_vops_per_s),
    metric("entremet_device_reserved_vops_per_second", Gauge, "VOP/s", "What all reservations need, at the present costs of requests.", |d| d.reserved_vops_per_s),
    metric("entremet_device_overbooked_vops_per_second", Gauge, "VOP/s", "By how much that exceeds the capacity, once it has for 3 s; all reservations are then scaled down evenly.", |d| d.overbooked_vops_per_s),
    metric("entremet_device_reservation_scale", Gauge, "0 to 1", "What each reservation gets of what it needs.", |d| d.reservation_scale),
    metric("entremet_device_permits", Gauge, "I/Os", "I/Os that may be outstanding at the device.", |d| f64::from(d.permits)),
    metric("entremet_device_in_flight", Gauge, "I/Os", "I/Os outstanding at the device.", |d| f64::from(d.in_flight)),
    metric("entremet_device_waiting", Gauge, "I/Os", "I/Os that wait for the device.", |d| d.waiting as f64),
];

/// Label `operation`.
#[rustfmt::skip]
pub(super) const OPERATION: &[Metric<DeviceOperation>] = &[
    metric("entremet_device_ios_total", Counter, "I/Os", "I/Os done.", |o| o.ios as f64),
    metric("entremet_device_vops_total", Counter, "VOP", "What they cost, those of nobody's database included.", |o| o.vops),
    metric("entremet_device_io_seconds_total", Counter, "seconds", "Time of I/Os at the device, from their turn to their end; over entremet_device_ios_total the mean latency.", |o| o.device_s),
];

/// Label `tenant`.
#[rustfmt::skip]
pub(super) const TENANT_DEVICE: &[Metric<TenantDevice>] = &[
    metric("entremet_tenant_device_reserved_vops_per_second", Gauge, "VOP/s", "What its reservations need of the device.", |t| t.reserved_vops_per_s),
    metric("entremet_tenant_device_allocated_vops_per_second", Gauge, "VOP/s", "What it gets of that, before anybody's share.", |t| t.allocated_vops_per_s),
    metric("entremet_tenant_device_used_vops_per_second", Gauge, "VOP/s", "What it used in the last second.", |t| t.used_vops_per_s),
];

/// Labels `tenant`, `class` and `activity`.
#[rustfmt::skip]
pub(super) const USE: &[Metric<DeviceUse>] = &[
    metric("entremet_tenant_device_ios_total", Counter, "I/Os", "I/Os of its databases.", |u| u.ios as f64),
    metric("entremet_tenant_device_vops_total", Counter, "VOP", "What they cost.", |u| u.vops),
];

/// Labels `tenant`, `request` and `part`.
pub(super) const COST: (&str, &str) = (
    "entremet_tenant_request_cost_vops",
    "What a 1 KiB-normalised request costs the device: its own I/O, and its part of flushes and compactions.",
);

/// Writes them; nothing where there is no device stage.
pub(super) fn write(page: &mut Page, scrape: &Scrape) {
    let Some(device) = &scrape.server.device else {
        return;
    };
    for metric in DEVICE {
        page.family(metric.name, metric.kind, metric.help);
        page.sample(metric.name, &[], (metric.value)(device));
    }
    for metric in OPERATION {
        page.family(metric.name, metric.kind, metric.help);
        for operation in &device.operations {
            let labels = [("operation", operation.operation.as_str())];
            page.sample(metric.name, &labels, (metric.value)(operation));
        }
    }
    for metric in TENANT_DEVICE {
        page.family(metric.name, metric.kind, metric.help);
        for (tenant, device) in tenants(scrape) {
            page.sample(metric.name, &[("tenant", tenant)], (metric.value)(device));
        }
    }
    for metric in USE {
        page.family(metric.name, metric.kind, metric.help);
        for (tenant, used) in tenants(scrape).flat_map(|(t, d)| d.used.iter().map(move |u| (t, u)))
        {
            let labels = [
                ("tenant", tenant),
                ("class", used.class.as_str()),
                ("activity", used.activity.as_str()),
            ];
            page.sample(metric.name, &labels, (metric.value)(used));
        }
    }
    costs(page, scrape);
}

fn costs(page: &mut Page, scrape: &Scrape) {
    page.family(COST.0, Gauge, COST.1);
    for (tenant, cost) in tenants(scrape).flat_map(|(t, d)| d.costs.iter().map(move |c| (t, c))) {
        for (part, value) in [
            ("direct", cost.direct),
            ("flush", cost.flush),
            ("compaction", cost.compaction),
        ] {
            let labels = [
                ("tenant", tenant),
                ("request", cost.request.as_str()),
                ("part", part),
            ];
            page.sample(COST.0, &labels, value);
        }
    }
}

fn tenants(scrape: &Scrape) -> impl Iterator<Item = (&str, &TenantDevice)> {
    let all = scrape.tenants.iter();
    all.filter_map(|(name, tenant)| Some((name.as_str(), tenant.gauges.device.as_ref()?)))
}
