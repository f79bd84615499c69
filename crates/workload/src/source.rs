//! What arrives when: endless, seeded streams of requests for the open loop.

pub use crate::arrivals::Curve;
use crate::arrivals::{Arrivals, Profile};
use crate::draw::{Class, Draw, Mixture, Shares, Sizes, Ttl};
use crate::rng::Rng;
use crate::trace::meta::Row;
use crate::trace::multiget::{Lists, Timed};

/// One request of an open loop.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Arrival {
    /// When it is to be sent, ns since the run began. Never falls from one arrival to the next.
    pub at_ns: u64,
    /// What it asks.
    pub draw: Draw,
}

/// A stream of requests without an end.
pub trait Source: Send {
    /// The next request; its keys replace what `keys` holds.
    fn next(&mut self, keys: &mut Vec<u64>) -> Arrival;

    /// Every key that may be read, with the size of its value in bytes: what a preload stores.
    fn population(&self) -> Vec<(u64, u32)>;

    /// The classes that it may ask for, some perhaps several times.
    fn classes(&self) -> Vec<Class>;
}

/// Requests drawn from a [`Mixture`] at times of [`Arrivals`].
pub struct CurveSource {
    arrivals: Arrivals,
    /// The mix of each step of the curve; empty where it never changes.
    shares: Vec<Shares>,
    mixture: Mixture,
    step: usize,
    /// When time 0 of the arrivals is, seconds after the run began.
    zero_s: f64,
}

impl CurveSource {
    /// Random arrivals along a curve from the run's beginning; `shares` has an entry per step of
    /// `curve`.
    pub fn new(curve: Curve, shares: Vec<Shares>, mixture: Mixture, rng: Rng) -> Self {
        Self {
            arrivals: endless(curve, rng),
            shares,
            mixture,
            step: usize::MAX,
            zero_s: 0.0,
        }
    }

    /// Arrivals whose time 0 is `zero_s` seconds after the run began.
    pub fn paced(arrivals: Arrivals, mixture: Mixture, zero_s: f64) -> Self {
        Self {
            arrivals,
            shares: Vec::new(),
            mixture,
            step: usize::MAX,
            zero_s,
        }
    }
}

impl Source for CurveSource {
    fn next(&mut self, keys: &mut Vec<u64>) -> Arrival {
        let at_s = self.arrivals.next_s();
        if !self.shares.is_empty() {
            let step = self.arrivals.step() % self.shares.len();
            if step != self.step {
                self.step = step;
                self.mixture.set_shares(self.shares[step]);
            }
        }
        let since_ns = at_s.map_or(0, |at_s| (at_s.max(0.0) * 1e9) as u64);
        Arrival {
            at_ns: at_s.map_or(u64::MAX, |at_s| {
                ((at_s + self.zero_s).max(0.0) * 1e9) as u64
            }),
            draw: self.mixture.draw(since_ns, keys),
        }
    }

    fn population(&self) -> Vec<(u64, u32)> {
        (0..self.mixture.keys())
            .map(|key| (key, self.mixture.value_bytes(key)))
            .collect()
    }

    fn classes(&self) -> Vec<Class> {
        let shares = std::iter::once(self.mixture.shares()).chain(self.shares.iter().copied());
        shares.flat_map(Shares::classes).collect()
    }
}

/// Key lists with the arrival times of their trace, repeated without end.
pub struct TimedLists {
    /// Arrival (ns from the start of a round) and list, in order of arrival.
    order: Vec<(u64, u32)>,
    lists: Lists,
    period_ns: u64,
    next: usize,
    round: u64,
    sizes: Sizes,
    seed: u64,
}

