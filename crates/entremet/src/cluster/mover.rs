//! One move, from what nodes show to all of them knowing where the slot is.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use policy::replica::LOOKED_NS_MAX;

use super::book::{Book, Lease, BEAT_EVERY};
use super::intent::Intent;
use super::moving::Allow;
use super::nodes::{Open, Views};
use super::pace::{takes, Pace, KEYS_MAX};
use super::plan::{next, Plan, Step, Way};
use super::reach::{strange, time_of, Nodes};
use super::strays::planned;
use super::survey::{counts, keys_of, sizes_of, too_late};
use super::Failure;
use crate::client::{ClientError, Reply, Words};

/// Steps of a move are seven at most, and one for each node that has not heard of it; what goes on
/// after so many more goes in a circle.
const STEPS_MAX: usize = 40;
/// So many slots a node is told something of at once: for each that a target takes it tells all
/// others, and serves nobody meanwhile.
const AT_ONCE: usize = 16;
/// A target that fails so often in a row to take keys in is given up.
const TRIES: u32 = 3;
/// Before it is tried again.
const AGAIN_AFTER: Duration = Duration::from_millis(500);
/// How far a move is, is said so often.
const TELL_EVERY: Duration = Duration::from_secs(1);
/// Writes at a node stand still for about two round trips while it is made sure that no key is left
/// there; if the mover dies meanwhile, for so long.
const PAUSE: Duration = Duration::from_millis(100);
/// A replica shows no key that has gone, and no client may miss it. Before the first goes, all
/// fronts that read from replicas see that the slot moves, and do so no more.
const SEEN_BY_READERS: Duration = Duration::from_nanos(LOOKED_NS_MAX + 200_000_000);
/// A source waits at least so long for its target, and answers nobody meanwhile.
const TARGET_WAIT_MIN: Duration = Duration::from_millis(200);

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
    /// Somebody is at it, or at another move of one of its nodes.
    pub fn begin(
        nodes: &'m mut Nodes,
        views: &Views,
        mut plan: Plan,
        allow: Allow,
        stop: &'m AtomicBool,
    ) -> Result<Self, Failure> {
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
        let moves = book.moves(nodes)?;
        let views = nodes.agreed(Some(plan.slots))?;
        match planned(nodes, (plan.slots, &plan.to), &views, &moves) {
            Ok(now) => plan = now,
            Err(why) => {
                book.give_up(nodes, &lease)?;
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
        self.nodes.agreed(None)?;
        Ok(())
    }

    fn go_on(&mut self) -> Result<(), Failure> {
        let most = STEPS_MAX + self.nodes.views()?.by_master.len();
        for _ in 0..most {
            self.book.keep(self.nodes, &mut self.lease)?;
            let views = self.nodes.views()?;
            let (from, to) = (self.plan.from.clone(), self.plan.to.clone());
            let (step, slots) = next(&self.plan, &views);
            let node: [&[u8]; 2] = [b"NODE", to.as_bytes()];
            let (at, words): (&str, [&[u8]; 2]) = match &step {
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
            self.book.keep(self.nodes, &mut self.lease)?;
            let views = self.nodes.views()?;
            let (from, to) = (self.plan.from.clone(), self.plan.to.clone());
            let (from_at, to_at) = (views.at(&from), views.at(&to));
            let goes = matches!(views.open_at(&to, slot), Some(Open::Out(_)));
            if views.master(&from).is_none() {
                // Whatever was there has gone with it.
                return self.set(to_at, &[slot], &[b"STABLE"]);
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
                    let says = views.by_master.get(&to).and_then(|view| view.owner(slot));
                    if says.is_none_or(|owner| owner.id != to) {
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

    /// Keys of slots go over, of one slot after the other; most of several have none.
    fn carry_all(
        &mut self,
        slots: &[u16],
        (from, has_replicas): (&str, bool),
        to: &str,
    ) -> Result<(), Failure> {
        let counts = counts(self.nodes, from, slots)?;
        let used = slots.iter().zip(counts).filter(|(_, count)| *count > 0);
        let used: Vec<u16> = used.map(|(slot, _)| *slot).collect();
        if has_replicas && !used.is_empty() {
            thread::sleep(SEEN_BY_READERS);
        }
        for slot in used {
            self.carry(slot, from, to)?;
        }
        Ok(())
    }

    /// All keys of a slot go from one node to the other, a batch after the other.
    fn carry(&mut self, slot: u16, from: &str, to: &str) -> Result<(), Failure> {
        let count = counts(self.nodes, from, &[slot])?[0];
        self.expected = self.expected.max(self.moved.keys + count);
        // Of keys that have been asked for, those that have not gone yet, and their sizes. None
        // comes to the source: it sends whoever brings one to the target.
        let (mut keys, mut sizes) = (Vec::new(), Vec::new());
        let mut failed = 0;
        loop {
            self.tell_or_stop()?;
            if keys.is_empty() {
                keys = keys_of(self.nodes, from, slot, KEYS_MAX)?;
                sizes = sizes_of(self.nodes, from, &keys)?;
            }
            if keys.is_empty() {
                return Ok(());
            }
            let count = self.pace.take(&sizes);
            let bytes = sizes[..count].iter().sum();
            let began = Instant::now();
            let result = self.hand_over(from, to, &keys[..count], takes(bytes));
            let passed = began.elapsed();
            let took = result.as_ref().map_or(passed, |took| *took);
            self.moved.longest = self.moved.longest.max(took);
            match result {
                Ok(took) => {
                    failed = 0;
                    self.moved.keys += count as u64;
                    self.moved.bytes += bytes;
                    let waited = passed.saturating_sub(took);
                    self.pace.took(&sizes[..count], took, waited);
                    keys.drain(..count);
                    sizes.drain(..count);
                    self.rest(self.pace.pause(took, waited))?;
                }
                Err(why) => {
                    self.failed(
                        why,
                        (from, to),
                        &keys[..count],
                        &sizes[..count],
                        &mut failed,
                    )?;
                    // What is there now is not known.
                    keys.clear();
                    sizes.clear();
                }
            }
        }
    }

    /// What is done where a batch did not go, if anything can be done.
    fn failed(
        &mut self,
        why: Failure,
        (from, to): (&str, &str),
        keys: &[Vec<u8>],
        sizes: &[u64],
        failed: &mut u32,
    ) -> Result<(), Failure> {
        match why.downcast_ref() {
            Some(ClientError::Refused { reply, .. }) if reply.contains("OOM ") => Err(format!(
                "{to} has no memory left, and refuses new keys of the slot until it has: raise its maxmemory"
            )
            .into()),
            Some(ClientError::Refused { reply, .. })
                if reply.contains("BUSYKEY") && self.plan.way == Way::Back =>
            {
                self.drop_stale(from, to, keys)
            }
            Some(ClientError::Refused { reply, .. })
                if reply.starts_with("IOERR") && *failed < TRIES =>
            {
                *failed += 1;
                self.pace.took(sizes, Duration::MAX, Duration::ZERO);
                thread::sleep(AGAIN_AFTER);
                Ok(())
            }
            _ => Err(why),
        }
    }

    /// Others have the nodes for so long; this process stays at it.
    fn rest(&mut self, pause: Duration) -> Result<(), Failure> {
        let until = Instant::now() + pause;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            thread::sleep(left.min(BEAT_EVERY));
            if left <= BEAT_EVERY {
                return Ok(());
            }
            self.tell_or_stop()?;
        }
    }

    /// Says how far it is when it is time to, and that it is at it.
    fn tell_or_stop(&mut self) -> Result<(), Failure> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(format!("stopped after {} keys", self.moved.keys).into());
        }
        if self.told.elapsed() >= TELL_EVERY {
            self.told = Instant::now();
            eprintln!(
                "{}: {} keys of about {}, {:.1} MB, the longest batch took {:.1} ms",
                self.plan.slots,
                self.moved.keys,
                self.expected.max(self.moved.keys),
                self.moved.bytes as f64 / 1e6,
                self.moved.longest.as_secs_f64() * 1e3
            );
        }
        self.book.keep(self.nodes, &mut self.lease)
    }

    /// One batch. A key that both nodes have, because an answer of the target's was lost, was
    /// served by the node that has the slot: its value is the one that counts. Returns how long
    /// both nodes answered nobody else, by the clock of the source: a node that has much to do lets
    /// a batch wait first.
    fn hand_over(
        &mut self,
        from: &str,
        to: &str,
        keys: &[Vec<u8>],
        expected: Duration,
    ) -> Result<Duration, Failure> {
        let (host, port) = to.rsplit_once(':').ok_or("a node without a port")?;
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let wait = TARGET_WAIT_MIN.max(expected.saturating_mul(10));
        let wait_ms = wait.as_millis().to_string();
        let login = self.nodes.login();
        let mut words: Vec<&[u8]> = vec![b"MIGRATE", host.as_bytes(), port.as_bytes()];
        words.extend([&b""[..], b"0", wait_ms.as_bytes()]);
        if self.plan.way == Way::On {
            words.push(b"REPLACE");
        }
        words.extend(login.iter().map(Vec::as_slice));
        words.push(b"KEYS");
        words.extend(keys.iter().map(Vec::as_slice));
        // Served one after the other, and nobody's in between.
        let asked = [vec![&b"TIME"[..]], words, vec![b"TIME"]];
        let replies = self.nodes.try_all(from, &asked)?;
        match &replies[..] {
            [_, Reply::Error(reply), _] => Err(ClientError::Refused {
                command: "MIGRATE".into(),
                reply: reply.clone(),
            }
            .into()),
            [before, _, after] => {
                let times = time_of(before).zip(time_of(after));
                let took = times.map(|(before, after)| after.saturating_sub(before));
                took.ok_or_else(|| strange(from, &[b"TIME"]))
            }
            _ => Err(strange(from, &[b"MIGRATE"])),
        }
    }

    /// On the way back: of keys that both nodes have, those at `from` are not served, and are old.
    fn drop_stale(&mut self, from: &str, to: &str, keys: &[Vec<u8>]) -> Result<(), Failure> {
        let asked: Vec<_> = keys
            .iter()
            .map(|key| vec![&b"EXISTS"[..], key.as_slice()])
            .collect();
        // Who does not have a key says who may have it: that is an error.
        let there = self.nodes.try_all(to, &asked)?;
        for (key, _) in keys
            .iter()
            .zip(there)
            .filter(|(_, there)| *there == Reply::Integer(1))
        {
            let commands = [vec![&b"ASKING"[..]], vec![b"UNLINK", key.as_slice()]];
            self.nodes.ask_all(from, &commands)?;
        }
        Ok(())
    }
}
