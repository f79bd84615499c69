//! The words of one request as slices of the buffer that holds it.

use std::sync::Arc;

use bytes::Bytes;
use smallvec::SmallVec;

use crate::BY_REFERENCE_BYTES;

/// Where one argument lies in its buffer. 32 bits each: a request is at most 4 GiB
/// (`Limits::request_bytes_max`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) start: u32,
    pub(crate) len: u32,
}

impl Span {
    pub(crate) fn of<'a>(&self, data: &'a [u8]) -> &'a [u8] {
        &data[self.start as usize..][..self.len as usize]
    }
}

/// True when `word` is `option` in any case.
#[inline]
pub fn is(word: &[u8], option: &str) -> bool {
    word.eq_ignore_ascii_case(option.as_bytes())
}

/// A request: the command's name and its arguments. Copying it copies three references.
#[derive(Clone, Copy)]
pub struct Args<'a> {
    data: &'a [u8],
    spans: &'a [Span],
    /// The request that `data` and `spans` are of, when it can outlive its buffer.
    owner: Option<&'a OwnedArgs>,
}

impl<'a> Args<'a> {
    pub(crate) fn new(data: &'a [u8], spans: &'a [Span]) -> Self {
        Args {
            data,
            spans,
            owner: None,
        }
    }

    /// Number of words, the command's name included.
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// True for a request without a word (the parser never hands one out).
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// Word `index`; 0 is the command's name.
    ///
    /// # Panics
    /// When there is no such word: arity is checked before a command runs.
    #[inline]
    pub fn get(&self, index: usize) -> &'a [u8] {
        self.spans[index].of(self.data)
    }

    /// Word `index`, or `None` past the end.
    pub fn find(&self, index: usize) -> Option<&'a [u8]> {
        self.spans.get(index).map(|span| span.of(self.data))
    }

    /// All words in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &'a [u8]> + Clone + 'a {
        let data = self.data;
        self.spans.iter().map(move |span| span.of(data))
    }

    /// The words from `index` on; empty when there are none.
    pub fn from(&self, index: usize) -> Args<'a> {
        Args {
            spans: self.spans.get(index..).unwrap_or(&[]),
            ..*self
        }
    }

    /// Word `index` as bytes that outlive the request: a slice of the frame when the word is large
    /// and is most of an owned frame, else a copy (a short word must not keep a long frame in
    /// memory).
    pub fn bytes(&self, index: usize) -> Bytes {
        let span = self.spans[index];
        match self.owner.map(|owner| &owner.frame) {
            Some(frame)
                if span.len as usize >= BY_REFERENCE_BYTES
                    && span.len as usize >= frame.len() / 2 =>
            {
                frame.slice(span.start as usize..(span.start + span.len) as usize)
            }
            _ => Bytes::copy_from_slice(span.of(self.data)),
        }
    }

    /// The same for what lets go of the bytes soon: a slice of an owned frame however long that is.
    pub fn lent(&self, index: usize) -> Bytes {
        let span = self.spans[index];
        match self.owner.map(|owner| &owner.frame) {
            Some(frame) => frame.slice(span.start as usize..(span.start + span.len) as usize),
            None => Bytes::copy_from_slice(span.of(self.data)),
        }
    }

    /// Bytes from the first word to the end of the last.
    pub fn len_bytes(&self) -> usize {
        match self.spans {
            [] => 0,
            [first, .., last] => (last.start + last.len - first.start) as usize,
            [only] => only.len as usize,
        }
    }

    /// A copy that outlives the buffer: for `MULTI` queues and for work that leaves its core. Of a
    /// request of many words, which owns its bytes, it is another reference.
    pub fn to_owned(&self) -> OwnedArgs {
        match self
            .owner
            .filter(|owner| owner.spans().len() == self.spans.len())
        {
            Some(owner) => owner.clone(),
            None => OwnedArgs::from_words(self.iter()),
        }
    }
}

impl std::fmt::Debug for Args<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list()
            .entries(self.iter().map(|word| word.escape_ascii().to_string()))
            .finish()
    }
}

/// A request that owns its bytes.
#[derive(Clone)]
pub struct OwnedArgs {
    frame: Bytes,
    spans: Spans,
}

#[derive(Clone)]
enum Spans {
    Few(SmallVec<[Span; 6]>),
    /// Taken from the parser, and shared by all copies: a million are not to be copied on a core.
    Many(Arc<Vec<Span>>),
}

/// Spans beyond so many are taken from the parser.
const COPIED_MAX: usize = 64;

impl OwnedArgs {
    pub(crate) fn new(frame: Bytes, spans: &mut Vec<Span>) -> Self {
        let spans = match spans.len() {
            0..=COPIED_MAX => Spans::Few(SmallVec::from_slice(spans)),
            _ => Spans::Many(Arc::new(std::mem::take(spans))),
        };
        OwnedArgs { frame, spans }
    }

    fn spans(&self) -> &[Span] {
        match &self.spans {
            Spans::Few(spans) => spans,
            Spans::Many(spans) => spans,
        }
    }

    /// A request made of these words, copied together. At most 4 GiB in all.
    pub fn from_words<'w>(words: impl Iterator<Item = &'w [u8]>) -> Self {
        let mut frame = Vec::new();
        let mut spans = SmallVec::new();
        for word in words {
            spans.push(Span {
                start: frame.len() as u32,
                len: word.len() as u32,
            });
            frame.extend_from_slice(word);
        }
        OwnedArgs {
            frame: Bytes::from(frame),
            spans: Spans::Few(spans),
        }
    }

    /// The request as [`Args`] whose large words can be taken without a copy.
    pub fn args(&self) -> Args<'_> {
        Args {
            data: &self.frame,
            spans: self.spans(),
            owner: Some(self),
        }
    }

    /// Bytes held in memory for it.
    pub fn len_bytes(&self) -> usize {
        self.frame.len() + size_of_val(self.spans())
    }
}

impl std::fmt::Debug for OwnedArgs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.args().fmt(f)
    }
}
