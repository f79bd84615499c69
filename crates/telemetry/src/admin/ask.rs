//! The other side of the admin address: one request over a connection that somebody has made.

use std::io::{self, Read, Write};

use super::Token;

/// An answer with the most tenants that one may list is below 1 MiB.
const BYTES_MAX: u64 = 64 << 20;
/// How an answer begins.
const HTTP: &[u8] = b"HTTP/1.";

/// What was answered.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The status, 200 where all is well.
    pub status: u16,
    /// What follows the head.
    pub body: String,
}

/// Asks for a path; `host` is what the server is called. None: whoever answered does not speak
/// HTTP.
///
/// # Errors
/// What the connection says.
pub fn ask(
    mut stream: impl Read + Write,
    host: &str,
    path: &str,
    token: Option<&Token>,
) -> io::Result<Option<Answer>> {
    // HTTP/1.0: the answer ends with the connection, so nothing is chunked.
    let mut request = format!("GET {path} HTTP/1.0\r\nHost: {host}\r\n");
    if let Some(token) = token {
        request += &format!("Authorization: Bearer {}\r\n", token.text());
    }
    request += "\r\n";
    // In one piece: a server that answers its first line and closes would break the rest.
    stream.write_all(request.as_bytes())?;
    let mut bytes = vec![0; HTTP.len()];
    // Who speaks another protocol may wait for more of ours: it is known by its first bytes.
    let answer = stream.read_exact(&mut bytes).and_then(|()| {
        if bytes == HTTP {
            stream.take(BYTES_MAX).read_to_end(&mut bytes)?;
        }
        Ok(())
    });
    match answer {
        // By TLS, an end without a word of goodbye is one, too.
        Err(cause) if cause.kind() != io::ErrorKind::UnexpectedEof => Err(cause),
        _ => Ok(read(&String::from_utf8_lossy(&bytes))),
    }
}

fn read(text: &str) -> Option<Answer> {
    let (head, body) = text.split_once("\r\n\r\n")?;
    let status = head.strip_prefix("HTTP/1.")?.split(' ').nth(1)?;
    Some(Answer {
        status: status.parse().ok()?,
        body: body.to_string(),
    })
}
