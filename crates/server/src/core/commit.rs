//! Replies that wait for their commits.

use std::sync::Arc;

use engine::{Keyspace, Seq};
use policy::Nanos;

use super::message::ConnectionKey;
use super::{Core, Used};
use crate::connection::{Connection, Parked};
use crate::resp::{Output, Reply};
use crate::tenants::{Ending, Tenant};

impl Core {
    /// Holds the replies back if one of them tells of a write that is not committed yet.
    pub(super) fn settle_replies(&mut self, key: ConnectionKey, connection: &mut Connection) {
        if connection.parked.is_some() {
            // It is away for another reason; its return settles these replies too.
            return;
        }
        let Some(seq) = connection.written.iter().map(|written| written.seq).max() else {
            return;
        };
        let Some(keyspace) = connection.tenant.keyspace().cloned() else {
            return;
        };
        if keyspace.await_commit(self.id, seq) {
            confirm(connection, &keyspace, self.id);
        } else {
            connection.parked = Some(Parked::Commit(seq));
            self.waiting.enter(connection.tenant.id, seq, key);
        }
    }

    /// Commits of `tenant` have ended: lets go the connections that waited for them.
    pub(super) fn committed(&mut self, tenant: &Arc<Tenant>, now: Nanos) {
        let Some(keyspace) = tenant.keyspace().cloned() else {
            return;
        };
        // The committer is a thread of its own; what it used of the processors was used for this tenant.
        let committer_ns = keyspace.take_commit_cpu_ns();
        self.stage
            .charge(now, tenant.id, Used::default().cost(committer_ns));
        let mut now = now;
        loop {
            let committed = keyspace.committed();
            while let Some(key) = self.waiting.next(tenant.id, committed) {
                now = self.let_go(key, committed, &keyspace, now);
            }
            match self.waiting.first(tenant.id) {
                // It may have been decided since the look above; then nobody would tell again.
                Some(seq) if keyspace.await_commit(self.id, seq) => {}
                _ => return,
            }
        }
    }

    /// Answers a connection whose commit is decided. Begins at `begin`; returns when it ended.
    fn let_go(
        &mut self,
        key: ConnectionKey,
        committed: Seq,
        keyspace: &Keyspace,
        begin: Nanos,
    ) -> Nanos {
        let Some(mut connection) = self.places.lift(key) else {
            return begin;
        };
        if matches!(connection.parked, Some(Parked::Commit(seq)) if seq <= committed) {
            connection.parked = None;
            confirm(&mut connection, keyspace, self.id);
            return self.after_work(key, connection, Used::default(), begin);
        }
        self.put_back(key, connection, begin);
        begin
    }
}

/// The commits are decided: replies of those that failed become errors.
fn confirm(connection: &mut Connection, keyspace: &Keyspace, core: usize) {
    let written = std::mem::take(&mut connection.written);
    let operator = connection.tenant.operator();
    let text = |seq| Some(keyspace.commit_error(seq)?.reply(operator));
    let failed: Vec<_> = written
        .iter()
        .filter_map(|write| Some((*write, text(write.seq)?)))
        .collect();
    if failed.is_empty() {
        return;
    }
    let before = connection.output.to_vec();
    let mut output = Output::new();
    let mut at = 0;
    for (write, text) in failed {
        output.write(&before[at..write.start]);
        let mark = output.mark();
        Reply::new(&mut output, connection.session.protocol).error(&text);
        let ending = Ending::of(output.since(mark));
        // The command itself was counted when it ran.
        connection.tenant.calls.count(core, None, &ending, 0);
        at = write.end;
        connection.tally.failed += 1;
    }
    output.write(&before[at..]);
    connection.output = output;
}
