//! Requests as the engine is sent them. A core writes those of few words, however long they are; of
//! many words a handler does.

use std::borrow::Cow;
use std::sync::Arc;

use commands::{Action, SessionCommand, Spec};
use front::{Command, Draft, Shows, Space, Table, Way, Written};
use resp::Args;
use smallvec::{smallvec, SmallVec};

use super::request::{NO_NODE, NO_SPACE};
use super::{Forward, Forwards, Front};
use crate::connection::{Alone, Away, Connection, Encoded, EncodedPart, Parked, Ready};
use crate::core::answer::refuse;
use crate::core::command::Flow;
use crate::core::message::Message;
use crate::core::work::Stopwatch;
use crate::core::{Core, Used};
use crate::session::Transaction;
use crate::tenants::ConnectionKey;
use crate::unit::{requests_of, TURN_WORDS_MAX};
use crate::upstream::WaitingPlace;

/// The request `args`, in parts if its keys have several partitions.
///
/// # Errors
/// The text of an error: it cannot be sent.
fn encode(
    command: &Command,
    args: &Args<'_>,
    space: &Arc<Space>,
) -> Result<Encoded, Cow<'static, str>> {
    let alone = match command.way {
        Way::Watch => Some(Alone::Watches),
        _ => command.may_wait(args).then_some(Alone::Waits),
    };
    let encoded = |parts, shows, requests| Encoded {
        spec: command.spec,
        space: Arc::clone(space),
        parts,
        gather: None,
        before: 0,
        shows,
        requests,
        alone,
        script: command.way.scripts(),
        every_node: matches!(command.way, Way::EveryNode | Way::EveryShard),
        slot: None,
    };
    if let Some((gather, parts)) = command.split(args, space)? {
        let requests = parts.iter().map(|part| requests_of(part.keys.len())).sum();
        let parts = parts.into_iter().map(|part| EncodedPart {
            part: Some(part.part),
            pieces: part.pieces,
            keys: Some(part.keys),
        });
        let gather = Some(gather);
        return Ok(Encoded {
            gather,
            ..encoded(parts.collect(), Shows::None, requests)
        });
    }
    let mut draft = Draft::with_room(args.len_bytes() + 64);
    let Written { keys, part } = command.write(args, space, &mut draft)?;
    // Who publishes goes where those are that have subscribed, and a script may be without keys.
    let anywhere = matches!(command.way, Way::Channel | Way::Script);
    let part = part.or(anywhere.then_some(0));
    let one = EncodedPart {
        part,
        pieces: draft.pieces(),
        keys: None,
    };
    Ok(encoded(
        smallvec![one],
        command.shows.clone(),
        requests_of(keys),
    ))
}

/// A transaction as a whole; keys of this partition are watched for it.
///
/// # Errors
/// The text of an error: it cannot be sent.
fn encode_transaction(
    table: &Table,
    transaction: &Transaction,
    spec: &'static Spec,
    space: &Arc<Space>,
    watched: Option<u16>,
) -> Result<Encoded, Cow<'static, str>> {
    let mut draft = Draft::with_room(transaction.extent.bytes + 64);
    let (mut shows, mut script) = (Vec::new(), false);
    let mut all = Written {
        keys: 0,
        part: watched,
    };
    draft.begin(1);
    draft.text(b"MULTI");
    for (_, call) in transaction.calls.iter() {
        let call = call.args();
        let found = table.find(&call);
        match found.filter(|found| found.way != Way::Here) {
            Some(command) => {
                shows.push(command.shows.clone());
                script |= command.way.scripts();
                // The engine may have been exchanged since it was queued.
                let written = command.write(&call, space, &mut draft);
                let written = written
                    .map_err(|why| format!("EXECABORT Transaction discarded because of: {why}"))?;
                all = all.and(written)?;
            }
            None => {
                shows.push(Shows::None);
                draft.begin(call.len());
                (0..call.len()).for_each(|at| draft.word(&call, at));
            }
        }
    }
    if script && watched.is_some() {
        return Err(WATCHED_SCRIPT.into());
    }
    draft.begin(1);
    draft.text(b"EXEC");
    let one = EncodedPart {
        part: Some(all.part.unwrap_or_default()),
        pieces: draft.pieces(),
        keys: None,
    };
    Ok(Encoded {
        spec,
        space: Arc::clone(space),
        parts: smallvec![one],
        gather: None,
        before: 1 + shows.len() as u32,
        requests: requests_of(all.keys.max(shows.len())),
        shows: match shows.iter().all(|shows| *shows == Shows::None) {
            true => Shows::None,
            false => Shows::Several(shows),
        },
        alone: watched.map(|_| Alone::Settles),
        script,
        every_node: false,
        slot: None,
    })
}

