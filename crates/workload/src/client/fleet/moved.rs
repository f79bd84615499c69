//! Requests that a front sends on to another one.

use std::net::SocketAddr;

use front::Elsewhere;

use crate::client::conn::{Completion, Kept, Whose};

/// A request whose home is another front than the one that was asked.
#[derive(Debug)]
pub(crate) struct Moved {
    /// Whose it is.
    pub(crate) whose: Whose,
    pub(crate) start_ns: u64,
    /// The request, sent on once more.
    pub(crate) kept: Kept,
    /// The hash slot of its key.
    pub(crate) slot: u16,
    /// `host:port` of its home.
    pub(crate) home: String,
}

impl Moved {
    /// `None`: it is answered, or it was not kept.
    pub(super) fn of(completion: &Completion<'_>, whose: Whose) -> Option<Self> {
        let error = completion.reply.error;
        if error.is_empty() {
            return None;
        }
        let mut kept = completion.kept?;
        let Elsewhere::Moved { slot, node } = Elsewhere::read(&[b"-", error].concat())? else {
            return None;
        };
        kept.moves += 1;
        Some(Self {
            whose,
            start_ns: completion.start_ns,
            kept,
            slot,
            home: at_host(node, whose.address),
        })
    }
}

/// A node that knows no host of the other's means its own.
fn at_host(node: String, from: SocketAddr) -> String {
    match node.strip_prefix(':') {
        Some(port) => format!("{}:{port}", front::bracketed(&from.ip().to_string())),
        None => node,
    }
}
