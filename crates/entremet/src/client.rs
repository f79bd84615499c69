//! A connection to a server, as subcommands need one that ask a server as its clients do: commands
//! that read, and their replies in RESP2.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use clap::Args;
use settings::address;
use socket2::SockRef;

use crate::admin::{Stream, Tls};

/// Of a server that may be busy with what it was asked.
const SILENT_MAX: Duration = Duration::from_secs(120);
const CONNECT_MAX: Duration = Duration::from_secs(5);
/// Before a command that was refused for a limit is tried again.
const THROTTLED: Duration = Duration::from_millis(100);
/// Replies inside replies: a transaction's, a list's, a score.
const DEPTH_MAX: usize = 8;

/// Why a server could not be asked.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The connection.
    #[error("the server at {address} {what}: {source}")]
    Connection {
        /// Whose.
        address: SocketAddr,
        /// When.
        what: &'static str,
        /// Why.
        source: io::Error,
    },
    /// The server refuses something.
    #[error("the server refuses {command}: {reply}")]
    Refused {
        /// What.
        command: String,
        /// Its words.
        reply: String,
    },
    /// A reply that nobody expects.
    #[error("the server answers {command} as no entremet server of this version does")]
    Strange {
        /// What it was asked.
        command: String,
    },
}

/// Which server, and how it is asked.
#[derive(Args, Clone, Debug)]
pub struct TargetArgs {
    /// Address of the server for clients
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:6380", value_parser = address)]
    pub target: SocketAddr,

    /// Speak TLS, and trust the certificates in this file (PEM)
    #[arg(long, value_name = "FILE")]
    pub ca: Option<PathBuf>,

    /// Name in the server's certificate, where it is not its address
    #[arg(long, value_name = "NAME", requires = "ca")]
    pub name: Option<String>,
}

/// A tenant and its password, as the command line has them.
///
/// # Errors
/// It is no name.
pub fn credentials(text: &str) -> Result<(String, String), String> {
    match text.split_once(':') {
        Some((name, password)) if settings::tenant::is_name(name) => {
            Ok((name.into(), password.into()))
        }
        _ => Err("expected NAME:PASSWORD".into()),
    }
}

/// A server, and how it is spoken to.
pub struct Target {
    /// Where it is.
    pub address: SocketAddr,
    /// By TLS.
    pub tls: Option<Tls>,
    /// What connections call themselves.
    pub client: String,
    /// A server that says nothing for so long is not there any more.
    pub patience: Duration,
}

impl Target {
    /// As the command line says; `client` is what its connections call themselves.
    ///
    /// # Errors
    /// A file that cannot be used.
    pub fn of(args: &TargetArgs, client: &str) -> Result<Self, String> {
        let tls = args.ca.as_deref().map(|ca| {
            let address = || args.target.ip().to_string();
            Tls::new(ca, &args.name.clone().unwrap_or_else(address))
        });
        Ok(Self {
            address: args.target,
            tls: tls.transpose()?,
            client: client.into(),
            patience: SILENT_MAX,
        })
    }
}

/// A reply.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// A word.
    Simple(String),
    /// An error's text.
    Error(String),
    /// A number.
    Integer(i64),
    /// Bytes.
    Bulk(Vec<u8>),
    /// Nothing there.
    Nothing,
    /// Several.
    List(Vec<Reply>),
}

/// A command, as its words.
pub type Words<'w> = Vec<&'w [u8]>;

/// A connection that speaks for a tenant.
pub struct Client {
    stream: BufReader<Stream>,
    address: SocketAddr,
    patience: Duration,
    /// Bytes of replies so far.
    pub read_bytes: u64,
}

impl Client {
    /// Connects, and says who it is.
    ///
    /// # Errors
    /// Nobody is there, or the tenant is not let in.
    pub fn connect(
        target: &Target,
        tenant: &str,
        password: Option<&str>,
    ) -> Result<Self, ClientError> {
        let address = target.address;
        let stream = connected(target).map_err(|source| ClientError::Connection {
            address,
            what: "cannot be reached",
            source,
        })?;
        let mut client = Self {
            stream: BufReader::with_capacity(256 << 10, stream),
            address,
            patience: target.patience,
            read_bytes: 0,
        };
        if let Some(password) = password {
            client.ask(vec![b"AUTH", tenant.as_bytes(), password.as_bytes()])?;
        }
        client.ask(vec![b"CLIENT", b"SETNAME", target.client.as_bytes()])?;
        Ok(client)
    }

    /// A server that says nothing for so long is not there any more, from now on.
    ///
    /// # Errors
    /// The connection is of no use.
    pub fn set_patience(&mut self, patience: Duration) -> Result<(), ClientError> {
        if self.patience == patience {
            return Ok(());
        }
        let set = wait_for(self.stream.get_ref().socket(), patience);
        set.map_err(|source| ClientError::Connection {
            address: self.address,
            what: "broke off",
            source,
        })?;
        self.patience = patience;
        Ok(())
    }

