//! Asks for maps of a cluster while a load runs: what asks waits for a reply, and a load must not.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Duration;

use super::map::Map;
use super::Identity;
use crate::error::WorkloadError;

/// A tenant's map is asked for at most so often.
const EVERY_NS: u64 = 500_000_000;
/// A front that takes longer is not waited for: another may know.
const PATIENCE: Duration = Duration::from_secs(1);

/// Whose map, and who may know it.
pub(crate) struct Question {
    pub(crate) stream: usize,
    pub(crate) identity: Identity,
    pub(crate) fronts: Vec<SocketAddr>,
}

/// A thread that asks, and what it is to ask.
pub(crate) struct Scout {
    questions: Sender<Question>,
    answers: Receiver<(usize, Option<Map>)>,
    /// Streams whose map may be old.
    doubts: BTreeSet<usize>,
    /// By stream, before when it is not asked for, ns; the end of time while it is asked for.
    rests_until_ns: Vec<u64>,
}

impl Scout {
    /// One for this many streams. Its thread ends with it.
    pub(crate) fn start(streams: usize) -> Result<Self, WorkloadError> {
        let (questions, asked) = mpsc::channel::<Question>();
        let (found, answers) = mpsc::channel();
        let work = move || {
            let mut last = None;
            for question in asked {
                let map = ask(&question, &mut last);
                if found.send((question.stream, map)).is_err() {
                    return;
                }
            }
        };
        let thread = std::thread::Builder::new().name("scout".into());
        thread
            .spawn(work)
            .map_err(WorkloadError::system("starting a thread"))?;
        Ok(Self {
            questions,
            answers,
            doubts: BTreeSet::new(),
            rests_until_ns: vec![0; streams],
        })
    }

    /// The map of this stream may be old.
    pub(crate) fn doubt(&mut self, stream: usize) {
        self.doubts.insert(stream);
    }

    /// Asks for the maps that may be old, as far as it is time to.
    pub(crate) fn ask(&mut self, now_ns: u64, mut question: impl FnMut(usize) -> Question) {
        let rests_until_ns = &mut self.rests_until_ns;
        self.doubts.retain(|stream| {
            let waits = rests_until_ns[*stream] > now_ns;
            if !waits {
                rests_until_ns[*stream] = u64::MAX;
                // Its thread lives as long as this.
                let _ = self.questions.send(question(*stream));
            }
            waits
        });
    }

    /// The next map that was found, and whose it is.
    pub(crate) fn found(&mut self, now_ns: u64) -> Option<(usize, Map)> {
        loop {
            let (stream, map) = self.answers.try_recv().ok()?;
            self.rests_until_ns[stream] = now_ns + EVERY_NS;
            match map {
                Some(map) => return Some((stream, map)),
                None => self.doubt(stream),
            }
        }
    }
}

/// Asks one front after the other, and the one that answered `last` first.
fn ask(question: &Question, last: &mut Option<SocketAddr>) -> Option<Map> {
    let known = last.filter(|last| question.fronts.contains(last));
    let others = question.fronts.iter().copied();
    for front in known
        .into_iter()
        .chain(others.filter(|front| Some(*front) != known))
    {
        if let Ok(map) = Map::ask(front, &question.identity, PATIENCE) {
            *last = Some(front);
            return Some(map);
        }
    }
    None
}
