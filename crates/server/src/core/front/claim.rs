//! Memory for replies while they come.
//!
//! An engine answers as much as it is asked for, and how much that is nobody knows before. So a
//! large reply is counted in the budget of the tenant that asked, as it comes and until its
//! connection has passed it on. What does not fit is read and let go: the link is everybody's, and
//! the next reply is behind it.

use std::sync::Arc;

use engine::Allowance;

use super::link::Link;
use crate::core::Core;
use crate::tenants::{Budget, Tenant};

/// Smaller replies are not counted one by one: all that a connection may ask for at once are two
/// MiB together.
const COUNTED_BYTES: usize = 16 << 10;

/// What is held of one reply. Dropped, it gives back what it took.
#[derive(Default)]
pub(super) struct Claim {
    budget: Option<Arc<Budget>>,
    bytes: u64,
    refused: Option<Refused>,
}

/// A reply that is let go.
struct Refused {
    /// What its client is told.
    text: String,
    /// Bytes of it so far.
    bytes: usize,
}

impl Claim {
    /// Whether the reply may have so many bytes; else it is refused.
    fn grow(&mut self, bytes: u64, tenant: &Tenant) -> bool {
        let more = bytes.saturating_sub(self.bytes);
        if tenant.budget.take(more) {
            self.bytes += more;
            self.budget
                .get_or_insert_with(|| Arc::clone(&tenant.budget));
            return true;
        }
        self.refuse(format!(
            "ERR the reply is more than tenant '{}' may hold in memory ({} bytes, request_memory). The request was \
             done: read what was answered before, or ask for less at a time",
            tenant.name,
            tenant.budget.bytes_max()
        ));
        false
    }

    fn refuse(&mut self, text: String) {
        self.give_back();
        self.refused = Some(Refused { text, bytes: 0 });
    }

    /// So many bytes more were let go.
    pub(super) fn lets_go(&mut self, bytes: usize) {
        if let Some(refused) = &mut self.refused {
            refused.bytes += bytes;
        }
    }

    /// What is answered in the reply's place, and the bytes of it that were let go.
    pub(super) fn refused(&self) -> Option<(String, usize)> {
        let refused = self.refused.as_ref()?;
        Some((format!("-{}\r\n", refused.text), refused.bytes))
    }

    /// The bytes that somebody else holds from now on.
    pub(super) fn hand_over(mut self) -> u64 {
        std::mem::take(&mut self.bytes)
    }

    fn give_back(&mut self) {
        let bytes = std::mem::take(&mut self.bytes);
        if let Some(budget) = &self.budget {
            budget.give(bytes);
        }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.give_back();
    }
}

impl Core {
    /// Whether so many bytes of the reply at hand may be held.
    pub(super) fn may_hold(&mut self, link: &mut Link, bytes: usize) -> bool {
        let Some(sent) = link.sent.front_mut() else {
            return true;
        };
        if sent.claim.refused.is_some() {
            return false;
        }
        if bytes < COUNTED_BYTES {
            return true;
        }
        match self.places.get(sent.forward.key()) {
            Some(connection) => sent.claim.grow(bytes as u64, &connection.tenant),
            None => {
                sent.claim.refuse("ERR nobody waits for it".into());
                false
            }
        }
    }
}
