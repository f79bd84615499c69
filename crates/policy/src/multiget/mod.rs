//! Order inside one tenant: whose operation of which multiget goes first.
//!
//! A multiget is done when the last of its operations is, so what counts is its **bottleneck**, and
//! the rest has **slack** (Rein, EuroSys 2017). Whoever sends a multiget splits it into [`Opset`]s,
//! one for each replica group ([`split`]), and gives each a [`Tag`] by a [`Strategy`]; whoever
//! serves keeps a [`Queue`] that follows the tags. The two sides share nothing but the tag.
//!
//! * `opset`: what a multiget asks of each group, and the estimate of its bottleneck (Rein 3.2.1);
//! * `costs`: what an operation costs, as far as a sender can learn it from replies;
//! * `levels`: K levels with exponential thresholds and the rates at which they are served (Rein
//!   3.3.2);
//! * `tag`: shortest bottleneck first, slack-driven, both together (Rein algorithm 1), and ours;
//! * `queue`: arrival order, exact order, or levels served by deficit round robin, with a guard
//!   against starvation;
//! * `tuner`: chooses K and R from the bottlenecks that were seen (Rein leaves that open);
//! * `leveled`: the queue of a lane of a [`crate::dispatch`], by levels that are always the same.
//!
//! Nothing here knows of tenants: fairness between tenants comes first and is decided elsewhere
//! ([`crate::dispatch`]).

mod costs;
mod deficit;
mod leveled;
mod levels;
mod opset;
mod queue;
mod ranked;
mod tag;
mod tuner;

pub use costs::Costs;
pub use leveled::level_of;
pub(crate) use leveled::{LevelTurn, Leveled};
pub use levels::{Levels, Rates, LEVELS_MAX};
pub use opset::{bottleneck, split, Opset};
pub use queue::{Options, Order, Queue, Taken};
pub use tag::{tag, Strategy, Tag};
pub use tuner::{Tuned, Tuner};
