//! The thread that finds out how far behind replicas are, while some tenant reads from them.
//!
//! Masters and replicas are asked in turn, each on a connection of its own: nobody is waited for,
//! so that one that hangs keeps nothing from being known of the others.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use front::{settled_slots, Value};
use mio::{Events, Poll, Token, Waker};
use policy::replica::Written;
use policy::Nanos;
use stage::Clock;

use super::asker::{Answers, Asker};
use super::replicas::{Replica, Replicas};
use super::replication::Replication;
use super::Upstream;

/// Between two questions, to masters and to replicas in turn: a replica that copies at once is
/// known to be behind by three of them at most.
const STEP_NS: Nanos = 100_000_000;
/// While nobody reads from replicas, it is looked so often whether somebody does.
const IDLE_NS: Nanos = 1_000_000_000;
const WAKE: Token = Token(usize::MAX);

const HOW_FAR: &[&[u8]] = &[b"INFO", b"replication"];
const SLOTS: &[&[u8]] = &[b"CLUSTER", b"NODES"];

/// The thread.
pub struct Watch {
    ended: Arc<AtomicBool>,
    waker: Waker,
    thread: JoinHandle<()>,
}

impl Watch {
    /// Begins.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn start(upstream: Arc<Upstream>, clock: Arc<dyn Clock + Send + Sync>) -> io::Result<Self> {
        let poll = Poll::new()?;
        let waker = Waker::new(poll.registry(), WAKE)?;
        let ended = Arc::new(AtomicBool::new(false));
        let mut watcher = Watcher {
            upstream,
            clock,
            poll,
            ended: Arc::clone(&ended),
            peers: BTreeMap::new(),
            next: 0,
        };
        let thread = thread::Builder::new().name("replicas".into());
        let thread = thread.spawn(move || watcher.run())?;
        Ok(Self {
            ended,
            waker,
            thread,
        })
    }

    /// Ends it.
    pub fn stop(self) {
        self.ended.store(true, Ordering::Release);
        // If it cannot be woken it sees to it at its next step.
        let _ = self.waker.wake();
        // A panic would have ended the process.
        let _ = self.thread.join();
    }
}

/// A node that is asked.
struct Peer {
    asker: Asker,
    what: What,
}

enum What {
    Master(Box<Master>),
    Replica(Arc<Replica>),
}

/// What a master has said.
#[derive(Default)]
struct Master {
    written: Written,
    /// Its slots.
    slots: String,
}

struct Watcher {
    upstream: Arc<Upstream>,
    clock: Arc<dyn Clock + Send + Sync>,
    poll: Poll,
    ended: Arc<AtomicBool>,
    /// By name, masters and replicas apart: a node may go from one to the other.
    peers: BTreeMap<(bool, String), Peer>,
    /// The number of the next token.
    next: usize,
}

impl Watcher {
    fn run(&mut self) {
        let (mut events, mut due, mut masters) = (Events::with_capacity(256), 0, false);
        loop {
            let now = self.clock.now();
            if now >= due {
                masters = !masters;
                due = now + self.step(masters);
            }
            let left = Duration::from_nanos(due.saturating_sub(self.clock.now()));
            if let Err(why) = self.poll.poll(&mut events, Some(left)) {
                if why.kind() != io::ErrorKind::Interrupted {
                    return tracing::error!("replicas are not watched any more: {why}");
                }
            }
            if self.ended.load(Ordering::Acquire) {
                return;
            }
            for event in &events {
                self.noticed(event.token());
            }
        }
    }

    /// Asks all masters, or all replicas. Returns when to ask again.
    fn step(&mut self, masters: bool) -> Nanos {
        if !self.upstream.reading.wanted() {
            self.peers.clear();
            return IDLE_NS;
        }
        if masters {
            let replicas = self.upstream.found().replicas;
            self.follow(&replicas);
        }
        let question: &[&[&[u8]]] = match masters {
            true => &[HOW_FAR, SLOTS],
            false => &[HOW_FAR],
        };
        let (options, registry) = (&self.upstream.options, self.poll.registry());
        for ((is_master, _), peer) in &mut self.peers {
            if *is_master == masters {
                peer.asker
                    .ask(question, self.clock.now(), options, registry);
            }
        }
        STEP_NS
    }

