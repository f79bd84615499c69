//! A reply as the client is sent it: where it shows keys, they are called as the client calls them.

use resp::{parse_i64, Output};

use crate::pages::cursor_for_client;
use crate::space::Space;
use crate::value::{bulk, head};

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
    Counts {
        /// Those of shards.
        shards: bool,
    },
    /// Each item of its second item is one (`SCAN`); the first is a cursor of the engine's.
    Page {
        /// The client's is so many times that.
        times: u64,
        /// And so much more.
        rest: u64,
        /// The client's where the engine has come to its end.
        next: u64,
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
            "pubsub|numsub" => Self::Counts { shards: false },
            "scan" => Self::Page {
                times: 1,
                rest: 0,
                next: 0,
            },
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

    /// Passes over what is behind `head`. Scripts answer as deep as they like: no call for each
    /// level.
    fn skip_behind(&mut self, head: &Head) {
        let mut left = self.pass(head);
        while left > 0 && self.at < self.reply.len() {
            let head = self.head();
            left = left - 1 + self.pass(&head);
        }
    }

    /// Passes over a string; of anything else, how many values are behind its head.
    fn pass(&mut self, head: &Head) -> usize {
        match (head.kind, head.len) {
            (_, None) => 0,
            (b'$' | b'=' | b'!', Some(len)) => {
                self.at = (self.at + len + 2).min(self.reply.len());
                0
            }
            (b'%', Some(len)) => 2 * len,
            (_, Some(len)) => len,
        }
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
            Shows::Page { times, rest, next } => {
                for place in 0..len {
                    match place {
                        0 if *times > 1 => self.cursor(*times, *rest, *next),
                        1 => self.value(&Shows::All),
                        _ => self.plain(),
                    }
                }
            }
            Shows::Counts { shards } => {
                self.channels = !shards;
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
    fn cursor(&mut self, times: u64, rest: u64, next: u64) {
        let head = self.head();
        let body = self.at;
        self.skip_behind(&head);
        let cursor = head.len.and_then(|len| self.reply.get(body..body + len));
        let cursor = cursor.and_then(|text| std::str::from_utf8(text).ok()?.parse().ok());
        let cursor = cursor.and_then(|cursor| cursor_for_client(cursor, times, rest, next));
        match cursor {
            Some(cursor) => bulk(cursor.to_string().as_bytes(), &mut self.out),
            // A client cannot go on with it, and is not to take the beginning for the end.
            None => self
                .out
                .extend_from_slice(b"-ERR the engine's cursor is too large\r\n"),
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scanner;

    fn shown(shows: &Shows, reply: &str, space: &Space) -> String {
        let reply = reply.replace('|', "\r\n");
        let end = Scanner::default().end(reply.as_bytes());
        assert_eq!(end, Ok(Some(reply.len())), "{reply:?}");
        let mut out = Output::new();
        shows.write(reply.as_bytes(), space, &mut out);
        let text = String::from_utf8(out.to_vec()).expect("text");
        text.replace("\r\n", "|")
    }

    #[test]
    fn replies_show_keys_as_the_client_calls_them() {
        let space = Space::of("t");
        let several = Shows::Several(vec![Shows::None, Shows::First]);
        for (shows, reply, expected) in [
            (Shows::None, "$5|{@t}k|", "$5|{@t}k|"),
            (Shows::First, "*2|$5|{@t}k|$5|{@t}v|", "*2|$1|k|$5|{@t}v|"),
            (Shows::First, "*-1|", "*-1|"),
            (Shows::First, "_|", "_|"),
            (Shows::First, "*2|$5|{@t}k|*1|$1|v|", "*2|$1|k|*1|$1|v|"),
            (
                Shows::Each,
                "*1|*2|$5|{@t}k|*1|*2|$3|0-1|*-1|",
                "*1|*2|$1|k|*1|*2|$3|0-1|*-1|",
            ),
            (Shows::Each, "%1|$5|{@t}k|*1|:1|", "%1|$1|k|*1|:1|"),
            (
                Shows::All,
                "*3|$5|{@t}a|$5|{@u}a|$5|{@t}b|",
                "*2|$1|a|$1|b|",
            ),
            (Shows::Channels, "*3|$5|{@t}a|$5|{@u}a|$1|b|", "*1|$1|a|"),
            (
                Shows::Counts { shards: false },
                "*4|$5|{@t}a|:1|$5|{@t}b|:0|",
                "*4|$1|a|:1|$1|b|:0|",
            ),
            (
                Shows::Several(vec![Shows::Counts { shards: false }, Shows::First]),
                "*2|*2|$5|{@t}a|:1|*1|$5|{@t}b|",
                "*2|*2|$1|a|:1|*1|$1|b|",
            ),
            (
                Shows::of("scan"),
                "*2|$2|17|*2|$5|{@t}a|$1|a|",
                "*2|$2|17|*1|$1|a|",
            ),
            (
                several.clone(),
                "*2|+{@t}|*2|$5|{@t}k|:1|",
                "*2|+{@t}|*2|$1|k|:1|",
            ),
            (several.clone(), "*-1|", "*-1|"),
            (several, "*2|-ERR '{@t}k'|$-1|", "*2|-ERR 'k'|$-1|"),
            (
                Shows::None,
                "-NOGROUP No such key '{@t}k'|",
                "-NOGROUP No such key 'k'|",
            ),
        ] {
            assert_eq!(shown(&shows, reply, &space), expected, "{reply}");
        }
        let keys = "*2|$5|{@t}a|$1|a|";
        assert_eq!(shown(&Shows::All, keys, &Space::unmarked()), "*1|$1|a|");
    }

    #[test]
    fn a_reply_may_be_as_deep_as_it_likes() {
        const DEPTH: usize = 200_000;
        let deep = format!("{}|:1|", vec!["*1"; DEPTH].join("|"));
        let reply = format!("*2|{deep}*2|$5|{{@t}}k|:1|");
        let expected = format!("*2|{deep}*2|$1|k|:1|");
        let shows = Shows::Several(vec![Shows::None, Shows::First]);
        assert!(shown(&shows, &reply, &Space::of("t")) == expected);
    }
}
