//! The device under a node: a stage of its own before a modelled disk.

use super::{Copied, Event, World};
use crate::prices::{place, Prices, PAGE_BYTES};
use crate::spec::Disk as Wanted;
use policy::cost::device::Op;
use policy::device::{self, Device, Io};
use policy::dispatch::{Allocation, Dispatch, DispatchOptions, Next, Ticket};
use policy::{Cost, Nanos, PrincipalId};
use workload::rng::Rng;

/// An I/O at the device.
#[derive(Debug)]
struct Moving {
    /// `None`: the node died meanwhile.
    copy: Option<Copied>,
    principal: PrincipalId,
    ticket: Ticket,
    io: Io,
    since: Nanos,
}

/// A stage and the disk behind it.
#[derive(Debug)]
pub(super) struct Disk {
    stage: Dispatch<Copied, 1>,
    device: Device,
    moving: slab::Slab<Moving>,
    /// Where its log goes on.
    log_at: u64,
    /// When it is looked at again, if at all.
    look_at: Nanos,
}

impl Disk {
    pub(super) fn new(wanted: &Wanted, prices: &Prices, queue_max: usize, seed: u64) -> Self {
        let (costs, floor) = (&prices.costs, prices.floor_per_s);
        let mut options = DispatchOptions::device(costs, floor, wanted.depth, wanted.largest_bytes);
        options.queue_max = queue_max;
        Disk {
            stage: Dispatch::new(options),
            device: Device::new(&wanted.model, seed),
            moving: slab::Slab::new(),
            log_at: 0,
            look_at: Nanos::MAX,
        }
    }

    /// A tenant shares the device as it shares the node; what it reserved of requests is not known in I/Os.
    pub(super) fn configure(
        &mut self,
        now: Nanos,
        principal: PrincipalId,
        allocation: &Allocation,
    ) {
        let here = allocation.of_permits();
        self.stage.configure(now, principal, &here);
    }

    /// All of a principal's that is here is lost; what the device has begun it ends, for nobody.
    pub(super) fn lose(&mut self, now: Nanos, principal: PrincipalId) -> Vec<Copied> {
        let mut lost = self.stage.remove(now, principal);
        for (_, moving) in &mut self.moving {
            if moving.principal == principal {
                lost.extend(moving.copy.take());
            }
        }
        lost
    }

    /// The I/O of an operation: a get reads wherever its value is, a put appends to the log.
    fn io(&mut self, put: bool, bytes: u32, rng: &mut Rng) -> Io {
        let bytes = u64::from(bytes).max(PAGE_BYTES);
        let (op, offset) = match put {
            false => (Op::Read, place(rng)),
            true => (Op::Write, self.log_at),
        };
        if put {
            self.log_at += bytes.next_multiple_of(PAGE_BYTES);
        }
        Io { op, offset, bytes }
    }
}

impl World<'_> {
    /// Whether an operation that its node has served needs the device.
    pub(super) fn needs_device(&mut self, put: bool) -> bool {
        let device = self.spec.cluster.device.as_ref();
        device.is_some_and(|device| put || self.noise.unit() >= device.cached)
    }

    /// An operation waits for its node's device.
    pub(super) fn ask_device(&mut self, node: u32, copy: Copied) {
        let now = self.agenda.now();
        let principal = self.ops[copy.op()].principals[copy.copy()];
        if let Some(disk) = &mut self.nodes[node as usize].disk {
            // Its queue is as long as the one it came from.
            let _ = disk.stage.enqueue(now, principal, copy);
        }
        self.work_device(node);
    }

    /// Gives a device what it may have, and takes from it what is done.
    pub(super) fn work_device(&mut self, node: u32) {
        let (now, mut done) = (self.agenda.now(), Vec::new());
        let Some(disk) = &mut self.nodes[node as usize].disk else {
            return;
        };
        let prices = self.prices.as_ref();
        loop {
            while let Next::Grant(grant) = disk.stage.next(now) {
                let op = &self.ops[grant.item.op()];
                let io = disk.io(op.put, op.bytes, &mut self.noise);
                let moving = Moving {
                    copy: Some(grant.item),
                    principal: op.principals[grant.item.copy()],
                    ticket: grant.ticket,
                    io,
                    since: now,
                };
                let tag = disk.moving.insert(moving) as u64;
                disk.device.submit(now, tag, io);
            }
            match disk.device.next(now) {
                device::Event::Done { tag, .. } => {
                    let moved = disk.moving.remove(tag as usize);
                    let price =
                        prices.map_or(0, |prices| prices.costs.cost(moved.io.op, moved.io.bytes).0);
                    disk.stage.settle(now, moved.ticket, Cost([price]));
                    done.extend(moved.copy.map(|copy| (copy, now - moved.since)));
                }
                device::Event::At(at) => {
                    if at < disk.look_at || disk.look_at <= now {
                        disk.look_at = at;
                        self.agenda.after(at - now, Event::Device { node });
                    }
                    break;
                }
                device::Event::Idle => break,
            }
        }
        for (copy, took_ns) in done {
            self.finish(node, copy, took_ns);
        }
    }
}
