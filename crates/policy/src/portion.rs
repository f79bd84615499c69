//! Rates of a tenant that several fronts keep together, where each front decides alone.
//!
//! A limit of 10,000 requests a second is one of all fronts, wherever clients connect. Each front
//! keeps to a portion of it, and tells the others two things: what it used, and what it claims. To
//! be exact it takes no leader:
//!
//! * What a front is due is max-min fair over what all used ([`fair_shares`]). Who was held back
//!   wants all that he can get; the others what they used, and a little to grow. What nobody wants
//!   is divided evenly.
//! * A front keeps to the least of its claim, of what it is due, and of what the claims of the
//!   others leave ([`Portion::keep`]). It claims *before* it looks at the others' claims, so of two
//!   that take the same at once at least one sees it. All portions together are therefore never
//!   more than the whole, in whatever order fronts read and write.
//! * A hundredth is divided evenly beforehand: where a tenant has used nothing, its next request is
//!   served, and is seen to want more.
//!
//! This is distributed rate limiting by max-min shares instead of by flows (Raghavan et al.,
//! SIGCOMM 2007, has gossip and both parts); Pisces leaves limits to each node.

use crate::placement::{fair_shares, Claim};

/// The part of the whole that is divided evenly beforehand.
const SPARE: f64 = 0.01;
/// Who is not held back may have this much more than he used, as a part of it.
const GROWTH: f64 = 0.03;
/// A front was held back if it used this much of its portion, and something of the tenant waited
/// for most of the time.
const NEARLY: f64 = 0.8;
const MOSTLY: f64 = 0.5;
/// What the newest round counts in the mean of what was used.
const NEWEST: f64 = 0.5;

/// What a front says of a tenant's rates.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Told {
    /// What it used of late, as a part of the whole rate; of several rates the one used most.
    pub used: f64,
    /// It was held back: it could use more.
    pub more: bool,
    /// What it claims of what is divided.
    pub claim: f64,
}

/// What a front keeps to of a tenant's rates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Portions {
    /// The part of its limits.
    pub limit: f64,
    /// The part of what it was promised: contracts, and reservations where a front keeps them.
    pub promised: f64,
}

impl Default for Portions {
    /// All of it: there is one front.
    fn default() -> Self {
        Portions {
            limit: 1.0,
            promised: 1.0,
        }
    }
}

/// One front's portion.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Portion {
    told: Told,
    /// What it used in the mean of some rounds.
    mean: f64,
    /// The part that it might use before the last change.
    had: f64,
    /// What it keeps to, of what is divided: never more than it claims.
    kept: f64,
    fronts: usize,
}

impl Portion {
    /// Of one among `fronts`, before it has heard of any.
    #[must_use]
    pub fn new(fronts: usize) -> Self {
        let fronts = fronts.max(1);
        let even = 1.0 / fronts as f64;
        Portion {
            told: Told {
                claim: even,
                ..Told::default()
            },
            mean: 0.0,
            had: even,
            kept: even,
            fronts,
        }
    }

    /// The part of a tenant's rates that it may use, above 0, at most 1.
    #[must_use]
    pub fn part(&self) -> f64 {
        SPARE / self.fronts as f64 + (1.0 - SPARE) * self.kept
    }

    /// Takes in what the tenant did here since the last time: what it used of the whole rate, and
    /// the part of the time for which something of it waited for its turn. Returns what to tell the
    /// others *before* [`Portion::keep`] is given what they tell.
    pub fn tell(&mut self, used: f64, waited: f64) -> Told {
        // Where its part has just grown, what it used is still of the old one.
        let had = self.had.min(self.part());
        // Of a small rate the spare part is less than a request a round.
        let nearly = used >= NEARLY * had || used == 0.0;
        let more = waited >= MOSTLY && nearly;
        // Less is believed slowly, for it may be chance; more at once.
        self.mean += (used - self.mean) * NEWEST;
        self.told = Told {
            used: used.max(self.mean),
            more,
            ..self.told
        };
        self.kept = self.kept.min(self.told.claim);
        self.told
    }

    /// Hears what the other fronts tell, after it has told them. From now on [`Portion::part`] is
    /// another, and so is its claim the next time.
    pub fn keep(&mut self, others: &[Told]) {
        let due = due(self.told, others);
        let claimed: f64 = others.iter().map(|other| other.claim).sum();
        let left = (1.0 - claimed).max(0.0);
        self.had = self.part();
        self.kept = self.told.claim.min(due).min(left);
        self.told.claim = due;
        self.fronts = others.len() + 1;
    }
}

