//! How many keys go in one batch. While a batch goes over, both nodes answer nobody else.

use std::time::Duration;

/// What a node sends, and another takes in, of values (measured: 50 to 90 MB/s).
pub const BYTES_PER_S: u64 = 50_000_000;
/// What a key costs beside its bytes: about 10 us.
pub const KEY_BYTES: u64 = 512;
/// Of the first batch: it takes about a millisecond.
const FIRST_BYTES: u64 = 64 << 10;
/// A batch grows by so much.
const MORE_BYTES: u64 = 16 << 10;
/// It always has one key.
const LEAST_BYTES: u64 = 1 << 10;
/// Keys of a batch at most: so many are asked for at once.
const KEYS_MAX: usize = 512;

/// How long a node that sends so many bytes answers nobody else, about.
pub fn takes(bytes: u64) -> Duration {
    Duration::from_nanos(bytes.saturating_mul(1_000_000_000 / BYTES_PER_S))
}

/// Grows by steps while batches are short, and is halved when one was long.
#[derive(Debug)]
pub struct Pace {
    /// A batch is to take so long at most.
    aim: Duration,
    /// A key that is larger does not go at all.
    largest: u64,
    /// What the next batch may have, keys counted as [`KEY_BYTES`] more.
    bytes: u64,
}

impl Pace {
    /// Nodes may be held up for about `stall` by one key. A batch of several aims at an eighth: it
    /// is others' requests that wait, and the machine has other work.
    pub fn new(stall: Duration) -> Self {
        let stall_ns = u64::try_from(stall.as_nanos()).unwrap_or(u64::MAX);
        let largest = (stall_ns / (1_000_000_000 / BYTES_PER_S)).max(LEAST_BYTES);
        Self {
            aim: stall / 8,
            largest,
            bytes: FIRST_BYTES.min(largest),
        }
    }

    /// Whether a key of so many bytes holds nodes up for longer than they may be.
    pub fn is_too_large(&self, bytes: u64) -> bool {
        bytes > self.largest
    }

    /// How many keys are worth a look for the next batch.
    pub fn look_at(&self) -> usize {
        usize::try_from(self.bytes / KEY_BYTES).map_or(KEYS_MAX, |keys| keys.clamp(1, KEYS_MAX))
    }

    /// How many of the first keys, of these bytes, make the next batch.
    pub fn take(&self, sizes: &[u64]) -> usize {
        let mut left = self.bytes;
        let fits = |size: &&u64| {
            let cost = size.saturating_add(KEY_BYTES);
            let fits = cost <= left;
            left = left.saturating_sub(cost);
            fits
        };
        let count = sizes.iter().take_while(fits).count();
        count.max(1).min(sizes.len())
    }

    /// A batch of these keys took so long.
    pub fn took(&mut self, sizes: &[u64], took: Duration) {
        let cost = sizes.iter().map(|size| size.saturating_add(KEY_BYTES));
        let cost = cost.fold(0u64, u64::saturating_add);
        if took > self.aim {
            self.bytes = (self.bytes.min(cost) / 2).max(LEAST_BYTES);
        } else if cost >= self.bytes / 2 {
            // One that was not full says nothing of a larger one.
            self.bytes = (self.bytes + MORE_BYTES).min(self.largest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn a_batch_grows_until_it_takes_too_long() {
        let mut pace = Pace::new(20 * MS);
        let sizes = [1_000; 600];
        let mut counts = Vec::new();
        for _ in 0..200 {
            let count = pace.take(&sizes[..pace.look_at()]);
            counts.push(count);
            // 20 us a key.
            let took = Duration::from_micros(20 * count as u64);
            assert!(took <= 3 * MS, "{count}");
            pace.took(&sizes[..count], took);
        }
        assert_eq!(counts[0], 43);
        assert!(counts[100..].iter().all(|count| *count >= 60), "{counts:?}");
        // Another machine: it is halved until it fits.
        for _ in 0..20 {
            let count = pace.take(&sizes[..pace.look_at()]);
            pace.took(&sizes[..count], MS * count as u32);
        }
        assert!(pace.take(&sizes) <= 12);
    }

    #[test]
    fn large_keys_go_alone_or_not_at_all() {
        let pace = Pace::new(20 * MS);
        assert!(pace.is_too_large(1 << 20) && !pace.is_too_large(1_000_000));
        assert_eq!(pace.take(&[500_000, 1, 1]), 1);
        assert_eq!(pace.take(&[1, 1, 500_000, 1]), 2);
        assert_eq!(pace.take(&[]), 0);
        assert_eq!(takes(64 << 20).as_millis(), 1_342);
        assert!(!Pace::new(Duration::from_secs(2)).is_too_large(64 << 20));
    }
}
