//! `CLIENT …`: what a tenant's connections say of themselves, and closing them.
//!
//! A tenant sees and closes its own connections only; to it, those of others do not exist.

mod kill;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::sync::atomic::Ordering;
use std::sync::Arc;

use commands::ClientCommand;
use resp::{is, parse_i64};

use super::{ReplyMode, Visit};
use crate::shared::News;
use crate::tenants::{Client, Labels, Tenant, Unblocked};

/// Runs a `CLIENT` subcommand.
pub fn run(command: ClientCommand, visit: &mut Visit<'_>) {
    match command {
        // What a client says it can do, of which nothing is made use of.
        ClientCommand::Capa => visit.reply().ok(),
        ClientCommand::Getname => getname(visit),
        ClientCommand::Getredir => visit.reply().int(-1),
        ClientCommand::Id => {
            let id = visit.client.id as i64;
            visit.reply().int(id);
        }
        ClientCommand::Info => {
            let now_ms = visit.shared.steady_ms();
            let text = describe(visit.client, &visit.state.labels, visit.tenant, now_ms) + "\n";
            visit.reply().verbatim(&text);
        }
        ClientCommand::Kill => kill::kill(visit),
        ClientCommand::List => list(visit),
        // Connections are never evicted and keys never pushed out, so both hold without doing
        // anything.
        ClientCommand::NoEvict | ClientCommand::NoTouch => match on_or_off(visit) {
            Some(_) => visit.reply().ok(),
            None => visit.syntax_error(),
        },
        ClientCommand::Pause => pause(visit),
        ClientCommand::Reply => reply(visit),
        ClientCommand::Setinfo => setinfo(visit),
        ClientCommand::Setname => {
            let name = visit.arg(2);
            match set_name(visit, name) {
                Ok(()) => visit.reply().ok(),
                Err(text) => visit.error(text),
            }
        }
        ClientCommand::Tracking => tracking(visit),
        ClientCommand::Trackinginfo => trackinginfo(visit),
        ClientCommand::Unblock => unblock(visit),
        ClientCommand::Unpause => {
            visit.tenant.pause.end();
            visit.shared.tell_all(|| News::Unpaused);
            visit.reply().ok();
        }
    }
}

