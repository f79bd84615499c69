//! The incremental request parser.
//!
//! The caller keeps a buffer that starts at the first byte of the next request and grows at its
//! end. [`Parser::parse`] looks only at bytes that it has not seen, so a request that arrives in a
//! thousand pieces costs what it costs in one.

use bytes::Bytes;
use thiserror::Error;

use crate::args::{Args, OwnedArgs, Span};
use crate::inline;

/// Spans and unquoted bytes beyond this capacity are given back after a request.
const KEPT: usize = 64;

/// Once so many words have come, room is made for all that were announced: a million are not copied
/// again and again as they come (4 ms for the last time), and a count alone does not make the
/// server take more.
const AHEAD: usize = 64 << 10;

/// What one request may be. The texts of [`ProtocolError`] say which limit was exceeded.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Words in one request. Redis takes 2^31 - 1 after authentication; 1,048,576 was its limit
    /// until 7.0.
    pub args_max: u32,
    /// Bytes in one word (`proto-max-bulk-len`).
    pub bulk_bytes_max: u32,
    /// Bytes of a line: an inline request, or a length before a word.
    pub line_bytes_max: usize,
    /// Bytes of a whole request with its framing (`client-query-buffer-limit`); at most `u32::MAX`.
    pub request_bytes_max: usize,
    /// Before a client has authenticated, the texts of the errors say so.
    pub authenticated: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            args_max: 1 << 20,
            bulk_bytes_max: 128 << 20,
            line_bytes_max: 64 << 10,
            request_bytes_max: 1 << 30,
            authenticated: true,
        }
    }
}

impl Limits {
    /// What a client may send before it has authenticated: 10 words of 16 KiB, as in Redis.
    pub fn unauthenticated() -> Self {
        Limits {
            args_max: 10,
            bulk_bytes_max: 16 << 10,
            authenticated: false,
            ..Limits::default()
        }
    }
}

/// A request that breaks the protocol; the connection is closed after the error. `Display` is
/// Redis's own text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ProtocolError {
    /// The number of words is not a number, or exceeds `args_max`.
    #[error("Protocol error: invalid multibulk length")]
    InvalidMultibulkLength,
    /// Too many words before authentication.
    #[error("Protocol error: unauthenticated multibulk length")]
    UnauthenticatedMultibulkLength,
    /// The length of a word is not a number, negative, or exceeds `bulk_bytes_max`.
    #[error("Protocol error: invalid bulk length")]
    InvalidBulkLength,
    /// Too long a word before authentication.
    #[error("Protocol error: unauthenticated bulk length")]
    UnauthenticatedBulkLength,
    /// No end of line within `line_bytes_max` after `*`.
    #[error("Protocol error: too big mbulk count string")]
    TooBigMultibulkCount,
    /// No end of line within `line_bytes_max` where `$length` is due.
    #[error("Protocol error: too big bulk count string")]
    TooBigBulkCount,
    /// No end of line within `line_bytes_max` of an inline request.
    #[error("Protocol error: too big inline request")]
    TooBigInline,
    /// Another byte where `$` is due.
    #[error("Protocol error: expected '$', got '{}'", char::from(*.0))]
    ExpectedBulk(u8),
    /// Quotes of an inline request do not close.
    #[error("Protocol error: unbalanced quotes in request")]
    UnbalancedQuotes,
    /// The request as a whole exceeds `request_bytes_max`. Redis closes such a connection without a
    /// word.
    #[error("Protocol error: request exceeds the query buffer limit")]
    TooBigRequest,
}

impl ProtocolError {
    /// True if it is one only before a client has authenticated.
    pub fn before_login(self) -> bool {
        matches!(
            self,
            Self::UnauthenticatedMultibulkLength | Self::UnauthenticatedBulkLength
        )
    }
}

/// What a call of [`Parser::parse`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parsed {
    /// A whole request, which takes this many bytes of the buffer. [`Parser::args`] gives its
    /// words.
    Command(usize),
    /// This many bytes ask for nothing (an empty line or array): drop them and go on.
    Skip(usize),
    /// At least this many bytes are missing.
    More(usize),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Start,
    Inline,
    Count,
    Length,
    Word { len: u32 },
    Done,
}

/// The state of one connection's parsing. An idle one holds a few dozen bytes.
#[derive(Debug)]
pub struct Parser {
    state: State,
    /// Where the line or word being read starts, from the request's first byte.
    at: usize,
    /// Bytes of that line in which no end of line was found.
    scanned: usize,
    words_left: u32,
    spans: Vec<Span>,
    /// The words of an inline request without their quotes; the spans of such a request lie in
    /// here.
    unquoted: Vec<u8>,
    is_inline: bool,
}

