//! Connections that move from a busy core to an idle one ([`policy::balance`]).
//!
//! Each core adds up where all can see it how long it was awake. A core that was awake for a whole
//! interval looks at the others' sums; if it is the busiest, it offers the connections that it
//! served in the interval, and those that the policy picks move after their next turn. Nobody is
//! asked and no lock is taken.

use std::sync::atomic::Ordering;

use policy::balance::{BalanceOptions, Balancer, CoreLoad, Movable};
use policy::Nanos;

use super::Core;
use crate::connection::Served;
use crate::shared::Load;
use crate::tenants::ConnectionKey;

/// How often a core that is awake compares itself with the others.
const INTERVAL_NS: Nanos = 100_000_000;

/// One core's side of the balance.
pub struct Balance {
    balancer: Balancer,
    /// Counts from 1, so that a new connection was served in none.
    interval: u64,
    began: Nanos,
    /// Every core's time awake when the interval began.
    awake_ns: Vec<u64>,
    /// Since when this core is awake.
    awake_since: Nanos,
    /// Who was served in this interval.
    active: Vec<ConnectionKey>,
    turns: u64,
    turns_ns: Nanos,
}

impl Balance {
    /// A balance among this many cores, from `now` on.
    pub fn new(cores: usize, now: Nanos) -> Self {
        Self {
            balancer: Balancer::new(BalanceOptions::default()),
            interval: 1,
            began: now,
            awake_ns: vec![0; cores],
            awake_since: now,
            active: Vec::new(),
            turns: 0,
            turns_ns: 0,
        }
    }

    /// A connection has had a turn.
    pub fn served(&mut self, key: ConnectionKey, served: &mut Served, turn_ns: Nanos) {
        if served.interval != self.interval {
            *served = Served {
                interval: self.interval,
                ns: 0,
            };
            self.active.push(key);
        }
        served.ns += turn_ns;
        self.turns += 1;
        self.turns_ns += turn_ns;
    }

    /// A connection has come to this core, and stays for a while.
    pub fn rests(&mut self, key: ConnectionKey) {
        self.balancer.rests(key.packed());
    }

    /// The core goes to its poll with this much queued: shows its load.
    pub fn sleeps(&mut self, load: &Load, now: Nanos, queued: u64) {
        let backlog_ns = queued.saturating_mul(self.turns_ns / self.turns.max(1));
        load.show(now - self.awake_since, backlog_ns);
    }

    /// The core is back from its poll.
    pub fn wakes(&mut self, now: Nanos) {
        self.awake_since = now;
    }

    /// What every core did in the interval and how long that was, once it is over. `None` also
    /// after a longer sleep: what the others did meanwhile is no interval's work.
    fn interval_over(&mut self, loads: &[Load], now: Nanos) -> Option<(Nanos, Vec<CoreLoad>)> {
        let passed = now.saturating_sub(self.began);
        if passed < INTERVAL_NS {
            return None;
        }
        self.began = now;
        let cores = self.awake_ns.iter_mut().zip(loads).map(|(before, load)| {
            let awake_ns = load.awake_ns();
            CoreLoad {
                busy_ns: awake_ns - std::mem::replace(before, awake_ns),
                backlog_ns: load.backlog_ns(),
            }
        });
        let cores = cores.collect();
        (passed < 2 * INTERVAL_NS).then_some((passed, cores))
    }

    fn begin_interval(&mut self) {
        self.interval += 1;
        self.active.clear();
        self.turns = 0;
        self.turns_ns = 0;
    }
}

impl Core {
    /// Once an interval: picks connections that belong on another core.
    pub(super) fn rebalance(&mut self, now: Nanos) {
        let Some((interval_ns, cores)) = self.balance.interval_over(&self.shared.loads, now) else {
            return;
        };
        let busiest = cores.iter().map(|core| core.busy_ns).max();
        // The others' connections are theirs to move.
        let movable = match busiest == Some(cores[self.id].busy_ns) {
            true => self.movable(),
            false => Vec::new(),
        };
        self.balance.begin_interval();
        let decision = self.balance.balancer.step(interval_ns, &cores, &movable);
        for chosen in &decision.moves {
            let key = ConnectionKey::unpacked(chosen.id);
            if let Some(mut connection) = self.places.lift(key) {
                connection.moves_to = Some(chosen.to);
                self.places.back(key, connection);
                self.shared.counters.moved.fetch_add(1, Ordering::Relaxed);
            }
        }
        if !decision.moves.is_empty() {
            tracing::debug!(core = self.id, ?decision, "connections move");
        }
    }

    fn movable(&mut self) -> Vec<Movable> {
        let mut movable = Vec::with_capacity(self.balance.active.len());
        for key in std::mem::take(&mut self.balance.active) {
            let Some(connection) = self.places.lift(key) else {
                continue;
            };
            if connection.moves_to.is_none() {
                movable.push(Movable {
                    id: key.packed(),
                    core: self.id,
                    load_ns: connection.served.ns,
                });
            }
            self.places.back(key, connection);
        }
        movable
    }
}
