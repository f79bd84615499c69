//! `MULTI`, `DISCARD`, `UNWATCH`. The core runs `EXEC` and `WATCH`, which need the keyspace.

use super::{Transaction, Visit};

/// `MULTI`
pub fn multi(visit: &mut Visit<'_>) {
    if visit.connection.session.transaction.is_some() {
        return visit.error("ERR MULTI calls can not be nested");
    }
    visit.connection.session.transaction = Some(Box::new(Transaction::default()));
    visit.connection.client.queued(Some(0));
    visit.reply().ok();
}

/// `DISCARD`
pub fn discard(visit: &mut Visit<'_>) {
    if visit.connection.session.transaction.take().is_none() {
        return visit.error("ERR DISCARD without MULTI");
    }
    visit.connection.client.queued(None);
    visit.connection.session.watches.clear();
    visit.reply().ok();
}

/// `UNWATCH`
pub fn unwatch(visit: &mut Visit<'_>) {
    visit.connection.session.watches.clear();
    visit.reply().ok();
}