impl Default for Parser {
    fn default() -> Self {
        Self::new()
    }
}

impl Parser {
    /// A parser at the start of a request.
    pub fn new() -> Self {
        Parser {
            state: State::Start,
            at: 0,
            scanned: 0,
            words_left: 0,
            spans: Vec::new(),
            unquoted: Vec::new(),
            is_inline: false,
        }
    }

    /// Reads on. `buffer` starts at the first byte of the request under way and holds at least what
    /// it held last time. After `Command` or `Skip` the caller drops that many bytes from its front
    /// before it calls again.
    pub fn parse(&mut self, buffer: &[u8], limits: &Limits) -> Result<Parsed, ProtocolError> {
        if self.state == State::Done {
            self.reset();
        }
        if self.state == State::Start {
            match buffer.first() {
                None => return Ok(Parsed::More(1)),
                Some(b'*') => self.state = State::Count,
                Some(_) => self.state = State::Inline,
            }
        }
        let parsed = match self.state {
            State::Inline => self.inline(buffer, limits)?,
            _ => self.multibulk(buffer, limits)?,
        };
        match parsed {
            Parsed::More(missing)
                if buffer.len().saturating_add(missing) > limits.request_bytes_max =>
            {
                Err(ProtocolError::TooBigRequest)
            }
            Parsed::More(_) => Ok(parsed),
            _ => {
                self.state = State::Done;
                Ok(parsed)
            }
        }
    }

    /// The words of the request that was just found, in `buffer` as it was given to
    /// [`Parser::parse`].
    pub fn args<'a>(&'a self, buffer: &'a [u8]) -> Args<'a> {
        Args::new(
            if self.is_inline {
                &self.unquoted
            } else {
                buffer
            },
            &self.spans,
        )
    }

    /// One of the words, if they lie in `buffer`: those of an inline request do not.
    pub fn word<'b>(&self, buffer: &'b [u8], index: usize) -> Option<&'b [u8]> {
        let span = self.spans.get(index).filter(|_| !self.is_inline);
        span.map(|span| span.of(buffer))
    }

    /// The same as a request that owns its bytes. `frame` is the bytes of [`Parsed::Command`], cut
    /// off the buffer.
    pub fn owned(&mut self, frame: Bytes) -> OwnedArgs {
        let frame = if self.is_inline {
            Bytes::copy_from_slice(&self.unquoted)
        } else {
            frame
        };
        OwnedArgs::new(frame, &mut self.spans)
    }

    /// Bytes of memory reserved beyond the struct itself.
    pub fn capacity(&self) -> usize {
        self.spans.capacity() * size_of::<Span>() + self.unquoted.capacity()
    }

    /// Between requests: gives back what a long one took.
    pub fn rest(&mut self) {
        if self.state == State::Done {
            self.reset();
        }
    }

    /// Forgets what was read of a request.
    pub fn reset(&mut self) {
        self.state = State::Start;
        self.at = 0;
        self.scanned = 0;
        self.words_left = 0;
        self.is_inline = false;
        self.spans.clear();
        self.spans.shrink_to(KEPT);
        self.unquoted.clear();
        self.unquoted.shrink_to(KEPT);
    }

    fn inline(&mut self, buffer: &[u8], limits: &Limits) -> Result<Parsed, ProtocolError> {
        let Some(len) = self.line_end(
            buffer,
            b'\n',
            limits.line_bytes_max,
            ProtocolError::TooBigInline,
        )?
        else {
            return Ok(Parsed::More(1));
        };
        let line = &buffer[..len];
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        self.is_inline = true;
        if !inline::split(line, &mut self.unquoted, &mut self.spans) {
            return Err(ProtocolError::UnbalancedQuotes);
        }
        Ok(if self.spans.is_empty() {
            Parsed::Skip(len + 1)
        } else {
            Parsed::Command(len + 1)
        })
    }

    fn multibulk(&mut self, buffer: &[u8], limits: &Limits) -> Result<Parsed, ProtocolError> {
        if self.state == State::Count {
            let Some(line) = self.header(buffer, limits, ProtocolError::TooBigMultibulkCount)?
            else {
                return Ok(Parsed::More(1));
            };
            let count = parse_i64(&line[1..]).ok_or(ProtocolError::InvalidMultibulkLength)?;
            if count > i64::from(limits.args_max) {
                return Err(match limits.authenticated {
                    true => ProtocolError::InvalidMultibulkLength,
                    false => ProtocolError::UnauthenticatedMultibulkLength,
                });
            }
            if count <= 0 {
                return Ok(Parsed::Skip(self.at));
            }
            self.words_left = count as u32;
            self.state = State::Length;
        }
        while self.words_left > 0 {
            if self.state == State::Length {
                if let Some((len, next)) = short_length(buffer, self.at) {
                    if len <= limits.bulk_bytes_max && self.scanned == 0 {
                        self.at = next;
                        self.state = State::Word { len };
                    }
                }
            }
            if self.state == State::Length {
                let Some(line) = self.header(buffer, limits, ProtocolError::TooBigBulkCount)?
                else {
                    return Ok(Parsed::More(1));
                };
                self.state = State::Word {
                    len: word_len(line, limits)?,
                };
            }
            if let State::Word { len } = self.state {
                let end = self.at + len as usize + 2;
                if end > buffer.len() {
                    return Ok(Parsed::More(end - buffer.len()));
                }
                if self.spans.len() == self.spans.capacity() && self.spans.len() >= AHEAD {
                    self.spans.reserve_exact(self.words_left as usize);
                }
                // Redis too takes any two bytes for the end of a word.
                self.spans.push(Span {
                    start: self.at as u32,
                    len,
                });
                self.at = end;
                self.words_left -= 1;
                self.state = State::Length;
            }
        }
        Ok(Parsed::Command(self.at))
    }

    /// The line at `self.at` that ends with CR and one more byte, past which `self.at` then is.
    fn header<'b>(
        &mut self,
        buffer: &'b [u8],
        limits: &Limits,
        too_big: ProtocolError,
    ) -> Result<Option<&'b [u8]>, ProtocolError> {
        let Some(len) = self.line_end(buffer, b'\r', limits.line_bytes_max, too_big)? else {
            return Ok(None);
        };
        let start = self.at;
        if start + len + 2 > buffer.len() {
            self.scanned = len;
            return Ok(None);
        }
        self.at = start + len + 2;
        self.scanned = 0;
        Ok(Some(&buffer[start..start + len]))
    }

    /// Length of the line at `self.at` up to `end`, if that has arrived.
    fn line_end(
        &mut self,
        buffer: &[u8],
        end: u8,
        max: usize,
        too_big: ProtocolError,
    ) -> Result<Option<usize>, ProtocolError> {
        let line = &buffer[self.at..];
        // One byte more than the limit is enough to know; a longer line is an error however it is
        // cut.
        let line = &line[..line.len().min(max + 1)];
        match line[self.scanned..].iter().position(|&byte| byte == end) {
            Some(position) => Ok(Some(self.scanned + position)),
            None if line.len() > max => Err(too_big),
            None => {
                self.scanned = line.len();
                Ok(None)
            }
        }
    }
}

