//! Tenants whose weights several fronts divide: what that comes to for the worst off of them,
//! beside the best division that there is.

use policy::placement::{fair_shares, Claim};
use policy::portion::{Divided, Portion, Told};
use proptest::prelude::*;

/// What a tenant asks for where it takes all that it can get.
const ALL: f64 = 1e9;

/// Fronts that serve so much each, and tenants that ask for so much at each of them.
#[derive(Clone, Debug)]
struct Market {
    capacities: Vec<f64>,
    weights: Vec<f64>,
    /// By tenant, then front.
    asks: Vec<Vec<f64>>,
}

impl Market {
    fn new(capacities: &[f64], tenants: &[(f64, &[f64])]) -> Self {
        Market {
            capacities: capacities.to_vec(),
            weights: tenants.iter().map(|(weight, _)| *weight).collect(),
            asks: tenants.iter().map(|(_, asks)| asks.to_vec()).collect(),
        }
    }

    /// What each tenant is served at each front, where its weight there is multiplied by that.
    fn served(&self, times: &[Vec<f64>]) -> Vec<Vec<f64>> {
        let mut served = vec![vec![0.0; self.capacities.len()]; self.weights.len()];
        for (front, capacity) in self.capacities.iter().enumerate() {
            let claims = (0..self.weights.len()).map(|tenant| Claim {
                weight: self.weights[tenant] * times[tenant][front],
                reserved: 0.0,
                asks: Some(self.asks[tenant][front]),
            });
            let (_, shares) = fair_shares(*capacity, &claims.collect::<Vec<_>>());
            for (tenant, share) in shares.into_iter().enumerate() {
                served[tenant][front] = share;
            }
        }
        served
    }

    /// The most that every tenant can have at once for a weight of 1, or all that it asks for. Any
    /// some of them must find room where they ask (maximum flow, minimum cut).
    fn level(&self) -> f64 {
        let fits = |level: f64| {
            (1..1u32 << self.weights.len()).all(|some| {
                let of = |tenant: &usize| some >> tenant & 1 == 1;
                let some = || (0..self.weights.len()).filter(of);
                let due = some().map(|tenant| self.due(tenant, level)).sum::<f64>();
                let room = self.capacities.iter().enumerate().map(|(front, capacity)| {
                    let asked: f64 = some().map(|tenant| self.asks[tenant][front]).sum();
                    asked.min(*capacity)
                });
                due <= room.sum::<f64>() + 1e-9
            })
        };
        let (mut low, mut high) = (0.0, 1e4);
        for _ in 0..60 {
            let level = f64::midpoint(low, high);
            match fits(level) {
                true => low = level,
                false => high = level,
            }
        }
        low
    }

    fn due(&self, tenant: usize, level: f64) -> f64 {
        let asked: f64 = self.asks[tenant].iter().sum();
        asked.min(self.weights[tenant] * level)
    }

    /// What the worst off has of what it would have in the best division.
    fn worst(&self, served: &[Vec<f64>]) -> f64 {
        let level = self.level();
        let parts = served.iter().enumerate().filter_map(|(tenant, served)| {
            let due = self.due(tenant, level);
            (due > 0.0).then(|| served.iter().sum::<f64>() / due)
        });
        parts.fold(1.0, f64::min)
    }
}

/// The fronts before it, which tell each other in rounds.
struct Fronts {
    market: Market,
    /// By tenant, then front.
    portions: Vec<Vec<Portion>>,
    /// The most that a part has changed in a round.
    largest_step: f64,
}

impl Fronts {
    fn new(market: Market) -> Self {
        let fronts = market.capacities.len();
        let one = vec![Portion::new(Divided::Weight, fronts); fronts];
        Fronts {
            portions: vec![one; market.weights.len()],
            market,
            largest_step: 0.0,
        }
    }

    fn times(&self) -> Vec<Vec<f64>> {
        let of = |portions: &Vec<Portion>| portions.iter().map(Portion::times_even).collect();
        self.portions.iter().map(of).collect()
    }

    fn served(&self) -> Vec<Vec<f64>> {
        self.market.served(&self.times())
    }

    fn rounds(&mut self, count: u32) {
        for _ in 0..count {
            let served = self.served();
            for (tenant, portions) in self.portions.iter_mut().enumerate() {
                let before: Vec<f64> = portions.iter().map(Portion::part).collect();
                let of = portions.iter_mut().enumerate().map(|(front, portion)| {
                    let (got, asks) = (served[tenant][front], self.market.asks[tenant][front]);
                    portion.tell(got, 1e3, if got < asks { 1.0 } else { 0.0 })
                });
                let told: Vec<Told> = of.collect();
                for (front, portion) in portions.iter_mut().enumerate() {
                    let mut others = told.clone();
                    others.remove(front);
                    portion.keep(&others, told.len());
                    let step = (portion.part() - before[front]).abs();
                    self.largest_step = self.largest_step.max(step);
                }
            }
        }
    }

    fn worst(&self) -> f64 {
        self.market.worst(&self.served())
    }
}

#[test]
fn who_can_be_served_at_one_front_only_has_it_and_the_other_is_made_up_for_it() {
    let market = Market::new(&[1.0; 3], &[(1.0, &[ALL, 0.0, 0.0]), (1.0, &[ALL; 3])]);
    let mut fronts = Fronts::new(market);
    let first = |fronts: &Fronts| fronts.served()[0][0];
    assert!(
        (first(&fronts) - 0.5).abs() < 1e-9,
        "at first each is by itself"
    );
    fronts.rounds(40);
    // The other has two fronts for itself, and a little here.
    assert!(first(&fronts) > 0.95, "{:?}", fronts.served());
    assert!(fronts.served()[1][0] > 0.003, "nobody starves anywhere");
}

