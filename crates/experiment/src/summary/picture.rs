//! The picture of all targets: a row for each experiment, a mark for each target, as far from the
//! line in the middle as its bound is met or missed.

use std::fmt::Write as _;

use super::Row;
use crate::report::escape;

/// Beyond this factor marks stand at the edge.
const FACTOR_MAX: f64 = 4.0;
const LEFT: f64 = 250.0;
const WIDTH: f64 = 560.0;
const ROW: f64 = 18.0;
const TOP: f64 = 46.0;
/// Marks that would lie on one another stand so far above one another.
const APART: f64 = 3.0;

/// Where a factor lies.
fn x(margin: f64) -> f64 {
    let part = margin.ln() / FACTOR_MAX.ln();
    LEFT + WIDTH / 2.0 * (1.0 + part.clamp(-1.0, 1.0))
}

/// The whole picture, which needs nothing else.
pub(super) fn of(rows: &[Row]) -> String {
    let ran: Vec<&Row> = rows.iter().filter(|row| row.result.is_some()).collect();
    let (width, height) = (LEFT + WIDTH + 40.0, TOP + ROW * ran.len() as f64 + 12.0);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" role=\"img\">\n\
         <title>How far each target is from its bound</title>\n<style>\
         text {{ font: 12px system-ui, sans-serif; fill: #57606a }} line {{ stroke: #8c959f; stroke-opacity: .5 }}\
         .met {{ fill: #1a7f4b }} .missed {{ fill: #cf222e }} .open {{ fill: none; stroke: #8c959f }}</style>\n"
    );
    for (factor, label) in [
        (0.25, "missed by 4"),
        (0.5, "2"),
        (1.0, "the bound"),
        (2.0, "2"),
        (4.0, "met by 4"),
    ] {
        let (at, bottom) = (x(factor), height - 8.0);
        let dash = if factor == 1.0 {
            ""
        } else {
            " stroke-dasharray=\"2 4\""
        };
        let _ = writeln!(
            svg,
            "<line x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"30\" y2=\"{bottom:.1}\"{dash}/>\
             <text x=\"{at:.1}\" y=\"22\" text-anchor=\"middle\">{label}</text>"
        );
    }
    for (index, row) in ran.into_iter().enumerate() {
        let y = TOP + ROW * index as f64;
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            LEFT - 12.0,
            y + 4.0,
            escape(&row.name)
        );
        marks(&mut svg, row, y);
    }
    svg + "</svg>\n"
}

/// The targets of one experiment.
fn marks(svg: &mut String, row: &Row, y: f64) {
    let mut places: Vec<f64> = Vec::new();
    for line in row.result.iter().flat_map(super::Outcome::targets) {
        let class = match line.word.as_str() {
            "pass" => "met",
            "MISS" => "missed",
            _ => "open",
        };
        // A bound of zero is met or not, by no factor.
        let edge = if class == "missed" {
            1.0 / FACTOR_MAX
        } else {
            1.0
        };
        let at = x(line.margin().unwrap_or(edge));
        let beside = places.iter().filter(|other| (*other - at).abs() < 4.0);
        let up = APART * (beside.count() % 4) as f64;
        places.push(at);
        let _ = writeln!(
            svg,
            "<circle class=\"{class}\" cx=\"{at:.1}\" cy=\"{:.1}\" r=\"3.5\" fill-opacity=\".75\"><title>{}</title></circle>",
            y - up + 3.0,
            escape(&format!("{}: {}", line.word, line.target))
        );
    }
}
