//! A connection's requests that are with an engine behind this server: their replies leave in the
//! order of the requests, in whatever order nodes of a cluster send them.

use std::collections::VecDeque;

use front::{Gather, Kept};
use resp::Output;
use smallvec::SmallVec;
use stage::Terms;

use super::Away;
use crate::tenants::{Ending, Unblocked};
use crate::upstream::WaitingPlace;

/// Why a request goes by a link to itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alone {
    /// The engine may keep its answer back until something comes (`BLPOP`).
    Waits,
    /// From then on the engine watches keys for its connection (`WATCH`).
    Watches,
    /// The last about what is watched (`EXEC`, `DISCARD`, `UNWATCH`).
    Settles,
    /// By the link by which its connection is sent what is published (`SUBSCRIBE`).
    Subscribes,
}

/// Requests that are out, or on their way there.
pub struct Outstanding {
    /// All of them together.
    pub away: Away,
    /// On what terms they wait before each node, all of them: those of the first. So none passes
    /// another, and the engine does them in their order.
    pub terms: Terms,
    /// They go by links of their own.
    pub own: bool,
    /// One of them may write.
    pub wrote: bool,
    /// One of them is read from a replica.
    pub at_replicas: bool,
    /// They are scripts.
    pub scripts: bool,
    /// The one that is out goes by a link to itself: none joins it.
    pub alone: Option<Alone>,
    /// It has a place among those that wait until something comes.
    pub waits: Option<WaitingPlace>,
    /// It is to wait no longer, of which the engine was told so often.
    pub unblocked: Option<(Unblocked, u32)>,
    /// The link by which they go to a node, by that node's place.
    links: SmallVec<[(usize, usize); 1]>,
    /// Numbers given to requests.
    begun: u32,
    /// Those whose replies lie in the connection's output: all before this one.
    done: u32,
    /// Replies that came before their turn, from the one behind `done` on.
    early: VecDeque<Option<Early>>,
    /// Requests that were split, by their number.
    gathers: Vec<(u32, Gather)>,
}

/// A reply before its turn.
pub struct Early {
    /// The reply.
    pub output: Output,
    /// How it ended.
    pub ending: Ending,
}

impl Outstanding {
    /// None yet; they will wait on these terms.
    pub fn none(terms: Terms) -> Self {
        Self {
            terms,
            away: Away {
                bytes: 0,
                told: false,
            },
            own: false,
            wrote: false,
            at_replicas: false,
            scripts: false,
            alone: None,
            waits: None,
            unblocked: None,
            links: SmallVec::new(),
            begun: 0,
            done: 0,
            early: VecDeque::new(),
            gathers: Vec::new(),
        }
    }

    /// Replies that are still to come, or come before their turn.
    pub fn replies(&self) -> u32 {
        self.begun - self.done
    }

    /// The link by which they go to the node at this place; the first of them chooses it.
    pub fn goes_by(&mut self, place: usize, choose: impl FnOnce() -> usize) -> usize {
        if let Some((_, link)) = self.links.iter().find(|(known, _)| *known == place) {
            return *link;
        }
        let link = choose();
        self.links.push((place, link));
        link
    }

    /// The one that is out, which waits, goes by this link to the node at this place.
    pub fn goes_alone_by(&mut self, place: usize, link: usize) {
        self.links.clear();
        self.links.push((place, link));
    }

    /// Where that is; none: it has not left, or none waits.
    pub fn goes_alone(&self) -> Option<(usize, usize)> {
        self.waits.as_ref().and(self.links.last().copied())
    }

    /// One more request, which may be in parts. Returns its number.
    pub fn begin(&mut self, gather: Option<Gather>) -> u32 {
        let number = self.begun;
        self.begun += 1;
        self.gathers.extend(gather.map(|gather| (number, gather)));
        number
    }

    /// A part of the request of this number was answered. Returns all that was gathered, if it was
    /// the last.
    pub fn gather(&mut self, number: u32, keys: Box<[u32]>, reply: Kept) -> Option<Gather> {
        let mut gathers = self.gathers.iter();
        let place = gathers.position(|(known, _)| *known == number)?;
        let whole = self.gathers[place].1.take(keys, reply);
        whole.then(|| self.gathers.swap_remove(place).1)
    }

    /// A part of the request of this number becomes two; one that is in one part so far is as
    /// `whole` makes it.
    pub fn halve(&mut self, number: u32, whole: impl FnOnce() -> Option<Gather>) {
        let mut gathers = self.gathers.iter_mut();
        match gathers.find(|(known, _)| *known == number) {
            Some((_, gather)) => gather.halved(),
            None => self.gathers.extend(whole().map(|mut whole| {
                whole.halved();
                (number, whole)
            })),
        }
    }

    /// True when the reply to the request of this number is the next that may leave.
    pub fn is_next(&self, number: u32) -> bool {
        number == self.done
    }

    /// Keeps a reply that is not the next.
    pub fn keep(&mut self, number: u32, early: Early) {
        let place = (number - self.done - 1) as usize;
        if self.early.len() <= place {
            self.early.resize_with(place + 1, || None);
        }
        self.early[place] = Some(early);
    }

    /// The next reply lies in the output. Returns the one behind it, if that has come: then it is
    /// the next.
    pub fn advance(&mut self) -> Option<Early> {
        self.done += 1;
        self.early.pop_front().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn early(text: &[u8]) -> Early {
        let mut output = Output::new();
        output.write(text);
        Early {
            output,
            ending: Ending::Done,
        }
    }

    #[test]
    fn replies_leave_in_the_order_of_requests() {
        // Each order in which four replies can come.
        for order in 0..24usize {
            let mut left: Vec<u32> = (0..4).collect();
            let come = [6, 2, 1, 1].iter().map(|step| {
                let place = order / step % left.len();
                left.remove(place)
            });
            let come: Vec<u32> = come.collect();
            let (mut outstanding, mut out) = (Outstanding::none(Terms::default()), Vec::new());
            for number in 0..4 {
                assert_eq!(outstanding.begin(None), number);
            }
            for number in come.iter().copied() {
                let text = number.to_string().into_bytes();
                if !outstanding.is_next(number) {
                    outstanding.keep(number, early(&text));
                    continue;
                }
                out.extend(text);
                while let Some(behind) = outstanding.advance() {
                    out.extend(behind.output.to_vec());
                }
            }
            assert_eq!(out, b"0123", "{come:?}");
            assert_eq!(outstanding.replies(), 0);
        }
    }
}
