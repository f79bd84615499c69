//! One turn of one connection: what it was admitted to do before the next in line is.
//!
//! Nothing is read before the turn (Pisces 4.3.5): until then the bytes lie in the kernel, and a
//! tenant that is not served pushes back on its own clients. A turn moves at most a chunk in each
//! direction; a longer request or reply goes on in further turns, each from the back of the
//! tenant's queue.

use std::mem;

use bytes::{Buf, Bytes, BytesMut};
use policy::Cost;
use resp::{Args, Limits, Parsed, Parser, ProtocolError, Reply};

use super::command::Flow;
use super::{Core, Used, RESOURCES};
use crate::connection::{Connection, Parked, Pending, Ready};
use crate::socket::Progress;
use crate::tenants::{ConnectionKey, Ending};
use crate::unit::TURN_WORDS_MAX;

/// So much of a request may be copied by the core when it needs more room: some 100 us. Of a longer
/// one a handler makes the copy.
pub(super) const COPIED_MAX: usize = 1 << 20;

/// Words that are looked at in one turn, before those of its last request.
const WORDS_MAX: u64 = 10 * TURN_WORDS_MAX as u64;

/// Requests of a newcomer in one turn: newcomers have one queue, so that each must be short to all
/// others. To log in takes one or two.
const NEWCOMER_REQUESTS: u64 = 8;
/// A request of more bytes owns the buffer that it came in, and what came behind it is copied to
/// another. A shorter one is copied if it is to be kept: it would keep the whole buffer, which
/// nobody is charged for.
const OWNS_BUFFER_BYTES: usize = 64 << 10;

/// What a turn may move: the stage's budget, but never more than a chunk.
#[derive(Clone, Copy)]
struct Budget {
    requests: u64,
    bytes_in: u64,
}

impl Budget {
    /// A turn ends when it has used what it may, or has taken as many steps as one command may take
    /// here, or looked at the words of ten of the longest.
    fn is_used_up(&self, used: &Used) -> bool {
        used.requests >= self.requests
            || used.steps >= engine::TURN_STEPS
            || used.words >= WORDS_MAX
    }
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
    /// Gives `connection` its turn; what it used goes into `used`. Without a budget it sees to what
    /// has become ready, and takes on nothing new.
    pub(super) fn turn(
        &mut self,
        key: ConnectionKey,
        connection: &mut Connection,
        budget: Option<&Cost<RESOURCES>>,
        used: &mut Used,
    ) -> After {
        for ready in std::mem::take(&mut connection.ready) {
            if self.see_to(key, connection, ready, used) == After::Close {
                return After::Close;
            }
        }
        if self.send_settled(key, connection, used) == After::Close {
            return After::Close;
        }
        let Some(budget) = budget else {
            return finished(connection);
        };
        let requests_max = match connection.session.state.authenticated {
            true => u64::MAX,
            false => NEWCOMER_REQUESTS,
        };
        let budget = Budget {
            requests: budget.0[0].clamp(1, requests_max),
            bytes_in: budget.0[1].clamp(1, self.wire.chunk_bytes),
        };
        let (requests, pushes) = (connection.takes_requests(), connection.takes_pushes());
        if requests || pushes {
            connection.output.borrow(&mut self.wire.rooms);
            used.sent_from = None;
            let after = match self.front {
                _ if !requests => After::Keep,
                None => self.read_and_run::<false>(key, connection, budget, used),
                Some(_) => self.read_and_run::<true>(key, connection, budget, used),
            };
            if after == After::Close {
                return After::Close;
            }
            // After its requests: however much is published, it can end its subscriptions.
            if pushes && self.take_pushes(key, connection) == After::Close {
                return After::Close;
            }
            self.settle_replies(key, connection);
            if self.leaves_with_others(connection) {
                self.returns_later(key, connection, self.now);
            } else if self.send_on(key, connection, used) == After::Close {
                return After::Close;
            }
        }
        finished(connection)
    }

