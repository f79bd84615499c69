//! The real disk as an arena: a thread for every request that tenants keep outstanding, before the
//! stage that ships.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use device::contest::{Arena, Got, StageOptions, Tenant};
use device::{with_buffer, DeviceError, Dice, Disk};
use policy::cost::device::Vop;
use stage::blocking::Blocking;
use stage::{Allocation, Clock, Cost, Nanos, PrincipalId};

/// The part of a slice that only warms up: the device's write cache fills, and who waits is known.
const WARM_UP: u32 = 4;

impl Arena for RealDisk {
    fn contest(
        &self,
        stage: &StageOptions,
        tenants: &[Tenant],
        slice: Duration,
        seed: u64,
    ) -> Result<Vec<Got>, DeviceError> {
        let clock = Real(Instant::now());
        let contest = Contest {
            disk: &self.0,
            stage,
            queue: &Blocking::new(stage.dispatch(), clock),
            from: clock.0 + slice / WARM_UP,
            until: clock.0 + slice / WARM_UP + slice,
        };
        let done: Vec<Done> = tenants.iter().map(|_| Done::default()).collect();
        std::thread::scope(|scope| {
            let mut workers = Vec::new();
            for (number, (tenant, done)) in (0..).zip(tenants.iter().zip(&done)) {
                let principal = PrincipalId(number);
                (contest.queue).configure(principal, &Allocation::share(1.0));
                for worker in 0..tenant.workers {
                    let dice = Dice::new(seed << 32 | u64::from(number) << 16 | worker as u64);
                    let contest = &contest;
                    workers.push(scope.spawn(move || contest.work(principal, tenant, dice, done)));
                }
            }
            workers.into_iter().try_for_each(|worker| {
                worker
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            })
        })?;
        let per_s = 1.0 / slice.as_secs_f64();
        let got = |done: Done| Got {
            per_s: done.requests.into_inner() as f64 * per_s,
            vop_per_s: Vop(done.vops.into_inner()).get() * per_s,
        };
        Ok(done.into_iter().map(got).collect())
    }
}

/// A disk that threads share.
pub(super) struct RealDisk(pub(super) Disk);

#[derive(Clone, Copy)]
struct Real(Instant);

impl Clock for Real {
    fn now(&self) -> Nanos {
        self.0.elapsed().as_nanos() as Nanos
    }
}

/// What a tenant did after warming up.
#[derive(Default)]
struct Done {
    requests: AtomicU64,
    vops: AtomicU64,
}

struct Contest<'a> {
    disk: &'a Disk,
    stage: &'a StageOptions<'a>,
    queue: &'a Blocking<1, Real>,
    from: Instant,
    until: Instant,
}

impl Contest<'_> {
    /// One request after the other, each in pieces as the hook under RocksDB cuts them.
    fn work(
        &self,
        principal: PrincipalId,
        tenant: &Tenant,
        mut dice: Dice,
        done: &Done,
    ) -> Result<(), DeviceError> {
        with_buffer(self.stage.chunk_bytes, |buffer| {
            while Instant::now() < self.until {
                let (op, bytes) = tenant.request(&mut dice);
                let mut left = bytes.next_multiple_of(self.disk.smallest_bytes());
                while left > 0 {
                    let bytes = left.min(self.stage.chunk_bytes);
                    // Nobody is removed, and a queue is longer than a tenant has workers.
                    let Ok(entry) = self.queue.admit(principal, 0) else {
                        return Ok(());
                    };
                    self.disk.io(op, &mut buffer[..bytes as usize], &mut dice)?;
                    let price = self.stage.costs.cost(op, bytes);
                    self.queue.settle(entry.permit, Cost([price.0]));
                    left -= bytes;
                    self.count(&done.vops, price.0);
                }
                self.count(&done.requests, 1);
            }
            Ok(())
        })
    }

    fn count(&self, counter: &AtomicU64, by: u64) {
        let now = Instant::now();
        if now >= self.from && now < self.until {
            counter.fetch_add(by, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use device::contest::Sizes;
    use device::{calibrate, EmulatedDisk};
    use policy::cost::device::{CostModel, Op, Rule};
    use policy::device::{Model, SsdParameters};

    #[test]
    fn tenants_share_a_disk_and_a_request_in_pieces_counts_once() {
        let folder = tempfile::tempdir().expect("folder");
        let disk = match Disk::open(folder.path(), 64 << 20, Default::default(), &mut |_| {}) {
            Ok(disk) => RealDisk(disk),
            // A file system that cannot bypass the page cache.
            Err(DeviceError::Unfit { .. }) => return,
            Err(error) => panic!("{error}"),
        };
        let mut emulated = EmulatedDisk::new(Model::Ssd(SsdParameters::default()));
        let plan = emulated.plan();
        let measured = calibrate(&mut emulated, &plan, &mut |_, _| {}).expect("calibrated");
        let costs = CostModel::new(Rule::Exact, &measured.calibration().expect("prices"));
        let stage = StageOptions {
            costs: &costs,
            floor_per_s: measured.floor_per_s,
            depth: 2,
            chunk_bytes: 16 << 10,
        };
        let tenant = Tenant {
            workers: 2,
            reads_percent: 100,
            read: Sizes::of(64 << 10),
            write: Sizes::of(64 << 10),
        };
        let whole = 4.0 * costs.cost(Op::Read, 16 << 10).get();
        // In one or the other the machine may have been busy elsewhere.
        let good = (0..100).any(|seed| {
            let got = disk.contest(&stage, &[tenant; 2], Duration::from_millis(50), seed);
            got.expect("no I/O fails").iter().all(|got| {
                let price = got.vop_per_s / got.per_s;
                got.per_s > 0.0 && (0.8..1.25).contains(&(price / whole))
            })
        });
        assert!(good);
    }
}
