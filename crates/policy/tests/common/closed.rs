//! Workers that each keep one I/O outstanding at an emulated device.
#![allow(dead_code, reason = "each user takes its part")]

use policy::cost::device::{CostModel, Op};
use policy::device::{Device, Event, Io, Model};
use policy::generator::Generator;
use policy::Nanos;

/// Numbers that look random, the same in every run.
pub struct Dice(Generator);

impl Dice {
    pub fn new(seed: u64) -> Dice {
        Dice(Generator::new(seed))
    }

    pub fn below(&mut self, end: u64) -> u64 {
        self.0.below(end)
    }

    /// An I/O somewhere in the first `span` bytes, aligned to 4 KiB.
    pub fn io(&mut self, op: Op, bytes: u64, span: u64) -> Io {
        let offset = self.below(span >> 12) << 12;
        Io { op, offset, bytes }
    }
}

/// What was done after warming up.
#[derive(Clone, Copy, Debug, Default)]
pub struct Done {
    pub ios: u64,
    pub bytes: u64,
    pub ns: Nanos,
    pub latency_ns: u64,
    pub latency_ns_max: u64,
    pub vops: f64,
}

impl Done {
    pub fn per_s(&self) -> f64 {
        self.ios as f64 * 1e9 / self.ns as f64
    }

    pub fn bytes_per_s(&self) -> f64 {
        self.bytes as f64 * 1e9 / self.ns as f64
    }

    pub fn mean_ns(&self) -> f64 {
        self.latency_ns as f64 / self.ios as f64
    }

    pub fn vops_per_s(&self) -> f64 {
        self.vops * 1e9 / self.ns as f64
    }
}

/// `workers` workers ask for I/Os by `ask(worker)` until `ios` are done; the first third only warms
/// up.
pub fn closed(
    model: &Model,
    workers: usize,
    ios: u64,
    costs: Option<&CostModel>,
    mut ask: impl FnMut(usize) -> Io,
) -> Done {
    let mut device = Device::new(model, 7);
    let mut asked: Vec<(Nanos, Io)> = Vec::new();
    for worker in 0..workers {
        asked.push((0, ask(worker)));
        device.submit(0, worker as u64, asked[worker].1);
    }
    let (mut now, mut done, mut all, mut warm) = (0, Done::default(), 0, 0);
    while all < ios {
        match device.next(now) {
            Event::At(at) => {
                assert!(at > now, "time goes on");
                now = at;
            }
            Event::Idle => panic!("workers wait for nothing"),
            Event::Done { tag, at } => {
                assert_eq!(at, now, "nothing is reported late");
                let (since, io) = asked[tag as usize];
                all += 1;
                if all == ios / 3 {
                    warm = now;
                } else if all > ios / 3 {
                    done.ios += 1;
                    done.bytes += io.bytes;
                    done.latency_ns += now - since;
                    done.latency_ns_max = done.latency_ns_max.max(now - since);
                    done.vops += costs.map_or(0.0, |costs| costs.cost(io.op, io.bytes).get());
                }
                asked[tag as usize] = (now, ask(tag as usize));
                device.submit(now, tag, asked[tag as usize].1);
            }
        }
    }
    done.ns = now - warm;
    done
}
