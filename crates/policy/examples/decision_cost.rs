//! What one decision costs: nanoseconds for enqueue + next + settle, by discipline and by number of
//! principals with work and configured; "due": each item has a due time, which is not reached. Run
//! with `cargo run --release -p entremet-policy --example decision_cost`.
//!
//! It times itself, which is why it is an example: nothing in the library may ask for the time.

use policy::dispatch::{Allocation, Discipline, Dispatch, DispatchOptions, Meter, Next, Terms};
use policy::{Cost, PrincipalId};
use std::hint::black_box;
use std::time::Instant;

/// A pass is short and there are many, so that some of them are not interrupted on a busy machine.
const TURNS: u64 = 10_000;
const PASSES: usize = 300;
/// An item with a due time is due so long after it comes: never, here.
const DUE_NS: u64 = 50_000_000_000;

/// Principals with work, principals in all, and items that each has waiting.
type Shape = (u32, u32, u32);

/// Requests, bytes in, bytes out, CPU nanoseconds: the request stage's vector.
fn dispatch(discipline: Discipline) -> Dispatch<u64, 4> {
    let meter = Meter {
        requests: 0,
        bytes: [false, true, true, false],
    };
    let capacity = [1_000_000, 2_000_000_000, 2_000_000_000, 1_000_000_000];
    let mut options = DispatchOptions::new(capacity, meter);
    options.discipline = discipline;
    Dispatch::new(options)
}

/// Nanoseconds a turn in the tenth fastest of many passes: what it costs while nobody else uses the
/// core.
fn measure(discipline: Discipline, due: bool, (active, configured, backlog): Shape) -> f64 {
    let mut dispatch = dispatch(discipline);
    for id in 0..configured {
        let weight = [1.0, 10.0, 100.0][id as usize % 3];
        dispatch.configure(0, PrincipalId(id), &Allocation::share(weight));
    }
    let stride = configured / active;
    for id in (0..active).cycle().take((active * backlog) as usize) {
        let principal = PrincipalId(id * stride);
        enqueue(&mut dispatch, 0, principal, due, u64::from(id));
    }
    let mut now = 0;
    let mut passes: Vec<f64> = (0..PASSES)
        .map(|_| pass(&mut dispatch, &mut now, due, (active, stride)))
        .collect();
    passes.sort_by(f64::total_cmp);
    passes[9]
}

fn enqueue(dispatch: &mut Dispatch<u64, 4>, now: u64, of: PrincipalId, due: bool, item: u64) {
    let _ = match due {
        true => {
            let terms = Terms {
                due_at: Some(now + DUE_NS),
                ..Terms::default()
            };
            dispatch.enqueue_on(now, of, terms, item)
        }
        false => dispatch.enqueue(now, of, item),
    };
}

fn pass(
    dispatch: &mut Dispatch<u64, 4>,
    now: &mut u64,
    due: bool,
    (active, stride): (u32, u32),
) -> f64 {
    let mut id = 0;
    let began = Instant::now();
    for turn in 0..TURNS {
        // With nothing waiting, principals take turns; otherwise whoever was served comes back.
        if dispatch.queued() == 0 {
            id = (id + 1) % active;
            enqueue(dispatch, *now, PrincipalId(id * stride), due, turn);
        }
        if let Next::Grant(grant) = dispatch.next(*now) {
            *now += 1000;
            let cost = Cost([1, 40, 1000 + (turn & 63), 900]);
            let (principal, item) = (grant.principal, black_box(grant.item));
            dispatch.settle(*now, grant.ticket, cost);
            if dispatch.queued() > 0 {
                enqueue(dispatch, *now, principal, due, item);
            }
        }
    }
    began.elapsed().as_nanos() as f64 / TURNS as f64
}

fn main() {
    println!(
        "{:<9}{:>8}{:>12}{:>9}{:>12}",
        "rule", "active", "configured", "backlog", "ns/turn"
    );
    let shapes = [
        (1, 1, 0),
        (1, 1, 4),
        (10, 10, 4),
        (100, 100, 0),
        (100, 100, 1),
        (100, 100, 4),
        (100, 10_000, 4),
        (1_000, 10_000, 4),
        (10_000, 10_000, 4),
    ];
    for shape in shapes {
        row("due", Discipline::Fair, true, shape);
    }
    for discipline in [Discipline::Fair, Discipline::Fifo, Discipline::Lottery] {
        for shape in shapes {
            row(&format!("{discipline:?}"), discipline, false, shape);
        }
    }
}

fn row(rule: &str, discipline: Discipline, due: bool, shape: Shape) {
    let ns = measure(discipline, due, shape);
    let (active, configured, backlog) = shape;
    println!("{rule:<9}{active:>8}{configured:>12}{backlog:>9}{ns:>12.1}");
}
