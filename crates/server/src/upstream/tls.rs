//! TLS to the engine: sessions with its nodes, and what is said of one that failed.

use std::io;
use std::sync::Arc;

use parking_lot::RwLock;
use rustls::pki_types::ServerName;
use rustls::{AlertDescription, CertificateError, ClientConfig, ClientConnection};

/// How TLS is spoken to the engine: connections that are made after it was exchanged get the new.
#[derive(Debug)]
pub struct EngineTls(RwLock<Trust>);

/// Whom this server trusts to be the engine.
#[derive(Clone, Debug)]
pub struct Trust {
    /// Who must have signed its certificate, and what this server shows of itself.
    pub config: Arc<ClientConfig>,
    /// Whose certificate it must be; none: that of the host by which a node is reached.
    pub name: Option<ServerName<'static>>,
}

impl EngineTls {
    /// Trusts so.
    pub fn new(trust: Trust) -> Self {
        Self(RwLock::new(trust))
    }

    /// Trusts so from now on.
    pub fn set(&self, trust: Trust) {
        *self.0.write() = trust;
    }

    /// A session with a node, `host:port`.
    ///
    /// # Errors
    /// Nobody can have a certificate for its host.
    pub fn session(&self, node: &str) -> io::Result<rustls::Connection> {
        let Trust { config, name } = self.0.read().clone();
        let name = name.map_or_else(|| name_of(node), Ok)?;
        let session = ClientConnection::new(config, name).map_err(io::Error::other)?;
        Ok(session.into())
    }
}

/// Whose certificate a node must have that is reached at `host:port`.
fn name_of(node: &str) -> io::Result<ServerName<'static>> {
    let host = front::host_of(node).to_owned();
    let wrong = format!("no certificate can be for {host:?}; say engine.tls.name");
    ServerName::try_from(host).map_err(|_| io::Error::other(wrong))
}

/// Why a connection broke, in words: of TLS also which settings may be wrong.
pub fn in_words(why: &io::Error) -> String {
    use rustls::Error;
    let inner = why.get_ref().and_then(|inner| inner.downcast_ref());
    match inner {
        None => why.to_string(),
        Some(Error::InvalidCertificate(CertificateError::UnknownIssuer)) => {
            "its certificate is not accepted: it is signed by none of engine.tls.ca".into()
        }
        Some(Error::InvalidCertificate(
            CertificateError::Expired | CertificateError::ExpiredContext { .. },
        )) => "its certificate is not accepted: it has expired".into(),
        Some(Error::InvalidCertificate(
            why @ (CertificateError::NotValidForName
            | CertificateError::NotValidForNameContext { .. }),
        )) => format!(
            "its certificate is not accepted: {why}; if that is the engine, say its name in engine.tls.name"
        ),
        Some(Error::InvalidCertificate(why)) => {
            format!("its certificate is not accepted: {why}")
        }
        Some(Error::AlertReceived(alert)) if is_about_us(*alert) => {
            format!("it does not accept this server's certificate, or misses it (engine.tls.cert and key): {alert:?}")
        }
        Some(Error::InvalidMessage(_)) => format!("it does not speak TLS at this port: {why}"),
        Some(why) => format!("TLS: {why}"),
    }
}

/// Whether a peer says by this that it will not have our certificate. In TLS 1.2 one that is
/// missing is a failure of the handshake.
fn is_about_us(alert: AlertDescription) -> bool {
    use AlertDescription as Alert;
    matches!(
        alert,
        Alert::HandshakeFailure
            | Alert::BadCertificate
            | Alert::UnsupportedCertificate
            | Alert::CertificateRevoked
            | Alert::CertificateExpired
            | Alert::CertificateUnknown
            | Alert::UnknownCA
            | Alert::AccessDenied
            | Alert::CertificateRequired
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_is_for_the_host_of_a_node() {
        for (node, name) in [
            ("db.example:6379", "db.example"),
            ("10.0.0.1:6379", "10.0.0.1"),
            ("[::1]:6379", "::1"),
        ] {
            assert_eq!(name_of(node).expect("a name").to_str(), name);
        }
        let why = name_of("a b:6379").expect_err("no name").to_string();
        assert!(why.contains("engine.tls.name"), "{why}");
    }

    #[test]
    fn what_failed_is_told_with_the_setting_that_may_be_wrong() {
        let said = |why: rustls::Error| in_words(&io::Error::new(io::ErrorKind::InvalidData, why));
        for (why, setting) in [
            (CertificateError::UnknownIssuer.into(), "engine.tls.ca"),
            (CertificateError::NotValidForName.into(), "engine.tls.name"),
            (
                rustls::Error::AlertReceived(AlertDescription::CertificateRequired),
                "engine.tls.cert",
            ),
        ] {
            assert!(said(why).contains(setting), "{setting}");
        }
        let broken = io::Error::from(io::ErrorKind::ConnectionReset);
        assert_eq!(in_words(&broken), broken.to_string());
    }
}
