//! Requests about channels (`SUBSCRIBE` and the like): they wait in the stage before the engine,
//! and go by the link by which their connection is sent what is published ([`super::pushes`]).
//!
//! Behind each goes a `PING`: its answer says that all answers to the request have come, however
//! many there are.

use std::borrow::Cow;
use std::sync::Arc;

use front::{Command, Draft, Way};
use policy::Nanos;
use resp::Args;

use super::request::{NO_NODE, NO_SPACE};
use super::{Forward, Front};
use crate::connection::{Alone, Asks, Connection, Parked};
use crate::core::answer::{answered, refuse, reject, reply_of, Before};
use crate::core::command::Flow;
use crate::core::{Core, Used};
use crate::tenants::{ConnectionKey, Ending};
use crate::upstream::Waits;

/// Words and bytes of one request about channels: a core looks at them all.
const WORDS_MAX: usize = 1_024;
const BYTES_MAX: usize = 64 << 10;

/// Channels and patterns of one connection: when it goes, the engine forgets them one by one, and
/// serves nobody meanwhile.
const SUBSCRIPTIONS_MAX: u64 = 16 << 10;

const TOO_MANY_SHARD_CHANNELS: &str =
    "ERR engine: there are as many channels of shards as may be, of this tenant or of all: when a slot moves, the engine ends all that are in it at once";

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
        let asked = fits(spec.name, &args, connection.subscriptions());
        let asked =
            asked.and_then(|()| front.about_channels(key, connection, command, &args, self.now));
        match asked {
            Ok(None) => self.told(connection, spec, |connection| {
                let before = Before::of(connection);
                has_ended(spec.name, connection, &args);
                answered(connection, spec.class, 1, before, 0, used)
            }),
            Ok(Some(forward)) => {
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
                let text = format!("ERR Can't execute '{}': {ONLY}", spec.name);
                Some(self.told(connection, spec, |connection| {
                    reject(connection, spec.class, &text, used)
                }))
            }
        }
    }
}

impl Front {
    /// A request about channels, with the node to which it goes: the one of the tenant's first
    /// partition, where all that is published comes by, but for channels of shards. None: it ends
    /// what there is not.
    fn about_channels(
        &mut self,
        key: ConnectionKey,
        connection: &mut Connection,
        command: &Command,
        args: &Args<'_>,
        now: Nanos,
    ) -> Result<Option<Forward>, Cow<'static, str>> {
        let (spec, shards) = (command.spec, command.of_shards());
        let space = self.space(&connection.tenant).ok_or(NO_SPACE)?;
        let mut draft = Draft::with_room(args.len_bytes() + 64);
        let part = command.write(args, &space, &mut draft)?.part;
        draft.begin(1);
        draft.text(b"PING");
        if spec.name == "ssubscribe" {
            let slot = || command.slot(args);
            self.stays(connection, spec, slot, (&space, part), now)?;
        }
        let pushes = connection.pushes.as_ref();
        let known = pushes.and_then(|pushes| match shards {
            true if part.is_none() => pushes.sharded_at(),
            true => None,
            false => pushes.plain_at(),
        });
        let node = known.or_else(|| self.nodes.of(&space, part.unwrap_or(0)));
        let node = node.ok_or(NO_NODE)?;
        if spec.name.ends_with("unsubscribe") {
            let there = pushes.map_or(0, |pushes| match shards {
                true => pushes.shards_at(node),
                false => pushes.plain(),
            });
            if there == 0 {
                return Ok(None);
            }
        }
        let asks = self.asks(connection, command, args, node)?;
        let pushes = connection.pushes.get_or_insert_default();
        pushes.ask(asks, now);
        let pieces = draft.pieces();
        Ok(Some(Forward {
            alone: Some(Alone::Subscribes),
            slot: part.map(|part| space.slot(part)),
            ..Forward::new(key, connection, space, spec, pieces, node)
        }))
    }

    /// The places that a request about channels takes.
    ///
    /// # Errors
    /// The text of an error: there are none.
    fn asks(
        &self,
        connection: &Connection,
        command: &Command,
        args: &Args<'_>,
        node: usize,
    ) -> Result<Asks, &'static str> {
        let all = |waits: &Arc<Waits>| -> Option<Vec<_>> {
            let each = (1..args.len()).map(|_| waits.enter(connection.tenant.id));
            each.collect()
        };
        let mut asks = Asks {
            plain_at: (!command.of_shards()).then_some(node),
            ..Asks::default()
        };
        match command.spec.name {
            "psubscribe" => {
                asks.patterns = all(&self.upstream.patterns).ok_or(TOO_MANY_PATTERNS)?;
            }
            "ssubscribe" => {
                let places = all(&self.upstream.shard_channels);
                asks.shards = places.ok_or(TOO_MANY_SHARD_CHANNELS)?;
            }
            _ => {}
        }
        asks.link = self.place_of_link(connection, Some(node))?;
        Ok(asks)
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
    let pushes = connection
        .pushes
        .as_ref()
        .filter(|_| name == "sunsubscribe");
    let left = pushes.map_or(0, |pushes| pushes.shards());
    let mut reply = reply_of(connection);
    let mut one = |channel: Option<&[u8]>| {
        reply.push(3);
        reply.bulk(name.as_bytes());
        match channel {
            Some(channel) => reply.bulk(channel),
            None => reply.null(),
        }
        reply.int(left as i64);
    };
    match args.len() {
        1 => one(None),
        _ => args.from(1).iter().for_each(|channel| one(Some(channel))),
    }
}
