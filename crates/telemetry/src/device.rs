//! What is told of the device stage: what the device can do, what was promised of it, who used it
//! for what. VOPs are virtual IO operations (docs/mechanisms/device.md).

use serde::{Deserialize, Serialize};

/// The device stage of a server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DeviceSnapshot {
    /// VOPs a second that it does under the worst of mixes.
    pub floor_vops_per_s: f64,
    /// VOPs a second that may be promised to requests like those of the last seconds, in their
    /// proportions.
    pub promisable_vops_per_s: f64,
    /// VOPs a second that it does under the present mix, as far as is known.
    pub capacity_vops_per_s: f64,
    /// By how much that is less than the floor.
    pub missing_vops_per_s: f64,
    /// VOPs a second that all tenants used in the last second.
    pub used_vops_per_s: f64,
    /// VOPs a second that all reservations need.
    pub reserved_vops_per_s: f64,
    /// By how much they exceed what it does, once that has lasted.
    pub overbooked_vops_per_s: f64,
    /// What each reservation gets of what it needs, 0 to 1.
    pub reservation_scale: f64,
    /// Whether requests are priced by their profiles.
    pub learn_prices: bool,
    /// I/Os that may be outstanding.
    pub permits: u32,
    /// I/Os outstanding.
    pub in_flight: u32,
    /// I/Os that wait.
    pub waiting: u64,
    /// By operation, since the start.
    pub operations: Vec<DeviceOperation>,
}

/// I/Os of one operation since the start, all tenants together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DeviceOperation {
    /// `read`, `write`, `sync` or `delete`.
    pub operation: String,
    /// I/Os done.
    pub ios: u64,
    /// What they cost.
    pub vops: f64,
    /// From their turns to their ends, summed, seconds.
    pub device_s: f64,
}

/// One tenant at the device stage.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TenantDevice {
    /// VOPs a second that its reservations need.
    pub reserved_vops_per_s: f64,
    /// What it gets of that, before anybody's share.
    pub allocated_vops_per_s: f64,
    /// What it used in the last second.
    pub used_vops_per_s: f64,
    /// What a normalised request costs, of those that can be reserved.
    pub costs: Vec<RequestCost>,
    /// By class and activity since the start; what was never used is left out.
    pub used: Vec<DeviceUse>,
}

/// What a 1 KiB-normalised request costs the device, in VOP.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RequestCost {
    /// `get` or `put`.
    pub request: String,
    /// Its own I/O.
    pub direct: f64,
    /// Its part of flushes.
    pub flush: f64,
    /// Its part of compactions.
    pub compaction: f64,
    /// Whether that was measured; assumed until the first was seen, and where profiles are switched
    /// off.
    pub measured: bool,
}

/// What a tenant used of the device for one class of requests and one activity, since the start.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DeviceUse {
    /// The class of the requests that waited for it; `none` where no request did.
    pub class: String,
    /// What the storage engine did it for: `get`, `multiget`, `range`, `log`, `flush`,
    /// `compaction`, `open`, `verify`, `other`.
    pub activity: String,
    /// I/Os.
    pub ios: u64,
    /// What they cost.
    pub vops: f64,
}
