//! The clients of one load, which take turns.
//!
//! A client is a connection. One that knows of a cluster is a row of connections, one to each front
//! that its map names, and each request goes to the home of its key.

use std::net::SocketAddr;

use super::conn::{Kept, Status, Whose};
use super::fleet::{Fleet, Moved, Observer};
use super::map::Map;
use super::plan::Manners;
use crate::draw::{Class, Draw};
use crate::encode::{self, KeyText};
use crate::error::WorkloadError;
use crate::stats::{MOVED, UNSENT};

/// A request that was sent on so often has no home.
const MOVES_MAX: u32 = 16;

pub(crate) struct Clients {
    /// Their load's place among the streams.
    stream: usize,
    manners: Manners,
    /// `None`: each server has all keys.
    map: Option<Map>,
    /// Connections, row by row.
    tokens: Vec<usize>,
    /// How many a row has: as many as the map has fronts, or one.
    width: usize,
    /// Where the row begins whose turn it is.
    turn: usize,
}

impl Clients {
    /// Nobody yet.
    pub(crate) fn new(stream: usize, map: Option<Map>) -> Self {
        Self {
            stream,
            manners: Manners::default(),
            width: map.as_ref().map_or(1, |map| map.fronts().len()),
            map,
            tokens: Vec::new(),
            turn: 0,
        }
    }

    /// Every connection.
    pub(crate) fn tokens(&self) -> &[usize] {
        &self.tokens
    }

    /// Where they may ask for a map.
    pub(crate) fn fronts(&self) -> &[SocketAddr] {
        self.map.as_ref().map_or(&[], Map::fronts)
    }

    /// Becomes `count` clients of these manners; those who have them stay. `wait`:
    /// connects one after the other.
    pub(crate) fn resize(
        &mut self,
        count: usize,
        manners: Manners,
        wait: bool,
        fleet: &mut Fleet,
        observer: &mut impl Observer,
    ) -> Result<(), WorkloadError> {
        let there = self.tokens.len() / self.width;
        let kept = if manners == self.manners {
            count.min(there)
        } else {
            0
        };
        for token in self.tokens.drain(kept * self.width..) {
            fleet.leave(token);
        }
        (self.manners, self.turn) = (manners, 0);
        for client in kept..count {
            for place in 0..self.width {
                let whose = self.whose(client, place, fleet);
                let token = match wait {
                    true => fleet.open(whose, manners)?,
                    false => fleet.open_soon(whose, manners, observer)?,
                };
                self.tokens.push(token);
            }
        }
        // A closed loop goes on at once where the clients that it keeps are idle.
        self.tokens[..kept * self.width]
            .iter()
            .for_each(|token| fleet.look_at(*token));
        Ok(())
    }

    fn whose(&self, client: usize, place: usize, fleet: &Fleet) -> Whose {
        let front = self.fronts().get(place).copied();
        // Loads of one connection each do not all begin at the same server.
        let without_map = || fleet.goal().of_client(self.stream + client);
        Whose {
            stream: self.stream,
            client,
            address: front.unwrap_or_else(without_map),
        }
    }

    /// The connections of the client that `token` is of, if it waits for nothing and can ask all of
    /// them.
    pub(crate) fn idle<'a>(&'a self, token: &'a usize, fleet: &Fleet) -> Option<&'a [usize]> {
        let conn = fleet.find(*token).filter(|conn| conn.idle())?;
        if self.map.is_none() {
            return Some(std::slice::from_ref(token));
        }
        let row = &self.tokens[conn.whose.client * self.width..][..self.width];
        let idle = |token: &usize| fleet.conn(*token).idle();
        row.iter().all(idle).then_some(row)
    }

    /// Where in a row the connection is to the home of this key.
    pub(crate) fn place(&self, class: Class, keys: &[u64], text: KeyText) -> usize {
        let slot = || encode::slot(class, keys[0], text);
        self.map.as_ref().map_or(0, |map| map.home(slot()))
    }