    /// Sees to something that a connection waited for.
    fn see_to(
        &mut self,
        key: ConnectionKey,
        connection: &mut Connection,
        ready: Ready,
        used: &mut Used,
    ) -> After {
        match ready {
            Ready::Look => {
                connection.uncommitted.awaits = None;
                self.begin_again(key, connection, used);
            }
            Ready::Finished(finished) => self.finish(connection, *finished),
            Ready::Encoded(encoded) => {
                let (spec, encoded) = *encoded;
                self.encoded_elsewhere(key, connection, spec, encoded, used);
            }
            Ready::Piece(piece) => {
                if !self.piece(connection, *piece) {
                    return After::Close;
                }
            }
            Ready::Waits(unit) => self.wait_with(key, connection, unit),
            Ready::Crowded(unit) => self.crowded(key, connection, unit),
            Ready::Passed(pass) => {
                if self.take_pass(key, connection, pass) {
                    self.begin_again(key, connection, used);
                }
            }
            Ready::Opened(error) => {
                connection.open_error = error;
                connection.parked = Some(Parked::Retry);
                self.begin_again(key, connection, used);
            }
            Ready::LoggedIn(checked) => {
                connection.parked = None;
                connection.session.state.checked = Some(checked);
                connection.hold.checked(false);
            }
            Ready::Grown(input) => {
                connection.parked = None;
                connection.input.bytes = input;
            }
            Ready::Refused(text) => {
                connection.parked = None;
                connection.input.bytes.clear();
                self.refuse_connection(connection, &text);
            }
            Ready::Killed => return After::Close,
        }
        After::Keep
    }

    /// Runs one request. Whether the data is elsewhere is asked once a turn.
    #[inline(always)]
    fn request<const FRONT: bool>(
        &mut self,
        key: ConnectionKey,
        connection: &mut Connection,
        args: Args<'_>,
        used: &mut Used,
    ) -> Flow {
        match FRONT {
            true => self.front_request(key, connection, args, used),
            false => self.command(key, connection, args, used),
        }
    }

    fn read_and_run<const FRONT: bool>(
        &mut self,
        key: ConnectionKey,
        connection: &mut Connection,
        budget: Budget,
        used: &mut Used,
    ) -> After {
        let mut scratch = mem::take(&mut self.wire.scratch);
        let after = self.read_and_run_with::<FRONT>(key, connection, budget, used, &mut scratch);
        self.wire.scratch = scratch;
        after
    }

    fn read_and_run_with<const FRONT: bool>(
        &mut self,
        key: ConnectionKey,
        connection: &mut Connection,
        budget: Budget,
        used: &mut Used,
        scratch: &mut [u8],
    ) -> After {
        if let Some(Pending::Request(request)) = connection.pending.take() {
            match self.request::<FRONT>(key, connection, request.args(), used) {
                Flow::Again => {
                    connection.pending = Some(Pending::Request(request));
                    return After::Keep;
                }
                Flow::Stop => return After::Keep,
                Flow::Next => {}
            }
        }
        let mut input = mem::take(&mut connection.input.bytes);
        // Requests that were left over from the last turn come before new bytes.
        let mut more = connection.input.missing.is_some()
            || input.is_empty()
            || self.run_all::<FRONT>(key, connection, &mut input, budget, used);
        while more && connection.inbound.may_read() && used.bytes_in < budget.bytes_in {
            if !self.has_room(key, connection, &mut input, scratch.len()) {
                return After::Keep;
            }
            match connection.socket.read(scratch) {
                Ok(Progress::Moved(count)) => {
                    used.bytes_in += count as u64;
                    connection.moved_at = self.now;
                    if connection.socket.is_emptied(count, scratch.len()) {
                        connection.inbound.emptied();
                    }
                    connection.input.missing = None;
                    more = if input.is_empty() {
                        self.run_borrowed::<FRONT>(
                            key,
                            connection,
                            &scratch[..count],
                            &mut input,
                            budget,
                            used,
                        )
                    } else {
                        input.extend_from_slice(&scratch[..count]);
                        self.run_all::<FRONT>(key, connection, &mut input, budget, used)
                    };
                }
                Ok(Progress::Blocked) => connection.inbound.blocked(),
                Ok(Progress::Closed) => connection.inbound.end(),
                Err(_) => {
                    connection.input.bytes = input;
                    return After::Close;
                }
            }
        }
        if input.is_empty() {
            connection.input.parser.rest();
            self.free(input, &connection.tenant);
        } else {
            connection.input.bytes = input;
        }
        After::Keep
    }

    /// Runs whole requests straight from the read buffer; what is left goes into `rest`.
    fn run_borrowed<const FRONT: bool>(
        &mut self,
        key: ConnectionKey,
        connection: &mut Connection,
        bytes: &[u8],
        rest: &mut BytesMut,
        budget: Budget,
        used: &mut Used,
    ) -> bool {
        let mut parser = mem::take(&mut connection.input.parser);
        let (mut at, mut looked_at) = (0, 1);
        let more = loop {
            if at == bytes.len() {
                break true;
            }
            self.look_ahead(connection, &bytes[at..], &mut looked_at);
            match parser.parse(&bytes[at..], &self.limits(connection)) {
                Ok(Parsed::Command(len)) => {
                    let args = parser.args(&bytes[at..]);
                    match self.request::<FRONT>(key, connection, args, used) {
                        Flow::Again => break false,
                        flow => {
                            at += len;
                            if flow == Flow::Stop || budget.is_used_up(used) {
                                break false;
                            }
                        }
                    }
                }
                Ok(Parsed::Skip(len)) => at += len,
                Ok(Parsed::More(missing)) => {
                    connection.input.missing = Some(missing);
                    break true;
                }
                Err(error) => {
                    if self.is_refused(connection, &mut parser, error) {
                        at = bytes.len();
                    }
                    break false;
                }
            }
        };
        connection.input.parser = parser;
        rest.extend_from_slice(&bytes[at..]);
        more
    }

