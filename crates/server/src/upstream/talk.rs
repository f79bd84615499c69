//! What an engine says of itself, on a connection that waits for its answers.

use std::io::{self, IoSlice};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::time::Duration;

use front::{frame, Scanner, Value};

use super::{in_words, UpstreamOptions};
use crate::socket::{Progress, Socket};

/// What `INFO` of an engine may be at most, and its list of commands.
const REPLY_BYTES_MAX: usize = 64 << 20;

/// How long a node of a cluster is waited for: there are others.
const NODE_PATIENCE: Duration = Duration::from_secs(1);

/// Before what a node answers with an error.
pub const SAYS: &str = "it says: ";

/// What is said of a node that takes connections and no more.
const NO_HANDSHAKE: &str = "it does not go on with the TLS handshake; is its port one for TLS?";

/// What the engine says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct About {
    /// `redis` or `valkey`, and its version.
    pub name: String,
    /// Names its process.
    pub run_id: String,
    /// Memory that it uses, bytes.
    pub used_memory: u64,
    /// Its keys, of all tenants.
    pub keys: u64,
    /// It is part of a cluster.
    pub cluster: bool,
}

impl About {
    pub fn read(info: &str) -> Self {
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

/// A connection that waits for its answers.
pub struct Talk {
    socket: Socket,
    /// With whom, `host:port`.
    pub node: String,
    /// Where that is.
    pub at: SocketAddr,
}

impl Talk {
    /// Connects to the engine at `address` and logs in.
    ///
    /// # Errors
    /// Why it cannot.
    pub fn begin(address: &str, options: &UpstreamOptions) -> Result<Self, String> {
        let addresses = address.to_socket_addrs().map_err(|why| why.to_string())?;
        let patience = match options.cluster {
            true => options.patience.min(NODE_PATIENCE),
            false => options.patience,
        };
        let mut why = String::from("its name has no address");
        for at in addresses {
            match TcpStream::connect_timeout(&at, patience) {
                Ok(stream) => {
                    let set = stream
                        .set_read_timeout(Some(patience))
                        .and_then(|()| stream.set_write_timeout(Some(patience)))
                        .and_then(|()| options.session(address));
                    // It blocks: what is the poll's kind of a stream does not ask for more.
                    let stream = mio::net::TcpStream::from_std(stream);
                    let socket = set.and_then(|session| Socket::new(stream, session));
                    let socket = socket.map_err(|why| why.to_string())?;
                    // Whoever has given up waiting does something else: a slot may be another's by
                    // the time that a network is whole again.
                    socket.reset_on_close();
                    let mut talk = Self {
                        socket,
                        node: address.to_owned(),
                        at,
                    };
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
    ///
    /// # Errors
    /// It does not answer, or with an error.
    pub fn ask(&mut self, words: &[&[u8]]) -> Result<Value, String> {
        let mut request = Vec::new();
        frame(words.iter().copied(), &mut request);
        let mut left = &request[..];
        while !left.is_empty() {
            let written = self.socket.write(&[IoSlice::new(left)]);
            left = &left[self.moved(written)?..];
        }
        let flushed = self.socket.flush();
        self.moved(flushed)?;
        let (mut reply, mut scanner, mut piece) = (Vec::new(), Scanner::default(), [0; 16 << 10]);
        loop {
            let read = self.socket.read(&mut piece);
            let count = self.moved(read)?;
            if reply.len() > REPLY_BYTES_MAX {
                return Err("its answer is too long".into());
            }
            reply.extend_from_slice(&piece[..count]);
            if let Some(end) = scanner.end(&reply).map_err(|why| why.to_string())? {
                return match Value::read(&reply[..end]) {
                    Some(Value::Error(why)) => Err(format!("{SAYS}{why}")),
                    Some(value) => Ok(value),
                    None => Err("its answer is not understood".into()),
                };
            }
        }
    }

    /// How many bytes went one way or the other.
    fn moved(&self, progress: io::Result<Progress>) -> Result<usize, String> {
        match progress {
            Ok(Progress::Moved(count)) => Ok(count),
            Ok(Progress::Blocked) if self.socket.is_handshaking() => Err(NO_HANDSHAKE.into()),
            Ok(Progress::Blocked) => Err("it does not answer".into()),
            Ok(Progress::Closed) => Err("it has closed the connection".into()),
            Err(why) => Err(in_words(&why)),
        }
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
}
