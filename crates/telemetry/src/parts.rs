//! Where the time of a request goes: its parts, by name.
//!
//! They cut a request's latency, from when it came to when its reply was handed over, into
//! stretches that follow one another: each begins where the one before it ends, so they add up to
//! it. Whoever serves requests measures them with the times that it reads anyway, at the beginning
//! and the end of each turn and after each command.

use std::ops::{Index, IndexMut};

/// A part. One more takes a row here, and whoever measures it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Before its core saw it.
    Arrival,
    /// Other requests of its connection.
    Together,
    /// In line at the request stage.
    Turn,
    /// Its own work on the core.
    Cpu,
    /// In a turn, while something else had the processor.
    Processor,
    /// In line at the handler stage.
    Handler,
    /// In line at the device.
    Device,
    /// With a handler.
    Disk,
    /// For something that others hold.
    Hold,
    /// For the commit.
    Commit,
    /// In line to go on.
    Return,
    /// Handing the reply over.
    Reply,
}

/// How many parts there are.
pub const PARTS: usize = ROWS.len();

/// What is said of a part.
#[derive(Clone, Copy, Debug)]
pub struct PartWords {
    /// In JSON and metrics.
    pub name: &'static str,
    /// Beside its bar.
    pub words: &'static str,
    /// In a legend.
    pub short: &'static str,
    /// From when to when.
    pub about: &'static str,
}

const fn row(
    part: Part,
    name: &'static str,
    (words, short): (&'static str, &'static str),
    about: &'static str,
) -> (Part, PartWords) {
    let words = PartWords {
        name,
        words,
        short,
        about,
    };
    (part, words)
}

#[rustfmt::skip]
const ROWS: [(Part, PartWords); 12] = [
    row(Part::Arrival, "arrival", ("until its core saw it", "arrival"), "From when its first bytes came until its connection stood in line at the request stage: the core was at other work, or the rest of the request was still to come."),
    row(Part::Together, "together", ("others of its connection", "others"), "From when it came until the requests that its connection had sent earlier were answered, and the time in its turn that requests read with it took: a pipeline's requests are read, run and answered together."),
    row(Part::Turn, "turn", ("waiting for a turn", "turn"), "In line at the request stage."),
    row(Part::Cpu, "cpu", ("its work on the core", "core"), "Its part of the turns in which it was read and run, up to the end of the last command."),
    row(Part::Processor, "processor", ("its core without a processor", "no CPU"), "In turns of 200 us and more, the time for which the machine ran something else."),
    row(Part::Handler, "handler", ("waiting for a handler", "handler"), "In line at the handler stage."),
    row(Part::Device, "device", ("waiting for the disk", "disk queue"), "On a handler, in line at the device stage, all of its I/Os together."),
    row(Part::Disk, "disk", ("with a handler", "disk"), "The rest of the time until its core heard that the handler was done: reads from the disk, and work too long for a turn."),
    row(Part::Hold, "hold", ("waiting for a key, memory or log-in", "held"), "From the end of its turn until it could begin again: a key that is in use on a handler, room in the log or in memory, its database opening, its password."),
    row(Part::Commit, "commit", ("waiting for the commit", "commit"), "From the end of the turn in which it wrote until its core heard that the commit was done."),
    row(Part::Return, "return", ("waiting for a turn to reply", "to reply"), "In line again, with what a handler or a commit brought, or for replies that leave together."),
    row(Part::Reply, "reply", ("handing over the reply", "reply"), "From the end of the last command, or the beginning of the turn to reply, until the last byte was handed to the socket. A client that does not read makes it long."),
];

impl Part {
    /// Every part, in the order of the counters.
    pub const ALL: [Self; PARTS] = {
        let (mut all, mut at) = ([Self::Arrival; PARTS], 0);
        while at < all.len() {
            all[at] = ROWS[at].0;
            at += 1;
        }
        all
    };

    /// What is said of it.
    pub const fn words(self) -> PartWords {
        ROWS[self as usize].1
    }
}

/// The parts of a time, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimeParts(pub [u64; PARTS]);

impl TimeParts {
    /// All of them together.
    pub fn sum(&self) -> u64 {
        self.0.iter().sum()
    }

    /// The longest.
    pub fn longest(&self) -> Part {
        let longest = Part::ALL.into_iter().max_by_key(|part| self[*part]);
        longest.unwrap_or(Part::Arrival)
    }

    /// What was added since `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let less = |at: usize| self.0[at].saturating_sub(earlier.0[at]);
        Self(std::array::from_fn(less))
    }

    /// Adds another's to them.
    pub fn add(&mut self, other: &Self) {
        for (sum, more) in self.0.iter_mut().zip(other.0) {
            *sum = sum.saturating_add(more);
        }
    }
}

impl Index<Part> for TimeParts {
    type Output = u64;

    fn index(&self, part: Part) -> &u64 {
        &self.0[part as usize]
    }
}

impl IndexMut<Part> for TimeParts {
    fn index_mut(&mut self, part: Part) -> &mut u64 {
        &mut self.0[part as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_in_the_order_of_the_parts() {
        for (at, (part, _)) in ROWS.iter().enumerate() {
            assert_eq!((*part as usize, Part::ALL[at]), (at, *part));
        }
    }

    #[test]
    fn the_longest_part_is_named() {
        let mut time = TimeParts::default();
        (time[Part::Commit], time[Part::Reply]) = (7, 3);
        assert_eq!((time.sum(), time.longest()), (10, Part::Commit));
        let earlier = TimeParts(std::array::from_fn(|_| 5));
        assert_eq!(time.since(&earlier)[Part::Commit], 2);
    }
}
