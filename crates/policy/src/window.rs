//! How many requests to have out at a server that serves all of its senders in one queue.
//!
//! With too few, it has nothing to do while replies and requests are on the wire, and it answers
//! one at a time where it could answer several in a turn of its loop; with too many, they wait
//! there, where no share and no order reaches them.
//!
//! What more is worth cannot be found by trying it ([`crate::depth`] does so before a device that
//! nobody else uses): of what a full server does each sender has what it has out of all that is
//! out, so that each sees its own throughput grow with its window, and that of all stays as it is.
//! Four fronts that began with 32 each had 75 to 110 half a minute later.
//!
//! So a sender has out what is on the wire, by Little's law, and what may wait at the server:
//!
//! ```text
//! window = rate * round trip of the wire + what may wait
//! ```
//!
//! What waits is a time and a number. It is no more than the server does in [`QUEUED_NS`], and of
//! each sender no more than [`QUEUED`]; but where that is little, because the server takes long for
//! each, [`QUEUED`] of all senders together. Requests that take little are worth more together, for
//! reading, writing and waking up cost as much as they do: with a quarter as many from three of
//! four senders a server of gets did a fifth less. Those that take long are not, and their order is
//! worth the more.
//!
//! In the same way each flow of TCP Vegas keeps a few packets in the queue of the slowest link
//! (Brakmo, O'Malley and Peterson, SIGCOMM 1994, section 3.2); there the round trip without a queue
//! is the smallest that was seen, which a queue that never empties spoils. Here it is the kernel's,
//! of segments and their acknowledgements, and no queue of the server's is in it. Where the window
//! is what limits a sender, each step adds what may wait, until the server limits it and not the
//! wire.

use crate::Nanos;

/// Requests that may wait at a full server, of all its senders together, however long they take;
/// and of each sender at most: it is never idle, and answers several in a turn of its loop.
pub const QUEUED: u32 = 32;
/// If that takes no longer than this. A promise of 20 ms can be kept behind it.
pub const QUEUED_NS: Nanos = 4_000_000;
/// A sender has at least so many out: one is served while the other comes.
pub const LEAST: u32 = 2;
/// And at most.
pub const MOST: u32 = 1_023;

/// What is measured is over after so many replies,
const SLICE_REPLIES: u32 = 512;
/// or after so long.
const SLICE_NS: Nanos = 100_000_000;

/// What this sender's part of a server's requests is, of all senders.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Place {
    /// It is the one that the server's requests go to first.
    Home,
    /// Another one is.
    Beside,
}

/// Its part: of `senders` in all, each of which sends to all servers alike what is `spread` of what
/// it sends, 0 to 1, and the rest to its own.
#[must_use]
pub fn part(place: Place, senders: u32, spread: f64) -> f64 {
    let spread = spread.clamp(0.0, 1.0);
    let all = 1.0 + f64::from(senders.saturating_sub(1)) * spread;
    match place {
        Place::Home => 1.0 / all,
        Place::Beside => spread / all,
    }
}

/// The window of one sender at one server.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    since: Nanos,
    replies: u32,
    per_s: f64,
}

impl Window {
    /// Nothing is known yet.
    #[must_use]
    pub fn new(now: Nanos) -> Window {
        Window {
            since: now,
            replies: 0,
            per_s: 0.0,
        }
    }

    /// So many replies have come. Whether it is time to ask for the window anew.
    pub fn replied(&mut self, replies: u32, now: Nanos) -> bool {
        self.replies = self.replies.saturating_add(replies);
        let passed = now.saturating_sub(self.since);
        if self.replies < SLICE_REPLIES && passed < SLICE_NS {
            return false;
        }
        self.per_s = f64::from(self.replies) * 1e9 / passed.max(1) as f64;
        (self.replies, self.since) = (0, now);
        true
    }