/// What the first of several is due of what is divided.
fn due(first: Told, others: &[Told]) -> f64 {
    let all = || [&first].into_iter().chain(others);
    let claims = all().map(|told| Claim {
        weight: 1.0,
        reserved: 0.0,
        asks: (!told.more).then_some(told.used * (1.0 + GROWTH)),
    });
    let (_, shares) = fair_shares(1.0, &claims.collect::<Vec<_>>());
    let unasked = (1.0 - shares.iter().sum::<f64>()).max(0.0);
    shares[0] + unasked / shares.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Fronts that meet at a board, each in steps of its own: it writes, or it reads.
    struct Fronts {
        portions: Vec<Portion>,
        board: Vec<Option<Told>>,
        wrote: Vec<bool>,
    }

    impl Fronts {
        fn new(count: usize) -> Self {
            Fronts {
                portions: vec![Portion::new(count); count],
                board: vec![Some(Portion::new(count).told); count],
                wrote: vec![false; count],
            }
        }

        fn parts(&self) -> Vec<f64> {
            self.portions.iter().map(Portion::part).collect()
        }

        /// One step of a front at which the tenant asks for `asks` of the whole.
        fn step(&mut self, front: usize, asks: f64) {
            let portion = &mut self.portions[front];
            if self.wrote[front] {
                let others = self.board.iter().enumerate();
                let others = others.filter(|(other, _)| *other != front);
                let others: Vec<Told> = others.filter_map(|(_, told)| *told).collect();
                portion.keep(&others);
            } else {
                let part = portion.part();
                let waited = if asks > part { 1.0 } else { 0.0 };
                self.board[front] = Some(portion.tell(asks.min(part), waited));
            }
            self.wrote[front] = !self.wrote[front];
        }

        fn rounds(&mut self, count: usize, asks: &[f64]) {
            for _ in 0..2 * count {
                for (front, asks) in asks.iter().enumerate() {
                    self.step(front, *asks);
                }
            }
        }

        fn served(&self, asks: &[f64]) -> f64 {
            let parts = self.parts();
            let served = parts.iter().zip(asks).map(|(part, asks)| part.min(*asks));
            served.sum()
        }
    }

    #[test]
    fn who_asks_alone_has_nearly_all_and_gives_it_back() {
        let mut fronts = Fronts::new(4);
        fronts.rounds(4, &[9.0, 0.0, 0.0, 0.0]);
        assert!(fronts.parts()[0] > 0.99, "{:?}", fronts.parts());
        // Three rounds of each, whoever comes first: it is seen, it is given up, it is taken.
        fronts.rounds(3, &[9.0, 9.0, 0.0, 0.0]);
        let parts = fronts.parts();
        assert!(parts[0] < 0.5 && parts[1] > 0.49, "{parts:?}");
        fronts.rounds(3, &[9.0; 4]);
        assert!(fronts.parts().iter().all(|part| *part > 0.249));
    }

    #[test]
    fn what_one_leaves_another_uses() {
        let mut fronts = Fronts::new(3);
        let asks = [0.4, 9.0, 0.1];
        fronts.rounds(8, &asks);
        // 10,000 a second are 10,000 a second within 2 % (the growth of those that ask for less).
        assert!(fronts.served(&asks) > 0.975, "{:?}", fronts.parts());
        assert!(fronts.parts()[0] > 0.4 && fronts.parts()[2] > 0.1);
    }

    #[test]
    fn a_front_that_is_gone_leaves_its_portion() {
        let mut fronts = Fronts::new(2);
        fronts.rounds(4, &[9.0, 9.0]);
        fronts.board[1] = None;
        for _ in 0..4 {
            fronts.step(0, 9.0);
        }
        assert_eq!(fronts.parts()[0], 1.0);
    }

    #[test]
    fn who_waits_for_his_next_request_wants_more() {
        let mut portion = Portion::new(2);
        let greedy = Told {
            used: 1.0,
            more: true,
            claim: 1.0,
        };
        portion.tell(0.0, 0.0);
        portion.keep(&[greedy]);
        assert!(portion.part() < 0.01);
        // Not one was served since it was last asked.
        assert!(portion.tell(0.0, 1.0).more && !portion.tell(0.0, 0.0).more);
    }

    #[test]
    fn alone_it_is_all() {
        let mut portion = Portion::new(1);
        portion.tell(0.0, 0.0);
        portion.keep(&[]);
        assert_eq!(portion.part(), 1.0);
    }

    proptest! {
        #[test]
        fn never_more_than_the_whole(
            steps in prop::collection::vec((0..4usize, prop_oneof![Just(0.0), 0.0..0.5, Just(9.0)]), 1..300),
        ) {
            let mut fronts = Fronts::new(4);
            for (front, asks) in steps {
                fronts.step(front, asks);
                let all: f64 = fronts.parts().iter().sum();
                prop_assert!(all <= 1.0 + 1e-9, "{:?}", fronts.parts());
            }
        }

        #[test]
        fn all_of_it_is_used_wherever_it_is_asked_for(
            asks in prop::collection::vec(prop_oneof![Just(0.0), 0.0..0.5, Just(9.0)], 2..6),
        ) {
            let mut fronts = Fronts::new(asks.len());
            fronts.rounds(12, &asks);
            let wanted = asks.iter().sum::<f64>().min(1.0);
            prop_assert!(fronts.served(&asks) >= 0.96 * wanted, "{:?} of {asks:?}", fronts.parts());
        }
    }
}
