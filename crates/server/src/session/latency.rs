//! `LATENCY …`.
//!
//! Redis's latency monitor samples events above a threshold that is 0, "off", by default; here it
//! cannot be turned on, so there are no events. Where the time of requests went is told by
//! `ENTREMET EXPLAIN` and the metrics.

use commands::LatencyCommand;

use super::entremet::explained;
use super::Visit;

/// Bytes of an event's name that an error repeats.
const EVENT_BYTES: usize = 128;

/// Runs a `LATENCY` subcommand.
pub fn run(command: LatencyCommand, visit: &mut Visit<'_>) {
    match command {
        LatencyCommand::Doctor => {
            let mut text = explained(visit.shared, visit.tenant, visit.operator()).join("\n");
            text.push('\n');
            visit.reply().verbatim(&text);
        }
        LatencyCommand::Graph => {
            let event = visit.arg(2);
            let event =
                String::from_utf8_lossy(&event[..event.len().min(EVENT_BYTES)]).into_owned();
            visit.error(&format!("ERR No samples available for event '{event}'"));
        }
        LatencyCommand::Latest | LatencyCommand::History => visit.reply().array(0),
        LatencyCommand::Reset => visit.reply().int(0),
        // Redis's are by command; ours are by class, and a class is not a command.
        LatencyCommand::Histogram => visit.reply().map(0),
    }
}
