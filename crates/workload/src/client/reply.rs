//! Counts replies in a byte stream without keeping them: RESP2 and RESP3, cut anywhere.

/// What a reply was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Anything but an error.
    Value,
    /// `-…` or `!…`.
    Error,
    /// `>…`: belongs to no request.
    Push,
}

/// One complete reply.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reply<'a> {
    pub(crate) kind: Kind,
    /// Nulls in it, at any depth.
    pub(crate) nulls: u32,
    /// Its length on the wire.
    pub(crate) bytes: u64,
    /// The error's text; empty for everything else.
    pub(crate) error: &'a [u8],
}

/// Longest header or simple line, bytes. Redis itself allows 64 KiB.
const LINE_BYTES_MAX: usize = 64 * 1024;
/// Longest error text kept, bytes.
const ERROR_BYTES_MAX: usize = 512;
/// Largest bulk, bytes: Redis's `proto-max-bulk-len` cannot be raised above it in practice.
const BULK_BYTES_MAX: u64 = 4 << 30;
/// Most elements outstanding in one reply.
const ELEMENTS_MAX: u64 = 1 << 32;

/// The state between two reads of one connection.
#[derive(Debug, Default)]
pub(crate) struct ReplyParser {
    /// A header or simple line cut by the end of a read.
    line: Vec<u8>,
    /// Bytes of a bulk (with its line end) still to come.
    skip: u64,
    /// Elements still to come in this reply; 0 between replies.
    open: u64,
    kind: Option<Kind>,
    nulls: u32,
    bytes: u64,
    error: Vec<u8>,
    /// The bulk being skipped is the text of an error.
    bulk_error: bool,
}

