//! One stream while it runs: its connections, and where it is in its plan.

use std::collections::VecDeque;

use super::conn::Status;
use super::fleet::Fleet;
use super::plan::{Handshake, Manners, Pace, Period, Stream};
use crate::draw::Draw;
use crate::encode::{self, KeyText};
use crate::error::WorkloadError;
use crate::source::Arrival;
use crate::stats::{Latency, Recorder, UNSENT};

/// Requests of one stream sent before the server's replies are looked at again.
const BURST: usize = 128;
/// A connection whose socket has not taken this many bytes gets no more: bounds the memory of a run
/// against a server that has stopped.
const UNSENT_BYTES_MAX: usize = 16 << 20;

pub(crate) struct Lane {
    /// Its place among the streams.
    index: usize,
    label: String,
    upcoming: VecDeque<Period>,
    now: Period,
    begun: usize,
    tokens: Vec<usize>,
    /// Whose turn it is.
    turn: usize,
    /// The next request of an open loop; its keys are in `keys`.
    next: Option<Arrival>,
    keys: Vec<u64>,
}

impl Lane {
    /// A lane whose first period has not begun.
    pub(crate) fn new(index: usize, stream: Stream) -> Self {
        let still = Period::still();
        Self {
            index,
            label: stream.label,
            upcoming: stream.periods.into(),
            now: still,
            begun: 0,
            tokens: Vec::new(),
            turn: 0,
            next: None,
            keys: Vec::new(),
        }
    }

    /// It is, or will be, an open loop.
    pub(crate) fn opens(&self) -> bool {
        let mut periods = std::iter::once(&self.now).chain(&self.upcoming);
        periods.any(|period| matches!(period.pace, Pace::Open { .. }))
    }

    /// It sends as it is answered.
    pub(crate) fn closed(&self) -> bool {
        matches!(self.now.pace, Pace::Closed { .. } | Pace::Still)
    }

    pub(crate) fn manners(&self) -> Manners {
        self.now.manners
    }

    /// When something is to be done without a reply, ns: the next period or the next request.
    pub(crate) fn due_ns(&self) -> u64 {
        self.changes_ns()
            .min(self.next.map_or(u64::MAX, |next| next.at_ns))
    }

    /// Sends what is still due before the next period, or before `until_ns`.
    pub(crate) fn catch_up(
        &mut self,
        until_ns: u64,
        fleet: &mut Fleet,
        recorder: &mut Recorder,
        lag: &mut Latency,
    ) {
        let end_ns = until_ns.min(self.changes_ns());
        while self.next.is_some_and(|next| next.at_ns < end_ns) {
            self.send_due(end_ns, end_ns, fleet, recorder, lag);
        }
    }

    /// When the next period begins, ns.
    pub(crate) fn changes_ns(&self) -> u64 {
        self.upcoming
            .front()
            .map_or(u64::MAX, |period| period.from_ns)
    }

    /// Enters the periods that have begun by `now_ns`. `wait`: connects one after the other. Says
    /// what changed.
    pub(crate) fn advance(
        &mut self,
        fleet: &mut Fleet,
        now_ns: u64,
        wait: bool,
    ) -> Result<Option<String>, WorkloadError> {
        let mut news = None;
        while self
            .upcoming
            .front()
            .is_some_and(|period| period.from_ns <= now_ns)
        {
            let Some(period) = self.upcoming.pop_front() else {
                break;
            };
            self.enter(period, fleet, wait)?;
            self.begun += 1;
            news =
                (self.begun > 1 || now_ns > 0).then(|| format!("{} {}", self.label, self.now.what));
        }
        Ok(news)
    }

