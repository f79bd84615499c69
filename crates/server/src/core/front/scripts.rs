//! Scripts: each goes as its tenant's own user of the engine ([`ScriptUser`]), by links of that
//! user's only, together with other scripts of its connection.
//!
//! What a script answers, also with an error, is its tenant's word and not the engine's. Nothing
//! is learnt from it that concerns others.

use std::sync::Arc;

use front::{Command, Elsewhere, Gather, ScriptUser, Way};
use policy::PrincipalId;

use super::link::Link;
use super::links::LinkId;
use super::request::NO_NODE;
use super::{Forward, Forwards, Front};
use crate::connection::{Connection, Encoded};
use crate::core::Core;
use crate::tenants::ConnectionKey;

/// Each tenant's scripts have a connection of their own.
pub(super) const SCRIPTS_CROWDED: &str =
    "ERR engine: as many tenants as may have scripts there at a time; nothing was done";

/// A node that has been in a script for too long begins every answer so.
const BUSY: &[u8] = b"-BUSY ";

/// What the engine says in the end of a script that it was told to end.
const KILLED: &[u8] = b"Script killed by user with SCRIPT KILL";

/// A longer error is no word of the engine's, but a script's.
const WORD_BYTES_MAX: usize = 1 << 10;

/// Who may run scripts is for the operator to say.
const NOT_ALLOWED: &str = "its tenant has no `scripts = true` in the server's configuration (a \
    script that does not end stops the engine for all)";

impl Core {
    /// Why a command of a connection is not run; none: it may be.
    pub(super) fn refuses(
        &self,
        connection: &Connection,
        command: &Command,
    ) -> Option<&'static str> {
        match command.way {
            Way::Refused(why) => Some(why),
            way if way.scripts() && !self.principals.may_script(connection.tenant.id) => {
                Some(NOT_ALLOWED)
            }
            _ => None,
        }
    }

    /// The link by which a script goes; none: none may be opened for it.
    pub(super) fn link_for_script(&self, front: &mut Front, forward: &Forward) -> Option<LinkId> {
        let (place, protocol, tenant) = (forward.node, forward.protocol, forward.whose.0);
        let name = self.principals.name(tenant)?;
        let (table, upstream) = (front.table, Arc::clone(&front.upstream));
        let user = || {
            let password = upstream.options.password_of(&name);
            ScriptUser::new(&name, &forward.space, table, password)
        };
        let index = front
            .nodes
            .links(place, protocol)
            .for_script(tenant, user)?;
        Some(LinkId {
            place,
            protocol,
            index,
        })
    }

    /// A node has answered. If it says that it is busy with a script, it is told to end that; and
    /// if a script was ended, the log tells whose.
    pub(super) fn hear_of_scripts(&self, front: &mut Front, id: LinkId, reply: &[u8]) {
        if reply.first() != Some(&b'-') || reply.len() > WORD_BYTES_MAX {
            return;
        }
        let (place, link) = (id.place, front.nodes.link(id));
        let whose = link
            .acts_for()
            .and_then(|tenant| self.principals.name(tenant));
        if let Some(tenant) =
            whose.filter(|_| reply.windows(KILLED.len()).any(|part| part == KILLED))
        {
            tracing::warn!(
                tenant,
                "a script of this tenant ran for too long, and was ended"
            );
        }
        if !reply.starts_with(BUSY) {
            return;
        }
        let tenants = front.nodes.script_tenants(place).into_iter();
        let names = tenants.filter_map(|tenant| self.principals.name(tenant));
        // Who administers the engine may have scripts there, too.
        let may = || self.shared.tenants.run_scripts();
        let node = front.nodes.get(place).name();
        front.upstream.is_busy(node, names.collect(), self.now, may);
    }
}

impl Link {
    /// What is to be said of it when it is down.
    pub(super) fn away(&self) -> &'static str {
        match self.user {
            Some(_) => "no script can be run there",
            None => "it is away",
        }
    }

    /// Of scripts: for whom it goes.
    pub(super) fn acts_for(&self) -> Option<PrincipalId> {
        self.user.as_ref().map(|(tenant, _)| *tenant)
    }
}

impl Front {
    /// A request for every node.
    pub(super) fn for_every_node(
        &self,
        key: ConnectionKey,
        connection: &Connection,
        encoded: Encoded,
    ) -> Result<Forwards, &'static str> {
        let nodes = match encoded.script {
            true => self.nodes.serving().to_vec(),
            false => self.with_parts(connection, &encoded.space),
        };
        let part = encoded.parts.first();
        let part = part.filter(|_| !nodes.is_empty()).ok_or(NO_NODE)?;
        let forwards = nodes.iter().map(|node| {
            let space = Arc::clone(&encoded.space);
            let pieces = part.pieces.clone();
            Forward {
                script: encoded.script,
                keys: Some(Box::default()),
                ..Forward::new(key, connection, space, encoded.spec, pieces, *node)
            }
        });
        let gather = Gather::every_node(encoded.spec, nodes.len());
        Ok((Some(gather), forwards.collect()))
    }
}

/// Where a script is sent on to that a node did not run, or that says so itself: to a node that is
/// known, and nobody else's way changes. None: it is tried again after the next look.
pub(super) fn script_to(
    front: &mut Front,
    forward: &mut Forward,
    said: Elsewhere,
) -> Option<usize> {
    let to = match said {
        Elsewhere::Ask { node } => {
            let name = front.nodes.full_name(&node, forward.node);
            front.nodes.known(&name)
        }
        _ => {
            // Not each time: that would be somebody's way to keep the lookout busy.
            if forward.hops.is_power_of_two() {
                front.upstream.look_soon();
            }
            None
        }
    };
    forward.asking = to.is_some();
    to
}
