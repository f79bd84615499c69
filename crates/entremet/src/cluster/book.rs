//! What is written down at the cluster: how many partitions tenants have, which fronts there are
//! and what they are asked for, moves that were begun, and who places partitions.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::thread;
use std::time::{Duration, Instant};

use front::{
    slot, Demand, Elsewhere, Space, CATALOGUE, CONTROL, DEMAND, FRONTS, KEPT, MOVES, RATES,
};

use super::intent::{slots_of, Intent, LEASE_NS};
use super::nodes::Views;
use super::reach::{strange, Nodes};
use super::slots::Slots;
use super::Failure;
use crate::client::{ClientError, Reply};

/// An entry is as it was expected: it becomes another. Empty: there is none, or is to be none.
const SWAP: &[u8] = b"\
if (redis.call('HGET', KEYS[1], ARGV[1]) or '') ~= ARGV[2] then return 0 end \
if ARGV[3] == '' then redis.call('HDEL', KEYS[1], ARGV[1]) \
else redis.call('HSET', KEYS[1], ARGV[1], ARGV[3]) end return 1";
/// Redirections that are followed: the slot of all this may be what moves.
const HOPS: usize = 5;
/// A mover says so often that it is at work.
pub const BEAT_EVERY: Duration = Duration::from_secs(1);
/// Between two looks whether another still says so.
pub const LOOK_EVERY: Duration = Duration::from_millis(200);

/// A move that this process is at.
pub struct Lease {
    /// As it is written down.
    pub intent: Intent,
    /// It was begun before.
    again: bool,
    kept: Instant,
}

/// What is written down.
pub struct Book {
    /// The node that has it.
    at: String,
}

impl Book {
    /// Where the cluster has it.
    ///
    /// # Errors
    /// No node has it.
    pub fn find(views: &Views) -> Result<Self, Failure> {
        let node = views.owner(slot(CATALOGUE));
        let node = node.ok_or("no node of the cluster serves the catalogue of tenants")?;
        Ok(Self {
            at: node.at.clone(),
        })
    }

    fn ask(&mut self, nodes: &mut Nodes, words: &[&[u8]]) -> Result<Reply, Failure> {
        for _ in 0..HOPS {
            let failed = match nodes.ask(&self.at, words) {
                Ok(reply) => return Ok(reply),
                Err(failed) => failed,
            };
            let elsewhere = match failed.downcast_ref() {
                Some(ClientError::Refused { reply, .. }) => {
                    Elsewhere::read(format!("-{reply}").as_bytes())
                }
                _ => None,
            };
            match elsewhere {
                Some(Elsewhere::Moved { node, .. }) => self.at = node,
                Some(Elsewhere::Ask { node }) => {
                    // For this once: the node that was asked still has the slot.
                    let replies = nodes.ask_all(&node, &[vec![b"ASKING"], words.to_vec()])?;
                    return Ok(replies.into_iter().last().unwrap_or(Reply::Nothing));
                }
                _ => return Err(failed),
            }
        }
        Err("the catalogue at the cluster moves from node to node all the time".into())
    }

    fn entries(&mut self, nodes: &mut Nodes, key: &[u8]) -> Result<Vec<(String, String)>, Failure> {
        let words = [b"HGETALL", key];
        let Reply::List(items) = self.ask(nodes, &words)? else {
            return Err(strange(&self.at, &words));
        };
        let pairs = items.chunks_exact(2).filter_map(|pair| match pair {
            [Reply::Bulk(name), Reply::Bulk(text)] => Some((
                String::from_utf8_lossy(name).into_owned(),
                String::from_utf8_lossy(text).into_owned(),
            )),
            _ => None,
        });
        Ok(pairs.collect())
    }

