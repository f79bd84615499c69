//! One turn of one connection: what it was admitted to do before the next in line is.
//!
//! Nothing is read before the turn (Pisces 4.3.5): until then the bytes lie in the kernel, and a tenant
//! that is not served pushes back on its own clients. A turn moves at most a chunk in each direction; a
//! longer request or reply goes on in further turns, each from the back of the tenant's queue.

use std::io::IoSlice;
use std::mem;

use bytes::{Buf, BytesMut};
use policy::{Cost, Nanos};

use super::command::Flow;
use super::message::ConnectionKey;
use super::{Core, Used, RESOURCES};
use crate::connection::{Connection, Parked, Progress};
use crate::resp::{Limits, Output, Parsed, Parser, ProtocolError, Reply};
use crate::tenants::Ending;

/// Parts of an output handed to one `writev`.
const SLICES: usize = 16;

/// Room made at once for a value that was announced: a header alone must not make the server take more.
const AHEAD_BYTES: usize = 8 << 20;

/// Requests of a newcomer in one turn: newcomers have one queue, so that each must be short to all others. To log in takes
/// one or two.
const NEWCOMER_REQUESTS: u64 = 8;

/// What a turn may move: the stage's budget, but never more than a chunk.
#[derive(Clone, Copy)]
struct Budget {
    requests: u64,
    bytes_in: u64,
}

/// What became of a connection in its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum After {
    /// It stays.
    Keep,
    /// It is to be closed.
    Close,
}

impl Core {
    /// Gives `connection` its turn; what it used goes into `used`.
    pub(super) fn turn(
        &mut self,
        key: ConnectionKey,
        connection: &mut Connection,
        budget: &Cost<RESOURCES>,
        used: &mut Used,
    ) -> After {
        let requests_max = match connection.session.authenticated {
            true => u64::MAX,
            false => NEWCOMER_REQUESTS,
        };
        let budget = Budget {
            requests: budget.0[0].clamp(1, requests_max),
            bytes_in: budget.0[1].clamp(1, self.chunk),
        };
        if !connection.output.is_empty() && self.send(connection, used) == After::Close {
            return After::Close;
        }
        self.ask_on(key, connection);
        if connection.output.is_empty() && !connection.closing && connection.parked.is_none() {
            connection.output.borrow(&mut self.room);
            if self.read_and_run(key, connection, budget, used) == After::Close {
                return After::Close;
            }
            self.settle_replies(key, connection);
            if connection.parked.is_none() && self.send(connection, used) == After::Close {
                return After::Close;
            }
        }
        finished(connection)
    }

    fn read_and_run(
        &mut self,
        key: ConnectionKey,
        connection: &mut Connection,
        budget: Budget,
        used: &mut Used,
    ) -> After {
        let mut scratch = mem::take(&mut self.scratch);
        let after = self.read_and_run_with(key, connection, budget, used, &mut scratch);
        self.scratch = scratch;
        after
    }

    fn read_and_run_with(
        &mut self,
        key: ConnectionKey,
        connection: &mut Connection,
        budget: Budget,
        used: &mut Used,
        scratch: &mut [u8],
    ) -> After {
        let mut input = mem::take(&mut connection.input);
        // Requests that were left over from the last turn come before new bytes.
        let mut more = connection.starved
            || input.is_empty()
            || self.run_all(key, connection, &mut input, budget, used);
        while more && connection.readable && !connection.ended && used.bytes_in < budget.bytes_in {
            match connection.socket.read(scratch) {
                Ok(Progress::Moved(count)) => {
                    used.bytes_in += count as u64;
                    // A short read has emptied the socket: the next arrival brings a new notice (epoll(7)).
                    connection.readable = count == scratch.len() || connection.hung_up;
                    if !connection.readable {
                        connection.unread_since = 0;
                    }
                    connection.starved = false;
                    more = if input.is_empty() {
                        self.run_borrowed(
                            key,
                            connection,
                            &scratch[..count],
                            &mut input,
                            budget,
                            used,
                        )
                    } else {
                        input.extend_from_slice(&scratch[..count]);
                        self.run_all(key, connection, &mut input, budget, used)
                    };
                }
                Ok(Progress::Blocked) => {
                    connection.readable = false;
                    connection.unread_since = 0;
                }
                Ok(Progress::Closed) => connection.ended = true,
                Err(_) => return After::Close,
            }
        }
        if !input.is_empty() {
            connection.input = input;
        }
        After::Keep
    }

    /// Runs whole requests straight from the read buffer; what is left goes into `rest`.
    fn run_borrowed(
        &mut self,
        key: ConnectionKey,
        connection: &mut Connection,
        bytes: &[u8],
        rest: &mut BytesMut,
        budget: Budget,
        used: &mut Used,
    ) -> bool {
        let mut parser = mem::take(&mut connection.parser);
        let mut at = 0;
        let more = loop {
            if at == bytes.len() {
                break true;
            }
            match parser.parse(&bytes[at..], &self.limits(connection)) {
                Ok(Parsed::Command(len)) => {
                    let args = parser.args(&bytes[at..]);
                    match self.command(key, connection, args, used) {
                        Flow::Again => break false,
                        flow => {
                            at += len;
                            if flow == Flow::Stop || used.requests >= budget.requests {
                                break false;
                            }
                        }
                    }
                }
                Ok(Parsed::Skip(len)) => at += len,
                Ok(Parsed::More(_)) => {
                    connection.starved = true;
                    break true;
                }
                Err(error) => {
                    match self.larger_than_a_newcomers(connection, error) {
                        Ok(()) => parser = Parser::new(),
                        Err(text) => {
                            self.protocol_error(connection, &text);
                            at = bytes.len();
                        }
                    }
                    break false;
                }
            }
        };
        connection.parser = parser;
        rest.extend_from_slice(&bytes[at..]);
        more
    }

