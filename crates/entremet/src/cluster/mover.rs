//! One move, from what nodes show to all of them knowing where the slot is.

use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::book::{Book, Lease};
use super::intent::{slots_of, Intent};
use super::moving::Allow;
use super::nodes::{Open, Views};
use super::pace::Pace;
use super::plan::{next, refuse_replaced, says, Plan, Step, Way};
use super::reach::Nodes;
use super::strays::planned;
use super::survey::{counts, refuse_databases, too_late};
use super::Failure;
use crate::client::{Reply, Words};

mod carry;

/// Steps of a move are seven at most, and one for each node that has not heard of it; what goes on
/// after so many more goes in a circle.
const STEPS_MAX: usize = 40;
/// So many slots a node is told something of at once: for each that a target takes it tells all
/// others, and serves nobody meanwhile.
const AT_ONCE: usize = 16;
/// Writes at a node stand still for about two round trips while it is made sure that no key is left
/// there; if the mover dies meanwhile, for so long.
const PAUSE: Duration = Duration::from_millis(100);

/// What has gone over so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct Moved {
    /// Keys.
    pub keys: u64,
    /// As `MEMORY USAGE` has them.
    pub bytes: u64,
    /// The longest time that both nodes answered nobody else.
    pub longest: Duration,
}

/// A move under way.
pub struct Mover<'m> {
    /// How the nodes are reached.
    pub nodes: &'m mut Nodes,
    /// Where it is written down.
    pub book: Book,
    /// That this process is at it.
    pub lease: Lease,
    /// What is to be done.
    pub plan: Plan,
    /// What has gone over.
    pub moved: Moved,
    /// Keys that there were at the start.
    pub expected: u64,
    pace: Pace,
    stop: &'m AtomicBool,
    told: Instant,
}

impl<'m> Mover<'m> {
    /// Writes a plan down, and is at it from then on.
    ///
    /// # Errors
    /// Somebody is at it, or at another move of one of its nodes; or it would lose keys.
    pub fn begin(
        nodes: &'m mut Nodes,
        views: &Views,
        mut plan: Plan,
        allow: Allow,
        stop: &'m AtomicBool,
    ) -> Result<Self, Failure> {
        if plan.way == Way::On && views.master(&plan.from).is_some() {
            refuse_databases(nodes, views.at(&plan.from))?;
        }
        let mut book = Book::find(views)?;
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let intent = Intent {
            slots: plan.slots,
            from: plan.from.clone(),
            to: plan.to.clone(),
            began_s: since.map_or(0, |since| since.as_secs()),
            mover: None,
            beat: 0,
        };
        let lease = book.claim(nodes, views, intent)?;
        // Whoever was at it may have come further meanwhile.
        let agreed = book.agreed(nodes, None);
        let now = agreed
            .and_then(|(moves, views)| planned(nodes, (plan.slots, &plan.to), &views, &moves));
        match now {
            Ok(now) => plan = now,
            Err(why) => {
                // If that cannot be said either, another waits until it misses this process.
                let _ = book.give_up(nodes, &lease);
                return Err(why);
            }
        }
        Ok(Self {
            nodes,
            book,
            lease,
            plan,
            moved: Moved::default(),
            expected: 0,
            pace: Pace::new(allow.stall, allow.part),
            stop,
            told: Instant::now(),
        })
    }

    /// Brings it to its end.
    ///
    /// # Errors
    /// What it was stopped by: it is written down still.
    pub fn run(mut self) -> Result<Moved, Failure> {
        match self.go() {
            Ok(()) => {
                self.book.end(self.nodes, &self.lease)?;
                Ok(self.moved)
            }
            Err(why) => {
                // If that cannot be said either, another waits until it misses this process.
                let _ = self.book.release(self.nodes, &self.lease);
                Err(format!("{why}; to go on: entremet cluster move --resume").into())
            }
        }
    }

    fn go(&mut self) -> Result<(), Failure> {
        match self.plan.way {
            Way::On => self.go_on()?,
            Way::Back => self.go_back()?,
        }
        // Nothing is left of it. Of other moves there may be.
        let moves = self.book.moves(self.nodes)?;
        let mut others = slots_of(&moves);
        others.retain(|slots| *slots != self.plan.slots);
        self.nodes.agreed(&others)?;
        Ok(())
    }

