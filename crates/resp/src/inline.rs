//! Inline requests: words separated by blanks, as typed into a terminal, with the quoting of Redis.

use crate::args::Span;

/// Splits `line` into words appended to `words`, each with its place in `spans`.
///
/// Double quotes know `\n \r \t \b \a \xHH` and take any other escaped byte as itself; single
/// quotes know `\'`. A closing quote must be followed by a blank or the end. Returns false when the
/// quotes do not balance.
pub(crate) fn split(line: &[u8], words: &mut Vec<u8>, spans: &mut Vec<Span>) -> bool {
    // The rest of a line after a NUL does not exist for Redis, which reads it as a C string.
    let line = line.split(|&b| b == 0).next().unwrap_or_default();
    let mut rest = line;
    loop {
        rest = &rest[rest.iter().take_while(|&&byte| is_blank(byte)).count()..];
        if rest.is_empty() {
            return true;
        }
        let start = words.len();
        let Some(used) = word(rest, words) else {
            return false;
        };
        spans.push(Span {
            start: start as u32,
            len: (words.len() - start) as u32,
        });
        rest = &rest[used..];
    }
}

/// Reads one word from the start of `text`; returns how many bytes it took, or `None` for
/// unbalanced quotes.
fn word(text: &[u8], words: &mut Vec<u8>) -> Option<usize> {
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        match byte {
            b' ' | b'\n' | b'\r' | b'\t' => break,
            b'"' | b'\'' => {
                at += quoted(&text[at..], byte, words)?;
                if text.get(at).is_some_and(|&next| !is_blank(next)) {
                    return None;
                }
                break;
            }
            _ => {
                words.push(byte);
                at += 1;
            }
        }
    }
    Some(at)
}

/// Reads a quoted part that starts with `quote`; returns its length with both quotes, or `None` if
/// it never closes.
fn quoted(text: &[u8], quote: u8, words: &mut Vec<u8>) -> Option<usize> {
    let mut at = 1;
    loop {
        match *text.get(at)? {
            byte if byte == quote => return Some(at + 1),
            b'\\' if quote == b'"' && text.get(at + 1).is_some() => {
                at += escape(&text[at..], words)
            }
            b'\\' if quote == b'\'' && text.get(at + 1) == Some(&b'\'') => {
                words.push(b'\'');
                at += 2;
            }
            byte => {
                words.push(byte);
                at += 1;
            }
        }
    }
}

/// Takes one backslash escape of a double-quoted part; `text` has at least two bytes. Returns the
/// bytes it took.
fn escape(text: &[u8], words: &mut Vec<u8>) -> usize {
    if let [_, b'x', high, low, ..] = text {
        if let (Some(high), Some(low)) = ((*high as char).to_digit(16), (*low as char).to_digit(16))
        {
            words.push((high * 16 + low) as u8);
            return 4;
        }
    }
    words.push(match text[1] {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'b' => 8,
        b'a' => 7,
        other => other,
    });
    2
}

/// C's `isspace`, which has the vertical tab that `is_ascii_whitespace` lacks.
fn is_blank(byte: u8) -> bool {
    byte.is_ascii_whitespace() || byte == 0x0b
}
