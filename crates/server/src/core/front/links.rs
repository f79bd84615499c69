//! A core's links to one node: one that all tenants share, and some more, each of which one tenant
//! has for itself while it moves something large.
//!
//! Replies come in the order of requests, so what is behind a large value on a link waits for all
//! of it. Who has moved something large of late ([`super::sizes`]) goes by a link of its own. A
//! large reply that nobody foresaw keeps the link on which it begins, and from then on another one
//! is shared. All requests of a connection that are out at a node go by the same link: so they are
//! done in their order. A request that waits at the node until something comes has a link to
//! itself as long: nothing behind it would be answered. So has a connection for which the node
//! watches keys, from `WATCH` to `EXEC`. A script goes by a link on which the node takes the
//! tenant's rights for its own.

use front::ScriptUser;
use policy::{Nanos, PrincipalId};
use resp::Protocol;

use super::link::Link;
use super::sizes::Whose;
use crate::tenants::ConnectionKey;

/// Links of one core to one node, for one protocol: so many less one tenants do not wait for each
/// other's large values.
pub(super) const LINKS_MAX: usize = 8;

/// So many numbers are kept for the links of one core to one node, for one protocol.
const NUMBERS: usize = 1 << 20;

/// From this one on they are those of scripts.
const SCRIPTS: usize = 1 << 19;

/// Tenants that have scripts out on one core at one node at a time, for one protocol.
const SCRIPT_LINKS_MAX: usize = 64;

/// A link that nobody has used for so long is closed.
const IDLE_NS: Nanos = 60_000_000_000;

/// After a link was refused while others are open, none is opened for so long: the engine has as
/// many clients as it may have.
const REFUSED_NS: Nanos = 10_000_000_000;

/// One of a core's links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LinkId {
    /// The place of its node.
    pub(super) place: usize,
    pub(super) protocol: Protocol,
    /// Which of those to this node; from [`LINKS_MAX`] on those that somebody has to himself, and
    /// from [`SCRIPTS`] on those of scripts.
    pub(super) index: usize,
}

impl LinkId {
    /// All links have numbers.
    fn number(self) -> usize {
        let protocol = usize::from(self.protocol == Protocol::Resp3);
        (2 * self.place + protocol) * NUMBERS + self.index
    }

    pub(super) fn of(number: usize) -> Self {
        let (links, index) = (number / NUMBERS, number % NUMBERS);
        Self {
            place: links / 2,
            protocol: [Protocol::Resp2, Protocol::Resp3][links % 2],
            index,
        }
    }
}

/// Those to one node, for one protocol.
pub(super) struct Links {
    place: usize,
    protocol: Protocol,
    /// It is a replica that is read from.
    reads: bool,
    links: Vec<Link>,
    /// Those that somebody has to himself.
    alone: Vec<Link>,
    /// Which of these nobody uses; the one that was used last comes last.
    unused: Vec<usize>,
    /// Those by which scripts go, each as one tenant's user.
    scripts: Vec<Link>,
    /// The one that all share.
    shared: usize,
    /// None is opened before, but the one that is shared.
    opens_from: Nanos,
}

impl Links {
    pub(super) fn new(place: usize, protocol: Protocol, reads: bool) -> Self {
        let mut links = Self {
            place,
            protocol,
            reads,
            links: Vec::new(),
            alone: Vec::new(),
            unused: Vec::new(),
            scripts: Vec::new(),
            shared: 0,
            opens_from: 0,
        };
        links.add();
        links
    }

    fn add(&mut self) -> usize {
        let index = self.links.len();
        self.links.push(self.made(index));
        index
    }

    fn made(&self, index: usize) -> Link {
        let id = LinkId {
            place: self.place,
            protocol: self.protocol,
            index,
        };
        Link::new(self.protocol, self.reads, id.number())
    }

    /// Which there are, open or not.
    pub(super) fn all(&self) -> impl Iterator<Item = usize> {
        let alone = (LINKS_MAX..).take(self.alone.len());
        let scripts = (SCRIPTS..).take(self.scripts.len());
        (0..self.links.len()).chain(alone).chain(scripts)
    }

    /// What the wire takes to the node and back, if a link knows, ns.
    pub(super) fn round_trip_ns(&self) -> Option<Nanos> {
        self.links.iter().find_map(Link::round_trip_ns)
    }

    pub(super) fn has(&self, index: usize) -> bool {
        match (index.checked_sub(SCRIPTS), index.checked_sub(LINKS_MAX)) {
            (Some(script), _) => script < self.scripts.len(),
            (_, Some(alone)) => alone < self.alone.len(),
            (_, None) => index < self.links.len(),
        }
    }

    pub(super) fn get(&mut self, index: usize) -> &mut Link {
        match (index.checked_sub(SCRIPTS), index.checked_sub(LINKS_MAX)) {
            (Some(script), _) => &mut self.scripts[script],
            (_, Some(alone)) => &mut self.alone[alone],
            (_, None) => &mut self.links[index],
        }
    }

    /// A link for somebody alone. Nobody else uses it until it was given back.
    pub(super) fn for_one(&mut self) -> usize {
        self.unused.pop().unwrap_or_else(|| {
            let index = LINKS_MAX + self.alone.len();
            self.alone.push(self.made(index));
            index
        })
    }

    /// Who had a link to himself needs it no more.
    pub(super) fn give_back(&mut self, index: usize) {
        if (LINKS_MAX..SCRIPTS).contains(&index) {
            let link = self.get(index);
            link.watches_for = None;
            if link.ends {
                link.close();
            }
            self.unused.push(index);
        }
    }