    /// The connection of the next client in turn that `takes` a request, to the front at this
    /// place; `None`: no client can take one there.
    pub(crate) fn next(
        &mut self,
        place: usize,
        mut takes: impl FnMut(usize) -> bool,
    ) -> Option<usize> {
        let first = self.turn;
        loop {
            let token = *self.tokens.get(self.turn + place)?;
            self.turn += self.width;
            if self.turn == self.tokens.len() {
                self.turn = 0;
            }
            if takes(token) {
                return Some(token);
            }
            if self.turn == first {
                return None;
            }
        }
    }

    /// Queues a request on a connection of [`Clients::place`]. Returns its length, bytes.
    pub(crate) fn send(
        &self,
        token: usize,
        draw: Draw,
        keys: &[u64],
        text: KeyText,
        start_ns: u64,
        fleet: &mut Fleet,
    ) -> u64 {
        let bytes = fleet.push(token, draw.class, start_ns, |out| {
            encode::request(out, draw, keys, text);
        });
        if self.map.is_some() {
            let (key, moves) = (keys[0], 0);
            fleet.keep(
                token,
                Kept {
                    draw,
                    key,
                    text,
                    moves,
                },
            );
        }
        bytes
    }

    /// Sends a request again, to the front that is said to be the home of its key. `Some`: what it
    /// fails as.
    pub(crate) fn follow(
        &mut self,
        moved: Moved,
        fleet: &mut Fleet,
        observer: &mut impl Observer,
    ) -> Result<Option<&'static str>, WorkloadError> {
        let Moved {
            whose,
            start_ns,
            kept,
            slot,
            home,
        } = moved;
        let fronts = self.fronts().to_vec();
        let mended = self.map.as_mut().and_then(|map| map.mend(slot, &home).ok());
        let Some(place) = mended.filter(|_| kept.moves < MOVES_MAX) else {
            return Ok(Some(MOVED));
        };
        self.arrange(&fronts, fleet, observer)?;
        let row = self.tokens.get(whose.client * self.width + place);
        let (token, stays) = match row {
            Some(token) => (*token, true),
            // Its client has left, and waits for this reply only.
            None => {
                let whose = self.whose(whose.client, place, fleet);
                (fleet.open_soon(whose, self.manners, observer)?, false)
            }
        };
        let there = fleet.conn(token).status == Status::Up;
        if there {
            let Kept {
                draw, key, text, ..
            } = kept;
            fleet.push(token, draw.class, start_ns, |out| {
                encode::request(out, draw, &[key], text);
            });
            fleet.keep(token, kept);
        }
        if !stays {
            fleet.leave(token);
        }
        Ok((!there).then_some(UNSENT))
    }

    /// Goes by this map from now on.
    pub(crate) fn learn(
        &mut self,
        map: Map,
        fleet: &mut Fleet,
        observer: &mut impl Observer,
    ) -> Result<(), WorkloadError> {
        let fronts = self.fronts().to_vec();
        self.map = Some(map);
        self.arrange(&fronts, fleet, observer)?;
        for token in &self.tokens {
            fleet.revive(*token, observer);
        }
        Ok(())
    }

    /// Has rows for the fronts of the map that were rows for `before`.
    fn arrange(
        &mut self,
        before: &[SocketAddr],
        fleet: &mut Fleet,
        observer: &mut impl Observer,
    ) -> Result<(), WorkloadError> {
        let fronts = self.fronts().to_vec();
        if fronts == before {
            return Ok(());
        }
        let rows = std::mem::take(&mut self.tokens);
        for (client, row) in rows.chunks(self.width).enumerate() {
            for (place, front) in fronts.iter().enumerate() {
                let known = before.iter().position(|known| known == front);
                let token = match known {
                    Some(place) => row[place],
                    None => {
                        let whose = self.whose(client, place, fleet);
                        fleet.open_soon(whose, self.manners, observer)?
                    }
                };
                self.tokens.push(token);
            }
            for (token, front) in row.iter().zip(before) {
                if !fronts.contains(front) {
                    fleet.leave(*token);
                }
            }
        }
        (self.width, self.turn) = (fronts.len(), 0);
        // Who waited for a front that has gone waits no longer.
        self.tokens.iter().for_each(|token| fleet.look_at(*token));
        Ok(())
    }
}
