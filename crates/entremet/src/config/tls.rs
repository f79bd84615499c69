//! TLS from files: the server's side, and the client's.

use std::path::Path;
use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, RootCertStore, ServerConfig};

use super::validity::Validity;
use super::{KeyPair, TlsFiles, TrustFiles};

/// Which file is wrong and why.
#[derive(Debug, PartialEq, Eq)]
pub struct TlsProblem {
    /// `cert`, `key`, `client_ca` or `ca`.
    pub key: &'static str,
    /// What is wrong.
    pub what: String,
    /// What to do.
    pub advice: &'static str,
}

/// What TLS is served with.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The server's side.
    pub config: Arc<ServerConfig>,
    /// When the server's own certificate begins and ceases to be valid.
    pub valid: Validity,
}

/// What TLS is asked with.
#[derive(Clone, Debug)]
pub struct Trusting {
    /// The client's side.
    pub config: Arc<ClientConfig>,
    /// When the certificate that it shows begins and ceases to be valid; none: it shows none.
    pub valid: Option<Validity>,
}

/// Reads the files of the server's side and makes sure that they belong together.
///
/// # Errors
/// Every file that is missing, unreadable, not PEM or does not fit the others.
pub fn load(tls: &TlsFiles) -> Result<Loaded, Vec<TlsProblem>> {
    let mut problems = Vec::new();
    let own = Own::read(&tls.cert, &tls.key, &mut problems);
    let roots = tls
        .client_ca
        .as_deref()
        .and_then(|path| roots("client_ca", path, &mut problems));
    let Some(own) = own.filter(|_| problems.is_empty()) else {
        return Err(problems);
    };
    let provider = Arc::new(ring::default_provider());
    let versions = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions();
    let builder = versions.map_err(|cause| vec![unfit("cert", cause.to_string())])?;
    let builder = match roots {
        None => builder.with_no_client_auth(),
        Some(roots) => {
            let verifier =
                WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
            let verifier = verifier.map_err(|cause| vec![unfit("client_ca", cause.to_string())])?;
            builder.with_client_cert_verifier(verifier)
        }
    };
    match builder.with_single_cert(own.chain, own.key) {
        Ok(config) => Ok(Loaded {
            config: Arc::new(config),
            valid: own.valid,
        }),
        Err(cause) => Err(vec![not_of_it(&cause)]),
    }
}

/// Reads the files of the client's side and makes sure that they belong together.
///
/// # Errors
/// As [`load`].
pub fn trust(tls: &TrustFiles) -> Result<Trusting, Vec<TlsProblem>> {
    let mut problems = Vec::new();
    let roots = roots("ca", &tls.ca, &mut problems);
    let own = tls
        .own
        .as_ref()
        .and_then(|KeyPair { cert, key }| Own::read(cert, key, &mut problems));
    let Some(roots) = roots.filter(|_| problems.is_empty()) else {
        return Err(problems);
    };
    let versions = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions();
    let builder = versions.map_err(|cause| vec![unfit("ca", cause.to_string())])?;
    let builder = builder.with_root_certificates(roots);
    let valid = own.as_ref().map(|own| own.valid);
    let config = match own {
        None => builder.with_no_client_auth(),
        Some(own) => builder
            .with_client_auth_cert(own.chain, own.key)
            .map_err(|cause| vec![not_of_it(&cause)])?,
    };
    Ok(Trusting {
        config: Arc::new(config),
        valid,
    })
}

/// What one side shows of itself.
struct Own {
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
    valid: Validity,
}

impl Own {
    fn read(cert: &Path, key: &Path, problems: &mut Vec<TlsProblem>) -> Option<Self> {
        let mut noted = |problem| problems.push(problem);
        let chain = certificates("cert", cert).map_err(&mut noted).ok();
        let key = private_key(key).map_err(&mut noted).ok();
        let (chain, key) = chain.zip(key)?;
        let Some(valid) = Validity::of(&chain[0]) else {
            noted(unfit("cert", NO_CERTIFICATE.into()));
            return None;
        };
        Some(Self { chain, key, valid })
    }
}

const NO_CERTIFICATE: &str = "holds no certificate of X.509";

fn unfit(key: &'static str, what: String) -> TlsProblem {
    TlsProblem {
        key,
        what,
        advice: "use the certificate, the key and the signers that belong together",
    }
}

fn not_of_it(cause: &rustls::Error) -> TlsProblem {
    unfit("key", format!("does not fit the certificate: {cause}"))
}

fn unreadable(key: &'static str, path: &Path, cause: &rustls::pki_types::pem::Error) -> TlsProblem {
    use rustls::pki_types::pem::Error;
    let (why, advice) = match cause {
        Error::Io(cause) => (
            cause.to_string(),
            "name a PEM file that exists and is readable by this user",
        ),
        Error::NoItemsFound => (
            "holds nothing of the kind".into(),
            "name a PEM file with the right content",
        ),
        other => (other.to_string(), "name a PEM file that is whole"),
    };
    TlsProblem {
        key,
        what: format!("{}: {why}", path.display()),
        advice,
    }
}

fn certificates(
    key: &'static str,
    path: &Path,
) -> Result<Vec<CertificateDer<'static>>, TlsProblem> {
    let all = CertificateDer::pem_file_iter(path).and_then(Iterator::collect);
    let all: Vec<_> = all.map_err(|cause| unreadable(key, path, &cause))?;
    if all.is_empty() {
        return Err(unreadable(
            key,
            path,
            &rustls::pki_types::pem::Error::NoItemsFound,
        ));
    }
    Ok(all)
}

fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, TlsProblem> {
    PrivateKeyDer::from_pem_file(path).map_err(|cause| unreadable("key", path, &cause))
}

/// Those who may sign. Of a bundle of many, a system's own, those count that are understood.
fn roots(key: &'static str, path: &Path, problems: &mut Vec<TlsProblem>) -> Option<RootCertStore> {
    let read = certificates(key, path).map_err(|problem| problems.push(problem));
    let mut roots = RootCertStore::empty();
    let (added, _) = roots.add_parsable_certificates(read.ok()?);
    if added == 0 {
        problems.push(unfit(key, format!("{}: {NO_CERTIFICATE}", path.display())));
        return None;
    }
    Some(roots)
}
