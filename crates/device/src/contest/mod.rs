//! Tenants that share a device: the dispatch that ships decides, by the prices that ship.
//!
//! The thesis measures cost models and interference on raw I/O below its key-value store (6.2.3,
//! 7.2): tenants that always have requests waiting, before one scheduler, over one SSD. Over an
//! emulated device all of it is computed, so a sweep over sizes and mixes repeats to the last I/O;
//! over a real one whoever has threads and the stage brings an [`Arena`].

mod sweep;

pub use sweep::{Pair, Sweep};

use crate::dice::Dice;
use crate::emulated::warm_up_ns;
use crate::{DeviceError, EmulatedDisk};
use policy::cost::device::{CostModel, Op, Vop};
use policy::device::{Device, Event};
use policy::dispatch::{Allocation, Dispatch, DispatchOptions, Next, Ticket};
use policy::{Cost, Nanos, PrincipalId};
use std::time::Duration;

/// Sizes of I/Os, log-normal around a mean; all alike if they do not spread.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sizes {
    /// Mean, bytes.
    pub mean_bytes: u64,
    /// Standard deviation, bytes.
    pub sigma_bytes: u64,
}

impl Sizes {
    /// All of one size.
    #[must_use]
    pub fn of(bytes: u64) -> Sizes {
        Sizes {
            mean_bytes: bytes,
            sigma_bytes: 0,
        }
    }

    /// Within the sizes that are calibrated.
    fn draw(&self, dice: &mut Dice) -> u64 {
        if self.sigma_bytes == 0 {
            return self.mean_bytes;
        }
        let (mean, sigma) = (self.mean_bytes as f64, self.sigma_bytes as f64);
        // Of the logarithm, so that the size itself has this mean and deviation.
        let variance = (sigma / mean).powi(2).ln_1p();
        let bytes = (mean.ln() - variance / 2.0 + variance.sqrt() * dice.normal()).exp();
        (bytes as u64).clamp(SIZE_MIN, SIZE_MAX)
    }
}

const SIZE_MIN: u64 = 1 << 10;
const SIZE_MAX: u64 = 1 << 20;

/// One tenant: workers that each keep one request outstanding.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tenant {
    /// How many requests it keeps outstanding.
    pub workers: usize,
    /// Part of its requests that read, in percent.
    pub reads_percent: u32,
    /// Sizes of its reads.
    pub read: Sizes,
    /// Sizes of its writes.
    pub write: Sizes,
}

/// What a tenant got, warming up left out.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Got {
    /// Whole requests a second.
    pub per_s: f64,
    /// What it was charged, VOPs a second.
    pub vop_per_s: f64,
}

impl Tenant {
    /// What it asks for next.
    pub fn request(&self, dice: &mut Dice) -> (Op, u64) {
        let (op, sizes) = if dice.below(100) < u64::from(self.reads_percent) {
            (Op::Read, self.read)
        } else {
            (Op::Write, self.write)
        };
        (op, sizes.draw(dice))
    }
}

/// How a device is used.
#[derive(Clone, Debug)]
pub struct StageOptions<'a> {
    /// What I/Os cost.
    pub costs: &'a CostModel,
    /// VOPs a second that are left when reads and writes mix badly.
    pub floor_per_s: f64,
    /// I/Os outstanding at the device.
    pub depth: u32,
    /// Larger requests are cut into pieces of this many bytes.
    pub chunk_bytes: u64,
}

/// A device before which tenants meet.
pub trait Arena {
    /// What tenants of equal shares get in `slice`, in their order.
    ///
    /// # Errors
    /// The device failed.
    fn contest(
        &self,
        stage: &StageOptions,
        tenants: &[Tenant],
        slice: Duration,
        seed: u64,
    ) -> Result<Vec<Got>, DeviceError>;
}

