//! Files that people write: a TOML language declared once as a table of keys.
//!
//! ```text
//! Language (keys: type, range, default, effect) ──▶ reader ──▶ typed values
//!        │                                            └──────▶ problem::Report: everything that is wrong, with its place
//!        └──▶ reference: the page of the documentation
//! ```
//!
//! `entremet.toml` and scenarios are such languages; what both say of a tenant is declared in
//! [`tenant`]. Files that programs write, or few people, are read key by key instead ([`table`]).
//! Nothing here reads files or knows what the values are for.

pub mod problem;
pub mod reader;
pub mod reference;
pub mod schema;
pub mod table;
pub mod tenant;
pub mod units;
mod value;

pub use problem::Report;
pub use reader::{Reader, Section};
pub use schema::{Key, Language, Otherwise, Takeover, Takes};
pub use value::{address, Foreign, TimeOrNever, Value};
