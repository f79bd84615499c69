//! Channels: called at the engine as keys of the tenant's first partition are, since a channel has
//! none. A channel of a shard (`SSUBSCRIBE`) has one, and is called as a key of it is.

use resp::{parse_i64, Args};

use crate::draft::Draft;
use crate::request::{Written, FOREIGN};
use crate::space::Space;
use crate::table::Command;
use crate::value::bulk;
use crate::way::Way;

const EVENTS: &str =
    "ERR events of keys (__keyspace@, __keyevent@) cannot be subscribed to before an engine";

/// What channels of the engine's own events begin with, which tell the keys of all tenants.
const EVENT: &[u8] = b"__key";

impl Space {
    /// What the tenant calls a channel, or a pattern of channels, that the engine calls so; none:
    /// it is another's, or the engine's own.
    pub fn own_channel<'c>(&self, channel: &'c [u8]) -> Option<&'c [u8]> {
        let own = match self.mark(0) {
            [] => self.may_use(channel).then_some(channel),
            mark => channel.strip_prefix(mark),
        };
        own.filter(|own| !own.starts_with(EVENT))
    }
}

impl Command {
    /// Appends a request about channels to `out`, as [`Command::write`] does one about keys.
    pub(crate) fn write_channels(
        &self,
        args: &Args,
        space: &Space,
        out: &mut Draft,
    ) -> Result<Written, &'static str> {
        let (from, to) = match self.spec.name {
            "publish" => (1, args.len().min(2)),
            name if name.starts_with("pubsub|") => (2, args.len()),
            _ => (1, args.len()),
        };
        for at in from..to {
            let name = args.get(at);
            if !space.may_use(name) {
                return Err(FOREIGN);
            }
            if self.way == Way::Subscribe && name.starts_with(EVENT) {
                return Err(EVENTS);
            }
        }
        // A mark has no byte that means something in a pattern.
        let mark = space.mark(0);
        let all = self.spec.name == "pubsub|channels" && args.len() == 2;
        out.begin(args.len() + usize::from(all));
        for at in 0..args.len() {
            match (from..to).contains(&at) {
                true => out.marked(mark, args, at),
                false => out.word(args, at),
            }
        }
        if all {
            out.text(&[mark, b"*"].concat());
        }
        let (keys, part) = (to.saturating_sub(from), None);
        Ok(Written { keys, part })
    }
}

impl Command {
    /// Whether it is about subscriptions to channels of shards.
    #[must_use]
    pub fn of_shards(&self) -> bool {
        self.way == Way::Subscribe && !self.keys.is_empty()
    }

    /// Appends a question about channels of shards to `out`, for every node that may have some:
    /// each channel is called as one of its own partition.
    pub(crate) fn write_for_every_shard(
        &self,
        args: &Args,
        space: &Space,
        out: &mut Draft,
    ) -> Result<Written, &'static str> {
        let named = self.spec.name == "pubsub|shardnumsub";
        if named && !args.from(2).iter().all(|channel| space.may_use(channel)) {
            return Err(FOREIGN);
        }
        if !named && args.len() > 3 {
            return Err("ERR wrong number of arguments for 'pubsub|shardchannels' command");
        }
        out.begin(if named { args.len() } else { 3 });
        (0..2).for_each(|at| out.word(args, at));
        match named {
            true => (2..args.len()).for_each(|at| {
                out.marked(space.mark(space.part(args.get(at))), args, at);
            }),
            false => out.text(&space.glob(args.find(2).unwrap_or(b"*"))),
        }
        let (keys, part) = (args.len() - 2, None);
        Ok(Written { keys, part })
    }
}

/// To what a client subscribes. The engine counts patterns together with channels, and channels of
/// shards by themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subscribed {
    /// A channel.
    Channel,
    /// A pattern of channels.
    Pattern,
    /// A channel of a shard.
    Shard,
}

/// Something that an engine sends a client that has subscribed.
#[derive(Debug, PartialEq, Eq)]
pub enum Push {
    /// The answer to a `PING`.
    Pong,
    /// For the client: these bytes, and then what was sent from there on.
    Pass {
        /// Its beginning, with channels as the client calls them.
        begin: Vec<u8>,
        /// How many bytes of what was sent that stands for.
        from: usize,
    },
    /// A subscription has begun or ended.
    Counts {
        /// What the client is sent but for the number at its end.
        begin: Vec<u8>,
        /// To what it is.
        to: Subscribed,
        /// The number: how many of them there are now.
        count: u64,
    },
    /// Not for the client.
    Foreign,
}

