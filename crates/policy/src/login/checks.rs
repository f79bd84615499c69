//! Checks of passwords: who waits for which, and which were wrong a moment ago.

use std::collections::{BTreeMap, VecDeque};

use super::line::{Entered, Line, LineOptions};
use crate::cost::Nanos;

/// What checks are held to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChecksOptions {
    /// The line.
    pub line: LineOptions,
    /// How long a wrong password is known to be wrong, ns.
    pub wrong_ns: Nanos,
    /// How many wrong passwords are known at once, >= 1; beyond, the oldest is forgotten.
    pub wrong_max: usize,
}

/// What became of a question.
#[derive(Debug, PartialEq, Eq)]
pub enum Asked<W> {
    /// Who asked waits. These do so no more, since the line was full: they asked most.
    Waits(Vec<W>),
    /// It was wrong a moment ago.
    Wrong(W),
    /// The line is full, and who asked is of those who ask most.
    Refused(W),
}

/// Questions whether a password is right. `P` is where one comes from, `T` whom it is for, `K`
/// stands for tenant and password together, `D` is what it takes to check it, `W` is who waits for
/// the answer.
#[derive(Debug)]
pub struct Checks<P, T, K, D, W> {
    options: ChecksOptions,
    line: Line<P, T, K>,
    checks: BTreeMap<K, Check<P, T, D, W>>,
    /// Until when a password is known to be wrong.
    wrong: BTreeMap<K, Nanos>,
    /// The same in the order of time.
    forget: VecDeque<(Nanos, K)>,
}

#[derive(Debug)]
struct Check<P, T, D, W> {
    tenant: T,
    /// None: it is under way.
    data: Option<D>,
    waiters: Vec<W>,
    /// The peers in whose lines it is.
    peers: Vec<P>,
}

impl<P: Ord + Copy, T: Ord + Copy, K: Ord + Copy, D, W> Checks<P, T, K, D, W> {
    /// Nobody has asked yet.
    #[must_use]
    pub fn new(options: ChecksOptions) -> Self {
        Checks {
            options,
            line: Line::new(options.line),
            checks: BTreeMap::new(),
            wrong: BTreeMap::new(),
            forget: VecDeque::new(),
        }
    }

    /// Somebody asks. Joining a check that is there already costs no place in the line, but a check
    /// in the lines of several peers is done when the first of them has its turn.
    pub fn ask(&mut self, now: Nanos, peer: P, tenant: T, key: K, data: D, waiter: W) -> Asked<W> {
        self.forget_until(now);
        if self.wrong.contains_key(&key) {
            return Asked::Wrong(waiter);
        }
        if let Some(check) = self.checks.get_mut(&key) {
            check.waiters.push(waiter);
            let in_line = check.data.is_none() || check.peers.contains(&peer);
            if in_line {
                return Asked::Waits(Vec::new());
            }
            // If this peer has no room for it, another's turn will do.
            return Asked::Waits(self.enter(peer, tenant, key).unwrap_or_default());
        }
        let check = Check {
            tenant,
            data: Some(data),
            waiters: vec![waiter],
            peers: Vec::new(),
        };
        self.checks.insert(key, check);
        match self.enter(peer, tenant, key) {
            Some(displaced) => Asked::Waits(displaced),
            None => {
                let check = self.checks.remove(&key);
                let waiter = check.and_then(|mut check| check.waiters.pop());
                waiter.map_or(Asked::Waits(Vec::new()), Asked::Refused)
            }
        }
    }

    /// Puts a check into a peer's line; gives those who wait no more for it, or nothing if there is
    /// no room.
    fn enter(&mut self, peer: P, tenant: T, key: K) -> Option<Vec<W>> {
        let entered = self.line.enter(peer, tenant, key);
        if entered == Entered::No {
            return None;
        }
        if let Some(check) = self.checks.get_mut(&key) {
            check.peers.push(peer);
        }
        Some(match entered {
            Entered::InPlaceOf(peer, _, other) => self.displace(peer, other),
            _ => Vec::new(),
        })
    }

    /// A check has lost its place in a peer's line; if that was the last, nobody waits for it any
    /// more.
    fn displace(&mut self, peer: P, key: K) -> Vec<W> {
        let Some(check) = self.checks.get_mut(&key) else {
            return Vec::new();
        };
        check.peers.retain(|other| *other != peer);
        if !check.peers.is_empty() {
            return Vec::new();
        }
        let check = self.checks.remove(&key);
        check.map_or_else(Vec::new, |check| check.waiters)
    }

    /// The next check. It is under way until [`Checks::done`].
    pub fn pop(&mut self) -> Option<(K, D)> {
        loop {
            let (_, _, key) = self.line.pop()?;
            let Some(check) = self.checks.get_mut(&key) else {
                continue;
            };
            let Some(data) = check.data.take() else {
                continue;
            };
            let (tenant, peers) = (check.tenant, std::mem::take(&mut check.peers));
            for peer in peers {
                self.line.remove(peer, tenant, key);
            }
            return Some((key, data));
        }
    }

    /// A check is over: gives those who waited for it. If the password was `wrong`, that is
    /// remembered.
    pub fn done(&mut self, now: Nanos, key: K, wrong: bool) -> Vec<W> {
        self.forget_until(now);
        if wrong {
            let until = now + self.options.wrong_ns;
            self.wrong.insert(key, until);
            self.forget.push_back((until, key));
            while self.wrong.len() > self.options.wrong_max {
                self.forget_first();
            }
        }
        let check = self.checks.remove(&key);
        check.map_or_else(Vec::new, |check| check.waiters)
    }

    /// Checks in line.
    pub fn len(&self) -> usize {
        self.line.len()
    }

    /// True if no check is in line.
    pub fn is_empty(&self) -> bool {
        self.line.is_empty()
    }

    fn forget_until(&mut self, now: Nanos) {
        while self.forget.front().is_some_and(|(until, _)| *until <= now) {
            self.forget_first();
        }
    }

    fn forget_first(&mut self) {
        if let Some((_, key)) = self.forget.pop_front() {
            self.wrong.remove(&key);
        }
    }
}
