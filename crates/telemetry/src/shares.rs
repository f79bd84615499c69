//! What tenants should get and what they got, in percent.
//!
//! Requests, bytes and CPU time are compared through the dominant resource (DRF): each is divided
//! by the server's capacity for it, and the largest of the quotients is what the tenant holds of
//! the server.

use serde::{Deserialize, Serialize};

use crate::model::TenantSnapshot;
use crate::totals::Usage;

/// What one second of the whole server holds, all cores together. All above 0.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Capacities {
    /// Requests per second.
    pub requests_per_s: f64,
    /// Bytes of requests per second.
    pub bytes_in_per_s: f64,
    /// Bytes of replies per second.
    pub bytes_out_per_s: f64,
    /// CPU seconds per second: the number of cores.
    pub cpu_per_s: f64,
}

/// What a tenant used lately, per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Recent {
    /// Requests answered per second.
    pub requests_per_s: f64,
    /// Bytes of requests per second.
    pub bytes_in_per_s: f64,
    /// Bytes of replies per second.
    pub bytes_out_per_s: f64,
    /// CPU seconds per second.
    pub cpu_per_s: f64,
    /// Share of the time, 0 to 1 a core, with a request waiting at the request stage, summed over
    /// cores.
    pub occupancy: f64,
}

impl Recent {
    pub(crate) fn over(spent: &Usage, span_ns: u64) -> Self {
        let span_s = span_ns as f64 / 1e9;
        Self {
            requests_per_s: spent.requests as f64 / span_s,
            bytes_in_per_s: spent.bytes_in as f64 / span_s,
            bytes_out_per_s: spent.bytes_out as f64 / span_s,
            cpu_per_s: spent.cpu_ns as f64 / 1e9 / span_s,
            occupancy: spent.occupied_ns as f64 / 1e9 / span_s,
        }
    }

    /// The part of the server held through the dominant resource (Pisces 4.3.3, DRF): 0 to about 1.
    pub fn dominant(&self, capacities: &Capacities) -> f64 {
        [
            self.requests_per_s / capacities.requests_per_s,
            self.bytes_in_per_s / capacities.bytes_in_per_s,
            self.bytes_out_per_s / capacities.bytes_out_per_s,
            self.cpu_per_s / capacities.cpu_per_s,
        ]
        .into_iter()
        .fold(0.0, f64::max)
    }
}

/// A tenant's share of the server, in percent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Share {
    /// Its weight's part of the weights of all tenants: the least it gets when everybody wants
    /// everything.
    pub configured_percent: f64,
    /// What its weight entitles it to at the moment: its part of the weights of those active now
    /// (itself included, even if idle).
    pub entitled_percent: f64,
    /// Its dominant share's part of all dominant shares: what it took of what was served.
    pub got_percent: f64,
}

/// What a tenant may claim, and what it took.
#[derive(Clone, Copy, Debug)]
pub struct Using {
    /// Its weight.
    pub weight: f64,
    /// Its weight here: the same, unless several fronts divide it.
    pub weight_here: f64,
    /// What it used lately; none: nothing.
    pub used: Option<Recent>,
}

impl Using {
    /// Of a tenant, which used this lately.
    pub(crate) fn of(tenant: &TenantSnapshot, used: Option<Recent>) -> Self {
        Self {
            weight: tenant.weight,
            weight_here: tenant.weight_here,
            used,
        }
    }
}

/// The shares of tenants, and of newcomers behind them, if they are asked for: these have a share
/// while they are there, and none is kept for them.
pub fn shares(tenants: &[Using], newcomers: Option<&Using>, capacities: &Capacities) -> Vec<Share> {
    let all: f64 = tenants.iter().map(|tenant| tenant.weight).sum();
    let everybody = || tenants.iter().chain(newcomers);
    let active: f64 = everybody()
        .filter(|tenant| tenant.used.is_some())
        .map(|tenant| tenant.weight_here)
        .sum();
    let held = |used: &Option<Recent>| used.map_or(0.0, |used| used.dominant(capacities));
    let served: f64 = everybody().map(|tenant| held(&tenant.used)).sum();
    let percent = |part: f64, whole: f64| {
        if whole > 0.0 {
            100.0 * part / whole
        } else {
            0.0
        }
    };
    let share = |tenant: &Using| Share {
        configured_percent: percent(tenant.weight, all),
        entitled_percent: percent(
            tenant.weight_here,
            if tenant.used.is_some() {
                active
            } else {
                active + tenant.weight_here
            },
        ),
        got_percent: percent(held(&tenant.used), served),
    };
    everybody().map(share).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SERVER: Capacities = Capacities {
        requests_per_s: 1e5,
        bytes_in_per_s: 1e9,
        bytes_out_per_s: 1e9,
        cpu_per_s: 2.0,
    };

    fn using(weight: f64, used: Option<Recent>) -> Using {
        Using {
            weight,
            weight_here: weight,
            used,
        }
    }

    #[test]
    fn shares_follow_the_dominant_resource() {
        let small = Recent {
            requests_per_s: 30_000.0,
            ..Recent::default()
        };
        let large = Recent {
            bytes_out_per_s: 6e8,
            requests_per_s: 600.0,
            ..Recent::default()
        };
        let shares = shares(
            &[
                using(1.0, Some(small)),
                using(2.0, Some(large)),
                using(1.0, None),
            ],
            None,
            &SERVER,
        );
        let got: Vec<f64> = shares
            .iter()
            .map(|share| share.got_percent.round())
            .collect();
        assert_eq!(got, [33.0, 67.0, 0.0]);
        let entitled: Vec<f64> = shares
            .iter()
            .map(|share| share.entitled_percent.round())
            .collect();
        assert_eq!(
            entitled,
            [33.0, 67.0, 25.0],
            "an idle tenant is told what it would get"
        );
        assert_eq!(shares[1].configured_percent, 50.0);
    }

    #[test]
    fn nobody_there_divides_nothing() {
        assert!(shares(&[], None, &SERVER).is_empty());
        assert_eq!(
            shares(&[using(3.0, None)], None, &SERVER)[0].entitled_percent,
            100.0
        );
    }

    #[test]
    fn newcomers_have_a_share_while_they_are_there_and_none_is_kept_for_them() {
        let used = Some(Recent {
            requests_per_s: 100.0,
            ..Recent::default()
        });
        let tenants = [using(1.0, used), using(1.0, None)];
        let shares = shares(&tenants, Some(&using(1.0, used)), &SERVER);
        let percents = shares
            .iter()
            .map(|one| (one.configured_percent, one.entitled_percent));
        let percents: Vec<_> = percents.map(|(a, b)| (a.round(), b.round())).collect();
        assert_eq!(percents[..2], [(50.0, 50.0), (50.0, 33.0)]);
        assert_eq!((shares.len(), percents[2].1), (3, 50.0));
    }

    #[test]
    fn what_a_tenant_is_entitled_to_follows_its_weight_here() {
        let used = Some(Recent::default());
        let most_is_here = Using {
            weight_here: 3.0,
            ..using(1.0, used)
        };
        let shares = shares(&[most_is_here, using(1.0, used)], None, &SERVER);
        let percents = (shares[0].configured_percent, shares[0].entitled_percent);
        assert_eq!(percents, (50.0, 75.0));
    }
}
