//! What the engine sends: read, and cut into replies.

use mio::event::Event;
use policy::Nanos;
use resp::Protocol;

use super::link::Heard;
use super::reply::Answered;
use super::{Front, LINK_TOKENS};
use crate::core::Core;

/// Reads of one link between two looks at the others: a MiB.
const READS_MAX: usize = 16;

/// Room that is made ahead for a large reply.
const AHEAD_BYTES_MAX: usize = 1 << 30;

impl Core {
    /// The poll says something of what is no connection.
    pub(in crate::core) fn link_noticed(&mut self, event: &Event) {
        let Some(mut front) = self.front.take() else {
            return;
        };
        let number = event.token().0.checked_sub(LINK_TOKENS);
        let number = number.filter(|number| number / 2 < front.nodes.count());
        if let Some(number) = number {
            let (place, now) = (number / 2, self.now);
            let protocol = [Protocol::Resp2, Protocol::Resp3][number % 2];
            let link = front.nodes.link(place, protocol);
            if event.is_writable() {
                link.takes();
            }
            let ends = event.is_read_closed() || event.is_error();
            if event.is_readable() || ends {
                self.listen(&mut front, place, protocol, ends, now);
            }
        }
        self.front = Some(front);
    }

    /// Reads on where there was more than was read.
    pub(in crate::core) fn listen_on(&mut self, now: Nanos) {
        let Some(mut front) = self.front.take() else {
            return;
        };
        for place in 0..front.nodes.count() {
            for protocol in [Protocol::Resp2, Protocol::Resp3] {
                if front.nodes.link(place, protocol).unread {
                    self.listen(&mut front, place, protocol, true, now);
                }
            }
        }
        self.front = Some(front);
    }

    /// Reads what has come; `to_end`, until there is nothing more.
    fn listen(
        &mut self,
        front: &mut Front,
        place: usize,
        protocol: Protocol,
        to_end: bool,
        now: Nanos,
    ) {
        let mut scratch = std::mem::take(&mut self.wire.scratch);
        let mut answered = Vec::new();
        let link = front.nodes.link(place, protocol);
        let since = link
            .sent
            .front()
            .map_or(now, |first| first.at.max(link.heard));
        link.unread = false;
        let mut lost = None;
        for read in 0.. {
            let link = front.nodes.link(place, protocol);
            if read == READS_MAX {
                link.unread = true;
                self.agenda.mail_waits = true;
                break;
            }
            match link.read(&mut scratch) {
                Heard::Bytes(count) => {
                    link.heard = now;
                    let bytes = &scratch[..count];
                    let heard = self.hear_replies(front, place, protocol, bytes, &mut answered);
                    if let Err(why) = heard {
                        lost = Some(why);
                        break;
                    }
                    if count < scratch.len() && !to_end {
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
        self.settle_answered(front, place, answered, since, now);
        if let Some(why) = lost {
            self.lose(front, place, protocol, &why, now);
        }
    }

    /// Takes the replies out of what has come.
    fn hear_replies(
        &mut self,
        front: &mut Front,
        place: usize,
        protocol: Protocol,
        mut bytes: &[u8],
        answered: &mut Vec<Answered>,
    ) -> Result<(), String> {
        let gathered = !front.nodes.link(place, protocol).input.is_empty();
        if gathered {
            front
                .nodes
                .link(place, protocol)
                .input
                .extend_from_slice(bytes);
        }
        loop {
            let link = front.nodes.link(place, protocol);
            let there = if gathered { &link.input[..] } else { bytes };
            if there.is_empty() {
                return Ok(());
            }
            let Some(end) = link.scanner.end(there).map_err(|why| why.to_string())? else {
                if !gathered {
                    link.input.extend_from_slice(bytes);
                }
                let needs = link.scanner.needs().max(link.input.len());
                match self.may_hold(link, needs) {
                    true => {
                        let more = needs - link.input.len();
                        link.input.reserve(more.min(AHEAD_BYTES_MAX));
                    }
                    false => link.let_go(),
                }
                return Ok(());
            };
            if gathered {
                let reply = link.input.split_to(end).freeze();
                self.hear_reply(front, place, protocol, &reply, Some(&reply), answered)?;
            } else {
                let (reply, rest) = bytes.split_at(end);
                self.hear_reply(front, place, protocol, reply, None, answered)?;
                bytes = rest;
            }
        }
    }
}
