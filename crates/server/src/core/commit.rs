//! Replies that wait for their commits.

use std::sync::Arc;

use engine::Keyspace;
use policy::Nanos;
use resp::{Output, Reply};

use super::{Core, Used};
use crate::connection::{Connection, Ready};
use crate::tenants::{ConnectionKey, Ending, Tenant};

/// Connections that are told of a commit before others get their turns.
const TOLD_MAX: usize = 64;

impl Core {
    /// Holds the replies back if one of them tells of a write that is not committed yet.
    pub(super) fn settle_replies(&mut self, key: ConnectionKey, connection: &mut Connection) {
        if connection.uncommitted.awaits.is_some() || connection.is_kept() {
            // It is away for another reason; its return settles these replies too.
            return;
        }
        let written = connection.uncommitted.written.iter();
        let Some(seq) = written.map(|written| written.seq).max() else {
            return;
        };
        let Some(keyspace) = connection.tenant.keyspace().cloned() else {
            return;
        };
        if keyspace.await_commit(self.id, seq) {
            confirm(connection, &keyspace, self.id);
        } else {
            connection.uncommitted.awaits = Some(seq);
            self.waiting.enter(connection.tenant.id, seq, key);
        }
    }

    /// Commits of `tenant` have ended.
    pub(super) fn committed(&mut self, tenant: Arc<Tenant>, now: Nanos) {
        let Some(keyspace) = tenant.keyspace() else {
            return;
        };
        // The committer is a thread of its own; what it used of the processors was used for this
        // tenant.
        let committer_ns = keyspace.take_commit_cpu_ns();
        let cost = Used::default().cost(committer_ns);
        self.lines.requests.charge(now, tenant.id, cost);
        if !self
            .waiting
            .decided
            .iter()
            .any(|other| Arc::ptr_eq(other, &tenant))
        {
            self.waiting.decided.push_back(tenant);
        }
    }

    /// Lets go some of the connections that waited for commits; `true`: there are more.
    pub(super) fn tell_committed(&mut self, now: Nanos) -> bool {
        for _ in 0..TOLD_MAX {
            let Some(tenant) = self.waiting.decided.front().cloned() else {
                return false;
            };
            let Some(keyspace) = tenant.keyspace() else {
                self.waiting.decided.pop_front();
                continue;
            };
            if let Some(key) = self.waiting.next(tenant.id, keyspace.committed()) {
                self.ready(key, Ready::Look, now);
                // Another tenant's are next.
                self.waiting.decided.rotate_left(1);
                continue;
            }
            // It may have been decided since the look above; then nobody would tell again.
            match self.waiting.first(tenant.id) {
                Some(seq) if keyspace.await_commit(self.id, seq) => {}
                _ => {
                    self.waiting.decided.pop_front();
                }
            }
        }
        !self.waiting.decided.is_empty()
    }
}

/// The commits are decided: replies of those that failed become errors.
fn confirm(connection: &mut Connection, keyspace: &Keyspace, core: usize) {
    let written = std::mem::take(&mut connection.uncommitted.written);
    let operator = connection.tenant.operator();
    let text = |seq| Some(keyspace.commit_error(seq)?.reply(operator));
    let failed: Vec<_> = written
        .iter()
        // Of a write without a reply (`CLIENT REPLY OFF`) nothing can be said: what comes is the
        // next command's.
        .filter(|write| write.start < write.end)
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
        Reply::new(&mut output, connection.session.state.protocol).error(&text);
        let ending = Ending::of(output.since(mark));
        // The command itself was counted when it ran.
        connection.tenant.calls.count(core, None, &ending, 0);
        at = write.end;
        connection.tally.failed += 1;
    }
    output.write(&before[at..]);
    connection.output = output;
}
