//! What is known of the bytes that a client sends: whether some are there, since when, and whether
//! more can come.

use policy::Nanos;

/// One side of a socket, as notices and reads have shown it.
#[derive(Clone, Copy, Debug)]
pub struct Inbound {
    state: State,
    /// When the oldest bytes that were not read came, in ns of the core's clock; 0: that is not
    /// known.
    came: Nanos,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// All was read; the poll will tell of more (notices come once per arrival).
    Quiet,
    /// The socket may have bytes.
    Bytes,
    /// The same, and the peer has closed or broken its side: what it had sent is still read.
    Last,
    /// There is nothing more to read, ever.
    Ended,
}

impl Inbound {
    /// Nothing is known: there may be bytes.
    pub fn unknown() -> Self {
        Self {
            state: State::Bytes,
            came: 0,
        }
    }

    /// The poll says that bytes came, or, with `last`, that the peer has closed or broken its side.
    pub fn notice(&mut self, came: Nanos, last: bool) {
        self.state = match self.state {
            State::Ended => State::Ended,
            State::Last => State::Last,
            State::Quiet | State::Bytes if last => State::Last,
            State::Quiet | State::Bytes => State::Bytes,
        };
        if self.came == 0 {
            self.came = came;
        }
    }

    /// Notices were another poll's: it must be looked whether there are bytes.
    pub fn look_again(&mut self) {
        if self.state == State::Quiet {
            self.state = State::Bytes;
        }
    }

    /// A read has emptied the socket until the next notice. Behind the last bytes the end of the
    /// stream is still to be read.
    pub fn emptied(&mut self) {
        if self.state == State::Bytes {
            self.blocked();
        }
    }

    /// A read found nothing.
    pub fn blocked(&mut self) {
        (self.state, self.came) = (State::Quiet, 0);
    }

    /// A read has found the end of the stream.
    pub fn end(&mut self) {
        self.state = State::Ended;
    }

    /// True when a read may find something.
    pub fn may_read(&self) -> bool {
        matches!(self.state, State::Bytes | State::Last)
    }

    /// True when a turn has to see to it: to read, or to close the connection.
    pub fn wants_turn(&self) -> bool {
        self.state != State::Quiet
    }

    /// True when the peer has closed or broken its side; what it had sent before may still be
    /// there.
    pub fn is_last(&self) -> bool {
        matches!(self.state, State::Last | State::Ended)
    }

    /// True when there is nothing more to read, ever.
    pub fn ended(&self) -> bool {
        self.state == State::Ended
    }

    /// When the oldest bytes that were not read came; `None`: that is not known.
    pub fn came(&self) -> Option<Nanos> {
        (self.came > 0).then_some(self.came)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_there_since_the_first_notice_until_they_are_read() {
        let mut inbound = Inbound::unknown();
        assert!(inbound.may_read() && inbound.came().is_none());
        inbound.blocked();
        assert!(!inbound.may_read() && !inbound.wants_turn());
        inbound.notice(7, false);
        inbound.notice(9, false);
        assert_eq!(inbound.came(), Some(7));
        inbound.emptied();
        assert!(!inbound.may_read() && inbound.came().is_none());
        inbound.look_again();
        assert!(inbound.may_read());
    }

    #[test]
    fn behind_the_last_bytes_the_end_is_read_and_stays() {
        let mut inbound = Inbound::unknown();
        inbound.notice(7, true);
        inbound.emptied();
        assert!(inbound.may_read(), "the end is still to be read");
        inbound.end();
        inbound.notice(9, false);
        inbound.look_again();
        assert!(inbound.ended() && !inbound.may_read() && inbound.wants_turn());
    }
}
