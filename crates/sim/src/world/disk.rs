//! The disks under a node: handlers that wait for them, stages of their own, and modelled disks.
//!
//! An operation lies on one disk and has a handler until it is read whole, piece by piece: each
//! piece is an I/O that waits for its own turn at the stage before the disk, as RocksDB's reads do.

use super::arm::Arm;
use super::followed::Followed;
use super::provided::{request, Provided};
use super::{Copied, Event, World};
use crate::prices::{Prices, PAGE_BYTES};
use crate::spec::{Disk as Wanted, Spec, Tenant};
use policy::cost::device::{Op, Vop};
use policy::device::{self, Io};
use policy::dispatch::{Allocation, Dispatch, DispatchOptions, Next, Terms, Ticket};
use policy::{Cost, Nanos, PrincipalId, Promise};
use workload::rng::Rng;

/// More handlers than any run has operations under way.
const HANDLERS_ANY: u32 = 1 << 20;

/// An operation that waits for a handler, and by when it must have begun at each stage.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    copy: Copied,
    asked_at: Nanos,
    due_at: Option<[Nanos; 2]>,
}

/// What a handler works for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Work {
    pub(super) principal: PrincipalId,
    /// `None`: the node died meanwhile.
    copy: Option<Copied>,
    io: Io,
    disk: usize,
    done_bytes: u64,
    pub(super) due_at: Option<[Nanos; 2]>,
    /// At the handlers, and at the disk its first piece: when it was queued and granted.
    pub(super) queued_at: [Nanos; 2],
    pub(super) granted_at: [Nanos; 2],
}

/// A handler at work.
#[derive(Debug)]
struct Handling {
    ticket: Ticket,
    work: Work,
}

/// A piece at a disk.
#[derive(Debug)]
struct Moving {
    handler: usize,
    ticket: Ticket,
    io: Io,
    since: Nanos,
}

