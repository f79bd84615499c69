//! Levels: which costs they hold, and how fast they are served (Rein 3.3.2).

/// Most levels there can be.
pub const LEVELS_MAX: usize = 16;

/// How the rates of the levels fall from the first to the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rates {
    /// K, K-1, … 1: "increasing in increments of 1" (Rein 3.3.2).
    Linear,
    /// Each level is served so many times as fast as the next.
    Geometric(u32),
}

/// The thresholds and rates of K levels. Level 0 is the fastest (Rein's Q_1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Levels {
    /// Smallest cost of each level but the first, which begins at 0; never falling.
    thresholds: Vec<u64>,
    rates: Vec<u64>,
}

impl Levels {
    /// `count` levels (1 to [`LEVELS_MAX`], clamped) of which the first ends below `first * range`,
    /// and each reaches `range` (at least 1) times as far as the one before it. The last one has no
    /// end: the paper's algorithm 1 would leave a bottleneck beyond the last threshold in the
    /// *fastest* queue.
    #[must_use]
    pub fn exponential(count: usize, range: f64, first: u64, rates: Rates) -> Self {
        let count = count.clamp(1, LEVELS_MAX);
        let range = range.max(1.0);
        let thresholds = (1..count)
            .scan(first.max(1) as f64, |threshold, _| {
                *threshold *= range;
                Some(threshold.min(u64::MAX as f64).ceil() as u64)
            })
            .collect();
        let from_last = |below: usize| match rates {
            Rates::Linear => below as u64 + 1,
            Rates::Geometric(factor) => u64::from(factor.max(1)).saturating_pow(below as u32),
        };
        Levels {
            thresholds,
            // 2^40 to 1 is as good as strict order, and sums of sixteen stay far from overflow.
            rates: (0..count)
                .map(|level| from_last(count - 1 - level).min(1 << 40))
                .collect(),
        }
    }

    /// How many there are, 1 to [`LEVELS_MAX`].
    #[must_use]
    pub fn count(&self) -> usize {
        self.rates.len()
    }

    /// The rate of a level, relative to the others.
    #[must_use]
    pub fn rate(&self, level: usize) -> u64 {
        self.rates[level]
    }

    /// Smallest cost of each level but the first.
    #[must_use]
    pub fn thresholds(&self) -> &[u64] {
        &self.thresholds
    }

    /// The level of a bottleneck with this cost.
    #[must_use]
    pub fn of(&self, cost: u64) -> usize {
        self.thresholds.partition_point(|&from| from <= cost)
    }

    /// The level of an opset whose bottleneck is in level `bottleneck`: as slow, or slower, so that
    /// the ratio of the rates is nearest to the ratio of the costs (Rein algorithm 1, lines 11-23).
    #[must_use]
    pub fn slacked(&self, bottleneck: usize, cost: u64, bottleneck_cost: u64) -> usize {
        let wanted = cost as f64 / bottleneck_cost.max(1) as f64;
        let fastest = self.rates[bottleneck] as f64;
        let mut best = (f64::INFINITY, bottleneck);
        for level in bottleneck..self.count() {
            let error = (wanted - self.rates[level] as f64 / fastest).abs();
            if error < best.0 {
                best = (error, level);
            }
        }
        best.1
    }
}
