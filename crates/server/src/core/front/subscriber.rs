//! Links by which connections are sent what is published, and what has come by them.

use std::collections::HashMap;

use bytes::Bytes;
use front::{Elsewhere, Push, Space};
use mio::Token;
use policy::{Nanos, PrincipalId};
use resp::Protocol;
use stage::Permit;

use super::link::Link;
use super::Forward;
use crate::connection::Connection;
use crate::tenants::ConnectionKey;

/// Tokens of these links: behind them are the places of their node and of their connection.
const PUSH_TOKENS: usize = 1 << 50;
const NODE_SHIFT: u32 = 32;

/// Of a link: whose it is, and the place of its node.
pub(super) type PushLinkOf = (ConnectionKey, usize);

/// The links of a core's connections that have subscribed, by the places of both ends.
#[derive(Default)]
pub(super) struct Subscribers {
    links: HashMap<(u32, usize), Subscriber>,
}

/// One of them.
pub(super) struct Subscriber {
    pub(super) of: PushLinkOf,
    pub(super) link: Link,
    /// Why nothing more comes.
    pub(super) over: Option<String>,
    /// The turn at the engine of the request that is out.
    pub(super) turn: Option<Turn>,
    /// That request.
    pub(super) asked: Option<Forward>,
    /// Its node has not done it, and says that it belongs there.
    pub(super) elsewhere: Option<Elsewhere>,
}

/// A turn of a request about channels.
pub(super) struct Turn {
    pub(super) node: usize,
    pub(super) tenant: PrincipalId,
    pub(super) permit: Permit,
    /// What it is charged.
    pub(super) ns: Nanos,
}

impl Subscribers {
    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.links.len()
    }

    /// The link of a connection to a node; none: there is none.
    pub(super) fn find(&mut self, (key, node): PushLinkOf) -> Option<&mut Subscriber> {
        self.links.get_mut(&(key.index, node))
    }

    /// The link of a connection to a node, perhaps a new one.
    pub(super) fn enter(&mut self, (key, node): PushLinkOf, protocol: Protocol) -> &mut Subscriber {
        let links = self.links.entry((key.index, node));
        links.or_insert_with(|| {
            let token = Token(PUSH_TOKENS + (node << NODE_SHIFT) + key.index as usize);
            Subscriber {
                of: (key, node),
                link: Link::at(protocol, false, token),
                over: None,
                turn: None,
                asked: None,
                elsewhere: None,
            }
        })
    }

    /// A link is over.
    pub(super) fn remove(&mut self, (key, node): PushLinkOf) -> Option<Subscriber> {
        self.links.remove(&(key.index, node))
    }

    /// The link with a token; inside none: it has gone. None: it is the token of something else.
    pub(super) fn at(&mut self, token: Token) -> Option<Option<&mut Subscriber>> {
        let places = token.0.checked_sub(PUSH_TOKENS)?;
        let index = u32::try_from(places % (1 << NODE_SHIFT)).ok()?;
        Some(self.links.get_mut(&(index, places >> NODE_SHIFT)))
    }

    /// All of them.
    pub(super) fn all(&mut self) -> impl Iterator<Item = &mut Subscriber> {
        self.links.values_mut()
    }
}

impl Subscriber {
    /// Sends what there is to send.
    pub(super) fn flush(&mut self) {
        loop {
            match self.link.flush() {
                Ok(true) => {}
                Ok(false) => return,
                Err(why) => {
                    self.over = Some(why);
                    return;
                }
            }
        }
    }

    /// What there is with these bytes more.
    ///
    /// # Errors
    /// Why nothing more comes.
    pub(super) fn hear(&mut self, bytes: &[u8], space: &Space) -> Result<Vec<Came>, String> {
        let (link, mut came) = (&mut self.link, Vec::new());
        link.input.extend_from_slice(bytes);
        while !link.input.is_empty() {
            let end = link.scanner.end(&link.input);
            let Some(end) = end.map_err(|why| why.to_string())? else {
                link.keep();
                break;
            };
            let (pieces, _) = link.take_pieces();
            let rest = link.input.split_to(end).freeze();
            if link.greets() {
                link.greeted(&rest)?;
                continue;
            }
            let said = (self.asked.is_some()).then(|| Elsewhere::read(&rest));
            if let Some(elsewhere) = said.flatten() {
                self.elsewhere = Some(elsewhere);
                continue;
            }
            let push = Push::read(pieces.first().unwrap_or(&rest), space);
            came.push(Came { push, pieces, rest });
        }
        self.flush();
        Ok(came)
    }
}

/// Something that has come as a whole.
pub(super) struct Came {
    pub(super) push: Push,
    /// Its beginning, if it is long.
    pieces: Vec<Bytes>,
    rest: Bytes,
}

impl Came {
    /// Gives it to its connection: it has come from `node`.
    pub(super) fn take(self, node: usize, connection: &mut Connection) {
        let Some(pushes) = &mut connection.pushes else {
            return;
        };
        let out = &mut connection.output;
        match self.push {
            Push::Foreign | Push::Pong => {}
            Push::Counts { begin, to, count } => {
                let all = pushes.count(node, to, count);
                connection.client.subscribes(pushes.counts());
                out.write(&begin);
                out.write(format!(":{all}\r\n").as_bytes());
            }
            Push::Pass { begin, from } => {
                out.write(&begin);
                let mut from = from;
                for piece in self.pieces {
                    out.write_bytes(piece.slice(std::mem::take(&mut from)..));
                }
                out.write(&self.rest[from..]);
            }
        }
    }
}
