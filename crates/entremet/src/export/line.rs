//! A key as a line of JSON.
//!
//! ```json
//! {"database":0,"key":"greeting","type":"string","value":"hello","expires_at_ms":1790000000000}
//! {"database":0,"key":"h","type":"hash","value":[["field","value"]]}
//! {"database":0,"key":"z","type":"zset","value":[["member",1.5]]}
//! ```
//!
//! Bytes that are not UTF-8 are `{"base64":"/w=="}` in place of a text. Infinite scores are the
//! texts "inf" and "-inf".

use base64ct::{Base64, Encoding};
use serde_json::{json, Value};

/// Whose key, and when it expires.
#[derive(Clone, Copy, Debug)]
pub struct Key<'k> {
    /// The numbered database.
    pub database: usize,
    /// Its name.
    pub name: &'k [u8],
    /// Milliseconds since 1970; `None`: never.
    pub expires_at_ms: Option<i64>,
}

/// A part of a large collection, which is on several lines.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    /// Counted from 0.
    pub number: u64,
    /// Whether another line follows.
    pub more: bool,
}

impl Key<'_> {
    /// The line, with its end.
    pub fn line(&self, kind: &str, value: Value, part: Option<Part>) -> Vec<u8> {
        let mut object = json!({
            "database": self.database,
            "key": text(self.name),
            "type": kind,
            "value": value,
        });
        if let Some(at_ms) = self.expires_at_ms {
            object["expires_at_ms"] = at_ms.into();
        }
        if let Some(part) = part {
            object["part"] = part.number.into();
            object["more"] = part.more.into();
        }
        let mut line = object.to_string().into_bytes();
        line.push(b'\n');
        line
    }
}

/// Bytes as a text, or in base64.
pub fn text(bytes: &[u8]) -> Value {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.into(),
        Err(_) => json!({ "base64": Base64::encode_string(bytes) }),
    }
}

/// A score as the server writes it.
pub fn score(bytes: &[u8]) -> Value {
    let word = String::from_utf8_lossy(bytes);
    let number: Option<serde_json::Number> = word.parse().ok();
    number.map_or_else(|| Value::String(word.into_owned()), Value::Number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_and_every_score_has_a_text() {
        let key = Key {
            database: 3,
            name: b"a\xff",
            expires_at_ms: Some(5),
        };
        let part = Part {
            number: 1,
            more: false,
        };
        let line = key.line("zset", json!([[text(b"\"\n"), score(b"-inf")]]), Some(part));
        assert!(line.ends_with(b"}\n"));
        let read: Value = serde_json::from_slice(&line).expect("JSON");
        assert_eq!(
            read,
            json!({
                "database": 3, "key": {"base64": "Yf8="}, "type": "zset", "expires_at_ms": 5,
                "value": [["\"\n", "-inf"]], "part": 1, "more": false,
            })
        );
        assert_eq!([score(b"17"), score(b"0.1")], [json!(17), json!(0.1)]);
    }
}
