//! How many commands run apart: of a tenant, and of all tenants together.
//!
//! Those whose replies are made as their clients take them, and those that only work, have passes
//! apart: clients that take nothing keep nobody from writing.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;

/// Commands of each sort that a tenant may have apart at once. Each holds a thread and, of its
/// reply, about a MiB or one value.
const PASSES: usize = 4;

/// Takes a pass, or drops it, and then the next in line gets it.
type Taker = Box<dyn FnOnce(Pass) + Send>;

struct State {
    free: usize,
    waiting: VecDeque<Taker>,
}

/// Passes for commands that run apart.
pub struct Apart {
    /// Those that wait for their clients.
    pub replies: Streams,
    /// Those that do not.
    pub works: Streams,
}

impl Apart {
    /// So many of each.
    pub fn new(replies: usize, works: usize) -> Self {
        Self {
            replies: Streams::new(replies),
            works: Streams::new(works),
        }
    }

    /// Those for a command that only reads, or for another.
    pub fn of(&self, only_reads: bool) -> &Streams {
        match only_reads {
            true => &self.replies,
            false => &self.works,
        }
    }
}

/// Those of one tenant.
impl Default for Apart {
    fn default() -> Self {
        Self::new(PASSES, PASSES)
    }
}

/// Passes of one sort.
#[derive(Clone)]
pub struct Streams(Arc<Mutex<State>>);

impl Streams {
    /// So many, all free.
    pub fn new(passes: usize) -> Self {
        Self(Arc::new(Mutex::new(State {
            free: passes,
            waiting: VecDeque::new(),
        })))
    }

    /// Whether somebody waits for one.
    pub fn wanted(&self) -> bool {
        !self.0.lock().waiting.is_empty()
    }

    fn enter(&self) -> Option<Pass> {
        let mut state = self.0.lock();
        state.free = state.free.checked_sub(1)?;
        Some(Pass(self.clone()))
    }

    /// Gives `taker` a pass: at once, or in turn.
    fn queue(&self, taker: Taker) {
        let mut state = self.0.lock();
        if state.free == 0 {
            return state.waiting.push_back(taker);
        }
        state.free -= 1;
        drop(state);
        taker(Pass(self.clone()));
    }
}

/// One of the passes; dropped, it goes to the next in line.
pub struct Pass(Streams);

impl Drop for Pass {
    fn drop(&mut self) {
        let streams = &self.0;
        let mut state = streams.0.lock();
        let Some(taker) = state.waiting.pop_front() else {
            state.free += 1;
            return;
        };
        drop(state);
        taker(Pass(streams.clone()));
    }
}

/// What such a command needs before it begins: a pass among its tenant's, then one among all
/// tenants'.
#[derive(Default)]
pub struct Passes {
    own: Option<Pass>,
    common: Option<Pass>,
}

impl Passes {
    /// Takes what is free. `true`: it has both.
    pub fn enter(&mut self, own: &Streams, common: &Streams) -> bool {
        self.own = self.own.take().or_else(|| own.enter());
        if self.own.is_some() {
            self.common = self.common.take().or_else(|| common.enter());
        }
        self.common.is_some()
    }

    /// Has `taker` get the first one that is missing, at once or in turn.
    pub fn queue(&self, own: &Streams, common: &Streams, taker: Taker) {
        match self.own {
            None => own.queue(taker),
            Some(_) => common.queue(taker),
        }
    }

    /// Adds the one that was missing. `true`: it has both.
    pub fn add(&mut self, pass: Pass) -> bool {
        match self.own {
            None => self.own = Some(pass),
            Some(_) => self.common = Some(pass),
        }
        self.common.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whoever waits notes its name, and keeps its pass among `kept` unless it has gone meanwhile.
    struct Line {
        told: Arc<Mutex<Vec<u32>>>,
        kept: Arc<Mutex<Vec<Pass>>>,
    }

    impl Line {
        fn new() -> Self {
            let (told, kept) = Default::default();
            Self { told, kept }
        }

        fn taker(&self, name: u32, gone: bool) -> Taker {
            let (told, kept) = (Arc::clone(&self.told), Arc::clone(&self.kept));
            Box::new(move |pass| {
                told.lock().push(name);
                if !gone {
                    kept.lock().push(pass);
                }
            })
        }
    }

    #[test]
    fn places_go_to_those_in_line_in_turn_and_past_those_who_have_gone() {
        let (streams, line) = (Streams::new(2), Line::new());
        let mut passes: Vec<_> = std::iter::from_fn(|| streams.enter()).collect();
        assert_eq!(passes.len(), 2);
        for (name, gone) in [(1, true), (2, true), (3, false), (4, false)] {
            streams.queue(line.taker(name, gone));
        }
        assert!(streams.wanted() && line.told.lock().is_empty());
        passes.pop();
        assert_eq!(*line.told.lock(), [1, 2, 3]);
        passes.pop();
        assert_eq!(*line.told.lock(), [1, 2, 3, 4]);
        assert!(!streams.wanted() && streams.enter().is_none());
        let last = line.kept.lock().pop();
        drop(last);
        streams.queue(line.taker(5, false));
        assert_eq!(line.told.lock().last(), Some(&5), "one was free");
    }

    #[test]
    fn a_reply_needs_one_of_its_tenants_places_and_then_one_of_all() {
        let (own, common, line) = (Streams::new(1), Streams::new(1), Line::new());
        let (mut first, mut second, mut other) = <(Passes, Passes, Passes)>::default();
        assert!(first.enter(&own, &common));
        assert!(!second.enter(&own, &common) && second.own.is_none());
        assert!(!other.enter(&Streams::new(1), &common) && other.own.is_some());
        second.queue(&own, &common, line.taker(2, false));
        other.queue(&Streams::new(1), &common, line.taker(3, false));
        drop(first);
        assert_eq!(*line.told.lock(), [2, 3]);
        let [own_place, common_place] = std::mem::take(&mut *line.kept.lock())
            .try_into()
            .unwrap_or_else(|_| panic!("two passes"));
        assert!(!second.add(own_place));
        assert!(other.add(common_place));
        drop((second, other));
        assert!(Passes::default().enter(&own, &common), "all came back");
    }
}
