//! Requests about channels (`SUBSCRIBE` and the like): they wait in the stage before the engine,
//! and go by the link by which their connection is sent what is published ([`super::pushes`]).
//!
//! Behind each goes a `PING`: its answer says that all answers to the request have come, however
//! many there are.

use std::borrow::Cow;

use front::{Command, Draft, Way};
use policy::Nanos;
use resp::Args;

use super::request::{NO_NODE, NO_SPACE};
use super::{Forward, Front};
use crate::connection::{Alone, Connection, Parked, Pushes};
use crate::core::answer::{answered, refuse, reject, reply_of, Before};
use crate::core::command::Flow;
use crate::core::{Core, Used};
use crate::tenants::{ConnectionKey, Ending};

/// Words and bytes of one request about channels: a core looks at them all.
const WORDS_MAX: usize = 1_024;
const BYTES_MAX: usize = 64 << 10;

/// Channels and patterns of one connection: when it goes, the engine forgets them one by one, and
/// serves nobody meanwhile.
const SUBSCRIPTIONS_MAX: u64 = 16 << 10;

/// What RESP2 lets nobody do who has subscribed.
const ONLY: &str =
    "only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context";

const TOO_MANY_PATTERNS: &str =
    "ERR engine: there are as many patterns of channels as may be, of this tenant or of all: each is compared with whatever anybody publishes";

impl Core {
    /// `SUBSCRIBE`, `PSUBSCRIBE`, and what ends them. Nothing of the connection is out.
    pub(super) fn subscribe(
        &mut self,
        front: &mut Front,
        key: ConnectionKey,
        connection: &mut Connection,
        command: &'static Command,
        args: Args<'_>,
        used: &mut Used,
    ) -> Flow {
        let spec = command.spec;
        if connection.session.transaction.is_some() {
            return self.turned_down(connection, spec, "it cannot be part of a transaction", used);
        }
        used.words += args.len().min(WORDS_MAX) as u64;
        if connection.pushes.is_none() && spec.name.ends_with("unsubscribe") {
            if let Ok(()) = fits(spec.name, &args, 0) {
                return self.told(connection, spec, |connection| {
                    let before = Before::of(connection);
                    has_ended(spec.name, connection, &args);
                    answered(connection, spec.class, 1, before, 0, used)
                });
            }
        }
        let asked = fits(spec.name, &args, connection.subscriptions());
        let asked =
            asked.and_then(|()| front.about_channels(key, connection, command, &args, self.now));
        match asked {
            Ok(forward) => {
                used.requests += args.len() as u64 - 1;
                connection.parked = Some(Parked::Subscribing);
                connection.ending = Some(Ending::Done);
                self.count_call(connection, Some(spec), 0);
                if self.line_up(connection, forward).is_some() {
                    tracing::error!("the queue before the engine is full");
                    connection.closing = true;
                }
                Flow::Stop
            }
            Err(text) => self.told(connection, spec, |connection| {
                refuse(connection, spec.class, &text, used)
            }),
        }
    }

    /// A request of a connection that has subscribed and speaks RESP2, in which a reply could not
    /// be told from what is published. None: it may be run.
    pub(super) fn about_channels_only(
        &mut self,
        front: &Front,
        connection: &mut Connection,
        args: Args<'_>,
        used: &mut Used,
    ) -> Option<Flow> {
        let name = String::from_utf8_lossy(args.get(0)).to_lowercase();
        let command = front.table.find(&args)?;
        let spec = command.spec;
        match &name[..] {
            "reset" | "quit" => None,
            _ if command.way == Way::Subscribe => None,
            "ping" if args.len() <= 2 => Some(self.told(connection, spec, |connection| {
                let before = Before::of(connection);
                let mut reply = reply_of(connection);
                reply.array(2);
                reply.bulk(b"pong");
                reply.bulk(args.find(1).unwrap_or_default());
                answered(connection, spec.class, 1, before, 0, used)
            })),
            _ => {
                let text = format!("ERR Can't execute '{name}': {ONLY}");
                Some(self.told(connection, spec, |connection| {
                    reject(connection, spec.class, &text, used)
                }))
            }
        }
    }
}

impl Front {
    /// A request about channels, with the node to which it goes: the one of the tenant's first
    /// partition, where all of it that is published comes by.
    fn about_channels(
        &mut self,
        key: ConnectionKey,
        connection: &mut Connection,
        command: &Command,
        args: &Args<'_>,
        now: Nanos,
    ) -> Result<Forward, Cow<'static, str>> {
        let space = self.space(&connection.tenant).ok_or(NO_SPACE)?;
        let mut draft = Draft::with_room(args.len_bytes() + 64);
        command.write(args, &space, &mut draft)?;
        draft.begin(1);
        draft.text(b"PING");
        let known = self.subscribers.node(key);
        let node = known.or_else(|| self.nodes.of(&space, 0)).ok_or(NO_NODE)?;
        let mut places = Vec::new();
        if command.spec.name == "psubscribe" {
            let all = (1..args.len()).map(|_| self.upstream.patterns.enter(connection.tenant.id));
            places = all.collect::<Option<_>>().ok_or(TOO_MANY_PATTERNS)?;
        }
        if connection.pushes.is_none() {
            connection.pushes = Some(Pushes::new(self.place_for(connection)?));
        }
        if let Some(pushes) = &mut connection.pushes {
            pushes.ask(places, now);
        }
        let pieces = draft.pieces();
        Ok(Forward {
            alone: Some(Alone::Subscribes),
            ..Forward::new(key, connection, space, command.spec, pieces, node)
        })
    }
}

/// Whether a request is short enough for a core, and leaves its connection with no more than it may
/// have.
fn fits(name: &str, args: &Args<'_>, subscriptions: u64) -> Result<(), Cow<'static, str>> {
    if args.len() > WORDS_MAX || args.len_bytes() > BYTES_MAX {
        let text = format!("ERR '{name}' takes at most {WORDS_MAX} words and {BYTES_MAX} bytes");
        return Err(text.into());
    }
    let more = args.len() as u64 - 1;
    if !name.ends_with("unsubscribe") && subscriptions + more > SUBSCRIPTIONS_MAX {
        let text = format!("ERR a connection subscribes to at most {SUBSCRIPTIONS_MAX} channels");
        return Err(text.into());
    }
    Ok(())
}

/// Answers what ends subscriptions where there are none.
fn has_ended(name: &str, connection: &mut Connection, args: &Args<'_>) {
    let mut reply = reply_of(connection);
    let mut one = |channel: Option<&[u8]>| {
        reply.push(3);
        reply.bulk(name.as_bytes());
        match channel {
            Some(channel) => reply.bulk(channel),
            None => reply.null(),
        }
        reply.int(0);
    };
    match args.len() {
        1 => one(None),
        _ => args.from(1).iter().for_each(|channel| one(Some(channel))),
    }
}
