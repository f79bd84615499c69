//! How things are written down: the records of a tenant's database.
//!
//! | record | value |
//! |---|---|
//! | `o<key>` | flags, [expiry u64], then the string or (id u64, length u64) |
//! | `p<id u64><number u64>` | a piece of a string that is not kept whole |
//! | `h<id u64><field>` | the field's value |
//! | `m<id u64><member>` | the member's score |
//! | `s<id u64><score><member>` | nothing: the order of scores |
//! | `x<expiry u64><key>` | nothing: the order of expiries; may be stale |
//! | `!name` | properties of the database |
//!
//! What stands for a key here is its name ([`crate::naming`]): of database 0 the key itself.
//!
//! Integers are big-endian, so that byte order is number order.

use crate::{Entry, Header, Kind, Object, Table, Text};
use bytes::Bytes;
use smallvec::SmallVec;

/// A raw record key on the stack: most keys are short.
pub(crate) type RawKey = SmallVec<[u8; 96]>;

/// A key, and a name in a collection, has at most so many bytes.
pub const NAME_BYTES_MAX: usize = 64 << 10;

/// Prefix of object records.
pub(crate) const OBJECT: u8 = b'o';
/// Prefix of the expiry index.
pub(crate) const EXPIRY: u8 = b'x';
/// Every prefix that FLUSHALL removes; properties stay.
pub(crate) const DATA_PREFIXES: [u8; 6] = [b'h', b'm', b'o', b'p', b's', b'x'];
/// Prefixes of records that lie under an id.
pub(crate) const ID_PREFIXES: [u8; 4] = [b'h', b'm', b'p', b's'];
/// Ids below this are used or burnt.
pub(crate) const NEXT_ID: &[u8] = b"!ids";
/// Present once there was a key with records under an id: from then on a blind overwrite may hide
/// one.
pub(crate) const COLLECTIONS: &[u8] = b"!collections";
/// Which slot each numbered database has; absent until that changes.
pub(crate) const DATABASES: &[u8] = b"!databases";
/// Which version of this format the database has.
pub(crate) const FORMAT: &[u8] = b"!format";
/// The version of a database in which every name is its key.
pub(crate) const FORMAT_VERSION: &[u8] = b"2";
/// The version since a name is not: since another database than 0 was first written to.
pub(crate) const FORMAT_NAMED: &[u8] = b"3";
/// Versions that are brought up to date when they are opened. 1: every string is whole, however
/// long.
pub(crate) const FORMATS_BEFORE: [&[u8]; 1] = [b"1"];

const TYPE_MASK: u8 = 0b0000_1111;
const TYPE_STRING: u8 = 0;
const TYPE_HASH: u8 = 1;
const TYPE_SORTED_SET: u8 = 2;
const TYPE_PIECES: u8 = 3;
const FLAG_EXPIRES: u8 = 0b1000_0000;

/// Whether a record's value may be large: that of a field. Objects and pieces are cut.
pub(crate) fn may_be_large(raw: &[u8]) -> bool {
    raw.first() == Some(&Table::Field.prefix())
}

impl Table {
    fn prefix(self) -> u8 {
        match self {
            Table::Field => b'h',
            Table::Member => b'm',
            Table::Score => b's',
            Table::Piece => b'p',
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

/// `h`, `m`, `p` or `s`, the id, the name.
pub(crate) fn record_key(table: Table, id: u64, name: &[u8]) -> RawKey {
    let mut raw = RawKey::with_capacity(name.len() + RECORD_HEAD);
    raw.push(table.prefix());
    raw.extend_from_slice(&id.to_be_bytes());
    raw.extend_from_slice(name);
    raw
}

/// Bytes before the name in a record key.
pub(crate) const RECORD_HEAD: usize = 9;

/// The id in a record key.
pub(crate) fn id_of(raw: &[u8]) -> u64 {
    let id = raw.get(1..RECORD_HEAD).and_then(decode_u64);
    id.unwrap_or_default()
}

/// `p<id><number>`.
pub(crate) fn piece_key(id: u64, number: u64) -> RawKey {
    record_key(Table::Piece, id, &number.to_be_bytes())
}

/// The number in a piece's record key.
pub(crate) fn piece_of(raw: &[u8]) -> u64 {
    let number = raw.get(RECORD_HEAD..).and_then(decode_u64);
    number.unwrap_or_default()
}

/// First and past-the-last key of a table's records under an id.
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
    let (kind, records) = match &entry.object {
        Object::String(Text::Whole(_)) => (TYPE_STRING, None),
        Object::String(Text::Pieces { id, len }) => (TYPE_PIECES, Some((id, len))),
        Object::Collection(Header { kind, id, len }) => match kind {
            Kind::Hash => (TYPE_HASH, Some((id, len))),
            Kind::SortedSet => (TYPE_SORTED_SET, Some((id, len))),
        },
    };
    let expires = entry.expire_at_ms.map_or(0, |_| FLAG_EXPIRES);
    head.push(kind | expires);
    if let Some(at) = entry.expire_at_ms {
        head.extend_from_slice(&at.to_be_bytes());
    }
    if let Some((id, len)) = records {
        head.extend_from_slice(&id.to_be_bytes());
        head.extend_from_slice(&len.to_be_bytes());
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
    let kind = flags & TYPE_MASK;
    let object = if kind == TYPE_STRING {
        Object::String(Text::Whole(Bytes::copy_from_slice(rest)))
    } else {
        let (id, len) = (take_u64(&mut rest)?, take_u64(&mut rest)?);
        let collection = |kind| Object::Collection(Header { kind, id, len });
        match kind {
            TYPE_HASH => collection(Kind::Hash),
            TYPE_SORTED_SET => collection(Kind::SortedSet),
            TYPE_PIECES => Object::String(Text::Pieces { id, len }),
            _ => return None,
        }
    };
    Some(Entry {
        object,
        expire_at_ms,
    })
}

/// When an object expires, in ms since the Unix epoch, without a look at its value; `u64::MAX`:
/// never. `None`: the record is damaged.
pub(crate) fn expires_at(value: &[u8]) -> Option<u64> {
    let (flags, mut rest) = value.split_first()?;
    match flags & FLAG_EXPIRES {
        0 => Some(u64::MAX),
        _ => take_u64(&mut rest),
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
            Object::String(Text::default()),
            Object::String(Text::Whole(Bytes::from_static(b"value"))),
            Object::String(Text::Pieces {
                id: 3,
                len: 1 << 40,
            }),
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
                value.extend_from_slice(entry.whole().map_or(&[], |s| &s[..]));
                assert_eq!(decode(&value), Some(entry));
            }
        }
        assert_eq!(decode(b""), None);
        assert_eq!(decode(&[TYPE_HASH, 1]), None);
        assert_eq!(decode(&[TYPE_MASK; 17]), None);
    }
}
