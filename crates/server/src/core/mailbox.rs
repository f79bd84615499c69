//! How the rest of the process speaks to a core: a lock-free queue and a nudge to its poll.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

use crossbeam_queue::SegQueue;
use mio::{Poll, Token, Waker};

use super::message::Message;
use crate::shared::{Cores, News};

/// The poll token under which a core is nudged; connections never get it.
pub const NUDGE: Token = Token(usize::MAX);

/// The sending half; any thread may hold it.
#[derive(Clone)]
pub struct Mailbox {
    inner: Arc<Inner>,
}

struct Inner {
    queue: SegQueue<Message>,
    waker: Waker,
    /// True while a nudge is on its way: a burst of messages costs one system call.
    nudged: AtomicBool,
}

impl Mailbox {
    /// A mailbox that nudges `poll`.
    ///
    /// # Errors
    /// The kernel has no descriptor to spare.
    pub fn new(poll: &Poll) -> io::Result<Self> {
        Ok(Self {
            inner: Arc::new(Inner {
                queue: SegQueue::new(),
                waker: Waker::new(poll.registry(), NUDGE)?,
                nudged: AtomicBool::new(false),
            }),
        })
    }

    /// Leaves a message and makes sure that the core comes to read it.
    pub fn send(&self, message: Message) {
        self.inner.queue.push(message);
        if !self.inner.nudged.swap(true, Ordering::AcqRel) {
            // The only failure is a closed poll: the core has stopped and reads nothing any more.
            let _ = self.inner.waker.wake();
        }
    }

    /// Leaves a message that can wait until the core wakes for another reason.
    ///
    /// Returns the message if `limit` of them lie unread: an idle core must not pile up mail.
    pub fn send_lazily(&self, message: Message, limit: usize) -> Result<(), Message> {
        if self.inner.queue.len() >= limit {
            return Err(message);
        }
        self.inner.queue.push(message);
        Ok(())
    }

    /// Must come before the queue is emptied, or a message sent in between would lie unread.
    pub(super) fn open(&self) {
        self.inner.nudged.store(false, Ordering::Release);
    }

    /// Takes the oldest message.
    pub(super) fn take(&self) -> Option<Message> {
        self.inner.queue.pop()
    }
}

/// The mailboxes of all cores.
impl Cores for Arc<[Mailbox]> {
    fn tell(&self, core: usize, news: News) {
        self[core].send(Message::News(news));
    }
}
