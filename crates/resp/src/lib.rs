//! The Redis serialisation protocol: requests in ([`Parser`]), replies out ([`Reply`] onto
//! [`Output`]).
//!
//! Both sides work on plain buffers and know no socket, so a core's loop, a handler thread and a
//! test use the same code. Memory is taken only for bytes that arrived: a header that promises a
//! billion elements reserves nothing.

mod args;
mod double;
mod inline;
mod output;
mod parse;
mod reply;

pub use args::{is, Args, OwnedArgs};
pub use double::write_double;
pub use output::{Mark, Output};
pub use parse::{parse_i64, Limits, Parsed, Parser, ProtocolError};
pub use reply::{Protocol, Reply};

/// Values of at least this many bytes travel by reference (a slice of the request, a segment of the
/// output) instead of being copied. Below it a `memcpy` is cheaper than the reference count and the
/// extra `iovec`.
pub const BY_REFERENCE_BYTES: usize = 16 << 10;
