//! Where a reply ends.

use resp::parse_i64;

/// Longest line: a length, a number, a status or an error.
const LINE_BYTES_MAX: usize = 1 << 20;

/// The engine has sent what is no reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the engine sent bytes that are no reply")]
pub struct Broken;

/// Finds the end of replies in a buffer that grows at its end, and looks at no value twice.
#[derive(Clone, Copy, Debug, Default)]
pub struct Scanner {
    /// From the start of the reply: so far it was understood. It may lie behind what has come.
    at: usize,
    /// Values still missing.
    left: u64,
}

impl Scanner {
    /// The length of the reply that `buffer` begins with, once it is there. `buffer` holds at least
    /// what it held last time; behind a reply the next begins.
    ///
    /// # Errors
    /// It is none.
    pub fn end(&mut self, buffer: &[u8]) -> Result<Option<usize>, Broken> {
        if (self.at, self.left) == (0, 0) {
            self.left = 1;
        }
        while self.left > 0 {
            let Some(len) = buffer.get(self.at..).map_or(Ok(None), line)? else {
                return Ok(None);
            };
            let line = &buffer[self.at..][..len];
            let number = || parse_i64(&line[1..]).ok_or(Broken);
            self.at += len + 2;
            let more = match line[0] {
                b'+' | b'-' | b':' | b'_' | b',' | b'#' | b'(' => 0,
                b'$' | b'=' | b'!' => {
                    if let Ok(bytes) = usize::try_from(number()?) {
                        self.at = self.at.checked_add(bytes + 2).ok_or(Broken)?;
                    }
                    0
                }
                b'*' | b'~' | b'>' => number()?.max(0) as u64,
                b'%' => 2 * number()?.max(0) as u64,
                // An attribute comes before the value that it is about.
                b'|' => 2 * number()?.max(0) as u64 + 1,
                _ => return Err(Broken),
            };
            self.left = (self.left - 1).checked_add(more).ok_or(Broken)?;
        }
        if self.at > buffer.len() {
            return Ok(None);
        }
        Ok(Some(std::mem::take(&mut self.at)))
    }

    /// Of the first `there` bytes of the buffer, those that were understood need not be there the
    /// next time. Returns how many these are.
    pub fn forget(&mut self, there: usize) -> usize {
        let gone = self.at.min(there);
        self.at -= gone;
        gone
    }

    /// Bytes that the reply needs at least, as far as it was understood.
    pub fn needs(&self) -> usize {
        self.at
    }
}

/// The length of the line that `rest` begins with, without its end.
fn line(rest: &[u8]) -> Result<Option<usize>, Broken> {
    let within = &rest[..rest.len().min(LINE_BYTES_MAX)];
    match within.iter().position(|byte| *byte == b'\r') {
        Some(0) => Err(Broken),
        Some(len) if len + 1 < rest.len() => Ok(Some(len)),
        None if rest.len() >= LINE_BYTES_MAX => Err(Broken),
        _ => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_ends_where_it_ends_however_it_comes() {
        let replies: [&[u8]; 12] = [
            b"+OK\r\n",
            b"-ERR no\r\n",
            b":-12\r\n",
            b"$0\r\n\r\n",
            b"$-1\r\n",
            b"$4\r\n\r\n*9\r\n",
            b"*-1\r\n",
            b"*0\r\n",
            b"*2\r\n*1\r\n$1\r\nx\r\n:1\r\n",
            b"%1\r\n+a\r\n~2\r\n,1.5\r\n#t\r\n",
            b"|1\r\n+ttl\r\n:3\r\n*1\r\n_\r\n",
            b"=8\r\ntxt:some\r\n",
        ];
        for reply in replies {
            let mut stream = reply.to_vec();
            stream.extend_from_slice(b"+next\r\n");
            let mut scanner = Scanner::default();
            for come in 0..reply.len() {
                assert_eq!(scanner.end(&stream[..come]), Ok(None), "{reply:?} {come}");
            }
            assert_eq!(scanner.end(&stream), Ok(Some(reply.len())), "{reply:?}");
            assert_eq!(scanner.end(&stream[reply.len()..]), Ok(Some(7)));
        }
    }

    #[test]
    fn a_reply_that_is_forgotten_as_it_comes_ends_where_it_ends() {
        let reply =
            b"*3\r\n$12\r\n*9\r\n$100\r\n*1\r\n*2\r\n+a\r\n%1\r\n:1\r\n$0\r\n\r\n$3\r\n+b\r\r\n";
        for step in 1..=reply.len() {
            let (mut scanner, mut buffer, mut gone) = (Scanner::default(), Vec::new(), 0);
            let mut stream = reply.iter().chain(b"+next\r\n");
            let end = loop {
                buffer.extend(stream.by_ref().take(step));
                if let Some(end) = scanner.end(&buffer).expect("a reply") {
                    break end;
                }
                let forgotten = scanner.forget(buffer.len());
                buffer.drain(..forgotten);
                gone += forgotten;
            };
            assert_eq!(gone + end, reply.len(), "{step} at a time");
        }
    }

    #[test]
    fn what_is_no_reply_is_found_out() {
        let hostile: [&[u8]; 6] = [
            b"GET /\r\n",
            b"\r\n",
            b"$x\r\n",
            b"*1\r\n?\r\n",
            b"*9223372036854775807\r\n*9223372036854775807\r\n*9223372036854775807\r\n",
            b"$9223372036854775807\r\n",
        ];
        for bytes in hostile {
            let mut scanner = Scanner::default();
            let found = scanner.end(bytes);
            // A length that cannot be is one that never comes.
            let never = matches!(found, Ok(None)) && scanner.needs() > 1 << 40;
            assert!(found == Err(Broken) || never, "{bytes:?}");
        }
        assert_eq!(Scanner::default().end(&vec![b'+'; 1 << 20]), Err(Broken));
    }
}
