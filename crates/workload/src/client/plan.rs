//! What a run is to do: streams of requests, and how each behaves from when on.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use super::quota::Quota;
use super::{Goal, Identity};
use crate::draw::{Class, Mixture};
use crate::error::WorkloadError;
use crate::source::Source;

pub use crate::encode::KeyText;
pub use crate::scenario::Handshake;

/// A run. Its clock begins with the warm-up; what is measured begins after that.
pub struct Plan {
    /// Where it goes.
    pub goal: Goal,
    /// All at once.
    pub streams: Vec<Stream>,
    /// Run but not counted.
    pub warm_up: Duration,
    /// Counted.
    pub duration: Duration,
    /// How long to wait for the last replies.
    pub drain: Duration,
    /// Client threads, at least 1.
    pub threads: usize,
    /// They look for what comes without ever sleeping.
    pub spin: bool,
}

/// One stream of requests.
pub struct Stream {
    /// The tenant's name in results. Streams of one tenant and tag are counted together.
    pub tenant: String,
    /// Who it says that it is.
    pub identity: Identity,
    /// What messages call it.
    pub label: String,
    /// The thread that plays all of it; `None`: it is dealt to them.
    pub thread: Option<usize>,
    /// What it sends in all; `None`: there is no end. The run ends when all streams that have one
    /// are answered.
    pub quota: Option<Arc<Quota>>,
    /// How it behaves, in order of time; it does nothing before the first.
    pub periods: Vec<Period>,
}

impl Stream {
    /// Whose it is, for errors.
    fn who(&self) -> String {
        match self.label.starts_with(&self.tenant) {
            true => self.label.clone(),
            false => format!("{} load {}", self.tenant, self.label),
        }
    }

    /// A stream that behaves alike from the beginning to the end.
    pub fn new(identity: Identity, period: Period) -> Self {
        Self {
            tenant: identity.tenant().into(),
            label: identity.tag.clone(),
            identity,
            thread: None,
            quota: None,
            periods: vec![period],
        }
    }
}

/// How a stream behaves from some time on.
pub struct Period {
    /// What messages say that the stream does from then on: "changes".
    pub what: String,
    /// When it begins, ns since the run began.
    pub from_ns: u64,
    /// Connections; 0: none.
    pub connections: usize,
    /// How they treat the server.
    pub manners: Manners,
    /// How keys look.
    pub text: KeyText,
    /// When requests leave.
    pub pace: Pace,
}

impl Period {
    /// A period from the beginning of the run, with good manners.
    pub fn new(connections: usize, text: KeyText, pace: Pace) -> Self {
        Self {
            what: "begins".into(),
            from_ns: 0,
            connections,
            manners: Manners::default(),
            text,
            pace,
        }
    }

    /// No connections and no requests.
    pub fn still() -> Self {
        Self::new(0, KeyText::new(0, 0), Pace::Still)
    }
}

/// When requests leave, and what they ask.
pub enum Pace {
    /// Never.
    Still,
    /// When they are due.
    Open {
        /// What is due when, ns since the run began.
        source: Box<dyn Source>,
        /// Unanswered requests on a connection beyond which no more are sent.
        outstanding: usize,
    },
    /// When the last ones were answered.
    Closed {
        /// What is asked.
        mixture: Box<Mixture>,
        /// Requests sent at once on a connection, at least 1.
        depth: usize,
    },
}

impl Pace {
    /// A closed loop.
    pub fn closed(mixture: Mixture, depth: usize) -> Self {
        Self::Closed {
            mixture: Box::new(mixture),
            depth: depth.max(1),
        }
    }

    /// An open loop that gives up sending only when nothing moves any more.
    pub fn open(source: Box<dyn Source>) -> Self {
        Self::Open {
            source,
            outstanding: 16_384,
        }
    }
}

/// How connections treat the server.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Manners {
    /// How they introduce themselves.
    pub handshake: Handshake,
    /// Requests after which a connection is closed and made anew; 0: never.
    pub reconnect_after: u64,
    /// Bytes per second at which replies are read; `None`: as they come.
    pub read_rate: Option<f64>,
}

impl Manners {
    /// Servers throw such connections out, which is no reason to give up.
    pub(crate) fn rude(&self) -> bool {
        self.handshake != Handshake::Full || self.read_rate.is_some()
    }
}

impl Default for Manners {
    fn default() -> Self {
        Self {
            handshake: Handshake::Full,
            reconnect_after: 0,
            read_rate: None,
        }
    }
}

