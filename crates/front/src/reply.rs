//! A reply as the client is sent it: where it shows keys, they are called as the client calls them.

use resp::{parse_i64, Output};

use crate::space::Space;
use crate::value::{bulk, head};
use crate::walk::cursor_for_client;

/// Where a reply shows keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shows {
    /// Nowhere.
    None,
    /// In its first item (`BLPOP`, `LMPOP`).
    First,
    /// In the first item of each of its items, or as the keys of a map (`XREAD`).
    Each,
    /// Each item is one (`KEYS`).
    All,
    /// Each item is a channel (`PUBSUB CHANNELS`).
    Channels,
    /// Every other item is a channel (`PUBSUB NUMSUB`).
    Counts,
    /// Each item of its second item is one (`SCAN`); the first is a cursor at a node, of so many.
    Page {
        /// Its place.
        node: usize,
        /// How many there are.
        of: usize,
    },
    /// Its items are the replies of commands of a transaction, which show them so.
    Several(Vec<Shows>),
}

impl Shows {
    /// Of the command of this name.
    pub(crate) fn of(name: &str) -> Self {
        match name {
            "blpop" | "brpop" | "bzpopmin" | "bzpopmax" | "lmpop" | "zmpop" | "blmpop"
            | "bzmpop" => Self::First,
            "xread" | "xreadgroup" => Self::Each,
            "keys" => Self::All,
            "pubsub|channels" => Self::Channels,
            "pubsub|numsub" => Self::Counts,
            "scan" => Self::Page { node: 0, of: 1 },
            _ => Self::None,
        }
    }

    /// Appends the engine's `reply`, which is whole, to `out`. An error tells no mark either.
    pub fn write(&self, reply: &[u8], space: &Space, out: &mut Output) {
        if reply.first() == Some(&b'-') {
            return out.write(&space.without_mark(reply));
        }
        if *self == Self::None {
            return out.write(reply);
        }
        let mut walk = Walk {
            reply,
            at: 0,
            space,
            channels: false,
            out: Vec::with_capacity(reply.len()),
        };
        walk.value(self);
        out.write(&walk.out);
    }
}

/// A reply while it is copied.
struct Walk<'r> {
    reply: &'r [u8],
    at: usize,
    space: &'r Space,
    /// What it shows are channels, not keys.
    channels: bool,
    out: Vec<u8>,
}

/// What a value begins with.
struct Head {
    kind: u8,
    /// Items, or bytes; none: a line that says all, or nothing.
    len: Option<usize>,
    from: usize,
}