impl Push {
    /// Reads what was sent, which is whole; of a long one its beginning, which has all but the
    /// payload.
    pub fn read(sent: &[u8], space: &Space) -> Self {
        match sent.first() {
            Some(b'*' | b'>') => Self::of_list(sent, space).unwrap_or(Self::Foreign),
            Some(b'-') => Self::Pass {
                begin: space.without_mark(sent),
                from: sent.len(),
            },
            _ => Self::Pong,
        }
    }

    fn of_list(sent: &[u8], space: &Space) -> Option<Self> {
        let mut at = line(sent, 0)?.1;
        let kind = string(sent, &mut at)??;
        let (channels, counts) = match kind {
            b"pong" => return Some(Self::Pong),
            b"message" | b"smessage" => (1, None),
            b"pmessage" => (2, None),
            b"subscribe" | b"unsubscribe" => (1, Some(Subscribed::Channel)),
            b"psubscribe" | b"punsubscribe" => (1, Some(Subscribed::Pattern)),
            b"ssubscribe" | b"sunsubscribe" => (1, Some(Subscribed::Shard)),
            _ => return None,
        };
        let of_shard = matches!(kind, b"smessage" | b"ssubscribe" | b"sunsubscribe");
        let mut begin = sent[..at].to_vec();
        for _ in 0..channels {
            let from = at;
            match string(sent, &mut at)? {
                Some(channel) if of_shard => bulk(space.own(channel)?, &mut begin),
                Some(channel) => bulk(space.own_channel(channel)?, &mut begin),
                None => begin.extend_from_slice(&sent[from..at]),
            }
        }
        Some(match counts {
            Some(to) => {
                let count = u64::try_from(parse_i64(line(sent, at)?.0)?).ok()?;
                Self::Counts { begin, to, count }
            }
            None => Self::Pass { begin, from: at },
        })
    }
}

/// What stands behind the first byte of the line at `at`, and where the next line begins.
fn line(sent: &[u8], at: usize) -> Option<(&[u8], usize)> {
    let rest = sent.get(at..)?;
    let len = rest.iter().position(|byte| *byte == b'\r')?;
    Some((rest.get(1..len)?, at + len + 2))
}

