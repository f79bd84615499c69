//! A request whose keys lie in several partitions: one for each of them, and one reply of theirs.

use bytes::Bytes;
use commands::Spec;
use resp::{parse_i64, Args, Output, BY_REFERENCE_BYTES};
use smallvec::SmallVec;

use crate::draft::{Draft, Pieces};
use crate::find::Places;
use crate::reply::Shows;
use crate::scan::Scanner;
use crate::space::Space;
use crate::table::Command;
use crate::value::head;

/// How the replies of the parts come together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Joins {
    /// `MGET`: a value for each key.
    Values,
    /// `DEL`, `UNLINK`, `EXISTS`, `TOUCH`: a number.
    Sum,
    /// `MSET`: done.
    Done,
    /// `SCRIPT LOAD`: the same everywhere.
    Same,
    /// `SCRIPT EXISTS`: numbers, of which the least of each place count.
    Least,
    /// `PUBSUB SHARDCHANNELS`: names, of which all count.
    Names,
    /// `PUBSUB SHARDNUMSUB`: names, the same everywhere, each with a number, which are added up.
    Counts,
}

impl Joins {
    /// Of a command that may be done in parts.
    pub(crate) fn of(name: &str) -> Option<Self> {
        Some(match name {
            "mget" => Self::Values,
            "del" | "unlink" | "exists" | "touch" => Self::Sum,
            "mset" => Self::Done,
            _ => return None,
        })
    }
}

/// What one partition is asked.
#[derive(Debug)]
pub struct Part {
    /// Which.
    pub part: u16,
    /// The request.
    pub pieces: Pieces,
    /// Which of the keys of the whole, in order.
    pub keys: Box<[u32]>,
}

impl Command {
    /// The request `args` as one for each partition that has keys of it, where that can be; none:
    /// it goes to one partition, or cannot be split.
    ///
    /// # Errors
    /// The text of an error: it cannot be sent.
    pub fn split(
        &self,
        args: &Args,
        space: &Space,
    ) -> Result<Option<(Gather, Vec<Part>)>, &'static str> {
        let joins = Joins::of(self.spec.name).filter(|_| space.parts() > 1);
        let Some(joins) = joins else {
            return Ok(None);
        };
        let words = if joins == Joins::Done { 2 } else { 1 };
        let mut keys = Places::new();
        for spec in &self.keys {
            spec.places(args, &mut keys)?;
        }
        if 1 + keys.len() * words != args.len() {
            // The engine has words for it.
            return Ok(None);
        }
        let mut by_part: Vec<(u16, Vec<u32>)> = Vec::new();
        for (number, at) in keys.iter().enumerate() {
            let part = space.part(args.get(*at));
            match by_part.iter_mut().find(|(known, _)| *known == part) {
                Some((_, its)) => its.push(number as u32),
                None => by_part.push((part, vec![number as u32])),
            }
        }
        if by_part.len() < 2 {
            return Ok(None);
        }
        let gather = Gather {
            joins,
            keys: keys.len(),
            left: by_part.len(),
            came: Vec::with_capacity(by_part.len()),
        };
        let parts = by_part.into_iter().map(|(part, its)| {
            let mut draft = Draft::default();
            draft.begin(1 + its.len() * words);
            draft.word(args, 0);
            for number in &its {
                let at = keys[*number as usize];
                draft.marked(space.mark(part), args, at);
                (1..words).for_each(|behind| draft.word(args, at + behind));
            }
            Part {
                part,
                pieces: draft.pieces(),
                keys: its.into(),
            }
        });
        Ok(Some((gather, parts.collect())))
    }
}

/// The replies of the parts, while they come. They are looked at once all are there.
#[derive(Debug)]
pub struct Gather {
    joins: Joins,
    /// Keys of the whole.
    keys: usize,
    left: usize,
    came: Vec<(Box<[u32]>, Kept)>,
}

/// A reply that is kept: in pieces, if it is long.
pub type Kept = SmallVec<[Bytes; 1]>;

/// All of a reply that was kept in one piece: a copy, if it is in several.
#[must_use]
pub fn joined(mut reply: Kept) -> Bytes {
    match reply.len() {
        1 => reply.remove(0),
        _ => reply.concat().into(),
    }
}

