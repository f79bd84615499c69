//! Requests as bytes: keys and values made from numbers, written straight into the send buffer.

use std::sync::OnceLock;

use crate::draw::{Class, Draw};
use crate::rng::{mix64, Rng};

/// Key lengths outside this range are clamped into it: 16 hexadecimal digits carry the key number.
const KEY_BYTES: std::ops::RangeInclusive<u16> = 16..=255;

/// How the keys of one tenant look.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyText {
    seed: u64,
    bytes: u16,
}

impl KeyText {
    /// Keys of `bytes` bytes (clamped to 16..=255), scattered by `seed`.
    pub(crate) fn new(seed: u64, bytes: u16) -> Self {
        Self {
            seed,
            bytes: bytes.clamp(*KEY_BYTES.start(), *KEY_BYTES.end()),
        }
    }

    fn push(self, out: &mut Vec<u8>, key: u64) {
        const HEX: &[u8; 16] = b"0123456789abcdef";
        const PADDING: [u8; 255] = [b'.'; 255];
        push_header(out, b'$', u64::from(self.bytes));
        let word = mix64(self.seed ^ key);
        let mut text = [0; 16];
        for (i, digit) in text.iter_mut().enumerate() {
            *digit = HEX[(word >> (60 - 4 * i)) as usize & 15];
        }
        out.extend_from_slice(&text);
        out.extend_from_slice(&PADDING[..usize::from(self.bytes) - text.len()]);
        out.extend_from_slice(b"\r\n");
    }
}

/// Appends the request to `out`.
pub(crate) fn request(out: &mut Vec<u8>, draw: Draw, keys: &[u64], text: KeyText) {
    match draw.class {
        Class::Get => out.extend_from_slice(b"*2\r\n$3\r\nGET\r\n"),
        Class::Delete => out.extend_from_slice(b"*2\r\n$3\r\nDEL\r\n"),
        Class::Put if draw.ttl_s == 0 => out.extend_from_slice(b"*3\r\n$3\r\nSET\r\n"),
        Class::Put => out.extend_from_slice(b"*5\r\n$3\r\nSET\r\n"),
        Class::Multiget => {
            push_header(out, b'*', keys.len() as u64 + 1);
            out.extend_from_slice(b"$4\r\nMGET\r\n");
        }
    }
    for key in keys {
        text.push(out, *key);
    }
    if draw.class == Class::Put {
        push_value(out, keys[0], draw.value_bytes as usize);
        if draw.ttl_s > 0 {
            out.extend_from_slice(b"$2\r\nEX\r\n");
            push_bulk(out, draw.ttl_s.to_string().as_bytes());
        }
    }
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

    fn encode(class: Class, keys: &[u64], value_bytes: u32, ttl_s: u32) -> Vec<u8> {
        let mut out = Vec::new();
        request(
            &mut out,
            Draw {
                class,
                value_bytes,
                ttl_s,
            },
            keys,
            KeyText::new(1, 20),
        );
        out
    }

    #[test]
    fn requests_are_well_formed() {
        let get = encode(Class::Get, &[5], 0, 0);
        assert!(get.starts_with(b"*2\r\n$3\r\nGET\r\n$20\r\n"));
        assert!(get.ends_with(b"....\r\n"));
        assert_eq!(get.len(), 13 + 5 + 20 + 2);
        let put = encode(Class::Put, &[5], 70_000, 9);
        assert!(put.starts_with(b"*5\r\n$3\r\nSET\r\n$20\r\n"));
        assert!(put.ends_with(b"\r\n$2\r\nEX\r\n$1\r\n9\r\n"));
        assert_eq!(put.len(), 13 + 27 + (8 + 70_000 + 2) + 8 + 7);
        let multiget = encode(Class::Multiget, &[1, 2, 3], 0, 0);
        assert!(multiget.starts_with(b"*4\r\n$4\r\nMGET\r\n$20\r\n"));
        assert_eq!(multiget.len(), 14 + 3 * 27);
        assert!(encode(Class::Delete, &[5], 0, 0).starts_with(b"*2\r\n$3\r\nDEL\r\n"));
        let mut out = Vec::new();
        command(&mut out, &[b"HELLO", b"3"]);
        assert_eq!(out, b"*2\r\n$5\r\nHELLO\r\n$1\r\n3\r\n");
    }

    #[test]
    fn keys_and_values_repeat_and_differ() {
        assert_eq!(
            encode(Class::Put, &[5], 64, 0),
            encode(Class::Put, &[5], 64, 0)
        );
        assert_ne!(
            encode(Class::Get, &[5], 0, 0),
            encode(Class::Get, &[6], 0, 0)
        );
    }
}