/// The string at `at`, which moves behind it; inside none: there is nothing in its place.
fn string<'s>(sent: &'s [u8], at: &mut usize) -> Option<Option<&'s [u8]>> {
    let (len, body) = line(sent, *at)?;
    let len = parse_i64(len).and_then(|len| usize::try_from(len).ok());
    let Some(len) = len.filter(|_| sent[*at] == b'$') else {
        *at = body;
        return Some(None);
    };
    *at = body + len + 2;
    Some(Some(sent.get(body..body + len)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(sent: &str, space: &Space) -> Option<(String, Option<(u64, Subscribed)>)> {
        let (mut begin, rest, counts) = match Push::read(sent.as_bytes(), space) {
            Push::Pass { begin, from } => (begin, sent[from..].to_owned(), None),
            Push::Counts { begin, to, count } => {
                (begin, format!(":{count}\r\n"), Some((count, to)))
            }
            _ => return None,
        };
        begin.extend_from_slice(rest.as_bytes());
        Some((String::from_utf8_lossy(&begin).into_owned(), counts))
    }

    #[test]
    fn channels_are_called_as_the_client_calls_them() {
        let space = Space::of("a");
        let message = "*3\r\n$7\r\nmessage\r\n$6\r\n{@a}up\r\n$4\r\n{@a}\r\n";
        let shown = "*3\r\n$7\r\nmessage\r\n$2\r\nup\r\n$4\r\n{@a}\r\n";
        assert_eq!(read(message, &space), Some((shown.into(), None)));
        let message = ">4\r\n$8\r\npmessage\r\n$5\r\n{@a}*\r\n$6\r\n{@a}up\r\n$1\r\nx\r\n";
        let shown = ">4\r\n$8\r\npmessage\r\n$1\r\n*\r\n$2\r\nup\r\n$1\r\nx\r\n";
        assert_eq!(read(message, &space), Some((shown.into(), None)));
        let answer = "*3\r\n$9\r\nsubscribe\r\n$6\r\n{@a}up\r\n:12\r\n";
        let shown = "*3\r\n$9\r\nsubscribe\r\n$2\r\nup\r\n:12\r\n";
        assert_eq!(
            read(answer, &space),
            Some((shown.into(), Some((12, Subscribed::Channel))))
        );
        for none in ["$-1\r\n", "_\r\n"] {
            let answer = format!("*3\r\n$11\r\nunsubscribe\r\n{none}:0\r\n");
            assert_eq!(
                read(&answer, &space),
                Some((answer.clone(), Some((0, Subscribed::Channel))))
            );
            let of_pattern = answer.replace("$11\r\nun", "$12\r\npun");
            let counts = Some((0, Subscribed::Pattern));
            assert_eq!(
                read(&of_pattern, &space),
                Some((of_pattern.clone(), counts))
            );
        }
        let error = "-NOPERM no '{@a}up'\r\n";
        assert_eq!(
            read(error, &space),
            Some(("-NOPERM no 'up'\r\n".into(), None))
        );
    }

    #[test]
    fn channels_of_shards_are_called_as_keys_of_their_partitions() {
        let space = Space::in_parts("a", 4);
        let called = [space.mark(space.part(b"up")), b"up"].concat();
        let called = String::from_utf8_lossy(&called).into_owned();
        for kind in ["ssubscribe", "sunsubscribe"] {
            let said = |channel: &str| {
                let lens = [kind.len(), channel.len()];
                format!(
                    "*3\r\n${}\r\n{kind}\r\n${}\r\n{channel}\r\n:3\r\n",
                    lens[0], lens[1]
                )
            };
            let counts = Some((3, Subscribed::Shard));
            assert_eq!(read(&said(&called), &space), Some((said("up"), counts)));
            assert_eq!(read(&said("{@b}up"), &space), None);
        }
        let message = |channel: &str| {
            let len = channel.len();
            format!("*3\r\n$8\r\nsmessage\r\n${len}\r\n{channel}\r\n$1\r\nx\r\n")
        };
        assert_eq!(read(&message(&called), &space), Some((message("up"), None)));
        let elsewhere = [space.mark((space.part(b"up") + 1) % 4), b"up"].concat();
        let elsewhere = String::from_utf8_lossy(&elsewhere).into_owned();
        assert_eq!(read(&message(&elsewhere), &space), None);
        // The engine publishes nothing of its own there.
        let all = Space::unmarked();
        assert!(read(&message("__keyspace@0__:k"), &all).is_some());
        assert_eq!(read(&message("{@b}up"), &all), None);
    }

    #[test]
    fn nothing_of_others_is_passed_on() {
        let of = |channel: &str| {
            let len = channel.len();
            format!("*3\r\n$7\r\nmessage\r\n${len}\r\n{channel}\r\n$1\r\nx\r\n")
        };
        let (one, wide) = (Space::of("a"), Space::in_parts("a", 4));
        for channel in [
            "up",
            "{@b}up",
            "{@a/000000}up",
            "{@a",
            "__keyspace@0__:{@b}k",
        ] {
            assert_eq!(read(&of(channel), &one), None, "{channel}");
        }
        let its = String::from_utf8_lossy(wide.mark(0)).into_owned();
        assert!(read(&of(&format!("{its}up")), &wide).is_some());
        assert_eq!(read(&of("{@a}up"), &wide), None);
        let all = Space::unmarked();
        assert!(read(&of("up"), &all).is_some() && read(&of("{user}"), &all).is_some());
        for channel in ["{@b}up", "__keyevent@0__:del", "__keyspace@0__:{@b}k"] {
            assert_eq!(read(&of(channel), &all), None, "{channel}");
        }
        assert_eq!(read("*2\r\n$5\r\nother\r\n$1\r\nx\r\n", &all), None);
    }

    #[test]
    fn what_a_ping_is_answered_is_known() {
        for pong in [
            "+PONG\r\n",
            "$1\r\nx\r\n",
            "*2\r\n$4\r\npong\r\n$1\r\nx\r\n",
        ] {
            assert_eq!(Push::read(pong.as_bytes(), &Space::of("a")), Push::Pong);
        }
    }
}
