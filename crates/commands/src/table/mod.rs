//! The table of commands. Everything that must know a command knows it from here: dispatch,
//! `COMMAND`, key extraction, ACL categories, and `docs/reference/commands.md`.

mod administration;
mod cluster;
mod connection;
mod hashes;
mod keys;
mod requests;
mod server;
mod shapes;
mod sorted_set_ranges;
mod sorted_sets;
mod strings;

use crate::spec::Spec;

static FAMILIES: [&[Spec]; 10] = [
    strings::STRINGS,
    keys::KEYS,
    hashes::HASHES,
    sorted_sets::SORTED_SETS,
    sorted_set_ranges::SORTED_SET_RANGES,
    connection::CONNECTION,
    requests::REQUESTS,
    administration::ADMINISTRATION,
    server::SERVER,
    cluster::CLUSTER,
];

/// A power of two, more than twice the number of commands, so that a probe seldom meets another
/// command.
const PLACES: usize = 256;

/// No command's name is longer, which lets a name be compared as two numbers.
const NAME_BYTES_MAX: usize = 16;

/// A name in lower case as two overlapping numbers, and its length; lengths and numbers together
/// are the name.
#[derive(Clone, Copy)]
struct Packed {
    start: u64,
    end: u64,
    len: usize,
}

impl Packed {
    /// `name` has 1 to [`NAME_BYTES_MAX`] bytes.
    const fn new(name: &[u8]) -> Packed {
        let len = name.len();
        let (start, end) = match len {
            8.. => (read(name, 0, 8), read(name, len - 8, 8)),
            4..=7 => (read(name, 0, 4), read(name, len - 4, 4)),
            _ => (
                read(name, 0, 1) | read(name, len / 2, 1) << 8,
                read(name, len - 1, 1),
            ),
        };
        Packed {
            start: lower_case(start),
            end: lower_case(end),
            len,
        }
    }

    const fn hash(&self) -> usize {
        let mixed = self.start ^ self.end.rotate_left(29) ^ self.len as u64;
        (mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as usize % PLACES
    }

    const fn is(&self, other: &Packed) -> bool {
        self.start == other.start && self.end == other.end && self.len == other.len
    }
}

const fn read(name: &[u8], from: usize, count: usize) -> u64 {
    let (mut value, mut at) = (0, 0);
    while at < count {
        value |= (name[from + at] as u64) << (8 * at);
        at += 1;
    }
    value
}

/// Eight bytes at once with `A` to `Z` in lower case.
const fn lower_case(bytes: u64) -> u64 {
    const EACH: u64 = 0x0101_0101_0101_0101;
    let low_bits = bytes & (0x7f * EACH);
    let above_z = low_bits + (0x7f - b'Z' as u64) * EACH;
    let from_a = low_bits + (0x80 - b'A' as u64) * EACH;
    let is_upper = !bytes & (from_a ^ above_z) & (0x80 * EACH);
    bytes | is_upper >> 2
}

/// An entry of the index: a name, and the family and place of its command.
type Entry = Option<(Packed, u8, u8)>;

/// Open addressing over the hash of the name.
static INDEX: [Entry; PLACES] = build_index();

const fn build_index() -> [Entry; PLACES] {
    let mut index: [Entry; PLACES] = [None; PLACES];
    let mut family = 0;
    while family < FAMILIES.len() {
        let mut member = 0;
        while member < FAMILIES[family].len() {
            let name = Packed::new(FAMILIES[family][member].name.as_bytes());
            let mut place = name.hash();
            while index[place].is_some() {
                place = (place + 1) % PLACES;
            }
            index[place] = Some((name, family as u8, member as u8));
            member += 1;
        }
        family += 1;
    }
    index
}

/// The command of this name in any case. Takes a few nanoseconds and no memory.
#[inline]
pub fn lookup(name: &[u8]) -> Option<&'static Spec> {
    if name.is_empty() || name.len() > NAME_BYTES_MAX {
        return None;
    }
    let name = Packed::new(name);
    let mut place = name.hash();
    while let Some((found, family, member)) = &INDEX[place] {
        if found.is(&name) {
            return Some(&FAMILIES[usize::from(*family)][usize::from(*member)]);
        }
        place = (place + 1) % PLACES;
    }
    None
}

/// The subcommand of `command` with this name in any case.
pub fn subcommand(command: &'static Spec, name: &[u8]) -> Option<&'static Spec> {
    command
        .subcommands
        .iter()
        .find(|spec| spec.short_name().as_bytes().eq_ignore_ascii_case(name))
}

/// Every command, family by family; subcommands are with their commands.
pub fn all() -> impl Iterator<Item = &'static Spec> {
    FAMILIES.iter().flat_map(|family| family.iter())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::{Action, Flags};

    #[test]
    fn every_command_is_found_in_any_case_and_no_other() {
        for spec in all() {
            assert!(spec.name.len() <= NAME_BYTES_MAX);
            for name in [spec.name.to_owned(), spec.name.to_uppercase()] {
                assert_eq!(
                    lookup(name.as_bytes()).map(|found| found.name),
                    Some(spec.name)
                );
            }
        }
        for name in ["", "ge", "gett", "client|list", "lpush", "get\0", "GET "] {
            assert!(lookup(name.as_bytes()).is_none(), "{name}");
        }
    }

    #[test]
    fn names_are_unique_and_entries_make_sense() {
        let mut names: Vec<_> = all()
            .flat_map(|spec| [spec].into_iter().chain(spec.subcommands))
            .collect();
        for spec in &names {
            assert_ne!(spec.arity, 0, "{spec:?}");
            assert!(!spec.summary.is_empty(), "{spec:?}");
            let writes = spec.flags.has(Flags::WRITE);
            let reads = spec.flags.has(Flags::READONLY);
            match spec.action {
                Action::Data(_) => assert!(
                    writes != reads && !spec.keys.is_empty() || spec.name == "object|freq",
                    "{spec:?}"
                ),
                Action::Keyspace(_) => {
                    assert!(reads && !writes && spec.keys.is_empty(), "{spec:?}")
                }
                Action::KeyspaceWriter(_) => assert!(writes && spec.keys.is_empty(), "{spec:?}"),
                Action::Container => assert!(!spec.subcommands.is_empty(), "{spec:?}"),
                Action::Table(_) | Action::Session(_) | Action::Report(_) | Action::Engine => {}
            }
        }
        let count = names.len();
        names.sort_by_key(|spec| spec.name);
        names.dedup_by_key(|spec| spec.name);
        assert_eq!(names.len(), count);
    }
}
