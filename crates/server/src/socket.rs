//! The byte stream between this server and one peer, a client or an engine: TCP, bare or under TLS.

mod round_trip;

use std::io::{self, IoSlice, Read, Write};
use std::time::Duration;

use mio::event::Source;
use mio::net::TcpStream;
use mio::{Interest, Registry, Token};
use rustls::Connection;
use socket2::SockRef;

/// What one attempt to move bytes came to.
#[derive(Debug, PartialEq, Eq)]
pub enum Progress {
    /// This many bytes moved (> 0).
    Moved(usize),
    /// Nothing to be had now; the poll will tell. Of a stream that blocks: nothing in time.
    Blocked,
    /// The peer has closed its side.
    Closed,
}

/// A peer's stream.
pub enum Socket {
    /// Bytes as they are.
    Plain(TcpStream),
    /// Bytes under TLS; the session is boxed because most connections have none.
    Tls(TcpStream, Box<Connection>),
}

impl Socket {
    /// Over a new stream; `session` given means that the peer must speak TLS. Its handshake is made
    /// by reads and writes.
    ///
    /// # Errors
    /// The kernel's.
    pub fn new(stream: TcpStream, session: Option<Connection>) -> io::Result<Self> {
        // What is small must not wait for the peer's delayed ACK.
        stream.set_nodelay(true)?;
        Ok(match session {
            None => Self::Plain(stream),
            Some(session) => Self::Tls(stream, Box::new(session)),
        })
    }

    /// What a segment and its acknowledgement take at least, as far as the kernel has seen, ns.
    pub fn round_trip_ns(&self) -> Option<u64> {
        match self {
            Self::Plain(tcp) | Self::Tls(tcp, _) => round_trip::least_ns(tcp),
        }
    }

    /// When it is closed, or this process ends, what the peer has not received by then it never
    /// will. Of a stream that is only let go the kernel sends the rest for minutes.
    pub fn reset_on_close(&self) {
        let (Self::Plain(tcp) | Self::Tls(tcp, _)) = self;
        if let Err(error) = SockRef::from(tcp).set_linger(Some(Duration::ZERO)) {
            tracing::warn!(%error, "what was sent by a lost connection may arrive late");
        }
    }

    fn source(&mut self) -> &mut impl Source {
        match self {
            Self::Plain(tcp) | Self::Tls(tcp, _) => tcp,
        }
    }

    /// Starts edge-triggered notices for this stream under `token`.
    ///
    /// # Errors
    /// The kernel's.
    pub fn register(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        registry.register(
            self.source(),
            token,
            Interest::READABLE | Interest::WRITABLE,
        )
    }

    /// Ends the notices, so that another core's poll can take the stream over.
    ///
    /// # Errors
    /// The kernel's.
    pub fn deregister(&mut self, registry: &Registry) -> io::Result<()> {
        registry.deregister(self.source())
    }

    /// Reads what is there, up to `into.len()` bytes.
    ///
    /// # Errors
    /// A broken connection or a broken TLS record.
    pub fn read(&mut self, into: &mut [u8]) -> io::Result<Progress> {
        match self {
            Self::Plain(tcp) => progress(|| tcp.read(into)),
            Self::Tls(tcp, session) => read_tls(tcp, session, into),
        }
    }

    /// Writes some of `slices`.
    ///
    /// # Errors
    /// A broken connection.
    pub fn write(&mut self, slices: &[IoSlice<'_>]) -> io::Result<Progress> {
        match self {
            Self::Plain(tcp) if slices.len() == 1 => progress(|| tcp.write(&slices[0])),
            Self::Plain(tcp) => progress(|| tcp.write_vectored(slices)),
            Self::Tls(tcp, session) => {
                if flush_tls(tcp, session)? == Progress::Blocked {
                    return Ok(Progress::Blocked);
                }
                let taken = session.writer().write_vectored(slices)?;
                let flushed = flush_tls(tcp, session);
                match taken {
                    0 => flushed.map(|_| Progress::Blocked),
                    // Some of it may have left even if the connection has broken, which the next
                    // attempt tells.
                    taken => Ok(Progress::Moved(taken)),
                }
            }
        }
    }

    /// Whether there is nothing more to be read until the next arrival brings a notice, after a
    /// read of `count` bytes into `room`: a short one has emptied a TCP stream (epoll(7)). Under
    /// TLS a read gives what was in a record or a few, however much lies behind them.
    pub fn is_emptied(&self, count: usize, room: usize) -> bool {
        match self {
            Self::Plain(_) => count < room,
            Self::Tls(..) => false,
        }
    }

    /// Sends what the TLS session holds back (handshake, alerts, sealed records).
    ///
    /// # Errors
    /// A broken connection.
    pub fn flush(&mut self) -> io::Result<Progress> {
        match self {
            Self::Plain(_) => Ok(Progress::Moved(0)),
            Self::Tls(tcp, session) => flush_tls(tcp, session),
        }
    }

    /// True while the TLS handshake is under way.
    pub fn is_handshaking(&self) -> bool {
        match self {
            Self::Plain(_) => false,
            Self::Tls(_, session) => session.is_handshaking(),
        }
    }

    /// True when sealed bytes wait for the socket to take them.
    pub fn wants_write(&self) -> bool {
        match self {
            Self::Plain(_) => false,
            Self::Tls(_, session) => session.wants_write(),
        }
    }
}

fn progress(mut attempt: impl FnMut() -> io::Result<usize>) -> io::Result<Progress> {
    loop {
        return match attempt() {
            Ok(0) => Ok(Progress::Closed),
            Ok(count) => Ok(Progress::Moved(count)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(Progress::Blocked),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => Err(error),
        };
    }
}

fn read_tls(
    tcp: &mut TcpStream,
    session: &mut Connection,
    into: &mut [u8],
) -> io::Result<Progress> {
    loop {
        match session.reader().read(into) {
            Ok(0) => return Ok(Progress::Closed),
            Ok(n) => return Ok(Progress::Moved(n)),
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
            Err(e) => return Err(e),
        }
        match progress(|| session.read_tls(tcp))? {
            Progress::Moved(_) => {}
            other => return Ok(other),
        }
        let state = session.process_new_packets();
        // Handshake replies and alerts go out whether or not the records were good.
        flush_tls(tcp, session)?;
        state.map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e))?;
    }
}

fn flush_tls(tcp: &mut TcpStream, session: &mut Connection) -> io::Result<Progress> {
    let mut moved = 0;
    while session.wants_write() {
        match progress(|| session.write_tls(tcp))? {
            Progress::Moved(count) => moved += count,
            other => return Ok(other),
        }
    }
    Ok(Progress::Moved(moved))
}