impl TimedLists {
    /// `speed_up` divides the trace's times. Arrivals are spread over the `step_ms` that the
    /// source's clock cannot tell apart.
    pub fn new(timed: Timed, step_ms: u64, speed_up: f64, sizes: Sizes, seed: u64) -> Self {
        let mut rng = Rng::new(seed, 0x7173);
        let scale = 1e6 / speed_up;
        let mut order: Vec<(u64, u32)> = timed
            .at_ms
            .iter()
            .enumerate()
            .map(|(i, at_ms)| {
                let at_ms = *at_ms as f64 + rng.unit() * step_ms as f64;
                ((at_ms * scale) as u64, i as u32)
            })
            .collect();
        order.sort_unstable();
        let last_ms = timed.at_ms.last().copied().unwrap_or(0) + step_ms.max(1);
        let period_ns = (last_ms as f64 * scale).ceil() as u64;
        Self {
            order,
            lists: timed.lists,
            period_ns,
            next: 0,
            round: 0,
            sizes,
            seed,
        }
    }
}

impl Source for TimedLists {
    fn next(&mut self, keys: &mut Vec<u64>) -> Arrival {
        if self.next == self.order.len() {
            self.next = 0;
            self.round += 1;
        }
        let (at_ns, list) = self.order[self.next];
        self.next += 1;
        fill(keys, self.lists.get(list as usize));
        Arrival {
            at_ns: self.round * self.period_ns + at_ns,
            draw: read(keys),
        }
    }

    fn population(&self) -> Vec<(u64, u32)> {
        population(&self.lists, &self.sizes, self.seed)
    }

    fn classes(&self) -> Vec<Class> {
        vec![Class::Get, Class::Multiget]
    }
}

/// Key lists without times, in their order, arriving as a [`Curve`] says.
pub struct PacedLists {
    arrivals: Arrivals,
    lists: Lists,
    next: usize,
    /// Share of requests that read a whole list; the others read one key of the next list.
    whole: f64,
    rng: Rng,
    sizes: Sizes,
    seed: u64,
}

impl PacedLists {
    /// `multi` is the wanted share of requests with more than one key, in (0, 1]: the others are
    /// mixed in as single gets, as far as the lists allow.
    pub fn new(lists: Lists, curve: Curve, multi: f64, sizes: Sizes, seed: u64) -> Self {
        let many = (0..lists.len()).filter(|i| lists.get(*i).len() > 1).count();
        let share = many as f64 / lists.len().max(1) as f64;
        let whole = (multi / share.max(1e-9)).min(1.0);
        let arrivals = endless(curve, Rng::new(seed, 0x7174));
        let rng = Rng::new(seed, 0x7175);
        Self {
            arrivals,
            lists,
            next: 0,
            whole,
            rng,
            sizes,
            seed,
        }
    }
}

impl Source for PacedLists {
    fn next(&mut self, keys: &mut Vec<u64>) -> Arrival {
        let at_ns = due(&mut self.arrivals);
        let list = self.lists.get(self.next);
        if self.rng.unit() < self.whole {
            fill(keys, list);
            self.next = (self.next + 1) % self.lists.len();
        } else {
            let one = list[self.rng.below(list.len() as u64) as usize];
            fill(keys, &[one]);
        }
        Arrival {
            at_ns,
            draw: read(keys),
        }
    }

    fn population(&self) -> Vec<(u64, u32)> {
        population(&self.lists, &self.sizes, self.seed)
    }

    fn classes(&self) -> Vec<Class> {
        vec![Class::Get, Class::Multiget]
    }
}

/// Single requests at the times of a sample, repeated without end.
pub struct SampleSource {
    /// Arrival (ns from the start of a round) and row, in order of arrival.
    order: Vec<(u64, u32)>,
    rows: Vec<Row>,
    period_ns: u64,
    next: usize,
    round: u64,
}

impl SampleSource {
    /// `speed_up` divides the sample's times; requests are spread over the second that its clock
    /// cannot tell apart.
    pub fn new(rows: Vec<Row>, speed_up: f64, seed: u64) -> Self {
        let mut rng = Rng::new(seed, 0x7176);
        let scale = 1e9 / speed_up;
        let mut order = Vec::new();
        for (i, row) in rows.iter().enumerate() {
            for _ in 0..row.count {
                order.push((((row.at_s as f64 + rng.unit()) * scale) as u64, i as u32));
            }
        }
        order.sort_unstable();
        let last_s = rows.last().map_or(0, |row| row.at_s) + 1;
        let period_ns = (last_s as f64 * scale).ceil() as u64;
        Self {
            order,
            rows,
            period_ns,
            next: 0,
            round: 0,
        }
    }
}

