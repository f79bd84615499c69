//! System-wide shares: how much of the whole each tenant may have (Pisces z), and local shares that
//! add up to it.

/// What a tenant may claim of a whole.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Claim {
    /// Its share relative to others, above 0; anything else counts as 0.
    pub weight: f64,
    /// What it has before anybody's share, in the unit of the whole.
    pub reserved: f64,
    /// What it asks for; `None`: all that it can get.
    pub asks: Option<f64>,
}

/// Bisections of the level: each halves the error, so this many leave less than a part in 10^15.
const BISECTIONS: u32 = 60;

/// Shares of `whole` by weighted max-min with reservations: nobody gets more than it asks; the
/// others get `max(reserved, weight * level)`, with the highest level at which all fits. Returns
/// the level as well: what a tenant of weight 1 may have. Reservations that do not fit together are
/// cut in proportion.
#[must_use]
pub fn fair_shares(whole: f64, claims: &[Claim]) -> (f64, Vec<f64>) {
    let weight = |claim: &Claim| claim.weight.max(0.0);
    let reserved = |claim: &Claim| claim.reserved.max(0.0).min(claim.asks.unwrap_or(f64::MAX));
    let at = |level: f64, claim: &Claim| {
        let share = reserved(claim).max(weight(claim) * level);
        share.min(claim.asks.unwrap_or(f64::MAX))
    };
    let promised: f64 = claims.iter().map(reserved).sum();
    if promised > whole {
        let cut = |claim: &Claim| reserved(claim) * whole / promised;
        return (0.0, claims.iter().map(cut).collect());
    }
    let least = claims.iter().map(weight).filter(|weight| *weight > 0.0);
    let (mut low, mut high) = (0.0, whole / least.fold(f64::MAX, f64::min));
    for _ in 0..BISECTIONS {
        let level = f64::midpoint(low, high);
        if claims.iter().map(|claim| at(level, claim)).sum::<f64>() <= whole {
            low = level;
        } else {
            high = level;
        }
    }
    (low, claims.iter().map(|claim| at(low, claim)).collect())
}

/// A local share in a matrix of tenants and nodes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Cell {
    pub(super) tenant: u32,
    pub(super) node: u32,
    pub(super) share: f64,
}

/// Rounds of scaling: rows and columns agree to about a percent after ten where both can be had.
const ROUNDS: u32 = 20;

/// Scales local shares until each tenant's add up to `rows` and each node's to `columns`, keeping
/// their ratios as far as that allows (iterative proportional fitting, Deming and Stephan 1940).
/// Where both cannot be had, columns, which are what nodes have, win.
pub(super) fn fit(cells: &mut [Cell], rows: &[f64], columns: &[f64]) {
    let mut sums = vec![0.0; rows.len().max(columns.len())];
    let mut scale = |cells: &mut [Cell], totals: &[f64], of: fn(&Cell) -> u32| {
        sums.fill(0.0);
        for cell in &*cells {
            sums[of(cell) as usize] += cell.share;
        }
        for cell in cells {
            let place = of(cell) as usize;
            if sums[place] > 0.0 {
                cell.share *= totals[place] / sums[place];
            }
        }
    };
    for _ in 0..ROUNDS {
        scale(cells, rows, |cell| cell.tenant);
        scale(cells, columns, |cell| cell.node);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn claim(weight: f64, reserved: f64, asks: Option<f64>) -> Claim {
        Claim {
            weight,
            reserved,
            asks,
        }
    }

    #[test]
    fn what_one_leaves_the_others_share() {
        let claims = [
            claim(1.0, 0.0, Some(10.0)),
            claim(1.0, 0.0, None),
            claim(2.0, 0.0, None),
        ];
        let (level, shares) = fair_shares(100.0, &claims);
        let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-6, "{a} {b}");
        near(level, 30.0);
        near(shares[0], 10.0);
        near(shares[1], 30.0);
        near(shares[2], 60.0);
    }

    #[test]
    fn a_reservation_counts_before_shares() {
        let claims = [claim(1.0, 70.0, None), claim(1.0, 0.0, None)];
        let (_, shares) = fair_shares(100.0, &claims);
        assert!((shares[0] - 70.0).abs() < 1e-6 && (shares[1] - 30.0).abs() < 1e-6);
        let claims = [claim(1.0, 150.0, None), claim(1.0, 50.0, None)];
        let (_, shares) = fair_shares(100.0, &claims);
        assert!((shares[0] - 75.0).abs() < 1e-6 && (shares[1] - 25.0).abs() < 1e-6);
    }

    proptest! {
        /// Nothing is promised twice, nobody gets more than it asks, and whoever gets less than
        /// another in proportion to its weight has what it asked for.
        #[test]
        fn shares_are_max_min(claims in prop::collection::vec(
            (0.1f64..100.0, 0.0f64..5.0, prop::option::of(0.0f64..50.0)), 1..20), whole in 100.0f64..1e4)
        {
            let claims: Vec<Claim> = claims.into_iter().map(|(w, r, a)| claim(w, r, a)).collect();
            let (level, shares) = fair_shares(whole, &claims);
            prop_assert!(shares.iter().sum::<f64>() <= whole * (1.0 + 1e-9));
            for (claim, share) in claims.iter().zip(&shares) {
                let asks = claim.asks.unwrap_or(f64::MAX);
                prop_assert!(*share <= asks);
                prop_assert!(*share >= asks.min(claim.weight * level) * (1.0 - 1e-9));
            }
            if claims.iter().any(|claim| claim.asks.is_none()) {
                prop_assert!(shares.iter().sum::<f64>() >= whole * (1.0 - 1e-6));
            }
        }

        /// From the margins of a matrix that exists, both are found again.
        #[test]
        fn fitting_finds_rows_and_columns(known in prop::collection::vec(1.0f64..10.0, 12)) {
            let cells = |share: &dyn Fn(usize) -> f64| -> Vec<Cell> {
                (0..12).map(|i| Cell { tenant: i as u32 / 4, node: i as u32 % 4, share: share(i) }).collect()
            };
            let (mut rows, mut columns) = (vec![0.0; 3], vec![0.0; 4]);
            for cell in cells(&|i| known[i]) {
                rows[cell.tenant as usize] += cell.share;
                columns[cell.node as usize] += cell.share;
            }
            let mut fitted = cells(&|_| 1.0);
            fit(&mut fitted, &rows, &columns);
            let sum: f64 = fitted.iter().filter(|cell| cell.tenant == 1).map(|cell| cell.share).sum();
            prop_assert!((sum / rows[1] - 1.0).abs() < 0.01);
            let sum: f64 = fitted.iter().filter(|cell| cell.node == 2).map(|cell| cell.share).sum();
            prop_assert!((sum / columns[2] - 1.0).abs() < 1e-9);
        }
    }
}
