//! What an operation costs, as a sender can know it.
//!
//! A sender does not know the size of a value that it asks for. It only knows what it was told when
//! it asked for that key before, if it has not forgotten. How long an operation takes by its size
//! is learnt from replies, too, as the line that fits them best (least squares), with old replies
//! fading. For a value of unknown size a mean one is expected.

use crate::cost::Nanos;
use crate::generator::mix64;

/// Replies after which an old one counts a third (1/e): enough to tell the slope of a line through
/// noise of half its mean to a few percent, and 2 s of a sender that has 2,000 a second.
const MEMORY: f64 = 4_096.0;
/// Keys whose sizes are kept, 8 bytes each; a new key forgets the one in its place.
const KEYS: usize = 1 << 14;

/// Costs that one sender learnt, in nanoseconds of service.
#[derive(Clone, Debug)]
pub struct Costs {
    line: Line,
    /// (part of the key's hash, bytes of its value and one), by the rest of the hash; 0: nobody.
    sizes: Vec<(u32, u32)>,
}

/// Fading sums over replies.
#[derive(Clone, Copy, Debug, Default)]
struct Line {
    count: f64,
    bytes: f64,
    ns: f64,
    bytes_bytes: f64,
    bytes_ns: f64,
}

impl Line {
    fn add(&mut self, bytes: f64, ns: f64) {
        let kept = 1.0 - 1.0 / MEMORY;
        let sum = |old: &mut f64, new: f64| *old = *old * kept + new;
        sum(&mut self.count, 1.0);
        sum(&mut self.bytes, bytes);
        sum(&mut self.ns, ns);
        sum(&mut self.bytes_bytes, bytes * bytes);
        sum(&mut self.bytes_ns, bytes * ns);
    }

    /// Nanoseconds for each byte, from 0 on; 0 where all values are alike.
    fn slope(&self) -> f64 {
        let spread = self.count * self.bytes_bytes - self.bytes * self.bytes;
        let together = self.count * self.bytes_ns - self.bytes * self.ns;
        if spread > self.bytes * self.bytes * 1e-6 {
            (together / spread).max(0.0)
        } else {
            0.0
        }
    }
}

impl Default for Costs {
    fn default() -> Self {
        Costs {
            line: Line::default(),
            sizes: vec![(0, 0); KEYS],
        }
    }
}

/// Where a key's size is kept, and what tells it from others there.
fn place(key: u64) -> (usize, u32) {
    let hash = mix64(key);
    (hash as usize % KEYS, (hash >> 32) as u32)
}

impl Costs {
    /// A reply to an operation on `key` had a value of `bytes`, and told that it was `service_ns`
    /// in service.
    pub fn observe(&mut self, key: u64, bytes: u32, service_ns: Nanos) {
        self.line.add(f64::from(bytes), service_ns as f64);
        let (at, who) = place(key);
        self.sizes[at] = (who, bytes.saturating_add(1));
    }

    /// What an operation takes on average, at least 1; 1 while nothing is known.
    #[must_use]
    pub fn mean_ns(&self) -> Nanos {
        (self.line.ns / self.line.count.max(1.0)).max(1.0) as Nanos
    }

    /// What an operation on `key` is expected to take, at least 1; 1 while nothing is known.
    #[must_use]
    pub fn expected_ns(&self, key: u64) -> Nanos {
        let line = &self.line;
        if line.count == 0.0 {
            return 1;
        }
        let (at, who) = place(key);
        let beyond_mean = match self.sizes[at] {
            (known, size) if known == who && size > 0 => {
                f64::from(size - 1) - line.bytes / line.count
            }
            _ => 0.0,
        };
        let expected = line.ns / line.count + line.slope() * beyond_mean;
        expected.max(1.0) as Nanos
    }
}
