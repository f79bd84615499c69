//! How long something took, as far as a controller must know: counts by duration, a thirty-second
//! of a power of two apart.

use crate::cost::Nanos;

/// Shorter than this is all one.
const SHORTEST_BITS: u32 = 10;
const STEP_BITS: u32 = 5;
const STEPS: usize = 1 << STEP_BITS;
/// Up to 2^44 ns, nearly five hours.
const CELLS: usize = (44 - SHORTEST_BITS as usize) * STEPS;

/// Durations of many requests. Two of them add up; older ones can be made to count less.
#[derive(Clone, Debug, PartialEq)]
pub struct Tail {
    cells: Vec<f32>,
    count: f64,
}

impl Default for Tail {
    fn default() -> Self {
        Tail {
            cells: vec![0.0; CELLS],
            count: 0.0,
        }
    }
}

/// The cell of a duration, and the longest duration of a cell.
fn cell(ns: Nanos) -> usize {
    let ns = ns.max(1 << SHORTEST_BITS);
    let power = ns.ilog2();
    let step = (ns >> (power - STEP_BITS)) as usize & (STEPS - 1);
    let cell = (power - SHORTEST_BITS) as usize * STEPS + step;
    cell.min(CELLS - 1)
}

fn longest(cell: usize) -> Nanos {
    let (power, step) = ((cell / STEPS) as u32 + SHORTEST_BITS, (cell % STEPS) as u64);
    (STEPS as u64 + 1 + step) << (power - STEP_BITS)
}

impl Tail {
    /// One request took so long.
    pub fn record(&mut self, ns: Nanos) {
        self.record_many(ns, 1);
    }

    /// So many requests took so long.
    pub fn record_many(&mut self, ns: Nanos, count: u64) {
        self.cells[cell(ns)] += count as f32;
        self.count += count as f64;
    }

    /// Adds another's, of another core or time.
    pub fn add(&mut self, other: &Tail) {
        for (here, there) in self.cells.iter_mut().zip(&other.cells) {
            *here += there;
        }
        self.count += other.count;
    }

    /// What was recorded so far counts `part` of what it did, 0 to 1.
    pub fn fade(&mut self, part: f64) {
        for cell in &mut self.cells {
            *cell *= part as f32;
        }
        self.count *= part;
    }

    /// Requests that were recorded, those that were faded by what is left of them.
    #[must_use]
    pub fn count(&self) -> f64 {
        self.count
    }

    /// Requests that took longer, without those that did so by less than a thirty-second.
    #[must_use]
    pub fn longer_than(&self, ns: Nanos) -> f64 {
        let longer = self.cells.iter().skip(cell(ns) + 1);
        longer.map(|count| f64::from(*count)).sum()
    }

    /// What a part `p` (0 to 1) of the requests did not exceed, at most a thirty-second too long;
    /// `None` if there is not even one.
    #[must_use]
    pub fn quantile(&self, p: f64) -> Option<Nanos> {
        if self.count < 1.0 {
            return None;
        }
        // From above, where the few are that matter.
        let mut above = (1.0 - p) * self.count;
        let mut top = 0;
        for (number, count) in self.cells.iter().enumerate().rev() {
            if *count <= 0.0 {
                continue;
            }
            top = number;
            above -= f64::from(*count);
            if above < 0.0 {
                break;
            }
        }
        Some(longest(top))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Never shorter than the true quantile, at most a thirty-second longer.
        #[test]
        fn quantiles_are_near(mut all in prop::collection::vec(2_000u64..1 << 40, 1..300), p in 0.0f64..1.0) {
            let mut tail = Tail::default();
            all.iter().for_each(|ns| tail.record(*ns));
            all.sort_unstable();
            let above = ((1.0 - p) * all.len() as f64).floor() as usize;
            let exact = all[all.len() - 1 - above.min(all.len() - 1)];
            let told = tail.quantile(p).expect("some");
            prop_assert!(told >= exact && told as f64 <= exact as f64 * 1.0314, "{told} {exact}");
        }
    }

    #[test]
    fn old_ones_fade() {
        let mut tail = Tail::default();
        assert_eq!(tail.quantile(0.5), None);
        tail.record(1_000_000_000);
        tail.fade(0.5);
        assert_eq!(tail.quantile(0.5), None, "half a request is none");
        let mut fresh = Tail::default();
        (0..100).for_each(|_| fresh.record(1_000_000));
        tail.add(&fresh);
        assert!(tail.quantile(0.9).expect("some") < 1_200_000);
        assert!(tail.quantile(0.999).expect("some") > 900_000_000);
    }
}
