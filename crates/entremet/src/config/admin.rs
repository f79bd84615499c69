//! The admin address: who may ask it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use settings::{Reader, Section};
use telemetry::admin::Token;

use super::{Config, Tls, TlsFiles};

/// A token that can be guessed is none; one that is longer does not go into a request.
const TOKEN_BYTES: std::ops::RangeInclusive<usize> = 16..=512;

const MAKE_ONE: &str = "make one with `head -c 24 /dev/urandom | base64`";

/// The token, whichever way it is given. One that is wrong is reported, and stands for itself.
pub(super) fn token(section: &Section) -> Option<Token> {
    let given: Option<String> = section.get("admin_token");
    let file: Option<PathBuf> = section.get("admin_token_file");
    match (given, file) {
        (None, None) => None,
        (Some(_), Some(_)) => {
            let advice = "keep admin_token_file only";
            section.error(
                "admin_token",
                "is given as well as admin_token_file",
                advice,
            );
            None
        }
        (Some(token), None) => {
            let advice = "put it into a file of its own, and name that in admin_token_file";
            section.warn(
                "admin_token",
                "is in the file, for everybody who can read it",
                advice,
            );
            Some(checked(section, "admin_token", &token))
        }
        (None, Some(file)) => match from_file(section, &file) {
            Ok(token) => Some(checked(
                section,
                "admin_token_file",
                token.trim_end_matches(['\r', '\n']),
            )),
            Err(cause) => {
                let what = format!("{}: {cause}", file.display());
                section.error(
                    "admin_token_file",
                    &what,
                    "name a file that exists and is readable by this user",
                );
                None
            }
        },
    }
}

fn from_file(section: &Section, file: &Path) -> std::io::Result<String> {
    let mode = fs::metadata(file)?.permissions().mode() & 0o777;
    if mode & 0o077 != 0 {
        let what = format!("{} can be read by others (mode {mode:o})", file.display());
        section.warn("admin_token_file", &what, "chmod 600");
    }
    fs::read_to_string(file)
}

fn checked(section: &Section, key: &str, token: &str) -> Token {
    if !TOKEN_BYTES.contains(&token.len()) || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        let (least, most) = (TOKEN_BYTES.start(), TOKEN_BYTES.end());
        let what = format!(
            "the token is not {least} to {most} characters that can be seen, without blanks"
        );
        section.error(key, &what, MAKE_ONE);
    }
    Token::new(token)
}

/// The files for TLS: its own, or those of the clients' address.
pub(super) fn tls(section: &Section, clients: Option<&Tls>) -> Option<TlsFiles> {
    let (cert, key): (Option<PathBuf>, Option<PathBuf>) = (section.get("cert"), section.get("key"));
    let (lacks_cert, alone) = (cert.is_none(), cert.is_none() && key.is_none());
    if let (Some(cert), Some(key)) = (cert, key) {
        return Some(TlsFiles {
            cert,
            key,
            client_ca: None,
        });
    }
    if !section.present() {
        return None;
    }
    if let Some(tls) = clients.filter(|_| alone) {
        return Some(TlsFiles {
            client_ca: None,
            ..tls.files.clone()
        });
    }
    let missing = if lacks_cert { "cert" } else { "key" };
    let what = match alone {
        true => "is missing, and there is no [server.tls] to take it from",
        false => "is missing beside the other of the two",
    };
    section.error(missing, what, "name both cert and key");
    None
}

/// Beyond loopback everybody would learn who the tenants are, what they do and where files are.
pub(super) fn check(config: &Config, reader: &Reader) {
    let server = &config.server;
    if server.admin.ip().is_loopback() {
        return;
    }
    let mut report = reader.report.borrow_mut();
    let (place, admin) = (reader.place("server.admin"), server.admin);
    if server.admin_token.is_none() {
        let what = format!("{admin} is open to the network, and whoever reaches it may read all metrics without a token");
        let advice = format!("listen on 127.0.0.1, or add admin_token_file; {MAKE_ONE}");
        report.error(place, "server.admin", what).advice(advice);
    } else if server.admin_tls.is_none() {
        let what =
            format!("{admin} is open to the network without TLS: the token travels readable");
        report
            .warn(place, "server.admin", what)
            .advice("add [server.admin_tls], or listen on 127.0.0.1");
    }
}
