//! How many requests a stream sends in all.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

/// What is left of a stream's requests. Threads that play parts of one stream share it.
#[derive(Debug)]
pub struct Quota {
    unsent: AtomicU64,
    /// Neither answered nor failed, the unsent included.
    open: AtomicU64,
}

impl Quota {
    /// So many requests.
    pub fn new(requests: u64) -> Arc<Self> {
        Arc::new(Self {
            unsent: AtomicU64::new(requests),
            open: AtomicU64::new(requests),
        })
    }

    /// Takes one to be sent; false if there is none.
    pub(crate) fn take(&self) -> bool {
        let less = |left: u64| left.checked_sub(1);
        let taken = self
            .unsent
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        taken.is_ok()
    }

    /// One that was sent is answered, or has failed.
    pub(crate) fn ended(&self) {
        self.open.fetch_sub(1, Ordering::Relaxed);
    }

    /// Requests that are neither answered nor failed, of all quotas; `None`: there is no quota.
    pub(crate) fn left(quotas: &[Arc<Self>]) -> Option<u64> {
        let open = quotas.iter().map(|one| one.open.load(Ordering::Relaxed));
        (!quotas.is_empty()).then(|| open.sum())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_are_sent_whoever_sends_them() {
        let quota = Quota::new(100);
        let sent: usize = std::thread::scope(|scope| {
            let part = || (0..60).filter(|_| quota.take()).count();
            let parts: Vec<_> = (0..3).map(|_| scope.spawn(part)).collect();
            parts.into_iter().map(|one| one.join().expect("part")).sum()
        });
        assert_eq!(sent, 100);
        let quotas = [quota, Quota::new(7)];
        assert_eq!(Quota::left(&quotas), Some(107));
        (0..100).for_each(|_| quotas[0].ended());
        assert_eq!(Quota::left(&quotas), Some(7));
        assert_eq!(Quota::left(&[]), None);
    }
}
