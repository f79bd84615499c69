//! Which replica is asked: the choice of one sender, from what its own requests and the replies
//! told it.
//!
//! A sender keeps a [`Selector`] over all servers. For each operation it asks [`Selector::choose`]
//! among the servers that hold the data, says what it sent, and passes on what each reply carried.
//! [`Windows`] are for tenants with a share at each server: they find it from latency, and also say
//! when to wait. Reads from a Redis Cluster that may be stale go by how far replicas are known to
//! be behind ([`Standing`]) and by what they have to do ([`reader`]).

mod reader;
mod window;

pub use reader::{reader, Load, Standing, Written, LOOKED_NS_MAX};
pub use window::{WindowOptions, Windows};

use crate::cost::Nanos;
use crate::generator::Generator;

/// How a replica is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Any of them alike.
    Random,
    /// One after the other (the straw man of Rein 5.3).
    RoundRobin,
    /// The one with the least work that this sender has outstanding there.
    LeastOutstanding,
    /// The best rank of C3 (Suresh et al., NSDI 2015, 3.1), without its rate control.
    C3 {
        /// How many senders share the servers: what each sees of a queue is multiplied by it.
        senders: u32,
    },
    /// Hot-cold by requests in flight and latency (Prequal, Wydmuch et al., NSDI 2024, 4): of those
    /// whose requests in flight are not among the highest, the one with the lowest latency.
    HotCold,
    /// The one that is expected to be done first: its queue as last told, worked off since, plus
    /// what this sender has sent there since, plus the operation.
    LeastFinish,
}

/// What a reply tells of its server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Feedback {
    /// Operations queued or in service when the reply left.
    pub in_flight: u32,
    /// How long the operation was in service.
    pub service_ns: Nanos,
    /// Work queued or in service when the reply left, divided by what the server works on at a
    /// time.
    pub backlog_ns: Nanos,
    /// What of it goes before an operation that is not put off ([`crate::multiget::Tag`]).
    pub urgent_ns: Nanos,
}

/// What a sender knows of one server.
#[derive(Clone, Copy, Debug, Default)]
struct View {
    outstanding: u32,
    /// Moving averages, weight 1/8 for the newest; 0: nothing is known yet.
    response_ns: u64,
    service_ns: u64,
    queued_milli: u64,
    last: Feedback,
    told_at: Nanos,
    /// Expected work that this sender has sent since it was told, as backlog: all, and what is not
    /// put off.
    sent_since_ns: [u64; 2],
}

/// One sender's choice of replicas.
#[derive(Clone, Debug)]
pub struct Selector {
    rule: Rule,
    views: Vec<View>,
    turn: u32,
    generator: Generator,
}

impl Selector {
    /// A sender that knows nothing yet of `servers` servers.
    #[must_use]
    pub fn new(rule: Rule, servers: u32, seed: u64) -> Self {
        let mut generator = Generator::new(seed);
        Selector {
            rule,
            views: vec![View::default(); servers as usize],
            turn: generator.below(1 << 16) as u32,
            generator,
        }
    }

    /// The place among `candidates` (not empty) of the server to ask; `put_off`: for an operation
    /// that others need not wait for.
    pub fn choose(&mut self, now: Nanos, candidates: &[u32], put_off: bool) -> usize {
        let count = candidates.len();
        self.turn = self.turn.wrapping_add(1);
        let first = match self.rule {
            Rule::Random => return self.generator.below(count as u64) as usize,
            Rule::RoundRobin => return self.turn as usize % count,
            // Ties must not all go to the same server.
            _ => self.generator.below(count as u64) as usize,
        };
        if self.rule == Rule::HotCold {
            return self.hot_cold(now, candidates, first);
        }
        let places = (0..count).map(|step| (first + step) % count);
        let ranked = places.map(|place| (self.rank(now, candidates[place], put_off), place));
        ranked
            .min_by(|a, b| a.0.total_cmp(&b.0))
            .map_or(first, |(_, place)| place)
    }