/// Handlers, stages, and the disks behind them.
#[derive(Debug)]
pub(super) struct Disk {
    pub(super) handlers: Dispatch<Asked, 1>,
    handling: slab::Slab<Handling>,
    /// One before each disk.
    pub(super) stages: Vec<Dispatch<usize, 1>>,
    /// One for each stage, where the depth is not the same for the whole run.
    pub(super) followed: Vec<Followed>,
    /// None: nobody reserved anything, or a controller reserves.
    pub(super) provided: Option<Provided>,
    arms: Vec<Arm>,
    moving: slab::Slab<Moving>,
    span_bytes: u64,
    /// Larger I/Os are cut into pieces of this many bytes.
    pub(super) chunk_bytes: u64,
    /// When the handlers, and each stage, asked to be asked again.
    ask_at: Vec<Nanos>,
    /// VOPs a second of a stage, in millionths.
    pub(super) capacity_per_s: f64,
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
        options.discipline = wanted.discipline;
        let handlers = DispatchOptions {
            discipline: spec.scheduler.discipline,
            queue_max,
            seed,
            ..DispatchOptions::handlers(wanted.handlers.unwrap_or(HANDLERS_ANY))
        };
        let reserves = |tenant: &Tenant| tenant.promise.requests_per_s() > 0.0;
        let provides = spec.keeper.is_none() && spec.tenants.iter().any(reserves);
        let disks = wanted.disks.max(1) as usize;
        let arm = |number: usize| Arm::new(&wanted.model, seed.wrapping_add(number as u64));
        Disk {
            handlers: Dispatch::new(handlers),
            handling: slab::Slab::new(),
            capacity_per_s: options.capacity_per_s[0] as f64,
            stages: (0..disks).map(|_| Dispatch::new(options.clone())).collect(),
            followed: (0..disks)
                .filter(|_| wanted.follows)
                .map(|_| Followed::new(wanted.depth, floor))
                .collect(),
            provided: provides.then(|| Provided::new(costs)),
            arms: (0..disks).map(arm).collect(),
            moving: slab::Slab::new(),
            ask_at: vec![Nanos::MAX; disks + 1],
            span_bytes: wanted.span_bytes.max(PAGE_BYTES),
            chunk_bytes: wanted
                .chunk_bytes
                .unwrap_or(prices.chunk_bytes)
                .max(PAGE_BYTES),
        }
    }

    /// A tenant shares the device as it shares the node; what it reserved is provided from the end
    /// of the present second on.
    pub(super) fn configure(&mut self, now: Nanos, principal: PrincipalId, promise: &Promise) {
        self.handlers
            .configure(now, principal, &promise.at_handlers(0, 1));
        let share = Allocation::share(promise.weight);
        for stage in &mut self.stages {
            stage.configure(now, principal, &share);
        }
        if let Some(provided) = &mut self.provided {
            provided.promise(principal, promise);
        }
    }

    /// The disks take so many times as long from now on.
    pub(super) fn slow(&mut self, now: Nanos, times: f64) {
        for arm in &mut self.arms {
            arm.slow(now, times);
        }
    }

    /// VOPs a second that all disks do.
    fn available_per_s(&self) -> f64 {
        match self.followed.is_empty() {
            true => self.capacity_per_s / 1e6 * self.stages.len() as f64,
            false => self.followed.iter().map(Followed::capacity_per_s).sum(),
        }
    }

    /// A piece is done and charged for. What follows the disks sees it, and so does what provides
    /// for reservations.
    fn settle(&mut self, now: Nanos, stage: usize, moved: Moving, price: Vop) {
        self.stages[stage].settle(now, moved.ticket, Cost([price.0]));
        let followed = self.followed.get_mut(stage);
        if let Some(permits) = followed.and_then(|followed| followed.done(now, price)) {
            self.stages[stage].set_permits(permits);
        }
        let available_per_s = self.available_per_s();
        let Some(provided) = &mut self.provided else {
            return;
        };
        let principal = self.handling[moved.handler].work.principal;
        provided.piece(principal, request(moved.io.op == Op::Write), price);
        let stages = self.stages.len() as f64;
        for (principal, mut allocation) in provided.step(now, available_per_s) {
            // Operations are spread evenly over the disks.
            allocation.reservation_per_s = allocation.reservation_per_s.map(|all| all / stages);
            for stage in &mut self.stages {
                stage.configure(now, principal, &allocation);
            }
        }
    }

    /// Whether somebody must be told to ask the handlers (0) or a stage (1 and more) at a time.
    fn asks(&mut self, now: Nanos, place: usize, at: Nanos) -> bool {
        let before = self.ask_at[place];
        let sooner = at < before || before <= now;
        if sooner {
            self.ask_at[place] = at;
        }
        sooner
    }

    /// Asks the stage before its disk for the next piece of what a handler reads or writes.
    fn ask(&mut self, now: Nanos, handler: usize) {
        let work = &self.handling[handler].work;
        let large = work.io.bytes > self.chunk_bytes;
        let terms = Terms {
            due_at: work.due_at.map(|due_at| due_at[1]),
            stream: if large { stream(handler) } else { 0 },
            ..Terms::default()
        };
        let (principal, stage) = (work.principal, work.disk);
        // Its queue is as long as the one it came from.
        let _ = self.stages[stage].enqueue_on(now, principal, terms, handler);
    }

    /// A handler is done: it is charged for its time, as a server's is.
    fn hand_back(&mut self, now: Nanos, handler: usize) -> Work {
        let Handling { ticket, work } = self.handling.remove(handler);
        let took_ns = now - work.granted_at[0];
        self.handlers.settle(now, ticket, Cost([took_ns]));
        work
    }

    /// All of a principal's that is here is lost; what a disk has begun it ends, for nobody.
    pub(super) fn lose(&mut self, now: Nanos, principal: PrincipalId) -> Vec<Copied> {
        let waiting = self.handlers.remove(now, principal);
        let mut lost: Vec<_> = waiting.into_iter().map(|asked| asked.copy).collect();
        for stage in 0..self.stages.len() {
            for handler in self.stages[stage].remove(now, principal) {
                lost.extend(self.hand_back(now, handler).copy);
            }
        }
        for (_, handling) in &mut self.handling {
            if handling.work.principal == principal {
                lost.extend(handling.work.copy.take());
            }
        }
        lost
    }

    /// Where an operation goes: a get reads wherever its value is, a put appends to a log.
    fn io(&mut self, put: bool, bytes: u32, rng: &mut Rng) -> (usize, Io) {
        let bytes = u64::from(bytes).max(PAGE_BYTES);
        let disk = match self.arms.len() {
            1 => 0,
            many => (rng.bits() % many as u64) as usize,
        };
        let (op, offset) = match put {
            false => {
                let pages = self.span_bytes / PAGE_BYTES;
                (Op::Read, rng.bits() % pages * PAGE_BYTES)
            }
            true => (Op::Write, self.arms[disk].log_at),
        };
        if put {
            self.arms[disk].log_at += bytes.next_multiple_of(PAGE_BYTES);
        }
        (disk, Io { op, offset, bytes })
    }
}

/// Pieces of one operation are a stream; 0 is none.
fn stream(handler: usize) -> u32 {
    handler as u32 + 1
}

