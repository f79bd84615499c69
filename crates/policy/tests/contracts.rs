//! The contract of a promise over several fronts: each keeps to a part of it, which follows what
//! clients offer there.

use policy::portion::{Divided, Portion, Told};
use policy::slo::{asked, Contract};
use policy::Nanos;
use proptest::prelude::*;

const S: Nanos = 1_000_000_000;
/// Fronts tell each other so often.
const ROUND: Nanos = S / 4;
/// Of all fronts together.
const PER_S: f64 = 1_000.0;

/// One front: what it keeps to, and what it was offered when it last told.
struct Front {
    portion: Portion,
    contract: Contract,
    before: u64,
    told_at: Nanos,
    /// It meets the others every so many rounds.
    every: u64,
}

/// Fronts that meet at a board: each writes what it tells and reads what the others wrote last.
struct Fronts {
    fronts: Vec<Front>,
    board: Vec<Told>,
    round: u64,
}

impl Fronts {
    /// Fronts that meet every so many rounds.
    fn new(every: &[u64]) -> Self {
        let all = every.len();
        let front = |every: &u64| {
            let portion = Portion::new(Divided::Rate, all);
            Front {
                portion,
                contract: Contract::new(S, portion.part() * PER_S),
                before: 0,
                told_at: S,
                every: *every,
            }
        };
        let mut fronts: Vec<Front> = every.iter().map(front).collect();
        let first = fronts.iter_mut();
        Fronts {
            board: first.map(|one| one.portion.tell(0.0, 0.0, 0.0)).collect(),
            fronts,
            round: 0,
        }
    }

    fn now(&self) -> Nanos {
        S + self.round * ROUND
    }

    /// One round in which each front is offered its part of the whole contract; says how many
    /// requests were within the contract at each.
    fn round(&mut self, offered: &[f64]) -> Vec<u64> {
        let mut within = Vec::new();
        let begin = self.now();
        for (front, offered) in self.fronts.iter_mut().zip(offered) {
            let count = (offered * PER_S * ROUND as f64 / S as f64).round() as u64;
            let came = |at: u64| begin + at * ROUND / count.max(1);
            within.push((0..count).map(|at| front.contract.offer(came(at), 1)).sum());
        }
        self.round += 1;
        let meets = |front: &Front| self.round % front.every == 0;
        let meets: Vec<usize> = (0..self.fronts.len())
            .filter(|at| meets(&self.fronts[*at]))
            .collect();
        for place in meets {
            self.meet(place);
        }
        within
    }

    /// First it writes what it claims, and then it reads: see `policy::portion`.
    fn meet(&mut self, place: usize) {
        let (now, front) = (self.now(), &mut self.fronts[place]);
        let all = front.contract.offered();
        let since = all - front.before;
        let elapsed_s = (now - front.told_at) as f64 / S as f64;
        (front.before, front.told_at) = (all, now);
        let part = asked(since, PER_S, elapsed_s);
        self.board[place] = front.portion.tell(part, since as f64, 0.0);
        let others = self
            .board
            .iter()
            .enumerate()
            .filter(|(other, _)| *other != place);
        let others: Vec<Told> = others.map(|(_, told)| *told).collect();
        front.portion.keep(&others, self.board.len());
        front.contract.change(now, front.portion.part() * PER_S);
    }

    fn rounds(&mut self, count: usize, offered: &[f64]) -> Vec<f64> {
        let mut sums = vec![0.0; offered.len()];
        for _ in 0..count {
            let within = self.round(offered);
            sums.iter_mut()
                .zip(within)
                .for_each(|(sum, one)| *sum += one as f64);
        }
        let whole = PER_S * (count as f64 * ROUND as f64 / S as f64);
        sums.into_iter().map(|sum| sum / whole).collect()
    }

    fn parts(&self) -> Vec<f64> {
        self.fronts.iter().map(|one| one.portion.part()).collect()
    }
}

#[test]
fn a_contract_is_one_of_all_fronts_wherever_it_is_offered() {
    let mut fronts = Fronts::new(&[1; 4]);
    // All of it comes to one front, and then to another.
    for at in [0, 3] {
        let mut offered = [0.0; 4];
        offered[at] = 1.0;
        fronts.rounds(12, &offered);
        let within = fronts.rounds(20, &offered);
        assert!(within[at] > 0.98, "{within:?}, {:?}", fronts.parts());
    }
    // Each offers all of it: together they have it once.
    fronts.rounds(12, &[1.0; 4]);
    let within: f64 = fronts.rounds(20, &[1.0; 4]).iter().sum();
    assert!((within - 1.0).abs() < 0.02, "{within}");
}

#[test]
fn who_offers_much_takes_nothing_from_who_offers_little() {
    let mut fronts = Fronts::new(&[1; 3]);
    let offered = [0.2, 9.0, 0.05];
    fronts.rounds(16, &offered);
    let within = fronts.rounds(20, &offered);
    assert!(within[0] > 0.195 && within[2] > 0.048, "{within:?}");
    assert!(within.iter().sum::<f64>() > 0.97, "{within:?}");
}

#[test]
fn without_news_the_last_parts_hold() {
    let mut fronts = Fronts::new(&[1; 2]);
    fronts.rounds(16, &[1.0, 0.0]);
    let before = fronts.parts();
    // Nobody is told anything, so nobody keeps to anything else.
    assert!(before[0] > 0.98 && before[1] < 0.02, "{before:?}");
    let now = fronts.now();
    let contract = &mut fronts.fronts[0].contract;
    let within: u64 = (0..10_000)
        .map(|at| contract.offer(now + at * S / 1_000, 1))
        .sum();
    assert!(within > 9_700, "{within}");
}

#[test]
fn a_front_alone_has_all_of_it() {
    let mut fronts = Fronts::new(&[1]);
    let within = fronts.rounds(8, &[1.5]);
    assert!((within[0] - 1.0).abs() < 0.1, "{within:?}");
    assert_eq!(fronts.parts(), [1.0]);
}

/// What each of some fronts is offered, and how often it meets the others.
fn offers() -> impl Strategy<Value = Vec<(f64, u64)>> {
    let offered = prop_oneof![Just(0.0), 0.01..0.5, Just(1.0), Just(5.0)];
    prop::collection::vec((offered, 1..4u64), 2..6)
}

proptest! {
    /// However seldom a front meets the others, parts are the whole at most, all of it is there for
    /// those who ask, and nobody who asks is left with less than an even part of it.
    #[test]
    fn parts_follow_what_is_offered(fronts in offers()) {
        let (offered, every): (Vec<f64>, Vec<u64>) = fronts.into_iter().unzip();
        let mut fronts = Fronts::new(&every);
        let even = 1.0 / offered.len() as f64;
        for _ in 0..60 {
            fronts.round(&offered);
            prop_assert!(fronts.parts().iter().sum::<f64>() <= 1.0 + 1e-9, "{:?}", fronts.parts());
        }
        let parts = fronts.parts();
        let of = || parts.iter().zip(&offered);
        let kept: f64 = of().map(|(part, asks)| part.min(*asks)).sum();
        prop_assert!(kept >= 0.96 * offered.iter().sum::<f64>().min(1.0), "{parts:?} of {offered:?}");
        for (part, asks) in of() {
            prop_assert!(*part >= 0.97 * asks.min(even), "{parts:?} of {offered:?}");
        }
        // And there they stay.
        for _ in 0..24 {
            fronts.round(&offered);
            for (now, part) in fronts.parts().iter().zip(&parts) {
                prop_assert!((now - part).abs() < 0.03, "{:?} after {parts:?} of {offered:?}", fronts.parts());
            }
        }
    }
}
