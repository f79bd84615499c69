//! The engine that keeps the data where that is not this process: one Redis or Valkey, where it
//! is, what commands it has, and whether it is there.
//!
//! Cores have connections of their own to it. What is here uses one that waits for its answers:
//! once at the start, and then on a thread that looks once a second.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::mpsc::{channel, RecvTimeoutError, Sender};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use front::{frame, Scanner, Table, Value};
use parking_lot::RwLock;

/// Between two looks at the engine.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// What `INFO` of an engine may be at most, and its list of commands.
const REPLY_BYTES_MAX: usize = 64 << 20;

/// Where the engine is, and how it is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpstreamOptions {
    /// `host:port`.
    pub address: String,
    /// Its user; none: the default one.
    pub user: Option<String>,
    /// The password; none: it asks for none.
    pub password: Option<String>,
    /// It is taken to be away when it has not said a word for so long while it is waited for.
    pub patience: Duration,
    /// The tenant whose keys have no mark.
    pub unmarked: Option<String>,
}

impl UpstreamOptions {
    /// The words with which a connection logs in; none: it need not.
    pub fn login(&self) -> Option<Vec<&[u8]>> {
        let password = self.password.as_ref()?.as_bytes();
        let user = self.user.as_ref().map(String::as_bytes);
        let mut words: Vec<&[u8]> = vec![b"AUTH"];
        words.extend(user);
        words.push(password);
        Some(words)
    }
}

/// What the engine says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct About {
    /// `redis` or `valkey`, and its version.
    pub name: String,
    /// Names its process.
    run_id: String,
    /// Memory that it uses, bytes.
    pub used_memory: u64,
    /// Its keys, of all tenants.
    pub keys: u64,
    /// It is part of a cluster.
    cluster: bool,
}

impl About {
    fn read(info: &str) -> Self {
        let field = |name: &str| {
            let mut lines = info.lines();
            lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
        };
        let number = |name| field(name).and_then(|value| value.parse().ok());
        let name = match (field("valkey_version"), field("redis_version")) {
            (Some(version), _) => format!("valkey {version}"),
            (None, version) => format!("redis {}", version.unwrap_or("of unknown version")),
        };
        let keys = |line: &str| {
            let figures = line.strip_prefix("db")?.split_once(":keys=")?.1;
            figures.split(',').next()?.parse::<u64>().ok()
        };
        Self {
            name,
            run_id: field("run_id").unwrap_or_default().to_owned(),
            used_memory: number("used_memory").unwrap_or_default(),
            keys: info.lines().filter_map(keys).sum(),
            cluster: field("redis_mode") == Some("cluster")
                || field("server_mode") == Some("cluster"),
        }
    }
}

/// What the last look found.
#[derive(Clone)]
pub struct Found {
    /// Where it was.
    pub at: SocketAddr,
    /// Its commands. Lists of commands live as long as the process: they are few, since an engine
    /// that comes back usually is the one that went.
    pub table: &'static Table,
    /// What the list was read from.
    words: Arc<Value>,
    /// What it said of itself.
    pub about: About,
    /// Why it is away; none: it is there.
    pub away: Option<String>,
}

/// The engine, as all threads see it.
pub struct Upstream {
    /// As configured.
    pub options: UpstreamOptions,
    found: RwLock<Found>,
}

impl Upstream {
    /// Looks for the engine for the first time.
    ///
    /// # Errors
    /// What keeps it from being used, with what to do.
    pub fn find(options: UpstreamOptions) -> Result<Self, String> {
        let found = Talk::begin(&options)
            .and_then(|mut talk| talk.look(None))
            .map_err(|why| {
                format!(
                    "the engine at {} cannot be used: {why}. Start it, or correct engine.url",
                    options.address
                )
            })?;
        Ok(Self {
            options,
            found: RwLock::new(found),
        })
    }

    /// What the last look found.
    pub fn found(&self) -> Found {
        self.found.read().clone()
    }

    /// Why it is away; none: it is there.
    pub fn away(&self) -> Option<String> {
        self.found.read().away.clone()
    }

    /// One more look. True: its commands may be others now.
    fn look(&self, talk: &mut Option<Talk>) -> bool {
        let before = self.found();
        let result = match talk.take() {
            Some(talk) => Ok(talk),
            None => Talk::begin(&self.options),
        };
        let result = result.and_then(|mut begun| {
            let found = begun.look(Some(&before))?;
            *talk = Some(begun);
            Ok(found)
        });
        match result {
            Ok(found) => {
                if let Some(why) = before.away {
                    tracing::info!(
                        "the engine at {} is back: {}; it was away: {why}",
                        self.options.address,
                        found.about.name
                    );
                }
                let other = !std::ptr::eq(found.table, before.table) || found.at != before.at;
                *self.found.write() = found;
                other
            }
            Err(why) => {
                if before.away.is_none() {
                    tracing::warn!(
                        "the engine at {} is away: {why}; requests that need it get an error",
                        self.options.address
                    );
                }
                self.found.write().away = Some(why);
                false
            }
        }
    }
}

/// The thread that looks.
pub struct Lookout {
    end: Sender<()>,
    thread: JoinHandle<()>,
}

