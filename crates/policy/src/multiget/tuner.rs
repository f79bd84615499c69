//! K and R from what was seen.
//!
//! Rein leaves its two parameters to be tuned "according to the target workload" (3.3.2). What
//! decides is how requests and work are spread over bottleneck costs, and both are counted here.
//! For levels served in strict order, which steep rates come close to, Cobham (1954) gives the mean
//! wait in each as a multiple of the same residual:
//!
//! ```text
//!     W_k = W_0 / ((1 - s_(k-1)) (1 - s_k)),   s_k = load of levels 0 to k
//! ```
//!
//! So the mean wait of a request under any K and R can be computed, and the least is chosen.

use super::levels::{Levels, Rates, LEVELS_MAX};
use super::tag::Strategy;

/// Bins of bottleneck costs: four to an octave.
const BINS: usize = 256;
/// Rate of a level over that of the next: nearly strict, and yet nobody starves.
const STEEPNESS: Rates = Rates::Geometric(4);
/// Most levels that are tried: each is a queue, and beyond eight the waits differ by less than 1 %.
const COUNT_MAX: usize = 8;
/// Range factors that are tried, in sixteenths: close where they are small, because a threshold
/// must be able to lie between any two bins.
const RANGES_SIXTEENTHS: [u32; 18] = [
    17, 18, 20, 22, 24, 26, 28, 32, 36, 40, 48, 56, 64, 80, 96, 128, 192, 256,
];
/// More levels must shorten the mean wait by this part to be worth their queues. It is small
/// because the tail, of which the mean says little, gains ten times as much (the sweep of
/// `rein-sensitivity`: from 6 to 8 levels the mean stays, the 99th percentile falls by 4 %).
const WORTH: f64 = 0.000_5;
/// Part of the requests that is put off, so that the other 99 % are served as if these were not
/// there.
const TAIL_SHARE: f64 = 0.01;
/// After this many requests old ones count half, so that a change of the workload is followed,
/// where nothing else is said.
const HALF_LIFE: u64 = 100_000;
/// What counts less than so much of a request is forgotten: one of the tail, that was seen once,
/// after 400,000 others.
const FORGOTTEN: f64 = 1.0 / 16.0;

/// Counts multigets by their bottleneck and chooses [`Levels`] for them.
#[derive(Clone, Debug)]
pub struct Tuner {
    /// By bin of bottlenecks.
    bins: Vec<Bin>,
    since_halved: u64,
    half_life: u64,
}

/// Requests, fading.
#[derive(Clone, Copy, Debug, Default)]
struct Bin {
    requests: f64,
    /// The cost of all their operations.
    work: f64,
    /// The sum of the squares of these costs. Requests of one bottleneck differ by how many others
    /// they have beside it.
    squares: f64,
}

impl Default for Tuner {
    fn default() -> Self {
        Tuner::forgetting(HALF_LIFE)
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
    /// A tuner to which old requests count half after `half_life` more. What was seen once is
    /// forgotten after four times as many, so who is to know the largest 1 % needs some thousands.
    #[must_use]
    pub fn forgetting(half_life: u64) -> Self {
        Tuner {
            bins: vec![Bin::default(); BINS],
            since_halved: 0,
            half_life: half_life.max(1),
        }
    }

    /// A multiget was tagged: the cost of its bottleneck, and of all its operations together.
    pub fn observe(&mut self, bottleneck: u64, total: u64) {
        let bin = &mut self.bins[bin_of(bottleneck)];
        let work = total.max(1) as f64;
        bin.requests += 1.0;
        bin.work += work;
        bin.squares += work * work;
        self.since_halved += 1;
        if self.since_halved >= self.half_life {
            self.since_halved = 0;
            for bin in &mut self.bins {
                *bin = Bin {
                    requests: bin.requests / 2.0,
                    work: bin.work / 2.0,
                    squares: bin.squares / 2.0,
                };
                if bin.requests < FORGOTTEN {
                    *bin = Bin::default();
                }
            }
        }
    }

    /// The best levels for what was seen, at servers that are busy for a part `load` of the time
    /// (clamped to 0.05..0.95). `None` if nothing was seen.
    #[must_use]
    pub fn choose(&self, load: f64) -> Option<Tuned> {
        let least = self.bins.iter().position(|bin| bin.requests > 0.0)?;
        let load = load.clamp(0.05, 0.95);
        let mut best: Option<Tuned> = None;
        for count in 1..=COUNT_MAX.min(LEVELS_MAX) {
            for sixteenths in RANGES_SIXTEENTHS {
                // Rein counts from a cost of 1; nanoseconds begin higher.
                for first in [cost_of(least), 1] {
                    let range = f64::from(sixteenths) / 16.0;
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
        }
        best
    }

    /// [`Strategy::Deadline`] for what was seen. Serving small multigets first shortens every
    /// percentile if sizes vary more than exponentially, and lengthens the tail if they vary less,
    /// for then nobody is small (Wierman and Zwart, 2012): so once the bottleneck and the largest 1
    /// % put off, or only what slack allows. More stretch than once moves the median by 1 % and
    /// costs the 99th percentile 6 to 12 % (`rein-synthetic`).
    #[must_use]
    pub fn deadline(&self) -> Strategy {
        let (mut requests, mut work, mut squares) = (0.0, 0.0, 0.0);
        for bin in &self.bins {
            requests += bin.requests;
            work += bin.work;
            squares += bin.squares;
        }
        // The squared coefficient of variation of a request's work; 1 for an exponential.
        let variation = squares * requests / (work * work) - 1.0;
        let (stretch_quarters, slack_quarters, tail) = match variation >= 1.0 {
            true => (4, 0, self.tail()),
            false => (0, 2, u64::MAX),
        };
        Strategy::Deadline {
            stretch_quarters,
            slack_quarters,
            tail,
        }
    }

    /// Least bottleneck cost that at most [`TAIL_SHARE`] of the requests reach.
    fn tail(&self) -> u64 {
        let requests: f64 = self.bins.iter().map(|bin| bin.requests).sum();
        let beyond = (requests * TAIL_SHARE).floor();
        let mut seen = 0.0;
        let bins = self.bins.iter().enumerate().rev();
        let mut above = bins.skip_while(|(_, bin)| {
            seen += bin.requests;
            seen <= beyond
        });
        above.next().map_or(u64::MAX, |(bin, _)| {
            // The lowest bins hold no more than one cost each.
            cost_of(bin + 1).max(cost_of(bin).saturating_add(1))
        })
    }

    /// Mean wait of a request under these levels, as a part of that under a single one.
    #[must_use]
    pub fn mean_wait(&self, levels: &Levels, load: f64) -> f64 {
        let mut by_level = [(0.0f64, 0.0f64); LEVELS_MAX];
        for (place, bin) in self.bins.iter().enumerate() {
            let level = &mut by_level[levels.of(cost_of(place))];
            level.0 += bin.requests;
            level.1 += bin.work;
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
    u64::try_from(((4 + quarter) << octave) >> 2).unwrap_or(u64::MAX)
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
