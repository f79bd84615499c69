//! Small commands on the server: `PING`, `ECHO`, `TIME`, `ROLE`, `WAIT`, `LOLWUT`, `SHUTDOWN`.

use super::Visit;

/// `PING [message]`
pub fn ping(visit: &mut Visit<'_>) {
    match visit.args.len() {
        1 => visit.reply().simple("PONG"),
        2 => {
            let message = visit.args.bytes(1);
            visit.reply().bulk_bytes(&message);
        }
        _ => visit.error("ERR wrong number of arguments for 'ping' command"),
    }
}

/// `ECHO message`
pub fn echo(visit: &mut Visit<'_>) {
    let message = visit.args.bytes(1);
    visit.reply().bulk_bytes(&message);
}

/// `TIME`
pub fn time(visit: &mut Visit<'_>) {
    let now_ms = visit.now_ms;
    let mut reply = visit.reply();
    reply.array(2);
    reply.bulk((now_ms / 1_000).to_string().as_bytes());
    reply.bulk((now_ms % 1_000 * 1_000).to_string().as_bytes());
}

/// `ROLE`: a master, nothing replicated, to nobody.
pub fn role(visit: &mut Visit<'_>) {
    let mut reply = visit.reply();
    reply.array(3);
    reply.bulk(b"master");
    reply.int(0);
    reply.array(0);
}

/// `WAIT numreplicas timeout`: no replica will come, so there is nothing to wait for.
pub fn wait(visit: &mut Visit<'_>) {
    match (visit.int(1), visit.int(2)) {
        (_, None) => visit.error("ERR timeout is not an integer or out of range"),
        (_, Some(..0)) => visit.error("ERR timeout is negative"),
        (None, _) => visit.error("ERR value is not an integer or out of range"),
        (Some(_), Some(_)) => visit.reply().int(0),
    }
}

/// `LOLWUT`
pub fn lolwut(visit: &mut Visit<'_>) {
    let text = format!(
        "A cake whose layers stay apart.\nentremet {}\n",
        visit.shared.options.version
    );
    visit.reply().verbatim(&text);
}

/// `SHUTDOWN [NOSAVE|SAVE] [NOW] [FORCE]`: data is always safe on the disk, so the options change
/// nothing. Only the operator's tenant may end the server for everybody.
pub fn shutdown(visit: &mut Visit<'_>) {
    let known = ["NOSAVE", "SAVE", "NOW", "FORCE"];
    if !(1..visit.args.len()).all(|at| known.iter().any(|option| visit.is(at, option))) {
        return visit.syntax_error();
    }
    if !visit.operator() {
        return visit.error(super::NOT_OPERATOR);
    }
    visit.state.closing = true;
    (visit.shared.on_shutdown)();
}
