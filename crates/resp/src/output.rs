//! Bytes on their way to a client: small replies gathered in one tail, large values kept by
//! reference.

use std::collections::VecDeque;
use std::io::IoSlice;

use bytes::{Buf, Bytes};

/// An emptied tail larger than this is given back, so that an idle connection does not keep its
/// largest reply's memory.
const TAIL_KEPT_BYTES: usize = 16 << 10;

/// What is still to be written: segments first, then the tail. Empty, it holds no memory of its
/// own.
#[derive(Default)]
pub struct Output {
    segments: VecDeque<Bytes>,
    segment_bytes: usize,
    tail: Vec<u8>,
    /// Bytes at the tail's front that were written already.
    tail_sent: usize,
    stream: Option<Box<Stream>>,
}

/// Where an output goes that is not kept as a whole.
struct Stream {
    sink: Box<dyn FnMut(Output) + Send>,
    /// How often something has gone to the sink.
    poured: u32,
    /// A part that is gone should have been taken back.
    torn: bool,
    /// Nobody will see any of it.
    unseen: bool,
}

/// What is gathered of a streamed output before it goes to its sink.
const PIECE_BYTES: usize = 1 << 20;

/// A place in an [`Output`] to return to with [`Output::rollback`].
#[derive(Clone, Copy, Debug)]
pub struct Mark {
    segments: usize,
    tail: usize,
    poured: u32,
}

impl Output {
    /// An empty output.
    pub fn new() -> Self {
        Self::default()
    }

    /// An output that gives itself to `sink`, a piece of about a MiB (or one value) at a time.
    pub fn streamed(sink: Box<dyn FnMut(Output) + Send>) -> Self {
        let stream = Stream {
            sink,
            poured: 0,
            torn: false,
            unseen: false,
        };
        Self {
            stream: Some(Box::new(stream)),
            ..Self::default()
        }
    }

    /// An output for a command that runs for its effect: it keeps nothing, and need not be given
    /// what is long.
    pub fn unseen() -> Self {
        let mut output = Self::streamed(Box::new(drop));
        if let Some(stream) = &mut output.stream {
            stream.unseen = true;
        }
        output
    }

    /// True of an output that nobody will see.
    pub fn is_unseen(&self) -> bool {
        self.stream.as_ref().is_some_and(|stream| stream.unseen)
    }

    /// True of an output that gives itself to a sink.
    pub fn is_streamed(&self) -> bool {
        self.stream.is_some()
    }

    /// Ends a streamed output: what is left of it, and whether all of it is as it should be.
    pub fn end_stream(mut self) -> (Output, bool) {
        let torn = self.stream.take().is_some_and(|stream| stream.torn);
        (self, !torn)
    }

    /// Gives what has been gathered to the sink, if there is one and it is worth it.
    #[inline]
    pub fn pour(&mut self) {
        if self.stream.is_some() && self.len() >= PIECE_BYTES {
            self.pour_all();
        }
    }

    fn pour_all(&mut self) {
        if let Some(mut stream) = self.stream.take() {
            stream.poured += 1;
            (stream.sink)(std::mem::take(self));
            self.stream = Some(stream);
        }
    }

    /// Bytes not yet written.
    pub fn len(&self) -> usize {
        self.segment_bytes + self.tail.len() - self.tail_sent
    }

    /// True when everything was written.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Of how many parts it is made: what it takes to free them.
    pub fn parts(&self) -> usize {
        self.segments.len()
    }

    /// Bytes of memory reserved, for accounting of idle connections.
    pub fn capacity(&self) -> usize {
        self.segment_bytes + self.tail.capacity() + self.segments.capacity() * size_of::<Bytes>()
    }

    /// Appends by copying.
    #[inline]
    pub fn write(&mut self, bytes: &[u8]) {
        self.tail.extend_from_slice(bytes);
    }

    /// Appends without a copy.
    pub fn write_bytes(&mut self, bytes: Bytes) {
        self.seal_tail();
        self.segment_bytes += bytes.len();
        self.segments.push_back(bytes);
    }

    /// Appends everything of `other`; large parts move without a copy.
    pub fn append(&mut self, mut other: Output) {
        if other.segments.is_empty() && other.tail.len() < TAIL_KEPT_BYTES {
            self.write(&other.tail[other.tail_sent..]);
            return;
        }
        self.seal_tail();
        other.seal_tail();
        self.segment_bytes += other.segment_bytes;
        self.segments.append(&mut other.segments);
    }

