//! Replies on their way to the client.

use std::io::IoSlice;

use super::turn::After;
use super::{Core, Used};
use crate::connection::{Connection, Parked};
use crate::socket::Progress;
use crate::tenants::ConnectionKey;

/// Parts of an output handed to one `writev`.
const SLICES: usize = 16;

/// Rooms that are kept for the next connections to write their replies in: as many as are answered
/// in a stretch.
const ROOMS_MAX: usize = 64;
/// A larger room goes back to the allocator: nobody is charged for those that are kept.
const ROOM_BYTES_MAX: usize = 64 << 10;

impl Core {
    /// Whether its replies wait for those of the same tenant's connections behind it: a client is
    /// woken by the first of those that leave one after the other, and to wake it costs more than
    /// several requests.
    pub(super) fn leaves_with_others(&self, connection: &Connection) -> bool {
        !connection.output.is_empty()
            && connection.may_send()
            && connection.apart().is_none()
            && !connection.closing
            // What has a due time waits for nobody.
            && !connection.tally.timed
            && self.lines.requests.queued_of(connection.tenant.id) > 0
    }

    /// As [`Core::send_on`], once it is known which replies may leave.
    pub(super) fn send_settled(
        &mut self,
        key: ConnectionKey,
        connection: &mut Connection,
        used: &mut Used,
    ) -> After {
        self.settle_replies(key, connection);
        self.send_on(key, connection, used)
    }

    /// Sends what may leave, and has a command that runs apart go on if that was what it waited
    /// for.
    pub(super) fn send_on(
        &mut self,
        key: ConnectionKey,
        connection: &mut Connection,
        used: &mut Used,
    ) -> After {
        if connection.may_send() && self.send(connection, used) == After::Close {
            return After::Close;
        }
        self.ask_on(key, connection);
        After::Keep
    }

    /// Sends at most a chunk of what waits, and what the socket has taken and not passed on: under
    /// TLS that may be all there is.
    pub(super) fn send(&mut self, connection: &mut Connection, used: &mut Used) -> After {
        if self.write_output(connection, used) == After::Close {
            return After::Close;
        }
        match connection.socket.flush() {
            Ok(Progress::Moved(_)) => {}
            Ok(Progress::Blocked) => connection.writable = false,
            Ok(Progress::Closed) | Err(_) => return After::Close,
        }
        After::Keep
    }

    fn write_output(&mut self, connection: &mut Connection, used: &mut Used) -> After {
        if !connection.output.is_empty() {
            used.sent_from = Some(self.now);
        }
        let mut left = self.wire.chunk_bytes;
        while !connection.output.is_empty() && left > 0 {
            let mut slices = [IoSlice::new(&[]); SLICES];
            let count = connection.output.io_slices(&mut slices, left as usize);
            match connection.socket.write(&slices[..count]) {
                Ok(Progress::Moved(sent)) => {
                    connection.output.advance(sent);
                    used.bytes_out += sent as u64;
                    connection.moved_at = self.now;
                    left -= sent as u64;
                    if let Some(Parked::Apart(apart)) = &mut connection.parked {
                        apart.taken_at = self.now;
                    }
                }
                Ok(Progress::Blocked) => {
                    connection.writable = false;
                    return After::Keep;
                }
                Ok(Progress::Closed) | Err(_) => return After::Close,
            }
        }
        if let Some(room) = connection.output.release() {
            if (1..=ROOM_BYTES_MAX).contains(&room.capacity()) && self.wire.rooms.len() < ROOMS_MAX
            {
                self.wire.rooms.push(room);
            }
        }
        After::Keep
    }
}
