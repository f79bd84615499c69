//! What tenants reserved of a node's disks: once a second requests are priced by what they have
//! cost, and VOPs are provided for them, as a server does it.

use std::collections::BTreeMap;

use policy::cost::device::{CostModel, Vop};
use policy::dispatch::Allocation;
use policy::profile::{Done, Interval, Request, REQUESTS};
use policy::provision::{Pricing, Provisioner};
use policy::{Nanos, PrincipalId, Promise};

use super::{Copied, World};

/// An interval.
const EVERY_NS: Nanos = 1_000_000_000;

/// What an operation is to those who price requests.
pub(super) fn request(put: bool) -> Request {
    match put {
        true => Request::Put,
        false => Request::Get,
    }
}

/// What one tenant does in an interval.
#[derive(Debug, Default)]
struct Doing {
    weight: f64,
    done: [Done; REQUESTS],
}

/// Reservations of a node's tenants.
#[derive(Debug)]
pub(super) struct Provided {
    provisioner: Provisioner,
    tenants: BTreeMap<u32, Doing>,
    ends: Nanos,
}

impl Provided {
    pub(super) fn new(costs: &CostModel) -> Self {
        Self {
            provisioner: Provisioner::new(costs.clone(), Pricing::Profiles),
            tenants: BTreeMap::new(),
            ends: EVERY_NS,
        }
    }

    /// What a tenant was promised here from now on.
    pub(super) fn promise(&mut self, tenant: PrincipalId, promise: &Promise) {
        self.provisioner.reserve(tenant.0, promise.reserved_per_s);
        self.tenants.entry(tenant.0).or_default().weight = promise.weight;
    }

    /// A piece of a request was read or written, at this price.
    pub(super) fn piece(&mut self, tenant: PrincipalId, request: Request, price: Vop) {
        let doing = self.tenants.entry(tenant.0).or_default();
        let done = &mut doing.done[request as usize];
        done.direct = done.direct.plus(price);
    }

    /// A request was answered, from the disk or from memory.
    pub(super) fn served(&mut self, tenant: PrincipalId, request: Request, bytes: u64) {
        let doing = self.tenants.entry(tenant.0).or_default();
        let done = &mut doing.done[request as usize];
        done.requests += 1;
        done.bytes += bytes;
        if request == Request::Put {
            done.written_bytes += bytes;
        }
    }

    /// What each tenant may have of the disks from now on, if an interval ends here. They do this
    /// many VOPs a second.
    pub(super) fn step(
        &mut self,
        now: Nanos,
        available_per_s: f64,
    ) -> Vec<(PrincipalId, Allocation)> {
        if now < self.ends {
            return Vec::new();
        }
        self.ends = now + EVERY_NS;
        for (tenant, doing) in &mut self.tenants {
            let done = std::mem::take(&mut doing.done);
            let interval = Interval {
                written_bytes: done.iter().map(|done| done.written_bytes).sum(),
                done,
                ..Interval::default()
            };
            self.provisioner.observe(*tenant, &interval);
        }
        let provision = self.provisioner.provision(available_per_s);
        let allocation = |(tenant, provided): (&u32, &policy::provision::Provisioned)| {
            // Prices and rates are in millionths of a VOP.
            let per_s = provided.allocated.total() * 1e6;
            let allocation = Allocation {
                reservation_per_s: (per_s > 0.0).then_some(per_s),
                ..Allocation::share(self.tenants[tenant].weight)
            };
            (PrincipalId(*tenant), allocation)
        };
        provision.tenants.iter().map(allocation).collect()
    }
}

impl World<'_> {
    /// A request was served, from the disk or from memory, as far as prices are learnt from that.
    pub(super) fn count(&mut self, node: u32, copy: Copied) {
        let op = &self.ops[copy.op()];
        let disk = self.nodes[node as usize].disk.as_mut();
        if let Some(provided) = disk.and_then(|disk| disk.provided.as_mut()) {
            let (request, bytes) = (request(op.put), u64::from(op.bytes));
            provided.served(op.principals[copy.copy()], request, bytes);
        }
    }
}