impl Source for SampleSource {
    fn next(&mut self, keys: &mut Vec<u64>) -> Arrival {
        if self.next == self.order.len() {
            self.next = 0;
            self.round += 1;
        }
        let (at_ns, row) = self.order[self.next];
        self.next += 1;
        let row = self.rows[row as usize];
        keys.clear();
        keys.push(row.key);
        let put = row.class == Class::Put;
        let value_bytes = row.value_bytes.max(1);
        let ttl = match row.ttl_s {
            0 => Ttl::None,
            ttl_s => Ttl::Ms(u64::from(ttl_s) * 1_000),
        };
        let draw = match put {
            true => Draw::put(value_bytes, ttl),
            false => Draw::new(row.class),
        };
        Arrival {
            at_ns: self.round * self.period_ns + at_ns,
            draw,
        }
    }

    fn population(&self) -> Vec<(u64, u32)> {
        // Keys that the sample never found stay absent.
        let mut found: Vec<(u64, u32)> = self
            .rows
            .iter()
            .filter(|r| r.value_bytes > 0)
            .map(|r| (r.key, r.value_bytes))
            .collect();
        found.sort_unstable();
        found.dedup_by_key(|(key, _)| *key);
        found
    }

    fn classes(&self) -> Vec<Class> {
        self.rows.iter().map(|row| row.class).collect()
    }
}

/// No run is longer, seconds: nobody looks for arrivals after it.
const RUN_S_MAX: f64 = 30.0 * 86_400.0;

/// Random arrivals along a curve, from its beginning.
fn endless(curve: Curve, rng: Rng) -> Arrivals {
    Arrivals::new(Profile::new(curve), Some(rng), 0.0..RUN_S_MAX)
}

/// When the next one is due, ns; the end of time if none is.
fn due(arrivals: &mut Arrivals) -> u64 {
    arrivals
        .next_s()
        .map_or(u64::MAX, |at_s| (at_s * 1e9) as u64)
}

/// A source that begins later, and ends.
pub struct Delayed {
    source: Box<dyn Source>,
    from_ns: u64,
    until_ns: u64,
}

impl Delayed {
    /// Its time 0 becomes `from_ns`; nothing is due from `until_ns` on.
    pub fn new(source: Box<dyn Source>, from_ns: u64, until_ns: u64) -> Self {
        Self {
            source,
            from_ns,
            until_ns,
        }
    }
}

impl Source for Delayed {
    fn next(&mut self, keys: &mut Vec<u64>) -> Arrival {
        let mut arrival = self.source.next(keys);
        arrival.at_ns = arrival.at_ns.saturating_add(self.from_ns);
        if arrival.at_ns >= self.until_ns {
            arrival.at_ns = u64::MAX;
        }
        arrival
    }

    fn population(&self) -> Vec<(u64, u32)> {
        self.source.population()
    }

    fn classes(&self) -> Vec<Class> {
        self.source.classes()
    }
}

fn fill(keys: &mut Vec<u64>, list: &[u32]) {
    keys.clear();
    keys.extend(list.iter().map(|key| u64::from(*key)));
}

fn read(keys: &[u64]) -> Draw {
    let class = if keys.len() > 1 {
        Class::Multiget
    } else {
        Class::Get
    };
    Draw::new(class)
}

fn population(lists: &Lists, sizes: &Sizes, seed: u64) -> Vec<(u64, u32)> {
    let keys = lists.distinct().into_iter().map(u64::from);
    keys.map(|key| (key, sizes.of(key, seed))).collect()
}

#[cfg(test)]
#[path = "source_tests.rs"]
mod tests;
