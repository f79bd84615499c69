//! A small store behind queues of two designs, which are compared with each other: the experiment
//! pisces-overhead starts it.
//!
//! `locked` is the "natural design point for fair queuing" that Pisces turned down (thesis 4.3.5,
//! figure 4.3c): one thread enqueues connections with their tenants, and workers pull them off, one
//! at a time, and serve a quantum each. Each tenant's queue is behind a lock, and so is the list of
//! tenants that have something queued, on which workers wait while it is empty. `owned` is ours:
//! each worker has connections of its own, and the stage that ships says whose turn it is; nothing
//! is shared on the way but the values. These are in memory for both. `GET` and `SET` are done,
//! `AUTH` names the tenant, and all else is answered `OK`.
//!
//! ```text
//! queue_store locked|owned WORKERS           says where it listens
//! ```

mod store;

use mio::{Events, Interest, Poll, Registry, Token};
use parking_lot::{Condvar, Mutex, RwLock};
use stage::{Allocation, Cost, DispatchOptions, Next, PrincipalId, Stage};
use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpListener;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::mpsc::Receiver;
use std::sync::Arc;
use std::time::{Duration, Instant};
use store::{hand_out, value, Failure, Socket};

/// As our server has it.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

const EVENTS: usize = 1024;
/// Turns between two looks at what has become readable.
const TURNS: usize = 64;
/// What a connection may read at a turn, as ours.
const QUANTUM_BYTES: usize = 64 << 10;
const SHARDS: usize = 64;

fn main() -> Result<(), Failure> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let store = Arc::new(Store::default());
    let ready = format!(
        "queue store is ready: clients on {}",
        listener.local_addr()?
    );
    match words[..] {
        ["locked", workers] => locked(&store, listener, workers.parse()?, &ready),
        ["owned", workers] => owned(&store, &listener, workers.parse()?, &ready),
        _ => Err("expected locked WORKERS, or owned WORKERS".into()),
    }
}

/// This thread enqueues, workers serve. Does not return.
fn locked(
    store: &Arc<Store>,
    listener: TcpListener,
    workers: usize,
    ready: &str,
) -> Result<(), Failure> {
    let shared = Arc::new(Shared::default());
    for _ in 0..workers {
        let (store, shared) = (Arc::clone(store), Arc::clone(&shared));
        std::thread::spawn(move || shared.work(&store));
    }
    let mut poll = Poll::new()?;
    let registry = poll.registry().try_clone()?;
    let (accepting, values) = (Arc::clone(&shared), Arc::clone(store));
    std::thread::spawn(move || accepting.accept(&values, &listener, &registry));
    println!("{ready}");
    let mut events = Events::with_capacity(EVENTS);
    loop {
        poll.poll(&mut events, None)?;
        for event in &events {
            let Token(number) = event.token();
            let peer = shared.peers.read().get(number).cloned();
            if let Some(peer) = peer.filter(|peer| peer.readable()) {
                shared.enqueue(peer);
            }
        }
    }
}

/// Each worker has connections of its own. Does not return.
fn owned(
    store: &Arc<Store>,
    listener: &TcpListener,
    workers: usize,
    ready: &str,
) -> Result<(), Failure> {
    let store = Arc::clone(store);
    let work = move |poll, arrivals| Owner::new(Arc::clone(&store), poll).work(&arrivals);
    hand_out(listener, workers, ready, work)
}

/// Nothing to read; waits for its turn, or has it; the same, and more has come since.
const IDLE: u8 = 0;
const QUEUED: u8 = 1;
const MORE: u8 = 2;

/// A connection.
struct Peer {
    state: AtomicU8,
    tenant: RwLock<Arc<Tenant>>,
    socket: Mutex<Socket>,
}

/// A part of a tenant's values.
type Shard = RwLock<HashMap<Box<[u8]>, Box<[u8]>>>;

struct Tenant {
    /// As a stage calls it.
    number: u32,
    /// Its connections that wait, where queues are shared.
    waiting: Mutex<VecDeque<Arc<Peer>>>,
    shards: Vec<Shard>,
    hasher: RandomState,
}

