//! A connection to a node that is asked now and then, and never waited for.

use std::io::{self, IoSlice};
use std::net::SocketAddr;

use front::{frame, Scanner, Value};
use mio::{Registry, Token};
use policy::Nanos;

use super::UpstreamOptions;
use crate::socket::{Progress, Socket};

/// Who answers nothing for so long is asked on a new connection.
const PATIENCE_NS: Nanos = 5_000_000_000;
/// A connection that was lost is not tried again for so long.
const PAUSE_NS: Nanos = 500_000_000;
/// An answer is never longer: a thousand nodes are told of in a quarter of that.
const ANSWER_BYTES_MAX: usize = 1 << 20;

/// What was answered to one question.
pub struct Answers {
    /// When it was asked.
    pub asked_at: Nanos,
    /// To each of its commands.
    pub all: Vec<Value>,
}

/// The connection.
pub struct Asker {
    /// `host:port`, as the cluster calls it.
    node: String,
    at: SocketAddr,
    token: Token,
    socket: Option<Socket>,
    /// It is not tried before.
    from: Nanos,
    out: Vec<u8>,
    input: Vec<u8>,
    scanner: Scanner,
    asked_at: Nanos,
    /// Answers that are still to come: to the log-in, and to the question.
    missing: [usize; 2],
    answers: Vec<Value>,
}

impl Asker {
    /// One that is not connected yet.
    pub fn new(node: String, at: SocketAddr, token: Token) -> Self {
        Self {
            node,
            at,
            token,
            socket: None,
            from: 0,
            out: Vec::new(),
            input: Vec::new(),
            scanner: Scanner::default(),
            asked_at: 0,
            missing: [0; 2],
            answers: Vec::new(),
        }
    }

    /// What the poll calls it.
    pub fn token(&self) -> Token {
        self.token
    }

    /// Asks, unless an answer is still to come.
    pub fn ask(
        &mut self,
        question: &[&[&[u8]]],
        now: Nanos,
        options: &UpstreamOptions,
        registry: &Registry,
    ) {
        let waits = self.missing != [0; 2];
        if waits && now.saturating_sub(self.asked_at) > PATIENCE_NS {
            self.lose(now);
        }
        if now < self.from || self.missing != [0; 2] {
            return;
        }
        if self.socket.is_none() {
            match options.connect(&self.node, self.at, self.token, registry) {
                Ok(socket) => self.socket = Some(socket),
                Err(_) => return self.lose(now),
            }
            if let Some(words) = options.login() {
                frame(words.into_iter(), &mut self.out);
                self.missing[0] = 1;
            }
        }
        for words in question {
            frame(words.iter().copied(), &mut self.out);
        }
        self.missing[1] = question.len();
        self.asked_at = now;
        if self.flush().is_err() {
            self.lose(now);
        }
    }

    /// The poll says something of it. Returns the answers, if they have come.
    pub fn noticed(&mut self, now: Nanos) -> Option<Answers> {
        let moved = self.flush().and_then(|()| self.read());
        if moved.is_err() {
            self.lose(now);
            return None;
        }
        let whole = self.missing == [0; 2] && !self.answers.is_empty();
        whole.then(|| Answers {
            asked_at: self.asked_at,
            all: std::mem::take(&mut self.answers),
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        let Some(socket) = &mut self.socket else {
            return Ok(());
        };
        while !self.out.is_empty() {
            match socket.write(&[IoSlice::new(&self.out)])? {
                Progress::Moved(count) => drop(self.out.drain(..count)),
                // It still connects, or takes no more.
                Progress::Blocked => break,
                Progress::Closed => return Err(io::ErrorKind::WriteZero.into()),
            }
        }
        socket.flush().map(drop)
    }

    fn read(&mut self) -> io::Result<()> {
        let mut piece = [0; 16 << 10];
        while let Some(socket) = &mut self.socket {
            match socket.read(&mut piece)? {
                Progress::Moved(count) => self.input.extend_from_slice(&piece[..count]),
                Progress::Blocked => break,
                Progress::Closed => return Err(io::ErrorKind::UnexpectedEof.into()),
            }
            self.take()?;
        }
        Ok(())
    }

    /// Takes the answers out of what has come.
    fn take(&mut self) -> io::Result<()> {
        let bad = || io::Error::from(io::ErrorKind::InvalidData);
        while let Some(end) = self.scanner.end(&self.input).map_err(|_| bad())? {
            let value = Value::read(&self.input[..end]).ok_or_else(bad)?;
            self.input.drain(..end);
            match (&mut self.missing, value) {
                (_, Value::Error(_)) | ([0, 0], _) => return Err(bad()),
                ([0, question], value) => {
                    *question -= 1;
                    self.answers.push(value);
                }
                ([login, _], _) => *login -= 1,
            }
        }
        match self.input.len() > ANSWER_BYTES_MAX {
            true => Err(bad()),
            false => Ok(()),
        }
    }

    fn lose(&mut self, now: Nanos) {
        *self = Self {
            from: now + PAUSE_NS,
            ..Self::new(std::mem::take(&mut self.node), self.at, self.token)
        };
    }
}
