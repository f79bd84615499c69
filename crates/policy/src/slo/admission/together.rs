//! Requests of several promises before one drive.

use super::{Capacity, Drives, Timed};

/// Looks at how long a queue may be, which hangs on itself.
const LOOKS: u32 = 20;
/// Requests of several promises before one drive, summed by what they take: reads, and bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Together {
    per_s: f64,
    ios_per_s: f64,
    moved_per_s: f64,
    ios_time: f64,
    moved_time: f64,
}

/// The same as a queue that is served in groups.
pub(super) struct Queue {
    /// Requests of a group.
    pub(super) n: f64,
    /// What they take of a drive's time.
    pub(super) load: f64,
    /// What one takes, ns.
    pub(super) mean_ns: f64,
    /// What is promised to what stands in it, by work, ns.
    pub(super) at_most_ns: f64,
}

impl Together {
    pub(super) fn add(&mut self, one: &Timed) {
        let (ios, moved) = (one.per_s * one.work.ios, one.per_s * one.work.moved_ns);
        self.per_s += one.per_s;
        self.ios_per_s += ios;
        self.moved_per_s += moved;
        self.ios_time += ios * one.at_most_ns;
        self.moved_time += moved * one.at_most_ns;
    }

    pub(super) fn grouped(&self, drives: &Drives, n: f64) -> Queue {
        let small_ns = drives.small_ns(n);
        let taken_ns = self.ios_per_s * small_ns + self.moved_per_s;
        let time = self.ios_time * small_ns + self.moved_time;
        Queue {
            n,
            load: taken_ns / 1e9,
            mean_ns: taken_ns / self.per_s.max(f64::MIN_POSITIVE),
            at_most_ns: time / taken_ns.max(f64::MIN_POSITIVE),
        }
    }

    /// When it is as long as it may be: the drive then chooses from all that it holds.
    pub(super) fn longest(&self, capacity: &Capacity) -> Queue {
        let mut queue = self.grouped(&capacity.drives, 1.0);
        // Longer queues are served faster, so this grows to where it stands.
        for _ in 0..LOOKS {
            let n = queue.at_most_ns / queue.mean_ns.max(1.0);
            queue = self.grouped(&capacity.drives, n.min(capacity.group_max()));
        }
        queue
    }

    /// In groups of those that come until the first has waited for half of its time; after each an
    /// arm goes back to what it was at.
    pub(super) fn usual(&self, capacity: &Capacity, group_ns: f64) -> Queue {
        let drives = &capacity.drives;
        let n = (self.per_s * group_ns / 1e9).clamp(1.0, capacity.group_max());
        let mut queue = self.grouped(drives, n);
        if drives.seeks {
            queue.load += self.per_s / n * drives.alone_ns[0] as f64 / 1e9;
        }
        queue
    }
}

/// From one group of those that come at random moments to the next, on average, ns. They are given
/// by their time, the shortest first.
///
/// Request i of lambda_i a second asks for the drive at half of T_i. The first that does so after
/// the last group takes longer than s to it if no i has come by s - T_i / 2:
/// P = e^(-sum of lambda_i (s - T_i / 2)+), and the mean is the integral of that.
pub(super) fn group_ns(timed: &[Timed]) -> f64 {
    let half_ns = |one: &Timed| 0.5 * one.at_most_ns;
    // Of some nobody asks anything yet.
    let mut asked = timed.iter().filter(|one| one.per_s > 0.0).peekable();
    let mut mean_ns = asked.peek().map_or(0.0, |first| half_ns(first));
    // The probability that none has asked, and how many may have: from one half to the next it
    // falls exponentially.
    let (mut none, mut per_ns) = (1.0_f64, 0.0);
    while let Some(one) = asked.next() {
        per_ns += one.per_s / 1e9;
        let until_ns = asked.peek().map_or(f64::INFINITY, |next| half_ns(next)) - half_ns(one);
        let falls = (-per_ns * until_ns).exp_m1();
        mean_ns += none * -falls / per_ns;
        none *= 1.0 + falls;
    }
    mean_ns
}
