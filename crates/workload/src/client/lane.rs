//! One stream while it runs: its clients, and where it is in its plan.

use std::collections::VecDeque;
use std::sync::Arc;

use super::clients::Clients;
use super::conn::Status;
use super::fleet::{Fleet, Moved};
use super::map::Map;
use super::plan::{Handshake, Manners, Pace, Period, Stream};
use super::quota::Quota;
use crate::draw::Draw;
use crate::encode::KeyText;
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
    quota: Option<Arc<Quota>>,
    upcoming: VecDeque<Period>,
    now: Period,
    begun: usize,
    clients: Clients,
    /// The next request of an open loop; its keys are in `keys`.
    next: Option<Arrival>,
    keys: Vec<u64>,
}

impl Lane {
    /// A lane whose first period has not begun. With a map its clients know of a cluster.
    pub(crate) fn new(index: usize, stream: Stream, map: Option<Map>) -> Self {
        let still = Period::still();
        Self {
            index,
            label: stream.label,
            quota: stream.quota,
            upcoming: stream.periods.into(),
            now: still,
            begun: 0,
            clients: Clients::new(index, map),
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
        recorder: &mut Recorder,
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
            self.enter(period, fleet, recorder, wait)?;
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
        recorder: &mut Recorder,
        wait: bool,
    ) -> Result<(), WorkloadError> {
        let (count, manners) = (period.connections, period.manners);
        self.clients.resize(count, manners, wait, fleet, recorder)?;
        (self.next, self.now) = (None, period);
        if let Pace::Open { source, .. } = &mut self.now.pace {
            let from_ns = self.now.from_ns;
            // A trace begins with the run: what was due before this period is passed over.
            let mut next = source.next(&mut self.keys);
            while next.at_ns < from_ns {
                next = source.next(&mut self.keys);
            }
            self.next = Some(next);
        }
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
            if !self.may_send() {
                self.next = None;
                return;
            }
            lag.record(now_ns.saturating_sub(at_ns));
            match self.pick(draw, fleet, recorder) {
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

    /// Whether it has a request to send; takes it.
    fn may_send(&self) -> bool {
        self.quota.as_ref().is_none_or(|quota| quota.take())
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
        let bytes = self.clients.send(token, draw, keys, text, at_ns, fleet);
        recorder.offered(self.index, draw.class, at_ns, bytes);
    }

    /// The connection of the next client in turn that can take a request.
    fn pick(&mut self, draw: Draw, fleet: &mut Fleet, recorder: &mut Recorder) -> Option<usize> {
        let Pace::Open { outstanding, .. } = self.now.pace else {
            return None;
        };
        let place = self.clients.place(draw.class, &self.keys, self.now.text);
        self.clients.next(place, |token| {
            let conn = fleet.conn(token);
            if conn.spent() && conn.idle() {
                fleet.renew(token, recorder);
            }
            let conn = fleet.conn(token);
            conn.status == Status::Up
                && !conn.spent()
                && conn.outstanding() < outstanding
                && conn.unsent_bytes() < UNSENT_BYTES_MAX
        })
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
        if self.now.manners.handshake == Handshake::Partial {
            return;
        }
        let Some(row) = self.clients.idle(&token, fleet) else {
            return;
        };
        if self.now.manners.reconnect_after > 0 {
            if let Some(spent) = row.iter().find(|token| fleet.conn(**token).spent()) {
                return fleet.renew(*spent, recorder);
            }
        }
        let (text, index): (KeyText, usize) = (self.now.text, self.index);
        for _ in 0..*depth {
            if self.quota.as_ref().is_some_and(|quota| !quota.take()) {
                return;
            }
            let draw = mixture.draw(recorder.since_ns(now_ns), &mut self.keys);
            let (clients, keys) = (&self.clients, &self.keys);
            let token = row[clients.place(draw.class, keys, text)];
            let bytes = clients.send(token, draw, keys, text, now_ns, fleet);
            recorder.offered(index, draw.class, now_ns, bytes);
        }
    }

    /// Sends a request again where it belongs.
    pub(crate) fn follow(
        &mut self,
        moved: Moved,
        fleet: &mut Fleet,
        now_ns: u64,
        recorder: &mut Recorder,
    ) -> Result<(), WorkloadError> {
        let (class, start_ns) = (moved.kept.draw.class, moved.start_ns);
        if let Some(failure) = self.clients.follow(moved, fleet, recorder)? {
            recorder.failed(self.index, class, start_ns, now_ns, failure);
        }
        Ok(())
    }

    pub(crate) fn clients(&mut self) -> &mut Clients {
        &mut self.clients
    }
}
