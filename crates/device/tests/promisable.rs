//! What the interference sweep of the emulated SSD promises to mixes that it did not measure.

use device::{calibrate, EmulatedDisk, Measured};
use policy::cost::device::{CostModel, Flow, Mix, Op, Sweep};
use policy::device::{Device, Event, Io, Model};
use policy::generator::Generator;

const MIXES: usize = 100;
/// An SSD has found its pace after this, and is watched until then.
const WARM_NS: u64 = 3_000_000_000;
const UNTIL_NS: u64 = 5_000_000_000;
const SPAN_PAGES: u64 = 1 << 22;

/// I/Os of one size: what they do, their bytes, and their part of all VOPs.
type Part = (Op, u64, f64);

fn part(random: &mut Generator) -> f64 {
    random.below(1001) as f64 / 1000.0
}

/// Reads and writes as a store does them: requests of one size, and flushes and compactions in
/// pieces.
fn any(random: &mut Generator, piece: u64) -> [Part; 4] {
    let size = |random: &mut Generator| 4096u64 << random.below(5);
    let reads = 0.002 + 0.996 * part(random);
    let (get, log) = (size(random), size(random));
    let (compacted, flushed) = (part(random) / 2.0, part(random));
    [
        (Op::Read, get, reads * (1.0 - compacted)),
        (Op::Read, piece, reads * compacted),
        (Op::Write, log, (1.0 - reads) * (1.0 - flushed)),
        (Op::Write, piece, (1.0 - reads) * flushed),
    ]
}

fn mix(parts: &[Part], costs: &CostModel) -> Mix {
    let flow = |wanted| {
        let own = parts.iter().filter(|part| part.0 == wanted);
        own.fold(Flow::default(), |flow, &(op, bytes, vops)| {
            let ios = vops / costs.cost(op, bytes).get();
            Flow {
                ios: flow.ios + ios,
                bytes: flow.bytes + ios * bytes as f64,
                vops: flow.vops + vops,
            }
        })
    };
    Mix {
        reads: flow(Op::Read),
        writes: flow(Op::Write),
        ..Mix::default()
    }
}

/// VOPs a second of such I/Os, as many outstanding at a time.
fn done(model: &Model, parts: &[Part], costs: &CostModel, depth: usize, seed: u64) -> f64 {
    let mut random = Generator::new(seed);
    let ios: Vec<f64> = parts
        .iter()
        .map(|(op, bytes, vops)| vops / costs.cost(*op, *bytes).get())
        .collect();
    let all: f64 = ios.iter().sum();
    let mut next = || {
        let mut at = random.below(1 << 30) as f64 / f64::from(1 << 30) * all;
        let chosen = ios.iter().position(|ios| {
            at -= ios;
            at < 0.0
        });
        let (op, bytes, _) = parts[chosen.unwrap_or(0)];
        let offset = random.below(SPAN_PAGES) << 12;
        Io { op, offset, bytes }
    };
    let mut device = Device::new(model, seed);
    let mut asked: Vec<Io> = (0..depth).map(|_| next()).collect();
    for (tag, io) in (0..).zip(&asked) {
        device.submit(0, tag, *io);
    }
    let (mut now, mut vops) = (0, 0.0);
    while now < UNTIL_NS {
        match device.next(now) {
            Event::At(at) => now = at,
            Event::Idle => break,
            Event::Done { tag, .. } => {
                let slot = &mut asked[tag as usize];
                if now >= WARM_NS {
                    vops += costs.cost(slot.op, slot.bytes).get();
                }
                *slot = next();
                device.submit(now, tag, *slot);
            }
        }
    }
    vops * 1e9 / (UNTIL_NS - WARM_NS) as f64
}

/// What is promised of what is done, least first.
fn promised(measured: &Measured, sweep: &Sweep, model: &Model) -> Vec<f64> {
    let costs = measured.costs().expect("rates");
    let mut random = Generator::new(7);
    let ratio = |seed| {
        let parts = any(&mut random, measured.chunk_bytes);
        let promised = sweep.promisable_per_s(&mix(&parts, &costs));
        promised / done(model, &parts, &costs, measured.depth, seed)
    };
    let mut ratios: Vec<f64> = (0..MIXES as u64).map(ratio).collect();
    ratios.sort_by(f64::total_cmp);
    ratios
}

fn part_of(ratios: &[f64], wanted: impl Fn(f64) -> bool) -> f64 {
    ratios.iter().filter(|ratio| wanted(**ratio)).count() as f64 / ratios.len() as f64
}

#[test]
fn mixes_between_the_loads_of_the_sweep_have_what_they_were_promised() {
    let mut disk = EmulatedDisk::named("ssd").expect("an SSD");
    let plan = disk.plan();
    let measured = calibrate(&mut disk, &plan, &mut |_, _| {}).expect("measured");
    let costs = measured.costs().expect("rates");
    let ratios = promised(&measured, &measured.sweep(&costs), disk.model());
    let kept = part_of(&ratios, |ratio| ratio <= 1.0);
    let worth_it = part_of(&ratios, |ratio| ratio >= 0.75);
    assert!(
        kept >= 0.95 && worth_it >= 0.85,
        "{kept} {worth_it} {ratios:.2?}"
    );
    assert!(ratios[MIXES - 1] < 1.4, "{ratios:.2?}");
    let floor = promised(&measured, &Sweep::floor(measured.floor_per_s), disk.model());
    let worth_it = part_of(&floor, |ratio| ratio >= 0.75);
    assert!(worth_it < 0.5, "the floor alone: {worth_it}");
}