/// A request of a worker, of which some pieces are done.
struct Request {
    tenant: usize,
    op: Op,
    left: u64,
    /// The piece at the device.
    piece: u64,
    ticket: Option<Ticket>,
}

struct Contest<'a> {
    stage: &'a StageOptions<'a>,
    tenants: &'a [Tenant],
    dispatch: Dispatch<usize, 1>,
    device: Device,
    dice: Dice,
    warm_ns: Nanos,
    workers: Vec<Request>,
    done: Vec<(u64, Vop)>,
}

impl Arena for EmulatedDisk {
    fn contest(
        &self,
        stage: &StageOptions,
        tenants: &[Tenant],
        slice: Duration,
        seed: u64,
    ) -> Result<Vec<Got>, DeviceError> {
        let mut contest = Contest {
            stage,
            tenants,
            dispatch: Dispatch::new(stage.dispatch()),
            device: Device::new(self.model(), seed),
            dice: Dice::new(seed),
            warm_ns: warm_up_ns(self.model()),
            workers: Vec::new(),
            done: vec![Default::default(); tenants.len()],
        };
        contest.begin();
        contest.run(slice);
        let per_s = 1.0 / slice.as_secs_f64();
        let got = |(requests, vops): &(u64, Vop)| Got {
            per_s: *requests as f64 * per_s,
            vop_per_s: vops.get() * per_s,
        };
        Ok(contest.done.iter().map(got).collect())
    }
}

impl StageOptions<'_> {
    /// The dispatch before it.
    #[must_use]
    pub fn dispatch(&self) -> DispatchOptions<1> {
        DispatchOptions::device(self.costs, self.floor_per_s, self.depth, self.chunk_bytes)
    }
}

impl Contest<'_> {
    fn begin(&mut self) {
        for (tenant, told) in self.tenants.iter().enumerate() {
            let principal = PrincipalId(tenant as u32);
            self.dispatch
                .configure(0, principal, &Allocation::share(1.0));
            for _ in 0..told.workers {
                let request = self.request(tenant);
                self.workers.push(request);
                self.ask(0, self.workers.len() - 1);
            }
        }
    }

    fn request(&mut self, tenant: usize) -> Request {
        let (op, left) = self.tenants[tenant].request(&mut self.dice);
        Request {
            tenant,
            op,
            left,
            piece: 0,
            ticket: None,
        }
    }

    fn ask(&mut self, now: Nanos, worker: usize) {
        let principal = PrincipalId(self.workers[worker].tenant as u32);
        // A queue is longer than a tenant has workers, so nothing is refused.
        let _ = self.dispatch.enqueue(now, principal, worker);
    }

    fn run(&mut self, slice: Duration) {
        let until = self.warm_ns + slice.as_nanos() as Nanos;
        let mut now = 0;
        while now < until {
            while let Next::Grant(grant) = self.dispatch.next(now) {
                let request = &mut self.workers[grant.item];
                request.piece = request.left.min(self.stage.chunk_bytes);
                request.ticket = Some(grant.ticket);
                let io = self.dice.io(request.op, request.piece);
                self.device.submit(now, grant.item as u64, io);
            }
            match self.device.next(now) {
                Event::At(at) => now = at,
                Event::Idle => return,
                Event::Done { tag, .. } => self.end(now, tag as usize),
            }
        }
    }

    fn end(&mut self, now: Nanos, worker: usize) {
        let request = &mut self.workers[worker];
        let price = self.stage.costs.cost(request.op, request.piece);
        request.left -= request.piece;
        let (tenant, over) = (request.tenant, request.left == 0);
        if let Some(ticket) = request.ticket.take() {
            self.dispatch.settle(now, ticket, Cost([price.0]));
        }
        if now >= self.warm_ns {
            let (requests, vops) = &mut self.done[tenant];
            *requests += u64::from(over);
            *vops = vops.plus(price);
        }
        if over {
            self.workers[worker] = self.request(tenant);
        }
        self.ask(now, worker);
    }
}
