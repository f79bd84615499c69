//! Rein's simulated experiments: prints verdicts and writes `result.json`.
//!
//! `cargo run --release -p entremet-sim --example rein -- [rein-sim|rein-sensitivity|rein-synthetic] [SEEDS] [SECONDS] [OUT]`

use sim::rein::{figure_11, figure_14, figure_8, Effort};
use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, default: f64| {
        words
            .get(at)
            .and_then(|w| w.parse().ok())
            .unwrap_or(default)
    };
    let effort = Effort {
        seed: 1,
        seeds: number(1, 6.0) as u64,
        duration_ns: (number(2, 10.0) * 1e9) as u64,
    };
    let report = match words.first().map(String::as_str) {
        Some("rein-sim") => figure_14(&effort),
        Some("rein-sensitivity") => figure_8(&effort),
        Some("rein-synthetic") => figure_11(&effort),
        _ => {
            eprintln!("name one of rein-sim, rein-sensitivity, rein-synthetic");
            return ExitCode::from(2);
        }
    };
    print!("{}", report.lines());
    let text = match serde_json::to_string_pretty(&report) {
        Ok(text) => text,
        Err(error) => {
            eprintln!("the result cannot be written as JSON: {error}");
            return ExitCode::FAILURE;
        }
    };
    match words.get(3) {
        None => println!("{text}"),
        Some(path) => {
            if let Err(error) = std::fs::write(path, text) {
                eprintln!("cannot write {path}: {error}");
                return ExitCode::FAILURE;
            }
        }
    }
    ExitCode::SUCCESS
}
