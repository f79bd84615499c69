//! Random commands on long strings beside plain vectors of bytes: what lies in one record, what
//! lies in pieces, and what becomes the one from the other.

mod tenant;

use std::collections::BTreeMap;

use engine::{Engine, EngineOptions, PIECE_BYTES, WHOLE_BYTES_MAX};
use proptest::prelude::*;
use tenant::{Tenant, Way};

type Key = u8;

#[derive(Clone, Debug)]
enum Op {
    Set(Key, Vec<u8>),
    Get(Key),
    GetAll,
    SetGet(Key, Vec<u8>),
    GetSet(Key, Vec<u8>),
    GetDel(Key),
    GetEx(Key),
    Append(Key, Vec<u8>),
    SetRange(Key, u64, Vec<u8>),
    GetRange(Key, i64, i64),
    Strlen(Key),
    SetBit(Key, u64, bool),
    GetBit(Key, u64),
    BitCount(Key, i64, i64, bool),
    BitPos(Key, bool, i64, i64, bool),
    Combine(&'static str, Key, Vec<Key>),
    Copy(Key, Key),
    Rename(Key, Key),
    Values,
}

const KEYS: Key = 4;

/// A place in a string, most of them beside an end of a piece or where strings begin to be cut.
fn place() -> impl Strategy<Value = u64> {
    let edge = prop_oneof![
        3 => (0..5u64).prop_map(|piece| piece * PIECE_BYTES as u64),
        1 => Just(WHOLE_BYTES_MAX as u64),
    ];
    prop_oneof![
        4 => (edge, 0..8u64).prop_map(|(edge, by)| (edge + by).saturating_sub(4)),
        1 => 0..5 * PIECE_BYTES as u64,
    ]
}

/// Letters that differ from place to place.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let len = prop_oneof![3 => 0..9u64, 2 => place()];
    (0..90u64, len).prop_map(|(seed, len)| {
        let letter = |at: u64| b'A' + ((at * 7 + at / 26 + seed) % 26) as u8;
        (0..len).map(letter).collect()
    })
}

/// A place from either end, in units of bytes or bits.
fn index() -> impl Strategy<Value = i64> {
    (
        place(),
        any::<bool>(),
        prop_oneof![2 => Just(1), 1 => Just(8)],
    )
        .prop_map(|(at, back, unit)| at as i64 * unit * if back { -1 } else { 1 })
}

fn op() -> impl Strategy<Value = Op> {
    let key = || 0..KEYS;
    let operation = prop_oneof![Just("AND"), Just("OR"), Just("XOR")];
    prop_oneof![
        2 => (key(), bytes()).prop_map(|(k, v)| Op::Set(k, v)),
        2 => key().prop_map(Op::Get),
        1 => Just(Op::GetAll),
        1 => (key(), bytes()).prop_map(|(k, v)| Op::SetGet(k, v)),
        1 => (key(), bytes()).prop_map(|(k, v)| Op::GetSet(k, v)),
        1 => key().prop_map(Op::GetDel),
        1 => key().prop_map(Op::GetEx),
        4 => (key(), bytes()).prop_map(|(k, v)| Op::Append(k, v)),
        6 => (key(), place(), bytes()).prop_map(|(k, at, v)| Op::SetRange(k, at, v)),
        4 => (key(), index(), index()).prop_map(|(k, a, b)| Op::GetRange(k, a, b)),
        1 => key().prop_map(Op::Strlen),
        3 => (key(), place(), 0..8u64, any::<bool>())
            .prop_map(|(k, at, bit, on)| Op::SetBit(k, at * 8 + bit, on)),
        3 => (key(), place(), 0..8u64).prop_map(|(k, at, bit)| Op::GetBit(k, at * 8 + bit)),
        3 => (key(), index(), index(), any::<bool>())
            .prop_map(|(k, a, b, bits)| Op::BitCount(k, a, b, bits)),
        3 => (key(), any::<bool>(), index(), index(), any::<bool>())
            .prop_map(|(k, on, a, b, bits)| Op::BitPos(k, on, a, b, bits)),
        3 => (operation, key(), prop::collection::vec(key(), 1..5))
            .prop_map(|(name, to, from)| Op::Combine(name, to, from)),
        1 => (key(), key()).prop_map(|(to, from)| Op::Combine("NOT", to, vec![from])),
        1 => (key(), key()).prop_filter("two", |(a, b)| a != b).prop_map(|(a, b)| Op::Copy(a, b)),
        1 => (key(), key()).prop_map(|(a, b)| Op::Rename(a, b)),
        1 => Just(Op::Values),
    ]
}

/// The same commands over vectors.
#[derive(Clone, Default)]
struct Model(BTreeMap<Key, Vec<u8>>);

