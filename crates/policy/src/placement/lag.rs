//! Shares held over time: what a tenant was short of comes back with its next shares.
//!
//! Local shares say how a node divides what is asked of it, not what a tenant is served in all. A
//! tenant that asks for a little less than its share at one of its nodes leaves the rest to whoever
//! else is there, and the sums drift apart by a percent or two though every node is fair. So the
//! controller keeps for each tenant what it was served too little, as a round robin keeps what a
//! queue did not use of its quantum.
//!
//! Lags outlive moves of partitions. In a large system some partition moves at every third step,
//! and whoever has one that moves is served too little just then: that is what has to be made good.

use super::TenantSeen;

/// Steps over which a lag is made good: as few as are stable where it takes one to see what a share
/// did. At 128 nodes the least over the greatest rate of 20 s is .985 without, .991 with eight,
/// .995 with four, .997 with two.
const STEPS: f64 = 2.0;
/// The most that is added to a share or taken from it, as a part of it: a tenant that cannot use
/// more than it is given must not save up for later what others would notice.
const PART_MAX: f64 = 0.04;

/// What each tenant was served too little, as a rate over one step; negative: too much.
#[derive(Clone, Debug, Default)]
pub(super) struct Lags(Vec<f64>);

impl Lags {
    /// Takes in what was `served` in a step and corrects what each tenant may have, `rows`. Only
    /// among those that want more: the others have what they ask for. The sum of what these may
    /// have stays.
    pub(super) fn correct(&mut self, rows: &mut [f64], tenants: &[TenantSeen], served: &[f64]) {
        let among = |rates: &[f64]| -> f64 {
            let wanting = rates.iter().zip(tenants).filter(|(_, t)| t.wants_more);
            wanting.map(|(rate, _)| rate).sum()
        };
        // What all of them were served may be less than the whole: then each may have its part of
        // that.
        let (whole, all) = (among(rows), among(served));
        if whole <= 0.0 || all <= 0.0 {
            self.0.clear();
            return;
        }
        self.0.resize(rows.len(), 0.0);
        for (tenant, lag) in self.0.iter_mut().enumerate() {
            let row = &mut rows[tenant];
            if tenants[tenant].wants_more {
                let most = *row * PART_MAX;
                *lag =
                    (*lag + *row - served[tenant] * whole / all).clamp(-most * STEPS, most * STEPS);
                *row += *lag / STEPS;
            } else {
                *lag = 0.0;
            }
        }
        let scale = whole / among(rows);
        let wanting = rows.iter_mut().zip(tenants).filter(|(_, t)| t.wants_more);
        wanting.for_each(|(row, _)| *row *= scale);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tenants(wants_more: &[bool]) -> Vec<TenantSeen> {
        let one = |wants_more: &bool| TenantSeen {
            weight: 1.0,
            reserved: 0.0,
            wants_more: *wants_more,
            dominant: 0.0,
        };
        wants_more.iter().map(one).collect()
    }

    /// A system that always gives the first tenant 3 % less than its share: over time it is served
    /// its share.
    #[test]
    fn a_steady_error_is_made_good() {
        let (mut lags, tenants) = (Lags::default(), tenants(&[true, true]));
        let mut served = [97.0, 103.0];
        let mut sums = [0.0; 2];
        for step in 0..100 {
            let mut rows = [100.0, 100.0];
            lags.correct(&mut rows, &tenants, &served);
            assert!((rows[0] + rows[1] - 200.0).abs() < 1e-9);
            served = [rows[0] * 0.97, rows[1] + rows[0] * 0.03];
            if step >= 40 {
                sums[0] += served[0];
                sums[1] += served[1];
            }
        }
        assert!((sums[0] / sums[1] - 1.0).abs() < 0.001, "{sums:?}");
    }

    #[test]
    fn corrections_are_bounded_and_end_with_the_want() {
        let mut lags = Lags::default();
        let mut rows = [0.0; 3];
        for _ in 0..100 {
            rows = [100.0, 100.0, 50.0];
            lags.correct(
                &mut rows,
                &tenants(&[true, true, false]),
                &[10.0, 190.0, 50.0],
            );
        }
        assert!(
            (rows[0] - 104.0).abs() < 1e-6 && (rows[1] - 96.0).abs() < 1e-6,
            "{rows:?}"
        );
        assert!((rows[2] - 50.0).abs() < 1e-9, "{rows:?}");
        lags.correct(&mut rows, &tenants(&[false; 3]), &[50.0; 3]);
        rows = [100.0; 3];
        lags.correct(&mut rows, &tenants(&[true; 3]), &[100.0; 3]);
        assert_eq!(rows, [100.0; 3]);
    }
}
