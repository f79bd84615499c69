//! What a tenant is promised and held to: one table for everything that people can set of a tenant.
//!
//! ```text
//! Settings: a field each ── SETTINGS: a row each ──▶ the file and scenarios (Terms), with their reference pages
//!                                                ├─▶ ENTREMET TENANT SET and GET, --provision
//!                                                ├─▶ the admin API, and with it the dashboard and top
//!                                                └─▶ the words of `entremet check`, and of what was set at run time
//! ```
//!
//! Settings that are lists of tables (`[[tenant.workload]]`, `[[tenant.slo]]`) have a row for each
//! of a table's fields, too ([`WORKLOAD`], [`SLO`]).
//!
//! A new setting is a field of [`Settings`], a row of [`SETTINGS`], and the code that acts on it.
//! What tenants claim together is added up and checked in [`room`], for the file, for commands and
//! for the simulator alike.

mod doubts;
mod held;
mod lists;
mod promised;
pub mod room;
mod settings;
mod table;
mod terms;

pub use doubts::Doubt;
pub use held::Shown;
pub use lists::{is_name, Field, SLO, WORKLOAD};
pub use promised::{Slo, SloClass, Workload, WORKLOADS_MAX};
pub use room::{Infeasible, Memory, Room, Totals, MEMORIES};
pub use settings::{Limit, Settings};
pub use table::{Setting, KEYS, LAG, READS, SCRIPTS, SETTINGS};
pub use terms::Terms;

#[cfg(test)]
mod tests;
