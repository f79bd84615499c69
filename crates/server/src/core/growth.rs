//! Memory for a request that is still arriving.

use bytes::BytesMut;

use super::turn::COPIED_MAX;
use super::Core;
use crate::connection::{Connection, Parked, Ready};
use crate::tenants::ConnectionKey;

/// Room that is made at once for a word that was announced, before any of it is there: a header
/// alone must not make the server take more.
const AHEAD_BYTES: usize = 1 << 20;

/// The room that a request of `len` bytes is given when it needs more: twice what it has, so that
/// each byte is copied once or twice in all; and as much as the word under way needs, once enough
/// of it has come that it is meant. (What is given and not written to costs addresses and no
/// memory.)
fn room_for(len: usize, missing: usize, at_least: usize) -> usize {
    let ahead = if len < AHEAD_BYTES {
        AHEAD_BYTES
    } else {
        usize::MAX
    };
    len.saturating_mul(2).max(len + missing.min(ahead)) + at_least
}

impl Core {
    /// Whether `input` has room for `more` bytes. If it takes long to make some, a handler does,
    /// and the connection waits for it.
    pub(super) fn has_room(
        &mut self,
        key: ConnectionKey,
        connection: &mut Connection,
        input: &mut BytesMut,
        more: usize,
    ) -> bool {
        let len = input.len();
        if len == 0 || input.capacity() - len >= more {
            return true;
        }
        let room = room_for(len, connection.input.missing.unwrap_or(0), more);
        if len <= COPIED_MAX {
            input.reserve(room - len);
            return true;
        }
        let tenant = std::sync::Arc::clone(&connection.tenant);
        let small = std::mem::take(input);
        connection.parked = Some(Parked::Growing);
        let sent = self.submit(
            &tenant,
            Box::new(move |_| {
                let mut large = BytesMut::with_capacity(room);
                for piece in small.chunks(COPIED_MAX) {
                    large.extend_from_slice(piece);
                    threads::turns::step();
                }
                Some((key, Ready::Grown(large)))
            }),
        );
        // A tenant that is gone: so is its connection, soon.
        connection.closing |= !sent;
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    #[test]
    fn a_header_alone_is_given_little_and_a_word_under_way_all_it_needs() {
        assert_eq!(room_for(30, 128 * MIB, 64 << 10), 30 + MIB + (64 << 10));
        assert_eq!(room_for(MIB, 127 * MIB, 0), 128 * MIB);
        assert_eq!(room_for(64 * MIB, 10, 0), 128 * MIB);
    }
}
