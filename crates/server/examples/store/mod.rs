//! What the small stores have in common: sockets, the requests on them, and workers that each have
//! a poll and connections of their own.

use mio::net::TcpStream;
use mio::{Poll, Token, Waker};
use resp::{Limits, Parsed, Parser};
use std::error::Error;
use std::io::Write;
use std::net::TcpListener;
use std::sync::mpsc::{channel, Receiver};

pub type Failure = Box<dyn Error + Send + Sync>;

/// Under this token a worker is told of a connection.
const NEW: Token = Token(usize::MAX);

/// A client's byte stream.
pub struct Socket {
    pub stream: TcpStream,
    parser: Parser,
    /// What has come and was not answered.
    pub input: Vec<u8>,
    /// Replies not yet sent.
    pub output: Vec<u8>,
}

impl Socket {
    pub fn new(stream: std::net::TcpStream) -> Result<Self, Failure> {
        stream.set_nonblocking(true)?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream: TcpStream::from_std(stream),
            parser: Parser::new(),
            input: Vec::new(),
            output: Vec::new(),
        })
    }

    /// Has every whole request that has come answered.
    pub fn answer(
        &mut self,
        mut reply: impl FnMut(&[&[u8]], &mut Vec<u8>) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let (mut done, limits) = (0, Limits::default());
        loop {
            let rest = &self.input[done..];
            match self.parser.parse(rest, &limits)? {
                Parsed::Command(bytes) => {
                    let args = self.parser.args(rest);
                    let words: Vec<&[u8]> = args.iter().collect();
                    reply(&words, &mut self.output)?;
                    done += bytes;
                }
                Parsed::Skip(bytes) => done += bytes,
                Parsed::More(_) => break,
            }
        }
        self.input.drain(..done);
        Ok(())
    }
}

/// The reply to a `GET`.
pub fn value(output: &mut Vec<u8>, value: Option<&[u8]>) -> Result<(), Failure> {
    match value {
        Some(value) => {
            write!(output, "${}\r\n", value.len())?;
            output.extend_from_slice(value);
            output.extend_from_slice(b"\r\n");
        }
        None => output.extend_from_slice(b"$-1\r\n"),
    }
    Ok(())
}

/// Says that it is ready, accepts, and hands connections to workers in turn. Does not return.
pub fn hand_out(
    listener: &TcpListener,
    workers: usize,
    ready: &str,
    work: impl Fn(Poll, Receiver<Socket>) -> Result<(), Failure> + Clone + Send + 'static,
) -> Result<(), Failure> {
    let mut all = Vec::new();
    for _ in 0..workers {
        let poll = Poll::new()?;
        let waker = Waker::new(poll.registry(), NEW)?;
        let (sender, arrivals) = channel();
        let work = work.clone();
        std::thread::spawn(move || work(poll, arrivals));
        all.push((sender, waker));
    }
    println!("{ready}");
    for (sender, waker) in all.iter().cycle() {
        let (stream, _) = listener.accept()?;
        sender.send(Socket::new(stream)?)?;
        waker.wake()?;
    }
    Ok(())
}
