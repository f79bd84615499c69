//! What `MULTI` queues and `WATCH` watches. The core runs these commands.

use std::sync::Arc;

use commands::{Action, Flags, Spec};
use engine::Watch;
use resp::OwnedArgs;
use smallvec::SmallVec;

/// Bytes of commands that one transaction may queue, with what keeps them in order.
const TRANSACTION_BYTES_MAX: usize = 256 << 20;

/// A command with its words.
pub type Queued = (&'static Spec, OwnedArgs);

/// What a row of commands comes to, without a look at each.
#[derive(Clone, Copy, Debug, Default)]
pub struct Extent {
    /// Words.
    pub words: usize,
    /// Bytes of words.
    pub bytes: usize,
    /// Keys named.
    pub keys: usize,
    /// Some of them changes data.
    pub writes: bool,
    /// Some of them is for the whole keyspace.
    pub whole: bool,
    /// Some of them works on data.
    pub data: bool,
    /// Some of them is to be run on a handler.
    pub reports: bool,
}

impl Extent {
    /// Adds a command.
    pub fn add(&mut self, (spec, args): &Queued) {
        let words = args.args();
        self.words += words.len();
        self.bytes += args.len_bytes();
        self.keys += spec.count_keys(&words);
        self.writes |= spec.flags.has(Flags::WRITE);
        let (whole, data, reports) = match spec.action {
            Action::Data(_) => (false, true, false),
            Action::Keyspace(_) | Action::KeyspaceWriter(_) => (true, true, false),
            Action::Table(_) | Action::Report(_) => (false, false, true),
            Action::Session(_) | Action::Container | Action::Engine => (false, false, false),
        };
        self.whole |= whole;
        self.data |= data;
        self.reports |= reports;
    }
}

/// Commands in a row. However many there are, one more is added without moving them: a core does
/// that.
#[derive(Default)]
pub struct Calls {
    full: Vec<Block>,
    last: Block,
}

type Block = SmallVec<[Queued; 1]>;

/// Commands of a full block: some 100 KiB.
const BLOCK_CALLS: usize = 1_024;

impl Calls {
    /// How many.
    pub fn len(&self) -> usize {
        self.full.len() * BLOCK_CALLS + self.last.len()
    }

    /// True when there is none.
    pub fn is_empty(&self) -> bool {
        self.last.is_empty() && self.full.is_empty()
    }

    /// Adds one.
    pub fn push(&mut self, call: Queued) {
        if self.last.len() == BLOCK_CALLS {
            self.full.push(std::mem::take(&mut self.last));
        }
        self.last.push(call);
    }

    /// Each of them, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Queued> {
        self.full.iter().flatten().chain(&self.last)
    }
}

/// Commands queued between `MULTI` and `EXEC`.
#[derive(Default)]
pub struct Transaction {
    /// In order.
    pub calls: Calls,
    /// What they come to.
    pub extent: Extent,
    /// A command was refused while queueing: `EXEC` will refuse all.
    pub spoiled: bool,
}

/// What a queued command takes beyond its words.
const CALL_BYTES: usize = size_of::<Queued>();

impl Transaction {
    /// Bytes that it holds.
    pub fn bytes(&self) -> usize {
        self.extent.bytes + self.calls.len() * CALL_BYTES
    }

    /// Queues a command; false if the transaction has grown too large, which spoils it.
    pub fn push(&mut self, call: Queued) -> bool {
        if self.bytes() + CALL_BYTES + call.1.len_bytes() > TRANSACTION_BYTES_MAX {
            self.spoiled = true;
            return false;
        }
        self.extent.add(&call);
        self.calls.push(call);
        true
    }
}

/// Keys under `WATCH`, as they were watched together. Cheap to hand on, whatever their number.
#[derive(Clone, Default)]
pub struct Watches {
    sets: Vec<Arc<Vec<Watch>>>,
    len: usize,
}

/// Sets of at most this many keys are merged with the one before.
const MERGED_MAX: usize = 128;

impl Watches {
    /// How many.
    pub fn len(&self) -> usize {
        self.len
    }

    /// True when nothing is watched.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Each of them.
    pub fn iter(&self) -> impl Iterator<Item = &Watch> {
        self.sets.iter().flat_map(|set| set.iter())
    }

    /// Adds what one more `WATCH` watches.
    pub fn add(&mut self, watches: Vec<Watch>) {
        self.len += watches.len();
        let room = |set: &&mut Arc<Vec<Watch>>| set.len() + watches.len() <= MERGED_MAX;
        match self.sets.last_mut().filter(room).and_then(Arc::get_mut) {
            // Few: a key that is watched once more is not kept twice.
            Some(set) => {
                for watch in watches {
                    match set.iter().any(|known| known.key() == watch.key()) {
                        true => self.len -= 1,
                        false => set.push(watch),
                    }
                }
            }
            None => self.sets.push(Arc::new(watches)),
        }
    }

    /// Whether one of the keys has changed since it was watched.
    pub fn outdated(&self, now_ms: u64) -> bool {
        self.iter().any(|watch| watch.dirty_at(now_ms))
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use resp::{Limits, Parsed, Parser};

    use super::*;

    fn ping(number: usize) -> Queued {
        let request = format!("PING {number}\r\n");
        let mut parser = Parser::new();
        let parsed = parser.parse(request.as_bytes(), &Limits::default());
        assert_eq!(parsed, Ok(Parsed::Command(request.len())));
        let args = parser.owned(Bytes::from(request));
        let spec = commands::check(&args.args()).map_err(|bad| bad.text);
        (spec.expect("PING takes a word"), args)
    }

    #[test]
    fn calls_of_several_blocks_keep_their_order() {
        let mut calls = Calls::default();
        assert!(calls.is_empty());
        let many = 2 * BLOCK_CALLS + 3;
        (0..many).for_each(|number| calls.push(ping(number)));
        assert_eq!(calls.len(), many);
        assert!(!calls.is_empty());
        let words = calls.iter().map(|(_, args)| args.args().get(1).to_vec());
        let expected = (0..many).map(|number| number.to_string().into_bytes());
        assert!(words.eq(expected));
        assert!(
            calls.last.capacity() <= BLOCK_CALLS,
            "no block is moved twice its length"
        );
    }
}
