//! Whose password is checked next.
//!
//! Checking a password takes a slow hash on purpose, so there is a line before it, and whoever
//! guesses passwords fills it. Three rules keep that from others:
//!
//! * the line is fair by where a log-in comes from and by whom it is for ([`Line`]);
//! * however many ask the same, it is hashed once: later ones join the check that is in line or
//!   under way ([`Checks`]);
//! * a wrong answer is remembered for a moment, so that a storm of the same wrong password costs
//!   one hash.

mod checks;
mod line;

pub use checks::{Asked, Checks, ChecksOptions};
pub use line::{Entered, Line, LineOptions};