/// Names the connection; an empty name takes the name away.
///
/// # Errors
/// Redis's text, when the name has blanks or bytes that do not print.
pub fn set_name(visit: &mut Visit<'_>, name: &[u8]) -> Result<(), &'static str> {
    let Some(name) = printable(name) else {
        return Err("ERR Client names cannot contain spaces, newlines or special characters.");
    };
    visit.state.labels.name = name.to_string();
    Ok(())
}

/// Names and versions of clients are at most this long, bytes.
const LABEL_BYTES_MAX: usize = 1_024;

/// What may stand in a line of `CLIENT LIST`: ASCII from `!` to `~`, and not too much of it.
fn printable(word: &[u8]) -> Option<&str> {
    let fits = word.len() <= LABEL_BYTES_MAX && word.iter().all(u8::is_ascii_graphic);
    std::str::from_utf8(word).ok().filter(|_| fits)
}

fn on_or_off(visit: &Visit<'_>) -> Option<bool> {
    match (visit.is(2, "ON"), visit.is(2, "OFF")) {
        (true, _) => Some(true),
        (_, true) => Some(false),
        _ => None,
    }
}

fn getname(visit: &mut Visit<'_>) {
    let name = visit.state.labels.name.clone();
    if name.is_empty() {
        visit.reply().null();
    } else {
        visit.reply().bulk(name.as_bytes());
    }
}

fn setinfo(visit: &mut Visit<'_>) {
    let version = visit.is(2, "LIB-VER");
    if !version && !visit.is(2, "LIB-NAME") {
        let option = visit.text(2);
        return visit.error(&format!("ERR Unrecognized option '{option}'"));
    }
    let Some(value) = printable(visit.arg(3)) else {
        let option = if version { "lib-ver" } else { "lib-name" };
        return visit.error(&format!(
            "ERR {option} cannot contain spaces, newlines or special characters."
        ));
    };
    let labels = &mut visit.state.labels;
    match version {
        true => labels.lib_ver = value.to_string(),
        false => labels.lib_name = value.to_string(),
    }
    visit.reply().ok();
}

fn reply(visit: &mut Visit<'_>) {
    // With `OFF` and `SKIP` the mode itself keeps this reply, which is none, from being sent.
    let mode = visit.state.reply_mode;
    visit.state.reply_mode = if visit.is(2, "ON") {
        visit.reply().ok();
        ReplyMode::On
    } else if visit.is(2, "OFF") {
        ReplyMode::Off
    } else if visit.is(2, "SKIP") {
        if mode == ReplyMode::Off {
            ReplyMode::Off
        } else {
            ReplyMode::SkipNext
        }
    } else {
        return visit.syntax_error();
    };
}

fn tracking(visit: &mut Visit<'_>) {
    match on_or_off(visit) {
        // A client told `OK` would keep values that have long been changed.
        Some(true) => {
            visit.error("ERR client-side caching is not supported: CLIENT TRACKING can only be OFF")
        }
        Some(false) if visit.args.len() == 3 => visit.reply().ok(),
        _ => visit.syntax_error(),
    }
}

/// `CLIENT PAUSE timeout [WRITE | ALL]`: of the asking tenant, and nobody else.
fn pause(visit: &mut Visit<'_>) {
    let all = match visit.args.len() {
        3 => true,
        4 if visit.is(3, "ALL") => true,
        4 if visit.is(3, "WRITE") => false,
        4 => return visit.error("ERR CLIENT PAUSE mode must be WRITE or ALL"),
        _ => return visit.syntax_error(),
    };
    match visit.int(2) {
        None => visit.error("ERR timeout is not an integer or out of range"),
        Some(..0) => visit.error("ERR timeout is negative"),
        Some(timeout_ms) => {
            let now = visit.shared.options.clock.now();
            let until = now.saturating_add((timeout_ms as u64).saturating_mul(1_000_000));
            visit.tenant.pause.begin(now, until, all);
            visit.reply().ok();
        }
    }
}

/// Lets go who waits at an engine; no other command blocks.
fn unblock(visit: &mut Visit<'_>) {
    let how = match visit.args.len() {
        3 => Some(Unblocked::TimesOut),
        4 if visit.is(3, "TIMEOUT") => Some(Unblocked::TimesOut),
        4 if visit.is(3, "ERROR") => Some(Unblocked::Fails),
        _ => None,
    };
    let Some(how) = how else {
        return visit.error("ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR");
    };
    let Some(id) = visit.int(2) else {
        return visit.error("ERR value is not an integer or out of range");
    };
    let client = u64::try_from(id).ok();
    let client = client.and_then(|id| visit.tenant.clients.find(id));
    let unblocked = client.is_some_and(|client| {
        let own = client.while_of(visit.tenant, || visit.shared.unblock(&client, how));
        own.unwrap_or(false)
    });
    visit.reply().int(i64::from(unblocked));
}

fn trackinginfo(visit: &mut Visit<'_>) {
    let mut reply = visit.reply();
    reply.map(3);
    reply.bulk(b"flags");
    reply.set(1);
    reply.bulk(b"off");
    reply.bulk(b"redirect");
    reply.int(-1);
    reply.bulk(b"prefixes");
    reply.array(0);
}

/// One line of `CLIENT LIST`, without its end. What Redis counts and we do not have (descriptor,
/// buffers) is 0, or -1 where Redis means "none" by that: clients parse the fields.
fn describe(client: &Client, labels: &Labels, tenant: &Tenant, now_ms: u64) -> String {
    let seconds_since = |then_ms: u64| now_ms.saturating_sub(then_ms) / 1_000;
    let multi = client.queued.load(Ordering::Relaxed);
    let [channels, patterns, shards] = client.subscriptions();
    let flags = [
        (channels + patterns + shards > 0, 'P'),
        (multi >= 0, 'x'),
        (client.is_blocked(), 'b'),
    ];
    let mut flags: String = flags
        .iter()
        .filter(|(is, _)| *is)
        .map(|(_, flag)| flag)
        .collect();
    if flags.is_empty() {
        flags.push('N');
    }
    let mut line = format!(
        "id={} addr={} laddr={} fd=0 name={} age={} idle={} flags={flags} db={} sub={channels} psub={patterns} ssub={shards} multi={multi}",
        client.id,
        client.addr,
        client.local_addr,
        labels.name,
        seconds_since(client.created_ms),
        seconds_since(client.active_ms.load(Ordering::Relaxed)),
        client.database.load(Ordering::Relaxed),
    );
    let _ = write!(
        line,
        " qbuf=0 qbuf-free=0 argv-mem=0 multi-mem=0 rbs=0 rbp=0 obl=0 oll=0 omem=0 tot-mem=0 events=r \
         cmd={} user={} redir=-1 resp={} lib-name={} lib-ver={}",
        client.last_command(),
        tenant.name,
        client.protocol.load(Ordering::Relaxed),
        labels.lib_name,
        labels.lib_ver,
    );
    line
}

/// Redis's types of connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Type {
    Normal,
    /// Those that have subscribed.
    PubSub,
    /// Of which there are none here.
    Replication,
}

impl Type {
    /// By its name; none: there is no such type.
    fn named(word: &[u8]) -> Option<Self> {
        let replication = ["slave", "replica", "master"];
        match word {
            _ if is(word, "normal") => Some(Self::Normal),
            _ if is(word, "pubsub") => Some(Self::PubSub),
            _ => (replication.iter().any(|name| is(word, name))).then_some(Self::Replication),
        }
    }

    fn is_of(self, client: &Client) -> bool {
        match client.subscriptions() {
            [0, 0, 0] => self == Self::Normal,
            _ => self == Self::PubSub,
        }
    }
}

fn unknown_type(visit: &mut Visit<'_>, at: usize) {
    let word = visit.text(at);
    visit.error(&format!("ERR Unknown client type '{word}'"));
}