impl Plan {
    /// Whether clients that know of a cluster can play all of it, if they are to.
    ///
    /// # Errors
    /// [`WorkloadError::Usage`] with each stream that they cannot play, and what of it.
    pub(crate) fn check(&self) -> Result<(), WorkloadError> {
        let mut wrong = String::new();
        for stream in self.streams.iter().filter(|_| self.goal.is_cluster()) {
            let reasons: BTreeSet<String> = stream.periods.iter().flat_map(homeless).collect();
            for reason in reasons {
                let _ = write!(wrong, "\n  {}: {reason}", stream.who());
            }
        }
        match wrong.as_str() {
            "" => Ok(()),
            wrong => Err(WorkloadError::Usage(format!(
                "clients that know of a cluster send each request to the front that is the home of its one key, so they cannot \
                 play{wrong}\n    do: leave this out of the load, or play it without --cluster at the address for all clients \
                 (server.listen) of a front, which serves all keys"
            ))),
        }
    }

    /// What all streams that have an end send.
    pub(crate) fn quotas(&self) -> Vec<Arc<Quota>> {
        self.streams
            .iter()
            .flat_map(|one| one.quota.clone())
            .collect()
    }

    /// The part of each of this many threads: open loops are dealt out in turn, connections of
    /// closed loops evenly. Every part knows every stream, so that results add up; what it does not
    /// play is still.
    pub(crate) fn split(self, threads: usize) -> Vec<Vec<Stream>> {
        let mut parts: Vec<Vec<Stream>> = (0..threads).map(|_| Vec::new()).collect();
        for (index, stream) in self.streams.into_iter().enumerate() {
            let owner = stream.thread.unwrap_or(index) % threads;
            let mut periods: Vec<Vec<Period>> = (0..threads).map(|_| Vec::new()).collect();
            for period in stream.periods {
                if stream.thread.is_some() {
                    leave(period, owner, &mut periods);
                } else {
                    deal(period, owner, &mut periods);
                }
            }
            for (part, periods) in parts.iter_mut().zip(periods) {
                part.push(Stream {
                    tenant: stream.tenant.clone(),
                    identity: stream.identity.clone(),
                    label: stream.label.clone(),
                    thread: stream.thread,
                    quota: stream.quota.clone(),
                    periods,
                });
            }
        }
        parts
    }
}

/// What of a period cannot be played by clients that know of a cluster.
fn homeless(period: &Period) -> Vec<String> {
    let classes = match &period.pace {
        Pace::Still => Vec::new(),
        Pace::Open { source, .. } => source.classes(),
        Pace::Closed { mixture, .. } => mixture.shares().classes().collect(),
    };
    let classes = classes.into_iter().filter(|class| !class.has_home());
    let mut reasons: Vec<String> = classes.map(reason).collect();
    if period.connections > 0 && period.manners.rude() {
        let why =
            "its connections misbehave (`handshake`, `read_rate`), and such a client has several";
        reasons.push(why.into());
    }
    reasons
}

fn reason(class: Class) -> String {
    let keys = match class {
        Class::Multiget => "several keys",
        Class::Range => "keys in order",
        _ => "no key",
    };
    format!("`{}` asks for {keys}", class.name())
}

fn deal(period: Period, owner: usize, parts: &mut [Vec<Period>]) {
    let threads = parts.len();
    let share = |part: usize| {
        let place = (part + threads - owner) % threads;
        period.connections / threads + usize::from(place < period.connections % threads)
    };
    let part_of = |connections: usize, pace: Pace| Period {
        connections,
        pace,
        ..period_like(&period)
    };
    match &period.pace {
        Pace::Closed { mixture, depth } => {
            for (part, periods) in parts.iter_mut().enumerate() {
                let mixture = match part == owner {
                    true => mixture.clone(),
                    false => Box::new(mixture.fork(part as u64)),
                };
                let depth = *depth;
                periods.push(part_of(share(part), Pace::Closed { mixture, depth }));
            }
        }
        Pace::Open { .. } | Pace::Still => leave(period, owner, parts),
    }
}

/// Leaves a period whole to its owner.
fn leave(period: Period, owner: usize, parts: &mut [Vec<Period>]) {
    for (part, periods) in parts.iter_mut().enumerate() {
        if part != owner {
            periods.push(period_like(&period));
        }
    }
    parts[owner].push(period);
}

/// A still period at the same time with the same manners.
fn period_like(period: &Period) -> Period {
    Period {
        what: period.what.clone(),
        from_ns: period.from_ns,
        connections: 0,
        manners: period.manners,
        text: period.text,
        pace: Pace::Still,
    }
}
