//! How large a unit is, as far as its words tell: small ones pass large ones of their tenant where
//! they wait for handlers and for the device ([`policy::multiget::level_of`]).

use engine::Keyspace;
use policy::multiget::level_of;

use super::{Unit, HANDLER_WORDS_MAX};

/// Words that are worth a key: fields of one collection lie together on the disk.
const WORDS_OF_KEY: usize = 4;
/// Bytes that are: requests are normalised by so many everywhere.
pub const BYTES_OF_KEY: usize = 1 << 10;

/// The level of a unit that runs apart, at least: it takes as long as one that is known from the
/// start to be too long for a handler.
pub fn level_apart(level: u8) -> u8 {
    level.max(level_of(HANDLER_WORDS_MAX as u64))
}

impl Unit {
    /// Keys that it works with. Of what it only reads, those count that memory has not, if that
    /// may be looked at: it is their reads that take long, and the others' take next to nothing.
    pub fn reads(&self, keyspace: Option<&Keyspace>) -> usize {
        let keys = self.keys();
        match keyspace {
            // Of one it is known: it was looked for before.
            Some(keyspace) if keys > 1 && self.only_reads() => {
                self.with_keys(|keys| keyspace.absent(keys))
            }
            _ => keys,
        }
    }

    /// Its level by its size, of which the keys that count are given ([`Unit::reads`]). Of the
    /// values that it reads nothing is known before they are there.
    pub fn level(&self, reads: usize) -> u8 {
        let others = (self.extent.words.saturating_sub(self.keys()) / WORDS_OF_KEY)
            .max(self.extent.bytes / BYTES_OF_KEY);
        let level = level_of(reads.max(others) as u64);
        match self.is_long() {
            true => level_apart(level),
            false => level,
        }
    }
}

#[cfg(test)]
pub mod tests {
    use bytes::Bytes;
    use resp::{Limits, Parsed, Parser};

    use super::*;

    /// A unit of one command.
    pub fn unit(words: &[&str]) -> Unit {
        let bulk = |word: &&str| format!("${}\r\n{word}\r\n", word.len());
        let bulks: String = words.iter().map(bulk).collect();
        let request = format!("*{}\r\n{bulks}", words.len());
        let mut parser = Parser::new();
        let parsed = parser.parse(request.as_bytes(), &Limits::default());
        assert_eq!(parsed, Ok(Parsed::Command(request.len())));
        let args = parser.owned(Bytes::from(request));
        let spec = commands::check(&args.args()).map_err(|bad| bad.text);
        let (spec, database) = (spec.expect("a command"), engine::Database::default());
        Unit::one(spec, args, database, None)
    }

    fn level(words: &[&str]) -> u8 {
        let unit = unit(words);
        unit.level(unit.reads(None))
    }

    #[test]
    fn the_level_of_a_command_is_that_of_its_size_in_keys() {
        let of = |name: &'static str, keys: usize| level(&[&[name][..], &vec!["k"; keys]].concat());
        assert_eq!(of("GET", 1), 0);
        assert_eq!(level(&["SET", "k", "v", "PX", "100", "NX"]), 0);
        assert_eq!(
            [1, 2, 3, 4, 1_000].map(|keys| of("MGET", keys)),
            [0, 1, 1, 2, 9]
        );
        assert_eq!(of("MSET", 200), 6, "a hundred keys and as many values");
        assert_eq!(of("HMGET", 200), 5, "fields of one key");
        assert_eq!(level(&["SET", "k", &"v".repeat(70 << 10)]), 6);
    }

    #[test]
    fn what_runs_apart_is_large() {
        let keys = vec!["k"; HANDLER_WORDS_MAX];
        let long = level(&[&["HMGET"][..], &keys].concat());
        assert_eq!(long, 10);
        assert_eq!(level_apart(0), long);
        assert_eq!(level_apart(12), 12);
    }
}
