//! Keys of requests that are here already, looked at before their turn comes.
//!
//! A key that was not used just now costs four waits for memory, each for where the next one is:
//! group, slot, object, value. A processor waits for those of several keys at once if nothing lies
//! between them, so that a pipeline waits for a part of them.

use resp::Parsed;
use smallvec::SmallVec;

use super::Core;
use crate::connection::Connection;

/// Requests that are looked at together: with more of them nothing is gained.
const AHEAD_MAX: usize = 16;
/// So far it is read ahead. A request of many bytes costs more than its lookup.
const AHEAD_BYTES: usize = 8 << 10;

impl Core {
    /// Called for each request, with it at the beginning of `bytes`: looks at its key and the next
    /// requests' if that has not been done. `looked_at` counts the requests here whose keys were
    /// looked at.
    pub(super) fn look_ahead(
        &mut self,
        connection: &Connection,
        bytes: &[u8],
        looked_at: &mut usize,
    ) {
        if *looked_at == 0 {
            *looked_at = self.look_at_keys(connection, bytes);
        }
        *looked_at = looked_at.saturating_sub(1);
    }

    /// Looks at the keys of the first requests in `bytes`, and returns how many requests that were.
    /// A request's first word is taken for a key: where it is none, nothing comes of it.
    fn look_at_keys(&mut self, connection: &Connection, bytes: &[u8]) -> usize {
        let Some(keyspace) = connection.tenant.keyspace() else {
            return AHEAD_MAX;
        };
        let (limits, bytes) = (
            self.limits(connection),
            &bytes[..bytes.len().min(AHEAD_BYTES)],
        );
        let (mut at, mut keys) = (0, SmallVec::<[&[u8]; AHEAD_MAX]>::new());
        while keys.len() < AHEAD_MAX {
            // What is wrong, or not whole, is seen when its turn comes.
            let Ok(Parsed::Command(len)) = self.wire.ahead.parse(&bytes[at..], &limits) else {
                self.wire.ahead.reset();
                break;
            };
            keys.push(self.wire.ahead.word(&bytes[at..], 1).unwrap_or_default());
            at += len;
        }
        if keys.len() > 1 {
            keyspace.look_ahead(connection.session.state.database, &keys);
        }
        keys.len()
    }
}
