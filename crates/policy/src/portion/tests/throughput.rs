//! Fronts that keep a promised throughput together, each of which serves what it aims at if it can.

use super::{Fronts, MANY};
use crate::portion::Divided;
use proptest::prelude::*;

/// What a tenant asks for at a front, and what the engine lets that front serve, as parts of what
/// is promised.
#[derive(Clone, Copy, Debug)]
struct Front {
    asks: f64,
    can: f64,
}

impl Front {
    fn served(self, part: f64) -> f64 {
        self.asks.min(self.can).min(part)
    }
}

/// A front tells, or hears, by turns.
fn step(fronts: &mut Fronts, front: usize, one: Front) {
    if fronts.wrote[front] {
        fronts.hear(front);
    } else {
        let portion = &mut fronts.portions[front];
        let served = one.served(portion.part());
        let wants = if one.asks > served { 1.0 } else { 0.0 };
        fronts.board[front] = Some(portion.tell(served, MANY, wants));
    }
    fronts.wrote[front] = !fronts.wrote[front];
}

fn rounds(fronts: &mut Fronts, count: usize, all: &[Front]) {
    for _ in 0..count {
        for (front, one) in all.iter().enumerate() {
            step(fronts, front, *one);
            step(fronts, front, *one);
        }
    }
}

/// What all fronts serve of what they could.
fn kept(fronts: &Fronts, all: &[Front]) -> f64 {
    let parts = fronts.parts();
    let served: f64 = parts
        .iter()
        .zip(all)
        .map(|(part, one)| one.served(*part))
        .sum();
    let could: f64 = all.iter().map(|one| one.served(1.0)).sum();
    served / could.min(1.0)
}

const ALL: Front = Front {
    asks: 9.0,
    can: 9.0,
};
const NOTHING: Front = Front {
    asks: 0.0,
    can: 9.0,
};

#[test]
fn a_throughput_is_aimed_at_where_it_is_asked_for() {
    let mut fronts = Fronts::new(Divided::Throughput, 4);
    let all = [ALL, NOTHING, NOTHING, NOTHING];
    rounds(&mut fronts, 4, &all);
    assert!(kept(&fronts, &all) > 0.999, "{:?}", fronts.parts());
    // Its clients go to another front.
    let all = [NOTHING, NOTHING, ALL, NOTHING];
    rounds(&mut fronts, 16, &all);
    assert!(kept(&fronts, &all) > 0.999, "{:?}", fronts.parts());
    let all = [NOTHING; 4];
    rounds(&mut fronts, 16, &all);
    let even = |part: &f64| (part - 0.25).abs() < 1e-3;
    assert!(fronts.parts().iter().all(even), "{:?}", fronts.parts());
}

/// The nodes behind the first front are busy: it wants more and cannot serve it. The second has to
/// serve what the first does not, and keeps that.
#[test]
fn who_cannot_serve_his_part_leaves_it_to_who_can() {
    let mut fronts = Fronts::new(Divided::Throughput, 2);
    let all = [
        Front {
            asks: 9.0,
            can: 0.2,
        },
        ALL,
    ];
    rounds(&mut fronts, 24, &all);
    for _ in 0..8 {
        rounds(&mut fronts, 1, &all);
        assert!(kept(&fronts, &all) > 0.999, "{:?}", fronts.parts());
    }
    // Together they cannot: each aims at all that the other does not serve.
    let all = [
        Front {
            asks: 9.0,
            can: 0.2,
        },
        Front {
            asks: 9.0,
            can: 0.3,
        },
    ];
    rounds(&mut fronts, 24, &all);
    let parts = fronts.parts();
    assert!(parts[0] > 0.44 && parts[1] > 0.54, "{parts:?}");
}

fn any() -> impl Strategy<Value = Front> {
    let asks = prop_oneof![Just(0.0), 0.0..0.5, Just(9.0)];
    let can = prop_oneof![Just(9.0), 0.02..0.6];
    (asks, can).prop_map(|(asks, can)| Front { asks, can })
}

proptest! {
    /// Where all have heard the same they aim at what was promised, and at no more.
    #[test]
    fn all_aim_together_at_what_was_promised(
        rounds in prop::collection::vec(prop::collection::vec(any(), 4), 1..30),
    ) {
        let mut fronts = Fronts::new(Divided::Throughput, 4);
        for all in rounds {
            (0..2).for_each(|_| (0..4).for_each(|front| step(&mut fronts, front, all[front])));
            let sum: f64 = fronts.parts().iter().sum();
            prop_assert!((sum - 1.0).abs() < 1e-9, "{:?}", fronts.parts());
        }
    }

    /// Whatever is promised is served if it can be, and it stays so, however fronts meet.
    #[test]
    fn what_all_can_serve_together_is_served(
        all in prop::collection::vec(any(), 2..6),
        steps in prop::collection::vec(0..6usize, 10..300),
    ) {
        prop_assume!(all.iter().any(|one| one.asks > 0.01));
        let mut fronts = Fronts::new(Divided::Throughput, all.len());
        rounds(&mut fronts, 60, &all);
        for front in steps {
            let front = front % all.len();
            step(&mut fronts, front, all[front]);
            prop_assert!(kept(&fronts, &all) >= 0.98, "{:?} of {all:?}", fronts.parts());
        }
    }
}
