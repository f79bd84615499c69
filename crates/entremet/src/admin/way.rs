//! How the admin address is asked: with a token, by TLS.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};
use telemetry::admin::Token;

use crate::config::tls;
use crate::config::TrustFiles;

/// The token: from a file, or the environment.
///
/// # Errors
/// The file cannot be read.
pub fn token(file: Option<&Path>) -> Result<Option<Token>, String> {
    let Some(file) = file else {
        return Ok(std::env::var("ENTREMET_ADMIN_TOKEN")
            .ok()
            .map(|token| Token::new(&token)));
    };
    let text = std::fs::read_to_string(file)
        .map_err(|cause| format!("--token-file {}: {cause}", file.display()))?;
    Ok(Some(Token::new(text.trim_end_matches(['\r', '\n']))))
}

/// Reads the files that `--ca`, `--cert` and `--key` name.
///
/// # Errors
/// What is wrong with them.
pub fn trust(files: &TrustFiles) -> Result<Arc<ClientConfig>, String> {
    let said = |problem: &tls::TlsProblem| format!("--{} {}", problem.key, problem.what);
    match tls::trust(files) {
        Ok(trusting) => Ok(trusting.config),
        Err(problems) => Err(problems.iter().map(said).collect::<Vec<_>>().join("\n")),
    }
}

/// Whom a client trusts, and by which name.
pub struct Tls {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
}

impl Tls {
    /// Trusts the certificates in this file.
    ///
    /// # Errors
    /// The file has none, or the name is none.
    pub fn new(ca: &Path, name: &str) -> Result<Self, String> {
        let files = TrustFiles {
            ca: ca.to_owned(),
            own: None,
        };
        Self::of(trust(&files)?, name)
    }

    /// Trusts so a server of this name.
    ///
    /// # Errors
    /// The name is none.
    pub fn of(config: Arc<ClientConfig>, name: &str) -> Result<Self, String> {
        let name = ServerName::try_from(name.to_string())
            .map_err(|_| format!("--name {name:?} is neither a name nor an address"))?;
        Ok(Self { config, name })
    }

    /// A connection by TLS over this one.
    ///
    /// # Errors
    /// None but a configuration that rustls refuses; the handshake is made with the first bytes.
    pub fn over(&self, stream: TcpStream) -> io::Result<StreamOwned<ClientConnection, TcpStream>> {
        let client = ClientConnection::new(Arc::clone(&self.config), self.name.clone());
        Ok(StreamOwned::new(client.map_err(io::Error::other)?, stream))
    }
}

/// A connection, by TLS or not.
pub enum Stream {
    /// As it is.
    Plain(TcpStream),
    /// By TLS.
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

impl Stream {
    /// What it goes by.
    pub fn socket(&self) -> &TcpStream {
        match self {
            Self::Plain(stream) => stream,
            Self::Tls(stream) => stream.get_ref(),
        }
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.read(buffer),
            Self::Tls(stream) => stream.read(buffer),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.write(bytes),
            Self::Tls(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(stream) => stream.flush(),
            Self::Tls(stream) => stream.flush(),
        }
    }
}
