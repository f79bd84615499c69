//! Fronts that divide a rate or a weight, in whatever order they meet.

mod throughput;
mod varying;

use super::*;
use proptest::prelude::*;

/// So many requests that a round tells all.
const MANY: f64 = 1e3;

/// Fronts that meet at a board, each in steps of its own: it writes, or it reads.
struct Fronts {
    portions: Vec<Portion>,
    board: Vec<Option<Told>>,
    wrote: Vec<bool>,
}

impl Fronts {
    fn new(divided: Divided, count: usize) -> Self {
        let portion = Portion::new(divided, count);
        Fronts {
            portions: vec![portion; count],
            board: vec![Some(portion.told); count],
            wrote: vec![false; count],
        }
    }

    fn parts(&self) -> Vec<f64> {
        self.portions.iter().map(Portion::part).collect()
    }

    /// A front hears all others that tell something.
    fn hear(&mut self, front: usize) {
        let others = self.board.iter().enumerate();
        let others = others.filter(|(other, _)| *other != front);
        let others: Vec<Told> = others.filter_map(|(_, told)| *told).collect();
        let fronts = others.len() + 1;
        self.portions[front].keep(&others, fronts);
    }

    /// One step of a front at which the tenant asks for `asks` of the whole.
    fn step(&mut self, front: usize, asks: f64) {
        if self.wrote[front] {
            self.hear(front);
        } else {
            let portion = &mut self.portions[front];
            let part = portion.part();
            let waited = if asks > part { 1.0 } else { 0.0 };
            self.board[front] = Some(portion.tell(asks.min(part), MANY, waited));
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

    /// The same, but each front writes and reads before the next one does.
    fn in_turn(&mut self, count: usize, asks: &[f64]) {
        for _ in 0..count {
            for (front, asks) in asks.iter().enumerate() {
                self.step(front, *asks);
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
    let mut fronts = Fronts::new(Divided::Rate, 4);
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
    let mut fronts = Fronts::new(Divided::Rate, 3);
    let asks = [0.4, 9.0, 0.1];
    fronts.rounds(8, &asks);
    // 10,000 a second are 10,000 a second within 2 % (the growth of those that ask for less).
    assert!(fronts.served(&asks) > 0.975, "{:?}", fronts.parts());
    assert!(fronts.parts()[0] > 0.4 && fronts.parts()[2] > 0.1);
}

#[test]
fn a_front_that_is_gone_leaves_its_portion() {
    let mut fronts = Fronts::new(Divided::Rate, 2);
    fronts.rounds(4, &[9.0, 9.0]);
    fronts.board[1] = None;
    for _ in 0..4 {
        fronts.step(0, 9.0);
    }
    assert_eq!(fronts.parts()[0], 1.0);
}

#[test]
fn who_waits_for_his_next_request_wants_more() {
    let mut portion = Portion::new(Divided::Rate, 2);
    let greedy = Told {
        used: 1.0,
        more: true,
        claim: 1.0,
        requests: MANY,
        remembered: MANY,
    };
    portion.tell(0.0, 0.0, 0.0);
    portion.keep(&[greedy], 2);
    assert!(portion.part() < 0.01);
    // Not one was served since it was last asked.
    assert!(portion.tell(0.0, 0.0, 1.0).more && !portion.tell(0.0, 0.0, 0.0).more);
}

#[test]
fn alone_it_is_all() {
    for divided in [Divided::Rate, Divided::Weight] {
        let mut portion = Portion::new(divided, 1);
        portion.tell(0.0, 0.0, 0.0);
        portion.keep(&[], 1);
        assert_eq!((portion.part(), portion.times_even()), (1.0, 1.0));
    }
}

#[test]
fn an_even_part_of_a_weight_is_the_weight() {
    for fronts in 1..=48 {
        let portion = Portion::new(Divided::Weight, fronts);
        assert_eq!(portion.times_even(), 1.0, "{fronts} fronts");
    }
}

#[test]
fn a_weight_is_where_its_tenant_is_served() {
    let mut fronts = Fronts::new(Divided::Weight, 4);
    fronts.rounds(4, &[0.0; 4]);
    assert!(fronts.portions.iter().all(|one| one.times_even() == 1.0));
    // It has all that it asks for: half of the weight stays where it might ask next.
    fronts.rounds(12, &[0.02, 0.0, 0.0, 0.0]);
    let parts = fronts.parts();
    assert!(
        parts[0] > 0.6 && parts[0] < 0.64 && parts[1] > 0.12,
        "{parts:?}"
    );
    // It would take more: all of the weight is where it does. Who serves nothing of it has an even
    // part beside that, for what might come.
    fronts.rounds(12, &[9.0, 0.0, 0.0, 0.0]);
    let parts = fronts.parts();
    assert!(parts[0] > 0.98, "{parts:?}");
    for part in &parts[1..] {
        assert!((part - 0.25).abs() < 0.01, "{parts:?}");
    }
}

/// A client sends half of its requests to the second front from now on.
#[test]
fn who_comes_to_another_front_need_not_wait_until_it_is_seen() {
    let mut fronts = Fronts::new(Divided::Weight, 4);
    fronts.rounds(20, &[9.0, 0.0, 0.0, 0.0]);
    let mut least = f64::MAX;
    for _ in 0..20 {
        fronts.rounds(1, &[9.0, 9.0, 0.0, 0.0]);
        least = least.min(fronts.parts()[1]);
    }
    assert!(least > 0.1, "{least}");
    // What each is served decides in the end: together they have the weight once.
    let parts = fronts.parts();
    assert!((parts[0] + parts[1] - 1.0).abs() < 0.02, "{parts:?}");
}

/// At a front that one tenant has for itself another has an eighth of what it has in all: neither
/// has more there for its weight than the other.
#[test]
fn a_small_part_of_a_weight_is_worth_as_much_as_a_large_one() {
    let part = |asks: [f64; 4]| {
        let mut fronts = Fronts::new(Divided::Weight, 4);
        for _ in 0..30 {
            for (front, asks) in asks.iter().enumerate() {
                let told = fronts.portions[front].tell(*asks, MANY * MANY * asks, 1.0);
                fronts.board[front] = Some(told);
            }
            for front in 0..4 {
                fronts.hear(front);
            }
        }
        fronts.parts()[0]
    };
    let (small, large) = (part([0.125, 0.875, 0.0, 0.0]), part([1.0, 0.0, 0.0, 0.0]));
    let ratio = small / 0.125 / large;
    assert!((ratio - 1.0).abs() < 1e-3, "{ratio}");
    // Where it is served next to nothing it has a hundredth of an even part.
    assert_eq!(part([0.002, 0.998, 0.0, 0.0]), 0.0025);
}

#[test]
fn alone_again_it_has_the_whole_weight() {
    let mut fronts = Fronts::new(Divided::Weight, 2);
    fronts.rounds(8, &[9.0, 2.0]);
    fronts.board[1] = None;
    for _ in 0..30 {
        fronts.step(0, 9.0);
    }
    assert_eq!(fronts.portions[0].times_even(), 1.0);
}

#[test]
fn a_front_that_tells_nothing_has_an_even_part_of_a_weight() {
    let mut portion = Portion::new(Divided::Weight, 2);
    for _ in 0..9 {
        portion.tell(5.0, MANY, 1.0);
        portion.keep(&[], 2);
    }
    assert_eq!(portion.times_even(), 1.0);
}

/// Two or three requests a round at each front, as they come: a round without one is no reason to
/// take the weight from there.
#[test]
fn few_requests_move_little_of_a_weight() {
    let mut fronts = Fronts::new(Divided::Weight, 8);
    let (mut state, mut least, mut most) = (1_u64, f64::INFINITY, 0.0_f64);
    let mut dice = move || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) as f64 / f64::from(1_u32 << 31)
    };
    for round in 0..300 {
        for front in 0..8 {
            // Of ten moments in a round, each brings a request with a chance of a quarter.
            let count = (0..10).filter(|_| dice() < 0.25).count() as f64;
            // Of 64 KiB each: what is used is no count of requests.
            fronts.board[front] = Some(fronts.portions[front].tell(64.0 * count, count, 1.0));
        }
        for front in 0..8 {
            fronts.hear(front);
            if round >= 20 {
                let times = fronts.portions[front].times_even();
                (least, most) = (least.min(times), most.max(times));
            }
        }
    }
    assert!(least > 0.6 && most < 1.5, "{least} {most}");
}

/// The first requests of a tenant were served at one front, and wait at another: it is due as much
/// there until more is known.
#[test]
fn who_waits_before_he_was_served_keeps_some_of_his_weight() {
    let mut portion = Portion::new(Divided::Weight, 8);
    let mut times_beside = |requests: f64, remembered: f64| {
        let served = Told {
            used: remembered * 64.0,
            requests,
            remembered,
            ..Told::default()
        };
        for _ in 0..20 {
            portion.tell(0.0, 0.0, 1.0);
            portion.keep(&[served], 8);
        }
        portion.times_even()
    };
    let times = times_beside(13.0, 13.0);
    assert!(times > 0.4, "{times}");
    // Many requests elsewhere say that few come here.
    let times = times_beside(1e3, 2e3);
    assert!(times < 0.02, "{times}");
}

/// A node is short and its tenants wait nowhere else: a tenant of few requests has no more of it
/// for its weight than one of many.
#[test]
fn who_waits_at_one_front_only_is_due_what_it_served_there() {
    let part_of = |requests: f64| {
        let mut fronts = Fronts::new(Divided::Weight, 4);
        for _ in 0..40 {
            for front in 0..4 {
                let waited = if front == 0 { 1.0 } else { 0.0 };
                let told = fronts.portions[front].tell(requests / 4.0, requests / 4.0, waited);
                fronts.board[front] = Some(told);
            }
            (0..4).for_each(|front| fronts.hear(front));
        }
        fronts.parts()[0]
    };
    for requests in [20.0, 90.0, 1e3] {
        let part = part_of(requests);
        assert!((part / 0.25 - 1.0).abs() < 0.01, "{part} at {requests}");
    }
}

/// Nothing was served anywhere yet, and all that the tenant has asked for waits here.
#[test]
fn who_was_served_nowhere_yet_has_his_weight_where_he_waits() {
    let mut portion = Portion::new(Divided::Weight, 8);
    for _ in 0..4 {
        portion.tell(0.0, 0.0, 1.0);
        portion.keep(&[Told::default(); 7], 8);
        assert_eq!(portion.times_even(), 1.0);
    }
    portion.tell(1.0, 1.0, 1.0);
    portion.keep(&[Told::default(); 7], 8);
    assert_eq!(portion.times_even(), 8.0);
}

/// What is served varies from round to round, by two fifths here, and nobody loses by it.
#[test]
fn a_weight_is_kept_whole_where_what_is_served_varies() {
    let mut fronts = Fronts::new(Divided::Weight, 4);
    let served = [0.02, 0.05, 0.1, 0.03];
    let (mut rounds, mut sums) = (0.0, [0.0; 4]);
    for round in 0..400_usize {
        let varied = |front: usize| match (round * 7 + front * 3) % 5 {
            0 | 1 => 0.6,
            2 => 1.0,
            _ => 1.4,
        };
        let asks: [f64; 4] = std::array::from_fn(|front| served[front] * varied(front));
        // One that asks for more than it gets is served its part: here others decide.
        for (front, asks) in asks.into_iter().enumerate() {
            fronts.board[front] = Some(fronts.portions[front].tell(asks, MANY, 1.0));
        }
        for front in 0..4 {
            fronts.hear(front);
        }
        if round >= 20 {
            rounds += 1.0;
            for (sum, part) in sums.iter_mut().zip(fronts.parts()) {
                *sum += part;
            }
        }
    }
    for (sum, served) in sums.into_iter().zip(served) {
        let (mean, due) = (sum / rounds, served / 0.2);
        assert!((mean / due - 1.0).abs() < 0.02, "{mean} where {due} is due");
    }
}

proptest! {
    #[test]
    fn never_more_than_the_whole(
        steps in prop::collection::vec((0..4usize, prop_oneof![Just(0.0), 0.0..0.5, Just(9.0)]), 1..300),
    ) {
        let mut fronts = Fronts::new(Divided::Rate, 4);
        for (front, asks) in steps {
            fronts.step(front, asks);
            let all: f64 = fronts.parts().iter().sum();
            prop_assert!(all <= 1.0 + 1e-9, "{:?}", fronts.parts());
        }
    }

    #[test]
    fn all_of_it_is_used_whenever_fronts_meet(
        asks in prop::collection::vec(prop_oneof![Just(0.0), 0.0..0.5, Just(9.0)], 2..6),
    ) {
        let mut fronts = Fronts::new(Divided::Rate, asks.len());
        fronts.in_turn(30, &asks);
        let wanted = asks.iter().sum::<f64>().min(1.0);
        for _ in 0..10 {
            fronts.in_turn(1, &asks);
            prop_assert!(fronts.served(&asks) >= 0.96 * wanted, "{:?} of {asks:?}", fronts.parts());
        }
    }

    #[test]
    fn all_of_it_is_used_wherever_it_is_asked_for(
        asks in prop::collection::vec(prop_oneof![Just(0.0), 0.0..0.5, Just(9.0)], 2..6),
    ) {
        let mut fronts = Fronts::new(Divided::Rate, asks.len());
        fronts.rounds(12, &asks);
        let wanted = asks.iter().sum::<f64>().min(1.0);
        prop_assert!(fronts.served(&asks) >= 0.96 * wanted, "{:?} of {asks:?}", fronts.parts());
    }
}