    fn rank(&self, now: Nanos, server: u32, put_off: bool) -> f64 {
        let view = &self.views[server as usize];
        match self.rule {
            Rule::C3 { senders } => {
                // q = 1 + os * n + queue; rank = R - 1/mu + q^3 / mu, all smoothed.
                let queue = 1.0
                    + f64::from(view.outstanding) * f64::from(senders)
                    + view.queued_milli as f64 / 1e3;
                let service = view.service_ns as f64;
                view.response_ns as f64 - service + queue.powi(3) * service
            }
            Rule::LeastFinish => self.expected_ns(now, server, put_off) as f64,
            _ => f64::from(view.outstanding),
        }
    }

    fn hot_cold(&self, now: Nanos, candidates: &[u32], first: usize) -> usize {
        let seen = |place: usize| {
            let view = &self.views[candidates[place] as usize];
            let age = now.saturating_sub(view.told_at);
            (
                view.last.in_flight + view.outstanding,
                view.response_ns,
                age,
            )
        };
        let hot = (0..candidates.len()).map(|place| seen(place).0).max();
        let cool = (0..candidates.len()).map(|place| seen(place).0).min();
        let places = (0..candidates.len()).map(|step| (first + step) % candidates.len());
        let cold = places.filter(|&place| Some(seen(place).0) < hot || cool == hot);
        cold.min_by_key(|&place| seen(place).1).unwrap_or(first)
    }

    /// Expected wait at a server now, of an operation that is put off or not.
    #[must_use]
    pub fn expected_ns(&self, now: Nanos, server: u32, put_off: bool) -> Nanos {
        let view = &self.views[server as usize];
        let worked_off = now.saturating_sub(view.told_at);
        let [all_ns, urgent_ns] = view.sent_since_ns;
        let (told_ns, sent_ns) = match put_off {
            true => (view.last.backlog_ns, all_ns),
            false => (view.last.urgent_ns, urgent_ns),
        };
        told_ns.saturating_sub(worked_off) + sent_ns
    }

    /// How much this sender has outstanding at a server.
    #[must_use]
    pub fn outstanding(&self, server: u32) -> u32 {
        self.views[server as usize].outstanding
    }

    /// Work that is expected to add `backlog_ns` to a server's queue was sent there.
    pub fn sent(&mut self, server: u32, backlog_ns: Nanos, put_off: bool) {
        let view = &mut self.views[server as usize];
        view.outstanding += 1;
        let [all_ns, urgent_ns] = &mut view.sent_since_ns;
        *all_ns += backlog_ns;
        if !put_off {
            *urgent_ns += backlog_ns;
        }
    }

    /// An operation sent to a server will have no reply: the server is gone.
    pub fn lost(&mut self, server: u32) {
        let view = &mut self.views[server as usize];
        view.outstanding = view.outstanding.saturating_sub(1);
    }

    /// A server told how it stands, without a reply: an answer to a probe.
    pub fn told(&mut self, now: Nanos, server: u32, feedback: Feedback) {
        let view = &mut self.views[server as usize];
        view.last = feedback;
        view.told_at = now;
        view.sent_since_ns = [0; 2];
    }

    /// A reply came, `response_ns` after its operation was sent.
    pub fn replied(&mut self, now: Nanos, server: u32, response_ns: Nanos, feedback: Feedback) {
        let view = &mut self.views[server as usize];
        view.outstanding = view.outstanding.saturating_sub(1);
        let smooth = |old: u64, new: u64| match old {
            0 => new.max(1),
            _ => (old * 7 + new) / 8,
        };
        view.response_ns = smooth(view.response_ns, response_ns);
        view.service_ns = smooth(view.service_ns, feedback.service_ns);
        view.queued_milli = smooth(view.queued_milli, u64::from(feedback.in_flight) * 1_000);
        view.last = feedback;
        view.told_at = now;
        // What is still outstanding may be in the queue that was told, or behind it: half counts.
        let counted = if view.outstanding == 0 { 0 } else { 1 };
        view.sent_since_ns = view.sent_since_ns.map(|ns| ns / 2 * counted);
    }
}
