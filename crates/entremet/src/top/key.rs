//! What a terminal sends for a key.

/// A key that means something here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// A character.
    Char(char),
    /// Enter.
    Enter,
    /// Escape, alone.
    Escape,
    /// Backspace.
    Backspace,
    /// Arrow up.
    Up,
    /// Arrow down.
    Down,
    /// A page up.
    PageUp,
    /// A page down.
    PageDown,
    /// The first line.
    Home,
    /// The last line.
    End,
    /// Ctrl-C, or the end of input.
    Interrupt,
}

/// The keys in what was read at once. A sequence is taken to come in one piece, as terminals send
/// it; an escape with nothing behind it is the key. Unknown sequences are dropped whole.
pub fn keys(bytes: &[u8]) -> Vec<Key> {
    let mut keys = Vec::new();
    let mut rest = bytes;
    while let Some((&first, after)) = rest.split_first() {
        let (key, left) = match first {
            3 | 4 => (Some(Key::Interrupt), after),
            b'\r' | b'\n' => (Some(Key::Enter), after),
            8 | 127 => (Some(Key::Backspace), after),
            27 => sequence(after),
            0..=31 => (None, after),
            _ => character(rest),
        };
        keys.extend(key);
        rest = left;
    }
    keys
}

/// What follows an escape: `[` or `O`, parameters, a final letter or `~`.
fn sequence(after: &[u8]) -> (Option<Key>, &[u8]) {
    let Some((b'[' | b'O', body)) = after.split_first() else {
        return (Some(Key::Escape), after);
    };
    let end = body.iter().position(|byte| (0x40..=0x7e).contains(byte));
    let Some(end) = end else {
        return (None, &[]);
    };
    let key = match (&body[..end], body[end]) {
        (_, b'A') => Some(Key::Up),
        (_, b'B') => Some(Key::Down),
        (_, b'H') | (b"1" | b"7", b'~') => Some(Key::Home),
        (_, b'F') | (b"4" | b"8", b'~') => Some(Key::End),
        (b"5", b'~') => Some(Key::PageUp),
        (b"6", b'~') => Some(Key::PageDown),
        _ => None,
    };
    (key, &body[end + 1..])
}

/// One character of UTF-8; bytes that are none are dropped.
fn character(bytes: &[u8]) -> (Option<Key>, &[u8]) {
    let length = match bytes[0] {
        0..=0x7f => 1,
        0xc0..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xff => 4,
        _ => 1,
    };
    let length = length.min(bytes.len());
    let text = std::str::from_utf8(&bytes[..length]).ok();
    let key = text.and_then(|text| text.chars().next()).map(Key::Char);
    (key, &bytes[length..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_and_characters_are_told_apart() {
        assert_eq!(
            keys(b"jk\x1b[A\x1bOB\r"),
            [
                Key::Char('j'),
                Key::Char('k'),
                Key::Up,
                Key::Down,
                Key::Enter
            ]
        );
        assert_eq!(keys(b"\x1b"), [Key::Escape]);
        assert_eq!(
            keys(b"\x1b[5~\x1b[6~\x1b[1~\x1b[F"),
            [Key::PageUp, Key::PageDown, Key::Home, Key::End]
        );
        assert_eq!(
            keys(b"\x1b[200;3zq"),
            [Key::Char('q')],
            "an unknown sequence is dropped whole"
        );
        assert_eq!(
            keys("é\u{7f}\x03".as_bytes()),
            [Key::Char('é'), Key::Backspace, Key::Interrupt]
        );
        assert_eq!(keys(&[0xff, b'q', 0xc3]), [], "broken text is no key");
        assert_eq!(keys(b"\x1b[1;5"), []);
    }
}
