//! `LATENCY …`.
//!
//! Redis's latency monitor samples events above a threshold that is 0, "off", by default; here it cannot be turned on,
//! so there are no events. Where the time of requests went is told by `ENTREMET EXPLAIN` and the metrics.

use super::Visit;
use crate::commands::LatencyCommand;

/// Runs a `LATENCY` subcommand.
pub fn run(command: LatencyCommand, visit: &mut Visit<'_>) {
    match command {
        LatencyCommand::Latest | LatencyCommand::History => visit.reply().array(0),
        LatencyCommand::Reset => visit.reply().int(0),
        // Redis's are by command; ours are by class, and a class is not a command.
        LatencyCommand::Histogram => visit.reply().map(0),
    }
}
