//! Windows that follow local shares from latency alone.

use policy::replica::{WindowOptions, Windows};
use proptest::prelude::*;

/// Serves what is outstanding at fixed rates (operations a millisecond) until the windows stand: a
/// reply takes at least a millisecond, and what the server needs for all that is outstanding.
fn settled(rates: &[f64], steps: usize) -> Windows {
    let mut windows = Windows::new(WindowOptions::default(), rates.len() as u32);
    let all: Vec<u32> = (0..rates.len() as u32).collect();
    for _ in 0..steps {
        while let Some(place) = windows.choose(&all) {
            windows.sent(all[place]);
        }
        for server in &all {
            let latency_ms = f64::from(windows.outstanding(*server)) / rates[*server as usize];
            windows.replied(*server, (latency_ms.max(1.0) * 1e6) as u64);
        }
    }
    windows
}

#[test]
fn windows_settle_at_rate_times_base_plus_alpha() {
    let rates = [10.0, 30.0, 90.0];
    let windows = settled(&rates, 40_000);
    for (server, rate) in rates.iter().enumerate() {
        let (window, wanted) = (windows.window(server as u32), rate + 4.0);
        assert!(
            (window - wanted).abs() <= 0.1 * wanted + 1.0,
            "{window}, wanted {wanted}"
        );
    }
}

#[test]
fn who_has_nothing_outstanding_is_idle() {
    let mut windows = Windows::new(WindowOptions::default(), 3);
    assert!(windows.is_idle(&[0, 2]));
    windows.sent(2);
    assert!(!windows.is_idle(&[0, 2]) && windows.is_idle(&[0, 1]));
    windows.replied(2, 1_000);
    assert!(windows.is_idle(&[0, 1, 2]));
}

proptest! {
    /// Nothing is sent beyond a window, nothing waits while one has room, and windows stay within
    /// bounds.
    #[test]
    fn windows_are_kept(
        steps in prop::collection::vec((any::<bool>(), 0u32..4, 0u64..1_000_000_000), 1..500),
        most in 1.0f64..50.0,
    ) {
        let options = WindowOptions { within: (1.0, most), ..WindowOptions::default() };
        let mut windows = Windows::new(options, 4);
        for (send, server, latency_ns) in steps {
            let room = |w: &Windows, s: u32| f64::from(w.outstanding(s)) + 1.0 <= w.window(s);
            if send {
                let candidates = [server, (server + 1) % 4];
                let any = candidates.iter().any(|s| room(&windows, *s));
                let place = windows.choose(&candidates);
                prop_assert_eq!(place.is_some(), any);
                if let Some(place) = place {
                    prop_assert!(room(&windows, candidates[place]));
                    windows.sent(candidates[place]);
                }
            } else if windows.outstanding(server) > 0 {
                windows.replied(server, latency_ns);
            }
            prop_assert!((0..4).all(|s| (1.0..=most).contains(&windows.window(s))));
        }
    }
}
