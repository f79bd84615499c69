//! K and R from what was seen.
//!
//! Rein leaves its two parameters to be tuned "according to the target workload" (3.3.2). What decides is how
//! requests and work are spread over bottleneck costs, and both are counted here. For levels served in strict
//! order, which steep rates come close to, Cobham (1954) gives the mean wait in each as a multiple of the
//! same residual:
//!
//! ```text
//!     W_k = W_0 / ((1 - s_(k-1)) (1 - s_k)),   s_k = load of levels 0 to k
//! ```
//!
//! So the mean wait of a request under any K and R can be computed, and the least is chosen.

use super::levels::{Levels, Rates, LEVELS_MAX};

/// Bins of bottleneck costs: four to an octave.
const BINS: usize = 256;
/// Rate of a level over that of the next: nearly strict, and yet nobody starves.
const STEEPNESS: Rates = Rates::Geometric(4);
/// Most levels that are tried: each is a queue, and beyond eight the waits differ by less than 1 %.
const COUNT_MAX: usize = 8;
/// Range factors that are tried, in quarters.
const RANGES_QUARTERS: [u32; 12] = [5, 6, 7, 8, 10, 12, 16, 20, 24, 32, 48, 64];
/// More levels must shorten the mean wait by this part to be worth their queues.
const WORTH: f64 = 0.005;
/// After so many requests old ones count half, so that a change of the workload is followed.
const HALF_LIFE: u64 = 100_000;

/// Counts multigets by their bottleneck and chooses [`Levels`] for them.
#[derive(Clone, Debug)]
pub struct Tuner {
    /// By bin: requests, and the cost of all their operations.
    bins: Vec<(u64, u64)>,
    since_halved: u64,
}

impl Default for Tuner {
    fn default() -> Self {
        Tuner {
            bins: vec![(0, 0); BINS],
            since_halved: 0,
        }
    }
}

/// What a [`Tuner`] chose, and why.
#[derive(Clone, Debug, PartialEq)]
pub struct Tuned {
    /// The levels.
    pub levels: Levels,
    /// Their range factor.
    pub range: f64,
    /// Expected mean wait, as a part of that of a single level.
    pub wait: f64,
}

impl Tuner {
    /// A multiget was tagged: the cost of its bottleneck, and of all its operations together.
    pub fn observe(&mut self, bottleneck: u64, total: u64) {
        let bin = &mut self.bins[bin_of(bottleneck)];
        bin.0 += 1;
        bin.1 = bin.1.saturating_add(total.max(1));
        self.since_halved += 1;
        if self.since_halved >= HALF_LIFE {
            self.since_halved = 0;
            for (requests, work) in &mut self.bins {
                *requests /= 2;
                *work /= 2;
            }
        }
    }

    /// The best levels for what was seen, at servers that are busy for a part `load` of the time (clamped to
    /// 0.05..0.95). `None` if nothing was seen.
    #[must_use]
    pub fn choose(&self, load: f64) -> Option<Tuned> {
        let first = self.bins.iter().position(|(requests, _)| *requests > 0)?;
        let first = cost_of(first);
        let load = load.clamp(0.05, 0.95);
        let mut best: Option<Tuned> = None;
        for count in 1..=COUNT_MAX.min(LEVELS_MAX) {
            for quarters in RANGES_QUARTERS {
                let range = f64::from(quarters) / 4.0;
                // The first threshold is R times the least cost, as in Rein.
                let levels = Levels::exponential(count, range, first, STEEPNESS);
                let wait = self.mean_wait(&levels, load);
                let worth = best.as_ref().is_none_or(|best| {
                    let more = count > best.levels.count();
                    wait < best.wait * if more { 1.0 - WORTH } else { 1.0 }
                });
                if worth {
                    best = Some(Tuned {
                        levels,
                        range,
                        wait,
                    });
                }
            }
        }
        best
    }

    /// Mean wait of a request under these levels, as a part of that under a single one.
    #[must_use]
    pub fn mean_wait(&self, levels: &Levels, load: f64) -> f64 {
        let mut by_level = [(0.0f64, 0.0f64); LEVELS_MAX];
        for (bin, (requests, work)) in self.bins.iter().enumerate() {
            let level = &mut by_level[levels.of(cost_of(bin))];
            level.0 += *requests as f64;
            level.1 += *work as f64;
        }
        let requests: f64 = by_level.iter().map(|level| level.0).sum();
        let work: f64 = by_level.iter().map(|level| level.1).sum();
        let (mut before, mut mean) = (0.0, 0.0);
        for (level_requests, level_work) in by_level {
            let up_to = before + load * level_work / work.max(1.0);
            mean += level_requests / requests.max(1.0) / ((1.0 - before) * (1.0 - up_to));
            before = up_to;
        }
        mean * (1.0 - load)
    }
}

/// Four bins to an octave, from cost 1 on.
fn bin_of(cost: u64) -> usize {
    let cost = cost.max(1);
    let octave = 63 - cost.leading_zeros();
    // The two bits below the first.
    let quarter = ((u128::from(cost) << 2) >> octave) as usize & 3;
    octave as usize * 4 + quarter
}

/// Least cost of a bin.
fn cost_of(bin: usize) -> u64 {
    let (octave, quarter) = (bin / 4, bin as u128 % 4);
    (((4 + quarter) << octave) >> 2) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn bins_hold_their_costs(cost in prop_oneof![1u64..1_000, 1u64..=u64::MAX]) {
            let bin = bin_of(cost);
            prop_assert!(cost_of(bin) <= cost);
            prop_assert!(bin + 1 == BINS || u128::from(cost_of(bin + 1)) > u128::from(cost) || cost < 4);
        }
    }
}
