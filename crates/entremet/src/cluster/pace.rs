//! How many keys go in one batch, and how long others have the nodes after it. While a batch goes
//! over, both nodes answer nobody else.

use std::time::Duration;

/// What a node sends, and another takes in, of values (measured: 50 to 90 MB/s).
pub const BYTES_PER_S: u64 = 50_000_000;
/// What a key costs beside its bytes: about 10 us.
pub const KEY_BYTES: u64 = 512;
/// What a batch aims at, as a part of what a key may take: it is others' requests that wait, and
/// their 99th percentile is a millisecond where nodes are quick.
const AIM: u32 = 32;
/// And where all wait for longer.
const AIM_MAX: u32 = 8;
/// The first batch takes about this part of that.
const FIRST: u64 = 2;
/// A batch grows by about this part of it.
const MORE: u64 = 8;
/// It may always have so much, and one key: a batch that was long for it was held up itself.
const LEAST_BYTES: u64 = 4 << 10;
/// So many keys are asked for at once, for several batches.
pub const KEYS_MAX: usize = 512;

/// How long a node that sends so many bytes answers nobody else, about.
pub fn takes(bytes: u64) -> Duration {
    Duration::from_nanos(bytes.saturating_mul(1_000_000_000 / BYTES_PER_S))
}

/// A key of more bytes holds nodes up for longer than they may be.
pub fn largest(stall: Duration) -> u64 {
    within(stall).max(LEAST_BYTES)
}

/// What goes over in this time, about.
fn within(time: Duration) -> u64 {
    let time_ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    time_ns / (1_000_000_000 / BYTES_PER_S)
}

/// Grows by steps while batches are short, and is halved when one was long.
#[derive(Debug)]
pub struct Pace {
    /// A batch is to take so long where nobody waits, and so long at most.
    aims: [Duration; 2],
    /// A batch has no more.
    largest: u64,
    /// What the next batch may have, keys counted as [`KEY_BYTES`] more.
    bytes: u64,
    /// The part of the time of both nodes that all batches may take.
    part: f64,
}

impl Pace {
    /// Nodes may be held up for about `stall` by one key, and for this `part` of the time, above 0
    /// and at most 1, by all batches.
    pub fn new(stall: Duration, part: f64) -> Self {
        let largest = largest(stall);
        Self {
            aims: [stall / AIM, stall / AIM_MAX],
            largest,
            bytes: (within(stall / AIM) / FIRST).max(LEAST_BYTES),
            part,
        }
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

    /// After a batch that took so long others have the nodes for so long. They had them already
    /// while it `waited` for its turn.
    pub fn pause(&self, took: Duration, waited: Duration) -> Duration {
        took.mul_f64(1.0 / self.part - 1.0).saturating_sub(waited)
    }

    /// A batch of these keys took so long, and `waited` before for its turn. All others wait for as
    /// long there, so one that takes its part of that is felt by nobody.
    pub fn took(&mut self, sizes: &[u64], took: Duration, waited: Duration) {
        let [least, most] = self.aims;
        let aim = waited.mul_f64(self.part).clamp(least, most);
        let cost = sizes.iter().map(|size| size.saturating_add(KEY_BYTES));
        let cost = cost.fold(0u64, u64::saturating_add);
        if took > aim {
            self.bytes = (self.bytes.min(cost) / 2).max(LEAST_BYTES);
        } else if cost >= self.bytes / 2 {
            // One that was not full says nothing of a larger one.
            self.bytes = (self.bytes + within(aim) / MORE).min(self.largest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn a_batch_grows_until_it_takes_too_long() {
        let (mut pace, none) = (Pace::new(20 * MS, 0.5), Duration::ZERO);
        let sizes = [1_000; 600];
        let mut counts = Vec::new();
        for _ in 0..200 {
            let count = pace.take(&sizes);
            counts.push(count);
            // 10 us a key.
            let took = Duration::from_micros(10 * count as u64);
            assert!(took < MS, "{count}");
            pace.took(&sizes[..count], took, none);
        }
        assert_eq!(counts[0], 10);
        assert!(counts[100..].iter().all(|count| *count >= 30), "{counts:?}");
        // Another machine: it is halved until it fits.
        for _ in 0..20 {
            let count = pace.take(&sizes);
            pace.took(&sizes[..count], MS / 5 * count as u32, none);
        }
        assert!(pace.take(&sizes) <= 4);
        // Where all wait for long a batch may be longer, by and by.
        for _ in 0..100 {
            let count = pace.take(&sizes);
            let took = Duration::from_micros(10 * count as u64);
            assert!(took < 4 * MS, "{took:?}");
            pace.took(&sizes[..count], took, 100 * MS);
        }
        assert!(pace.take(&sizes) >= 120);
    }

    #[test]
    fn batches_take_their_part_of_the_time_and_no_more() {
        for (part, pauses_ms) in [(1.0, 0), (0.5, 2), (0.05, 38)] {
            let pace = Pace::new(20 * MS, part);
            let pause = pace.pause(2 * MS, Duration::ZERO);
            let wanted = pauses_ms * MS;
            assert!(pause.abs_diff(wanted) < MS / 1_000, "{part}: {pause:?}");
            // For as long as it waited others had the nodes.
            let left = pace.pause(2 * MS, MS);
            assert!(
                left.abs_diff(wanted.saturating_sub(MS)) < MS / 1_000,
                "{left:?}"
            );
        }
    }

    #[test]
    fn large_keys_go_alone_or_not_at_all() {
        let pace = Pace::new(20 * MS, 0.5);
        assert!((1_000_000..1 << 20).contains(&largest(20 * MS)));
        assert_eq!(pace.take(&[500_000, 1, 1]), 1);
        assert_eq!(pace.take(&[1, 1, 500_000, 1]), 2);
        assert_eq!(pace.take(&[]), 0);
        assert_eq!(takes(64 << 20).as_millis(), 1_342);
        assert!(largest(Duration::from_secs(2)) >= 64 << 20);
    }
}
