//! Replicas of a cluster's masters, and how far behind each is known to be.

use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;

use parking_lot::RwLock;
use policy::replica::Standing;
use policy::Nanos;
use telemetry::EngineReplicas;

/// One replica of one master. If it becomes another's, it is another.
#[derive(Debug)]
pub struct Replica {
    /// `host:port`, as the cluster calls it.
    pub node: String,
    /// That of its master.
    pub master: String,
    /// Where it is.
    pub at: SocketAddr,
    as_of: AtomicU64,
    looked_at: AtomicU64,
}

impl Replica {
    /// What is known of it.
    #[inline]
    pub fn standing(&self) -> Standing {
        Standing {
            as_of: self.as_of.load(Ordering::Acquire),
            looked_at: self.looked_at.load(Ordering::Acquire),
        }
    }

    /// It has what was answered before then; 0: that is not known.
    pub fn set_as_of(&self, as_of: Nanos) {
        self.as_of.store(as_of, Ordering::Release);
    }

    /// Its master was asked then, and has answered.
    pub fn set_looked_at(&self, at: Nanos) {
        self.looked_at.store(at, Ordering::Release);
    }
}

/// Those of a look: what is known of them is kept from look to look.
pub type Replicas = Arc<[Arc<Replica>]>;

/// The replicas that were found. One whose name has no address is left out: its master is there.
pub fn follow(found: Vec<front::Replica>, before: Option<&Replicas>) -> Replicas {
    let known = |one: &front::Replica, at| {
        let mut before = before.into_iter().flat_map(|before| before.iter());
        let same =
            |old: &&Arc<Replica>| old.node == one.node && old.master == one.master && old.at == at;
        before.find(same).cloned()
    };
    let all = found.into_iter().filter_map(|one| {
        let at = one.node.to_socket_addrs().ok()?.next()?;
        Some(known(&one, at).unwrap_or_else(|| {
            Arc::new(Replica {
                node: one.node,
                master: one.master,
                at,
                as_of: AtomicU64::new(0),
                looked_at: AtomicU64::new(0),
            })
        }))
    });
    all.collect()
}

/// Whether these are the same.
pub fn same(one: &Replicas, other: &Replicas) -> bool {
    one.len() == other.len() && (one.iter().zip(other.iter())).all(|(a, b)| Arc::ptr_eq(a, b))
}

/// Reading from replicas, as all threads see it.
#[derive(Default)]
pub struct Reading {
    /// Some tenant's reads go there.
    wanted: AtomicBool,
    /// Requests that were sent there.
    sent: AtomicU64,
    /// That there is none was said.
    warned: AtomicBool,
    all: RwLock<Option<Replicas>>,
}

impl Reading {
    /// Whether some tenant's reads go there.
    pub fn wanted(&self) -> bool {
        self.wanted.load(Ordering::Acquire)
    }

    /// A core has sent so many requests there.
    pub fn count(&self, sent: u64) {
        self.sent.fetch_add(sent, Ordering::Relaxed);
    }

    /// Tenants want them, or none does. True: that is new. Says so if there is none to read from.
    pub fn want(&self, wanted: bool, replicas: &Replicas) -> bool {
        let lacks = wanted && replicas.is_empty();
        if lacks && !self.warned.load(Ordering::Relaxed) {
            tracing::warn!(
                "tenants have reads = \"replica\", but no node of the cluster has a replica that is there: \
                 masters are read from"
            );
        }
        self.warned.store(lacks, Ordering::Relaxed);
        *self.all.write() = wanted.then(|| Arc::clone(replicas));
        self.wanted.swap(wanted, Ordering::AcqRel) != wanted
    }

    /// As it is shown.
    pub fn read(&self, now: Nanos) -> EngineReplicas {
        let all = self.all.read();
        let all = all.iter().flat_map(|all| all.iter());
        let lags: Vec<Option<Nanos>> = all.map(|one| one.standing().lag_ns(now)).collect();
        EngineReplicas {
            known: lags.iter().flatten().count() as u64,
            unknown: lags.iter().filter(|lag| lag.is_none()).count() as u64,
            lag_ms: lags.iter().flatten().max().map_or(0, |lag| lag / 1_000_000),
            reads: self.sent.load(Ordering::Relaxed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(names: &[(&str, &str)]) -> Vec<front::Replica> {
        let of = |(node, master): &(&str, &str)| front::Replica {
            node: (*node).into(),
            master: (*master).into(),
        };
        names.iter().map(of).collect()
    }

    #[test]
    fn what_is_known_of_a_replica_is_kept_while_it_has_the_same_master() {
        let first = follow(
            found(&[("127.0.0.1:1", "m:1"), ("127.0.0.1:2", "m:2")]),
            None,
        );
        first.iter().for_each(|one| one.set_as_of(7));
        let again = follow(
            found(&[("127.0.0.1:1", "m:1"), ("127.0.0.1:2", "m:2")]),
            Some(&first),
        );
        assert!(same(&first, &again));
        let moved = follow(
            found(&[("127.0.0.1:1", "m:1"), ("127.0.0.1:2", "m:1")]),
            Some(&first),
        );
        assert!(!same(&first, &moved));
        let as_of: Vec<Nanos> = moved.iter().map(|one| one.standing().as_of).collect();
        assert_eq!(as_of, [7, 0]);
        let reading = Reading::default();
        assert!(reading.want(true, &moved) && !reading.want(true, &moved));
        reading.count(3);
        let shown = reading.read(9_000_007);
        assert_eq!(
            (shown.known, shown.unknown, shown.lag_ms, shown.reads),
            (1, 1, 9, 3)
        );
        assert!(reading.want(false, &moved) && !reading.wanted());
        assert_eq!(reading.read(9_000_007).known, 0);
    }
}