impl Gather {
    /// For a command that so many nodes are asked ([`crate::Way::EveryNode`],
    /// [`crate::Way::EveryShard`]).
    #[must_use]
    pub fn every_node(spec: &Spec, nodes: usize) -> Self {
        let joins = match spec.name {
            "script|exists" => Joins::Least,
            "pubsub|shardchannels" => Joins::Names,
            "pubsub|shardnumsub" => Joins::Counts,
            _ => Joins::Same,
        };
        Self {
            joins,
            keys: 0,
            left: nodes,
            came: Vec::with_capacity(nodes),
        }
    }

    /// For a request of so many keys that is one part so far; none: it is done as a whole.
    #[must_use]
    pub fn of_one(spec: &Spec, keys: usize) -> Option<Self> {
        Some(Self {
            joins: Joins::of(spec.name)?,
            keys,
            left: 1,
            came: Vec::new(),
        })
    }

    /// One of the parts has become two.
    pub fn halved(&mut self) {
        self.left += 1;
    }

    /// The reply of the part with these `keys` of the whole. True: it was the last.
    pub fn take(&mut self, keys: Box<[u32]>, reply: Kept) -> bool {
        self.left -= 1;
        self.came.push((keys, reply));
        self.left == 0
    }

    /// Keys of the whole: so many values are put in their places.
    #[must_use]
    pub fn keys(&self) -> usize {
        self.keys
    }

    /// Bytes of replies that are copied: of those that are in several pieces, or show names.
    #[must_use]
    pub fn copied(&self) -> usize {
        let names = matches!(self.joins, Joins::Names | Joins::Counts);
        let copied = (self.came.iter()).filter(|(_, reply)| names || reply.len() > 1);
        copied.flat_map(|(_, reply)| reply).map(Bytes::len).sum()
    }

    /// Appends the one reply to `out`, once all have come.
    pub fn write(self, space: &Space, out: &mut Output) {
        let mut whole = Whole {
            joins: self.joins,
            values: match self.joins {
                Joins::Values => vec![Bytes::new(); self.keys],
                _ => Vec::new(),
            },
            sum: 0,
            error: None,
        };
        for (keys, reply) in self.came {
            whole.take(&keys, &joined(reply));
        }
        whole.write(space, out);
    }
}

/// The one reply, while it is made.
struct Whole {
    joins: Joins,
    values: Vec<Bytes>,
    sum: i64,
    /// The first error: it is the reply.
    error: Option<Bytes>,
}

impl Whole {
    fn take(&mut self, keys: &[u32], reply: &Bytes) {
        let taken = match (reply.first(), self.joins) {
            (Some(b':'), Joins::Sum) => self.add(reply),
            (Some(b'*'), Joins::Values) => self.place(keys, reply),
            (Some(b'+'), Joins::Done) => Some(()),
            (Some(b'$'), Joins::Same) => {
                self.values = vec![reply.clone()];
                Some(())
            }
            (Some(b'*'), Joins::Least) => self.keep_least(reply),
            (Some(b'*'), Joins::Names) => self.keep_all(reply),
            (Some(b'*'), Joins::Counts) => self.add_up(reply),
            (Some(b'-'), _) => {
                self.error.get_or_insert_with(|| reply.clone());
                Some(())
            }
            _ => None,
        };
        if taken.is_none() {
            let text = b"-ERR the engine's answer is not understood\r\n";
            self.error.get_or_insert(Bytes::from_static(text));
        }
    }

    fn add(&mut self, reply: &[u8]) -> Option<()> {
        self.sum += parse_i64(reply.get(1..reply.len().checked_sub(2)?)?)?;
        Some(())
    }

    /// One of zeros and ones, beside those of other nodes.
    fn keep_least(&mut self, reply: &Bytes) -> Option<()> {
        let mut least = vec![reply.slice(..reply.iter().position(|byte| *byte == b'\n')? + 1)];
        let mut at = least[0].len();
        while at < reply.len() {
            let end = at + Scanner::default().end(&reply[at..]).ok()??;
            let known = self
                .values
                .get(least.len())
                .filter(|known| &known[..] == b":0\r\n");
            least.push(known.cloned().unwrap_or_else(|| reply.slice(at..end)));
            at = end;
        }
        self.values = least;
        Some(())
    }

    /// Names, behind those of other nodes.
    fn keep_all(&mut self, reply: &Bytes) -> Option<()> {
        self.values.extend(items(reply)?);
        Some(())
    }

