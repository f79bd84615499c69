//! The disks under a node: handlers that wait for them, stages of their own, and modelled disks.
//!
//! An operation lies on one disk and has a handler until it is read whole, piece by piece: each
//! piece is an I/O that waits for its own turn at the stage before the disk, as RocksDB's reads do.

use super::arm::Arm;
use super::files::Files;
use super::followed::Followed;
use super::provided::{request, Provided};
use super::{files, Copied, Event, Op, World};
use crate::prices::{Prices, PAGE_BYTES};
use crate::spec::{Disk as Wanted, Spec, Tenant};
use policy::cost::device::{Op as Does, Vop, AHEAD_BYTES_MAX};
use policy::device::Io;
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
    pub(super) copy: Option<Copied>,
    pub(super) io: Io,
    pub(super) disk: usize,
    pub(super) done_bytes: u64,
    /// It has had a turn at a disk.
    pub(super) begun: bool,
    pub(super) range: bool,
    /// Where it reads before that, and how often it has yet to: in other files, and near it.
    pub(super) elsewhere: Option<(usize, u64)>,
    pub(super) reads_left: [u32; 2],
    pub(super) due_at: Option<[Nanos; 2]>,
    /// At the handlers, and at a disk for the first time: when it was queued and granted.
    pub(super) queued_at: [Nanos; 2],
    pub(super) granted_at: [Nanos; 2],
}

impl Work {
    /// The disk that it waits for.
    pub(super) fn stage(&self) -> usize {
        self.elsewhere.map_or(self.disk, |(disk, _)| disk)
    }

    /// What it asks of it, in pieces of so many bytes.
    pub(super) fn next_io(&self, piece_bytes: u64) -> Io {
        match self.elsewhere {
            Some((_, offset)) => Io {
                offset,
                bytes: PAGE_BYTES,
                ..self.io
            },
            None => Io {
                offset: self.io.offset + self.done_bytes,
                bytes: (self.io.bytes - self.done_bytes).min(piece_bytes),
                ..self.io
            },
        }
    }
}

/// A handler at work.
#[derive(Debug)]
pub(super) struct Handling {
    ticket: Ticket,
    pub(super) work: Work,
}

/// A piece at a disk.
#[derive(Debug)]
pub(super) struct Moving {
    pub(super) handler: usize,
    pub(super) ticket: Ticket,
    pub(super) io: Io,
    pub(super) since: Nanos,
}