    fn enter(
        &mut self,
        period: Period,
        fleet: &mut Fleet,
        wait: bool,
    ) -> Result<(), WorkloadError> {
        let keep = if period.manners == self.now.manners {
            period.connections.min(self.tokens.len())
        } else {
            0
        };
        for token in self.tokens.drain(keep..) {
            fleet.leave(token);
        }
        for _ in keep..period.connections {
            let token = match wait {
                true => fleet.open(self.index, period.manners)?,
                false => fleet.open_soon(self.index, period.manners)?,
            };
            self.tokens.push(token);
        }
        (self.turn, self.next, self.now) = (0, None, period);
        if let Pace::Open { source, .. } = &mut self.now.pace {
            let from_ns = self.now.from_ns;
            // A trace begins with the run: what was due before this period is passed over.
            let mut next = source.next(&mut self.keys);
            while next.at_ns < from_ns {
                next = source.next(&mut self.keys);
            }
            self.next = Some(next);
        }
        // A closed loop goes on at once where the connections that it keeps are idle.
        self.tokens[..keep]
            .iter()
            .for_each(|token| fleet.look_at(*token));
        Ok(())
    }

    /// Sends what is due by `now_ns` and before `until_ns`, of an open loop.
    pub(crate) fn send_due(
        &mut self,
        now_ns: u64,
        until_ns: u64,
        fleet: &mut Fleet,
        recorder: &mut Recorder,
        lag: &mut Latency,
    ) {
        for _ in 0..BURST {
            let Some(Arrival { at_ns, draw }) = self.next else {
                return;
            };
            if at_ns > now_ns || at_ns >= until_ns {
                return;
            }
            lag.record(now_ns.saturating_sub(at_ns));
            match self.pick(fleet, recorder) {
                Some(token) => self.push(token, draw, at_ns, fleet, recorder),
                None => {
                    recorder.offered(self.index, draw.class, at_ns, 0);
                    recorder.failed(self.index, draw.class, at_ns, at_ns, UNSENT);
                }
            }
            if let Pace::Open { source, .. } = &mut self.now.pace {
                self.next = Some(source.next(&mut self.keys));
            }
        }
    }

    fn push(
        &self,
        token: usize,
        draw: Draw,
        at_ns: u64,
        fleet: &mut Fleet,
        recorder: &mut Recorder,
    ) {
        let (keys, text) = (&self.keys, self.now.text);
        let bytes = fleet.push(token, draw.class, at_ns, |out| {
            encode::request(out, draw, keys, text);
        });
        recorder.offered(self.index, draw.class, at_ns, bytes);
    }

    /// The next connection in turn that can take a request.
    fn pick(&mut self, fleet: &mut Fleet, recorder: &mut Recorder) -> Option<usize> {
        let Pace::Open { outstanding, .. } = self.now.pace else {
            return None;
        };
        for _ in 0..self.tokens.len() {
            let token = self.tokens[self.turn];
            self.turn = (self.turn + 1) % self.tokens.len();
            let conn = fleet.conn(token);
            if conn.spent() && conn.outstanding() == 0 && conn.status == Status::Up {
                fleet.renew(token, recorder);
            }
            let conn = fleet.conn(token);
            if conn.status == Status::Up
                && !conn.spent()
                && conn.outstanding() < outstanding
                && conn.unsent_bytes() < UNSENT_BYTES_MAX
            {
                return Some(token);
            }
        }
        None
    }

    /// Sends the next batch of a closed loop if the last one (at first: the handshake) is answered.
    pub(crate) fn batch(
        &mut self,
        token: usize,
        fleet: &mut Fleet,
        now_ns: u64,
        recorder: &mut Recorder,
    ) {
        let Pace::Closed { mixture, depth } = &mut self.now.pace else {
            return;
        };
        let Some(conn) = fleet.find(token) else {
            return;
        };
        if conn.status != Status::Up || conn.outstanding() > 0 {
            return;
        }
        if self.now.manners.handshake == Handshake::Partial {
            return;
        }
        if conn.spent() {
            return fleet.renew(token, recorder);
        }
        let (text, index): (KeyText, usize) = (self.now.text, self.index);
        for _ in 0..*depth {
            let draw = mixture.draw(recorder.since_ns(now_ns), &mut self.keys);
            let keys = &self.keys;
            let bytes = fleet.push(token, draw.class, now_ns, |out| {
                encode::request(out, draw, keys, text);
            });
            recorder.offered(index, draw.class, now_ns, bytes);
        }
    }
}
