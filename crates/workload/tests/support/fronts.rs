//! Fronts of a cluster that are played by threads of the test: what they say their homes are, and
//! what these are, can differ.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;

/// Which front has a hash slot; one that is not there: each says that the next has it.
pub type Homes = fn(u16) -> usize;

/// What all fronts look at.
struct Ground {
    addresses: Vec<SocketAddr>,
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    told: Homes,
    homes: Homes,
    /// Requests for keys wait.
    held: bool,
    /// By front, how many requests it served, …
    served: Vec<u64>,
    /// … and the keys that it was given.
    keys: Vec<BTreeSet<Vec<u8>>>,
    /// By front, its connections, and whether it is there.
    sockets: Vec<Vec<TcpStream>>,
    there: Vec<bool>,
}

pub struct Fronts {
    ground: Arc<Ground>,
    threads: Vec<(usize, JoinHandle<()>)>,
}

impl Fronts {
    /// So many, with these homes, which they tell.
    pub fn start(count: usize, homes: Homes) -> Self {
        let any = |_| TcpListener::bind("127.0.0.1:0").expect("a port");
        let listeners: Vec<TcpListener> = (0..count).map(any).collect();
        let state = State {
            told: homes,
            homes,
            held: false,
            served: vec![0; count],
            keys: vec![BTreeSet::new(); count],
            sockets: (0..count).map(|_| Vec::new()).collect(),
            there: vec![true; count],
        };
        let address = |listener: &TcpListener| listener.local_addr().expect("an address");
        let ground = Arc::new(Ground {
            addresses: listeners.iter().map(address).collect(),
            state: Mutex::new(state),
            changed: Condvar::new(),
        });
        let mut fronts = Self {
            ground,
            threads: Vec::new(),
        };
        for (front, listener) in listeners.into_iter().enumerate() {
            fronts.listen(front, listener);
        }
        fronts
    }

    fn listen(&mut self, front: usize, listener: TcpListener) {
        let ground = self.ground.clone();
        let accept = move || {
            for socket in listener.incoming() {
                let Ok(socket) = socket else { continue };
                let mut state = ground.state.lock().expect("state");
                if !state.there[front] {
                    return;
                }
                state.sockets[front].push(socket.try_clone().expect("a socket"));
                drop(state);
                let ground = ground.clone();
                std::thread::spawn(move || ground.serve(front, socket));
            }
        };
        self.threads.push((front, std::thread::spawn(accept)));
    }

    pub fn address(&self, front: usize) -> SocketAddr {
        self.ground.addresses[front]
    }

    /// What `CLUSTER SLOTS` says from now on.
    pub fn tell(&self, told: Homes) {
        self.ground.state.lock().expect("state").told = told;
    }

    /// Who serves what from now on.
    pub fn are(&self, homes: Homes) {
        self.ground.state.lock().expect("state").homes = homes;
    }

    /// Whether requests for keys wait.
    pub fn hold(&self, held: bool) {
        self.ground.state.lock().expect("state").held = held;
        self.ground.changed.notify_all();
    }

    /// By front, how many requests it served.
    pub fn served(&self) -> Vec<u64> {
        self.ground.state.lock().expect("state").served.clone()
    }

    /// By front, how many keys it was given.
    pub fn keys(&self) -> Vec<usize> {
        let state = self.ground.state.lock().expect("state");
        state.keys.iter().map(BTreeSet::len).collect()
    }

    /// Ends a front.
    pub fn end(&mut self, front: usize) {
        let mut state = self.ground.state.lock().expect("state");
        state.there[front] = false;
        for socket in state.sockets[front].drain(..) {
            let _ = socket.shutdown(Shutdown::Both);
        }
        drop(state);
        self.hold(false);
        let _ = TcpStream::connect(self.address(front));
        let (its, others) = self.threads.drain(..).partition(|(of, _)| *of == front);
        self.threads = others;
        for (_, thread) in its {
            let thread: JoinHandle<()> = thread;
            thread.join().expect("a front");
        }
    }

    /// Starts one again that was ended.
    pub fn again(&mut self, front: usize) {
        let listener = TcpListener::bind(self.address(front)).expect("its port");
        self.ground.state.lock().expect("state").there[front] = true;
        self.listen(front, listener);
    }
}

impl Drop for Fronts {
    fn drop(&mut self) {
        (0..self.ground.addresses.len()).for_each(|front| self.end(front));
    }
}

impl Ground {
    /// One client's requests until it goes.
    fn serve(&self, front: usize, socket: TcpStream) {
        socket.set_nodelay(true).expect("a socket");
        let mut reader = BufReader::new(socket.try_clone().expect("a socket"));
        let mut writer = socket;
        while let Some(words) = request(&mut reader) {
            let reply = match words[0].as_slice() {
                b"CLUSTER" => self.slots(),
                b"GET" | b"SET" => self.ask(front, &words[1]),
                _ => "+OK\r\n".into(),
            };
            if writer.write_all(reply.as_bytes()).is_err() {
                return;
            }
        }
    }

    fn ask(&self, front: usize, key: &[u8]) -> String {
        let state = self.state.lock().expect("state");
        let mut state = self
            .changed
            .wait_while(state, |state| state.held)
            .expect("state");
        let slot = front::slot(key);
        let home = (state.homes)(slot);
        if home != front {
            let next = (front + 1) % self.addresses.len();
            let home = self.addresses.get(home).unwrap_or(&self.addresses[next]);
            return format!("-MOVED {slot} {home}\r\n");
        }
        state.served[front] += 1;
        state.keys[front].insert(key.to_vec());
        "+OK\r\n".into()
    }

    fn slots(&self) -> String {
        let told = self.state.lock().expect("state").told;
        let mut ranges: Vec<(u16, u16, usize)> = Vec::new();
        for slot in 0..front::SLOTS {
            match ranges.last_mut() {
                Some(last) if last.2 == told(slot) => last.1 = slot,
                _ => ranges.push((slot, slot, told(slot))),
            }
        }
        let mut text = format!("*{}\r\n", ranges.len());
        for (from, to, front) in ranges {
            let address = self.addresses[front];
            let (host, port) = (address.ip().to_string(), address.port());
            text += &format!(
                "*3\r\n:{from}\r\n:{to}\r\n*2\r\n${}\r\n{host}\r\n:{port}\r\n",
                host.len()
            );
        }
        text
    }
}

/// The words of the next request; `None`: the client has gone.
fn request(reader: &mut impl BufRead) -> Option<Vec<Vec<u8>>> {
    let count = number(reader)?;
    let mut words = Vec::new();
    for _ in 0..count {
        let mut word = vec![0; number(reader)? + 2];
        reader.read_exact(&mut word).ok()?;
        word.truncate(word.len() - 2);
        words.push(word);
    }
    Some(words)
}

/// What the next line says behind its first letter.
fn number(reader: &mut impl BufRead) -> Option<usize> {
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    line.trim_end().get(1..)?.parse().ok()
}
