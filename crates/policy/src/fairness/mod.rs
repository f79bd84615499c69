//! Who is next among queues with work: by fair share, by lottery or by arrival; and what a turn is
//! charged when it used several resources. The modules here know nothing of each other:
//! [`crate::dispatch`] composes them.

pub(crate) mod drf;
pub(crate) mod fifo;
pub(crate) mod lottery;
pub(crate) mod sfq;
