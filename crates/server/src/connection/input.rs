//! What a client has said and was not run yet.

use bytes::BytesMut;
use resp::Parser;

/// Bytes on their way to become requests. An idle connection owns none.
pub struct Input {
    /// Bytes read and not yet parsed.
    pub bytes: BytesMut,
    /// Where parsing stopped.
    pub parser: Parser,
    /// `bytes` hold no whole request: at least this many more are needed. None: they may hold one.
    pub missing: Option<usize>,
}

impl Default for Input {
    fn default() -> Self {
        Self {
            bytes: BytesMut::new(),
            parser: Parser::default(),
            missing: Some(0),
        }
    }
}

impl Input {
    /// True when there may be a whole request.
    pub fn may_hold_request(&self) -> bool {
        self.missing.is_none() && !self.bytes.is_empty()
    }

    /// Memory that it takes.
    pub fn held_bytes(&self) -> usize {
        self.bytes.len() + self.parser.capacity()
    }
}
