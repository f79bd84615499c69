//! Who places partitions: one process at a time. As with a move, it changes a number once a second,
//! and who reads the same for [`LEASE_NS`] by his own clock takes it to be gone.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{channel, RecvTimeoutError, Sender};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::book::{name, Book, BEAT_EVERY};
use super::intent::LEASE_NS;
use super::reach::{Nodes, Reach};
use super::say::Say;
use super::Failure;

/// Under which name it is written down.
pub const LEAD: &str = "lead";
/// Nobody.
const NOBODY: &str = "-";

/// What is written down of who leads.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    name: String,
    beat: u64,
}

impl Entry {
    fn text(&self) -> String {
        format!("{} {}", self.name, self.beat)
    }

    fn next(&self) -> Self {
        Self {
            beat: self.beat + 1,
            ..self.clone()
        }
    }
}

/// Whether somebody leads, as far as an entry tells.
pub fn is_led(entry: &str) -> bool {
    !entry.is_empty() && !entry.starts_with(NOBODY)
}

/// This process leads, until that is dropped or it is lost.
pub struct Lead {
    state: Arc<State>,
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

struct State {
    /// Another has taken it over.
    lost: AtomicBool,
    began: Instant,
    /// When it was last written down that this one is there, ms since then.
    kept_ms: AtomicU64,
}

impl State {
    fn kept(&self) {
        let passed = self.began.elapsed().as_millis();
        let passed = u64::try_from(passed).unwrap_or(u64::MAX);
        self.kept_ms.store(passed, Ordering::Release);
    }
}

impl Lead {
    /// Waits until nobody leads any more, unless it is to be done `once`, and leads then. None: it
    /// was told to stop meanwhile.
    ///
    /// # Errors
    /// Somebody leads, or the cluster cannot be asked, and it does not wait.
    pub fn take(
        at: &Reach,
        once: bool,
        stop: &Arc<AtomicBool>,
        say: &mut Say,
    ) -> Result<Option<Self>, Failure> {
        let mut nodes = Nodes::new(at);
        let mut seen: Option<(String, Instant)> = None;
        while !stop.load(Ordering::Relaxed) {
            match claim(&mut nodes, &mut seen) {
                Ok(Some(entry)) => return Self::begin(at, entry, stop).map(Some),
                Ok(None) => {}
                Err(why) if once => return Err(why),
                Err(why) => say.why(&format!("waiting: {why}")),
            }
            thread::sleep(BEAT_EVERY / 2);
        }
        Ok(None)
    }

    fn begin(at: &Reach, entry: Entry, stop: &Arc<AtomicBool>) -> Result<Self, Failure> {
        let state = Arc::new(State {
            lost: AtomicBool::new(false),
            began: Instant::now(),
            kept_ms: AtomicU64::new(0),
        });
        let (end, ends) = channel();
        let (at, stop, mine) = (at.clone(), Arc::clone(stop), Arc::clone(&state));
        let thread = thread::Builder::new().name("lead".into()).spawn(move || {
            let (mut nodes, mut entry) = (Nodes::new(&at), entry);
            while ends.recv_timeout(BEAT_EVERY) == Err(RecvTimeoutError::Timeout) {
                let next = entry.next();
                // If it cannot be written, another may take over meanwhile: then it is not as it
                // was.
                match swap(&mut nodes, &entry.text(), &next.text()) {
                    Ok(true) => {
                        entry = next;
                        mine.kept();
                    }
                    Ok(false) => {
                        mine.lost.store(true, Ordering::Release);
                        // A move that is under way ends between two batches.
                        stop.store(true, Ordering::Relaxed);
                        return;
                    }
                    Err(_) => {}
                }
            }
            // Another need not wait until it misses this one.
            let _ = swap(&mut nodes, &entry.text(), NOBODY);
        })?;
        Ok(Self {
            state,
            end: Some(end),
            thread: Some(thread),
        })
    }

    /// Whether nobody can have taken it over.
    pub fn is_sure(&self) -> bool {
        let kept = Duration::from_millis(self.state.kept_ms.load(Ordering::Acquire));
        let silent = self.state.began.elapsed().saturating_sub(kept);
        !self.is_lost() && silent < Duration::from_nanos(LEASE_NS / 2)
    }

    /// Whether another has taken it over.
    pub fn is_lost(&self) -> bool {
        self.state.lost.load(Ordering::Acquire)
    }
}

impl Drop for Lead {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn swap(nodes: &mut Nodes, old: &str, new: &str) -> Result<bool, Failure> {
    let views = nodes.views()?;
    Book::find(&views)?.swap_control(nodes, LEAD, old, new)
}

/// Leads if nobody does, or whoever does has been silent for long: `seen` is what was read, and
/// since when. None: it is not known yet.
///
/// # Errors
/// Somebody does, or the cluster cannot be asked.
fn claim(
    nodes: &mut Nodes,
    seen: &mut Option<(String, Instant)>,
) -> Result<Option<Entry>, Failure> {
    let views = nodes.views()?;
    let mut book = Book::find(&views)?;
    let entry = book.control(nodes, LEAD)?;
    if is_led(&entry) {
        match seen {
            Some((text, since)) if *text == entry => {
                if since.elapsed() < Duration::from_nanos(LEASE_NS) {
                    return Ok(None);
                }
            }
            seen => {
                let first = seen.is_none();
                *seen = Some((entry, Instant::now()));
                return match first {
                    true => Ok(None),
                    false => Err("another process places partitions of this cluster".into()),
                };
            }
        }
    }
    let mine = Entry {
        name: name(),
        beat: 0,
    };
    let taken = book.swap_control(nodes, LEAD, &entry, &mine.text())?;
    Ok(taken.then_some(mine))
}
