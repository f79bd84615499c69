//! What all fronts tell of the nodes, for those who look at it: read in the round of fronts, and
//! only while somebody looks.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use front::{Demand, Value, DEMAND, MOVES};
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
    told: Mutex<Option<(Nanos, Arc<Told>)>>,
}

/// What all fronts tell.
#[derive(Default)]
pub struct Told {
    /// What each is asked for.
    pub demands: Vec<Demand>,
    /// Slots that are being moved, as it is written down (`7`, `7-90`).
    pub moves: Vec<String>,
}

impl Survey {
    /// Somebody looks. None: nobody has, until now, or nothing can be read.
    pub fn look(&self, now: Nanos) -> Option<Arc<Told>> {
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
        let moves = book.ask(&[b"HKEYS", MOVES])?;
        let texts = |value: &Value| -> Vec<String> {
            let texts = value.items().iter().filter_map(Value::text);
            texts.map(str::to_owned).collect()
        };
        let told = Told {
            demands: (texts(&demands).iter())
                .filter_map(|text| Demand::read(text))
                .collect(),
            moves: texts(&moves),
        };
        *self.told.lock() = Some((now, Arc::new(told)));
        Ok(())
    }
}
