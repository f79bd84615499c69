//! Drawing from weights in constant time.

/// A discrete distribution sampled in constant time (Vose's alias method).
#[derive(Clone, Debug)]
pub struct Alias {
    /// Probability (scaled to 2^32) of keeping the column drawn, and where to go otherwise.
    columns: Vec<(u32, u32)>,
}

impl Alias {
    /// From non-negative weights. `None` if there is none above zero or more than 2^32.
    pub fn new(weights: &[f64]) -> Option<Self> {
        let total: f64 = weights.iter().sum();
        let n = u32::try_from(weights.len()).ok()?;
        if !total.is_finite() || total <= 0.0 || weights.iter().any(|w| *w < 0.0) {
            return None;
        }
        let mut scaled: Vec<f64> = weights.iter().map(|w| w * f64::from(n) / total).collect();
        let mut columns: Vec<(u32, u32)> = (0..n).map(|i| (u32::MAX, i)).collect();
        let (mut small, mut large): (Vec<usize>, Vec<usize>) =
            (0..scaled.len()).partition(|&i| scaled[i] < 1.0);
        while let (Some(less), Some(&more)) = (small.pop(), large.last()) {
            columns[less] = ((scaled[less] * u32::MAX as f64) as u32, more as u32);
            scaled[more] -= 1.0 - scaled[less];
            if scaled[more] < 1.0 {
                large.pop();
                small.push(more);
            }
        }
        Some(Self { columns })
    }

    /// An index, from one word of randomness.
    pub fn pick(&self, bits: u64) -> usize {
        let column = ((bits >> 32) * self.columns.len() as u64) >> 32;
        let (keep, other) = self.columns[column as usize];
        if (bits as u32) <= keep {
            column as usize
        } else {
            other as usize
        }
    }
}
