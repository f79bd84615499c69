//! The admin address by TLS.

mod support;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use rcgen::{generate_simple_self_signed, CertifiedKey};
use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig, StreamOwned};
use support::serve_with;
use telemetry::admin::Access;

/// A certificate, and a server's side that shows it.
fn certificate() -> (CertificateDer<'static>, Arc<ServerConfig>) {
    let CertifiedKey { cert, signing_key } =
        generate_simple_self_signed(vec!["localhost".to_string()]).expect("a certificate");
    let key = PrivateKeyDer::try_from(signing_key.serialize_der()).expect("a key");
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], key)
        .expect("they belong together");
    (cert.der().clone(), Arc::new(config))
}

/// What it answers to one who trusts this certificate only.
fn ask(at: SocketAddr, trusted: &CertificateDer<'static>) -> std::io::Result<String> {
    let mut roots = RootCertStore::empty();
    roots.add(trusted.clone()).expect("a root");
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from("localhost").expect("a name");
    let client = ClientConnection::new(Arc::new(config), name).expect("a client");
    let mut stream = StreamOwned::new(client, TcpStream::connect(at)?);
    stream.write_all(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    Ok(text)
}

#[test]
fn answers_come_by_tls_and_new_connections_get_the_new_certificate() {
    let (one, config) = certificate();
    let (admin, _fake, _registry) = serve_with(Access::default(), Some(config));
    let at = admin.address();
    assert!(admin.tls());
    assert!(ask(at, &one).expect("answered").ends_with("ready\n"));
    let plain = TcpStream::connect(at).and_then(|mut stream| {
        stream.write_all(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n")?;
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes);
        Ok(bytes)
    });
    assert!(
        !plain.expect("connected").starts_with(b"HTTP"),
        "not without"
    );
    let (other, config) = certificate();
    assert!(ask(at, &other).is_err());
    admin.set_tls(config);
    assert!(ask(at, &other).expect("answered").ends_with("ready\n"));
    assert!(ask(at, &one).is_err());
}

#[test]
fn those_who_begin_no_handshake_keep_nobody_waiting() {
    let (one, config) = certificate();
    let (admin, _fake, _registry) = serve_with(Access::default(), Some(config));
    let silent: Vec<TcpStream> = (0..40)
        .map(|_| TcpStream::connect(admin.address()).expect("connect"))
        .collect();
    assert!(ask(admin.address(), &one)
        .expect("answered")
        .ends_with("ready\n"));
    drop(silent);
}
