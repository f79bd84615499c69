//! The table of commands. Everything that must know a command knows it from here: dispatch, `COMMAND`, key extraction,
//! ACL categories, and `docs/reference/commands.md`.

mod cluster;
mod connection;
mod hashes;
mod keys;
mod server;
mod sorted_sets;
mod strings;

use super::spec::Spec;

static FAMILIES: [&[Spec]; 7] = [
    strings::STRINGS,
    keys::KEYS,
    hashes::HASHES,
    sorted_sets::SORTED_SETS,
    connection::CONNECTION,
    server::SERVER,
    cluster::CLUSTER,
];

/// A power of two, more than twice the number of commands, so that a probe seldom meets another command.
const PLACES: usize = 512;
const FREE: (u8, u8) = (u8::MAX, 0);

/// Open addressing over the hash of the lower-case name; an entry is the family and the place in it.
static INDEX: [(u8, u8); PLACES] = build_index();

const fn build_index() -> [(u8, u8); PLACES] {
    let mut index = [FREE; PLACES];
    let mut family = 0;
    while family < FAMILIES.len() {
        let mut member = 0;
        while member < FAMILIES[family].len() {
            let mut place = hash(FAMILIES[family][member].name.as_bytes());
            while index[place].0 != FREE.0 {
                place = (place + 1) % PLACES;
            }
            index[place] = (family as u8, member as u8);
            member += 1;
        }
        family += 1;
    }
    index
}

/// FNV-1a over the bytes with their case bit set, folded to a place.
const fn hash(name: &[u8]) -> usize {
    let mut hash: u32 = 0x811c_9dc5;
    let mut at = 0;
    while at < name.len() {
        hash = (hash ^ (name[at] | 0x20) as u32).wrapping_mul(0x0100_0193);
        at += 1;
    }
    (hash ^ (hash >> 15)) as usize % PLACES
}

/// No command's name is longer, so longer words need not be hashed.
const NAME_BYTES_MAX: usize = 32;

/// The command of this name in any case. Takes a few nanoseconds and no memory.
#[inline]
pub fn lookup(name: &[u8]) -> Option<&'static Spec> {
    if name.len() > NAME_BYTES_MAX {
        return None;
    }
    let mut place = hash(name);
    loop {
        let (family, member) = INDEX[place];
        if family == FREE.0 {
            return None;
        }
        let spec = &FAMILIES[usize::from(family)][usize::from(member)];
        if spec.name.as_bytes().eq_ignore_ascii_case(name) {
            return Some(spec);
        }
        place = (place + 1) % PLACES;
    }
}

/// The subcommand of `command` with this name in any case.
pub fn subcommand(command: &'static Spec, name: &[u8]) -> Option<&'static Spec> {
    command.subcommands.iter().find(|spec| spec.short_name().as_bytes().eq_ignore_ascii_case(name))
}

/// Every command, family by family; subcommands are with their commands.
pub fn all() -> impl Iterator<Item = &'static Spec> {
    FAMILIES.iter().flat_map(|family| family.iter())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::spec::{Flags, Handler};

    #[test]
    fn every_command_is_found_in_any_case_and_no_other() {
        for spec in all() {
            assert!(spec.name.len() <= NAME_BYTES_MAX);
            for name in [spec.name.to_owned(), spec.name.to_uppercase()] {
                assert_eq!(lookup(name.as_bytes()).map(|found| found.name), Some(spec.name));
            }
        }
        for name in ["", "ge", "gett", "client|list", "lpush", "get\0", "GET "] {
            assert!(lookup(name.as_bytes()).is_none(), "{name}");
        }
    }

    #[test]
    fn names_are_unique_and_entries_make_sense() {
        let mut names: Vec<_> =
            all().flat_map(|spec| [spec].into_iter().chain(spec.subcommands)).collect();
        for spec in &names {
            assert_ne!(spec.arity, 0, "{spec:?}");
            assert!(!spec.summary.is_empty(), "{spec:?}");
            let writes = spec.flags.has(Flags::WRITE);
            let reads = spec.flags.has(Flags::READONLY);
            match spec.handler {
                Handler::Data(_) => assert!(
                    writes != reads && !spec.keys.is_empty() || spec.name == "object|freq",
                    "{spec:?}"
                ),
                Handler::Keyspace(_) => {
                    assert!(reads && !writes && spec.keys.is_empty(), "{spec:?}")
                }
                Handler::KeyspaceWriter(_) => assert!(writes && spec.keys.is_empty(), "{spec:?}"),
                Handler::Container => assert!(!spec.subcommands.is_empty(), "{spec:?}"),
                Handler::Table(_) | Handler::Session(_) => {}
            }
        }
        let count = names.len();
        names.sort_by_key(|spec| spec.name);
        names.dedup_by_key(|spec| spec.name);
        assert_eq!(names.len(), count);
    }
}
