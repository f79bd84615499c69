//! Requests that take long to free.
//!
//! The last reference to a large request may end anywhere: with a reply that the core has sent,
//! with an error, with a connection. Memory of many MiB may go back to the system as it is freed,
//! which took a core 9 ms for 128 MiB. So it is always freed by a handler, and charged to whoever
//! had sent it.

use bytes::{Bytes, BytesMut};
use policy::PrincipalId;

use super::message::Message;
use super::turn::COPIED_MAX;
use super::work::Stopwatch;
use super::Core;
use crate::tenants::Tenant;

/// Hands on what is to be freed elsewhere.
type Elsewhere = Box<dyn Fn(BytesMut) + Send + Sync>;

/// A large request's memory, which nothing else is in.
struct Large {
    memory: BytesMut,
    elsewhere: Elsewhere,
}

impl AsRef<[u8]> for Large {
    fn as_ref(&self) -> &[u8] {
        &self.memory
    }
}

impl Drop for Large {
    fn drop(&mut self) {
        (self.elsewhere)(std::mem::take(&mut self.memory));
    }
}

impl Core {
    /// `memory` as bytes that are shared. However they are dropped, no core frees them if that
    /// takes long.
    pub(super) fn share(&self, memory: BytesMut, tenant: &Tenant) -> Bytes {
        if memory.capacity() <= COPIED_MAX {
            return memory.freeze();
        }
        let elsewhere = self.elsewhere(tenant.id);
        Bytes::from_owner(Large { memory, elsewhere })
    }

    /// Frees `memory`, which is of a tenant's request; elsewhere if it takes long.
    pub(super) fn free(&self, memory: BytesMut, tenant: &Tenant) {
        if memory.capacity() > COPIED_MAX {
            self.elsewhere(tenant.id)(memory);
        }
    }

    /// It goes round the handler stage: the tenant's budget has it back already, so it must not
    /// wait behind whatever else the tenant has in line. It takes a tenth of the time in which the
    /// request was received.
    fn elsewhere(&self, principal: PrincipalId) -> Elsewhere {
        let (shared, mailbox) = (std::sync::Arc::clone(&self.shared), self.mailbox().clone());
        Box::new(move |memory| {
            let (inner, mailbox) = (std::sync::Arc::clone(&shared), mailbox.clone());
            shared.engine.handlers().submit(Box::new(move || {
                let watch = Stopwatch::start(&inner);
                drop(memory);
                mailbox.send(Message::Spent(principal, watch.read(&inner).cpu_ns));
            }));
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn the_last_reference_hands_the_memory_on_whole() {
        let (sender, handed_on) = channel();
        let elsewhere: Elsewhere = Box::new(move |memory| {
            let _ = sender.send(memory.len());
        });
        let memory = BytesMut::from(&b"a word of a request"[..]);
        let shared = Bytes::from_owner(Large { memory, elsewhere });
        let word = shared.slice(2..6);
        drop(shared);
        assert!(
            handed_on.try_recv().is_err(),
            "a reply has a part of it still"
        );
        assert_eq!(&word[..], b"word");
        drop(word);
        assert_eq!(handed_on.try_recv(), Ok(19));
    }
}