    /// The tail, for writers that format in place.
    #[inline]
    pub(crate) fn tail(&mut self) -> &mut Vec<u8> {
        &mut self.tail
    }

    fn seal_tail(&mut self) {
        if self.tail.len() > self.tail_sent {
            let mut sealed = Bytes::from(std::mem::take(&mut self.tail));
            sealed.advance(self.tail_sent);
            self.segment_bytes += sealed.len();
            self.segments.push_back(sealed);
        } else {
            self.tail.clear();
        }
        self.tail_sent = 0;
    }

    /// The present end. Valid until something is written to the client ([`Output::advance`]).
    pub fn mark(&self) -> Mark {
        Mark {
            segments: self.segments.len(),
            tail: self.tail.len() - self.tail_sent,
            poured: self.poured(),
        }
    }

    fn poured(&self) -> u32 {
        self.stream.as_ref().map_or(0, |stream| stream.poured)
    }

    /// The first bytes appended since `mark`, as far as they lie together: an error reply does,
    /// whole. None, if some of them are gone to a sink, where no error goes alone.
    pub fn since(&self, mark: Mark) -> &[u8] {
        if mark.poured != self.poured() {
            return &[];
        }
        match self.segments.get(mark.segments) {
            // What was the tail at the mark is now the front of the first segment after it, unless
            // it was empty.
            Some(sealed) => sealed.get(mark.tail..).unwrap_or_default(),
            None => &self.tail[self.tail_sent + mark.tail..],
        }
    }

    /// Forgets everything appended since `mark`, which must be of this output and since its last
    /// `advance`.
    pub fn rollback(&mut self, mark: Mark) {
        if let Some(stream) = &mut self.stream {
            if stream.poured != mark.poured {
                stream.torn = true;
                return;
            }
        }
        if self.segments.len() > mark.segments {
            // What was the tail at the mark is now the front of the first segment after it, unless
            // it was empty.
            let sealed = &self.segments[mark.segments];
            self.tail = sealed[..mark.tail.min(sealed.len())].to_vec();
            self.tail_sent = 0;
            self.segments.truncate(mark.segments);
            self.segment_bytes = self.segments.iter().map(Bytes::len).sum();
        }
        self.tail.truncate(self.tail_sent + mark.tail);
    }

    /// Fills `slices` with the next bytes, at most `limit` of them, for `writev`; returns how many
    /// were filled.
    pub fn io_slices<'a>(&'a self, slices: &mut [IoSlice<'a>], limit: usize) -> usize {
        let tail = &self.tail[self.tail_sent..];
        let parts = self
            .segments
            .iter()
            .map(|segment| &segment[..])
            .chain((!tail.is_empty()).then_some(tail));
        let mut left = limit;
        let mut filled = 0;
        for (slice, part) in slices.iter_mut().zip(parts) {
            if left == 0 {
                break;
            }
            let part = &part[..part.len().min(left)];
            left -= part.len();
            *slice = IoSlice::new(part);
            filled += 1;
        }
        filled
    }

    /// Drops the first `count` bytes, which were written.
    ///
    /// # Panics
    /// When `count` exceeds [`Output::len`].
    pub fn advance(&mut self, mut count: usize) {
        assert!(count <= self.len(), "advance past the end of the output");
        while let Some(front) = self.segments.front_mut() {
            if count < front.len() {
                front.advance(count);
                self.segment_bytes -= count;
                return;
            }
            count -= front.len();
            self.segment_bytes -= front.len();
            self.segments.pop_front();
        }
        self.tail_sent += count;
        if self.tail_sent == self.tail.len() {
            self.tail.clear();
            self.tail_sent = 0;
            self.tail.shrink_to(TAIL_KEPT_BYTES);
            self.segments.shrink_to(8);
        }
    }

    /// Gives back the memory of an empty output, for another to [`Output::borrow`]; does nothing to
    /// one that holds bytes.
    pub fn release(&mut self) -> Option<Vec<u8>> {
        self.is_empty().then(|| std::mem::take(self).tail)
    }