    /// Those that are to be asked: replicas, and their masters.
    fn follow(&mut self, replicas: &Replicas) {
        let found = self.upstream.found();
        let mut before = std::mem::take(&mut self.peers);
        for replica in replicas.iter() {
            let key = (false, replica.node.clone());
            let kept = before.remove(&key).filter(
                |peer| matches!(&peer.what, What::Replica(known) if Arc::ptr_eq(known, replica)),
            );
            let peer = kept.unwrap_or_else(|| Peer {
                asker: Asker::new(replica.node.clone(), replica.at, self.token()),
                what: What::Replica(Arc::clone(replica)),
            });
            self.peers.insert(key, peer);
            let nodes = &found.topology.nodes;
            let place = nodes.iter().position(|node| *node == replica.master);
            let key = (true, replica.master.clone());
            if let Some(place) = place.filter(|_| !self.peers.contains_key(&key)) {
                let peer = before.remove(&key).unwrap_or_else(|| Peer {
                    asker: Asker::new(nodes[place].clone(), found.nodes[place], self.token()),
                    what: What::Master(Box::default()),
                });
                self.peers.insert(key, peer);
            }
        }
    }

    fn token(&mut self) -> Token {
        self.next += 1;
        Token(self.next)
    }

    fn noticed(&mut self, token: Token) {
        let now = self.clock.now();
        let mut peers = self.peers.iter_mut();
        let Some((key, peer)) = peers.find(|(_, peer)| peer.asker.token() == token) else {
            return;
        };
        let Some(answers) = peer.asker.noticed(now) else {
            return;
        };
        let says = answers.all.first().and_then(Value::text);
        let says = says.and_then(Replication::read);
        match &mut peer.what {
            What::Master(master) => {
                master.heard(says.filter(|says| says.master), &answers);
                let name = key.1.clone();
                self.looked_at(&name, answers.asked_at);
            }
            What::Replica(replica) => {
                let replica = Arc::clone(replica);
                let says = says.filter(|says| !says.master);
                let as_of = says.and_then(|says| match &self.master(&replica.master)?.what {
                    What::Master(master) => master.written.as_of(&says.history, says.offset),
                    What::Replica(_) => None,
                });
                replica.set_as_of(as_of.unwrap_or_default());
            }
        }
    }

    fn master(&self, name: &str) -> Option<&Peer> {
        self.peers.get(&(true, name.to_owned()))
    }

    /// A master has answered: so its replicas may be read, unless it counts for nothing what it
    /// said before.
    fn looked_at(&mut self, name: &str, asked_at: Nanos) {
        let Some(What::Master(master)) = self.master(name).map(|peer| &peer.what) else {
            return;
        };
        let since = master.written.since();
        for peer in self.peers.values() {
            if let What::Replica(replica) = &peer.what {
                if replica.master == name {
                    if since.is_none_or(|since| replica.standing().as_of < since) {
                        replica.set_as_of(0);
                    }
                    replica.set_looked_at(asked_at);
                }
            }
        }
    }
}

impl Master {
    /// It has answered. What it said before counts no more where its slots are others now, or on
    /// their way: keys come and go with them, and that is no writing.
    fn heard(&mut self, says: Option<Replication>, answers: &Answers) {
        let slots = answers.all.get(1).and_then(Value::text);
        let settled = slots.and_then(settled_slots);
        if settled != Some(&self.slots) {
            self.written.forget();
            settled.unwrap_or("-").clone_into(&mut self.slots);
        }
        match (settled, says) {
            (Some(_), Some(says)) => {
                self.written
                    .said(answers.asked_at, &says.history, says.offset);
            }
            _ => self.written.forget(),
        }
    }
}