    /// The same, and the node is to know nothing more of what went by it.
    pub(super) fn end(&mut self, index: usize) {
        self.get(index).close();
        self.give_back(index);
    }

    /// The link by which a tenant's scripts go; while it is down it becomes that of `user`. None:
    /// as many tenants as may have scripts out.
    pub(super) fn for_script(
        &mut self,
        tenant: PrincipalId,
        user: impl FnOnce() -> ScriptUser,
    ) -> Option<usize> {
        let its = |link: &Link| link.acts_for() == Some(tenant);
        let found = self.scripts.iter().position(its).or_else(|| {
            if self.scripts.len() < SCRIPT_LINKS_MAX {
                self.scripts.push(self.made(SCRIPTS + self.scripts.len()));
                return Some(self.scripts.len() - 1);
            }
            // Somebody else's, who has nothing out.
            self.scripts.iter().position(|link| link.sent.is_empty())
        })?;
        self.scripts[found].act_for(tenant, user);
        Some(SCRIPTS + found)
    }

    /// Who has scripts out.
    pub(super) fn script_tenants(&self) -> impl Iterator<Item = PrincipalId> + '_ {
        let out = self.scripts.iter().filter(|link| !link.sent.is_empty());
        out.filter_map(Link::acts_for)
    }

    /// Who the engine is to let go for a connection whose request waits on a link, which ends with
    /// that; none: it is not there.
    pub(super) fn let_go(&mut self, index: usize, key: ConnectionKey) -> Option<i64> {
        let link = self.get(index);
        let first = link.sent.front().filter(|first| first.forward.key == key);
        let id = first.and(link.client_id).filter(|_| link.is_open())?;
        link.ends = true;
        Some(id)
    }

    /// A connection has gone whose request waits on a link: the node hears of it.
    pub(super) fn wait_no_more(&mut self, index: usize, key: ConnectionKey) {
        let first = self.get(index).sent.front();
        if first.is_some_and(|first| first.forward.key == key) {
            self.end(index);
        }
    }

    /// The link by which a connection begins to send, of which nothing is out: one that is its own,
    /// if it says whose.
    pub(super) fn choose(&mut self, own: Option<Whose>, now: Nanos) -> usize {
        let Some(whose) = own else {
            return self.shared;
        };
        let has = |index: &usize| {
            let link = &self.links[*index];
            link.whose == Some(whose) && !link.sent.is_empty()
        };
        let index = self.apart().find(has);
        if let Some(index) = index.or_else(|| self.free(now)) {
            self.links[index].whose = Some(whose);
            return index;
        }
        // As many as may be have large values: two of them share.
        let open = self.apart().filter(|index| self.links[*index].is_open());
        let least = open.min_by_key(|index| self.links[*index].sent.len());
        least.unwrap_or(self.shared)
    }

    /// All but the one that is shared.
    fn apart(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.links.len()).filter(|index| *index != self.shared)
    }

    /// A link that nobody uses, and that is not shared; none: there are as many as may be.
    fn free(&mut self, now: Nanos) -> Option<usize> {
        let opens = now >= self.opens_from;
        let unused = self.apart().filter(|index| {
            let link = &self.links[*index];
            link.sent.is_empty() && (opens || link.is_open())
        });
        // One that need not be opened first.
        let found = unused.max_by_key(|index| self.links[*index].is_open());
        found.or_else(|| (opens && self.links.len() < LINKS_MAX).then(|| self.add()))
    }

    /// A large reply of `whose` begins on a link. True: it was shared, and another is from now on.
    pub(super) fn set_apart(&mut self, index: usize, whose: Whose, now: Nanos) -> bool {
        if index != self.shared {
            return false;
        }
        let Some(other) = self.free(now) else {
            return false;
        };
        self.links[other].whose = None;
        self.links[index].whose = Some(whose);
        self.shared = other;
        true
    }

    /// A link could not be opened. If others are open, what is to come goes by them.
    pub(super) fn refused(&mut self, index: usize, now: Nanos) {
        if index >= SCRIPTS {
            // That may be about its user.
            return;
        }
        let open = (0..self.links.len()).filter(|index| self.links[*index].is_open());
        let least = open.min_by_key(|index| self.links[*index].sent.len());
        if let Some(least) = least {
            self.opens_from = now + REFUSED_NS;
            if index == self.shared {
                self.links[least].whose = None;
                self.shared = least;
            }
        }
    }

    /// The link on which something of a connection is out.
    pub(super) fn with(&self, key: ConnectionKey) -> Option<usize> {
        let is = |link: &Link| link.sent.iter().any(|sent| sent.forward.key == key);
        self.links.iter().position(is)
    }

    /// Closes those that nobody uses any more.
    pub(super) fn close_idle(&mut self, now: Nanos) {
        let shared = self.shared;
        let unshared = (self.links.iter_mut().enumerate())
            .filter(|(index, _)| *index != shared)
            .map(|(_, link)| link);
        let apart = self.alone.iter_mut().chain(&mut self.scripts);
        for link in unshared.chain(apart) {
            if link.is_idle(now, IDLE_NS) {
                link.close();
            }
        }
    }

    /// How many are open, and how many of those have somebody's large values.
    pub(super) fn open(&self) -> [u64; 2] {
        let (mut open, mut apart) = (0, 0);
        for (index, link) in self.links.iter().enumerate() {
            open += u64::from(link.is_open());
            apart += u64::from(index != self.shared && !link.sent.is_empty());
        }
        let others = self.alone.iter().chain(&self.scripts);
        open += others.filter(|link| link.is_open()).count() as u64;
        [open, apart]
    }
}
