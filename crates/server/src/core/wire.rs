//! What turns read and write with: buffers that all connections of a core use in turn.

use resp::Parser;

use crate::options::Options;

/// A core's buffers, and how much may go through them.
pub struct Wire {
    /// What is read goes here first.
    pub scratch: Box<[u8]>,
    /// Where the next connections write their replies, which leave soon: the same few allocations
    /// serve all.
    pub rooms: Vec<Vec<u8>>,
    /// Reads the requests of a pipeline before their turn comes.
    pub ahead: Parser,
    /// What a turn may move in each direction.
    pub chunk_bytes: u64,
    /// The longest word of a request.
    pub value_bytes_max: u32,
}

impl Wire {
    /// Buffers as large as `options` say.
    pub fn new(options: &Options) -> Self {
        Self {
            scratch: vec![0; options.chunk_bytes].into_boxed_slice(),
            rooms: Vec::new(),
            ahead: Parser::new(),
            chunk_bytes: options.chunk_bytes as u64,
            value_bytes_max: u32::try_from(options.value_bytes_max).unwrap_or(u32::MAX),
        }
    }
}