impl ReplyParser {
    /// Takes what was read and reports each reply that it completes.
    ///
    /// # Errors
    /// What is wrong, if this is not RESP. The parser must not be used after that.
    pub(crate) fn feed(
        &mut self,
        mut bytes: &[u8],
        mut on_reply: impl FnMut(Reply<'_>),
    ) -> Result<(), String> {
        while !bytes.is_empty() {
            if self.skip > 0 {
                let part = usize::try_from(self.skip)
                    .unwrap_or(usize::MAX)
                    .min(bytes.len());
                self.skip_part(&bytes[..part]);
                bytes = &bytes[part..];
                if self.skip > 0 {
                    return Ok(());
                }
                self.close_elements(1, &mut on_reply);
                continue;
            }
            let Some(end) = bytes.iter().position(|byte| *byte == b'\n') else {
                self.line.extend_from_slice(bytes);
                self.bytes += bytes.len() as u64;
                return if self.line.len() > LINE_BYTES_MAX {
                    Err("a line without an end".into())
                } else {
                    Ok(())
                };
            };
            self.bytes += end as u64 + 1;
            if self.line.is_empty() {
                self.element(&bytes[..end], &mut on_reply)?;
            } else {
                let mut line = std::mem::take(&mut self.line);
                line.extend_from_slice(&bytes[..end]);
                self.element(&line, &mut on_reply)?;
                line.clear();
                self.line = line;
            }
            bytes = &bytes[end + 1..];
        }
        Ok(())
    }

    fn skip_part(&mut self, part: &[u8]) {
        if self.bulk_error && self.error.len() < ERROR_BYTES_MAX {
            self.error
                .extend_from_slice(&part[..part.len().min(ERROR_BYTES_MAX)]);
        }
        self.skip -= part.len() as u64;
        self.bytes += part.len() as u64;
    }

    /// One header or simple line, without its line feed.
    fn element(&mut self, line: &[u8], on_reply: &mut impl FnMut(Reply<'_>)) -> Result<(), String> {
        let Some((sign, rest)) = line.split_first() else {
            return Err("an empty line".into());
        };
        let rest = rest
            .strip_suffix(b"\r")
            .ok_or("a line that does not end in CRLF")?;
        if self.open == 0 {
            self.open = 1;
        }
        // The element that is the reply itself; attributes and their elements come before it.
        let first = self.kind.is_none() && self.open == 1;
        if first && *sign != b'|' {
            self.kind = Some(match sign {
                b'-' | b'!' => Kind::Error,
                b'>' => Kind::Push,
                _ => Kind::Value,
            });
        }
        match sign {
            b'+' | b':' | b',' | b'#' | b'(' => self.close_elements(1, on_reply),
            b'-' => {
                if first {
                    self.error
                        .extend_from_slice(&rest[..rest.len().min(ERROR_BYTES_MAX)]);
                }
                self.close_elements(1, on_reply);
            }
            b'_' => self.null(on_reply),
            b'$' | b'=' | b'!' => match length(rest)? {
                None => self.null(on_reply),
                Some(n) if n > BULK_BYTES_MAX => return Err(format!("a bulk of {n} bytes")),
                Some(n) => {
                    self.skip = n + 2;
                    self.bulk_error = *sign == b'!' && first;
                }
            },
            b'*' | b'~' | b'>' | b'%' | b'|' => match length(rest)? {
                None => self.null(on_reply),
                Some(n) => self.aggregate(*sign, n, on_reply)?,
            },
            other => return Err(format!("a reply that begins with byte {other:#04x}")),
        }
        Ok(())
    }

    fn aggregate(
        &mut self,
        sign: u8,
        n: u64,
        on_reply: &mut impl FnMut(Reply<'_>),
    ) -> Result<(), String> {
        if n > ELEMENTS_MAX || self.open > ELEMENTS_MAX {
            return Err(format!("an aggregate of {n} elements"));
        }
        self.open += if matches!(sign, b'%' | b'|') {
            2 * n
        } else {
            n
        };
        // Attributes precede the element that they describe and are not one themselves.
        if sign != b'|' {
            self.close_elements(1, on_reply);
        }
        Ok(())
    }

    fn null(&mut self, on_reply: &mut impl FnMut(Reply<'_>)) {
        self.nulls += 1;
        self.close_elements(1, on_reply);
    }

    fn close_elements(&mut self, n: u64, on_reply: &mut impl FnMut(Reply<'_>)) {
        self.open -= n;
        if self.open > 0 {
            return;
        }
        let error = self.error.strip_suffix(b"\r\n").unwrap_or(&self.error);
        let kind = self.kind.take().unwrap_or(Kind::Value);
        on_reply(Reply {
            kind,
            nulls: self.nulls,
            bytes: self.bytes,
            error,
        });
        (self.nulls, self.bytes, self.bulk_error) = (0, 0, false);
        self.error.clear();
    }
}

/// A length header; `None` is RESP2's null (-1).
fn length(digits: &[u8]) -> Result<Option<u64>, String> {
    if digits == b"-1" {
        return Ok(None);
    }
    let mut n = 0u64;
    if digits.is_empty() || digits.len() > 18 {
        return Err("a length that is not a number".into());
    }
    for digit in digits {
        if !digit.is_ascii_digit() {
            return Err("a length that is not a number".into());
        }
        n = n * 10 + u64::from(digit - b'0');
    }
    Ok(Some(n))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(chunks: &[&[u8]]) -> Result<Vec<(Kind, u32, u64, String)>, String> {
        let (mut parser, mut replies) = (ReplyParser::default(), Vec::new());
        for chunk in chunks {
            parser.feed(chunk, |r| {
                let error = String::from_utf8_lossy(r.error).into_owned();
                replies.push((r.kind, r.nulls, r.bytes, error));
            })?;
        }
        Ok(replies)
    }

    const STREAM: &[u8] =
        b"+OK\r\n-ERR no\r\n:1\r\n$3\r\na\nb\r\n$-1\r\n*-1\r\n*3\r\n$1\r\na\r\n_\r\n\
        *1\r\n$-1\r\n%1\r\n+a\r\n,1.5\r\n>2\r\n+push\r\n+x\r\n~0\r\n|1\r\n+ttl\r\n:3\r\n-WHY x\r\n\
        !5\r\nBAD y\r\n=5\r\ntxt:a\r\n#t\r\n(123\r\n";

    #[test]
    fn every_type_however_cut() {
        let whole = parse(&[STREAM]).expect("valid");
        let kinds: Vec<_> = whole
            .iter()
            .map(|(kind, nulls, ..)| (*kind, *nulls))
            .collect();
        use Kind::{Error, Push, Value};
        let expected = [
            (Value, 0),
            (Error, 0),
            (Value, 0),
            (Value, 0),
            (Value, 1),
            (Value, 1),
            (Value, 2),
            (Value, 0),
            (Push, 0),
            (Value, 0),
            (Error, 0),
            (Error, 0),
            (Value, 0),
            (Value, 0),
            (Value, 0),
        ];
        assert_eq!(kinds, expected);
        assert_eq!(whole[1].3, "ERR no");
        assert_eq!(whole[11].3, "BAD y");
        assert_eq!(
            whole.iter().map(|reply| reply.2).sum::<u64>(),
            STREAM.len() as u64
        );
        for cut in 1..STREAM.len() {
            assert_eq!(
                parse(&[&STREAM[..cut], &STREAM[cut..]]).expect("valid"),
                whole
            );
        }
        let bytes: Vec<&[u8]> = STREAM.chunks(1).collect();
        assert_eq!(parse(&bytes).expect("valid"), whole);
    }

    #[test]
    fn what_is_not_resp_is_refused() {
        for bad in [
            &b"HTTP/1.1 400\r\n"[..],
            b"\r\n",
            b"+no\n",
            b"$x\r\n",
            b"$-2\r\n",
            b"*\r\n",
        ] {
            assert!(parse(&[bad]).is_err(), "{}", String::from_utf8_lossy(bad));
        }
        assert!(parse(&[b"*99999999999999\r\n"]).is_err());
        assert!(parse(&[&vec![b'+'; LINE_BYTES_MAX + 1]]).is_err());
    }
}
