//! What a running server knows of itself, and how it tells.
//!
//! * Cores record each request through a [`Recorder`] into log-linear [`Histogram`]s and counters:
//!   one writer, any number of readers, no lock and no atomic read-modify-write.
//! * The [`Registry`] merges cores when somebody asks, and knows what each tenant used lately.
//! * [`live`] says what happened in the last seconds, once a second while somebody watches.
//! * [`admin`] serves it: the dashboard at `/`, Prometheus's text at `/metrics`, JSON under `/api`,
//!   `/livez` and `/readyz`, on a thread of its own so that a scrape never runs on a core.
//!
//! The server implements [`AdminSource`] and hands it to [`admin::start`].

pub mod admin;
pub mod api;
mod class;
mod cluster;
mod device;
mod error;
pub mod exposition;
mod histogram;
mod late;
pub mod live;
pub mod metrics;
mod model;
mod parts;
mod process;
mod promise;
mod recorder;
mod registry;
mod shares;
mod snapshot;
mod stage;
mod totals;
mod upstream;

pub use class::{Class, CLASSES};
pub use cluster::{
    ClusterMove, ClusterNode, ClusterPromise, ClusterTenant, ClusterView, TenantAtNode,
};
pub use device::{DeviceOperation, DeviceSnapshot, DeviceUse, RequestCost, TenantDevice};
pub use error::TelemetryError;
pub use histogram::{Histogram, BUCKETS};
pub use late::Lates;
pub use live::view::PartSpent;
pub use model::{
    AdminSource, CertificateSnapshot, Connections, ControlSnapshot, LargestTurn, Logins, Memory,
    PrincipalSnapshot, ServerSnapshot, StageSnapshot, State, Storage, TenantSetting,
    TenantSnapshot, TenantStage,
};
pub use parts::{Part, PartWords, TimeParts, PARTS};
pub use process::ProcessUsage;
pub use promise::{
    Delay, DelayRow, Explanation, LateTime, PromiseAttainment, PromiseKept, PromiseSnapshot,
    PromiseStep, PromiseWindow, SlowRequest,
};
pub use recorder::{Limit, Recorder, Request};
pub use registry::Registry;
pub use shares::{shares, Capacities, Recent, Share, Using};
pub use snapshot::HistogramSnapshot;
pub use stage::{StageKind, WaitColumn};
pub use totals::{Answered, ClassTotals, TenantTotals, Usage};
pub use upstream::{EngineLinks, EngineReplicas};
