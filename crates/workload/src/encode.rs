//! Requests as bytes: keys and values made from numbers, written straight into the send buffer.

use std::sync::OnceLock;
use std::time::SystemTime;

use crate::draw::{Class, Draw, Ttl};
use crate::rng::Rng;
use policy::generator::mix64;

/// Key lengths outside this range are clamped into it: 16 hexadecimal digits carry the key number.
const KEY_BYTES: std::ops::RangeInclusive<u16> = 16..=255;

/// What comes behind the digits of a key.
const PADDING: [u8; 255] = [b'.'; 255];

/// How the keys of a load look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyText {
    seed: u64,
    bytes: u16,
}

impl KeyText {
    /// Keys of `bytes` bytes (clamped to 16..=255), scattered by `seed`: loads with different seeds
    /// never meet in a key.
    pub fn new(seed: u64, bytes: u16) -> Self {
        Self {
            seed,
            bytes: bytes.clamp(*KEY_BYTES.start(), *KEY_BYTES.end()),
        }
    }

    fn push(self, out: &mut Vec<u8>, key: u64) {
        push_header(out, b'$', u64::from(self.bytes));
        self.push_text(out, key);
    }

    /// The key without its length, and the line end.
    fn push_text(self, out: &mut Vec<u8>, key: u64) {
        let text = self.digits(key);
        out.extend_from_slice(&text);
        out.extend_from_slice(&PADDING[..usize::from(self.bytes) - text.len()]);
        out.extend_from_slice(b"\r\n");
    }

    fn digits(self, key: u64) -> [u8; 16] {
        const HEX: &[u8; 16] = b"0123456789abcdef";
        let word = mix64(self.seed ^ key);
        let mut text = [0; 16];
        for (i, digit) in text.iter_mut().enumerate() {
            *digit = HEX[(word >> (60 - 4 * i)) as usize & 15];
        }
        text
    }

    /// The hash slot of a key.
    fn slot(self, key: u64) -> u16 {
        let mut text = PADDING;
        text[..16].copy_from_slice(&self.digits(key));
        front::slot(&text[..usize::from(self.bytes)])
    }
}

/// The hash slot of a request whose one key this is ([`Class::has_home`]).
pub(crate) fn slot(class: Class, key: u64, text: KeyText) -> u16 {
    match class {
        Class::Increment => text.slot(key ^ COUNTER),
        _ => text.slot(key),
    }
}

/// Appends the request to `out`.
pub(crate) fn request(out: &mut Vec<u8>, draw: Draw, keys: &[u64], text: KeyText) {
    match draw.class {
        Class::Get => out.extend_from_slice(b"*2\r\n$3\r\nGET\r\n"),
        Class::Bitcount => out.extend_from_slice(b"*2\r\n$8\r\nBITCOUNT\r\n"),
        Class::Delete => out.extend_from_slice(b"*2\r\n$3\r\nDEL\r\n"),
        Class::Put if draw.ttl == Ttl::None => out.extend_from_slice(b"*3\r\n$3\r\nSET\r\n"),
        Class::Put => out.extend_from_slice(b"*5\r\n$3\r\nSET\r\n"),
        Class::Multiget => {
            push_header(out, b'*', keys.len() as u64 + 1);
            out.extend_from_slice(b"$4\r\nMGET\r\n");
        }
        Class::Range => return range(out, draw, keys[0], text),
        Class::Increment => {
            out.extend_from_slice(b"*2\r\n$4\r\nINCR\r\n");
            return text.push(out, keys[0] ^ COUNTER);
        }
        Class::Ping => return out.extend_from_slice(b"*1\r\n$4\r\nPING\r\n"),
        Class::Invalid => return invalid(out, keys[0], text),
    }
    for key in keys {
        text.push(out, *key);
    }
    if draw.class == Class::Put {
        push_value(out, keys[0], draw.value_bytes as usize);
        let ttl_ms = match draw.ttl {
            Ttl::None => return,
            Ttl::Ms(ms) => ms,
            Ttl::TogetherMs(ms) => ms - wall_ms() % ms,
        };
        out.extend_from_slice(b"$2\r\nPX\r\n");
        push_bulk(out, ttl_ms.to_string().as_bytes());
    }
}

/// Tells a key's counter from the key.
const COUNTER: u64 = 1 << 63;

fn wall_ms() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| since.as_millis() as u64)
}

/// From a key on, wherever it lies in the order of keys.
fn range(out: &mut Vec<u8>, draw: Draw, key: u64, text: KeyText) {
    let words = if draw.values { b'5' } else { b'6' };
    out.extend_from_slice(&[b'*', words]);
    out.extend_from_slice(b"\r\n$14\r\nENTREMET.RANGE\r\n");
    push_header(out, b'$', u64::from(text.bytes) + 1);
    out.push(b'[');
    text.push_text(out, key);
    out.extend_from_slice(b"$1\r\n+\r\n$5\r\nCOUNT\r\n");
    push_bulk(out, draw.count.to_string().as_bytes());
    if !draw.values {
        out.extend_from_slice(b"$4\r\nKEYS\r\n");
    }
}

