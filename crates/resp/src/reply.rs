//! Writes replies in RESP2 or RESP3. A command says what it means (a map, a double, nothing); the
//! protocol that the client chose with `HELLO` decides the bytes.

use bytes::Bytes;

use crate::double::write_double;
use crate::output::{Mark, Output};
use crate::BY_REFERENCE_BYTES;

/// The protocol of one connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// The protocol of Redis before 6, with which every connection starts.
    #[default]
    Resp2,
    /// After `HELLO 3`.
    Resp3,
}

impl Protocol {
    /// 2 or 3.
    pub fn version(self) -> i64 {
        match self {
            Protocol::Resp2 => 2,
            Protocol::Resp3 => 3,
        }
    }
}

/// Writes one client's replies to its output.
pub struct Reply<'o> {
    output: &'o mut Output,
    protocol: Protocol,
}

impl<'o> Reply<'o> {
    /// A writer of `protocol` to the end of `output`.
    pub fn new(output: &'o mut Output, protocol: Protocol) -> Self {
        Reply { output, protocol }
    }

    /// The same writer for a shorter time.
    pub fn reborrow(&mut self) -> Reply<'_> {
        Reply {
            output: self.output,
            protocol: self.protocol,
        }
    }

    /// The client's protocol.
    pub fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// True when the client speaks RESP3.
    pub fn is_resp3(&self) -> bool {
        self.protocol == Protocol::Resp3
    }

    /// The present end of the output.
    pub fn mark(&self) -> Mark {
        self.output.mark()
    }

    /// Bytes in the output, written by whomever.
    pub fn len_bytes(&self) -> usize {
        self.output.len()
    }

    /// True when the reply is given away piece by piece while it is written.
    pub fn is_streamed(&self) -> bool {
        self.output.is_streamed()
    }

    /// True when nobody will see the reply.
    pub fn is_unseen(&self) -> bool {
        self.output.is_unseen()
    }

    /// Takes back everything written since `mark`.
    pub fn rollback(&mut self, mark: Mark) {
        self.output.rollback(mark);
    }

    /// `+OK`.
    pub fn ok(&mut self) {
        self.output.write(b"+OK\r\n");
    }

    /// A simple string, which must hold no line end.
    pub fn simple(&mut self, text: &str) {
        self.line(b'+', text.as_bytes());
    }

    /// An error. `text` starts with its code (`ERR`, `WRONGTYPE`, …); line ends in it become
    /// blanks.
    pub fn error(&mut self, text: &str) {
        let text = text.trim_matches(['\r', '\n']);
        let tail = self.output.tail();
        tail.push(b'-');
        tail.extend(text.bytes().map(|byte| {
            if matches!(byte, b'\r' | b'\n') {
                b' '
            } else {
                byte
            }
        }));
        tail.extend_from_slice(b"\r\n");
    }

    /// An integer.
    #[inline]
    pub fn int(&mut self, value: i64) {
        self.number(b':', value);
    }

    /// A count of things.
    #[inline]
    pub fn count(&mut self, value: usize) {
        self.number(b':', value as i64);
    }

    /// A string.
    #[inline]
    pub fn bulk(&mut self, value: &[u8]) {
        let mut buffer = itoa::Buffer::new();
        let len = buffer.format(value.len()).as_bytes();
        let tail = self.output.tail();
        tail.reserve(value.len() + len.len() + 5);
        tail.push(b'$');
        tail.extend_from_slice(len);
        tail.extend_from_slice(b"\r\n");
        tail.extend_from_slice(value);
        tail.extend_from_slice(b"\r\n");
        self.output.pour();
    }

    /// A string that is sent without a copy when it is large.
    #[inline]
    pub fn bulk_bytes(&mut self, value: &Bytes) {
        if value.len() < BY_REFERENCE_BYTES {
            return self.bulk(value);
        }
        self.number(b'$', value.len() as i64);
        self.output.write_bytes(value.clone());
        self.output.write(b"\r\n");
        self.output.pour();
    }

    /// The beginning of a string of `len` bytes, which come with [`Reply::part`].
    pub fn begin_bulk(&mut self, len: u64) {
        self.number(b'$', len as i64);
    }

    /// The next bytes of a string that was begun.
    pub fn part(&mut self, part: &Bytes) {
        match part.len() < BY_REFERENCE_BYTES {
            true => self.output.write(part),
            false => self.output.write_bytes(part.clone()),
        }
        self.output.pour();
    }

    /// The end of a string that was begun.
    pub fn end_bulk(&mut self) {
        self.output.write(b"\r\n");
    }

    /// A string or, for `None`, nothing.
    pub fn bulk_or_null(&mut self, value: Option<&Bytes>) {
        match value {
            Some(value) => self.bulk_bytes(value),
            None => self.null(),
        }
    }

    /// No value.
    #[inline]
    pub fn null(&mut self) {
        self.output.write(if self.is_resp3() {
            b"_\r\n"
        } else {
            b"$-1\r\n"
        });
    }

    /// No value where an array was due.
    pub fn null_array(&mut self) {
        self.output.write(if self.is_resp3() {
            b"_\r\n"
        } else {
            b"*-1\r\n"
        });
    }

    /// The header of an array of `len` items, which the caller writes next.
    #[inline]
    pub fn array(&mut self, len: usize) {
        self.number(b'*', len as i64);
    }

    /// The header of a map of `len` pairs: in RESP2 an array of twice as many items.
    pub fn map(&mut self, len: usize) {
        match self.protocol {
            Protocol::Resp2 => self.array(len * 2),
            Protocol::Resp3 => self.number(b'%', len as i64),
        }
    }

    /// The header of a set: in RESP2 an array.
    pub fn set(&mut self, len: usize) {
        self.number(if self.is_resp3() { b'~' } else { b'*' }, len as i64);
    }

    /// The header of an out-of-band message: in RESP2 an array.
    pub fn push(&mut self, len: usize) {
        self.number(if self.is_resp3() { b'>' } else { b'*' }, len as i64);
    }

    /// A double: in RESP2 a string.
    pub fn double(&mut self, value: f64) {
        let mut text = Vec::with_capacity(32);
        write_double(value, &mut text);
        match self.protocol {
            Protocol::Resp2 => self.bulk(&text),
            Protocol::Resp3 => self.line(b',', &text),
        }
    }

    /// A truth value: in RESP2 the integers 1 and 0.
    pub fn boolean(&mut self, value: bool) {
        match self.protocol {
            Protocol::Resp2 => self.int(i64::from(value)),
            Protocol::Resp3 => self.line(b'#', if value { b"t" } else { b"f" }),
        }
    }

    /// Plain text for a person (`INFO`, `CLIENT LIST`): in RESP2 a string.
    pub fn verbatim(&mut self, text: &str) {
        if !self.is_resp3() {
            return self.bulk(text.as_bytes());
        }
        self.number(b'=', text.len() as i64 + 4);
        self.output.write(b"txt:");
        self.output.write(text.as_bytes());
        self.output.write(b"\r\n");
    }

    /// Appends what was written elsewhere in the same protocol.
    pub fn append(&mut self, written: Output) {
        self.output.append(written);
    }

    fn line(&mut self, kind: u8, text: &[u8]) {
        let tail = self.output.tail();
        tail.push(kind);
        tail.extend_from_slice(text);
        tail.extend_from_slice(b"\r\n");
    }

    #[inline]
    fn number(&mut self, kind: u8, value: i64) {
        let mut buffer = itoa::Buffer::new();
        self.line(kind, buffer.format(value).as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn both(write: impl Fn(&mut Reply)) -> [String; 2] {
        [Protocol::Resp2, Protocol::Resp3].map(|protocol| {
            let mut output = Output::new();
            write(&mut Reply::new(&mut output, protocol));
            String::from_utf8(output.to_vec()).unwrap()
        })
    }

    #[test]
    fn each_type_in_both_protocols() {
        assert_eq!(both(|r| r.ok()), ["+OK\r\n"; 2]);
        assert_eq!(both(|r| r.int(-7)), [":-7\r\n"; 2]);
        assert_eq!(both(|r| r.bulk(b"a\r\nb")), ["$4\r\na\r\nb\r\n"; 2]);
        assert_eq!(both(|r| r.null()), ["$-1\r\n", "_\r\n"]);
        assert_eq!(both(|r| r.null_array()), ["*-1\r\n", "_\r\n"]);
        assert_eq!(both(|r| r.map(2)), ["*4\r\n", "%2\r\n"]);
        assert_eq!(both(|r| r.set(2)), ["*2\r\n", "~2\r\n"]);
        assert_eq!(both(|r| r.push(2)), ["*2\r\n", ">2\r\n"]);
        assert_eq!(both(|r| r.double(0.5)), ["$3\r\n0.5\r\n", ",0.5\r\n"]);
        assert_eq!(
            both(|r| r.double(f64::INFINITY)),
            ["$3\r\ninf\r\n", ",inf\r\n"]
        );
        assert_eq!(both(|r| r.boolean(true)), [":1\r\n", "#t\r\n"]);
        assert_eq!(
            both(|r| r.verbatim("hi")),
            ["$2\r\nhi\r\n", "=6\r\ntxt:hi\r\n"]
        );
        assert_eq!(both(|r| r.error("ERR a\r\nb\n")), ["-ERR a  b\r\n"; 2]);
    }

    #[test]
    fn a_large_value_is_not_copied() {
        let value = Bytes::from(vec![b'v'; BY_REFERENCE_BYTES]);
        let mut output = Output::new();
        Reply::new(&mut output, Protocol::Resp2).bulk_bytes(&value);
        let mut slices = [std::io::IoSlice::new(&[]); 4];
        let filled = output.io_slices(&mut slices, usize::MAX);
        assert_eq!(filled, 3);
        assert_eq!(slices[1].as_ptr(), value.as_ptr());
    }
}
