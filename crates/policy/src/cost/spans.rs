//! What each of several requests took of a server that shows only when some of them were done.
//!
//! Before somebody else's engine that is all there is: of replies that come together it is known
//! how long they took together. To divide that time among them, each time anew, is not fair: what a
//! reading costs besides (a wake-up, the engine's turn of its loop, its wait for a processor) is
//! divided by how many replies it brought, and who is answered among many pays less for each
//! request than who is answered among few. At an engine that is short of its processor that was
//! 130 to 300 us for the same command, and 190 to 230 where it was full. Whoever is charged less is
//! sent on sooner, and is among many again.
//!
//! So requests are charged a price: what the server took for a unit of weight of late. What a group
//! costs besides is told apart by regression, and without it the same is known of each tenant: one
//! whose requests took four times as much as those of all, or a tenth, pays as much more or less.
//! What is within is not told apart: of equal tenants .3 to 1.8 were seen, for replies of one turn
//! of the engine may come in two readings, of which the second took no time. Prices follow what was
//! seen, so that over time as much is charged as was taken. What was out of all proportion is
//! divided at once.
//!
//! What an engine does in a turn of its loop it answers at the end of that, one connection after
//! the other. What is read first came after all of that time, and the rest after none. A tenant of
//! few requests, which goes by a connection of its own, would be first again and again, and be
//! taken for dear: one was charged ten times its part, had a tenth of its requests let through for
//! it, and so stayed rare. So what comes at once behind the last reply belongs to the same group,
//! and what is known of a tenant fades with the replies of all.

use super::{Nanos, PrincipalId};
use std::ops::RangeInclusive;

/// The price of all goes back over so many replies, twice as many at most. It must not follow from
/// one group to the next, or it would be dear again where groups are small.
const REPLIES: u32 = 16_384;
/// And that of a tenant, for who begins to ask for more is to pay for it soon. Of who is seldom
/// seen, half is forgotten while [`REPLIES`] of all come.
const REPLIES_OWN: u32 = 2_048;
/// Replies that come no longer than this after the last were made in the same turn of the engine:
/// it takes so long to write a few, and its reader to wake up.
const TOGETHER_NS: f64 = 50_000.0;
/// But no more of them than this: an engine that is as quick for each of its turns has many.
const TOGETHER: usize = 256;
/// Before so many nobody knows what is out of proportion.
const SEEN: u32 = 512;
/// Between these parts of what those of all others took, a tenant's requests cost what theirs do.
/// Whoever seems to be cheap by chance has more than his share, at everybody's expense, and chance
/// alone was seen to come down to .3.
const ALIKE: RangeInclusive<f64> = 0.1..=4.0;
/// And before so many replies nobody knows.
const KNOWN: u32 = 32;
/// Nobody pays less than this part of the price.
const LEAST: f64 = 0.01;
/// A group that took so many times what it is charged, and so many times what groups take, and
/// longer than that, had something in it that no price tells of. What is shorter may as well be the
/// server's: it waits for a processor, forks, or waits for a disk.
const BEYOND: f64 = 8.0;
const BEYOND_NS: f64 = 100_000_000.0;

/// What was taken for how much weight, of late.
#[derive(Clone, Copy, Debug, Default)]
struct Price {
    ns: f64,
    weight: f64,
    replies: u32,
}

impl Price {
    fn add(&mut self, ns: f64, weight: f64, replies: u32, back: u32) {
        if self.replies >= 2 * back {
            self.fade();
        }
        self.ns += ns;
        self.weight += weight;
        self.replies = self.replies.saturating_add(replies);
    }

    /// Half of it is forgotten.
    fn fade(&mut self) {
        self.ns /= 2.0;
        self.weight /= 2.0;
        self.replies /= 2;
    }

    /// For a unit of weight.
    fn each(&self) -> f64 {
        match self.weight > 0.0 {
            true => self.ns / self.weight,
            false => 0.0,
        }
    }
}

/// What is known of one tenant.
#[derive(Clone, Copy, Debug, Default)]
struct Own {
    price: Price,
    /// After so many replies of all half of it was forgotten last.
    faded: u64,
}

impl Own {
    /// As it is known after so many replies of all.
    fn after(mut self, replies: u64) -> Self {
        let times = (replies - self.faded) / u64::from(REPLIES);
        self.faded += times * u64::from(REPLIES);
        (0..times.min(u64::from(u32::BITS))).for_each(|_| self.price.fade());
        self
    }
}

/// Replies that came at once, one after the other.
#[derive(Clone, Debug, Default)]
struct Group {
    members: Vec<Member>,
    weight: f64,
    ns: f64,
}

/// Groups of late: their weights and times, for a line through them.
#[derive(Clone, Copy, Debug, Default)]
struct Line {
    replies: u32,
    groups: f64,
    weight: f64,
    ns: f64,
    weight_squared: f64,
    product: f64,
}

impl Line {
    fn add(&mut self, weight: f64, ns: f64, replies: u32) {
        if self.replies >= 2 * REPLIES {
            self.replies /= 2;
            for sum in [
                &mut self.groups,
                &mut self.weight,
                &mut self.ns,
                &mut self.weight_squared,
                &mut self.product,
            ] {
                *sum /= 2.0;
            }
        }
        self.replies = self.replies.saturating_add(replies);
        self.groups += 1.0;
        self.weight += weight;
        self.ns += ns;
        self.weight_squared += weight * weight;
        self.product += weight * ns;
    }