    /// All tenants, and where their partitions are at the engine.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn tenants(&mut self, nodes: &mut Nodes) -> Result<Vec<(String, Space)>, Failure> {
        let entries = self.entries(nodes, CATALOGUE)?;
        let tenants = entries.iter().filter_map(|(field, parts)| {
            let name = field.strip_prefix(front::TENANT)?;
            let parts = parts
                .parse()
                .ok()
                .filter(|parts| (1..=front::PARTS_MAX).contains(parts))?;
            Some((name.to_owned(), Space::in_parts(name, parts)))
        });
        let mut tenants: Vec<_> = tenants.collect();
        tenants.sort_by(|one, other| one.0.cmp(&other.0));
        Ok(tenants)
    }

    /// What fronts have written down of themselves, by their names.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn fronts(&mut self, nodes: &mut Nodes) -> Result<Vec<(String, String)>, Failure> {
        self.entries(nodes, FRONTS)
    }

    /// What fronts tell of what partitions are asked for, by their names.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn demands(&mut self, nodes: &mut Nodes) -> Result<Vec<(String, Demand)>, Failure> {
        let entries = self.entries(nodes, DEMAND)?;
        let read = |(name, text): (String, String)| Some((name, Demand::read(&text)?));
        Ok(entries.into_iter().filter_map(read).collect())
    }

    /// What fronts tell each other of rates and weights, by their names.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn rates(&mut self, nodes: &mut Nodes) -> Result<Vec<(String, String)>, Failure> {
        self.entries(nodes, RATES)
    }

    /// What is written down of whoever places partitions, under this name. Empty: nothing.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn control(&mut self, nodes: &mut Nodes, name: &str) -> Result<String, Failure> {
        self.text(nodes, &[b"HGET", CONTROL, name.as_bytes()])
    }

    /// How well promises are kept at all fronts, a line each. Empty: no front says so.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn kept(&mut self, nodes: &mut Nodes) -> Result<String, Failure> {
        self.text(nodes, &[b"GET", KEPT])
    }

    fn text(&mut self, nodes: &mut Nodes, words: &[&[u8]]) -> Result<String, Failure> {
        match self.ask(nodes, words)? {
            Reply::Bulk(text) => Ok(String::from_utf8_lossy(&text).into_owned()),
            Reply::Nothing => Ok(String::new()),
            _ => Err(strange(&self.at, words)),
        }
    }

    /// Writes that down.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn set_control(
        &mut self,
        nodes: &mut Nodes,
        name: &str,
        text: &str,
    ) -> Result<(), Failure> {
        let words = [b"HSET", CONTROL, name.as_bytes(), text.as_bytes()];
        self.ask(nodes, &words).map(|_| ())
    }

    /// Moves that were begun and are not at their end.
    ///
    /// # Errors
    /// They cannot be read.
    pub fn moves(&mut self, nodes: &mut Nodes) -> Result<Vec<Intent>, Failure> {
        let entries = self.entries(nodes, MOVES)?;
        let mut moves: Vec<Intent> = (entries.iter())
            .filter_map(|(slot, text)| Intent::read(slot, text))
            .collect();
        moves.sort_by_key(|intent| intent.slots);
        Ok(moves)
    }

    /// All moves that were begun, and what all masters say as soon as they agree in what is neither
    /// about these nor about the slots `own`: a node that a slot goes to may not know who has it
    /// until somebody goes on with its move.
    ///
    /// # Errors
    /// As [`Self::moves`] and [`Nodes::agreed`].
    pub fn agreed(
        &mut self,
        nodes: &mut Nodes,
        own: Option<Slots>,
    ) -> Result<(Vec<Intent>, Views), Failure> {
        let moves = self.moves(nodes)?;
        let mut moving = slots_of(&moves);
        moving.extend(own);
        Ok((moves, nodes.agreed(&moving)?))
    }

    /// Writes another entry for slots if it is as `old` says. False: it is not.
    fn swap(
        &mut self,
        nodes: &mut Nodes,
        slots: Slots,
        old: Option<&Intent>,
        new: Option<&Intent>,
    ) -> Result<bool, Failure> {
        let text = |intent: Option<&Intent>| intent.map(Intent::text).unwrap_or_default();
        self.swap_entry(nodes, MOVES, &slots.text(), &text(old), &text(new))
    }

    /// The same of who places partitions.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn swap_control(
        &mut self,
        nodes: &mut Nodes,
        name: &str,
        old: &str,
        new: &str,
    ) -> Result<bool, Failure> {
        self.swap_entry(nodes, CONTROL, name, old, new)
    }

    /// An entry is as `old` says, and becomes `new`; empty: there is none. False: it is not.
    fn swap_entry(
        &mut self,
        nodes: &mut Nodes,
        key: &[u8],
        field: &str,
        old: &str,
        new: &str,
    ) -> Result<bool, Failure> {
        let [field, old, new] = [field, old, new].map(str::as_bytes);
        let words = [b"EVAL", SWAP, b"1", key, field, old, new];
        Ok(self.ask(nodes, &words)? == Reply::Integer(1))
    }

    /// Writes a move down, and that this process is at it. One that was begun and that nobody is
    /// at any more is gone on with.
    ///
    /// # Errors
    /// Somebody is at it, or at another move of one of these nodes.
    pub fn claim(
        &mut self,
        nodes: &mut Nodes,
        views: &Views,
        mut intent: Intent,
    ) -> Result<Lease, Failure> {
        intent.mover = Some(name());
        let slots = intent.slots;
        let mut seen: Option<(String, Instant)> = None;
        loop {
            let moves = self.moves(nodes)?;
            refuse_beside(&moves, &intent, views)?;
            let old = moves.iter().find(|one| one.slots == slots);
            if let Some(old) = old.filter(|old| old.mover.is_some()) {
                let (text, since) = seen.get_or_insert_with(|| (old.text(), Instant::now()));
                if *text != old.text() {
                    return Err(format!("another process is moving {slots} at present").into());
                }
                if since.elapsed() < Duration::from_nanos(LEASE_NS) {
                    thread::sleep(LOOK_EVERY);
                    continue;
                }
            }
            intent.began_s = old.map_or(intent.began_s, |old| old.began_s);
            if !self.swap(nodes, slots, old, Some(&intent))? {
                continue;
            }
            // Of two that begin at once at one node, at least one sees the other.
            let now = self.moves(nodes)?;
            if let Err(why) = refuse_beside(&now, &intent, views) {
                self.swap(nodes, slots, Some(&intent), old)?;
                return Err(why);
            }
            return Ok(Lease {
                intent,
                again: old.is_some(),
                kept: Instant::now(),
            });
        }
    }

    /// Says that this process is at it, when it is time to.
    ///
    /// # Errors
    /// It cannot be said, or another has taken the move over.
    pub fn keep(&mut self, nodes: &mut Nodes, lease: &mut Lease) -> Result<(), Failure> {
        match lease.kept.elapsed() < BEAT_EVERY {
            true => Ok(()),
            false => self.confirm(nodes, lease),
        }
    }

    /// Says that this process is at it, whenever it was said last. Before something is done that
    /// cannot be found again without the entry: the master that took it in may have been replaced
    /// by one that does not have it.
    ///
    /// # Errors
    /// As [`Self::keep`].
    pub fn confirm(&mut self, nodes: &mut Nodes, lease: &mut Lease) -> Result<(), Failure> {
        let mut next = lease.intent.clone();
        next.beat += 1;
        self.replace(nodes, lease, Some(&next))?;
        (lease.intent, lease.kept) = (next, Instant::now());
        Ok(())
    }

    /// This process is not at it any more, and it is not at its end: another need not wait.
    ///
    /// # Errors
    /// It cannot be said: another waits until it misses this one.
    pub fn release(&mut self, nodes: &mut Nodes, lease: &Lease) -> Result<(), Failure> {
        let mut next = lease.intent.clone();
        next.mover = None;
        self.replace(nodes, lease, Some(&next))
    }

    /// Nothing was done: it is as it was before, or not written down at all.
    ///
    /// # Errors
    /// It cannot be said.
    pub fn give_up(&mut self, nodes: &mut Nodes, lease: &Lease) -> Result<(), Failure> {
        match lease.again {
            true => self.release(nodes, lease),
            false => self.end(nodes, lease),
        }
    }

    /// It is at its end.
    ///
    /// # Errors
    /// It cannot be said.
    pub fn end(&mut self, nodes: &mut Nodes, lease: &Lease) -> Result<(), Failure> {
        self.replace(nodes, lease, None)
    }

    fn replace(
        &mut self,
        nodes: &mut Nodes,
        lease: &Lease,
        next: Option<&Intent>,
    ) -> Result<(), Failure> {
        let slots = lease.intent.slots;
        match self.swap(nodes, slots, Some(&lease.intent), next)? {
            true => Ok(()),
            false => Err(format!(
                "another process has taken over the move of {slots}, or what was written down of it is lost with a node"
            )
            .into()),
        }
    }
}

/// A move of other slots is about one of the nodes: one at a time holds up a node's requests.
fn refuse_beside(moves: &[Intent], intent: &Intent, views: &Views) -> Result<(), Failure> {
    let mut others = moves.iter().filter(|other| other.slots != intent.slots);
    match others.find(|other| other.meets(intent)) {
        None => Ok(()),
        Some(other) => Err(format!(
            "{} {} on the way from {} to {}: wait until that is done, or go on with it: entremet cluster move --resume",
            other.slots,
            other.slots.are(),
            views.at(&other.from),
            views.at(&other.to)
        )
        .into()),
    }
}

/// Of this process: another does not take it for its own.
pub fn name() -> String {
    // The keys of the standard library's hash tables are random in each process.
    let random = RandomState::new().build_hasher().finish();
    format!("{random:016x}")
}
