//! The measures that verdicts and plots are made of: pure functions from what runs observed to one
//! number. Each says why it cannot be computed; none invents a value.
//!
//! * [`figure`] picks a figure of some tenants and makes one number of it;
//! * [`fair`] compares tenants with one another (MMR, shares, distance to the DRF optimum);
//! * [`window`] does so over time.

pub mod fair;
pub mod figure;
pub mod window;

#[cfg(test)]
pub(crate) mod made;

/// A number, or why there is none.
pub type Measured = Result<f64, String>;

/// `value`, unless it is no number at all.
pub(crate) fn finite(value: f64, what: &str) -> Measured {
    if value.is_finite() {
        Ok(value)
    } else {
        Err(format!("{what} is not a number (nothing was measured)"))
    }
}

/// The median; the mean of the middle two of an even number; `None` of none.
pub fn median(samples: &[f64]) -> Option<f64> {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => None,
        n if n % 2 == 1 => Some(sorted[n / 2]),
        n => Some(f64::midpoint(sorted[n / 2 - 1], sorted[n / 2])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
    }

    #[test]
    fn nothing_measured_is_an_error() {
        assert!(finite(f64::NAN, "a").is_err());
        assert!(finite(f64::INFINITY, "a").is_err());
        assert_eq!(finite(0.0, "a"), Ok(0.0));
    }
}
