//! Memory that a command works with beside its request and its reply.

use crate::{Allowance, EngineError, KeyspaceOptions, Stop};
use std::sync::Arc;

/// What a command works with before it takes of the allowance: most never do.
const FREE_BYTES: u64 = 64 << 10;
/// It takes this much at a time.
const TAKEN_BYTES: u64 = 1 << 20;

/// What one command works with. Dropped, it gives back what it took.
#[derive(Default)]
pub(crate) struct Work {
    bytes: u64,
    taken: u64,
    allowance: Option<Arc<dyn Allowance>>,
}

impl Work {
    /// Counts this many bytes more.
    pub(crate) fn count(&mut self, bytes: usize, options: &KeyspaceOptions) -> Result<(), Stop> {
        self.bytes = self.bytes.saturating_add(bytes as u64);
        if self.bytes <= FREE_BYTES.max(self.taken) {
            return Ok(());
        }
        let bytes_max = options.work_bytes_max;
        if self.bytes > bytes_max {
            return Err(EngineError::Work { bytes_max }.into());
        }
        let Some(allowance) = &options.allowance else {
            return Ok(());
        };
        let more = (self.bytes - self.taken).next_multiple_of(TAKEN_BYTES);
        if !allowance.take(more) {
            return Err(EngineError::Memory.into());
        }
        self.taken += more;
        self.allowance.get_or_insert_with(|| Arc::clone(allowance));
        Ok(())
    }

    /// Takes back what was counted. The command keeps its part of the allowance for what comes
    /// next.
    pub(crate) fn release(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_sub(bytes as u64);
    }

    /// What it took, if it took any: for what it wrote.
    pub(crate) fn kept(self) -> Option<Arc<Self>> {
        (self.taken > 0).then(|| Arc::new(self))
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        if let Some(allowance) = &self.allowance {
            allowance.give(self.taken);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::buffer::Buffer;
    use crate::log::{Bounds, Log, Noted, Pending};
    use crate::{Allotments, Sync};
    use std::sync::atomic::{AtomicU64, Ordering};

    struct Left(AtomicU64);

    impl Allowance for Left {
        fn take(&self, bytes: u64) -> bool {
            let taken = |left: u64| left.checked_sub(bytes);
            let (set, fetch) = (Ordering::Relaxed, Ordering::Relaxed);
            self.0.fetch_update(set, fetch, taken).is_ok()
        }

        fn give(&self, bytes: u64) {
            self.0.fetch_add(bytes, Ordering::Relaxed);
        }
    }

    #[test]
    fn commands_share_an_allowance_and_give_back_what_they_took() {
        let left = Arc::new(Left(AtomicU64::new(3 << 20)));
        let mut options = KeyspaceOptions::new(Sync::Never, Allotments::default());
        options.allowance = Some(Arc::clone(&left) as Arc<dyn Allowance>);
        options.work_bytes_max = 8 << 20;
        let (mut one, mut other) = (Work::default(), Work::default());
        one.count(FREE_BYTES as usize, &options).unwrap();
        assert_eq!(left.0.load(Ordering::Relaxed), 3 << 20, "a little is free");
        one.count(2 << 20, &options).unwrap();
        assert_eq!(left.0.load(Ordering::Relaxed), 0);
        assert!(matches!(
            other.count(1 << 20, &options),
            Err(Stop::Error(EngineError::Memory))
        ));
        drop(one);
        other.count(1, &options).unwrap();
        assert!(matches!(
            other.count(8 << 20, &options),
            Err(Stop::Error(EngineError::Work { .. }))
        ));
        drop(other);
        assert_eq!(left.0.load(Ordering::Relaxed), 3 << 20);
    }

    #[test]
    fn what_waits_for_its_commit_keeps_its_part() {
        let left = Arc::new(Left(AtomicU64::new(1 << 20)));
        let mut options = KeyspaceOptions::new(Sync::Never, Allotments::default());
        options.allowance = Some(Arc::clone(&left) as Arc<dyn Allowance>);
        let mut work = Work::default();
        work.count(1 << 20, &options).unwrap();
        let bounds = Bounds {
            batch: 1 << 20,
            pending: 1 << 20,
        };
        let log = Log::new(bounds, Arc::new(Pending::new(1 << 20)), 0);
        let buffer = Buffer {
            held: work.kept(),
            ..Buffer::default()
        };
        assert!(log.append(&buffer, None, 0, Noted::default(), 0).is_ok());
        drop(buffer);
        assert_eq!(left.0.load(Ordering::Relaxed), 0, "it is in the log");
        drop(log.take());
        assert_eq!(left.0.load(Ordering::Relaxed), 1 << 20, "and gone");
    }
}