impl Tenant {
    fn new(number: u32) -> Tenant {
        Tenant {
            number,
            waiting: Mutex::default(),
            shards: (0..SHARDS).map(|_| Shard::default()).collect(),
            hasher: RandomState::new(),
        }
    }

    fn shard(&self, key: &[u8]) -> &Shard {
        &self.shards[self.hasher.hash_one(key) as usize % SHARDS]
    }
}

/// The values.
#[derive(Default)]
struct Store {
    /// By name; connections that have not logged in belong to the one without a name.
    tenants: Mutex<HashMap<Box<[u8]>, Arc<Tenant>>>,
}

/// Queues that workers share.
#[derive(Default)]
struct Shared {
    peers: RwLock<Vec<Arc<Peer>>>,
    /// Tenants of which somebody waits, in turn.
    active: Mutex<VecDeque<Arc<Tenant>>>,
    /// Some tenant became active.
    some: Condvar,
}

impl Peer {
    /// Whether it is to be queued: it is not yet.
    fn readable(&self) -> bool {
        let order = Ordering::AcqRel;
        let idle = (self.state).compare_exchange(IDLE, QUEUED, order, Ordering::Acquire);
        if idle.is_err() {
            self.state.store(MORE, Ordering::Release);
        }
        idle.is_ok()
    }

    /// Whether it is to be queued again after a turn that may have left something.
    fn again(&self, left: bool) -> bool {
        let order = Ordering::AcqRel;
        let quiet = || (self.state).compare_exchange(QUEUED, IDLE, order, Ordering::Acquire);
        if !left && quiet().is_ok() {
            return false;
        }
        self.state.store(QUEUED, Ordering::Release);
        true
    }
}

impl Shared {
    fn accept(
        &self,
        store: &Store,
        listener: &TcpListener,
        registry: &Registry,
    ) -> Result<(), Failure> {
        for stream in listener.incoming() {
            let peer = Arc::new(store.peer(Socket::new(stream?)?));
            let mut peers = self.peers.write();
            let number = peers.len();
            peers.push(Arc::clone(&peer));
            drop(peers);
            let stream = &mut peer.socket.lock().stream;
            registry.register(stream, Token(number), Interest::READABLE)?;
        }
        Ok(())
    }

    fn enqueue(&self, peer: Arc<Peer>) {
        let tenant = Arc::clone(&peer.tenant.read());
        let mut waiting = tenant.waiting.lock();
        waiting.push_back(peer);
        if waiting.len() == 1 {
            self.active.lock().push_back(Arc::clone(&tenant));
            self.some.notify_one();
        }
    }

    /// A worker: the next tenant's next connection.
    fn work(&self, store: &Store) {
        loop {
            let mut active = self.active.lock();
            let tenant = loop {
                match active.pop_front() {
                    Some(tenant) => break tenant,
                    None => self.some.wait(&mut active),
                }
            };
            drop(active);
            let mut waiting = tenant.waiting.lock();
            let peer = waiting.pop_front();
            if !waiting.is_empty() {
                self.active.lock().push_back(Arc::clone(&tenant));
                self.some.notify_one();
            }
            drop(waiting);
            // An error is the end of it: nobody will call it readable again.
            let turn = |peer: &Arc<Peer>| Some(peer.again(store.serve(peer).ok()?));
            if let Some(peer) = peer.filter(|peer| turn(peer) == Some(true)) {
                self.enqueue(peer);
            }
        }
    }
}

/// A worker with connections of its own.
struct Owner {
    store: Arc<Store>,
    poll: Poll,
    peers: Vec<Arc<Peer>>,
    stage: Stage<Arc<Peer>, 1>,
    known: HashSet<u32>,
    begun: Instant,
}

impl Owner {
    fn new(store: Arc<Store>, poll: Poll) -> Owner {
        Owner {
            store,
            poll,
            peers: Vec::new(),
            stage: Stage::new(DispatchOptions::handlers(1)),
            known: HashSet::new(),
            begun: Instant::now(),
        }
    }

    fn now(&self) -> u64 {
        self.begun.elapsed().as_nanos() as u64
    }

