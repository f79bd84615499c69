//! Before an engine of its own: what stands in the place of handlers and databases when the data is
//! kept by a Redis or Valkey.
//!
//! ```text
//!  turn: parse, mark keys ─▶ [ handler stage ] ─▶ link: one connection for all ─▶ engine
//!                               by share            replies in the order of requests
//! ```
//!
//! Few requests are out at the engine, which serves them as they come: what waits, waits in the
//! stage, where shares decide. How many may be out follows from what the engine makes of more
//! ([`policy::depth`]).
//!
//! A connection's requests of one turn are out together. It is parked until all are answered, so
//! that its replies come in order, and what the front answers itself comes between none of them.

mod link;
mod reply;
mod request;
mod walk;

use std::net::SocketAddr;
use std::sync::Arc;

use front::{Shows, Space, Table, Walker};
use mio::Token;
use policy::cost::device::Vop;
use policy::depth::{Depth, Slice};
use policy::{Nanos, PrincipalId};
use resp::Protocol;
use stage::{DispatchOptions, Meter, Permit};

use super::Core;
use crate::connection::Connection;
use crate::shared::Shared;
use crate::tenants::{ConnectionKey, Tenant};
use crate::upstream::Upstream;
use link::Link;

/// Connections have smaller tokens: their place.
const LINK_TOKENS: usize = u32::MAX as usize - 16;

/// Requests that may be out at the engine, of each core, at the start.
const OUT_AT_START: u32 = 32;
/// And at least: with fewer, replies are too few to be read together.
const OUT_LEAST: u32 = 8;

/// Replies after which it is judged how many requests may be out.
const SLICE_REPLIES: u32 = 512;

/// What one request is charged at most.
const CHARGE_MAX_NS: Nanos = 10_000_000_000;

/// A request on its way to the engine.
pub struct Forward {
    key: ConnectionKey,
    tenant: PrincipalId,
    space: Arc<Space>,
    spec: &'static commands::Spec,
    protocol: Protocol,
    bytes: Vec<u8>,
    /// Replies before the one that counts: of a transaction.
    before: u32,
    shows: Shows,
    /// The walk of which it is a step.
    walk: Option<Box<Walker>>,
}

impl Forward {
    /// One request of a connection: its one reply is passed on as it comes.
    fn new(
        key: ConnectionKey,
        connection: &Connection,
        space: Arc<Space>,
        spec: &'static commands::Spec,
        bytes: Vec<u8>,
    ) -> Self {
        Self {
            key,
            tenant: connection.tenant.id,
            space,
            spec,
            protocol: connection.session.state.protocol,
            bytes,
            before: 0,
            shows: Shows::None,
            walk: None,
        }
    }

    /// Whose it is.
    pub(super) fn key(&self) -> ConnectionKey {
        self.key
    }
}

/// A request that is out.
struct Sent {
    forward: Forward,
    permit: Permit,
    /// Where it began among the bytes of its link.
    start: u64,
    at: Nanos,
    /// Bytes of the request.
    len: usize,
}

/// One core's side of the engine.
pub struct Front {
    upstream: Arc<Upstream>,
    /// Where it is.
    at: SocketAddr,
    /// Its commands.
    table: &'static Table,
    /// One for each protocol: replies are passed on as they are.
    links: [Link; 2],
    /// By principal.
    spaces: Vec<Option<Arc<Space>>>,
    depth: Depth,
    slice: Work,
}

/// What the engine did in the slice of time that has begun.
#[derive(Clone, Copy)]
struct Work {
    since: Nanos,
    replies: u32,
    /// Requests waited for a permit all the time.
    limited: bool,
}

impl Work {
    fn from(since: Nanos) -> Self {
        Self {
            since,
            replies: 0,
            limited: true,
        }
    }
}

impl Front {
    /// Without a connection yet; none: data is kept here.
    pub fn new(shared: &Shared, now: Nanos) -> Option<Box<Self>> {
        let upstream = Arc::clone(shared.upstream.as_ref()?);
        let links = [Protocol::Resp2, Protocol::Resp3];
        let links = links.map(|protocol| {
            let token = Token(LINK_TOKENS + protocol.version() as usize);
            Link::new(protocol, token)
        });
        let found = upstream.found();
        Some(Box::new(Self {
            at: found.at,
            table: found.table,
            links,
            spaces: Vec::new(),
            depth: Depth::new(OUT_AT_START, OUT_LEAST),
            slice: Work::from(now),
            upstream,
        }))
    }

    fn link(&mut self, protocol: Protocol) -> &mut Link {
        &mut self.links[usize::from(protocol == Protocol::Resp3)]
    }

    fn space(&mut self, tenant: &Tenant) -> Arc<Space> {
        let index = tenant.id.index();
        if self.spaces.len() <= index {
            self.spaces.resize(index + 1, None);
        }
        let unmarked = self.upstream.options.unmarked.as_ref();
        let space = self.spaces[index].get_or_insert_with(|| {
            Arc::new(match unmarked == Some(&tenant.name) {
                true => Space::unmarked(),
                false => Space::of(&tenant.name),
            })
        });
        Arc::clone(space)
    }
}

/// The stage before the engine: its one resource is the engine's time.
pub fn engine_stage() -> DispatchOptions<1> {
    let meter = Meter {
        requests: 0,
        bytes: [false],
    };
    DispatchOptions {
        permits: OUT_AT_START,
        extra_permits: OUT_AT_START,
        charge_max_ns: CHARGE_MAX_NS,
        ..DispatchOptions::new([1_000_000_000], meter)
    }
}

impl Core {
    /// The engine may have other commands, or be elsewhere.
    pub(super) fn engine_changed(&mut self) {
        if let Some(front) = &mut self.front {
            let found = front.upstream.found();
            (front.at, front.table) = (found.at, found.table);
        }
    }

    /// So many replies have come. How many requests may be out follows from how fast they come with
    /// more and with fewer.
    fn replied(&mut self, front: &mut Front, replies: u32, now: Nanos) {
        let work = &mut front.slice;
        work.limited &= self.handlers.queued() > 0;
        work.replies += replies;
        if work.replies < SLICE_REPLIES {
            return;
        }
        let step = front.depth.step(&Slice {
            done: Vop::new(f64::from(work.replies)),
            ns: now.saturating_sub(work.since),
            limited: work.limited,
        });
        if step.permits != self.handlers.permits() {
            self.handlers.set_permits(step.permits);
        }
        front.slice = Work::from(now);
    }

    /// Once a second: an engine that says nothing is not waited for for ever.
    pub(super) fn look_at_links(&mut self, now: Nanos) {
        let Some(mut front) = self.front.take() else {
            return;
        };
        let patience = front.upstream.options.patience;
        let patience_ns = patience.as_nanos() as Nanos;
        for protocol in [Protocol::Resp2, Protocol::Resp3] {
            let link = front.link(protocol);
            if link.waited_ns(now) > patience_ns {
                let why = format!("it has said nothing for {} s", patience.as_secs());
                self.lose(&mut front, protocol, &why, now);
            }
        }
        self.front = Some(front);
    }
}
