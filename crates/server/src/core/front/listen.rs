//! What the engine sends: read, and cut into replies.

use mio::event::Event;
use policy::Nanos;

use super::come::Come;
use super::link::{Heard, BYTES_AT_ONCE};
use super::links::LinkId;
use super::reply::Answered;
use super::sizes::LARGE_BYTES;
use super::{Front, LINK_TOKENS};
use crate::core::Core;

/// What comes in the end to who has waited is taken to have cost the engine so much at most.
const WAITED_NS: Nanos = 100_000;

impl Core {
    /// The poll says something of what is no connection.
    pub(in crate::core) fn link_noticed(&mut self, event: &Event) {
        let Some(mut front) = self.front.take() else {
            return;
        };
        if let Some(noticed) = self.subscriber_noticed(&mut front, event) {
            self.front = Some(front);
            if let Some((whose, last)) = noticed {
                self.may_take_pushes(whose, last);
            }
            return;
        }
        let id = event.token().0.checked_sub(LINK_TOKENS).map(LinkId::of);
        if let Some(id) = id.filter(|id| front.nodes.has(*id)) {
            let now = self.now;
            if event.is_writable() {
                front.nodes.link(id).takes();
                front.flush_later(id);
            }
            let ends = event.is_read_closed() || event.is_error();
            if event.is_readable() || ends {
                self.listen(&mut front, id, ends, now);
            }
        }
        self.front = Some(front);
    }

    /// Reads on where there was more than was read. True: there is more still.
    pub(in crate::core) fn listen_on(&mut self, now: Nanos) -> bool {
        let Some(mut front) = self.front.take() else {
            return false;
        };
        for id in std::mem::take(&mut front.reads) {
            if std::mem::take(&mut front.nodes.link(id).noted.read) {
                self.listen(&mut front, id, true, now);
            }
        }
        let more = !front.reads.is_empty();
        self.front = Some(front);
        more
    }

    /// Reads what has come; `to_end`, until there is nothing more.
    fn listen(&mut self, front: &mut Front, id: LinkId, to_end: bool, now: Nanos) {
        let mut scratch = std::mem::take(&mut self.wire.scratch);
        let mut answered = Vec::new();
        let heard = front.nodes.get(id.place).heard;
        let first = front.nodes.link(id).sent.front();
        let since = first.map_or(now, |first| first.at.max(heard));
        let since = match first.is_some_and(|first| first.forward.waits()) {
            // The engine did others' work meanwhile, or none.
            true => since.max(now.saturating_sub(WAITED_NS)),
            false => since,
        };
        let (mut lost, mut left) = (None, BYTES_AT_ONCE);
        loop {
            if left == 0 {
                front.read_later(id);
                break;
            }
            match front.nodes.link(id).read(&mut scratch) {
                Heard::Bytes { count, last } => {
                    front.nodes.link(id).heard = now;
                    front.nodes.get_mut(id.place).heard = now;
                    left = left.saturating_sub(count);
                    let bytes = &scratch[..count];
                    if let Err(why) = self.hear_replies(front, id, bytes, &mut answered) {
                        lost = Some(why);
                        break;
                    }
                    if last && !to_end {
                        break;
                    }
                }
                Heard::Nothing => break,
                Heard::Lost(why) => {
                    lost = Some(why);
                    break;
                }
            }
        }
        self.wire.scratch = scratch;
        let read = BYTES_AT_ONCE.saturating_sub(left) as u64;
        self.shared.turns[self.id].note([0, read, 0, 0]);
        if answered.is_empty() {
            if let Some(first) = front.nodes.link(id).sent.front_mut() {
                first.took += now.saturating_sub(since);
            }
        }
        self.settle_answered(front, id.place, answered, since, now);
        if let Some(why) = lost {
            self.lose(front, id, &why, now);
        }
    }

    /// Takes the replies out of what has come.
    fn hear_replies(
        &mut self,
        front: &mut Front,
        id: LinkId,
        mut bytes: &[u8],
        answered: &mut Vec<Answered>,
    ) -> Result<(), String> {
        let link = front.nodes.link(id);
        let gathered = !link.input.is_empty();
        if gathered {
            link.input.extend_from_slice(bytes);
        }
        loop {
            let link = front.nodes.link(id);
            let there = if gathered { &link.input[..] } else { bytes };
            if there.is_empty() {
                return Ok(());
            }
            let Some(end) = link.scanner.end(there).map_err(|why| why.to_string())? else {
                if !gathered {
                    link.input.extend_from_slice(bytes);
                }
                self.wait_for_more(front, id);
                return Ok(());
            };
            let (mut pieces, _) = link.take_pieces();
            if gathered {
                let reply = link.input.split_to(end).freeze();
                let is_error = pieces.is_empty() && reply.first() == Some(&b'-');
                let come = match reply.len() >= LARGE_BYTES && !is_error {
                    true => {
                        pieces.push(reply);
                        Come { pieces, rest: b"" }
                    }
                    false => Come {
                        pieces,
                        rest: &reply,
                    },
                };
                self.hear_reply(front, id, come, answered)?;
            } else {
                let (rest, behind) = bytes.split_at(end);
                self.hear_reply(front, id, Come { pieces, rest }, answered)?;
                bytes = behind;
            }
        }
    }

    /// The beginning of a reply has come.
    fn wait_for_more(&mut self, front: &mut Front, id: LinkId) {
        let link = front.nodes.link(id);
        let needs = link.needs();
        match self.may_hold(link, needs) {
            true => link.keep(),
            false => {
                let pieces = link.let_go();
                self.free_pieces(pieces);
            }
        }
        let Some(first) = link.sent.front_mut().filter(|first| !first.large) else {
            return;
        };
        let whose = first.forward.whose;
        if front.sizes.note(whose, needs, self.now) {
            first.large = true;
            let links = front.nodes.links(id.place, id.protocol);
            if links.set_apart(id.index, whose, self.now) {
                front.upstream.links.turned();
            }
        }
    }
}
