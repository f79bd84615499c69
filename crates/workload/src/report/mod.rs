//! What a run says when it is over: a table to read, and a `result.json` to compare.

pub mod figures;
mod result;
mod table;
mod text;

pub use figures::{figures, Figures};
pub use result::{result, write, write_histograms};
pub use table::table;
pub use text::{duration, rate, Table};
