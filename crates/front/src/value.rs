//! Replies that the front itself reads: the engine's list of commands, its answer to a greeting.

use resp::parse_i64;

/// No reply that is read here nests deeper.
const DEPTH_MAX: usize = 16;

/// A reply in RESP2.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// A status, or a string.
    Text(Vec<u8>),
    /// An error.
    Error(String),
    /// An integer.
    Int(i64),
    /// Nothing.
    Null,
    /// An array.
    List(Vec<Value>),
}

impl Value {
    /// Reads the reply that `bytes` are, whole. None: they are not.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let mut at = 0;
        let value = read(bytes, &mut at, 0)?;
        (at == bytes.len()).then_some(value)
    }

    /// The items of an array; of anything else none.
    pub fn items(&self) -> &[Value] {
        match self {
            Self::List(items) => items,
            _ => &[],
        }
    }

    /// The text of a string or status.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => std::str::from_utf8(text).ok(),
            _ => None,
        }
    }

    /// An integer.
    pub fn int(&self) -> Option<i64> {
        match self {
            Self::Int(value) => Some(*value),
            _ => None,
        }
    }

    /// What follows the item `name` in a flat list of pairs.
    pub fn get(&self, name: &str) -> Option<&Value> {
        let items = self.items();
        let pair = items
            .chunks_exact(2)
            .find(|pair| pair[0].text() == Some(name));
        pair.map(|pair| &pair[1])
    }
}

fn read(bytes: &[u8], at: &mut usize, depth: usize) -> Option<Value> {
    let rest = bytes.get(*at..)?;
    let len = rest.iter().position(|byte| *byte == b'\r')?;
    let (kind, line) = (rest.first()?, rest.get(1..len)?);
    *at += len + 2;
    Some(match kind {
        b'+' => Value::Text(line.to_vec()),
        b'-' => Value::Error(String::from_utf8_lossy(line).into_owned()),
        b':' => Value::Int(parse_i64(line)?),
        b'$' => match usize::try_from(parse_i64(line)?) {
            Err(_) => Value::Null,
            Ok(len) => {
                let text = bytes.get(*at..)?.get(..len)?.to_vec();
                *at += len + 2;
                Value::Text(text)
            }
        },
        b'*' if depth < DEPTH_MAX => match usize::try_from(parse_i64(line)?) {
            Err(_) => Value::Null,
            Ok(len) => {
                let items = (0..len).map(|_| read(bytes, at, depth + 1));
                Value::List(items.collect::<Option<_>>()?)
            }
        },
        _ => return None,
    })
}

/// Appends a request of these words to `out`.
pub fn frame<'w>(words: impl ExactSizeIterator<Item = &'w [u8]>, out: &mut Vec<u8>) {
    head(b'*', words.len(), out);
    words.for_each(|word| bulk(word, out));
}

/// A string, as requests and replies have it.
pub(crate) fn bulk(word: &[u8], out: &mut Vec<u8>) {
    head(b'$', word.len(), out);
    out.extend_from_slice(word);
    out.extend_from_slice(b"\r\n");
}

/// The line before a string or an array.
pub(crate) fn head(kind: u8, len: usize, out: &mut Vec<u8>) {
    // Twenty digits at most, from the last.
    let (mut digits, mut from, mut left) = ([0; 20], 20, len);
    loop {
        from -= 1;
        digits[from] = b'0' + (left % 10) as u8;
        left /= 10;
        if left == 0 {
            break;
        }
    }
    out.push(kind);
    out.extend_from_slice(&digits[from..]);
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let mut request = Vec::new();
        let words: [&[u8]; 3] = [b"SET", b"", &[b'x'; 1_234]];
        frame(words.into_iter(), &mut request);
        assert!(request.starts_with(b"*3\r\n$3\r\nSET\r\n$0\r\n\r\n$1234\r\nx"));
        let value = Value::read(&request).expect("a list");
        assert_eq!(value.items()[2], Value::Text(vec![b'x'; 1_234]));
        assert_eq!(Value::read(&request[..request.len() - 3]), None);
    }

    #[test]
    fn pairs_are_found_by_name() {
        let value = Value::read(b"*4\r\n$4\r\nmode\r\n+on\r\n$1\r\nn\r\n:-1\r\n").expect("pairs");
        assert_eq!(value.get("mode").and_then(Value::text), Some("on"));
        assert_eq!(value.get("n").and_then(Value::int), Some(-1));
        assert_eq!(value.get("on"), None);
    }

    #[test]
    fn what_nests_too_deep_is_not_read() {
        let deep = "*1\r\n".repeat(100_000);
        assert_eq!(Value::read(deep.as_bytes()), None);
    }
}
