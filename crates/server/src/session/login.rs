//! Who a connection speaks for: `AUTH`, `HELLO`, `RESET`, `SELECT`, `ACL WHOAMI`.

use std::sync::atomic::Ordering;
use std::sync::Arc;

use commands::AclCommand;
use resp::Protocol;

use super::{Leftover, State, Visit};
use crate::data::numbered;
use crate::shared::Shared;
use crate::tenants::{Answer, Checked, Hold, Tenant, DEFAULT};

const WRONG: &str = "WRONGPASS invalid username-password pair or user is disabled.";

const CROWDED: &str = "ERR too many logins are being checked, try again in a second";

/// Redis's words for a connection that is one too many, without the tenant's name: clients compare
/// them as a whole, and try again for them only.
pub const FULL: &str = "ERR max number of clients reached";

enum Entry {
    /// It is to speak for this tenant, and has one of its seats.
    In(Arc<Tenant>),
    Out(&'static str),
    Unknown(Leftover),
}

/// Tries a user name and password.
fn enter(visit: &mut Visit<'_>, user: &[u8], password: &[u8]) -> Entry {
    let Some(hold) = &mut visit.hold else {
        return Entry::Out("ERR Command not allowed inside a transaction");
    };
    match visit.state.checked.take() {
        Some(Checked::Wrong) => return Entry::Out(WRONG),
        Some(Checked::Crowded) => return Entry::Out(CROWDED),
        Some(Checked::Right | Checked::Changed) | None => {}
    }
    let shared = visit.shared;
    match shared.doorkeeper.quick(&shared.tenants, user, password) {
        Answer::Yes(tenant) => match seat(shared, hold, visit.tenant, visit.state, &tenant) {
            true => Entry::In(tenant),
            false => Entry::Out(FULL),
        },
        Answer::No => Entry::Out(WRONG),
        Answer::Ask(question) => Entry::Unknown(Leftover::Check(question)),
    }
}

/// Takes a seat of `tenant` for a connection that speaks for another or nobody. One that would be
/// too many stays what it was, and is closed after its reply if that was a newcomer, as Redis
/// closes whom it has no room for.
pub fn seat(
    shared: &Shared,
    hold: &mut Hold,
    speaks_for: &Arc<Tenant>,
    state: &mut State,
    tenant: &Arc<Tenant>,
) -> bool {
    let same = state.authenticated && Arc::ptr_eq(tenant, speaks_for);
    if same || hold.take(tenant.id) {
        return true;
    }
    state.closing |= !state.authenticated;
    tenant.refused.fetch_add(1, Ordering::Relaxed);
    shared.counters.rejected.fetch_add(1, Ordering::Relaxed);
    if tenant.refusals.now(shared.steady_ms()) {
        let (has, max) = (
            tenant.connections(),
            shared.house.connections_max(tenant.id),
        );
        tracing::warn!(
            tenant = tenant.name, has, max,
            "a connection was refused: this tenant has as many as it may have, or all tenants together have (max_connections)"
        );
    }
    false
}

/// `AUTH [user] password`
pub fn auth(visit: &mut Visit<'_>) -> Option<Leftover> {
    let (user, password) = match visit.args.len() {
        2 => (DEFAULT.as_bytes(), visit.arg(1)),
        3 => (visit.arg(1), visit.arg(2)),
        _ => {
            visit.syntax_error();
            return None;
        }
    };
    if visit.args.len() == 2 && visit.shared.tenants.open_default().is_some() {
        visit.error(
            "ERR AUTH <password> called without any password configured for the default user. \
             Are you sure your configuration is correct?",
        );
        return None;
    }
    match enter(visit, user, password) {
        Entry::In(tenant) => {
            visit.reply().ok();
            Some(Leftover::Speak(tenant))
        }
        Entry::Out(text) => {
            visit.error(text);
            None
        }
        Entry::Unknown(check) => Some(check),
    }
}

/// What `HELLO` was asked for besides the protocol.
#[derive(Default)]
struct Hello<'a> {
    login: Option<(&'a [u8], &'a [u8])>,
    name: Option<&'a [u8]>,
}

