//! What happened in each second.

/// Buckets of each octave of latency: a latency is kept to 1/32 of itself.
const PER_OCTAVE: usize = 32;
/// Octaves above the first 32 µs, up to 10 minutes.
const OCTAVES: usize = 26;
const BUCKETS: usize = PER_OCTAVE * OCTAVES;

/// The bucket of a latency, counted in µs.
fn bucket(latency_ns: u64) -> usize {
    let us = latency_ns / 1_000;
    if us < PER_OCTAVE as u64 {
        return us as usize;
    }
    // The octave's number, and the five bits below its highest one.
    let octave = 63 - us.leading_zeros() as usize - 5;
    let place = (us >> octave) as usize - PER_OCTAVE;
    ((octave + 1) * PER_OCTAVE + place).min(BUCKETS - 1)
}

/// The middle of a bucket, ms.
fn middle_ms(bucket: usize) -> f64 {
    let (octave, place) = (bucket / PER_OCTAVE, bucket % PER_OCTAVE);
    let us = match octave {
        0 => place as f64 + 0.5,
        octave => ((PER_OCTAVE + place) as f64 + 0.5) * f64::powi(2.0, octave as i32 - 1),
    };
    us / 1e3
}

/// One second of one tenant.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Second {
    /// Requests due (open loop) or sent (closed loop) in it.
    pub offered: u64,
    /// Requests answered in it without an error.
    pub answered: u64,
    /// Requests that failed in it.
    pub failed: u64,
    /// Latencies of those answered: buckets that are not empty, in order, with their counts.
    latencies: Vec<(u16, u32)>,
}

impl Second {
    /// The latency that `percent` (0 to 100) of the answered requests did not exceed, ms, to 1/64
    /// of itself; `None` where nothing was answered.
    pub fn percentile_ms(&self, percent: f64) -> Option<f64> {
        let total: u64 = self
            .latencies
            .iter()
            .map(|(_, count)| u64::from(*count))
            .sum();
        let rank = ((percent / 100.0 * total as f64).ceil() as u64).max(1);
        let mut seen = 0;
        for (bucket, count) in &self.latencies {
            seen += u64::from(*count);
            if seen >= rank {
                return Some(middle_ms(usize::from(*bucket)));
            }
        }
        None
    }

    fn add(&mut self, other: &Second) {
        self.offered += other.offered;
        self.answered += other.answered;
        self.failed += other.failed;
        let mut merged: Vec<(u16, u32)> = Vec::with_capacity(self.latencies.len());
        let (mut mine, mut theirs) = (
            self.latencies.iter().peekable(),
            other.latencies.iter().peekable(),
        );
        while let Some(next) = match (mine.peek(), theirs.peek()) {
            (Some(a), Some(b)) if b.0 < a.0 => theirs.next(),
            (Some(_), _) => mine.next(),
            (None, _) => theirs.next(),
        } {
            match merged.last_mut() {
                Some(last) if last.0 == next.0 => last.1 += next.1,
                _ => merged.push(*next),
            }
        }
        self.latencies = merged;
    }
}

/// The seconds of a run.
#[derive(Clone, Debug, Default)]
pub struct Series {
    seconds: Vec<Second>,
    /// The latencies of the second that is the last of `seconds`.
    counts: Vec<u32>,
}

impl Series {
    /// The seconds, the first one first.
    pub fn seconds(&self) -> &[Second] {
        &self.seconds
    }

    /// The second that holds `at_ns` (from the beginning of the series); earlier ones are closed.
    fn at(&mut self, at_ns: u64) -> &mut Second {
        let wanted = (at_ns / 1_000_000_000) as usize;
        if wanted >= self.seconds.len() {
            self.close_second();
            self.seconds.resize(wanted + 1, Second::default());
        }
        &mut self.seconds[wanted]
    }

    /// A request was due or sent.
    pub fn offered(&mut self, at_ns: u64) {
        self.at(at_ns).offered += 1;
    }

    /// A request failed.
    pub fn failed(&mut self, at_ns: u64) {
        self.at(at_ns).failed += 1;
    }

    /// A request was answered.
    ///
    /// REQUIRES: `at_ns` is not before the last second that something was answered in.
    pub fn answered(&mut self, at_ns: u64, latency_ns: u64) {
        self.at(at_ns).answered += 1;
        if self.counts.is_empty() {
            self.counts = vec![0; BUCKETS];
        }
        self.counts[bucket(latency_ns)] += 1;
    }

    /// Puts the latencies counted so far into the last second.
    fn close_second(&mut self) {
        let Some(last) = self.seconds.last_mut() else {
            return;
        };
        for (bucket, count) in self.counts.iter_mut().enumerate() {
            if *count > 0 {
                last.latencies.push((bucket as u16, std::mem::take(count)));
            }
        }
    }

    /// No more comes; the series has exactly so many seconds.
    pub fn finish(&mut self, seconds: usize) {
        self.close_second();
        self.counts = Vec::new();
        self.seconds.resize(seconds, Second::default());
    }

    pub(super) fn add(&mut self, other: &Series) {
        let longest = self.seconds.len().max(other.seconds.len());
        self.seconds.resize(longest, Second::default());
        for (mine, theirs) in self.seconds.iter_mut().zip(&other.seconds) {
            mine.add(theirs);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_in_order_and_narrow() {
        let mut last = 0;
        for us in (0..1_000_000u64).step_by(7).chain([600_000_000]) {
            let place = bucket(us * 1_000);
            assert!(place >= last && place < BUCKETS);
            last = place;
            let off = middle_ms(place) * 1e3 - us as f64;
            assert!(off.abs() <= 1.0 + us as f64 / 32.0, "{us} µs: off by {off}");
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn seconds_keep_their_own() {
        let mut series = Series::default();
        let second = 1_000_000_000;
        for i in 0..100 {
            series.offered(i);
            series.answered(i, 1_000_000 * (i + 1));
        }
        series.failed(second);
        series.answered(3 * second, 5_000_000);
        series.finish(5);
        let seconds = series.seconds();
        assert_eq!(
            (seconds[0].offered, seconds[0].answered, seconds[1].failed),
            (100, 100, 1)
        );
        let near =
            |got: Option<f64>, wanted: f64| (got.expect("answered") / wanted - 1.0).abs() < 0.02;
        assert!(near(seconds[0].percentile_ms(50.0), 50.0));
        assert!(near(seconds[0].percentile_ms(99.0), 99.0));
        assert!(near(seconds[3].percentile_ms(50.0), 5.0));
        assert_eq!((seconds[1].percentile_ms(50.0), seconds.len()), (None, 5));
    }

    #[test]
    fn threads_add_up() {
        let made = |latencies: &[u64]| {
            let mut series = Series::default();
            latencies
                .iter()
                .for_each(|ms| series.answered(7, ms * 1_000_000));
            series.finish(1);
            series
        };
        let mut one = made(&[1, 5, 9]);
        one.add(&made(&[2, 5, 8]));
        let whole = made(&[1, 2, 5, 5, 8, 9]);
        assert_eq!(one.seconds(), whole.seconds());
    }
}