    /// For a unit of weight.
    fn each(&self) -> f64 {
        match self.weight > 0.0 {
            true => self.ns / self.weight,
            false => 0.0,
        }
    }

    /// What a group takes in the mean.
    fn mean_ns(&self) -> f64 {
        self.ns / self.groups.max(1.0)
    }

    /// What a group takes besides what it takes for its weight.
    fn besides(&self) -> f64 {
        let spread = self.groups * self.weight_squared - self.weight * self.weight;
        if spread <= 0.0 {
            return 0.0;
        }
        let slope = (self.groups * self.product - self.weight * self.ns) / spread;
        ((self.ns - slope * self.weight) / self.groups).clamp(0.0, self.mean_ns())
    }

    /// What a reply of such a weight took of a group of that weight, if what groups take besides is
    /// divided among the replies of all groups.
    fn part(&self, own: f64, weight: f64, ns: f64, besides: f64) -> f64 {
        let mean = self.weight / self.groups;
        (ns - besides) * own / weight + besides * own / mean
    }
}

/// A reply among those that came together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    /// Whose.
    pub tenant: PrincipalId,
    /// What it weighs among the others, above 0.
    pub weight: u64,
}

/// Prices of one server.
#[derive(Clone, Debug, Default)]
pub struct Spans {
    /// What was taken for what was charged, in units of weight.
    price: Price,
    groups: Line,
    /// The last of them, to which more may come.
    last: Group,
    /// What was taken for how much weight, of each tenant.
    tenants: Vec<Own>,
    /// Replies of all.
    replies: u64,
    /// What of the last group was out of proportion, for a unit of weight.
    beyond: f64,
}

impl Spans {
    /// Replies have come together after so long. What each of them is charged, [`Spans::charge`]
    /// says until the next ones come.
    pub fn see(&mut self, span: Nanos, members: impl Iterator<Item = Member> + Clone) {
        let (mut weight, mut replies) = (0.0, 0);
        for member in members.clone() {
            weight += member.weight as f64;
            replies += 1;
            let known = self.tenants.len().max(member.tenant.index() + 1);
            self.tenants.resize(known, Own::default());
        }
        if replies == 0 {
            return;
        }
        let charged = |spans: &Spans| -> f64 {
            let one = |member: Member| member.weight as f64 * spans.times(member.tenant);
            members.clone().map(one).sum()
        };
        let (span, mut beyond) = (span as f64, 0.0);
        if span > BEYOND_NS && self.price.replies >= SEEN {
            let usual = (self.price.each() * charged(self)).max(self.groups.mean_ns());
            beyond = (span - (BEYOND * usual).max(BEYOND_NS)).max(0.0);
        }
        let took = span - beyond;
        if took > TOGETHER_NS || self.last.members.len() >= TOGETHER {
            self.close();
        }
        self.last.members.extend(members.clone());
        self.last.weight += weight;
        self.last.ns += took;
        self.price.add(took, charged(self), replies, REPLIES);
        self.replies += u64::from(replies);
        self.beyond = beyond / weight;
    }

    /// No more comes to the last group.
    fn close(&mut self) {
        let Group {
            mut members,
            weight,
            ns,
        } = std::mem::take(&mut self.last);
        if members.is_empty() {
            return;
        }
        self.groups.add(weight, ns, members.len() as u32);
        let besides = self.groups.besides();
        for member in members.drain(..) {
            let own = member.weight as f64;
            let part = self.groups.part(own, weight, ns, besides);
            let known = &mut self.tenants[member.tenant.index()];
            *known = known.after(self.replies);
            known.price.add(part, own, 1, REPLIES_OWN);
        }
        // Its memory serves the next one.
        self.last.members = members;
    }

    /// What one of the replies that came last is charged.
    #[must_use]
    pub fn charge(&self, member: Member) -> Nanos {
        self.usual(member) + (member.weight as f64 * self.beyond) as Nanos
    }

    /// What a reply is charged that was not among them.
    #[must_use]
    pub fn usual(&self, member: Member) -> Nanos {
        let each = self.price.each() * self.times(member.tenant);
        (member.weight as f64 * each) as Nanos
    }

    /// What a unit of weight is charged of who pays the usual price, ns.
    #[must_use]
    pub fn price_ns(&self) -> f64 {
        self.price.each()
    }

    /// Whether anything was seen.
    #[must_use]
    pub fn knows(&self) -> bool {
        self.replies > 0
    }

    /// A tenant is gone.
    pub fn forget(&mut self, tenant: PrincipalId) {
        self.last.members.retain(|member| member.tenant != tenant);
        if let Some(own) = self.tenants.get_mut(tenant.index()) {
            *own = Own::default();
        }
    }

    /// How many times the usual price a tenant pays.
    fn times(&self, tenant: PrincipalId) -> f64 {
        let own = self.tenants.get(tenant.index());
        let own = own.map(|own| own.after(self.replies).price);
        let all = self.groups.each();
        match own.filter(|own| own.replies >= KNOWN).map(|own| own.each()) {
            Some(own) if all > 0.0 && !ALIKE.contains(&(own / all)) => (own / all).max(LEAST),
            _ => 1.0,
        }
    }
}
