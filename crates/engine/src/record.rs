//! How things are written down: the records of a tenant's database.
//!
//! | record | value |
//! |---|---|
//! | `o<key>` | flags, [expiry u64], then the string or (id u64, length u64) |
//! | `h<id u64><field>` | the field's value |
//! | `m<id u64><member>` | the member's score |
//! | `s<id u64><score><member>` | nothing: the order of scores |
//! | `x<expiry u64><key>` | nothing: the order of expiries; may be stale |
//! | `!name` | properties of the database |
//!
//! Integers are big-endian, so that byte order is number order.

use crate::{Entry, Header, Kind, Object, Table};
use bytes::Bytes;
use smallvec::SmallVec;

/// A raw record key on the stack: most keys are short.
pub(crate) type RawKey = SmallVec<[u8; 96]>;

/// Prefix of object records.
pub(crate) const OBJECT: u8 = b'o';
/// Prefix of the expiry index.
pub(crate) const EXPIRY: u8 = b'x';
/// Every prefix that FLUSHALL removes; properties stay.
pub(crate) const DATA_PREFIXES: [u8; 5] = [b'h', b'm', b'o', b's', b'x'];
/// Ids below this are used or burnt.
pub(crate) const NEXT_ID: &[u8] = b"!ids";
/// Present once a collection existed: from then on a blind overwrite may hide one.
pub(crate) const COLLECTIONS: &[u8] = b"!collections";
/// Which version of this format the database has.
pub(crate) const FORMAT: &[u8] = b"!format";
/// The version this code writes and reads.
pub(crate) const FORMAT_VERSION: &[u8] = b"1";

const TYPE_MASK: u8 = 0b0000_1111;
const TYPE_STRING: u8 = 0;
const TYPE_HASH: u8 = 1;
const TYPE_SORTED_SET: u8 = 2;
const FLAG_EXPIRES: u8 = 0b1000_0000;

impl Table {
    fn prefix(self) -> u8 {
        match self {
            Table::Field => b'h',
            Table::Member => b'm',
            Table::Score => b's',
        }
    }
}

/// The tables a collection of this kind has records in.
pub(crate) fn tables(kind: Kind) -> &'static [Table] {
    match kind {
        Kind::Hash => &[Table::Field],
        Kind::SortedSet => &[Table::Member, Table::Score],
    }
}

/// `o<key>`.
pub(crate) fn object_key(key: &[u8]) -> RawKey {
    let mut raw = RawKey::with_capacity(key.len() + 1);
    raw.push(OBJECT);
    raw.extend_from_slice(key);
    raw
}

/// `h`, `m` or `s`, the id, the name.
pub(crate) fn record_key(table: Table, id: u64, name: &[u8]) -> RawKey {
    let mut raw = RawKey::with_capacity(name.len() + RECORD_HEAD);
    raw.push(table.prefix());
    raw.extend_from_slice(&id.to_be_bytes());
    raw.extend_from_slice(name);
    raw
}

/// Bytes before the name in a record key.
pub(crate) const RECORD_HEAD: usize = 9;

/// The collection id in a record key.
pub(crate) fn id_of(raw: &[u8]) -> u64 {
    let id = raw.get(1..RECORD_HEAD).and_then(decode_u64);
    id.unwrap_or_default()
}

/// First and past-the-last key of a collection's table.
pub(crate) fn record_range(table: Table, id: u64) -> (RawKey, RawKey) {
    (
        record_key(table, id, b""),
        record_key(table, id.wrapping_add(1), b""),
    )
}

/// `x<expiry><key>`.
pub(crate) fn expiry_key(at_ms: u64, key: &[u8]) -> RawKey {
    let mut raw = RawKey::with_capacity(key.len() + 9);
    raw.push(EXPIRY);
    raw.extend_from_slice(&at_ms.to_be_bytes());
    raw.extend_from_slice(key);
    raw
}

/// Time and key of an expiry record; `None` for anything else.
pub(crate) fn parse_expiry_key(raw: &[u8]) -> Option<(u64, &[u8])> {
    let rest = raw.strip_prefix(&[EXPIRY])?;
    let (at, key) = rest.split_first_chunk::<8>()?;
    Some((u64::from_be_bytes(*at), key))
}

