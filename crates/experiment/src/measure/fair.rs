//! Tenants compared with one another.

use super::figure::Choice;
use super::{finite, Measured};
use crate::observed::Observed;

/// MMR: the least weight-normalised figure over the greatest (Pisces ch. 5: x_min / x_max); 1 is
/// fair.
///
/// # Errors
/// Why there is none.
pub fn mmr(run: &Observed, choice: &Choice) -> Measured {
    of_shares(&normalised(run, choice)?)
}

/// Least over greatest.
pub(super) fn of_shares(shares: &[f64]) -> Measured {
    if shares.len() < 2 {
        return Err("fewer than two tenants to compare".into());
    }
    let least = shares.iter().copied().fold(f64::INFINITY, f64::min);
    let greatest = shares.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if greatest <= 0.0 {
        return Err("no tenant got anything".into());
    }
    finite(least / greatest, "the MMR")
}

fn normalised(run: &Observed, choice: &Choice) -> Result<Vec<f64>, String> {
    let each = choice.each(run)?;
    Ok(each
        .into_iter()
        .map(|(value, weight)| value / weight)
        .collect())
}

/// MMR of classes of tenants: of the mean weight-normalised figure of each group.
///
/// # Errors
/// Why there is none.
pub fn mmr_of_groups(run: &Observed, choice: &Choice) -> Measured {
    let tenants = run.select(&choice.tenants)?;
    let mut groups: Vec<&str> = Vec::new();
    for tenant in tenants {
        if !groups.contains(&tenant.group.as_str()) {
            groups.push(&tenant.group);
        }
    }
    let mean = |group: &&str| {
        let one = Choice {
            tenants: vec![(*group).to_string()],
            ..choice.clone()
        };
        let shares = normalised(run, &one)?;
        Ok(shares.iter().sum::<f64>() / shares.len() as f64)
    };
    of_shares(
        &groups
            .iter()
            .map(mean)
            .collect::<Result<Vec<f64>, String>>()?,
    )
}

/// Greatest minus least figure among the tenants.
///
/// # Errors
/// Why there is none.
pub fn spread(run: &Observed, choice: &Choice) -> Measured {
    let each = choice.each(run)?;
    let values = || each.iter().map(|(value, _)| *value);
    let (least, greatest) = (
        values().fold(f64::INFINITY, f64::min),
        values().fold(f64::NEG_INFINITY, f64::max),
    );
    finite(greatest - least, "the spread")
}

/// Part of everybody's figure that the chosen tenants have, 0 to 1.
///
/// # Errors
/// Why there is none.
pub fn share(run: &Observed, choice: &Choice) -> Measured {
    let everybody = Choice {
        tenants: Vec::new(),
        ..choice.clone()
    };
    let all = super::figure::value(run, &everybody)?;
    if all == 0.0 {
        return Err("nobody got anything".into());
    }
    finite(super::figure::value(run, choice)? / all, "the share")
}

/// The worse of the MMR of dominant shares and their sum.
///
/// A tenant's dominant share is its rate over the rate that the server reaches when it serves only
/// tenants of that group (`alone`). DRF gives every tenant the same share for its weight (MMR 1)
/// and wastes nothing: the shares add up to at least the whole, and to more where the groups lean
/// on different resources.
///
/// # Errors
/// Why there is none.
pub fn drf(together: &Observed, alone: &[(&str, &Observed)]) -> Measured {
    let mut shares = Vec::new();
    for tenant in &together.tenants {
        let group = alone.iter().find(|(group, _)| *group == tenant.group);
        let (_, run) = group.ok_or_else(|| {
            format!(
                "no run has the tenants of group {:?} to themselves",
                tenant.group
            )
        })?;
        let only = Choice {
            tenants: vec![tenant.group.clone()],
            ..Choice::default()
        };
        let capacity = super::figure::value(run, &only)?;
        if capacity <= 0.0 {
            return Err(format!("group {:?} alone got nothing", tenant.group));
        }
        shares.push((tenant.load.total.rate_per_s / capacity, tenant.load.weight));
    }
    let normalised: Vec<f64> = shares
        .iter()
        .map(|(share, weight)| share / weight)
        .collect();
    let sum: f64 = shares.iter().map(|(share, _)| share).sum();
    finite(of_shares(&normalised)?.min(sum), "the dominant shares")
}

#[cfg(test)]
mod tests {
    use super::super::made::rates;
    use super::*;

    fn all() -> Choice {
        Choice::default()
    }

    #[test]
    fn mmr_is_normalised_by_weight() {
        let run = rates(&[("a", 4.0, 400.0), ("b", 1.0, 50.0)]);
        assert_eq!(mmr(&run, &all()), Ok(0.5));
        assert_eq!(
            mmr(&rates(&[("a", 4.0, 400.0), ("b", 1.0, 100.0)]), &all()),
            Ok(1.0)
        );
        assert_eq!(
            mmr(&rates(&[("a", 1.0, 5.0), ("b", 1.0, 0.0)]), &all()),
            Ok(0.0)
        );
        assert!(mmr(&rates(&[("a", 1.0, 5.0)]), &all()).is_err());
        assert!(mmr(&rates(&[("a", 1.0, 0.0), ("b", 1.0, 0.0)]), &all()).is_err());
    }

    #[test]
    fn groups_are_compared_by_their_means() {
        let run = rates(&[
            ("big", 10.0, 90.0),
            ("big", 10.0, 110.0),
            ("small", 1.0, 5.0),
        ]);
        assert_eq!(mmr_of_groups(&run, &all()), Ok(0.5));
    }

    #[test]
    fn shares_and_spreads() {
        let run = rates(&[("a", 1.0, 30.0), ("b", 1.0, 90.0)]);
        let a = Choice {
            tenants: vec!["a".into()],
            ..Choice::default()
        };
        assert_eq!(share(&run, &a), Ok(0.25));
        assert_eq!(spread(&run, &all()), Ok(60.0));
    }

    #[test]
    fn the_drf_optimum_is_even_and_wastes_nothing() {
        let (small, large) = (rates(&[("s", 1.0, 1000.0)]), rates(&[("l", 1.0, 100.0)]));
        let alone = [("s", &small), ("l", &large)];
        let even = rates(&[("s", 1.0, 500.0), ("l", 1.0, 50.0)]);
        assert_eq!(drf(&even, &alone), Ok(1.0));
        let uneven = rates(&[("s", 1.0, 600.0), ("l", 1.0, 30.0)]);
        assert_eq!(drf(&uneven, &alone), Ok(0.5));
        let wasteful = rates(&[("s", 1.0, 250.0), ("l", 1.0, 25.0)]);
        assert_eq!(drf(&wasteful, &alone), Ok(0.5));
        assert!(drf(&even, &alone[..1]).is_err());
    }
}
