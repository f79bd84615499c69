//! How the rest of the process speaks to a core: a lock-free queue and a nudge to its poll.

use std::io;
use std::sync::atomic::{fence, AtomicBool, Ordering};
use std::sync::Arc;

use crossbeam_queue::SegQueue;
use mio::{Poll, Token, Waker};

use super::message::Message;
use crate::shared::{Cores, News};

/// Mail that can wait lies until there is this much of it: each time a core is woken costs two
/// switches between threads.
pub const TOGETHER: usize = 4;

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
    /// True while the core sleeps for a moment only: it comes without a nudge.
    dozes: AtomicBool,
    /// True once the core has ended.
    closed: AtomicBool,
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
                dozes: AtomicBool::new(false),
                closed: AtomicBool::new(false),
            }),
        })
    }

    /// Leaves a message and makes sure that the core comes to read it.
    pub fn send(&self, message: Message) {
        self.push(message);
        self.wake();
    }

    /// Leaves a message that can wait for a moment: a core that dozes is nudged once for some of
    /// them.
    pub fn send_soon(&self, message: Message) {
        self.push(message);
        // Written back as it is: whoever sees that the core dozes was here before it woke, and it
        // finds the message.
        let dozes = self.inner.dozes.fetch_and(true, Ordering::AcqRel);
        if !dozes || self.inner.queue.len() >= TOGETHER {
            self.wake();
        }
    }

    /// Has the core look around, for a message or because something has changed.
    pub(super) fn wake(&self) {
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
        self.push(message);
        Ok(())
    }

    fn push(&self, message: Message) {
        self.inner.queue.push(message);
        // Either this sees that the core has ended, or the core, which says so before it empties
        // the queue, sees the message.
        fence(Ordering::SeqCst);
        if self.inner.closed.load(Ordering::Relaxed) {
            self.empty();
        }
    }

    /// The core has ended. Nobody reads what lies here, and what comes later: it is dropped, or a
    /// thread whose way to hear an answer is in it would wait for ever.
    pub(super) fn close(&self) {
        self.inner.closed.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        self.empty();
    }

    fn empty(&self) {
        while let Some(message) = self.take() {
            drop(message);
        }
    }

    /// The core is about to sleep, for a moment at most.
    pub(super) fn doze(&self) {
        self.inner.dozes.store(true, Ordering::Release);
    }

    /// Must come before the queue is emptied, or a message sent in between would lie unread.
    pub(super) fn open(&self) {
        self.inner.nudged.store(false, Ordering::Release);
        self.inner.dozes.swap(false, Ordering::AcqRel);
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

#[cfg(test)]
mod tests {
    use super::*;
    use mio::Events;
    use std::time::Duration;

    fn nudged(poll: &mut Poll) -> bool {
        let mut events = Events::with_capacity(8);
        poll.poll(&mut events, Some(Duration::ZERO))
            .expect("a look");
        !events.is_empty()
    }

    fn news() -> Message {
        Message::News(News::Tuned)
    }

    #[test]
    fn mail_that_can_wait_wakes_a_core_that_dozes_once_there_is_some_of_it() {
        let mut poll = Poll::new().expect("a poll");
        let mailbox = Mailbox::new(&poll).expect("a mailbox");
        mailbox.doze();
        for _ in 1..TOGETHER {
            mailbox.send_soon(news());
            assert!(!nudged(&mut poll));
        }
        mailbox.send_soon(news());
        assert!(nudged(&mut poll));
        mailbox.open();
        assert_eq!(std::iter::from_fn(|| mailbox.take()).count(), TOGETHER);
    }

    #[test]
    fn nothing_lies_in_the_mailbox_of_a_core_that_has_ended() {
        let poll = Poll::new().expect("a poll");
        let mailbox = Mailbox::new(&poll).expect("a mailbox");
        mailbox.send(news());
        mailbox.close();
        assert!(mailbox.take().is_none(), "from before");
        mailbox.send(news());
        mailbox.send_soon(news());
        assert!(mailbox.send_lazily(news(), 4).is_ok());
        assert!(mailbox.take().is_none(), "from after");
    }

    #[test]
    fn a_core_that_may_sleep_for_long_is_woken_for_any_mail() {
        let mut poll = Poll::new().expect("a poll");
        let mailbox = Mailbox::new(&poll).expect("a mailbox");
        mailbox.doze();
        mailbox.open();
        mailbox.send_soon(news());
        assert!(nudged(&mut poll), "it has woken since");
        mailbox.open();
        mailbox.doze();
        mailbox.send(news());
        assert!(nudged(&mut poll), "that cannot wait");
    }
}