    fn go_on(&mut self) -> Result<(), Failure> {
        let most = STEPS_MAX + self.nodes.views()?.by_master.len();
        for _ in 0..most {
            self.book.confirm(self.nodes, &mut self.lease)?;
            let views = self.nodes.views()?;
            let (from, to) = (self.plan.from.clone(), self.plan.to.clone());
            refuse_replaced(&self.plan, &views)?;
            let (step, slots) = next(&self.plan, &views);
            let node: [&[u8]; 2] = [b"NODE", to.as_bytes()];
            let (at, words): (&str, [&[u8]; 2]) = match &step {
                Step::Owner => (views.at(&to), [b"NODE", from.as_bytes()]),
                Step::Import => (views.at(&to), [b"IMPORTING", from.as_bytes()]),
                Step::Migrate => (views.at(&from), [b"MIGRATING", to.as_bytes()]),
                Step::Carry => {
                    if from != to && views.master(&from).is_some() {
                        let read = views.has_replicas(&from);
                        self.carry_all(&slots, (views.at(&from), read), views.at(&to))?;
                    }
                    (views.at(&to), node)
                }
                Step::Tell(id) => {
                    let told = self.set(views.at(id), &slots, &node);
                    // One that has no other slots may have heard of it and become a replica, which
                    // cannot be told.
                    if told.is_err() && self.nodes.views()?.master(id).is_some() {
                        return told;
                    }
                    continue;
                }
                Step::Clear(id) => {
                    self.set(views.at(id), &slots, &[b"STABLE"])?;
                    continue;
                }
                Step::Done => return Ok(()),
            };
            self.set(at, &slots, &words)?;
        }
        Err("the nodes do not come to agree where the slot is".into())
    }

    /// Nothing is left of the move at the other node.
    fn go_back(&mut self) -> Result<(), Failure> {
        let slot = self.plan.slots.first();
        for _ in 0..STEPS_MAX {
            self.book.confirm(self.nodes, &mut self.lease)?;
            let views = self.nodes.views()?;
            let (from, to) = (self.plan.from.clone(), self.plan.to.clone());
            let (from_at, to_at) = (views.at(&from), views.at(&to));
            let goes = matches!(views.open_at(&to, slot), Some(Open::Out(_)));
            if views.master(&from).is_none() {
                // Whatever was there has gone with it.
                return self.set(to_at, &[slot], &[b"STABLE"]);
            }
            if says(&views, &from, slot).is_none_or(|owner| owner != from && owner != to) {
                // It gives no key of a slot of which it knows no owner, see `Step::Owner`.
                self.set(from_at, &[slot], &[b"NODE", to.as_bytes()])?;
            }
            match (counts(self.nodes, from_at, &[slot])?[0], goes) {
                (0, true) => self.close(from_at, to_at)?,
                // While it goes, its owner takes in no key that it has not: it sends whoever brings
                // one to the other node.
                (keys, true) => return Err(too_late(keys, from_at).into()),
                (0, false) if views.open_at(&from, slot).is_some() => {
                    self.set(from_at, &[slot], &[b"STABLE"])?;
                }
                (0, false) => return Ok(()),
                // The owner has forgotten that it goes, as at a failover: they are missing there.
                (_, false) => {
                    if says(&views, &to, slot) != Some(to.as_str()) {
                        // It gave the slot away, and nobody took it.
                        self.set(to_at, &[slot], &[b"NODE", to.as_bytes()])?;
                    }
                    self.carry(slot, from_at, to_at)?;
                }
            }
        }
        Err("new keys come faster than they go back".into())
    }

    /// Ends the way back if no key is left at `from`. New ones are made there until the other is
    /// told to keep them; so nothing is written there for that moment.
    fn close(&mut self, from: &str, to: &str) -> Result<(), Failure> {
        let slot = self.plan.slots.first();
        let text = slot.to_string();
        let pause_ms = PAUSE.as_millis().to_string();
        let paused = Instant::now();
        let replies = self.nodes.ask_all(
            from,
            &[
                vec![b"CLIENT", b"PAUSE", pause_ms.as_bytes(), b"WRITE"],
                vec![b"CLUSTER", b"COUNTKEYSINSLOT", text.as_bytes()],
            ],
        )?;
        if replies.get(1) == Some(&Reply::Integer(0)) && paused.elapsed() < PAUSE / 2 {
            self.set(to, &[slot], &[b"STABLE"])?;
            // Before writes go on: those that wait are sent to the other then.
            self.set(from, &[slot], &[b"STABLE"])?;
        }
        // If this was slow, and a key came all the same, the next round finds it.
        self.nodes.ask(from, &[b"CLIENT", b"UNPAUSE"])?;
        Ok(())
    }

    /// Tells a node something of slots.
    fn set(&mut self, at: &str, slots: &[u16], what: &[&[u8]]) -> Result<(), Failure> {
        let names: Vec<String> = slots.iter().map(u16::to_string).collect();
        for names in names.chunks(AT_ONCE) {
            let commands = names.iter().map(|name| {
                let words: Words<'_> = vec![b"CLUSTER", b"SETSLOT", name.as_bytes()];
                [&words[..], what].concat()
            });
            let commands: Vec<Words<'_>> = commands.collect();
            self.nodes.ask_all(at, &commands)?;
        }
        Ok(())
    }
}
