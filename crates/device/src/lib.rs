//! What a disk is worth: measuring it, and the file that keeps the result.
//!
//! * [`calibrate`](calibrate()) measures the rates of reads and writes by size, how they interfere,
//!   the floor of what is left then, and which depth and chunk use the device well. It decides
//!   *what* to measure and when a result can be believed; a [`Bench`] does the I/O.
//! * [`Disk`] is the bench of a real disk: threads that read and write one scratch file around the
//!   page cache. [`EmulatedDisk`] is that of an emulated one, in emulated time.
//! * [`contest`] has tenants share a disk through the dispatch that ships; an emulated one in
//!   emulated time.
//! * [`measure`](measure()) does both for a directory; [`Profile`] is the result and its file,
//!   `device.toml`; docs/reference/device.md describes it.
//!
//! It is a crate of its own because it has several users that must not see each other (the
//! subcommand that writes a profile, the server that schedules by one, experiments) and because
//! nothing in it needs RocksDB. Why it measures with threads: so does the engine, and their cost is
//! part of what it can get out of the device.

mod calibrate;
pub mod contest;
mod dice;
mod disk;
mod emulated;
mod error;
mod machine;
mod measure;
mod plot;
mod profile;

pub use calibrate::{
    calibrate, Bench, Load, Measured, Mix, Plan, Progress, Rate, Repeats, Sample, Seen,
};
pub use dice::Dice;
pub use disk::{with_buffer, Disk};
pub use emulated::EmulatedDisk;
pub use error::DeviceError;
pub use machine::Machine;
pub use measure::{measure, Way};
pub use plot::plot;
pub use profile::{Profile, BESIDE_DATA, FORMAT};