fn bulk(value: Option<&Vec<u8>>) -> Vec<u8> {
    match value {
        Some(value) => [format!("${}\r\n", value.len()).as_bytes(), value, b"\r\n"].concat(),
        None => b"$-1\r\n".to_vec(),
    }
}

fn array(items: impl ExactSizeIterator<Item = Vec<u8>>) -> Vec<u8> {
    let mut reply = format!("*{}\r\n", items.len()).into_bytes();
    items.for_each(|item| reply.extend_from_slice(&item));
    reply
}

fn int(value: i64) -> Vec<u8> {
    format!(":{value}\r\n").into_bytes()
}

const OK: &[u8] = b"+OK\r\n";

/// The part between two places that may count from the end.
fn range(len: usize, start: i64, end: i64) -> std::ops::Range<usize> {
    if start < 0 && end < 0 && start > end {
        return 0..0;
    }
    let place = |at: i64| if at < 0 { (at + len as i64).max(0) } else { at };
    let (start, end) = (place(start), (place(end) + 1).min(len as i64));
    match start < end {
        true => start as usize..end as usize,
        false => 0..0,
    }
}

fn bits(value: &[u8]) -> Vec<bool> {
    let bits = value
        .iter()
        .flat_map(|byte| (0..8).map(move |bit| byte << bit & 0x80 != 0));
    bits.collect()
}

impl Model {
    fn value(&self, key: Key) -> Vec<u8> {
        self.0.get(&key).cloned().unwrap_or_default()
    }

    fn put(&mut self, key: Key, value: Vec<u8>) -> Vec<u8> {
        let len = value.len() as i64;
        self.0.insert(key, value);
        int(len)
    }

    fn write(&mut self, key: Key, at: usize, bytes: &[u8]) -> Vec<u8> {
        let mut value = self.value(key);
        if bytes.is_empty() {
            return int(value.len() as i64);
        }
        value.resize(value.len().max(at + bytes.len()), 0);
        value[at..at + bytes.len()].copy_from_slice(bytes);
        self.put(key, value)
    }

    fn bit(&self, key: Key, at: u64) -> bool {
        let byte = self.value(key).get(at as usize / 8).copied();
        byte.is_some_and(|byte| byte << (at % 8) & 0x80 != 0)
    }

    /// Bits of a range in bytes or bits, with the place of the first.
    fn bits(&self, key: Key, start: i64, end: i64, in_bits: bool) -> (usize, Vec<bool>) {
        let all = bits(&self.value(key));
        let unit = if in_bits { 1 } else { 8 };
        let range = range(all.len() / unit, start, end);
        (
            range.start * unit,
            all[range.start * unit..range.end * unit].to_vec(),
        )
    }

    fn apply(&mut self, op: &Op) -> Vec<u8> {
        match op {
            Op::Set(k, v) => {
                self.put(*k, v.clone());
                OK.to_vec()
            }
            Op::Get(k) | Op::GetEx(k) => bulk(self.0.get(k)),
            Op::GetAll => array((0..KEYS).map(|k| bulk(self.0.get(&k)))),
            Op::SetGet(k, v) | Op::GetSet(k, v) => bulk(self.0.insert(*k, v.clone()).as_ref()),
            Op::GetDel(k) => bulk(self.0.remove(k).as_ref()),
            Op::Append(k, v) => {
                let value = [&self.value(*k)[..], v].concat();
                self.put(*k, value)
            }
            Op::SetRange(k, at, v) => self.write(*k, *at as usize, v),
            Op::GetRange(k, a, b) => {
                let value = self.value(*k);
                bulk(Some(&value[range(value.len(), *a, *b)].to_vec()))
            }
            Op::Strlen(k) => int(self.value(*k).len() as i64),
            Op::GetBit(k, at) => int(self.bit(*k, *at).into()),
            Op::SetBit(k, at, on) => {
                let was = self.bit(*k, *at);
                let byte = self.value(*k).get(*at as usize / 8).copied().unwrap_or(0);
                let mask = 0x80 >> (at % 8);
                let byte = if *on { byte | mask } else { byte & !mask };
                self.write(*k, *at as usize / 8, &[byte]);
                int(was.into())
            }
            Op::BitCount(k, a, b, in_bits) => {
                let (_, bits) = self.bits(*k, *a, *b, *in_bits);
                int(bits.iter().filter(|bit| **bit).count() as i64)
            }
            Op::Copy(a, b) => {
                let value = self.0.get(a).cloned();
                let copied = value.map(|value| self.0.insert(*b, value));
                int(copied.is_some().into())
            }
            Op::Rename(a, b) => match self.0.remove(a) {
                Some(value) => {
                    self.0.insert(*b, value);
                    OK.to_vec()
                }
                None => b"-ERR no such key\r\n".to_vec(),
            },
            Op::Values => array(self.0.values().map(|value| bulk(Some(value)))),
            other => self.apply_rest(other),
        }
    }

