//! Permits that cannot be lost.

use policy::dispatch::{LaneId, Ticket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// What a permit stands for, until it is settled or dropped.
#[derive(Debug)]
pub(crate) struct Claim {
    pub(crate) ticket: Ticket,
    pub(crate) class: u8,
}

/// Called when a permit was dropped, on whatever thread that happened; must not block.
pub type Wake = Box<dyn Fn() + Send + Sync>;

/// Where dropped permits go, to be found by their stage. Not on the path of a turn that ends well.
#[derive(Default)]
pub(crate) struct Returns {
    dropped: Mutex<Vec<Claim>>,
    any: AtomicBool,
    wake: Option<Wake>,
}

impl std::fmt::Debug for Returns {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Returns")
            .field("any", &self.any)
            .finish_non_exhaustive()
    }
}

impl Returns {
    pub(crate) fn new(wake: Option<Wake>) -> Self {
        Returns {
            wake,
            ..Returns::default()
        }
    }

    fn put(&self, claim: Claim) {
        // A push cannot leave the list half written, so a panic elsewhere is no reason to lose a
        // permit.
        let mut dropped = self.dropped.lock().unwrap_or_else(PoisonError::into_inner);
        dropped.push(claim);
        self.any.store(true, Ordering::Release);
        drop(dropped);
        if let Some(wake) = &self.wake {
            wake();
        }
    }

    /// Moves what has come back to `claims`; one load if nothing has.
    pub(crate) fn take(&self, claims: &mut Vec<Claim>) {
        if self.any.load(Ordering::Acquire) {
            let mut dropped = self.dropped.lock().unwrap_or_else(PoisonError::into_inner);
            self.any.store(false, Ordering::Release);
            claims.append(&mut dropped);
        }
    }
}

/// Leave to use the resource for one turn.
///
/// Give it back with [`crate::Stage::settle`], saying what was really used. If it is dropped
/// instead (the work panicked or was cancelled, on whatever thread), what was set aside is charged
/// and the permit is free again with the stage's next decision. `Send`, so it can go with the work
/// and come back.
#[derive(Debug)]
#[must_use = "dropping a permit ends the turn at its estimated cost"]
pub struct Permit {
    /// `None` only after being taken apart, which is the end of it.
    inner: Option<(Claim, Arc<Returns>)>,
}

impl Permit {
    pub(crate) fn new(claim: Claim, home: Arc<Returns>) -> Self {
        Permit {
            inner: Some((claim, home)),
        }
    }

    /// The class of the work, as given to [`crate::Stage::admit`].
    #[must_use]
    pub fn class(&self) -> u8 {
        self.inner.as_ref().map_or(0, |(claim, _)| claim.class)
    }

    /// In which of its principal's lanes the work is.
    #[must_use]
    pub fn lane(&self) -> LaneId {
        let claim = self.inner.as_ref();
        claim.map_or(LaneId::REST, |(claim, _)| claim.ticket.lane())
    }

    /// Whether the work has a due time that is kept to: its lane was in contract.
    #[must_use]
    pub fn timed(&self) -> bool {
        let claim = self.inner.as_ref();
        claim.is_some_and(|(claim, _)| claim.ticket.timed())
    }

    /// Takes it apart if it belongs to `home`; otherwise it is dropped, and so returns to its own.
    pub(crate) fn claim(mut self, home: &Arc<Returns>) -> Option<(Claim, Arc<Returns>)> {
        if !self
            .inner
            .as_ref()
            .is_some_and(|(_, own)| Arc::ptr_eq(own, home))
        {
            return None;
        }
        self.inner.take()
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if let Some((claim, home)) = self.inner.take() {
            home.put(claim);
        }
    }
}