impl Lookout {
    /// Looks once a second, and calls `changed` when the engine may have other commands.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn start(upstream: Arc<Upstream>, changed: impl Fn() + Send + 'static) -> io::Result<Self> {
        let (end, ended) = channel();
        let thread = thread::Builder::new().name("lookout".into());
        let thread = thread.spawn(move || {
            let mut talk = None;
            while ended.recv_timeout(LOOK_EVERY) == Err(RecvTimeoutError::Timeout) {
                if upstream.look(&mut talk) {
                    changed();
                }
            }
        })?;
        Ok(Self { end, thread })
    }

    /// Ends it.
    pub fn stop(self) {
        drop(self.end);
        // A panic would have ended the process.
        let _ = self.thread.join();
    }
}

/// A connection that waits for its answers.
struct Talk {
    stream: TcpStream,
    at: SocketAddr,
}

impl Talk {
    fn begin(options: &UpstreamOptions) -> Result<Self, String> {
        let addresses = options
            .address
            .to_socket_addrs()
            .map_err(|why| why.to_string())?;
        let mut why = String::from("its name has no address");
        for at in addresses {
            match TcpStream::connect_timeout(&at, options.patience) {
                Ok(stream) => {
                    let set = stream
                        .set_read_timeout(Some(options.patience))
                        .and_then(|()| stream.set_write_timeout(Some(options.patience)))
                        .and_then(|()| stream.set_nodelay(true));
                    set.map_err(|why| why.to_string())?;
                    let mut talk = Self { stream, at };
                    if let Some(words) = options.login() {
                        talk.ask(&words)?;
                    }
                    return Ok(talk);
                }
                Err(error) => why = error.to_string(),
            }
        }
        Err(why)
    }

    /// Sends a request and reads its reply.
    fn ask(&mut self, words: &[&[u8]]) -> Result<Value, String> {
        let mut request = Vec::new();
        frame(words.iter().copied(), &mut request);
        self.stream
            .write_all(&request)
            .map_err(|why| why.to_string())?;
        let (mut reply, mut scanner, mut piece) = (Vec::new(), Scanner::default(), [0; 16 << 10]);
        loop {
            let count = self
                .stream
                .read(&mut piece)
                .map_err(|why| match why.kind() {
                    io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                        "it does not answer".to_string()
                    }
                    _ => why.to_string(),
                })?;
            if count == 0 || reply.len() > REPLY_BYTES_MAX {
                return Err("it has closed the connection".into());
            }
            reply.extend_from_slice(&piece[..count]);
            if let Some(end) = scanner.end(&reply).map_err(|why| why.to_string())? {
                return match Value::read(&reply[..end]) {
                    Some(Value::Error(why)) => Err(format!("it says: {why}")),
                    Some(value) => Ok(value),
                    None => Err("its answer is not understood".into()),
                };
            }
        }
    }

    fn look(&mut self, before: Option<&Found>) -> Result<Found, String> {
        let info = self.ask(&[b"INFO"])?;
        let about = About::read(info.text().unwrap_or_default());
        if about.cluster {
            return Err("it is a node of a cluster, which this version cannot stand before".into());
        }
        let same = |found: &&Found| found.about.run_id == about.run_id && found.away.is_none();
        let (table, words) = match before.filter(same) {
            Some(found) => (found.table, Arc::clone(&found.words)),
            None => {
                let words = self.ask(&[b"COMMAND"])?;
                match before.filter(|found| *found.words == words) {
                    Some(found) => (found.table, Arc::clone(&found.words)),
                    None => {
                        let table = Table::read(&words, before.map(|found| found.table));
                        let table = table.map_err(|why| why.to_string())?;
                        (&*Box::leak(Box::new(table)), Arc::new(words))
                    }
                }
            }
        };
        Ok(Found {
            at: self.at,
            table,
            words,
            about,
            away: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_engine_tells_what_it_is() {
        let info = "# Server\r\nredis_version:7.2.4\r\nvalkey_version:9.1.2\r\nserver_mode:standalone\r\n\
            run_id:abc\r\n# Memory\r\nused_memory:1234\r\n# Keyspace\r\ndb0:keys=5,expires=0,avg_ttl=0\r\n\
            db3:keys=2,expires=1,avg_ttl=9\r\n";
        let about = About::read(info);
        assert_eq!(
            (about.name.as_str(), about.used_memory, about.keys),
            ("valkey 9.1.2", 1_234, 7)
        );
        assert!(!about.cluster);
        assert!(About::read("redis_version:7.0.15\r\nredis_mode:cluster\r\n").cluster);
    }

    #[test]
    fn nobody_there_is_said_with_what_to_do() {
        let free = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = free.local_addr().expect("an address").to_string();
        drop(free);
        let options = UpstreamOptions {
            address: address.clone(),
            user: None,
            password: None,
            patience: Duration::from_secs(1),
            unmarked: None,
        };
        let why = Upstream::find(options).err().expect("nobody listens");
        assert!(
            why.contains(&address) && why.contains("correct engine.url"),
            "{why}"
        );
    }
}