/// What is watched is by another link than those of scripts.
const WATCHED_SCRIPT: &str = "EXECABORT Transaction discarded because of: a script cannot be in a \
    transaction for which keys are watched, before an engine";

/// A tenant has as many connections of that kind as it may.
const CROWDED: &str =
    "ERR engine: as many clients wait, watch or have subscribed there as may (engine.waiting)";

impl Core {
    /// Sends a request on its way.
    pub(super) fn encode_request(
        &mut self,
        front: &mut Front,
        key: ConnectionKey,
        connection: &mut Connection,
        command: &'static Command,
        args: Args<'_>,
        used: &mut Used,
    ) -> Flow {
        let spec = command.spec;
        let Some(space) = front.space(&connection.tenant) else {
            let none = Err(NO_SPACE.into());
            return self.encoded(front, key, connection, spec, none, used);
        };
        if args.len() > TURN_WORDS_MAX {
            let (bytes, aware) = (args.len_bytes(), connection.client.aware);
            let args = args.to_owned();
            return self.encode_elsewhere(key, connection, spec, bytes, move || {
                let args = args.args();
                let encoded = encode(command, &args, &space)?;
                let slot = if aware { command.slot(&args) } else { None };
                Ok(Encoded { slot, ..encoded })
            });
        }
        used.words += args.len() as u64;
        let encoded = encode(command, &args, &space).and_then(|encoded| {
            let slot = || command.slot(&args);
            front.stays(connection, spec, slot, (&space, encoded.part()), self.now)?;
            Ok(encoded)
        });
        self.encoded(front, key, connection, spec, encoded, used)
    }

    /// Sends a transaction on its way.
    pub(super) fn encode_transaction(
        &mut self,
        front: &mut Front,
        key: ConnectionKey,
        connection: &mut Connection,
        spec: &'static Spec,
        transaction: Transaction,
        used: &mut Used,
    ) -> Flow {
        let Some(space) = front.space(&connection.tenant) else {
            let none = Err(NO_SPACE.into());
            return self.encoded(front, key, connection, spec, none, used);
        };
        let watched = connection.watching.as_ref().map(|watching| watching.part);
        let (table, words) = (front.table, transaction.extent.words);
        if words > TURN_WORDS_MAX {
            let bytes = transaction.extent.bytes;
            return self.encode_elsewhere(key, connection, spec, bytes, move || {
                encode_transaction(table, &transaction, spec, &space, watched)
            });
        }
        used.words += words as u64;
        let encoded = encode_transaction(table, &transaction, spec, &space, watched);
        self.encoded(front, key, connection, spec, encoded, used)
    }

    /// Has a request of many words written by a handler. It goes round the handler stage, where it
    /// would wait for the engine; it takes about as long as it took to receive the request. Nothing
    /// of the connection is out.
    fn encode_elsewhere(
        &mut self,
        key: ConnectionKey,
        connection: &mut Connection,
        spec: &'static Spec,
        bytes: usize,
        encode: impl FnOnce() -> Result<Encoded, Cow<'static, str>> + Send + 'static,
    ) -> Flow {
        connection.parked = Some(Parked::Handler(Away {
            bytes: bytes as u64,
            told: false,
        }));
        let (shared, mailbox) = (Arc::clone(&self.shared), self.mailbox().clone());
        let principal = connection.tenant.id;
        self.shared.engine.handlers().submit(Box::new(move || {
            let watch = Stopwatch::start(&shared);
            let encoded = encode();
            mailbox.send(Message::Spent(principal, watch.read(&shared).cpu_ns));
            let ready = Ready::Encoded(Box::new((spec, encoded)));
            mailbox.send(Message::Ready(key, ready));
        }));
        Flow::Stop
    }

