//! Compares ways to keep weighted fair queues, everybody backlogged, turns of one size: a ring
//! served in rounds (deficit round robin, Pisces algorithm 4), with whole quanta and with
//! fractions; plain start-time order; and what `policy::dispatch` does. The table is in
//! docs/decisions/0004-core-owned-dispatch.md. Run with `cargo run --release -p entremet-policy
//! --example fair_lag`.

use policy::dispatch::{Allocation, Dispatch, DispatchOptions, Meter, Next};
use policy::{Cost, PrincipalId};

const TURN_NS: f64 = 10_000.0;
const ROUND_NS: f64 = 1_000_000.0;
const TOTAL_NS: f64 = 4e9;
/// Left out of lag, gap and run: everybody arrives at once, and the first turn is everybody's.
const WARM_UP_NS: f64 = 2e8;

/// Says whose turn is next.
type Pick = Box<dyn FnMut() -> usize>;

/// A ring: in each round everybody is served, one after the other, until its quanta are used up.
fn ring(weights: &[f64], whole: bool) -> Pick {
    let sum: f64 = weights.iter().sum();
    let quanta = move |w: f64| ROUND_NS / TURN_NS * w / sum;
    // Whole quanta, at least one of them in every this many rounds: what is left over is lost.
    let every: Vec<f64> = weights
        .iter()
        .map(|&w| (1.0 / quanta(w)).ceil().max(1.0))
        .collect();
    let weights = weights.to_vec();
    let mut deficits = vec![0.0; weights.len()];
    let (mut round, mut at) = (0.0, 0);
    Box::new(move || loop {
        if deficits[at] >= 1.0 {
            deficits[at] -= 1.0;
            return at;
        }
        at = (at + 1) % weights.len();
        if at == 0 {
            round += 1.0;
        }
        if !whole {
            deficits[at] += quanta(weights[at]);
        } else if round % every[at] == 0.0 {
            deficits[at] = quanta(weights[at]).floor().max(1.0);
        }
    })
}

/// The least normalised service first; ties in the order of the numbers.
fn start_time(weights: &[f64]) -> Pick {
    let weights = weights.to_vec();
    let mut service = vec![0.0; weights.len()];
    Box::new(move || {
        let least = (0..weights.len()).min_by(|&a, &b| f64::total_cmp(&service[a], &service[b]));
        let chosen = least.unwrap_or(0);
        service[chosen] += TURN_NS / weights[chosen];
        chosen
    })
}

fn ours(weights: &[f64]) -> Pick {
    let meter = Meter {
        requests: 0,
        bytes: [false],
    };
    let mut dispatch = Dispatch::<(), 1>::new(DispatchOptions::new([1_000_000_000], meter));
    for (id, weight) in weights.iter().enumerate() {
        let principal = PrincipalId(id as u32);
        dispatch.configure(0, principal, &Allocation::share(*weight));
        let _ = dispatch.enqueue(0, principal, ());
        let _ = dispatch.enqueue(0, principal, ());
    }
    let mut now = 0;
    Box::new(move || loop {
        if let Next::Grant(grant) = dispatch.next(now) {
            now += TURN_NS as u64;
            let principal = grant.principal;
            dispatch.settle(now, grant.ticket, Cost([TURN_NS as u64]));
            let _ = dispatch.enqueue(now, principal, ());
            return principal.0 as usize;
        }
    })
}

/// Fairness over the whole run; how many turns the heaviest and the lightest are behind or ahead of
/// GPS at most; the longest time between two turns of the heaviest; the longest run of turns of one
/// weight.
fn print(name: &str, weights: &[f64], mut pick: Pick) {
    let sum: f64 = weights.iter().sum();
    let (first, last) = (0, weights.len() - 1);
    let mut served = vec![0.0; weights.len()];
    let (mut lag, mut gap, mut since, mut run, mut longest) = ([0f64; 2], 0f64, 0.0, 0, 0);
    let (mut now, mut previous) = (0.0, usize::MAX);
    while now < TOTAL_NS {
        let chosen = pick();
        now += TURN_NS;
        served[chosen] += 1.0;
        if now < WARM_UP_NS {
            since = now;
            continue;
        }
        for (worst, id) in lag.iter_mut().zip([first, last]) {
            let ideal = now / TURN_NS * weights[id] / sum;
            *worst = worst.max((ideal - served[id]).abs());
        }
        if chosen == first {
            gap = gap.max(now - since);
            since = now;
        }
        let same = previous != usize::MAX && weights[previous] == weights[chosen];
        run = if same { run + 1 } else { 1 };
        longest = longest.max(run);
        previous = chosen;
    }
    let ratios: Vec<f64> = served.iter().zip(weights).map(|(s, w)| s / w).collect();
    let least = ratios.iter().copied().fold(f64::INFINITY, f64::min);
    let most = ratios.iter().copied().fold(0.0, f64::max);
    println!(
        "| {name} | {:.3} | {:.1} | {:.1} | {:.2} | {longest} |",
        least / most,
        lag[0],
        lag[1],
        gap / 1e6
    );
}

fn main() {
    let pisces: Vec<f64> = [(100.0, 4), (10.0, 20), (1.0, 40)]
        .iter()
        .flat_map(|&(w, n)| vec![w; n])
        .collect();
    let heavy: Vec<f64> = std::iter::once(100.0).chain(vec![1.0; 100]).collect();
    for (name, weights) in [
        ("4 x 100, 20 x 10, 40 x 1", pisces),
        ("100, 100 x 1", heavy),
    ] {
        println!("\n{name}\n");
        println!("| rule | MMR | lag of the heaviest, turns | of the lightest | longest gap of the heaviest, ms | longest run of one weight |");
        println!("|---|---|---|---|---|---|");
        print("ring, whole quanta", &weights, ring(&weights, true));
        print("ring, fractions carried", &weights, ring(&weights, false));
        print("start-time order", &weights, start_time(&weights));
        print("ours", &weights, ours(&weights));
    }
}