    /// Writes into one of `rooms` from now on, if there is any and it has no room of its own.
    pub fn borrow(&mut self, rooms: &mut Vec<Vec<u8>>) {
        if self.tail.capacity() == 0 {
            self.tail = rooms.pop().unwrap_or_default();
        }
    }

    /// Everything as one vector: for tests and tools.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut all = Vec::with_capacity(self.len());
        self.segments
            .iter()
            .for_each(|segment| all.extend_from_slice(segment));
        all.extend_from_slice(&self.tail[self.tail_sent..]);
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_output_holds_no_memory() {
        assert_eq!(Output::new().capacity(), 0);
    }

    #[test]
    fn segments_and_tail_leave_in_order_at_any_step() {
        for step in 1..40 {
            let mut output = Output::new();
            output.write(b"head ");
            output.write_bytes(Bytes::from(vec![b'x'; 20]));
            output.write(b" tail");
            let (whole, mut seen) = (output.to_vec(), Vec::new());
            while !output.is_empty() {
                let mut slices = [IoSlice::new(&[]); 2];
                let filled = output.io_slices(&mut slices, step);
                let ready: Vec<u8> = slices[..filled]
                    .iter()
                    .flat_map(|slice| slice.to_vec())
                    .collect();
                assert!(ready.len() <= step);
                seen.extend_from_slice(&ready);
                output.advance(ready.len());
            }
            assert_eq!(seen, whole, "step {step}");
        }
    }

    #[test]
    fn rollback_restores_the_marked_end() {
        for before in [&b""[..], b"abc"] {
            for sent in 0..=before.len() {
                let mut output = Output::new();
                output.write(before);
                output.advance(sent);
                let (mark, kept) = (output.mark(), output.to_vec());
                output.write(b"def");
                output.write_bytes(Bytes::from_static(b"ghi"));
                output.write(b"jkl");
                output.rollback(mark);
                assert_eq!(output.to_vec(), kept);
                assert_eq!(output.len(), kept.len());
                output.write(b"x");
                output.rollback(mark);
                assert_eq!(output.to_vec(), kept);
            }
        }
    }

    #[test]
    fn a_streamed_output_holds_no_more_than_a_piece() {
        let (sender, pieces) = std::sync::mpsc::channel();
        let mut output = Output::streamed(Box::new(move |piece| sender.send(piece).unwrap()));
        for _ in 0..10 {
            output.write(&vec![b'x'; PIECE_BYTES / 2 - 1]);
            output.pour();
            assert!(output.len() < PIECE_BYTES);
        }
        let (rest, whole) = output.end_stream();
        let poured: usize = pieces.try_iter().map(|piece| piece.len()).sum();
        assert_eq!(poured + rest.len(), 10 * (PIECE_BYTES / 2 - 1));
        assert!(whole && poured > 0);
    }

    #[test]
    fn what_is_gone_cannot_be_taken_back() {
        let mut output = Output::streamed(Box::new(drop));
        let mark = output.mark();
        output.write(b"x");
        output.rollback(mark);
        output.write(&vec![b'x'; PIECE_BYTES]);
        output.pour();
        assert_eq!(output.since(mark), b"", "it may be the middle of a value");
        let later = output.mark();
        output.write(b"-ERR no\r\n");
        assert_eq!(output.since(later), b"-ERR no\r\n");
        output.rollback(later);
        output.write(b"y");
        assert_eq!(output.to_vec(), b"y", "what came after the gone can be");
        output.rollback(mark);
        assert!(!output.end_stream().1);
    }

    #[test]
    fn what_was_appended_since_a_mark_is_shown() {
        let mut output = Output::new();
        output.write(b"abc");
        output.advance(1);
        let mark = output.mark();
        output.write(b"def");
        assert_eq!(output.since(mark), b"def");
        output.write_bytes(Bytes::from_static(b"ghi"));
        assert_eq!(output.since(mark), b"def");
        let mark = output.mark();
        assert_eq!(output.since(mark), b"");
        output.write_bytes(Bytes::from_static(b"jkl"));
        assert_eq!(output.since(mark), b"jkl");
    }

    #[test]
    fn a_large_reply_does_not_stay_in_memory() {
        let mut output = Output::new();
        output.write(&vec![0; 1 << 20]);
        output.advance(1 << 20);
        assert!(output.capacity() <= 2 * TAIL_KEPT_BYTES);
        output.release();
        assert_eq!(output.capacity(), 0);
    }
}
