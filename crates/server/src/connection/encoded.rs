//! A request as an engine behind this server is sent it.

use std::sync::Arc;

use bytes::Bytes;
use commands::Spec;
use front::{Gather, Pieces, Shows, Space};
use policy::multiget::level_of;
use smallvec::SmallVec;

use super::Alone;
use crate::unit::BYTES_OF_KEY;

/// A request that was written for the engine.
pub struct Encoded {
    /// Its command.
    pub spec: &'static Spec,
    /// Whose keys it names.
    pub space: Arc<Space>,
    /// One for each partition that has keys of it.
    pub parts: SmallVec<[EncodedPart; 1]>,
    /// How the replies of several come together.
    pub gather: Option<Gather>,
    /// Replies before the one that counts: of a transaction.
    pub before: u32,
    /// Where its reply shows keys.
    pub shows: Shows,
    /// What it is charged as.
    pub requests: u64,
    /// Why it goes by a link to itself.
    pub alone: Option<Alone>,
    /// It is or has a script: it goes as its tenant's own user of the engine.
    pub script: bool,
    /// Every node is asked.
    pub every_node: bool,
    /// The hash slot that its client takes it to be for; none: it need not be known.
    pub slot: Option<u16>,
}

impl Encoded {
    /// The partition of its keys; none: it has none, or several.
    pub fn part(&self) -> Option<u16> {
        match &self.parts[..] {
            [one] => one.part,
            _ => None,
        }
    }

    /// Its level by its largest part, which will be answered last: the bottleneck (Rein 3.2.1).
    pub fn level(&self) -> u8 {
        let size = |part: &EncodedPart| {
            let bytes: usize = part.pieces.iter().map(Bytes::len).sum();
            let keys = part.keys.as_ref().map(|keys| keys.len() as u64);
            let keys = keys.unwrap_or(self.requests);
            keys.max((bytes / BYTES_OF_KEY) as u64)
        };
        level_of(self.parts.iter().map(size).max().unwrap_or(1))
    }
}

/// What one partition is asked.
pub struct EncodedPart {
    /// Which; none: the request has no keys.
    pub part: Option<u16>,
    /// The request.
    pub pieces: Pieces,
    /// Which keys of the whole it is about, if that was split.
    pub keys: Option<Box<[u32]>>,
}
