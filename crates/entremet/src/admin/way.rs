//! How the admin address is asked: with a token, by TLS.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use telemetry::admin::Token;

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
        let wrong = |cause: String| format!("--ca {}: {cause}", ca.display());
        let certificates = CertificateDer::pem_file_iter(ca).and_then(Iterator::collect);
        let certificates: Vec<_> = certificates.map_err(|cause| wrong(cause.to_string()))?;
        let mut roots = RootCertStore::empty();
        let (added, _) = roots.add_parsable_certificates(certificates);
        if added == 0 {
            return Err(wrong("holds no certificate".into()));
        }
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|cause| wrong(cause.to_string()))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let name = ServerName::try_from(name.to_string())
            .map_err(|_| format!("--name {name:?} is neither a name nor an address"))?;
        Ok(Self {
            config: Arc::new(config),
            name,
        })
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
