//! What is asked: classes, keys and value sizes, drawn from distributions.

mod alias;
mod class;
mod mixture;
mod popularity;
mod sizes;
#[cfg(test)]
mod tests;

pub use alias::Alias;
pub use class::{Class, Shares, CLASSES};
pub use mixture::{Asks, Draw, Mixture, Ttl};
pub use popularity::Popularity;
pub use sizes::{Counts, Sizes, VALUE_BYTES_MAX};