    /// Runs whole requests from a connection's own buffer; large ones are cut off it without a copy.
    /// True when it needs more bytes.
    fn run_all(
        &mut self,
        key: ConnectionKey,
        connection: &mut Connection,
        input: &mut BytesMut,
        budget: Budget,
        used: &mut Used,
    ) -> bool {
        let mut parser = mem::take(&mut connection.parser);
        let more = loop {
            if input.is_empty() {
                break true;
            }
            match parser.parse(input, &self.limits(connection)) {
                Ok(Parsed::Command(len)) => {
                    let frame = input.split_to(len).freeze();
                    let owned = parser.owned(frame.clone());
                    match self.command(key, connection, owned.args(), used) {
                        Flow::Again => {
                            let mut whole = BytesMut::from(&frame[..]);
                            whole.unsplit(mem::take(input));
                            *input = whole;
                            break false;
                        }
                        Flow::Next if used.requests < budget.requests => {}
                        _ => break false,
                    }
                }
                Ok(Parsed::Skip(len)) => input.advance(len),
                Ok(Parsed::More(missing)) => {
                    connection.starved = true;
                    // A large value is not copied again and again as its buffer grows.
                    input.reserve(missing.min(AHEAD_BYTES));
                    break true;
                }
                Err(error) => {
                    match self.larger_than_a_newcomers(connection, error) {
                        Ok(()) => parser = Parser::new(),
                        Err(text) => {
                            self.protocol_error(connection, &text);
                            input.clear();
                        }
                    }
                    break false;
                }
            }
        };
        connection.parser = parser;
        more
    }

    /// A request breaks the protocol, or is only larger than a newcomer's may be: then the connection speaks for an open
    /// default from now on, which answers for what it holds, and the request is read again from its start.
    fn larger_than_a_newcomers(
        &mut self,
        connection: &mut Connection,
        error: ProtocolError,
    ) -> Result<(), String> {
        if !error.before_login() || self.shared.tenants.open_default().is_none() {
            return Err(format!("ERR {error}"));
        }
        self.join_default(connection).map_err(str::to_string)
    }

    fn limits(&self, connection: &Connection) -> Limits {
        let limits = if connection.session.authenticated {
            Limits::default()
        } else {
            Limits::unauthenticated()
        };
        Limits {
            args_max: limits.args_max.min(self.shared.options.args_max),
            bulk_bytes_max: limits.bulk_bytes_max.min(self.value_bytes_max),
            ..limits
        }
    }

    /// Sends at most a chunk of what waits, and counts the requests whose replies have left.
    pub(super) fn send(&mut self, connection: &mut Connection, used: &mut Used) -> After {
        let mut left = self.chunk;
        while !connection.output.is_empty() && left > 0 {
            let mut slices = [IoSlice::new(&[]); SLICES];
            let count = connection.output.io_slices(&mut slices, left as usize);
            match connection.socket.write(&slices[..count]) {
                Ok(Progress::Moved(sent)) => {
                    connection.output.advance(sent);
                    used.bytes_out += sent as u64;
                    left -= sent as u64;
                    if let Some(stream) = &mut connection.stream {
                        stream.taken_at = self.now;
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
            if room.capacity() > self.room.capacity() {
                self.room = room;
            }
        }
        After::Keep
    }

    /// Ends work on a connection outside its turns, which began at `begin`: sends what it has to say, or holds that
    /// back for its commit, and charges what all this took. Returns when it ended.
    pub(super) fn after_work(
        &mut self,
        key: ConnectionKey,
        mut connection: Box<Connection>,
        mut used: Used,
        begin: Nanos,
    ) -> Nanos {
        self.settle_replies(key, &mut connection);
        if connection.may_send() && self.send(&mut connection, &mut used) == After::Close {
            connection.closing = true;
            connection.ended = true;
            // Nobody takes the rest of a reply that is being made.
            if connection.stream.take().is_some() {
                connection.parked = None;
                connection.output = Output::new();
            }
        }
        self.ask_on(key, &mut connection);
        let end = self.shared.options.clock.now();
        let cost = used.cost(self.processor.used_ns(begin, end));
        self.stage.charge(end, connection.tenant.id, cost);
        self.principals.count(&mut connection, &cost, end);
        self.balance
            .served(key, &mut connection.served, end - begin);
        self.put_back(key, connection, end);
        end
    }

    fn protocol_error(&self, connection: &mut Connection, text: &str) {
        let protocol = connection.session.protocol;
        Reply::new(&mut connection.output, protocol).error(text);
        connection.ending = Some(Ending::Rejected("ERR".into()));
        self.count_call(connection, None, 0);
        connection.closing = true;
    }
}

fn finished(connection: &Connection) -> After {
    let sent = connection.output.is_empty() && !connection.socket.wants_write();
    let over = connection.closing || (connection.ended && !has_work(connection));
    if over && sent && connection.parked.is_none() {
        After::Close
    } else {
        After::Keep
    }
}

fn has_work(connection: &Connection) -> bool {
    matches!(connection.parked, Some(Parked::Handler | Parked::Stream))
        || (!connection.input.is_empty() && !connection.starved)
}
