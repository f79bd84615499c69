//! Commands on all keys of a tenant, a step at a time.

use front::{scan, Asked, Command, Shows, Walk, Walker};
use resp::{Args, Output, Reply};
use smallvec::smallvec;

use super::aware::nothing;
use super::request::{NO_NODE, NO_SPACE};
use super::rewrite::Asks;
use super::{Forward, Front};
use crate::connection::Connection;
use crate::core::answer::refuse;
use crate::core::command::Flow;
use crate::core::{Core, Used};
use crate::data::random;
use crate::tenants::ConnectionKey;

impl Core {
    /// Begins a command on all keys of the connection's tenant.
    #[allow(clippy::too_many_arguments)] // as the others that a request goes through
    pub(super) fn begin_walk(
        &mut self,
        front: &mut Front,
        key: ConnectionKey,
        connection: &mut Connection,
        command: &Command,
        walk: Walk,
        args: Args<'_>,
        used: &mut Used,
    ) -> Flow {
        let spec = command.spec;
        let bytes_max = usize::try_from(self.shared.options.work_bytes_max).unwrap_or(usize::MAX);
        let mut nodes = front.walked(connection);
        if let (Walk::Random, Some(space)) = (walk, front.space(&connection.tenant)) {
            nodes = front.with_parts(connection, &space);
        }
        let asks_here = connection.client.aware && !front.nodes.serving().is_empty();
        let begun = front.space(&connection.tenant).ok_or(NO_SPACE);
        let begun = begun.and_then(|space| {
            let (shows, walk, node, bytes) = match walk {
                _ if nodes.is_empty() && asks_here => return Ok(None),
                Walk::Scan => {
                    let mut bytes = Vec::new();
                    let parts = front.lying(connection, &space);
                    match scan(&args, &space, parts.as_deref(), NO_NODE, &mut bytes)? {
                        Asked::Node(node, shows) => (shows, None, node, bytes),
                        Asked::Nothing => return Ok(None),
                    }
                }
                _ => {
                    let begun =
                        Walker::begin(walk, &args, &space, nodes, bytes_max, random::any())?;
                    let (walker, node, bytes) = begun;
                    (Shows::None, Some(Box::new(walker)), node, bytes)
                }
            };
            let pieces = smallvec![bytes.into()];
            let forward = Forward::new(key, connection, space, spec, pieces, node);
            Ok(Some(Forward {
                shows,
                walk,
                ..forward
            }))
        });
        match begun {
            Ok(None) => self.told(connection, spec, |connection| {
                let protocol = connection.session.state.protocol;
                nothing(walk, Reply::new(&mut connection.output, protocol));
                Flow::Next
            }),
            Ok(Some(forward)) => {
                used.requests += 1;
                // A walk is long, its steps are not.
                self.forward(front, connection, (None, smallvec![forward]), 0)
            }
            Err(text) => self.told(connection, spec, |connection| {
                refuse(connection, spec.class, text, used)
            }),
        }
    }

    /// A walk goes on. If it cannot, the client is told on `out`, and it is over.
    pub(super) fn walk_on(
        &mut self,
        connection: &Connection,
        forward: Forward,
        (node, bytes): Asks,
        out: &mut Output,
    ) -> Option<Forward> {
        let again = Forward {
            node,
            pieces: smallvec![bytes.into()],
            asking: false,
            hops: 0,
            tries: 0,
            ..forward
        };
        // The place that its last step had may have been taken meanwhile.
        let forward = self.line_up(connection, again)?;
        Reply::new(out, forward.protocol).error("ERR engine: too many requests wait for it");
        Some(forward)
    }
}