    /// Names with numbers, which are added to those of other nodes.
    fn add_up(&mut self, reply: &Bytes) -> Option<()> {
        let came = items(reply)?;
        if self.values.is_empty() {
            self.values = came;
            return Some(());
        }
        let number = |text: &Bytes| parse_i64(text.get(1..text.len().checked_sub(2)?)?);
        for (known, more) in self.values.iter_mut().zip(&came).skip(1).step_by(2) {
            *known = format!(":{}\r\n", number(known)? + number(more)?).into();
        }
        Some(())
    }

    fn place(&mut self, keys: &[u32], reply: &Bytes) -> Option<()> {
        let mut at = reply.iter().position(|byte| *byte == b'\n')? + 1;
        for key in keys {
            let end = at + Scanner::default().end(&reply[at..]).ok()??;
            *self.values.get_mut(*key as usize)? = reply.slice(at..end);
            at = end;
        }
        (at == reply.len()).then_some(())
    }

    fn write(self, space: &Space, out: &mut Output) {
        if let Some(error) = self.error {
            return out.write(&space.without_mark(&error));
        }
        let mut line = Vec::new();
        match self.joins {
            Joins::Values => {
                head(b'*', self.values.len(), &mut line);
                out.write(&line);
                for value in self.values {
                    match value.len() < BY_REFERENCE_BYTES {
                        true => out.write(&value),
                        false => out.write_bytes(value),
                    }
                }
            }
            Joins::Sum => {
                head(b':', self.sum.max(0) as usize, &mut line);
                out.write(&line);
            }
            Joins::Done => out.write(b"+OK\r\n"),
            Joins::Same | Joins::Least => self.values.iter().for_each(|part| out.write(part)),
            Joins::Names => {
                head(b'*', self.values.len(), &mut line);
                let reply = [line, self.values.concat()].concat();
                Shows::All.write(&reply, space, out);
            }
            Joins::Counts => {
                head(b'*', self.values.len(), &mut line);
                let reply = [line, self.values.concat()].concat();
                Shows::Counts { shards: true }.write(&reply, space, out);
            }
        }
    }
}

/// The items of a list; none: it is not whole.
fn items(list: &Bytes) -> Option<Vec<Bytes>> {
    let mut at = list.iter().position(|byte| *byte == b'\n')? + 1;
    let mut items = Vec::new();
    while at < list.len() {
        let end = at + Scanner::default().end(&list[at..]).ok()??;
        items.push(list.slice(at..end));
        at = end;
    }
    Some(items)
}

#[cfg(test)]
mod tests {
    use commands::{Action, Flags, Group};
    use smallvec::smallvec;

    use super::*;

    /// The one reply of those of several nodes.
    fn everywhere(name: &'static str, replies: &[&str]) -> String {
        let spec = Spec::new(name, -2, Group::Generic, Flags::NONE, Action::Engine);
        let mut gather = Gather::every_node(&spec, replies.len());
        for (at, reply) in replies.iter().enumerate() {
            let reply = Bytes::from(reply.replace('|', "\r\n"));
            let last = gather.take(Box::default(), smallvec![reply]);
            assert_eq!(last, at + 1 == replies.len());
        }
        let mut out = Output::new();
        gather.write(&Space::of("t"), &mut out);
        let text = String::from_utf8(out.to_vec()).expect("text");
        text.replace("\r\n", "|")
    }

    #[test]
    fn what_every_node_says_is_one_reply() {
        let exists = ["*3|:1|:1|:0|", "*3|:1|:0|:1|", "*3|:1|:1|:1|"];
        assert_eq!(everywhere("script|exists", &exists), "*3|:1|:0|:0|");
        assert_eq!(everywhere("script|exists", &exists[..1]), exists[0]);
        assert_eq!(everywhere("script|load", &["$2|ab|", "$2|ab|"]), "$2|ab|");
        let names = ["*2|$5|{@t}a|$5|{@u}a|", "*0|", "*1|$5|{@t}b|"];
        assert_eq!(everywhere("pubsub|shardchannels", &names), "*2|$1|a|$1|b|");
        let counts = ["*4|$5|{@t}a|:1|$5|{@t}b|:0|", "*4|$5|{@t}a|:2|$5|{@t}b|:7|"];
        let sums = "*4|$1|a|:3|$1|b|:7|";
        assert_eq!(everywhere("pubsub|shardnumsub", &counts), sums);
        assert_eq!(everywhere("pubsub|shardnumsub", &["*0|", "*0|"]), "*0|");
        let one_fails = ["$2|ab|", "-ERR '{@t}' no|", "$2|ab|"];
        assert_eq!(everywhere("script|load", &one_fails), "-ERR '' no|");
    }
}