impl World<'_> {
    /// Whether an operation that its node has served needs the device.
    pub(super) fn needs_device(&mut self, node: u32, copy: Copied) -> bool {
        let (put, bytes) = (self.ops[copy.op()].put, self.ops[copy.op()].bytes);
        let device = self.spec.cluster.device.as_ref();
        let needs = device.is_some_and(|device| {
            let fits = !put && u64::from(bytes) <= device.cached_bytes_max;
            !fits || self.noise.unit() >= device.cached
        });
        if !needs {
            self.count(node, copy);
        }
        needs
    }

    /// An operation waits for a handler of its node's, who waits for the device.
    pub(super) fn ask_device(&mut self, node: u32, copy: Copied) {
        let now = self.agenda.now();
        let asked = Asked {
            copy,
            asked_at: now,
            due_at: self.due_of(copy),
        };
        let principal = self.ops[copy.op()].principals[copy.copy()];
        if let Some(disk) = &mut self.nodes[node as usize].disk {
            let terms = Terms {
                due_at: asked.due_at.map(|due_at| due_at[0]),
                ..Terms::default()
            };
            // Its queue is as long as the one it came from.
            let _ = disk.handlers.enqueue_on(now, principal, terms, asked);
        }
        self.work_device(node);
    }

    /// Lets operations have handlers, each of which asks for the first piece at once.
    fn hand_out(&mut self, node: u32) {
        let now = self.agenda.now();
        let Some(disk) = &mut self.nodes[node as usize].disk else {
            return;
        };
        loop {
            match disk.handlers.next(now) {
                Next::Idle => return,
                Next::At(at) => {
                    if disk.asks(now, 0, at) {
                        self.agenda.after(at - now, Event::Device { node });
                    }
                    return;
                }
                Next::Grant(grant) => {
                    let Asked {
                        copy,
                        asked_at,
                        due_at,
                    } = grant.item;
                    let op = &self.ops[copy.op()];
                    let (disk_number, io) = disk.io(op.put, op.bytes, &mut self.noise);
                    let work = Work {
                        principal: grant.principal,
                        copy: Some(copy),
                        io,
                        disk: disk_number,
                        done_bytes: 0,
                        due_at: due_at.filter(|_| grant.ticket.timed()),
                        queued_at: [asked_at, now],
                        granted_at: [now; 2],
                    };
                    let ticket = grant.ticket;
                    let handler = disk.handling.insert(Handling { ticket, work });
                    disk.ask(now, handler);
                }
            }
        }
    }

    /// Gives disks what they may have; says when a stage wants to be asked again.
    fn begin_pieces(&mut self, node: u32) {
        let now = self.agenda.now();
        let Some(disk) = &mut self.nodes[node as usize].disk else {
            return;
        };
        for stage in 0..disk.stages.len() {
            loop {
                match disk.stages[stage].next(now) {
                    Next::Idle => {
                        if let Some(followed) = disk.followed.get_mut(stage) {
                            followed.limited &= disk.stages[stage].queued() > 0;
                        }
                        break;
                    }
                    Next::At(at) => {
                        if disk.asks(now, stage + 1, at) {
                            self.agenda.after(at - now, Event::Device { node });
                        }
                        break;
                    }
                    Next::Grant(grant) => {
                        let handler = grant.item;
                        let work = &mut disk.handling[handler].work;
                        if work.done_bytes == 0 {
                            work.granted_at[1] = now;
                        }
                        let left = work.io.bytes - work.done_bytes;
                        let io = Io {
                            offset: work.io.offset + work.done_bytes,
                            bytes: left.min(disk.chunk_bytes),
                            ..work.io
                        };
                        let arm = work.disk;
                        let ticket = grant.ticket;
                        let tag = disk.moving.insert(Moving {
                            handler,
                            ticket,
                            io,
                            since: now,
                        });
                        disk.arms[arm].submit(now, tag as u64, io);
                    }
                }
            }
        }
    }

    /// Takes from the disks what is done; whether anything was.
    fn end_pieces(&mut self, node: u32, done: &mut Vec<Work>) -> bool {
        let now = self.agenda.now();
        let prices = self.prices.as_ref();
        let Some(disk) = &mut self.nodes[node as usize].disk else {
            return false;
        };
        let mut any = false;
        for number in 0..disk.arms.len() {
            loop {
                let arm = &mut disk.arms[number];
                let tag = match arm.next(now) {
                    device::Event::Done { tag, .. } => tag,
                    device::Event::Idle => break,
                    device::Event::At(at) => {
                        if at < arm.look_at || arm.look_at <= now {
                            arm.look_at = at;
                            self.agenda.after(at - now, Event::Device { node });
                        }
                        break;
                    }
                };
                any = true;
                let moved = disk.moving.remove(tag as usize);
                let timed = moved.ticket.timed();
                if let Some(keeper) = self.keeper.as_mut().filter(|_| !timed) {
                    keeper.others_pieces.0 += now - moved.since;
                    keeper.others_pieces.1 += 1;
                }
                let cost = |p: &Prices| p.costs.cost(moved.io.op, moved.io.bytes);
                let price = prices.map_or(Vop::ZERO, cost);
                let (handler, bytes) = (moved.handler, moved.io.bytes);
                disk.settle(now, number, moved, price);
                let work = &mut disk.handling[handler].work;
                work.done_bytes += bytes;
                if work.done_bytes < work.io.bytes && work.copy.is_some() {
                    disk.ask(now, handler);
                } else {
                    let principal = disk.handling[handler].work.principal;
                    disk.stages[number].end_stream(principal, stream(handler));
                    done.push(disk.hand_back(now, handler));
                }
            }
        }
        any
    }

    /// Gives the disks what they may have, and takes from them what is done.
    pub(super) fn work_device(&mut self, node: u32) {
        let now = self.agenda.now();
        let mut done = Vec::new();
        self.hand_out(node);
        self.begin_pieces(node);
        while self.end_pieces(node, &mut done) {
            self.hand_out(node);
            self.begin_pieces(node);
        }
        for work in done {
            if let Some(copy) = work.copy {
                self.note_work(copy, &work);
                self.count(node, copy);
                self.finish(node, copy, now - work.granted_at[1]);
            }
        }
    }
}