/// A command that fails, of another kind for each of four keys.
fn invalid(out: &mut Vec<u8>, key: u64, text: KeyText) {
    let words: (&[u8], &[u8]) = match key % 4 {
        0 => (b"*2\r\n$8\r\nNOSUCHIT\r\n", b""),
        1 => (b"*1\r\n$3\r\nGET\r\n", b""),
        2 => (
            b"*5\r\n$3\r\nSET\r\n",
            b"$1\r\nv\r\n$5\r\nTWICE\r\n$1\r\n1\r\n",
        ),
        _ => (b"*3\r\n$6\r\nINCRBY\r\n", b"$4\r\nmany\r\n"),
    };
    out.extend_from_slice(words.0);
    if key % 4 != 1 {
        text.push(out, key);
    }
    out.extend_from_slice(words.1);
}

/// Appends a command given as words.
pub(crate) fn command(out: &mut Vec<u8>, words: &[&[u8]]) {
    push_header(out, b'*', words.len() as u64);
    for word in words {
        push_bulk(out, word);
    }
}

fn push_bulk(out: &mut Vec<u8>, bytes: &[u8]) {
    push_header(out, b'$', bytes.len() as u64);
    out.extend_from_slice(bytes);
    out.extend_from_slice(b"\r\n");
}

fn push_header(out: &mut Vec<u8>, kind: u8, mut n: u64) {
    let mut text = [0; 23];
    let mut at = text.len() - 2;
    text[at..].copy_from_slice(b"\r\n");
    loop {
        at -= 1;
        text[at] = b'0' + (n % 10) as u8;
        n /= 10;
        if n == 0 {
            break;
        }
    }
    at -= 1;
    text[at] = kind;
    out.extend_from_slice(&text[at..]);
}

/// Random bytes (a value that compresses well would flatter a storage engine), different per key,
/// the same for the same key.
fn push_value(out: &mut Vec<u8>, key: u64, bytes: usize) {
    static POOL: OnceLock<Vec<u8>> = OnceLock::new();
    const POOL_BYTES: usize = 1 << 16;
    let pool = POOL.get_or_init(|| {
        let mut rng = Rng::new(0, 0);
        (0..POOL_BYTES / 8)
            .flat_map(|_| rng.bits().to_le_bytes())
            .collect()
    });
    push_header(out, b'$', bytes as u64);
    let mut from = mix64(key) as usize % POOL_BYTES;
    let mut left = bytes;
    while left > 0 {
        let part = left.min(POOL_BYTES - from);
        out.extend_from_slice(&pool[from..from + part]);
        left -= part;
        from = 0;
    }
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encode(class: Class, keys: &[u64], value_bytes: u32, ttl: Ttl) -> Vec<u8> {
        let mut out = Vec::new();
        request(
            &mut out,
            Draw {
                value_bytes,
                ttl,
                count: 9,
                ..Draw::new(class)
            },
            keys,
            KeyText::new(1, 20),
        );
        out
    }

    #[test]
    fn requests_are_well_formed() {
        let get = encode(Class::Get, &[5], 0, Ttl::None);
        assert!(get.starts_with(b"*2\r\n$3\r\nGET\r\n$20\r\n"));
        assert!(get.ends_with(b"....\r\n"));
        assert_eq!(get.len(), 13 + 5 + 20 + 2);
        let put = encode(Class::Put, &[5], 70_000, Ttl::Ms(9));
        assert!(put.starts_with(b"*5\r\n$3\r\nSET\r\n$20\r\n"));
        assert!(put.ends_with(b"\r\n$2\r\nPX\r\n$1\r\n9\r\n"));
        assert_eq!(put.len(), 13 + 27 + (8 + 70_000 + 2) + 8 + 7);
        let multiget = encode(Class::Multiget, &[1, 2, 3], 0, Ttl::None);
        assert!(multiget.starts_with(b"*4\r\n$4\r\nMGET\r\n$20\r\n"));
        assert_eq!(multiget.len(), 14 + 3 * 27);
        let bitcount = encode(Class::Bitcount, &[5], 0, Ttl::None);
        assert!(bitcount.starts_with(b"*2\r\n$8\r\nBITCOUNT\r\n$20\r\n"));
        assert!(encode(Class::Delete, &[5], 0, Ttl::None).starts_with(b"*2\r\n$3\r\nDEL\r\n"));
        let mut out = Vec::new();
        command(&mut out, &[b"HELLO", b"3"]);
        assert_eq!(out, b"*2\r\n$5\r\nHELLO\r\n$1\r\n3\r\n");
    }

    /// As the server finds it: of the key that is sent.
    #[test]
    fn slots_are_those_of_the_keys_that_are_sent() {
        let text = KeyText::new(1, 20);
        for class in Class::ALL.into_iter().filter(|class| class.has_home()) {
            for key in [0, 5, 1 << 40] {
                let sent = encode(class, &[key], 3, Ttl::None);
                let at = sent.windows(5).position(|part| part == b"$20\r\n");
                let key_sent = &sent[at.expect("a key") + 5..][..20];
                assert_eq!(slot(class, key, text), front::slot(key_sent), "{class:?}");
            }
        }
    }

    #[test]
    fn keys_and_values_repeat_and_differ() {
        assert_eq!(
            encode(Class::Put, &[5], 64, Ttl::None),
            encode(Class::Put, &[5], 64, Ttl::None)
        );
        assert_ne!(
            encode(Class::Get, &[5], 0, Ttl::None),
            encode(Class::Get, &[6], 0, Ttl::None)
        );
    }
}
