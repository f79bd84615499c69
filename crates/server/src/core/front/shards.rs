//! Channels of shards (`SSUBSCRIBE`): each lies in a partition, so that what is published there
//! comes by the node that has it. A slot that moves away takes its channels with it: the engine
//! ends the subscriptions there (`sunsubscribe`), and its clients begin them anew.

use commands::Spec;
use front::Elsewhere;
use resp::{Args, Reply};

use super::{Forward, Front};
use crate::connection::{Asks, Connection};
use crate::core::answer::{answered, reply_of, Before};
use crate::core::command::Flow;
use crate::core::{Core, Used};
use crate::upstream::WaitingPlace;

impl Front {
    /// The place of a link that a connection may need to be sent what is published at a node; no
    /// node: it is not known yet at which. None: there is a link.
    ///
    /// # Errors
    /// The text of an error: there are as many as may be.
    pub(super) fn place_of_link(
        &self,
        connection: &Connection,
        node: Option<usize>,
    ) -> Result<Option<WaitingPlace>, &'static str> {
        let pushes = connection.pushes.as_ref();
        match pushes
            .zip(node)
            .is_some_and(|(pushes, node)| pushes.has(node))
        {
            true => Ok(None),
            false => self.place_for(connection).map(Some),
        }
    }
}

/// Answers a question about channels of shards where there are none.
pub(super) fn no_channels(
    connection: &mut Connection,
    spec: &Spec,
    args: &Args<'_>,
    used: &mut Used,
) -> Flow {
    let before = Before::of(connection);
    let named = spec.name == "pubsub|shardnumsub";
    let channels = if named { args.len() - 2 } else { 0 };
    let mut reply: Reply<'_> = reply_of(connection);
    reply.array(2 * channels);
    for at in 2..2 + channels {
        reply.bulk(args.get(at));
        reply.int(0);
    }
    answered(connection, spec.class, 1, before, 0, used)
}

impl Core {
    /// A node has answered a request about channels, that it belongs `elsewhere`, or that it is
    /// done. True: more is to come, for the request has gone on to another node.
    ///
    /// # Errors
    /// The text of an error: it cannot be done.
    pub(super) fn goes_on_elsewhere(
        &mut self,
        front: &mut Front,
        connection: &mut Connection,
        mut forward: Forward,
        elsewhere: Option<Elsewhere>,
    ) -> Result<bool, String> {
        let now = self.now;
        let to = match elsewhere {
            Some(elsewhere) => self.goes_to(front, &mut forward, elsewhere, now)?,
            None => {
                // `SUNSUBSCRIBE` of all ends them node by node.
                let all = forward.spec.name == "sunsubscribe" && forward.slot.is_none();
                let pushes = connection.pushes.as_ref().filter(|_| all);
                match pushes.and_then(|pushes| pushes.sharded_at()) {
                    Some(node) if node != forward.node => Some(node),
                    _ => return Ok(false),
                }
            }
        };
        let link = front.place_of_link(connection, to)?;
        let Some(pushes) = &mut connection.pushes else {
            return Ok(false);
        };
        let asked_at = pushes.asked_at().unwrap_or(now);
        let asks = Asks {
            link,
            ..Asks::default()
        };
        pushes.ask(asks, asked_at);
        match to {
            Some(place) => {
                forward.node = place;
                match self.line_up(connection, forward) {
                    Some(_) => Err("ERR engine: too many requests wait for it".into()),
                    None => Ok(true),
                }
            }
            None => {
                self.try_later(front, forward, now);
                Ok(true)
            }
        }
    }
}
