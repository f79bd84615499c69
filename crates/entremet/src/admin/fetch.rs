//! Asks the admin address.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde::de::DeserializeOwned;
use telemetry::admin::{ask, Answer, Token};
use telemetry::live::view::{LiveView, TenantDetail};
use telemetry::Explanation;

use super::way::{self, Stream, Tls};
use super::AdminArgs;

/// How long a connection may take. The admin address is on this machine or near it.
const CONNECT_MAX: Duration = Duration::from_secs(2);
/// How long an answer may take: the first one waits for two readings, a second apart.
const ANSWER_MAX: Duration = Duration::from_secs(6);

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// Nobody listens, or nobody answers in time.
    #[error("the admin address {address} does not answer: {cause}; is the server running, and is this its admin address (--admin)?")]
    Silent {
        /// Who was asked.
        address: SocketAddr,
        /// The system's word for it.
        cause: io::Error,
    },
    /// Somebody answers who is no Entremet, or one too old.
    #[error("what listens at {address} does not answer as an entremet server of this version ({what}); name its admin address with --admin")]
    Other {
        /// Who was asked.
        address: SocketAddr,
        /// What was wrong with the answer.
        what: String,
    },
    /// It asks for a token.
    #[error("the admin address {address} asks for a token, and got none or a wrong one: name a file with it in --token-file, or set ENTREMET_ADMIN_TOKEN")]
    Token {
        /// Who was asked.
        address: SocketAddr,
    },
    /// It may not be called so.
    #[error("the admin address {address} does not answer to this name: use the address that it listens on, or a tunnel from its own machine")]
    Host {
        /// Who was asked.
        address: SocketAddr,
    },
    /// There is no such tenant.
    #[error("there is no tenant named {0:?}; `entremet top --once` lists them")]
    NoSuchTenant(String),
}

/// An admin address, and how it is asked.
pub struct Admin {
    address: SocketAddr,
    token: Option<Token>,
    tls: Option<Tls>,
}

impl Admin {
    /// As the command line says.
    ///
    /// # Errors
    /// A file that cannot be used.
    pub fn of(args: &AdminArgs) -> Result<Self, String> {
        let named = || {
            args.name
                .clone()
                .unwrap_or_else(|| args.admin.ip().to_string())
        };
        Ok(Self {
            address: args.admin,
            token: way::token(args.token_file.as_deref())?,
            tls: args
                .ca
                .as_deref()
                .map(|ca| Tls::new(ca, &named()))
                .transpose()?,
        })
    }

    /// Everybody in the last seconds.
    ///
    /// # Errors
    /// Nobody answers, or not with that.
    pub fn live(&self) -> Result<LiveView, FetchError> {
        self.json(&self.get("/api/live")?)
    }

    /// One tenant in the last seconds.
    ///
    /// # Errors
    /// As [`Admin::live`], or there is no such tenant.
    pub fn tenant(&self, name: &str) -> Result<TenantDetail, FetchError> {
        self.of_tenant("live", name)
    }

    /// Where the time of a tenant's requests goes, and why.
    ///
    /// # Errors
    /// As [`Admin::tenant`].
    pub fn explain(&self, name: &str) -> Result<Explanation, FetchError> {
        self.of_tenant("explain", name)
    }

    fn of_tenant<T: DeserializeOwned>(&self, page: &str, name: &str) -> Result<T, FetchError> {
        let answer = self.get(&format!("/api/{page}/{}", encoded(name)))?;
        if answer.status == 404 && answer.body.contains("no tenant named") {
            return Err(FetchError::NoSuchTenant(name.to_string()));
        }
        self.json(&answer)
    }

    fn json<T: DeserializeOwned>(&self, answer: &Answer) -> Result<T, FetchError> {
        match answer.status {
            200 => {}
            401 => {
                return Err(FetchError::Token {
                    address: self.address,
                })
            }
            403 => {
                return Err(FetchError::Host {
                    address: self.address,
                })
            }
            status => return Err(self.other(format!("status {status}"))),
        }
        serde_json::from_str(&answer.body).map_err(|cause| self.other(cause.to_string()))
    }