/// The length in a well-formed `$length` line of a few digits and where the word begins: what
/// nearly every line is. `None` is for the long way, which also finds out what is wrong.
#[inline]
fn short_length(buffer: &[u8], at: usize) -> Option<(u32, usize)> {
    match *buffer.get(at..)? {
        [b'$', a @ b'0'..=b'9', b'\r', _, ..] => Some((u32::from(a - b'0'), at + 4)),
        [b'$', a @ b'1'..=b'9', b @ b'0'..=b'9', b'\r', _, ..] => {
            Some((u32::from(a - b'0') * 10 + u32::from(b - b'0'), at + 5))
        }
        _ => None,
    }
}

/// The length that a `$length` line promises.
fn word_len(line: &[u8], limits: &Limits) -> Result<u32, ProtocolError> {
    let Some((b'$', digits)) = line.split_first() else {
        return Err(ProtocolError::ExpectedBulk(
            line.first().copied().unwrap_or(b'\r'),
        ));
    };
    match parse_i64(digits) {
        Some(len) if (0..=i64::from(limits.bulk_bytes_max)).contains(&len) => Ok(len as u32),
        Some(len) if len > 0 && !limits.authenticated => {
            Err(ProtocolError::UnauthenticatedBulkLength)
        }
        _ => Err(ProtocolError::InvalidBulkLength),
    }
}

/// A decimal integer as Redis reads one: no blanks, no `+`, no leading zeros, no `-0`.
#[inline]
pub fn parse_i64(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    match digits {
        [b'0'] if !negative => return Some(0),
        [b'1'..=b'9', ..] if digits.len() <= 19 => {}
        _ => return None,
    }
    // 19 digits are below 10^19 < 2^64.
    let mut value: u64 = 0;
    for &digit in digits {
        let digit = digit.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value * 10 + u64::from(digit);
    }
    match (negative, value) {
        (false, 0..=0x7fff_ffff_ffff_ffff) => Some(value as i64),
        (true, 0..=0x8000_0000_0000_0000) => Some((value as i64).wrapping_neg()),
        _ => None,
    }
}
