//! Prints what the emulated devices do, in the form in which it was published: rates by size
//! (thesis fig. 6.4), VOPs a second over sizes and mixes (fig. 6.5 and 6.6), and a hard disk by
//! queue depth. Run with `cargo run --release -p entremet-policy --example device_shapes`.

use policy::cost::device::{Calibration, CostModel, Curve, Op, Point, Rule};
use policy::device::{HddParameters, Model, SsdParameters};

#[path = "../tests/common/closed.rs"]
mod closed;
use closed::{closed, Dice};

const KIB: u64 = 1024;
const DEPTH: usize = 32;

fn curve(model: &Model, op: Op, span: u64) -> Curve {
    let rate = |power: u32| {
        let mut dice = Dice::new(1);
        let bytes = KIB << power;
        let done = closed(model, DEPTH, 40_000, None, |_| dice.io(op, bytes, span));
        Point {
            bytes,
            per_s: done.per_s(),
        }
    };
    Curve::levelled(op, &(0..=10).map(rate).collect::<Vec<_>>()).expect("a curve")
}

fn ssd() {
    let model = Model::Ssd(SsdParameters::default());
    let span = 64 << 30;
    let (read, write) = (
        curve(&model, Op::Read, span),
        curve(&model, Op::Write, span),
    );
    println!(
        "ssd, depth {DEPTH}, random\n{:>8} {:>9} {:>8} {:>9} {:>8}",
        "KiB", "reads/s", "MB/s", "writes/s", "MB/s"
    );
    for (r, w) in read.points().iter().zip(write.points()) {
        let mb = |point: &Point| point.per_s * point.bytes as f64 / 1e6;
        println!(
            "{:>8} {:>9.0} {:>8.1} {:>9.0} {:>8.1}",
            r.bytes / KIB,
            r.per_s,
            mb(r),
            w.per_s,
            mb(w)
        );
    }
    let costs = CostModel::new(
        Rule::Exact,
        &Calibration::new(read, write, 1e4, 1e4).expect("rates"),
    );
    for reads in [99, 75, 50, 25, 1] {
        println!(
            "\n{reads}:{} reads:writes, kVOP/s; across: KiB written, down: KiB read",
            100 - reads
        );
        let mut all = Vec::new();
        for read_power in 0..=8 {
            print!("{:>5}", 1 << read_power);
            for write_power in 0..=8 {
                let mut dice = Dice::new(3);
                let done = closed(&model, DEPTH, 40_000, Some(&costs), |_| {
                    let op = if dice.below(100) < reads {
                        Op::Read
                    } else {
                        Op::Write
                    };
                    let power = if op == Op::Read {
                        read_power
                    } else {
                        write_power
                    };
                    dice.io(op, KIB << power, span)
                });
                all.push(done.vops_per_s() / 1e3);
                print!("{:>6.1}", done.vops_per_s() / 1e3);
            }
            println!();
        }
        all.sort_by(f64::total_cmp);
        println!(
            "least {:.1}, median {:.1}, greatest {:.1}",
            all[0],
            all[all.len() / 2],
            all[all.len() - 1]
        );
    }
}

fn hdd() {
    let model = Model::Hdd(HddParameters::default());
    println!(
        "\nhard disk, random 4 KiB\n{:>6} {:>8} {:>9}",
        "depth", "reads/s", "mean ms"
    );
    for depth in [1, 2, 4, 8, 16, 32, 64] {
        let mut dice = Dice::new(5);
        let done = closed(&model, depth, 3_000, None, |_| {
            dice.io(Op::Read, 4 * KIB, 1_000_000_000_000)
        });
        println!(
            "{depth:>6} {:>8.1} {:>9.2}",
            done.per_s(),
            done.mean_ns() / 1e6
        );
    }
}

fn main() {
    ssd();
    hdd();
}