/// Handlers, stages, and the disks behind them.
#[derive(Debug)]
pub(super) struct Disk {
    pub(super) handlers: Dispatch<Asked, 1>,
    pub(super) handling: slab::Slab<Handling>,
    /// One before each disk.
    pub(super) stages: Vec<Dispatch<usize, 1>>,
    /// One for each stage, where the depth is not the same for the whole run.
    pub(super) followed: Vec<Followed>,
    /// Permits of each disk, where a controller sets them.
    pub(super) held: Option<u32>,
    /// Permits of each disk that neither a controller nor anything that follows it sets.
    pub(super) depth: u32,
    /// None: nobody reserved anything, or a controller reserves.
    pub(super) provided: Option<Provided>,
    pub(super) arms: Vec<Arm>,
    pub(super) moving: slab::Slab<Moving>,
    pub(super) files: Files,
    other_files: u32,
    range_reads: u32,
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
            held: None,
            depth: wanted.depth,
            provided: provides.then(|| Provided::new(costs)),
            arms: (0..disks).map(arm).collect(),
            moving: slab::Slab::new(),
            ask_at: vec![Nanos::MAX; disks + 1],
            files: Files::new(wanted, seed),
            other_files: wanted.other_files,
            range_reads: wanted.range_reads,
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
    pub(super) fn settle(&mut self, now: Nanos, stage: usize, moved: Moving, price: Vop) {
        self.stages[stage].settle(now, moved.ticket, Cost([price.0]));
        let followed = self.followed.get_mut(stage);
        let permits = followed.and_then(|followed| followed.done(now, price));
        if let Some(permits) = permits.filter(|_| self.held.is_none()) {
            self.stages[stage].set_permits(permits);
        }
        let available_per_s = self.available_per_s();
        let Some(provided) = &mut self.provided else {
            return;
        };
        let principal = self.handling[moved.handler].work.principal;
        provided.piece(principal, request(moved.io.op == Does::Write), price);
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
    pub(super) fn asks(&mut self, now: Nanos, place: usize, at: Nanos) -> bool {
        let before = self.ask_at[place];
        let sooner = at < before || before <= now;
        if sooner {
            self.ask_at[place] = at;
        }
        sooner
    }

    /// The size of what a handler asks for at a time.
    pub(super) fn piece_bytes(&self, work: &Work) -> u64 {
        match work.range {
            true => self.chunk_bytes.min(AHEAD_BYTES_MAX),
            false => self.chunk_bytes,
        }
    }

    /// How often a range reads before its values: in other files, and near them.
    fn reads_before(&self, range: bool) -> [u32; 2] {
        match range {
            true => [2 * self.other_files, self.range_reads],
            false => [0; 2],
        }
    }

    /// Chooses where a handler reads next that has to read elsewhere first.
    pub(super) fn move_on(&mut self, handler: usize, rng: &mut Rng) {
        let work = &mut self.handling[handler].work;
        let before = work.elsewhere.take();
        let [others, near] = &mut work.reads_left;
        work.elsewhere = match (*others, *near) {
            (0, 0) => None,
            (0, _) => {
                *near -= 1;
                Some((work.disk, self.files.near(work.io.offset, rng)))
            }
            (left, _) => {
                *others -= 1;
                // The second of two, in the same file.
                let again = before.filter(|_| left % 2 == 1);
                let again = again.map(|(disk, offset)| (disk, offset + PAGE_BYTES));
                again.or_else(|| Some(self.files.anywhere(self.arms.len(), rng)))
            }
        };
    }

    /// Asks the stage before its disk for the next piece of what a handler reads or writes.
    pub(super) fn ask(&mut self, now: Nanos, handler: usize) {
        let work = &self.handling[handler].work;
        // All that a range reads is, as on a server.
        let streams = work.range || work.io.bytes > self.piece_bytes(work);
        let terms = Terms {
            due_at: work.due_at.map(|due_at| due_at[1]),
            stream: if streams { stream(handler) } else { 0 },
            ..Terms::default()
        };
        let (principal, stage) = (work.principal, work.stage());
        // Its queue is as long as the one it came from.
        let _ = self.stages[stage].enqueue_on(now, principal, terms, handler);
    }

    /// A handler is done: it is charged for its time, as a server's is.
    pub(super) fn hand_back(&mut self, now: Nanos, handler: usize) -> Work {
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
    fn io(&mut self, tenant: u32, op: &Op, rng: &mut Rng) -> (usize, Io) {
        let bytes = u64::from(op.bytes).max(PAGE_BYTES);
        if !op.put {
            let (disk, offset) = self.files.place(tenant, op, self.arms.len(), rng);
            let io = Io {
                op: Does::Read,
                offset,
                bytes,
            };
            return (disk, io);
        }
        let disk = files::any_disk(self.arms.len(), rng);
        let offset = self.arms[disk].log_at;
        self.arms[disk].log_at += bytes.next_multiple_of(PAGE_BYTES);
        let io = Io {
            op: Does::Write,
            offset,
            bytes,
        };
        (disk, io)
    }
}

/// Pieces of one operation are a stream; 0 is none.
pub(super) fn stream(handler: usize) -> u32 {
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
    pub(super) fn hand_out(&mut self, node: u32) {
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
                    let tenant = self.groups[op.group as usize].tenant;
                    let (disk_number, io) = disk.io(tenant, op, &mut self.noise);
                    let range = op.keys > 1;
                    let reads_left = disk.reads_before(range);
                    let work = Work {
                        principal: grant.principal,
                        copy: Some(copy),
                        io,
                        disk: disk_number,
                        done_bytes: 0,
                        begun: false,
                        range,
                        elsewhere: None,
                        reads_left,
                        due_at: due_at.filter(|_| grant.ticket.timed()),
                        queued_at: [asked_at, now],
                        granted_at: [now; 2],
                    };
                    let ticket = grant.ticket;
                    let handler = disk.handling.insert(Handling { ticket, work });
                    disk.move_on(handler, &mut self.noise);
                    disk.ask(now, handler);
                }
            }
        }
    }
}
