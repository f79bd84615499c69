//! Values as Redis writes them in its dumps: what `DUMP` returns and `RESTORE` takes.
//!
//! ```text
//! | type u8 | value | version u16 | CRC-64 of all before u64 |      (both little-endian)
//! ```
//!
//! A value is written in the plainest form that its type has, which every Redis since 4.0 reads: a
//! string as its bytes, a hash and a sorted set as their elements. Read are also the forms that
//! Redis writes for short collections ("listpacks", and "ziplists" before 7.0), numbers, and
//! compressed strings.
//!
//! What comes from a client is wrong until it has been read to its end: nothing is allocated by
//! what it claims, and each element is a step of the command.

mod checksum;
mod lzf;
mod packed;
mod reader;

pub use checksum::Checksum;
pub use packed::{Element, Elements};
pub use reader::{Reader, Span};

use std::borrow::Cow;

use crate::data::call::Fail;

/// A dump that does not hold what it should.
pub const DAMAGED: Fail = Fail::Error(Cow::Borrowed("ERR Bad data format"));

/// The version of the format that is written, that of Redis 7.0.
pub const VERSION: u16 = 10;
/// The latest of Redis whose types are known, that of 7.4.
const VERSION_MAX: u16 = 12;
/// That of Valkey 9, which counts on from 80 so that no version is Redis's, too.
const VERSION_OF_VALKEY: u16 = 80;
/// Bytes of version and checksum.
pub const FOOTER_BYTES: usize = 10;

/// A string.
pub const STRING: u8 = 0;
/// A hash as its fields and values.
pub const HASH: u8 = 4;
/// A sorted set as its members and their scores, eight bytes each.
pub const SORTED_SET: u8 = 5;
/// A sorted set of Redis before 7.0, as one "ziplist".
pub const SORTED_SET_ZIPLIST: u8 = 12;
/// The same of a hash.
pub const HASH_ZIPLIST: u8 = 13;
/// A hash as one "listpack".
pub const HASH_LISTPACK: u8 = 16;
/// The same of a sorted set.
pub const SORTED_SET_LISTPACK: u8 = 17;

/// Whether the types that are read here are written in this version as they always were.
pub fn knows(version: u16) -> bool {
    version <= VERSION_MAX || version == VERSION_OF_VALKEY
}

/// Appends a length.
pub fn write_len(len: u64, to: &mut Vec<u8>) {
    match len {
        0..=0x3f => to.push(len as u8),
        0x40..=0x3fff => to.extend_from_slice(&(len as u16 | 0x4000).to_be_bytes()),
        0x4000..=0xffff_ffff => {
            to.push(0x80);
            to.extend_from_slice(&(len as u32).to_be_bytes());
        }
        _ => {
            to.push(0x81);
            to.extend_from_slice(&len.to_be_bytes());
        }
    }
}

/// Appends a string.
pub fn write_string(text: &[u8], to: &mut Vec<u8>) {
    write_len(text.len() as u64, to);
    to.extend_from_slice(text);
}
