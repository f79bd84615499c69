//! Commands on all keys of a tenant: the engine is walked over in steps, so that nobody waits for
//! all of it, and only the keys of the tenant are looked at.

use hashbrown::HashSet;
use resp::{is, Args, Output, Protocol, Reply};

use crate::space::Space;
use crate::value::{frame, Value};
use crate::way::Walk;

/// Keys that the engine looks at in one step, about 200 us of it.
const STEP: &[u8] = b"1000";

/// What a walk needs next.
#[derive(Debug, PartialEq, Eq)]
pub enum Step {
    /// The engine is to be asked this.
    Ask(Vec<u8>),
    /// It has come to its end.
    Done,
    /// It cannot go on; the text of an error.
    Failed(String),
}

/// A walk under way.
#[derive(Debug)]
pub struct Walker {
    kind: Walk,
    cursor: Vec<u8>,
    glob: Vec<u8>,
    /// `KEYS`: what was found, as the tenant calls it. The engine may show a key twice.
    found: HashSet<Box<[u8]>>,
    bytes: usize,
    bytes_max: usize,
    count: u64,
    /// The step under way deletes.
    deletes: bool,
}

impl Walker {
    /// Begins the walk that `args` ask for; it keeps so many bytes at most.
    ///
    /// # Errors
    /// The text of an error.
    pub fn begin(
        kind: Walk,
        args: &Args,
        space: &Space,
        bytes_max: usize,
    ) -> Result<(Self, Vec<u8>), &'static str> {
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
        let walker = Self {
            kind,
            cursor: b"0".to_vec(),
            glob: space.glob(pattern),
            found: HashSet::new(),
            bytes: 0,
            bytes_max,
            count: 0,
            deletes: false,
        };
        let request = walker.look();
        Ok((walker, request))
    }

    fn look(&self) -> Vec<u8> {
        let mut request = Vec::new();
        let words: [&[u8]; 6] = [b"SCAN", &self.cursor, b"MATCH", &self.glob, b"COUNT", STEP];
        frame(words.into_iter(), &mut request);
        request
    }

    /// The engine has answered.
    pub fn step(&mut self, reply: &[u8], space: &Space) -> Step {
        let value = match Value::read(reply) {
            Some(Value::Error(why)) => return Step::Failed(why),
            Some(value) => value,
            None => return Step::Failed("ERR the engine's answer is not understood".into()),
        };
        if self.deletes {
            self.deletes = false;
            return self.on();
        }
        let [Value::Text(cursor), Value::List(keys)] = value.items() else {
            return Step::Failed("ERR the engine's answer is not understood".into());
        };
        self.cursor.clone_from(cursor);
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
                let keys: Vec<&[u8]> = keys.map(|(key, _)| key).collect();
                if !keys.is_empty() {
                    self.deletes = true;
                    let mut words: Vec<&[u8]> = vec![b"UNLINK"];
                    words.extend(keys);
                    let mut request = Vec::new();
                    frame(words.into_iter(), &mut request);
                    return Step::Ask(request);
                }
            }
            Walk::Count | Walk::Scan => self.count += keys.count() as u64,
        }
        self.on()
    }

    fn on(&self) -> Step {
        match &self.cursor[..] {
            b"0" => Step::Done,
            _ => Step::Ask(self.look()),
        }
    }

    /// The reply at its end.
    pub fn reply(self, protocol: Protocol, out: &mut Output) {
        let mut reply = Reply::new(out, protocol);
        match self.kind {
            Walk::Delete => reply.ok(),
            Walk::Count | Walk::Scan => reply.int(self.count as i64),
            Walk::Keys => {
                reply.array(self.found.len());
                self.found.iter().for_each(|key| reply.bulk(key));
            }
        }
    }
}

/// `SCAN cursor [MATCH pattern] [COUNT count] [TYPE type]`, over the tenant's keys only.
///
/// # Errors
/// The text of an error.
pub fn scan(args: &Args, space: &Space, out: &mut Vec<u8>) -> Result<(), &'static str> {
    let glob = match (2..args.len())
        .step_by(2)
        .rfind(|at| is(args.get(*at), "MATCH"))
    {
        Some(at) => space.glob(args.find(at + 1).ok_or("ERR syntax error")?),
        None => space.glob(b"*"),
    };
    let mut words: Vec<&[u8]> = vec![args.get(0), args.get(1), b"MATCH", &glob];
    let mut at = 2;
    while at < args.len() {
        let (option, Some(value)) = (args.get(at), args.find(at + 1)) else {
            return Err("ERR syntax error");
        };
        if !is(option, "MATCH") {
            words.extend([option, value]);
        }
        at += 2;
    }
    frame(words.into_iter(), out);
    Ok(())
}
