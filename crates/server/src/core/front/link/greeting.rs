//! What a link and the engine say to each other before any request.

use front::{frame, ScriptUser};
use resp::{Output, Protocol};

use super::{Link, State};
use crate::upstream::UpstreamOptions;

/// Replies to the greeting.
const GREETINGS: u32 = 3;

/// Lets a replica be read from.
const READONLY: &[u8] = b"*1\r\n$8\r\nREADONLY\r\n";

/// Says who it is, and asks which client that is to the engine.
const NAME: &[u8] =
    b"*3\r\n$6\r\nCLIENT\r\n$7\r\nSETNAME\r\n$8\r\nentremet\r\n*2\r\n$6\r\nCLIENT\r\n$2\r\nID\r\n";

impl Link {
    /// Whether the engine answers for the greeting still.
    pub(in crate::core::front) fn greets(&self) -> bool {
        matches!(self.state, State::Opening { .. })
    }

    /// The engine has answered a word of the greeting.
    pub(in crate::core::front) fn greeted(&mut self, reply: &[u8]) -> Result<(), String> {
        if let Some(error) = reply.strip_prefix(b"-") {
            let why = String::from_utf8_lossy(error);
            let needs = match (&self.user, &self.state) {
                (Some(_), State::Opening { left, .. }) if *left <= ScriptUser::REPLIES => {
                    "each tenant has a user there for them, made with ACL SETUSER; "
                }
                _ => "",
            };
            return Err(format!("{needs}it says: {}", why.trim_end()));
        }
        let number = reply.strip_prefix(b":").map(<[u8]>::trim_ascii_end);
        self.client_id = number.and_then(resp::parse_i64).or(self.client_id);
        if let State::Opening { left, .. } = &mut self.state {
            *left -= 1;
            if *left == 0 {
                self.state = State::Open;
            }
        }
        Ok(())
    }

    /// Writes the greeting; returns how many replies it has.
    pub(super) fn greet(&mut self, options: &UpstreamOptions) -> u32 {
        let mut bytes = Vec::new();
        let login = options.login();
        if let Some(words) = &login {
            frame(words.iter().copied(), &mut bytes);
        }
        let hello: &[&[u8]] = match self.protocol {
            Protocol::Resp2 => &[b"PING"],
            Protocol::Resp3 => &[b"HELLO", b"3"],
        };
        frame(hello.iter().copied(), &mut bytes);
        bytes.extend_from_slice(NAME);
        if self.reads {
            bytes.extend_from_slice(READONLY);
        }
        if let Some((_, user)) = &self.user {
            user.write(&mut bytes);
        }
        self.greeting = Output::new();
        self.greeting.write(&bytes);
        GREETINGS
            + u32::from(login.is_some())
            + u32::from(self.reads)
            + self.user.as_ref().map_or(0, |_| ScriptUser::REPLIES)
    }
}
