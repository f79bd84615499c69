//! How many keys go in one batch, and how long others have the nodes after it. While a batch goes
//! over, both nodes answer nobody else.

use std::time::Duration;

/// What a node sends, and another takes in, of values (measured: 50 to 90 MB/s).
pub const BYTES_PER_S: u64 = 50_000_000;
/// What a key costs beside its bytes: about 10 us.
pub const KEY_BYTES: u64 = 512;
/// What a batch may take, as a part of what a key may: it is others' requests that wait, and their
/// 99th percentile is a millisecond where nodes are quick.
const AIM: u32 = 32;
/// And where all wait for longer.
const AIM_MAX: u32 = 8;
/// But it takes no more than this many times what the shortest took. That one was mostly the way to
/// the target and back, so from there on longer batches save little, and others wait for longer.
const TIMES: u32 = 2;
/// What is shorter than this part of what a key may take is felt by nobody.
const AIM_MIN: u32 = 200;
/// A batch grows by about this part of what it may take.
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
    /// How long one key may hold nodes up.
    stall: Duration,
    /// How long the shortest batch took; none went yet.
    shortest: Option<Duration>,
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
            stall,
            shortest: None,
            largest,
            bytes: LEAST_BYTES,
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
        let shortest = self.shortest.map_or(took, |shortest| shortest.min(took));
        self.shortest = Some(shortest);
        let quick = shortest
            .saturating_mul(TIMES)
            .clamp(self.stall / AIM_MIN, self.stall / AIM);
        let aim = waited.mul_f64(self.part).clamp(quick, self.stall / AIM_MAX);
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

    /// How long a batch takes that goes over between quick nodes (measured, redis-server 7.0): what
    /// is the way there and back, and what each key takes.
    fn takes_us(key_us: u64, count: usize) -> Duration {
        Duration::from_micros(70 + key_us * count as u64)
    }

    /// How many keys batches of them come to have, and how long the longest takes then.
    fn settled(pace: &mut Pace, size: u64, key_us: u64, waited: Duration) -> (usize, Duration) {
        let sizes = [size; KEYS_MAX];
        let batches = (0..300).map(|_| {
            let count = pace.take(&sizes);
            let took = takes_us(key_us, count);
            pace.took(&sizes[..count], took, waited);
            (count, took)
        });
        let last: Vec<_> = batches.skip(200).collect();
        let keys = last.iter().map(|(count, _)| count).sum::<usize>() / last.len();
        (
            keys,
            last.iter().map(|(_, took)| *took).max().unwrap_or_default(),
        )
    }

    #[test]
    fn a_batch_takes_little_more_than_what_any_takes() {
        for (size, key_us, count, most_us) in [
            // Large ones go alone, those of 4 KiB by twos and threes, and of small ones so many
            // that the way there and back is no more than half of it.
            (64 << 10, 600, 1, 670),
            (4 << 10, 68, 2, 350),
            (100, 12, 9, 350),
        ] {
            let mut pace = Pace::new(20 * MS, 0.05);
            let (keys, longest) = settled(&mut pace, size, key_us, Duration::ZERO);
            assert!(keys >= count, "{size}: {keys}");
            assert!(longest <= Duration::from_micros(most_us), "{longest:?}");
        }
    }

    #[test]
    fn a_batch_grows_until_it_takes_too_long() {
        let (mut pace, none) = (Pace::new(20 * MS, 0.5), Duration::ZERO);
        let (keys, _) = settled(&mut pace, 1_000, 10, none);
        // Another machine: it is halved until it fits.
        let (fewer, _) = settled(&mut pace, 1_000, 200, none);
        assert!(keys >= 8 && fewer <= 2, "{keys} {fewer}");
        // Where all wait for long a batch may be longer, by and by, and no longer than it may.
        let (more, longest) = settled(&mut pace, 1_000, 10, 100 * MS);
        assert!(more >= 120 && longest < 4 * MS, "{more} {longest:?}");
    }

    #[test]
    fn what_fails_or_moves_nothing_says_nothing_of_what_batches_take() {
        let mut pace = Pace::new(20 * MS, 0.05);
        pace.took(&[100], Duration::MAX, Duration::ZERO);
        let (keys, _) = settled(&mut pace, 100, 12, Duration::ZERO);
        pace.took(&[100], Duration::ZERO, Duration::ZERO);
        let (after, _) = settled(&mut pace, 100, 12, Duration::ZERO);
        assert!(keys >= 9 && after >= 5, "{keys} {after}");
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
