//! The curves and the interference, drawn with characters.

use crate::calibrate::{Measured, Mix, Seen};
use policy::cost::device::{CostModel, Rule};
use std::fmt::Write as _;

const BAR: usize = 40;
/// From little to much.
const SHADES: [char; 10] = [' ', '.', ':', '-', '=', '+', '*', '#', '%', '@'];

/// `1 KiB`, `64 KiB`, `1 MiB`.
fn size(bytes: u64) -> String {
    if bytes >= 1 << 20 && bytes % (1 << 20) == 0 {
        format!("{} MiB", bytes >> 20)
    } else if bytes >= 1 << 10 && bytes % (1 << 10) == 0 {
        format!("{} KiB", bytes >> 10)
    } else {
        format!("{bytes} B")
    }
}

/// Rates and prices by size (thesis fig. 6.4 and 6.7), and a shaded square of the VOP rates for
/// each mix (fig. 6.5), with the floor. Widths of up to 100 columns.
#[must_use]
pub fn plot(measured: &Measured) -> String {
    let Ok(calibration) = measured.calibration() else {
        return String::new();
    };
    let costs = CostModel::new(Rule::Exact, &calibration);
    let max = costs.max_per_s();
    let mut text = String::new();
    // Writing to a string cannot fail.
    for (op, rates) in [
        (policy::cost::device::Op::Read, &measured.read),
        (policy::cost::device::Op::Write, &measured.write),
    ] {
        let _ = writeln!(
            text,
            "{:>8}  {:>9} {:>8} {:>7} {:>7}",
            op.name(),
            "a second",
            "MB/s",
            "spread",
            "VOP"
        );
        for rate in rates {
            let bar = "█".repeat(((rate.per_s / max * BAR as f64).round() as usize).max(1));
            let _ = writeln!(
                text,
                "{:>8}  {:>9.0} {:>8.1} {:>6.1}% {:>7.2}  {bar}",
                size(rate.bytes),
                rate.per_s,
                rate.per_s * rate.bytes as f64 / 1e6,
                100.0 * rate.spread,
                costs.cost(op, rate.bytes).get(),
            );
        }
        text.push('\n');
    }
    let mut mixes: Vec<Mix> = Vec::new();
    for seen in &measured.seen {
        if !mixes.contains(&seen.load.mix) {
            mixes.push(seen.load.mix);
        }
    }
    let _ = writeln!(
        text,
        "VOP/s with reads and writes together, of {max:.0} (columns: sizes written, rows: sizes read; {} 0 to 100 % {})",
        SHADES[1],
        SHADES[SHADES.len() - 1]
    );
    for mix in mixes {
        square(&mut text, measured, mix, max);
    }
    least(&mut text, measured);
    let _ = writeln!(
        text,
        "floor {:.0} VOP/s ({:.0} % of {max:.0}), depth {}, chunk {}",
        measured.floor_per_s,
        100.0 * measured.floor_per_s / max,
        measured.depth,
        size(measured.chunk_bytes),
    );
    text
}

/// Where the bottom of the valley is.
fn least(text: &mut String, measured: &Measured) {
    let least = measured
        .seen
        .iter()
        .min_by(|a, b| a.vop_per_s.total_cmp(&b.vop_per_s));
    if let Some(Seen { load, vop_per_s }) = least {
        let mix = match load.mix {
            Mix::Halves => "half and half".to_owned(),
            Mix::Reads(percent) => format!("{percent} % reads"),
        };
        let (read, write) = (size(load.read_bytes), size(load.write_bytes));
        let _ = writeln!(
            text,
            "\nleast {vop_per_s:.0} VOP/s: reads of {read}, writes of {write}, {mix}"
        );
    }
}

/// The sweep of a mix. Behind it are the loads on the way to the bottom of the valley, which fill
/// no square.
fn square(text: &mut String, measured: &Measured, mix: Mix, max: f64) {
    let seen = measured.seen.iter().filter(|seen| seen.load.mix == mix);
    let seen: Vec<_> = seen.collect();
    let same_read = |one: &&&Seen| one.load.read_bytes == seen[0].load.read_bytes;
    let columns = seen.iter().take_while(same_read).count();
    let in_square = |row: &[&Seen], at: usize| {
        let (one, head) = (&row[at].load, &seen[at].load);
        one.read_bytes == row[0].load.read_bytes && one.write_bytes == head.write_bytes
    };
    let whole = |row: &&[&Seen]| row.len() == columns && (0..columns).all(|at| in_square(row, at));
    let rows = seen.chunks(columns.max(1)).take_while(whole);
    if columns < 2 {
        return;
    }
    let _ = match mix {
        Mix::Halves => writeln!(text, "\n  half of the workers read, half write"),
        Mix::Reads(percent) => writeln!(text, "\n  {percent} % reads"),
    };
    for row in rows {
        let _ = write!(text, "{:>9}  ", size(row[0].load.read_bytes));
        for seen in row {
            let part = (seen.vop_per_s / max).clamp(0.0, 1.0);
            let shade = SHADES[(part * (SHADES.len() - 1) as f64).round() as usize];
            let percent = 100.0 * seen.vop_per_s / max;
            let _ = write!(text, "{shade}{shade}{percent:>4.0}% ");
        }
        text.push('\n');
    }
}
