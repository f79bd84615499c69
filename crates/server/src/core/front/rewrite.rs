//! Replies that do not leave as they come: they show keys, are put together of those of several
//! partitions, or are a step of a walk. A core does that with short ones; with others a handler.

use std::sync::Arc;

use bytes::Bytes;
use front::{joined, Gather, Kept, Shows, Step};
use policy::Nanos;
use resp::{Output, Reply};

use super::claim::Claim;
use super::come::Come;
use super::Forward;
use crate::connection::Connection;
use crate::core::message::Message;
use crate::core::work::Stopwatch;
use crate::core::Core;
use crate::unit::TURN_WORDS_MAX;

/// A core rewrites replies of so many bytes itself, which show some thousand keys at most. To hand
/// one over takes about a tenth of the time.
const REWRITTEN_BYTES_MAX: usize = 16 << 10;

/// What a handler makes of a reply is in pieces of so many bytes, each of which a core frees in no
/// time.
const PIECE_BYTES: usize = 256 << 10;

/// What a walk asks next, and of the node at which place.
pub(super) type Asks = (usize, Vec<u8>);

/// A reply before it is rewritten.
enum Raw {
    /// One that shows keys, or is a step of a walk.
    One(Kept),
    /// Those of a request that was split.
    Parts(Gather),
}

/// A reply as a handler has made it.
pub struct Rewritten {
    forward: Forward,
    asks: Option<Asks>,
    output: Output,
    service_ns: Nanos,
    /// Memory for the reply as it came.
    claim: Claim,
}

impl Forward {
    /// Whether its reply leaves as it comes, but for an error's text.
    fn passes(&self) -> bool {
        self.walk.is_none() && self.shows == Shows::None
    }

    /// Keys that have a place in its reply, and bytes that are copied or may have to be moved.
    fn effort(&self, raw: &Raw) -> [usize; 2] {
        match raw {
            Raw::Parts(parts) => [parts.keys(), parts.copied()],
            Raw::One(reply) => {
                let held = self.walk.as_ref().map_or(0, |walk| walk.holds());
                [0, held.max(reply.iter().map(Bytes::len).sum())]
            }
        }
    }

    /// Appends to `out` what its client is sent, unless a walk goes on.
    fn rewrite(&mut self, raw: Raw, out: &mut Output) -> Option<Asks> {
        let reply = match raw {
            Raw::Parts(parts) => {
                parts.write(&self.space, out);
                return None;
            }
            Raw::One(reply) => joined(reply),
        };
        let Some(mut walk) = self.walk.take() else {
            self.shows.write(&reply, &self.space, out);
            return None;
        };
        match walk.step(&reply, &self.space) {
            Step::Ask(node, bytes) => {
                self.walk = Some(walk);
                return Some((node, bytes));
            }
            Step::Done => walk.reply(self.protocol, out),
            Step::Failed(text) => Reply::new(out, self.protocol).error(&text),
        }
        None
    }
}

impl Core {
    /// A reply has come for `connection`.
    pub(super) fn reply_on(
        &mut self,
        connection: &mut Connection,
        mut forward: Forward,
        come: Come<'_>,
        mut service_ns: Nanos,
        claim: Claim,
    ) {
        if forward.waits() {
            // What it waited for was not the engine.
            connection.tally.begin_now(self.now);
            service_ns = 0;
        }
        let Some(outstanding) = connection.at_engine() else {
            return;
        };
        let raw = match forward.keys.take() {
            Some(keys) => match outstanding.gather(forward.number, keys, come.kept()) {
                Some(parts) => Raw::Parts(parts),
                None => return connection.memory.charged += claim.hand_over(),
            },
            None if forward.passes() => {
                connection.memory.charged += claim.hand_over();
                return self.answer(connection, forward, service_ns, |forward, out| {
                    come.write(&forward.space, out);
                    None
                });
            }
            None => Raw::One(come.kept()),
        };
        let [keys, bytes] = forward.effort(&raw);
        if keys > TURN_WORDS_MAX || bytes > REWRITTEN_BYTES_MAX {
            return self.rewrite_elsewhere(connection, forward, raw, service_ns, claim);
        }
        self.shared.turns[self.id].note([keys as u64, bytes as u64, 0, 0]);
        connection.memory.charged += claim.hand_over();
        self.answer(connection, forward, service_ns, |forward, out| {
            forward.rewrite(raw, out)
        });
    }

    /// Has a handler make of a reply what is sent. It goes round the handler stage, where it would
    /// wait for the engine.
    fn rewrite_elsewhere(
        &self,
        connection: &Connection,
        mut forward: Forward,
        raw: Raw,
        service_ns: Nanos,
        claim: Claim,
    ) {
        let (shared, mailbox) = (Arc::clone(&self.shared), self.mailbox().clone());
        let principal = connection.tenant.id;
        self.shared.engine.handlers().submit(Box::new(move || {
            let watch = Stopwatch::start(&shared);
            let mut whole = Output::new();
            let asks = forward.rewrite(raw, &mut whole);
            let made = Rewritten {
                forward,
                asks,
                output: in_pieces(&whole),
                service_ns,
                claim,
            };
            mailbox.send(Message::Spent(principal, watch.read(&shared).cpu_ns));
            mailbox.send(Message::Rewritten(Box::new(made)));
        }));
    }

    /// A handler has made of a reply what is sent.
    pub(in crate::core) fn rewritten(&mut self, made: Box<Rewritten>) {
        let key = made.forward.key();
        let Some(mut connection) = self.places.lift(key) else {
            // Its client has gone. What was made for it may take long to free.
            let handlers = self.shared.engine.handlers();
            return handlers.submit(Box::new(move || drop(made)));
        };
        let Rewritten {
            forward,
            asks,
            output,
            service_ns,
            claim,
        } = *made;
        connection.memory.charged += claim.hand_over();
        self.answer(&mut connection, forward, service_ns, |_, out| {
            out.append(output);
            asks
        });
        self.places.back(key, connection);
    }
}

/// The same bytes, in pieces of memory of their own.
fn in_pieces(output: &Output) -> Output {
    let mut pieces = Output::new();
    for piece in output.to_vec().chunks(PIECE_BYTES) {
        pieces.write_bytes(Bytes::copy_from_slice(piece));
    }
    pieces
}
