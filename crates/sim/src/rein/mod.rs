//! Rein's evaluation (EuroSys 2017, 3.3.2, 5.1, 5.3), with its rivals and ours: what is compared,
//! and on which cluster.
//!
//! What the paper does not say is chosen here: the SoundCloud trace is not public ([`soundcloud`]
//! has the four facts that are), and neither is how a service time follows from a value.

mod contenders;
mod workload;

pub use self::workload::{
    facebook_values, log_normal, sessions, soundcloud, Before, Setting, SOUNDCLOUD_ZIPF,
};
pub use contenders::{levels, Contender};