#[test]
fn where_nobody_else_competes_weight_is_given_up_that_helps_elsewhere() {
    // The second has a third front for itself, and asks for little there.
    let asks: [&[f64]; 2] = [&[ALL, ALL, 0.0], &[ALL, ALL, 0.1]];
    let market = Market::new(&[1.0; 3], &[(1.0, asks[0]), (1.0, asks[1])]);
    let mut fronts = Fronts::new(market);
    fronts.rounds(40);
    let served = fronts.served();
    assert!(fronts.worst() > 0.96, "{served:?}");
    assert!(
        fronts.times()[1][2] < 0.4 && served[1][2] > 0.099,
        "{served:?}"
    );
}

#[test]
fn the_example_of_pisces_comes_to_its_local_weights() {
    // Thesis, figure 3.4: 60 and 40 here, 40 and 60 there, and one that asks for more.
    let market = Market::new(&[100.0; 2], &[(1.0, &[60.0, ALL]), (1.0, &[60.0, 40.0])]);
    let mut fronts = Fronts::new(market);
    fronts.rounds(60);
    let sums: Vec<f64> = fronts.served().iter().map(|at| at.iter().sum()).collect();
    assert!(
        (sums[0] - 100.0).abs() < 5.0 && (sums[1] - 100.0).abs() < 5.0,
        "{sums:?}"
    );
}

#[test]
fn a_tenant_that_moves_is_followed() {
    let market = Market::new(&[1.0; 2], &[(1.0, &[ALL, 0.0]), (1.0, &[0.0, ALL])]);
    let mut fronts = Fronts::new(market);
    fronts.rounds(20);
    fronts.market.asks[1] = vec![ALL, 0.0];
    // Rounds are four a second.
    fronts.rounds(12);
    assert!(fronts.served()[1][0] > 0.4, "{:?}", fronts.served());
}

#[test]
fn what_changes_changes_in_steps() {
    let market = Market::new(&[1.0; 3], &[(1.0, &[ALL, 0.0, 0.0]), (1.0, &[ALL; 3])]);
    let mut fronts = Fronts::new(market);
    fronts.rounds(40);
    fronts.market.asks.swap(0, 1);
    fronts.rounds(40);
    // Half of the way, but for a front to which a tenant comes.
    assert!(fronts.largest_step < 0.7, "{}", fronts.largest_step);
    // And then it rests.
    fronts.largest_step = 0.0;
    fronts.rounds(20);
    assert!(fronts.largest_step < 0.01, "{}", fronts.largest_step);
}

fn asks() -> impl Strategy<Value = f64> {
    prop_oneof![Just(0.0), 0.05..1.0f64, Just(ALL), Just(ALL)]
}

proptest! {
    /// Whoever is worst off has nearly what the best division of all would give it, and never less
    /// than what it would have if each front went by the whole weight.
    #[test]
    fn the_worst_off_has_nearly_its_share_of_all(
        capacities in prop::collection::vec(0.5..2.0f64, 3),
        tenants in prop::collection::vec((0.5..4.0f64, prop::collection::vec(asks(), 3)), 2..5),
    ) {
        let (weights, asks) = tenants.into_iter().unzip();
        let market = Market { capacities, weights, asks };
        let mut fronts = Fronts::new(market);
        let alone = fronts.worst();
        fronts.rounds(200);
        let together = fronts.worst();
        prop_assert!(together >= 0.75, "{together} (alone {alone}): {:?}", fronts.served());
        prop_assert!(together >= alone * 0.9, "{together} (alone {alone}): {:?}", fronts.served());
    }

    /// All fronts that serve something of a tenant have its weight together, from one round to the
    /// next: to a hundredth, and another one at each front where it has less than its least part.
    /// One that serves nothing of it has an even part besides.
    #[test]
    fn weights_are_kept(
        capacities in prop::collection::vec(0.5..2.0f64, 3),
        tenants in prop::collection::vec((0.5..4.0f64, prop::collection::vec(asks(), 3)), 2..5),
    ) {
        let (weights, asks) = tenants.into_iter().unzip();
        let mut fronts = Fronts::new(Market { capacities, weights, asks });
        for round in 0..30 {
            fronts.rounds(1);
            for (times, served) in fronts.times().into_iter().zip(fronts.served()) {
                let at = || times.iter().zip(&served);
                let idle = at().filter(|(_, served)| **served <= 0.0).count() as f64;
                let all: f64 = times.iter().sum();
                // Where a tenant comes it has more before it has less elsewhere.
                let comes = if round < 10 { 1.0 } else { 0.0 };
                let most = 3.06 + idle + comes;
                prop_assert!((2.97..=most).contains(&all), "{round}: {times:?} {served:?}");
                let busy = at().filter(|(_, served)| **served > 0.0).map(|(times, _)| times);
                let busy: f64 = busy.sum();
                // Where it has all that it asks for, half of its weight stays even.
                let settled = round == 29 && idle < 3.0;
                prop_assert!(!settled || busy <= 3.06, "{times:?} {served:?}");
            }
        }
    }
}
