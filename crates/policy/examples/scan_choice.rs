//! Prints how long scans take beside gets that are promised within 100 ms on one hard disk, over
//! the time that they take alone, by who chooses the next scan: the bound behind
//! `cake-consolidation-simulated`. Run with `cargo run --release -p entremet-policy --example
//! scan_choice`.
//!
//! Gets wait until the first of them is due and go as a group, as the controller has it; of all
//! margins the best is taken at which one get in 200 is late, as it is if 99 % are to be in time in
//! nearly every window of some hundred gets.

use policy::cost::device::Op;
use policy::device::{Device, Event, HddParameters, Io, Model};
use policy::Nanos;

#[path = "../tests/common/closed.rs"]
mod closed;
use closed::Dice;

const SPAN_BYTES: u64 = 5_000_000_000;
const SCAN_BYTES: u64 = 4 << 20;
const GET_BYTES: u64 = 8 << 10;
/// Scans that wait at a disk: 64 scanners, four disks.
const WAITING: usize = 16;
const PROMISED_NS: Nanos = 100_000_000;
const RUN_NS: Nanos = 300_000_000_000;
const LATE_PART: f64 = 0.005;

/// Who says which scan is next.
#[derive(Clone, Copy)]
enum Choice {
    InOrder,
    Distance,
    /// By time, angle included: it is tried out on a copy of the disk.
    Time,
}

struct World {
    dice: Dice,
    device: Device,
    now: Nanos,
    /// Behind the last I/O.
    head: u64,
    scans: Vec<Io>,
    done: u64,
}

fn ends_at(device: &mut Device, now: Nanos) -> Nanos {
    let mut at = now;
    loop {
        match device.next(at) {
            Event::At(later) => at = later,
            Event::Done { at, .. } => return at,
            Event::Idle => panic!("something is outstanding"),
        }
    }
}

impl World {
    fn io(&mut self, bytes: u64) -> Io {
        self.dice.io(Op::Read, bytes, SPAN_BYTES)
    }

    fn would_end_at(&self, io: Io) -> Nanos {
        let mut copy = self.device.clone();
        copy.submit(self.now, 0, io);
        ends_at(&mut copy, self.now)
    }

    fn next_scan(&self, choice: Choice) -> usize {
        let numbered = self.scans.iter().enumerate();
        let least = match choice {
            Choice::InOrder => None,
            Choice::Distance => numbered.min_by_key(|(_, io)| io.offset.abs_diff(self.head)),
            Choice::Time => numbered.min_by_key(|(_, io)| self.would_end_at(**io)),
        };
        least.map_or(0, |(number, _)| number)
    }

    fn scan(&mut self, choice: Choice) {
        let number = self.next_scan(choice);
        let io = self.scans.remove(number);
        self.device.submit(self.now, 0, io);
        self.now = ends_at(&mut self.device, self.now);
        self.head = io.offset + io.bytes;
        self.done += 1;
        let another = self.io(SCAN_BYTES);
        self.scans.push(another);
    }

    /// All at once: the disk orders them. Returns how many were late.
    fn group(&mut self, came_at: &[Nanos]) -> u64 {
        for tag in 0..came_at.len() as u64 {
            let io = self.io(GET_BYTES);
            self.device.submit(self.now, tag, io);
        }
        let mut late = 0;
        while self.device.outstanding() > 0 {
            match self.device.next(self.now) {
                Event::At(at) => self.now = at,
                Event::Done { tag, at } => {
                    late += u64::from(at > came_at[tag as usize] + PROMISED_NS);
                }
                Event::Idle => break,
            }
        }
        late
    }
}

/// Scans a second, and the part of the gets that was late.
fn beside(gets_per_s: f64, margin_ns: Nanos, choice: Choice) -> (f64, f64) {
    let mut world = World {
        dice: Dice::new(1),
        device: Device::new(&Model::Hdd(HddParameters::default()), 1),
        now: 0,
        head: 0,
        scans: Vec::new(),
        done: 0,
    };
    world.scans = (0..WAITING).map(|_| world.io(SCAN_BYTES)).collect();
    let mut arrivals = Dice::new(2);
    let mut gap_ns = || {
        let unit = (1 + arrivals.below(1 << 32)) as f64 / (1u64 << 32) as f64;
        (-unit.ln() / gets_per_s * 1e9).min(RUN_NS as f64) as Nanos
    };
    let (mut waiting, mut next_at) = (Vec::new(), gap_ns());
    let (mut gets, mut late) = (0, 0);
    while world.now < RUN_NS {
        while next_at <= world.now {
            waiting.push(next_at);
            next_at += gap_ns();
        }
        let due_at = waiting.first().map(|first| first + PROMISED_NS - margin_ns);
        if due_at.is_some_and(|due_at| due_at <= world.now) {
            gets += waiting.len();
            late += world.group(&std::mem::take(&mut waiting));
        } else {
            world.scan(choice);
        }
    }
    let late_part = late as f64 / gets.max(1) as f64;
    (world.done as f64 * 1e9 / world.now as f64, late_part)
}

fn main() {
    // As the disk orders them by itself, with all of them out.
    let alone_per_s = beside(0.0, 0, Choice::Time).0;
    println!(
        "{:>8} {:>9} {:>9} {:>9}",
        "gets/s", "in order", "distance", "time"
    );
    for gets_per_s in [0.0, 5.15, 16.5, 25.75] {
        print!("{gets_per_s:>8}");
        for choice in [Choice::InOrder, Choice::Distance, Choice::Time] {
            let margins = (40..=90).step_by(5).map(|ms| ms * 1_000_000);
            let runs = margins.map(|margin_ns| beside(gets_per_s, margin_ns, choice));
            let kept = runs.filter(|(_, late_part)| *late_part <= LATE_PART);
            let best = kept.map(|(per_s, _)| per_s).fold(0.0, f64::max);
            print!(" {:>9.3}", alone_per_s / best);
        }
        println!();
    }
}