/// The tenant's connections; those that are killed count as gone before their cores have closed
/// them.
fn own(visit: &Visit<'_>) -> BTreeMap<u64, Arc<Client>> {
    let mut clients = visit.tenant.clients.all();
    clients.retain(|_, client| !client.killed.load(Ordering::Acquire));
    clients
}

fn list(visit: &mut Visit<'_>) {
    // Each once, however often it is named.
    let mut wanted: Option<BTreeSet<u64>> = None;
    let mut of_type = None;
    match visit.args.len() {
        2 => {}
        4 if visit.is(2, "TYPE") => match Type::named(visit.arg(3)) {
            Some(named) => of_type = Some(named),
            None => return unknown_type(visit, 3),
        },
        4.. if visit.is(2, "ID") => {
            let ids: Option<Vec<i64>> = visit.args.from(3).iter().map(parse_i64).collect();
            let Some(ids) = ids else {
                return visit.error("ERR Invalid client ID");
            };
            let ids = ids.into_iter().filter_map(|id| u64::try_from(id).ok());
            wanted = Some(ids.collect());
        }
        _ => return visit.syntax_error(),
    }
    let mut clients = own(visit);
    clients.retain(|id, client| {
        wanted.as_ref().is_none_or(|wanted| wanted.contains(id))
            && of_type.is_none_or(|of_type: Type| of_type.is_of(client))
    });
    let now_ms = visit.shared.steady_ms();
    let lines = lines(clients.values(), visit.tenant, now_ms);
    visit.reply().verbatim(&lines);
}

/// What the tenant may see of them: nothing of those that have become another's since they were
/// listed.
fn lines<'c>(
    clients: impl Iterator<Item = &'c Arc<Client>>,
    tenant: &Tenant,
    now_ms: u64,
) -> String {
    let line = |client: &Client| describe(client, &client.labels(), tenant, now_ms) + "\n";
    clients
        .filter_map(|client| client.while_of(tenant, || line(client)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tenants::tests::tenant;
    use crate::tenants::{Clients, Newcomer};

    /// A connection of `web`, one of `batch`, another of `web`.
    pub(super) fn clients() -> Vec<Arc<Client>> {
        let clients = Clients::default();
        let [web, batch] = ["web", "batch"].map(tenant);
        let local_addr = "127.0.0.1:6380".parse().unwrap();
        let enter = |port: u16, owner| {
            let addr = ([10, 0, 0, 1], port).into();
            let who = Newcomer {
                addr,
                local_addr,
                tls: false,
                aware: false,
            };
            clients.enter(who, 1_000, owner)
        };
        vec![enter(1, &web), enter(2, &batch), enter(3, &web)]
    }

    #[test]
    fn a_line_has_the_fields_of_redis_in_its_order() {
        let all = clients();
        let mut labels = Labels {
            name: "worker".into(),
            ..Labels::default()
        };
        all[0].active_ms.store(9_000, Ordering::Relaxed);
        assert_eq!(
            describe(&all[0], &labels, &tenant("web"), 11_500),
            "id=1 addr=10.0.0.1:1 laddr=127.0.0.1:6380 fd=0 name=worker age=10 idle=2 flags=N db=0 sub=0 psub=0 \
             ssub=0 multi=-1 qbuf=0 qbuf-free=0 argv-mem=0 multi-mem=0 rbs=0 rbp=0 obl=0 oll=0 omem=0 tot-mem=0 \
             events=r cmd=NULL user=web redir=-1 resp=2 lib-name= lib-ver="
        );
        all[0].queued(Some(3));
        labels.name.clear();
        assert!(describe(&all[0], &labels, &tenant("web"), 0)
            .contains(" flags=x db=0 sub=0 psub=0 ssub=0 multi=3 "));
        all[2].blocks(true);
        all[2].subscribes([3, 1, 0]);
        assert!(describe(&all[2], &labels, &tenant("web"), 0)
            .contains(" flags=Pb db=0 sub=3 psub=1 ssub=0 multi=-1 "));
        assert!(all[2].unblock() && !all[2].unblock() && !all[2].is_blocked());
    }

    #[test]
    fn a_list_tells_nothing_of_who_has_become_another_tenants() {
        let all = clients();
        let (web, batch) = (all[0].tenant(), all[1].tenant());
        let ids = |tenant: &Tenant| -> Vec<String> {
            let lines = lines(all.iter(), tenant, 0);
            let word = |line: &str| line.split(' ').next().map(String::from);
            lines.lines().filter_map(word).collect()
        };
        assert_eq!(ids(&web), ["id=1", "id=3"]);
        // A list of all of them is still in somebody's hands.
        all[2].belongs_to(&batch);
        assert_eq!(ids(&web), ["id=1"]);
        assert_eq!(ids(&batch), ["id=2", "id=3"]);
    }

    #[test]
    fn names_are_printable_words() {
        assert_eq!(printable(b"a-b:c"), Some("a-b:c"));
        assert_eq!(printable(b""), Some(""));
        for bad in [&b"a b"[..], b"a\nb", b"\xc3\xa9", b"\x7f"] {
            assert_eq!(printable(bad), None);
        }
    }
}