    /// A handler has written a request.
    pub(in crate::core) fn encoded_elsewhere(
        &mut self,
        key: ConnectionKey,
        connection: &mut Connection,
        spec: &'static Spec,
        encoded: Result<Encoded, Cow<'static, str>>,
        used: &mut Used,
    ) {
        connection.parked = None;
        let Some(mut front) = self.front.take() else {
            return;
        };
        let encoded = encoded.and_then(|encoded| {
            let (slot, at) = (|| encoded.slot, (&*encoded.space, encoded.part()));
            front.stays(connection, spec, slot, at, self.now)?;
            Ok(encoded)
        });
        self.encoded(&mut front, key, connection, spec, encoded, used);
        self.front = Some(front);
    }

    /// A request was written, or cannot be sent.
    pub(super) fn encoded(
        &mut self,
        front: &mut Front,
        key: ConnectionKey,
        connection: &mut Connection,
        spec: &'static Spec,
        encoded: Result<Encoded, Cow<'static, str>>,
        used: &mut Used,
    ) -> Flow {
        let out = connection.outstanding();
        let sent = encoded.and_then(|encoded| {
            let (requests, level, alone) = (encoded.requests, encoded.level(), encoded.alone);
            let part = encoded.part();
            let forwards = front.forwards(key, connection, encoded)?;
            let place = match alone {
                Some(Alone::Waits) => Some(front.place_for(connection)?),
                Some(Alone::Watches) => {
                    front.begin_watch(connection, part, requests as usize)?;
                    None
                }
                Some(Alone::Settles | Alone::Subscribes) | None => None,
            };
            Ok((requests, level, alone, place, forwards))
        });
        match sent {
            Ok((requests, level, alone, place, mut forwards)) => {
                if alone.is_none() && connection.watching.is_none() {
                    self.let_replicas_read(front, connection, &mut forwards.1);
                }
                used.requests += requests;
                let flow = self.forward(front, connection, forwards, level);
                if let Some(outstanding) = connection.at_engine() {
                    let waits = place.is_some();
                    (outstanding.alone, outstanding.waits) = (alone, place);
                    if waits {
                        connection.client.blocks(true);
                    }
                }
                flow
            }
            Err(text) if out == 0 => {
                if matches!(spec.action, Action::Session(SessionCommand::Exec)) {
                    front.unwatch(connection);
                }
                self.told(connection, spec, |connection| {
                    refuse(connection, spec.class, &text, used)
                })
            }
            Err(_) => Flow::Again,
        }
    }
}

impl Front {
    /// A place among the connections of a tenant that have links to themselves.
    pub(super) fn place_for(&self, connection: &Connection) -> Result<WaitingPlace, &'static str> {
        let waits = &self.upstream.waits;
        waits.enter(connection.tenant.id).ok_or(CROWDED)
    }

    /// A request with the nodes that its parts are for.
    fn forwards(
        &self,
        key: ConnectionKey,
        connection: &Connection,
        encoded: Encoded,
    ) -> Result<Forwards, &'static str> {
        if encoded.every_node {
            return self.for_every_node(key, connection, encoded);
        }
        let Encoded {
            spec,
            space,
            shows,
            before,
            alone,
            script,
            ..
        } = encoded;
        let watching = connection.watching.as_ref();
        let link = watching.and_then(|watching| watching.link);
        let settles = link.filter(|_| alone == Some(Alone::Settles));
        let mut forwards = SmallVec::new();
        for part in encoded.parts {
            let node = match (settles, part.part) {
                (Some((place, _)), _) => Some(place),
                (None, Some(part)) => self.nodes.of(&space, part),
                (None, None) => self.nodes.serving().first().copied(),
            };
            let node = node.ok_or(NO_NODE)?;
            let its = Arc::clone(&space);
            forwards.push(Forward {
                before,
                alone,
                script,
                shows: shows.clone(),
                keys: part.keys,
                slot: part.part.map(|part| space.slot(part)),
                ..Forward::new(key, connection, its, spec, part.pieces, node)
            });
        }
        Ok((encoded.gather, forwards))
    }
}
