//! One blocking connection: probing a server, waiting until it is ready, administration.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use front::{Scanner, Value};

use super::reply::{Kind, ReplyParser};
use super::Identity;
use crate::encode;
use crate::error::WorkloadError;

/// So much is written or read at a time: the kernel interrupts nobody inside a system call.
const PART_BYTES: usize = 64 << 10;

/// A connection whose commands are sent one at a time.
#[derive(Debug)]
pub struct Control {
    socket: TcpStream,
    target: SocketAddr,
}

impl Control {
    /// Connects and introduces itself. Every step waits at most `timeout`.
    ///
    /// # Errors
    /// [`WorkloadError::Unreachable`] without a connection, [`WorkloadError::Refused`] if the
    /// server answers a command of the handshake with an error (wrong password, unknown tenant).
    pub fn connect(
        target: SocketAddr,
        identity: &Identity,
        timeout: Duration,
    ) -> Result<Self, WorkloadError> {
        let unreachable = |source| broken(target, source);
        let socket = TcpStream::connect_timeout(&target, timeout).map_err(unreachable)?;
        socket.set_nodelay(true).map_err(unreachable)?;
        socket
            .set_read_timeout(Some(timeout))
            .map_err(unreachable)?;
        socket
            .set_write_timeout(Some(timeout))
            .map_err(unreachable)?;
        let mut control = Self { socket, target };
        for words in identity.handshake() {
            if let Some(reply) = control.command(&words)? {
                return Err(WorkloadError::Refused {
                    tenant: identity.tenant().into(),
                    command: String::from_utf8_lossy(words[0]).into_owned(),
                    reply,
                });
            }
        }
        Ok(control)
    }

    /// Sends one command and waits for its reply. `Some` is the text of an error reply.
    ///
    /// # Errors
    /// [`WorkloadError::Unreachable`] if the connection breaks or the server takes too long.
    pub fn command(&mut self, words: &[&[u8]]) -> Result<Option<String>, WorkloadError> {
        self.commands(&[words.to_vec()])
    }

    /// Sends several at once and waits for the replies of all. `Some` is the text of the last error
    /// reply.
    ///
    /// # Errors
    /// As [`Control::command`].
    pub fn commands(&mut self, row: &[Vec<&[u8]>]) -> Result<Option<String>, WorkloadError> {
        let target = self.target;
        let broken = |source| broken(target, source);
        let mut out = Vec::new();
        row.iter()
            .for_each(|words| encode::command(&mut out, words));
        for part in out.chunks(PART_BYTES) {
            self.socket.write_all(part).map_err(broken)?;
        }
        drop(out);
        let (mut parser, mut buffer) = (ReplyParser::default(), vec![0; PART_BYTES]);
        let (mut left, mut answer) = (row.len(), None);
        while left > 0 {
            let n = self.socket.read(&mut buffer).map_err(broken)?;
            if n == 0 {
                return Err(broken(io::ErrorKind::ConnectionAborted.into()));
            }
            let fed = parser.feed(&buffer[..n], |reply| match reply.kind {
                Kind::Push => {}
                Kind::Value => left = left.saturating_sub(1),
                Kind::Error => {
                    left = left.saturating_sub(1);
                    answer = Some(String::from_utf8_lossy(reply.error).into());
                }
            });
            fed.map_err(|reason| broken(no_reply(reason)))?;
        }
        Ok(answer)
    }

    /// Sends one command and waits for its reply, whatever that is.
    ///
    /// REQUIRES: an identity that speaks RESP2.
    ///
    /// # Errors
    /// As [`Control::command`].
    pub(crate) fn ask(&mut self, words: &[&[u8]]) -> Result<Value, WorkloadError> {
        let target = self.target;
        let broken = |source| broken(target, source);
        let mut out = Vec::new();
        encode::command(&mut out, words);
        self.socket.write_all(&out).map_err(broken)?;
        let (mut scanner, mut reply) = (Scanner::default(), Vec::new());
        let mut buffer = vec![0; PART_BYTES];
        loop {
            let n = self.socket.read(&mut buffer).map_err(broken)?;
            if n == 0 {
                return Err(broken(io::ErrorKind::ConnectionAborted.into()));
            }
            reply.extend_from_slice(&buffer[..n]);
            let end = scanner.end(&reply);
            if let Some(end) = end.map_err(|e| broken(no_reply(e)))? {
                let value = Value::read(&reply[..end]);
                return value.ok_or_else(|| broken(no_reply("a reply that is not RESP2")));
            }
        }
    }
}

fn broken(target: SocketAddr, source: io::Error) -> WorkloadError {
    WorkloadError::Unreachable {
        target: target.to_string(),
        source,
    }
}

fn no_reply(reason: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason)
}