    /// Runs whole requests from a connection's own buffer. True when it needs more bytes.
    fn run_all<const FRONT: bool>(
        &mut self,
        key: ConnectionKey,
        connection: &mut Connection,
        input: &mut BytesMut,
        budget: Budget,
        used: &mut Used,
    ) -> bool {
        let mut parser = mem::take(&mut connection.input.parser);
        let mut looked_at = 1;
        let more = loop {
            if input.is_empty() {
                break true;
            }
            self.look_ahead(connection, input, &mut looked_at);
            match parser.parse(input, &self.limits(connection)) {
                Ok(Parsed::Command(len)) => {
                    let flow = if len > OWNS_BUFFER_BYTES {
                        let owned = parser.owned(self.cut(connection, input, len));
                        let flow = self.request::<FRONT>(key, connection, owned.args(), used);
                        if flow == Flow::Again {
                            connection.pending = Some(Pending::Request(owned));
                        }
                        flow
                    } else {
                        let flow = self.request::<FRONT>(key, connection, parser.args(input), used);
                        if flow != Flow::Again {
                            input.advance(len);
                        }
                        flow
                    };
                    if flow != Flow::Next || budget.is_used_up(used) {
                        break false;
                    }
                }
                Ok(Parsed::Skip(len)) => input.advance(len),
                Ok(Parsed::More(missing)) => {
                    connection.input.missing = Some(missing);
                    break true;
                }
                Err(error) => {
                    if self.is_refused(connection, &mut parser, error) {
                        input.clear();
                    }
                    break false;
                }
            }
        };
        connection.input.parser = parser;
        more
    }

    /// A request cannot be read. `true`: the connection is refused, and nothing more of its input
    /// is read. `false`: the request is only larger than a newcomer's may be. Then the connection
    /// speaks for the open default tenant from now on, which answers for what it holds, and the
    /// request is read again from its start.
    fn is_refused(
        &mut self,
        connection: &mut Connection,
        parser: &mut Parser,
        error: ProtocolError,
    ) -> bool {
        let joined = if error.before_login() && self.shared.tenants.open_default().is_some() {
            self.join_default(connection).map_err(str::to_string)
        } else {
            Err(format!("ERR {error}"))
        };
        if let Err(text) = &joined {
            self.refuse_connection(connection, text);
        } else {
            *parser = Parser::new();
        }
        joined.is_err()
    }

    /// Cuts a request off the front of `input`, with the buffer. What is behind it is a chunk at
    /// most.
    fn cut(&self, connection: &Connection, input: &mut BytesMut, len: usize) -> Bytes {
        let rest = BytesMut::from(&input[len..]);
        let mut request = mem::replace(input, rest);
        request.truncate(len);
        self.share(request, &connection.tenant)
    }

    pub(super) fn limits(&self, connection: &Connection) -> Limits {
        let limits = if connection.session.state.authenticated {
            Limits::default()
        } else {
            Limits::unauthenticated()
        };
        Limits {
            args_max: limits.args_max.min(self.shared.options.args_max),
            bulk_bytes_max: limits.bulk_bytes_max.min(self.wire.value_bytes_max),
            ..limits
        }
    }

    /// The last that is said to a connection.
    fn refuse_connection(&self, connection: &mut Connection, text: &str) {
        let protocol = connection.session.state.protocol;
        Reply::new(&mut connection.output, protocol).error(text);
        connection.ending = Some(Ending::Rejected("ERR".into()));
        self.count_call(connection, None, 0);
        connection.closing = true;
    }
}

fn finished(connection: &Connection) -> After {
    let sent = connection.output.is_empty() && !connection.socket.wants_write();
    let over = connection.closing || (connection.inbound.ended() && !has_work(connection));
    if over && sent && connection.parked.is_none() && connection.uncommitted.awaits.is_none() {
        After::Close
    } else {
        After::Keep
    }
}

fn has_work(connection: &Connection) -> bool {
    connection.away().is_some()
        || connection.pending.is_some()
        || connection.input.may_hold_request()
}
