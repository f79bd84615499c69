//! Commands on all keys of a tenant: the engine is walked over in steps, node by node where it is a
//! cluster, so that nobody waits for all of it, and only the keys of the tenant are looked at.

use hashbrown::HashSet;
use resp::{is, Args, Output, Protocol, Reply};

use crate::space::Space;
use crate::value::{frame, Value};
use crate::way::Walk;

/// Keys that the engine looks at in one step, about 200 us of it.
pub(crate) const STEP_KEYS: i64 = 1_000;
/// The same, as it is told.
pub(crate) const STEP: &[u8] = b"1000";

/// What a walk needs next.
#[derive(Debug, PartialEq, Eq)]
pub enum Step {
    /// The node at this place is to be asked this.
    Ask(usize, Vec<u8>),
    /// It has come to its end.
    Done,
    /// It cannot go on; the text of an error.
    Failed(String),
}

/// A walk under way.
#[derive(Debug)]
pub struct Walker {
    kind: Walk,
    /// Places of the nodes that are still to be walked over; the last is under way.
    nodes: Vec<usize>,
    cursor: Vec<u8>,
    glob: Vec<u8>,
    /// `KEYS`: what was found, as the tenant calls it. The engine may show a key twice.
    found: HashSet<Box<[u8]>>,
    bytes: usize,
    bytes_max: usize,
    count: u64,
    /// The node under way has come to its end.
    walked: bool,
    /// Keys that are still to be deleted, those of a partition together; the last are under way.
    deletes: Vec<Vec<Box<[u8]>>>,
    /// `RANDOMKEY`: a number that nobody can foresee, by which it picks.
    chance: u64,
    /// The node under way is walked over from its beginning.
    from_start: bool,
}