/// `HELLO [2|3 [AUTH user password] [SETNAME name]]`
pub fn hello(visit: &mut Visit<'_>) -> Option<Leftover> {
    let mut protocol = visit.state.protocol;
    if visit.args.len() > 1 {
        protocol = match visit.int(1) {
            Some(2) => Protocol::Resp2,
            Some(3) => Protocol::Resp3,
            Some(_) => {
                visit.error("NOPROTO unsupported protocol version");
                return None;
            }
            None => {
                visit.error("ERR Protocol version is not an integer or out of range");
                return None;
            }
        };
    }
    let hello = hello_options(visit)?;
    let mut login = None;
    if let Some((user, password)) = hello.login {
        match enter(visit, user, password) {
            Entry::In(tenant) => login = Some(Leftover::Speak(tenant)),
            Entry::Out(text) => {
                visit.error(text);
                return None;
            }
            Entry::Unknown(check) => return Some(check),
        }
    } else if !visit.state.authenticated && visit.shared.tenants.open_default().is_none() {
        visit.error(
            "NOAUTH HELLO must be called with the client already authenticated, otherwise the \
             HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client and \
             select the RESP protocol version at the same time",
        );
        return None;
    }
    if let Some(name) = hello.name {
        if let Err(text) = super::client::set_name(visit, name) {
            visit.error(text);
            return login;
        }
    }
    visit.state.protocol = protocol;
    greet(visit);
    login
}

fn hello_options<'a>(visit: &mut Visit<'a>) -> Option<Hello<'a>> {
    let mut hello = Hello::default();
    let mut at = 2;
    while at < visit.args.len() {
        let left = visit.args.len() - at - 1;
        if visit.is(at, "AUTH") && left >= 2 {
            hello.login = Some((visit.arg(at + 1), visit.arg(at + 2)));
            at += 3;
        } else if visit.is(at, "SETNAME") && left >= 1 {
            hello.name = Some(visit.arg(at + 1));
            at += 2;
        } else {
            let option = visit.text(at).into_owned();
            visit.error(&format!("ERR Syntax error in HELLO option '{option}'"));
            return None;
        }
    }
    Some(hello)
}

fn greet(visit: &mut Visit<'_>) {
    let protocol = visit.state.protocol;
    let id = visit.client.id as i64;
    let mut reply = visit.reply();
    reply.map(7);
    reply.bulk(b"server");
    reply.bulk(b"redis");
    reply.bulk(b"version");
    reply.bulk(super::info::REDIS_VERSION.as_bytes());
    reply.bulk(b"proto");
    reply.int(protocol.version());
    reply.bulk(b"id");
    reply.int(id);
    reply.bulk(b"mode");
    reply.bulk(b"standalone");
    reply.bulk(b"role");
    reply.bulk(b"master");
    reply.bulk(b"modules");
    reply.array(0);
}

/// `RESET`: as if the connection had just come.
pub fn reset(visit: &mut Visit<'_>) -> Leftover {
    let mut labels = std::mem::take(&mut visit.state.labels);
    labels.name.clear();
    *visit.state = State {
        labels,
        ..State::default()
    };
    visit.reply().simple("RESET");
    Leftover::Leave
}

/// `SELECT index`
pub fn select(visit: &mut Visit<'_>) {
    match numbered(visit.arg(1)) {
        Ok(database) => {
            visit.state.database = database;
            visit.reply().ok();
        }
        Err(text) => visit.error(text),
    }
}

/// `ACL WHOAMI`
pub fn acl(command: AclCommand, visit: &mut Visit<'_>) {
    match command {
        AclCommand::Whoami => {
            let tenant = visit.tenant;
            visit.reply().bulk(tenant.name.as_bytes());
        }
    }
}