    /// Asks one thing.
    ///
    /// # Errors
    /// The connection breaks, or it is refused.
    pub fn ask(&mut self, words: Words<'_>) -> Result<Reply, ClientError> {
        let replies = self.ask_all(&[words])?;
        Ok(replies.into_iter().next().unwrap_or(Reply::Nothing))
    }

    /// Asks several things at once. What is refused for a limit is asked again, all of it, so all
    /// of it must only read.
    ///
    /// # Errors
    /// The connection breaks, or one of them is refused.
    pub fn ask_all(&mut self, commands: &[Words<'_>]) -> Result<Vec<Reply>, ClientError> {
        loop {
            let replies = self.try_all(commands)?;
            let refused = commands
                .iter()
                .zip(&replies)
                .find_map(|(words, reply)| match reply {
                    Reply::Error(text) => Some((words, text)),
                    _ => None,
                });
            match refused {
                None => return Ok(replies),
                Some((_, text)) if text.starts_with("THROTTLED") => thread::sleep(THROTTLED),
                Some((words, text)) => {
                    return Err(ClientError::Refused {
                        // What follows may be a password.
                        command: String::from_utf8_lossy(words[0]).into_owned(),
                        reply: text.clone(),
                    });
                }
            }
        }
    }

    /// Asks several things at once, any of which may be refused.
    ///
    /// # Errors
    /// The connection breaks.
    pub fn try_all(&mut self, commands: &[Words<'_>]) -> Result<Vec<Reply>, ClientError> {
        self.exchange(commands)
            .map_err(|source| ClientError::Connection {
                address: self.address,
                what: "broke off",
                source,
            })
    }

    fn exchange(&mut self, commands: &[Words<'_>]) -> io::Result<Vec<Reply>> {
        let mut out = Vec::new();
        for words in commands {
            write!(out, "*{}\r\n", words.len())?;
            for word in words {
                write!(out, "${}\r\n", word.len())?;
                out.extend_from_slice(word);
                out.extend_from_slice(b"\r\n");
            }
        }
        self.stream.get_mut().write_all(&out)?;
        self.stream.get_mut().flush()?;
        commands.iter().map(|_| self.reply(0)).collect()
    }

    fn reply(&mut self, depth: usize) -> io::Result<Reply> {
        let line = self.line()?;
        let (sign, rest) = line
            .split_at_checked(1)
            .ok_or_else(|| strange("an empty line"))?;
        let length = || {
            rest.parse::<i64>()
                .map_err(|_| strange("a length that is none"))
        };
        Ok(match sign {
            "+" => Reply::Simple(rest.into()),
            "-" => Reply::Error(rest.into()),
            ":" => Reply::Integer(length()?),
            "$" => match usize::try_from(length()?) {
                Err(_) => Reply::Nothing,
                Ok(bytes) => Reply::Bulk(self.bulk(bytes)?),
            },
            "*" if depth < DEPTH_MAX => match usize::try_from(length()?) {
                Err(_) => Reply::Nothing,
                Ok(count) => {
                    let replies = (0..count).map(|_| self.reply(depth + 1));
                    Reply::List(replies.collect::<io::Result<_>>()?)
                }
            },
            _ => return Err(strange("something that is not RESP2")),
        })
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = Vec::new();
        // An error may be long, a header is not.
        let mut limited = (&mut self.stream).take(64 << 10);
        limited.read_until(b'\n', &mut line)?;
        self.read_bytes += line.len() as u64;
        let text = line
            .strip_suffix(b"\r\n")
            .ok_or(io::ErrorKind::UnexpectedEof)?;
        Ok(String::from_utf8_lossy(text).into_owned())
    }

    fn bulk(&mut self, bytes: usize) -> io::Result<Vec<u8>> {
        let mut value = Vec::new();
        // Not all at once: a length is only what somebody says.
        (&mut self.stream)
            .take(bytes as u64 + 2)
            .read_to_end(&mut value)?;
        self.read_bytes += value.len() as u64;
        if value.len() != bytes + 2 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        value.truncate(bytes);
        Ok(value)
    }
}

fn connected(target: &Target) -> io::Result<Stream> {
    let stream = TcpStream::connect_timeout(&target.address, CONNECT_MAX)?;
    stream.set_nodelay(true)?;
    // Every reply is waited for. What is closed before was given up, and must not arrive later, as
    // it would minutes after a network is whole again: a slot may have gone elsewhere meanwhile.
    SockRef::from(&stream).set_linger(Some(Duration::ZERO))?;
    wait_for(&stream, target.patience)?;
    Ok(match &target.tls {
        None => Stream::Plain(stream),
        Some(tls) => Stream::Tls(Box::new(tls.over(stream)?)),
    })
}

fn wait_for(stream: &TcpStream, patience: Duration) -> io::Result<()> {
    stream.set_read_timeout(Some(patience))?;
    stream.set_write_timeout(Some(patience))
}

fn strange(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}
