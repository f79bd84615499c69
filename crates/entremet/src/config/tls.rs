//! The server's side of TLS, from files.

use std::path::Path;
use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};

use super::validity::Validity;
use super::TlsFiles;

/// Which file is wrong and why.
#[derive(Debug, PartialEq, Eq)]
pub struct TlsProblem {
    /// `cert`, `key` or `client_ca`.
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

/// Reads the files and makes sure that they belong together.
///
/// # Errors
/// Every file that is missing, unreadable, not PEM or does not fit the others.
pub fn load(tls: &TlsFiles) -> Result<Loaded, Vec<TlsProblem>> {
    let mut problems = Vec::new();
    let mut noted = |problem| problems.push(problem);
    let chain = certificates("cert", &tls.cert).map_err(&mut noted).ok();
    let key = private_key(&tls.key).map_err(&mut noted).ok();
    let roots = tls
        .client_ca
        .as_deref()
        .map(|path| roots(path).map_err(&mut noted).ok());
    let (Some(chain), Some(key)) = (chain, key) else {
        return Err(problems);
    };
    let valid = Validity::of(&chain[0]);
    let valid = valid.ok_or_else(|| vec![unfit("cert", "holds no certificate of X.509".into())])?;
    let provider = Arc::new(ring::default_provider());
    let versions = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions();
    let builder = versions.map_err(|cause| vec![unfit("cert", cause.to_string())])?;
    let builder = match roots {
        None => builder.with_no_client_auth(),
        Some(None) => return Err(problems),
        Some(Some(roots)) => {
            let verifier =
                WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
            let verifier = verifier.map_err(|cause| vec![unfit("client_ca", cause.to_string())])?;
            builder.with_client_cert_verifier(verifier)
        }
    };
    let config = builder.with_single_cert(chain, key);
    match config {
        Ok(config) => Ok(Loaded {
            config: Arc::new(config),
            valid,
        }),
        Err(cause) => Err(vec![unfit(
            "key",
            format!("does not fit the certificate: {cause}"),
        )]),
    }
}

fn unfit(key: &'static str, what: String) -> TlsProblem {
    TlsProblem {
        key,
        what,
        advice: "use the certificate, the key and the signers that belong together",
    }
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

fn roots(path: &Path) -> Result<RootCertStore, TlsProblem> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates("client_ca", path)? {
        roots
            .add(certificate)
            .map_err(|cause| unfit("client_ca", cause.to_string()))?;
    }
    Ok(roots)
}
