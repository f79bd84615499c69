//! The device under a node: handlers that wait for it, a stage of its own, and a modelled disk.

use super::{Copied, Event, World};
use crate::prices::{place, Prices, PAGE_BYTES};
use crate::spec::{Disk as Wanted, Spec};
use policy::cost::device::Op;
use policy::device::{self, Device, Io};
use policy::dispatch::{Allocation, Dispatch, DispatchOptions, Next, Ticket};
use policy::{Cost, Nanos, PrincipalId, Promise};
use workload::rng::Rng;

/// More handlers than any run has operations under way.
const HANDLERS_ANY: u32 = 1 << 20;

/// A handler at work, from when on.
#[derive(Debug)]
struct Handling {
    ticket: Ticket,
    since: Nanos,
}

/// An operation that a handler has, and which.
#[derive(Debug)]
struct Asked {
    copy: Copied,
    handler: usize,
}

/// An I/O at the device.
#[derive(Debug)]
struct Moving {
    /// `None`: the node died meanwhile.
    copy: Option<Copied>,
    handler: usize,
    principal: PrincipalId,
    ticket: Ticket,
    io: Io,
    since: Nanos,
}

/// Handlers, a stage, and the disk behind it.
#[derive(Debug)]
pub(super) struct Disk {
    handlers: Dispatch<Copied, 1>,
    handling: slab::Slab<Handling>,
    stage: Dispatch<Asked, 1>,
    device: Device,
    moving: slab::Slab<Moving>,
    /// Where its log goes on.
    log_at: u64,
    /// When it is looked at again, if at all.
    look_at: Nanos,
}

impl Disk {
    pub(super) fn new(
        wanted: &Wanted,
        prices: &Prices,
        queue_max: usize,
        spec: &Spec,
        seed: u64,
    ) -> Self {
        let (costs, floor) = (&prices.costs, prices.floor_per_s);
        let mut options = DispatchOptions::device(costs, floor, wanted.depth, wanted.largest_bytes);
        options.queue_max = queue_max;
        let handlers = DispatchOptions {
            discipline: spec.scheduler.discipline,
            queue_max,
            seed,
            ..DispatchOptions::handlers(wanted.handlers.unwrap_or(HANDLERS_ANY))
        };
        Disk {
            handlers: Dispatch::new(handlers),
            handling: slab::Slab::new(),
            stage: Dispatch::new(options),
            device: Device::new(&wanted.model, seed),
            moving: slab::Slab::new(),
            log_at: 0,
            look_at: Nanos::MAX,
        }
    }

    /// A tenant shares the device as it shares the node; what it reserved of requests is not known
    /// in I/Os.
    pub(super) fn configure(&mut self, now: Nanos, principal: PrincipalId, promise: &Promise) {
        self.handlers
            .configure(now, principal, &promise.at_handlers(0, 1));
        let share = Allocation::share(promise.weight);
        self.stage.configure(now, principal, &share);
    }

    /// Lets operations have handlers, each of which asks the device at once.
    fn hand_out(&mut self, now: Nanos) {
        while let Next::Grant(grant) = self.handlers.next(now) {
            let handler = self.handling.insert(Handling {
                ticket: grant.ticket,
                since: now,
            });
            let asked = Asked {
                copy: grant.item,
                handler,
            };
            // Its queue is as long as the one it came from.
            let _ = self.stage.enqueue(now, grant.principal, asked);
        }
    }

    /// A handler is done: it is charged for its time, as a server's is.
    fn hand_back(&mut self, now: Nanos, handler: usize) {
        let Handling { ticket, since } = self.handling.remove(handler);
        self.handlers.settle(now, ticket, Cost([now - since]));
    }

    /// All of a principal's that is here is lost; what the device has begun it ends, for nobody.
    pub(super) fn lose(&mut self, now: Nanos, principal: PrincipalId) -> Vec<Copied> {
        let mut lost = self.handlers.remove(now, principal);
        for asked in self.stage.remove(now, principal) {
            self.hand_back(now, asked.handler);
            lost.push(asked.copy);
        }
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

    /// An operation waits for a handler of its node's, who waits for the device.
    pub(super) fn ask_device(&mut self, node: u32, copy: Copied) {
        let now = self.agenda.now();
        let principal = self.ops[copy.op()].principals[copy.copy()];
        if let Some(disk) = &mut self.nodes[node as usize].disk {
            // Its queue is as long as the one it came from.
            let _ = disk.handlers.enqueue(now, principal, copy);
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
            disk.hand_out(now);
            while let Next::Grant(grant) = disk.stage.next(now) {
                let Asked { copy, handler } = grant.item;
                let op = &self.ops[copy.op()];
                let io = disk.io(op.put, op.bytes, &mut self.noise);
                let moving = Moving {
                    copy: Some(copy),
                    handler,
                    principal: grant.principal,
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
                    disk.hand_back(now, moved.handler);
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
