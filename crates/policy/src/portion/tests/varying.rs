//! Clients that do not ask for the same all the time.

use super::{Fronts, MANY};
use crate::generator::Generator;
use crate::portion::Divided;
use proptest::prelude::*;

/// The part that is used of what can be where clients vary by up to `noise` of what they ask for,
/// evenly and each round anew. What is not served waits, and a front hears of that over a second.
fn used_of_varying(asks: &[f64], noise: f64, seed: u64) -> f64 {
    const BEGIN: usize = 30;
    const ROUNDS: usize = 400;
    let mut chance = Generator::new(seed);
    let mut fronts = Fronts::new(Divided::Rate, asks.len());
    let mut waiting = vec![0.0; asks.len()];
    let mut held = vec![[0.0; 4]; asks.len()];
    let mut used = 0.0;
    for round in 0..BEGIN + ROUNDS {
        for (front, asks) in asks.iter().enumerate() {
            let part = fronts.portions[front].part();
            let even = chance.bits() as f64 / u64::MAX as f64;
            let wants = waiting[front] + asks * (1.0 + noise * (2.0 * even - 1.0));
            let served = f64::min(wants, part);
            // Clients wait for answers before they ask for ever more.
            waiting[front] = (wants - served).min(asks.min(1.0));
            held[front][round % 4] = f64::from(u8::from(wants > part));
            let waited = held[front].iter().sum::<f64>() / 4.0;
            fronts.board[front] = Some(fronts.portions[front].tell(served, MANY, waited));
            fronts.hear(front);
            used += if round < BEGIN { 0.0 } else { served };
        }
    }
    used / ROUNDS as f64 / asks.iter().sum::<f64>().min(1.0)
}

#[test]
fn what_varies_by_chance_takes_little_from_others() {
    for (asks, noise, least) in [
        (&[0.2, 0.9, 0.05, 0.1][..], 0.1, 0.9),
        (&[0.1, 9.0], 0.1, 0.97),
        (&[0.1, 9.0], 0.3, 0.94),
        (&[0.02, 0.02, 2.0], 0.3, 0.97),
        (&[0.25, 0.25, 0.2, 0.2], 0.3, 0.97),
    ] {
        for seed in 1..=3 {
            let used = used_of_varying(asks, noise, seed);
            assert!(used > least, "{used} of {asks:?} that vary by {noise}");
        }
    }
}

#[test]
fn who_can_use_much_more_for_long_has_it() {
    let mut fronts = Fronts::new(Divided::Rate, 2);
    fronts.rounds(10, &[0.1, 9.0]);
    assert!(fronts.parts()[1] > 0.88);
    fronts.rounds(16, &[9.0, 9.0]);
    assert!(fronts.parts()[0] > 0.49, "{:?}", fronts.parts());
}

proptest! {
    #[test]
    fn most_of_it_is_used_where_clients_vary(
        asks in prop::collection::vec(prop_oneof![Just(0.0), 0.0..0.5, Just(9.0)], 2..6),
        noise in 0.0..0.3,
        seed in any::<u64>(),
    ) {
        prop_assume!(asks.iter().sum::<f64>() > 0.01);
        let used = used_of_varying(&asks, noise, seed);
        prop_assert!(used > 0.75, "{used} of {asks:?}");
    }
}
