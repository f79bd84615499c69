//! Replies that a core writes itself, and what is counted of them.

use engine::Seq;
use policy::Nanos;
use resp::Reply;
use stage::Limited;
use telemetry::Class;

use super::command::Flow;
use super::Used;
use crate::connection::{Connection, Written};
use crate::tenants::Ending;

/// The state of the output before a command, to take its reply back to.
#[derive(Clone, Copy)]
pub(super) struct Before {
    pub(super) mark: resp::Mark,
    start: usize,
}

impl Before {
    pub(super) fn of(connection: &Connection) -> Self {
        Self {
            mark: connection.output.mark(),
            start: connection.output.len(),
        }
    }
}

/// The reply writer of a connection.
pub(super) fn reply_of(connection: &mut Connection) -> Reply<'_> {
    let protocol = connection.session.state.protocol;
    Reply::new(&mut connection.output, protocol)
}

/// Books a request whose reply has been written, and drops the reply if the client wants none.
pub(super) fn answered(
    connection: &mut Connection,
    class: Class,
    requests: u64,
    before: Before,
    seq: Seq,
    used: &mut Used,
) -> Flow {
    used.requests += requests;
    connection.tally.count(class);
    let ending = Ending::of(connection.output.since(before.mark));
    connection.tally.failed += u32::from(ending.is_error());
    connection.ending = Some(ending);
    if connection.session.state.reply_mode.suppresses() {
        connection.output.rollback(before.mark);
    }
    if seq > 0 {
        let end = connection.output.len();
        connection.uncommitted.written.push(Written {
            seq,
            start: before.start,
            end,
        });
    }
    if connection.closing {
        Flow::Stop
    } else {
        Flow::Next
    }
}

/// Answers with an error before the command begins.
pub(super) fn reject(
    connection: &mut Connection,
    class: Class,
    text: &str,
    used: &mut Used,
) -> Flow {
    let flow = refuse(connection, class, text, used);
    connection.ending = connection.ending.take().map(Ending::rejected);
    flow
}

/// Answers with an error; inside `MULTI` that spoils the transaction.
pub(super) fn refuse(
    connection: &mut Connection,
    class: Class,
    text: &str,
    used: &mut Used,
) -> Flow {
    if let Some(transaction) = &mut connection.session.transaction {
        transaction.spoiled = true;
    }
    fail(connection, class, text, used)
}

/// Answers that a limit forbids it. Such a request is charged like another, since it was read and
/// answered, but it is in no count of answered or failed requests and in no latency.
pub(super) fn turn_away(connection: &mut Connection, text: &str, used: &mut Used) -> Flow {
    if let Some(transaction) = &mut connection.session.transaction {
        transaction.spoiled = true;
    }
    let before = Before::of(connection);
    reply_of(connection).error(text);
    connection.ending = Some(Ending::of(connection.output.since(before.mark)).rejected());
    used.requests += 1;
    if connection.session.state.reply_mode.suppresses() {
        connection.output.rollback(before.mark);
    }
    let tally = &mut connection.tally;
    if tally.answered.is_empty() {
        // Its wait must not be taken for that of the next one that is served.
        (tally.since, tally.queue_ns) = (0, 0);
    }
    Flow::Next
}

/// The answer to every request of a turn that a limit forbids.
pub(super) fn throttled(
    connection: &Connection,
    limit: Limited,
    retry_ns: Nanos,
) -> (telemetry::Limit, String) {
    let settings = connection.tenant.settings();
    let (limit, text) = match limit {
        Limited::Requests => {
            let rate = settings.limit.requests_per_s.unwrap_or_default();
            (telemetry::Limit::Requests, format!("requests = {rate}/s"))
        }
        Limited::Bytes => {
            let rate = settings.limit.bytes_per_s.unwrap_or_default();
            (telemetry::Limit::Bytes, format!("bytes = {rate}/s"))
        }
    };
    let retry_ms = retry_ns.div_ceil(1_000_000);
    let text = format!(
        "THROTTLED tenant '{}' is over its limit of {text}; retry after {retry_ms} ms",
        connection.tenant.name
    );
    (limit, text)
}

/// Answers with an error.
pub(super) fn fail(connection: &mut Connection, class: Class, text: &str, used: &mut Used) -> Flow {
    let before = Before::of(connection);
    reply_of(connection).error(text);
    answered(connection, class, 1, before, 0, used)
}
