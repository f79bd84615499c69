//! Connections that speak for a tenant.
//!
//! With T seats and n tenants each tenant is kept g = T / 2n seats, or as many as it may have if
//! that is fewer. What is left of T is shared: a tenant beyond its own g takes from there. So a
//! tenant has at least its own part whatever the others do, and at most what is not kept for them.

use std::collections::BTreeMap;

use crate::cost::PrincipalId;

/// How many seats there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SeatsOptions {
    /// Of all tenants together.
    pub tenants: usize,
    /// More, for operators who find those taken.
    pub operators: usize,
}

/// What a tenant may have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Claim {
    /// Connections at most; none: as many as are not kept for others.
    pub connections_max: Option<usize>,
    /// It administers the server, and may have operators' seats.
    pub operator: bool,
}

/// A seat taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seat {
    /// One of this tenant's.
    Tenant(PrincipalId),
    /// An operators' seat.
    Operator,
}

#[derive(Clone, Copy, Debug, Default)]
struct Holder {
    /// None: it is no tenant any more, and holds what it holds.
    claim: Option<Claim>,
    taken: usize,
    /// Seats that are kept for it.
    kept: usize,
}

impl Holder {
    fn beyond(&self) -> usize {
        self.taken.saturating_sub(self.kept)
    }

    fn keeps(&self, part: usize) -> usize {
        match self.claim {
            None => 0,
            Some(claim) => claim.connections_max.map_or(part, |max| max.min(part)),
        }
    }
}

/// Who has how many.
#[derive(Clone, Debug, Default)]
pub struct Seats {
    options: SeatsOptions,
    holders: BTreeMap<PrincipalId, Holder>,
    /// Those with a claim.
    tenants: usize,
    /// What is kept for a tenant without a maximum.
    part: usize,
    /// Sum of what is kept.
    kept: usize,
    /// Seats taken beyond what is kept for those who took them.
    beyond: usize,
    /// Operators' seats taken.
    operators: usize,
}

impl Seats {
    /// So many seats there are. Those who have one keep it.
    pub fn set(&mut self, options: SeatsOptions) {
        self.options = options;
        self.divide();
    }

    /// A tenant is there, with this claim.
    pub fn enter(&mut self, tenant: PrincipalId, claim: Claim) {
        self.change(tenant, Some(claim));
    }

    /// A tenant is there no more. The seats that it has it keeps until they are given back.
    pub fn remove(&mut self, tenant: PrincipalId) {
        self.change(tenant, None);
        self.forget(tenant);
    }

    fn change(&mut self, tenant: PrincipalId, claim: Option<Claim>) {
        let part = self.part;
        let holder = self.holders.entry(tenant).or_default();
        self.tenants -= usize::from(holder.claim.is_some());
        self.tenants += usize::from(claim.is_some());
        self.kept -= holder.kept;
        self.beyond -= holder.beyond();
        holder.claim = claim;
        holder.kept = holder.keeps(part);
        self.kept += holder.kept;
        self.beyond += holder.beyond();
        self.divide();
    }

    /// Divides anew where the number of seats or tenants has changed the part. It is a whole
    /// number, so that it seldom does where there are many tenants.
    fn divide(&mut self) {
        let part = self.options.tenants / (2 * self.tenants.max(1));
        if part == self.part {
            return;
        }
        self.part = part;
        for holder in self.holders.values_mut() {
            holder.kept = holder.keeps(part);
        }
        self.kept = self.holders.values().map(|holder| holder.kept).sum();
        self.beyond = self.holders.values().map(Holder::beyond).sum();
    }

    fn forget(&mut self, tenant: PrincipalId) {
        let idle = |holder: &Holder| holder.claim.is_none() && holder.taken == 0;
        if self.holders.get(&tenant).is_some_and(idle) {
            self.holders.remove(&tenant);
        }
    }

    /// Takes a seat for a tenant; none: it has as many as it may have, or there are no more.
    pub fn take(&mut self, tenant: PrincipalId) -> Option<Seat> {
        let max = self.connections_max(tenant);
        let shared = self.options.tenants.saturating_sub(self.kept);
        let holder = self.holders.get_mut(&tenant)?;
        let own = holder.taken < holder.kept;
        if holder.taken < max && (own || self.beyond < shared) {
            holder.taken += 1;
            self.beyond += usize::from(!own);
            return Some(Seat::Tenant(tenant));
        }
        let operator = holder.claim.is_some_and(|claim| claim.operator);
        let more = operator && self.operators < self.options.operators;
        self.operators += usize::from(more);
        more.then_some(Seat::Operator)
    }

    /// Gives a seat back.
    pub fn leave(&mut self, seat: Seat) {
        let tenant = match seat {
            Seat::Operator => {
                self.operators = self.operators.saturating_sub(1);
                return;
            }
            Seat::Tenant(tenant) => tenant,
        };
        let Some(holder) = self.holders.get_mut(&tenant) else {
            return;
        };
        self.beyond -= usize::from(holder.beyond() > 0);
        holder.taken = holder.taken.saturating_sub(1);
        self.forget(tenant);
    }

    /// Connections that a tenant may have while the others have no more than is kept for them.
    pub fn connections_max(&self, tenant: PrincipalId) -> usize {
        let Some(Holder {
            claim: Some(claim),
            kept,
            ..
        }) = self.holders.get(&tenant)
        else {
            return 0;
        };
        let left = self.options.tenants.saturating_sub(self.kept - kept);
        claim.connections_max.map_or(left, |max| max.min(left))
    }

    /// Seats taken, operators' included.
    pub fn taken(&self) -> usize {
        let tenants: usize = self.holders.values().map(|holder| holder.taken).sum();
        tenants + self.operators
    }
}