    fn other(&self, what: String) -> FetchError {
        FetchError::Other {
            address: self.address,
            what,
        }
    }

    fn get(&self, path: &str) -> Result<Answer, FetchError> {
        let answer = self.exchange(path).map_err(|cause| FetchError::Silent {
            address: self.address,
            cause,
        })?;
        answer.ok_or_else(|| self.other("it does not speak HTTP".into()))
    }

    fn exchange(&self, path: &str) -> io::Result<Option<Answer>> {
        let stream = TcpStream::connect_timeout(&self.address, CONNECT_MAX)?;
        stream.set_read_timeout(Some(ANSWER_MAX))?;
        stream.set_write_timeout(Some(CONNECT_MAX))?;
        let stream = match &self.tls {
            None => Stream::Plain(stream),
            Some(tls) => Stream::Tls(Box::new(tls.over(stream)?)),
        };
        let host = self.address.to_string();
        ask(stream, &host, path, self.token.as_ref()).map_err(|cause| match cause.kind() {
            // The system's word for it is "resource temporarily unavailable".
            io::ErrorKind::WouldBlock => io::Error::new(
                io::ErrorKind::TimedOut,
                format!("nothing came for {} s", ANSWER_MAX.as_secs()),
            ),
            _ => cause,
        })
    }
}

/// A name as a part of a path.
fn encoded(name: &str) -> String {
    let byte = |byte: u8| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' => {
            char::from(byte).to_string()
        }
        _ => format!("%{byte:02X}"),
    };
    name.bytes().map(byte).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::thread;

    /// An address where one connection is answered with these bytes.
    fn answering(bytes: &'static [u8]) -> Admin {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("bound");
        thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("asked");
            let mut head = [0; 256];
            let _ = stream.read(&mut head);
            let _ = stream.write_all(bytes);
        });
        at(address)
    }

    fn at(address: SocketAddr) -> Admin {
        Admin {
            address,
            token: None,
            tls: None,
        }
    }

    #[test]
    fn who_is_no_entremet_is_told_from_who_is_not_there() {
        let ssh = answering(b"SSH-2.0-OpenSSH\r\n")
            .live()
            .expect_err("no HTTP");
        assert!(ssh.to_string().contains("does not speak HTTP"), "{ssh}");
        for (answer, what) in [
            (&b"HTTP/1.1 401 Unauthorized\r\n\r\n"[..], "--token-file"),
            (b"HTTP/1.1 403 Forbidden\r\n\r\n", "tunnel"),
        ] {
            let refused = answering(answer).live().expect_err("refused");
            assert!(refused.to_string().contains(what), "{refused}");
        }
        let web = answering(b"HTTP/1.1 404 Not Found\r\n\r\n")
            .live()
            .expect_err("no API");
        assert!(web.to_string().contains("(status 404)"), "{web}");
        let json = answering(b"HTTP/1.0 200 OK\r\n\r\n{}")
            .live()
            .expect_err("other JSON");
        assert!(json.to_string().contains("missing field"), "{json}");
        let gone = {
            let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
            at(listener.local_addr().expect("bound"))
        };
        let silent = gone.live().expect_err("nobody").to_string();
        assert!(
            silent.contains("is the server running") && silent.contains("--admin"),
            "{silent}"
        );
    }

    #[test]
    fn a_missing_tenant_is_named() {
        let body =
            b"HTTP/1.0 404 Not Found\r\n\r\n{\"error\":{\"what\":\"there is no tenant named x\"}}";
        let error = answering(body).tenant("wob").expect_err("nobody");
        assert!(
            error
                .to_string()
                .starts_with("there is no tenant named \"wob\""),
            "{error}"
        );
    }

    #[test]
    fn names_do_not_leave_their_part_of_the_path() {
        assert_eq!(encoded("web-1.a_B"), "web-1.a_B");
        assert_eq!(encoded("../a b?é\r\n"), "..%2Fa%20b%3F%C3%A9%0D%0A");
    }
}
