//! What all fronts tell of the nodes, for those who look at it: read in the round of fronts, and
//! only while somebody looks.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use front::{Demand, Value, DEMAND};
use parking_lot::Mutex;
use policy::Nanos;

use super::catalogue::Book;

/// Nobody looks who has not asked for so long.
const LOOKS_NS: Nanos = 10_000_000_000;
/// What is told is no more true after so long.
const TRUE_NS: Nanos = 5_000_000_000;

/// What was read last.
#[derive(Default)]
pub struct Survey {
    asked_at: AtomicU64,
    told: Mutex<Option<(Nanos, Arc<[Demand]>)>>,
}

impl Survey {
    /// Somebody looks at what each front is asked for. None: nobody has, until now, or nothing can
    /// be read.
    pub fn look(&self, now: Nanos) -> Option<Arc<[Demand]>> {
        self.asked_at.store(now.max(1), Ordering::Relaxed);
        let (at, told) = self.told.lock().clone()?;
        (now.saturating_sub(at) < TRUE_NS).then_some(told)
    }

    /// Reads it, if somebody looks.
    ///
    /// # Errors
    /// The cluster cannot be asked.
    pub(super) fn go(&self, book: &mut Book<'_>, now: Nanos) -> Result<(), String> {
        let asked_at = self.asked_at.load(Ordering::Relaxed);
        if asked_at == 0 || now.saturating_sub(asked_at) >= LOOKS_NS {
            return Ok(());
        }
        let demands = book.ask(&[b"HVALS", DEMAND])?;
        let texts = demands.items().iter().filter_map(Value::text);
        let told = texts.filter_map(Demand::read).collect();
        *self.told.lock() = Some((now, told));
        Ok(())
    }
}