    fn work(&mut self, arrivals: &Receiver<Socket>) -> Result<(), Failure> {
        let mut events = Events::with_capacity(EVENTS);
        loop {
            let patience = (self.stage.queued() > 0).then_some(Duration::ZERO);
            self.poll.poll(&mut events, patience)?;
            for socket in arrivals.try_iter() {
                let peer = Arc::new(self.store.peer(socket));
                self.peers.push(Arc::clone(&peer));
                let number = Token(self.peers.len() - 1);
                let stream = &mut peer.socket.lock().stream;
                (self.poll.registry()).register(stream, number, Interest::READABLE)?;
            }
            for event in &events {
                let Token(number) = event.token();
                let peer = self.peers.get(number).cloned();
                if let Some(peer) = peer.filter(|peer| peer.readable()) {
                    self.enqueue(peer);
                }
            }
            self.turns();
        }
    }

    fn enqueue(&mut self, peer: Arc<Peer>) {
        let (now, number) = (self.now(), peer.tenant.read().number);
        let tenant = PrincipalId(number);
        if self.known.insert(number) {
            (self.stage).configure(now, tenant, &Allocation::share(1.0));
        }
        // A queue holds more than there are connections.
        let _ = self.stage.enqueue(now, tenant, 0, peer);
    }

    fn turns(&mut self) {
        let mut now = self.now();
        for _ in 0..TURNS {
            let Next::Admitted(turn) = self.stage.next(now) else {
                return;
            };
            let served = self.store.serve(&turn.item);
            let ended = self.now();
            (self.stage).settle(ended, turn.permit, Cost([ended - now]));
            now = ended;
            // An error is the end of it: nobody will call it readable again.
            if served.is_ok_and(|left| turn.item.again(left)) {
                self.enqueue(turn.item);
            }
        }
    }
}

impl Store {
    fn peer(&self, socket: Socket) -> Peer {
        Peer {
            state: AtomicU8::new(IDLE),
            tenant: RwLock::new(self.tenant(b"")),
            socket: Mutex::new(socket),
        }
    }

    /// A quantum of a connection. Whether there may be more to read.
    fn serve(&self, peer: &Peer) -> Result<bool, Failure> {
        let socket = &mut *peer.socket.lock();
        let mut some = [0; QUANTUM_BYTES];
        let left = match socket.stream.read(&mut some) {
            Ok(0) => return Err("it has gone".into()),
            Ok(count) => {
                socket.input.extend_from_slice(&some[..count]);
                count == QUANTUM_BYTES
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => false,
            Err(error) => return Err(error.into()),
        };
        socket.answer(|words, output| self.reply(peer, words, output))?;
        let mut sent = 0;
        while sent < socket.output.len() {
            match socket.stream.write(&socket.output[sent..]) {
                Ok(count) => sent += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => std::thread::yield_now(),
                Err(error) => return Err(error.into()),
            }
        }
        socket.output.clear();
        Ok(left)
    }

    fn reply(&self, peer: &Peer, words: &[&[u8]], output: &mut Vec<u8>) -> Result<(), Failure> {
        match words {
            [get, key] if get.eq_ignore_ascii_case(b"get") => {
                let tenant = peer.tenant.read();
                let shard = tenant.shard(key).read();
                value(output, shard.get(*key).map(|value| &**value))?;
            }
            [set, key, value, ..] if set.eq_ignore_ascii_case(b"set") => {
                let tenant = peer.tenant.read();
                let mut shard = tenant.shard(key).write();
                shard.insert(Box::from(*key), Box::from(*value));
                output.extend_from_slice(b"+OK\r\n");
            }
            [auth, name, _] if auth.eq_ignore_ascii_case(b"auth") => {
                *peer.tenant.write() = self.tenant(name);
                output.extend_from_slice(b"+OK\r\n");
            }
            _ => output.extend_from_slice(b"+OK\r\n"),
        }
        Ok(())
    }

    fn tenant(&self, name: &[u8]) -> Arc<Tenant> {
        let mut tenants = self.tenants.lock();
        let next = tenants.len() as u32;
        let tenant = tenants.entry(Box::from(name));
        Arc::clone(tenant.or_insert_with(|| Arc::new(Tenant::new(next))))
    }
}
