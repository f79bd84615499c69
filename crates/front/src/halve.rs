//! A request whose keys lie at two nodes while their slot moves: no node does it as a whole. What
//! asks or deletes each key by itself is done in halves, and these in halves, until each of them is
//! at one node.

use std::ops::Range;

use bytes::Bytes;
use commands::Spec;
use resp::parse_i64;
use smallvec::smallvec;

use crate::draft::Pieces;
use crate::split::Joins;
use crate::value::{bulk, head};

/// A request of more keys is not halved: a core goes over all of its words.
const KEYS_MAX: usize = 4096;

/// Half of a request.
#[derive(Debug)]
pub struct Half {
    /// The request.
    pub pieces: Pieces,
    /// Which of the keys of the whole, in order.
    pub keys: Box<[u32]>,
}

/// The halves of a request that was written as `pieces`, about these `keys` of a whole; none: all
/// of its own. None: it has one key, or it is done as a whole or not at all.
#[must_use]
pub fn halve(spec: &Spec, pieces: &Pieces, keys: Option<&[u32]>) -> Option<[Half; 2]> {
    Joins::of(spec.name).filter(|joins| *joins != Joins::Done)?;
    // A half is written in two pieces, and what has others has a key that is long.
    let (line, rest) = match &pieces[..] {
        [whole] => (whole, None),
        [line, rest] => (line, Some(rest.clone())),
        _ => return None,
    };
    let mut words = Words { text: line, at: 0 };
    let count = words.number(b'*')?.checked_sub(1)?;
    if !(2..=KEYS_MAX).contains(&count) || keys.is_some_and(|keys| keys.len() != count) {
        return None;
    }
    let name = words.next()?;
    let rest = rest.unwrap_or_else(|| line.slice(words.at..));
    let mut words = Words { text: &rest, at: 0 };
    for _ in 0..count / 2 {
        words.next()?;
    }
    let half = |numbers: Range<usize>, rest: Bytes| {
        let mut line = Vec::new();
        head(b'*', 1 + numbers.len(), &mut line);
        bulk(name, &mut line);
        let number = |own: usize| keys.map_or(own as u32, |keys| keys[own]);
        Half {
            pieces: smallvec![line.into(), rest],
            keys: numbers.map(number).collect(),
        }
    };
    Some([
        half(0..count / 2, rest.slice(..words.at)),
        half(count / 2..count, rest.slice(words.at..)),
    ])
}

/// The words of a request.
struct Words<'r> {
    text: &'r [u8],
    at: usize,
}

impl<'r> Words<'r> {
    /// The number in the line that comes next, behind `kind`.
    fn number(&mut self, kind: u8) -> Option<usize> {
        let rest = self.text.get(self.at..)?;
        let len = rest.iter().position(|byte| *byte == b'\r')?;
        let digits = rest[..len].strip_prefix(&[kind])?;
        self.at += len + 2;
        parse_i64(digits)?.try_into().ok()
    }

    fn next(&mut self) -> Option<&'r [u8]> {
        let len = self.number(b'$')?;
        let word = self.text.get(self.at..self.at + len)?;
        self.at += len + 2;
        Some(word)
    }
}