impl Walk<'_> {
    /// REQUIRES: the reply is whole ([`crate::Scanner`]), so that there is a value at hand.
    fn head(&mut self) -> Head {
        let from = self.at;
        let rest = self.reply.get(from..).unwrap_or_default();
        let len = rest.iter().position(|byte| *byte == b'\r');
        let len = len.unwrap_or(rest.len());
        let kind = rest.first().copied().unwrap_or(b'_');
        self.at = (from + len + 2).min(self.reply.len());
        let counts = matches!(kind, b'*' | b'~' | b'>' | b'%' | b'$' | b'=' | b'!');
        let number = || parse_i64(rest.get(1..len)?);
        let len = number().and_then(|number| usize::try_from(number).ok());
        let len = len.filter(|_| counts);
        Head { kind, len, from }
    }

    fn is_string(head: &Head) -> bool {
        matches!(head.kind, b'$' | b'=' | b'!') && head.len.is_some()
    }

    /// Passes over what is behind `head`.
    fn skip_behind(&mut self, head: &Head) {
        let Some(len) = head.len else {
            return;
        };
        match head.kind {
            b'$' | b'=' | b'!' => self.at = (self.at + len + 2).min(self.reply.len()),
            b'%' => (0..2 * len).for_each(|_| self.skip()),
            _ => (0..len).for_each(|_| self.skip()),
        }
    }

    fn skip(&mut self) {
        let head = self.head();
        self.skip_behind(&head);
    }

    /// Copies what lies between `from` and here.
    fn copied(&mut self, from: usize) {
        self.out.extend_from_slice(&self.reply[from..self.at]);
    }

    /// Copies a value as it is, with an error's text cleaned.
    fn plain(&mut self) {
        let head = self.head();
        self.skip_behind(&head);
        match head.kind {
            b'-' => {
                let text = &self.reply[head.from..self.at];
                self.out.extend(self.space.without_mark(text));
            }
            _ => self.copied(head.from),
        }
    }

    /// Copies a string as a key. A key of another's, which no reply should show, is not copied.
    fn key(&mut self) -> bool {
        let head = self.head();
        let body = self.at;
        self.skip_behind(&head);
        let Some(len) = head.len.filter(|_| Self::is_string(&head)) else {
            self.copied(head.from);
            return true;
        };
        let name = &self.reply[body..body + len];
        let own = match self.channels {
            true => self.space.own_channel(name),
            false => self.space.own(name),
        };
        let Some(own) = own else {
            return false;
        };
        crate::value::head(b'$', own.len(), &mut self.out);
        self.out.extend_from_slice(own);
        self.out.extend_from_slice(b"\r\n");
        true
    }

    fn value(&mut self, shows: &Shows) {
        let start = self.at;
        let begin = self.head();
        let Some(len) = begin.len.filter(|_| !Self::is_string(&begin)) else {
            self.at = start;
            return self.plain();
        };
        match shows {
            Shows::None => {
                self.at = start;
                return self.plain();
            }
            Shows::All => return self.keys(begin.kind, len),
            Shows::Channels => {
                self.channels = true;
                return self.keys(begin.kind, len);
            }
            _ => self.copied(start),
        }
        match shows {
            Shows::First => {
                for place in 0..len {
                    match place {
                        0 => self.one_key(),
                        _ => self.plain(),
                    }
                }
            }
            Shows::Each if begin.kind == b'%' => {
                for _ in 0..len {
                    self.one_key();
                    self.plain();
                }
            }
            Shows::Each => (0..len).for_each(|_| self.value(&Shows::First)),
            Shows::Page { node, of } => {
                for place in 0..len {
                    match place {
                        0 if *of > 1 => self.cursor(*node, *of),
                        1 => self.value(&Shows::All),
                        _ => self.plain(),
                    }
                }
            }
            Shows::Counts => {
                self.channels = true;
                for place in 0..len {
                    match place % 2 {
                        0 => self.one_key(),
                        _ => self.plain(),
                    }
                }
            }
            Shows::Several(each) => {
                for place in 0..len {
                    self.channels = false;
                    self.value(each.get(place).unwrap_or(&Shows::None));
                }
            }
            Shows::None | Shows::All | Shows::Channels => unreachable!("done above"),
        }
    }

    /// A cursor, as the client is to give it back.
    fn cursor(&mut self, node: usize, of: usize) {
        let head = self.head();
        let body = self.at;
        self.skip_behind(&head);
        let cursor = head.len.and_then(|len| self.reply.get(body..body + len));
        let cursor = cursor.and_then(|text| std::str::from_utf8(text).ok()?.parse().ok());
        let cursor = cursor_for_client(cursor.unwrap_or_default(), node, of);
        bulk(cursor.to_string().as_bytes(), &mut self.out);
    }

    /// A key that stands in a fixed place.
    fn one_key(&mut self) {
        if !self.key() {
            self.out.extend_from_slice(b"$0\r\n\r\n");
        }
    }

    /// Of `len` keys those of the tenant.
    fn keys(&mut self, kind: u8, len: usize) {
        let before = std::mem::take(&mut self.out);
        let own = (0..len).filter(|_| self.key()).count();
        let keys = std::mem::replace(&mut self.out, before);
        head(kind, own, &mut self.out);
        self.out.extend(keys);
    }
}
