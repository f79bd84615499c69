//! Whether what is due is served in time: queues of what is due earliest, of the next, and so on.

use super::together::{group_ns, Queue, Together};
use super::wait::Wait;
use super::{Capacity, Drives, Lack, Timed, LATENCY_MAX};
use crate::slo::control::MarginOptions;

/// Of the requests that may be late, those that a promise may be planned to have: what is not in
/// the model needs the rest.
const AIM: f64 = 0.6;
/// Requests' times at a drive: 1 over their squared coefficient of variation. A seek and half a
/// turn, both evenly spread, have .1 to .2.
const SHAPE: f64 = 6.0;
/// A queue that takes more of the time grows without end, or nearly.
const LOAD_MAX: f64 = 0.99;

/// Holds the queues of what is due earliest, of the next, and so on, against the time that they
/// have; returns the part of the device's time that all take, `rates` among it.
///
/// The earliest due goes first, so what is due within T waits for all that is, and for what was due
/// later when it came and has become due. Each such queue may be as long as the time of what stands
/// in it, by work: what has much lets others pass.
pub(super) fn due_in_time(
    capacity: &Capacity,
    timed: &mut [Timed],
    rates: f64,
    lacks: &mut [Option<Lack>],
) -> f64 {
    timed.sort_by(|a, b| a.at_most_ns.total_cmp(&b.at_most_ns));
    let mut together = Together::default();
    let mut queues = Vec::with_capacity(timed.len());
    for one in timed.iter() {
        together.add(one);
        queues.push(Due::of(capacity, &together.longest(capacity)));
    }
    let used = rates + together.usual(capacity, group_ns(timed)).load;
    let full = Lack::device(used, LATENCY_MAX);
    let mut worst: Option<Due> = None;
    for (place, one) in timed.iter().enumerate().rev() {
        let own = queues[place];
        // They wait behind all that is due, and behind what may come and is due earlier. They have
        // all of their own time for that, so no more of them are late.
        let passed = || {
            let all = Due::of(capacity, &together.grouped(&capacity.drives, own.n));
            let first = place.checked_sub(1).map(|place| &queues[place].wait);
            Due {
                wait: first.map_or(all.wait, |first| all.wait.behind(first)),
                bound_ns: due_within() * one.at_most_ns,
                ..all
            }
        };
        // Of the queues with more in them only the one that is too long most often counts.
        let stands = [Some(own), worst].into_iter().flatten();
        lacks[one.place] = one.lack(&capacity.drives, stands, passed).or(full);
        worst = worst
            .filter(|worst| worst.longest() > own.longest())
            .or(Some(own));
    }
    used
}

/// A queue of what is due.
#[derive(Clone, Copy, Debug)]
struct Due {
    /// What stands in it takes so much of the time that it may have.
    load: f64,
    wait: Wait,
    /// How long it may be, ns.
    bound_ns: f64,
    /// What the drive then chooses from.
    n: f64,
}

impl Due {
    fn of(capacity: &Capacity, queue: &Queue) -> Self {
        let of_time = 1.0 - capacity.floor;
        let load = queue.load / of_time;
        Due {
            load,
            wait: Wait::of(load.min(LOAD_MAX), queue.mean_ns / of_time, SHAPE),
            bound_ns: due_within() * queue.at_most_ns,
            n: queue.n,
        }
    }

    /// How much more often than others it is too long.
    fn longest(&self) -> f64 {
        self.load.max(1.0) * self.wait.longer(self.bound_ns)
    }
}

/// The part of a promised time in which a request must be served: before, it may be kept waiting.
pub(super) fn due_within() -> f64 {
    MarginOptions::default().part_max
}

impl Timed {
    /// Why it does not fit, if its requests stand in these queues, and wait no longer than in
    /// `passed`.
    fn lack(
        &self,
        drives: &Drives,
        stands: impl Iterator<Item = Due> + Clone,
        passed: impl FnOnce() -> Due,
    ) -> Option<Lack> {
        let load = stands.clone().map(|queue| queue.load).fold(0.0, f64::max);
        if let Some(full) = Lack::device(load, LOAD_MAX) {
            return Some(full);
        }
        let late = |queue: Due| self.late_in(drives, &queue);
        let most = AIM * self.late;
        let mut part = stands.map(late).fold(0.0, f64::max);
        if part > most {
            let passed = passed();
            if passed.load < LOAD_MAX {
                part = part.min(late(passed));
            }
        }
        (part > most).then_some(Lack::Late(part))
    }

    /// The part of its requests that are late in this queue.
    fn late_in(&self, drives: &Drives, queue: &Due) -> f64 {
        let late = |ns: f64| drives.late_beside(&self.work, ns);
        let own_ns = due_within() * self.at_most_ns;
        (1.0 - queue.load) * late(own_ns) + queue.wait.late(queue.bound_ns, late)
    }
}
