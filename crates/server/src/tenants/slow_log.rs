//! The slow commands of one tenant, in a bounded ring.

use std::collections::VecDeque;
use std::sync::Arc;

/// Arguments kept of one command, and bytes kept of one argument: Redis's own bounds.
const ARGS_MAX: usize = 32;
const ARG_BYTES_MAX: usize = 128;

/// One slow command.
#[derive(Clone, Debug)]
pub struct SlowCommand {
    /// Growing number.
    pub id: u64,
    /// When it ended, seconds since the Unix epoch.
    pub at_s: u64,
    /// How long it took, in µs, without waiting for its turn.
    pub took_us: u64,
    /// Its arguments, cut to Redis's bounds.
    pub args: Vec<Vec<u8>>,
    /// The client's address.
    pub addr: String,
    /// The client's name.
    pub name: String,
}

/// The ring; newest first when read.
#[derive(Default)]
pub struct SlowLog {
    entries: VecDeque<Arc<SlowCommand>>,
    next_id: u64,
}

impl SlowLog {
    /// Records a command and drops what goes beyond `length_max`.
    pub fn push<'a>(
        &mut self,
        length_max: usize,
        at_s: u64,
        took_us: u64,
        args: impl ExactSizeIterator<Item = &'a [u8]>,
        client: (&str, &str),
    ) {
        let entry = SlowCommand {
            id: self.next_id,
            at_s,
            took_us,
            args: trimmed(args),
            addr: client.0.to_string(),
            name: client.1.to_string(),
        };
        self.next_id += 1;
        self.entries.push_front(Arc::new(entry));
        self.entries.truncate(length_max);
    }

    /// The newest `count` commands, to be looked at when the log is not locked any more: cores want
    /// it, too.
    pub fn newest(&self, count: usize) -> Vec<Arc<SlowCommand>> {
        self.entries.iter().take(count).map(Arc::clone).collect()
    }

    /// How many are kept.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// True when none is kept.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Forgets all of them, which are returned to be dropped elsewhere; numbers go on.
    pub fn reset(&mut self) -> impl Send {
        std::mem::take(&mut self.entries)
    }
}

fn trimmed<'a>(args: impl ExactSizeIterator<Item = &'a [u8]>) -> Vec<Vec<u8>> {
    let count = args.len();
    let shown = if count > ARGS_MAX {
        ARGS_MAX - 1
    } else {
        count
    };
    let mut kept: Vec<Vec<u8>> = args
        .take(shown)
        .map(|arg| {
            let mut text = arg[..arg.len().min(ARG_BYTES_MAX)].to_vec();
            if arg.len() > ARG_BYTES_MAX {
                let more = arg.len() - ARG_BYTES_MAX;
                text.extend_from_slice(format!("... ({more} more bytes)").as_bytes());
            }
            text
        })
        .collect();
    if count > ARGS_MAX {
        kept.push(format!("... ({} more arguments)", count - shown).into_bytes());
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn push(log: &mut SlowLog, length_max: usize, words: &[&[u8]]) {
        log.push(
            length_max,
            7,
            42,
            words.iter().copied(),
            ("10.0.0.1:1", "me"),
        );
    }

    #[test]
    fn the_ring_keeps_the_newest_and_numbers_go_on() {
        let mut log = SlowLog::default();
        for word in [&b"a"[..], b"b", b"c"] {
            push(&mut log, 2, &[word]);
        }
        let kept: Vec<(u64, Vec<u8>)> = log
            .newest(10)
            .iter()
            .map(|entry| (entry.id, entry.args[0].clone()))
            .collect();
        assert_eq!(kept, [(2, b"c".to_vec()), (1, b"b".to_vec())]);
        assert_eq!(log.newest(1).len(), 1);
        drop(log.reset());
        assert!(log.is_empty());
        push(&mut log, 2, &[b"d"]);
        assert_eq!(log.newest(1).first().map(|entry| entry.id), Some(3));
        push(&mut log, 0, &[b"e"]);
        assert_eq!(log.len(), 0);
    }

    #[test]
    fn long_commands_are_cut_as_redis_cuts_them() {
        let mut log = SlowLog::default();
        push(&mut log, 9, &[&b"x"[..]; 40]);
        push(&mut log, 9, &[&[b'y'; 130]]);
        let entries = log.newest(2);
        assert_eq!(
            entries[0].args[0],
            [&[b'y'; 128][..], b"... (2 more bytes)"].concat()
        );
        assert_eq!(entries[1].args.len(), 32);
        assert_eq!(entries[1].args[31], b"... (9 more arguments)");
    }
}
