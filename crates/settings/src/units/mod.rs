//! Quantities as people write them: `"20ms"`, `"64MiB"`, `"2000/s"`, `"1250MB/s"`.
//!
//! Parsing is exact integer arithmetic: what cannot be held exactly is refused, never rounded.
//! `Display` writes the largest unit that divides the quantity, and reads back as the same
//! quantity.

mod bytes;
mod number;
mod rate;
mod time;

#[cfg(test)]
mod tests;

pub use bytes::Bytes;
pub use rate::{ByteRate, Per, Rate};
pub use time::Time;