    fn apply_rest(&mut self, op: &Op) -> Vec<u8> {
        match op {
            Op::BitPos(k, on, a, b, in_bits) => {
                if !self.0.contains_key(k) {
                    return int(if *on { -1 } else { 0 });
                }
                // Unlike BITCOUNT, it takes two negative places in the wrong order as they come.
                let len = self.value(*k).len() as i64 * if *in_bits { 8 } else { 1 };
                let clamped = |at: i64| if at < 0 { (at + len).max(0) } else { at };
                let (first, bits) = self.bits(*k, clamped(*a), clamped(*b), *in_bits);
                let found = bits.iter().position(|bit| bit == on);
                int(found.map_or(-1, |at| (first + at) as i64))
            }
            Op::Combine(name, to, from) => {
                let sources: Vec<_> = from.iter().map(|key| self.value(*key)).collect();
                let len = sources.iter().map(Vec::len).max().unwrap_or(0);
                let byte = |at: usize| {
                    let bytes = sources
                        .iter()
                        .map(|source| source.get(at).copied().unwrap_or(0));
                    let combined = bytes.reduce(|a, b| match *name {
                        "AND" => a & b,
                        "OR" => a | b,
                        _ => a ^ b,
                    });
                    let combined = combined.unwrap_or(0);
                    if *name == "NOT" {
                        !combined
                    } else {
                        combined
                    }
                };
                let value: Vec<u8> = (0..len).map(byte).collect();
                match len {
                    0 => self.0.remove(to),
                    _ => self.0.insert(*to, value),
                };
                int(len as i64)
            }
            other => panic!("{other:?}"),
        }
    }
}

fn line(op: &Op) -> String {
    let text = |bytes: &[u8]| format!("\"{}\"", String::from_utf8_lossy(bytes));
    let unit = |in_bits: &bool| if *in_bits { "BIT" } else { "BYTE" };
    match op {
        Op::Set(k, v) => format!("SET {k} {}", text(v)),
        Op::Get(k) => format!("GET {k}"),
        Op::GetAll => "MGET 0 1 2 3".to_owned(),
        Op::SetGet(k, v) => format!("SET {k} {} GET", text(v)),
        Op::GetSet(k, v) => format!("GETSET {k} {}", text(v)),
        Op::GetDel(k) => format!("GETDEL {k}"),
        Op::GetEx(k) => format!("GETEX {k} EX 100"),
        Op::Append(k, v) => format!("APPEND {k} {}", text(v)),
        Op::SetRange(k, at, v) => format!("SETRANGE {k} {at} {}", text(v)),
        Op::GetRange(k, a, b) => format!("GETRANGE {k} {a} {b}"),
        Op::Strlen(k) => format!("STRLEN {k}"),
        Op::SetBit(k, at, on) => format!("SETBIT {k} {at} {}", i32::from(*on)),
        Op::GetBit(k, at) => format!("GETBIT {k} {at}"),
        Op::BitCount(k, a, b, bits) => format!("BITCOUNT {k} {a} {b} {}", unit(bits)),
        Op::BitPos(k, on, a, b, bits) => {
            format!("BITPOS {k} {} {a} {b} {}", i32::from(*on), unit(bits))
        }
        Op::Combine(name, to, from) => {
            let from: Vec<_> = from.iter().map(Key::to_string).collect();
            format!("BITOP {name} {to} {}", from.join(" "))
        }
        Op::Copy(a, b) => format!("COPY {a} {b} REPLACE"),
        Op::Rename(a, b) => format!("RENAME {a} {b}"),
        Op::Values => "ENTREMET.RANGE - + VALUES".to_owned(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn long_strings_are_what_vectors_are(ops in prop::collection::vec(op(), 1..60)) {
        let data = tempfile::tempdir().unwrap();
        let engine = Engine::open(EngineOptions::new(data.path())).unwrap();
        for (name, way) in [("m", Way::Memory), ("l", Way::Latch), ("s", Way::Stream)] {
            let tenant = Tenant::new(&engine, name, way);
            let mut model = Model::default();
            for (at, op) in ops.iter().enumerate() {
                let (got, want) = (tenant.answer(&line(op)), model.apply(op));
                let shown = |reply: &[u8]| {
                    let start = &reply[..reply.len().min(80)];
                    format!("{} bytes: {}", reply.len(), start.escape_ascii())
                };
                prop_assert!(
                    got == want,
                    "{:?}, command {}: {}\n  got  {}\n  want {}",
                    way, at, line(op).chars().take(80).collect::<String>(), shown(&got), shown(&want)
                );
            }
        }
        engine.shutdown();
    }
}