    /// Requests that may be out, where a segment and its acknowledgement take `wire_ns`, and the
    /// sender has this part of the queue.
    #[must_use]
    pub fn permits(&self, wire_ns: Nanos, part: f64) -> u32 {
        let on_the_wire = self.per_s * wire_ns as f64 / 1e9;
        let in_time = self.per_s * QUEUED_NS as f64 / 1e9;
        let queued = in_time.clamp(f64::from(QUEUED) * part.clamp(0.0, 1.0), QUEUED.into());
        let window = (on_the_wire + queued).round();
        (window as u32).clamp(LEAST, MOST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const US: Nanos = 1_000;
    const MS: Nanos = 1_000_000;

    #[test]
    fn a_sender_alone_has_the_whole_queue_and_what_is_on_the_wire() {
        let mut window = Window::new(0);
        assert_eq!(window.permits(100 * US, 1.0), QUEUED);
        assert!(!window.replied(511, MS));
        assert!(window.replied(489, 10 * MS), "100,000 a second");
        assert_eq!(window.permits(100 * US, 1.0), 10 + QUEUED);
        assert!(window.replied(1, 200 * MS), "a tenth of a second is enough");
        assert_eq!(window.permits(100 * US, 1.0), QUEUED);
    }

    #[test]
    fn senders_to_all_alike_divide_it_and_each_at_its_own_does_not() {
        assert_eq!(part(Place::Home, 4, 1.0), 0.25);
        assert_eq!(part(Place::Beside, 4, 1.0), 0.25);
        assert_eq!(part(Place::Home, 4, 0.0), 1.0);
        assert_eq!(part(Place::Beside, 4, 0.0), 0.0);
        assert_eq!(part(Place::Home, 1, 1.0), 1.0);
        assert_eq!(Window::new(0).permits(0, 0.0), LEAST);
    }

    #[test]
    fn what_takes_little_goes_together_and_what_takes_long_is_kept_back() {
        let quick = |replies| {
            let mut window = Window::new(0);
            window.replied(replies, 100 * MS);
            window.permits(0, 0.25)
        };
        assert_eq!(quick(30), 8, "300 a second: their part of 32");
        assert_eq!(quick(400), 16, "4,000 a second: what is served in 4 ms");
        assert_eq!(quick(3_000), 32, "30,000 a second");
    }

    /// Senders before one server, each with a window full: what all get done, and the windows.
    fn settle(senders: usize, wire_ns: Nanos, serves_per_s: f64) -> (f64, Vec<u32>) {
        let part = part(Place::Home, senders as u32, 1.0);
        let mut windows = vec![Window::new(0); senders];
        let (mut now, mut done) = (0, 0.0);
        for _ in 0..200 {
            let out: Vec<f64> = windows
                .iter()
                .map(|window| f64::from(window.permits(wire_ns, part)))
                .collect();
            let all: f64 = out.iter().sum();
            // A server without a queue is limited by the wire and its own time.
            done = (all * 1e9 / (wire_ns as f64 + 1e9 / serves_per_s)).min(serves_per_s);
            now += SLICE_NS;
            for (window, out) in windows.iter_mut().zip(&out) {
                window.replied((done * out / all * 0.1) as u32, now);
            }
        }
        let out = windows.iter().map(|window| window.permits(wire_ns, part));
        (done, out.collect())
    }

    proptest! {
        /// However many there are and whatever the wire takes, the server is busy, and no more than
        /// is said wait there.
        #[test]
        fn senders_together_keep_a_server_busy_and_its_queue_short(
            senders in 1usize..12,
            wire_us in 1u64..2_000,
            serves_per_s in 1_000.0f64..200_000.0,
        ) {
            let (done, out) = settle(senders, wire_us * US, serves_per_s);
            prop_assert!(done > 0.99 * serves_per_s, "{done} of {serves_per_s}");
            let on_the_wire = serves_per_s * wire_us as f64 / 1e6;
            let queued = f64::from(out.iter().sum::<u32>()) - on_the_wire;
            let in_time = serves_per_s * QUEUED_NS as f64 / 1e9;
            let rounded = senders as f64 * f64::from(LEAST);
            prop_assert!(queued <= in_time.max(QUEUED.into()) + rounded, "{queued} wait");
            prop_assert!(queued <= senders as f64 * f64::from(QUEUED + 1), "{queued} wait");
        }
    }
}
