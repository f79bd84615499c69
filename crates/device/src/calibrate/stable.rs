//! The same thing measured several times.

/// Measurements of one load.
#[derive(Clone, Debug, Default)]
pub(super) struct Series(Vec<f64>);

/// Half the range of the values: a tenth of a curve's step from one size to the next.
const STABLE: f64 = 0.05;
/// From so many values on, the best and the worst are left out.
const TRIM_FROM: usize = 5;

impl Series {
    pub(super) fn push(&mut self, value: f64) {
        let at = self.0.partition_point(|other| *other < value);
        self.0.insert(at, value);
    }

    pub(super) fn samples(&self) -> &[f64] {
        &self.0
    }

    /// The middle value; of an even number, the mean of the two in the middle.
    pub(super) fn median(&self) -> f64 {
        let (low, high) = (self.0.len().saturating_sub(1) / 2, self.0.len() / 2);
        match (self.0.get(low), self.0.get(high)) {
            (Some(low), Some(high)) => (low + high) / 2.0,
            _ => 0.0,
        }
    }

    /// Half the range as a part of the median.
    pub(super) fn spread(&self) -> f64 {
        let trim = usize::from(self.0.len() >= TRIM_FROM);
        let kept = &self.0[trim..self.0.len() - trim];
        match (kept.first(), kept.last()) {
            (Some(least), Some(greatest)) => (greatest - least) / 2.0 / self.median(),
            _ => 0.0,
        }
    }

    pub(super) fn stable(&self) -> bool {
        self.spread() <= STABLE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_outlier_of_five_is_forgiven() {
        let mut series = Series::default();
        for value in [100.0, 104.0, 30.0, 98.0] {
            series.push(value);
        }
        assert!(!series.stable());
        assert!((series.median() - 99.0).abs() < 1e-9);
        series.push(102.0);
        assert!(series.stable());
        assert!((series.median() - 100.0).abs() < 1e-9);
        assert!((series.spread() - 0.02).abs() < 1e-9);
        assert_eq!(series.samples().len(), 5);
    }
}
