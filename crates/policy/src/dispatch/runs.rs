//! Streams: pieces of one large piece of work, which a disk does best one after the other.
//!
//! Whoever asks for a piece when the last one is done is not in the queue at the moment at which
//! the next turn is given, so the turn would go to another stream, and a disk would seek after
//! every piece. Anticipation (Iyer and Druschel, SOSP 2001) waits for it, a little. A run ends with
//! its stream, or after this much time, and shares decide again; what is due does not wait for it.

use super::lane::{LaneId, Pick};
use super::{Dispatch, Grant};
use crate::cost::{Nanos, PrincipalId};

/// A stream that goes on.
#[derive(Clone, Copy, Debug)]
struct Run {
    index: u32,
    lane: LaneId,
    stream: u32,
    began_at: Nanos,
    /// `None`: a piece of it is out.
    ended_at: Option<Nanos>,
}

/// What tickets say of a turn without a stream.
pub(super) const NO_RUN: u8 = 0;
/// Runs at a time; more streams than this go without.
const RUNS_MAX: usize = 32;

/// The streams that go on, each at a place that tickets name.
#[derive(Clone, Debug, Default)]
pub(super) struct Runs {
    all: Vec<Option<Run>>,
}

impl Runs {
    /// A piece begins; says where its run is kept, [`NO_RUN`] for nowhere.
    pub(super) fn begin(&mut self, now: Nanos, index: usize, lane: LaneId, stream: u32) -> u8 {
        let index = index as u32;
        let same = |run: &Run| (run.index, run.lane, run.stream) == (index, lane, stream);
        let known = self
            .all
            .iter()
            .position(|run| run.as_ref().is_some_and(same));
        let place = known.or_else(|| self.all.iter().position(Option::is_none));
        let place = place.unwrap_or(self.all.len());
        if place >= RUNS_MAX {
            return NO_RUN;
        }
        if place == self.all.len() {
            self.all.push(None);
        }
        let began_at = self.all[place].map_or(now, |run| run.began_at);
        self.all[place] = Some(Run {
            index,
            lane,
            stream,
            began_at,
            ended_at: None,
        });
        place as u8 + 1
    }

    /// A piece is done.
    pub(super) fn end(&mut self, now: Nanos, place: u8) {
        let place = usize::from(place).checked_sub(1);
        let run = place.and_then(|place| self.all.get_mut(place)?.as_mut());
        if let Some(run) = run {
            run.ended_at = Some(now);
        }
    }

    /// A stream has no more pieces.
    fn over(&mut self, index: usize, stream: u32) {
        let this = |run: &Run| (run.index, run.stream) == (index as u32, stream);
        let ended = |run: &Run| run.ended_at.is_some() && this(run);
        let run = self
            .all
            .iter_mut()
            .find(|run| run.as_ref().is_some_and(ended));
        if let Some(run) = run {
            *run = None;
        }
    }

    /// Forgets runs that nobody waits for any more.
    fn expire(&mut self, now: Nanos, linger_ns: Nanos, run_ns: Nanos) {
        for run in &mut self.all {
            let over = run.and_then(|run| {
                let since = run.ended_at?;
                Some(now > since + linger_ns || now >= run.began_at + run_ns)
            });
            if over == Some(true) {
                *run = None;
            }
        }
    }

    /// Runs whose next piece is waited for.
    fn waiting(&self) -> impl Iterator<Item = &Run> {
        self.all
            .iter()
            .flatten()
            .filter(|run| run.ended_at.is_some())
    }

    /// When the first of them is given up.
    pub(super) fn given_up_at(&self, linger_ns: Nanos, run_ns: Nanos) -> Option<Nanos> {
        let given_up = self.waiting().filter_map(|run| {
            let lingers_until = run.ended_at? + linger_ns + 1;
            Some(lingers_until.min(run.began_at + run_ns))
        });
        given_up.min()
    }
}

impl<T, const R: usize> Dispatch<T, R> {
    /// A principal's stream has no more pieces: its next one is not waited for.
    pub fn end_stream(&mut self, principal: PrincipalId, stream: u32) {
        self.timed.runs.over(principal.index(), stream);
    }

    /// The next piece of a stream that goes on, with one of `free` permits for work without due
    /// times; and how many of these permits are left for others, while streams are waited for.
    pub(super) fn next_of_runs(&mut self, now: Nanos, free: u32) -> (Option<Grant<T, R>>, u32) {
        let others = self.timed.others;
        self.timed.runs.expire(now, others.linger_ns, others.run_ns);
        let ready = self.timed.runs.waiting().find(|run| {
            let slot = &self.slots[run.index as usize];
            let lanes = slot.lanes.as_ref();
            lanes.is_some_and(|lanes| lanes.has_stream(run.lane, run.stream))
        });
        if let Some(run) = ready.copied().filter(|_| free > 0) {
            let (index, pick) = (run.index as usize, Pick::Stream(run.lane, run.stream));
            if let Some(verdict) = self.verdict(now, index) {
                let grant = self.grant_apart(now, index, verdict, false, pick);
                return (Some(grant), 0);
            }
        }
        let waiting = self.timed.runs.waiting().count() as u32;
        (None, free.saturating_sub(waiting))
    }
}
