//! A request while it is written as the engine is sent it.

use bytes::Bytes;
use resp::Args;
use smallvec::SmallVec;

use crate::value::{bulk, head};

/// The bytes of a request, in the order in which they are sent.
pub type Pieces = SmallVec<[Bytes; 1]>;

/// A longer word is not copied, as far as the request owns its bytes. What it takes to write a
/// request follows from its number of words, not from its length.
const COPIED_MAX: usize = 16 << 10;

/// A request that is being written.
#[derive(Default)]
pub struct Draft {
    pieces: Pieces,
    last: Vec<u8>,
}

impl Draft {
    /// Empty, with room for what is copied of a request of so many bytes.
    pub fn with_room(bytes: usize) -> Self {
        Self {
            pieces: Pieces::new(),
            last: Vec::with_capacity(bytes.min(COPIED_MAX)),
        }
    }

    /// Appends the line before a list of so many words.
    pub fn begin(&mut self, words: usize) {
        head(b'*', words, &mut self.last);
    }

    /// Appends a word that is none of a request's.
    pub fn text(&mut self, word: &[u8]) {
        bulk(word, &mut self.last);
    }

    /// Appends word `at` of `args`.
    pub fn word(&mut self, args: &Args, at: usize) {
        self.marked(b"", args, at);
    }

    /// Appends word `at` of `args` behind `mark`, as one word.
    pub fn marked(&mut self, mark: &[u8], args: &Args, at: usize) {
        let word = args.get(at);
        head(b'$', mark.len() + word.len(), &mut self.last);
        self.last.extend_from_slice(mark);
        if word.len() > COPIED_MAX {
            self.seal();
            self.pieces.push(args.lent(at));
        } else {
            self.last.extend_from_slice(word);
        }
        self.last.extend_from_slice(b"\r\n");
    }

    fn seal(&mut self) {
        if !self.last.is_empty() {
            self.pieces.push(std::mem::take(&mut self.last).into());
        }
    }

    /// All that was written.
    pub fn pieces(mut self) -> Pieces {
        self.seal();
        self.pieces
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use resp::OwnedArgs;

    #[test]
    fn a_long_word_is_not_copied() {
        let long = vec![b'x'; COPIED_MAX + 1];
        let words: [&[u8]; 3] = [b"SET", b"k", &long];
        let owned = OwnedArgs::from_words(words.into_iter());
        let args = owned.args();
        let mut draft = Draft::with_room(args.len_bytes());
        draft.begin(3);
        draft.word(&args, 0);
        draft.marked(b"{@a}", &args, 1);
        draft.word(&args, 2);
        let pieces = draft.pieces();
        assert_eq!(pieces.len(), 3);
        assert_eq!(pieces[1].as_ptr(), args.get(2).as_ptr());
        let mut expected = b"*3\r\n$3\r\nSET\r\n$5\r\n{@a}k\r\n$16385\r\n".to_vec();
        expected.extend_from_slice(&long);
        expected.extend_from_slice(b"\r\n");
        assert_eq!(pieces.concat(), expected);
    }
}
