//! Why a request was late: behind whom it waited for its turns.

use policy::{Nanos, PrincipalId};

use super::principal::Noticed;
use super::Core;
use crate::connection::{Connection, Wait};
use crate::slo::{Behind, Delays, Line, Slow, Trail};

/// Who had this core and its handlers, of late.
#[derive(Default)]
pub struct Trails {
    /// The core itself.
    pub core: Trail,
    /// Its part of the handlers.
    pub handlers: Trail,
    /// Whose requests were explained since `since`.
    explained: Vec<PrincipalId>,
    since: Nanos,
}

/// When very many are late, so many are looked at each time: each takes some microseconds, and a
/// tenth of a millisecond if it waited often and long, which nobody is charged for.
const EXPLAINED_MAX: usize = 20;
/// The last so many of these are for those of whose requests none has been looked at this time: who
/// is late all the time would leave nothing to who is late now and then, because of him.
const KEPT_FOR_OTHERS: usize = 10;
/// Such a time.
const EVERY_NS: Nanos = 100_000_000;

impl Trails {
    /// Whether there is time to look at one more, of this one.
    fn may_explain(&mut self, whose: PrincipalId, now: Nanos) -> bool {
        if now.saturating_sub(self.since) >= EVERY_NS {
            self.explained.clear();
            self.since = now;
        }
        let kept = match self.explained.contains(&whose) {
            true => KEPT_FOR_OTHERS,
            false => 0,
        };
        let may = self.explained.len() < EXPLAINED_MAX - kept;
        if may {
            self.explained.push(whose);
        }
        may
    }
}

impl Core {
    /// Finds out why requests were late, and remembers it with their promises and their tenant.
    pub(super) fn explain(&mut self, connection: &Connection, noticed: &Noticed, now: Nanos) {
        if !self.trails.may_explain(connection.tenant.id, now) {
            return;
        }
        let behind = self.delays(&noticed.tally.waits);
        for (meter, count) in &noticed.late {
            let mut lately = meter.lately.lock();
            lately.count(now, &noticed.parts, &behind, *count);
        }
        if noticed.slow {
            let tenant = &connection.tenant;
            tenant
                .slowest
                .take(self.slow(connection, noticed, behind, now));
        }
    }

    fn slow(&self, connection: &Connection, of: &Noticed, behind: Delays, now: Nanos) -> Slow {
        let (client, labels) = (&connection.client, connection.client.labels());
        let workload = self.principals.workload(connection);
        let answered = &of.tally.answered;
        Slow {
            at: now,
            unix_s: self.now_ms / 1_000,
            latency_ns: of.latency_ns,
            class: answered[0].class,
            workload,
            command: client.last_command(),
            client: match labels.name.is_empty() {
                true => client.addr.to_string(),
                false => labels.name,
            },
            requests: answered.iter().map(|all| all.count).sum(),
            parts: of.parts,
            behind,
        }
    }

    /// Behind whom requests with these waits waited.
    fn delays(&self, waits: &[Wait]) -> Delays {
        let mut delays = Delays::new();
        for wait in waits {
            let named = match wait.line {
                Line::Core => self.named(self.trails.core.behind(wait.from, wait.until)),
                Line::Handler => self.named(self.trails.handlers.behind(wait.from, wait.until)),
                Line::Device => {
                    let disk = &self.shared.options.disk;
                    disk.behind(wait.drive, wait.from, wait.until)
                }
            };
            for (name, ns) in named {
                *delays.entry((wait.line, name)).or_default() += ns;
            }
        }
        delays
    }

    fn named(&self, behind: Behind) -> Vec<(String, Nanos)> {
        let name = |who| self.principals.name(PrincipalId(who));
        let each = behind.into_iter();
        each.filter_map(|(who, ns)| Some((name(who)?, ns)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_whose_requests_are_all_late_leaves_some_looks_to_others() {
        let mut trails = Trails::default();
        let mut looks = |who: u32, now| {
            (0..100)
                .filter(|_| trails.may_explain(PrincipalId(who), now))
                .count()
        };
        assert_eq!(looks(1, EVERY_NS), 10);
        assert_eq!(looks(2, EVERY_NS + 1), 1);
        assert_eq!(
            (3..100).map(|who| looks(who, EVERY_NS + 2)).sum::<usize>(),
            9
        );
        assert_eq!(looks(1, 2 * EVERY_NS), 10, "another time");
    }
}