/// The value of an object record, in two parts so that a string is not copied once more.
pub(crate) fn encode_head(entry: &Entry) -> SmallVec<[u8; 32]> {
    let mut head = SmallVec::new();
    let kind = match &entry.object {
        Object::String(_) => TYPE_STRING,
        Object::Collection(h) if h.kind == Kind::Hash => TYPE_HASH,
        Object::Collection(_) => TYPE_SORTED_SET,
    };
    let expires = entry.expire_at_ms.map_or(0, |_| FLAG_EXPIRES);
    head.push(kind | expires);
    if let Some(at) = entry.expire_at_ms {
        head.extend_from_slice(&at.to_be_bytes());
    }
    if let Object::Collection(header) = &entry.object {
        head.extend_from_slice(&header.id.to_be_bytes());
        head.extend_from_slice(&header.len.to_be_bytes());
    }
    head
}

/// The entry of an object record; `None` if the bytes make no sense.
pub(crate) fn decode(value: &[u8]) -> Option<Entry> {
    let (&flags, mut rest) = value.split_first()?;
    let mut expire_at_ms = None;
    if flags & FLAG_EXPIRES != 0 {
        expire_at_ms = Some(take_u64(&mut rest)?);
    }
    let kind = match flags & TYPE_MASK {
        TYPE_STRING => {
            return Some(Entry {
                object: Object::String(Bytes::copy_from_slice(rest)),
                expire_at_ms,
            })
        }
        TYPE_HASH => Kind::Hash,
        TYPE_SORTED_SET => Kind::SortedSet,
        _ => return None,
    };
    let id = take_u64(&mut rest)?;
    let len = take_u64(&mut rest)?;
    Some(Entry {
        object: Object::Collection(Header { kind, id, len }),
        expire_at_ms,
    })
}

/// Whether an object record counts as present at `now_ms`, without looking at its value.
pub(crate) fn is_live(value: &[u8], now_ms: u64) -> bool {
    match value.split_first() {
        Some((flags, mut rest)) if flags & FLAG_EXPIRES != 0 => {
            take_u64(&mut rest).is_some_and(|at| at > now_ms)
        }
        Some(_) => true,
        None => false,
    }
}

/// A big-endian integer property.
pub(crate) fn decode_u64(value: &[u8]) -> Option<u64> {
    Some(u64::from_be_bytes(value.try_into().ok()?))
}

fn take_u64(rest: &mut &[u8]) -> Option<u64> {
    let (head, tail) = rest.split_first_chunk::<8>()?;
    *rest = tail;
    Some(u64::from_be_bytes(*head))
}

const SIGN: u64 = 1 << 63;

/// Eight bytes that sort as scores do: -inf first, +inf last, -0 and 0 the same.
/// The score must not be NaN (Redis refuses those).
#[must_use]
pub fn score_key(score: f64) -> [u8; 8] {
    // IEEE 754 magnitudes already sort as integers; only the sign is the wrong way round.
    let bits = (score + 0.0).to_bits();
    let ordered = if bits & SIGN == 0 { bits | SIGN } else { !bits };
    ordered.to_be_bytes()
}

/// The score that [`score_key`] wrote.
#[must_use]
pub fn score_of_key(key: [u8; 8]) -> f64 {
    let ordered = u64::from_be_bytes(key);
    f64::from_bits(if ordered & SIGN == 0 {
        !ordered
    } else {
        ordered & !SIGN
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_sort_as_bytes() {
        let scores = [
            f64::NEG_INFINITY,
            -1e9,
            -1.5,
            -0.0,
            1e-300,
            2.0,
            2.5,
            f64::INFINITY,
        ];
        let keys: Vec<_> = scores.iter().map(|s| score_key(*s)).collect();
        assert!(keys.windows(2).all(|w| w[0] < w[1]));
        assert_eq!(score_key(-0.0), score_key(0.0));
        for s in scores {
            assert_eq!(score_of_key(score_key(s)), s);
        }
    }

    #[test]
    fn entries_survive_encoding() {
        let header = Header {
            kind: Kind::SortedSet,
            id: 7,
            len: u64::MAX,
        };
        for object in [
            Object::String(Bytes::from_static(b"")),
            Object::String(Bytes::from_static(b"value")),
            Object::Collection(header),
            Object::Collection(Header {
                kind: Kind::Hash,
                ..header
            }),
        ] {
            for expire_at_ms in [None, Some(0), Some(u64::MAX)] {
                let entry = Entry {
                    object: object.clone(),
                    expire_at_ms,
                };
                let mut value = encode_head(&entry).to_vec();
                if let Object::String(s) = &entry.object {
                    value.extend_from_slice(s);
                }
                assert_eq!(decode(&value), Some(entry));
            }
        }
        assert_eq!(decode(b""), None);
        assert_eq!(decode(&[TYPE_HASH, 1]), None);
    }
}