impl Walker {
    /// Begins the walk that `args` ask for, over the nodes at these places; it keeps so many bytes
    /// at most. By `chance`, any number, it chooses where something is to be chosen at random.
    ///
    /// # Errors
    /// The text of an error.
    pub fn begin(
        kind: Walk,
        args: &Args,
        space: &Space,
        mut nodes: Vec<usize>,
        bytes_max: usize,
        chance: u64,
    ) -> Result<(Self, usize, Vec<u8>), &'static str> {
        let pattern = match kind {
            Walk::Keys => args.get(1),
            Walk::Delete if args.len() > 1 => {
                let known = ["SYNC", "ASYNC"].iter().any(|word| is(args.get(1), word));
                if args.len() > 2 || !known {
                    return Err("ERR syntax error");
                }
                b"*"
            }
            _ => b"*",
        };
        let from_start = kind != Walk::Random;
        if let (false, Some(turns)) = (from_start, (chance as usize).checked_rem(nodes.len())) {
            nodes.rotate_left(turns);
        }
        let mut walker = Self {
            kind,
            nodes,
            cursor: first_cursor(kind, chance),
            glob: space.glob(pattern),
            found: HashSet::new(),
            bytes: 0,
            bytes_max,
            count: 0,
            walked: false,
            deletes: Vec::new(),
            chance,
            from_start,
        };
        match walker.on() {
            Step::Ask(node, request) => Ok((walker, node, request)),
            _ => Err("ERR engine: no node of its cluster is known; nothing was done"),
        }
    }

    fn look(&self) -> Vec<u8> {
        let mut request = Vec::new();
        let words: [&[u8]; 6] = [b"SCAN", &self.cursor, b"MATCH", &self.glob, b"COUNT", STEP];
        frame(words.into_iter(), &mut request);
        request
    }

    /// Bytes that it keeps.
    #[must_use]
    pub fn holds(&self) -> usize {
        self.bytes
    }

    /// The engine has answered.
    pub fn step(&mut self, reply: &[u8], space: &Space) -> Step {
        let value = match Value::read(reply) {
            // Some of the keys are on their way to another node: each is looked for by itself.
            Some(Value::Error(why)) if why.starts_with("TRYAGAIN") => match self.deletes.pop() {
                Some(keys) => {
                    let each = keys.into_iter().map(|key| vec![key]);
                    self.deletes.extend(each);
                    return self.on();
                }
                None => return Step::Failed(why),
            },
            Some(Value::Error(why)) => return Step::Failed(why),
            Some(value) => value,
            None => return Step::Failed("ERR the engine's answer is not understood".into()),
        };
        if self.deletes.pop().is_some() {
            return self.on();
        }
        let [Value::Text(cursor), Value::List(keys)] = value.items() else {
            return Step::Failed("ERR the engine's answer is not understood".into());
        };
        self.cursor.clone_from(cursor);
        self.walked = self.cursor == b"0";
        let keys = keys.iter().filter_map(|key| match key {
            Value::Text(key) => Some((&key[..], space.own(key)?)),
            _ => None,
        });
        match self.kind {
            Walk::Keys => {
                for (_, own) in keys {
                    if self.found.insert(own.into()) {
                        self.bytes += own.len() + size_of::<Box<[u8]>>();
                    }
                }
                if self.bytes > self.bytes_max {
                    return Step::Failed(
                        "ERR these keys take more memory than a command may use: use SCAN".into(),
                    );
                }
            }
            Walk::Delete => {
                for (key, own) in keys {
                    let mark = key.len() - own.len();
                    let same = |group: &&mut Vec<Box<[u8]>>| group[0][..mark] == key[..mark];
                    match self.deletes.iter_mut().find(same).filter(|_| mark > 0) {
                        Some(group) => group.push(key.into()),
                        None => self.deletes.push(vec![key.into()]),
                    }
                }
            }
            Walk::Random => {
                let own: Vec<&[u8]> = keys.map(|(_, own)| own).collect();
                let place = (self.chance >> CURSOR_BITS) as usize;
                if let Some(place) = place.checked_rem(own.len()) {
                    self.found.insert(own[place].into());
                    return Step::Done;
                }
            }
            Walk::Count | Walk::Scan => self.count += keys.count() as u64,
        }
        self.on()
    }

    /// What comes next.
    fn on(&mut self) -> Step {
        let Some(node) = self.nodes.last().copied() else {
            return Step::Done;
        };
        let request = match self.deletes.last() {
            Some(keys) => {
                let mut request = Vec::new();
                let mut words: Vec<&[u8]> = vec![b"UNLINK"];
                words.extend(keys.iter().map(|key| &key[..]));
                frame(words.into_iter(), &mut request);
                request
            }
            // It began somewhere: what lies before that is still to be looked at.
            None if self.walked && !self.from_start => {
                (self.walked, self.from_start) = (false, true);
                self.look()
            }
            None if self.walked => {
                self.walked = false;
                self.nodes.pop();
                self.from_start = self.kind != Walk::Random;
                self.cursor = first_cursor(self.kind, self.chance);
                return self.on();
            }
            None => self.look(),
        };
        Step::Ask(node, request)
    }

    /// The reply at its end.
    pub fn reply(self, protocol: Protocol, out: &mut Output) {
        let mut reply = Reply::new(out, protocol);
        match self.kind {
            Walk::Delete => reply.ok(),
            Walk::Count | Walk::Scan => reply.int(self.count as i64),
            Walk::Random => match self.found.iter().next() {
                Some(key) => reply.bulk(key),
                None => reply.null(),
            },
            Walk::Keys => {
                reply.array(self.found.len());
                self.found.iter().for_each(|key| reply.bulk(key));
            }
        }
    }
}

/// Of a number by which is chosen, those that make a cursor: enough for the largest table of an
/// engine, and for the number of a slot beside it.
const CURSOR_BITS: u32 = 48;

/// Where the walk over a node begins. An engine takes any number for a cursor, and goes on from
/// there.
fn first_cursor(kind: Walk, chance: u64) -> Vec<u8> {
    let cursor = match kind {
        Walk::Random => chance & ((1 << CURSOR_BITS) - 1),
        _ => 0,
    };
    cursor.to_string().into_bytes()
}
