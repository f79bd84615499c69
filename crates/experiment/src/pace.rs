//! How fast a server was from moment to moment, as a simulator's scenario has it.

use toml::{Table, Value};
use workload::stats::{Pace, WINDOW_NS};

/// Faults of the first node that make it as much slower or faster than its mean as the server was
/// in each window. In the warm-up, in which nothing was counted, it has its mean.
pub fn faults(pace: &Pace) -> Value {
    let windows = pace.windows();
    let mean = windows.iter().map(|count| f64::from(*count)).sum::<f64>() / windows.len() as f64;
    let faults = windows.iter().zip(0u64..).map(|(count, place)| {
        let ns = |ns: u64| Value::String(format!("{ns}ns"));
        let mut fault = Table::from_iter([
            ("node".to_string(), Value::Integer(0)),
            ("at".to_string(), ns(place * WINDOW_NS)),
            ("length".to_string(), ns(WINDOW_NS)),
        ]);
        // One in which it answered nothing stays without: the node does nothing at all.
        if *count > 0 {
            fault.insert("slow".into(), Value::Float(mean / f64::from(*count)));
        }
        Value::Table(fault)
    });
    Value::Array(faults.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_slow_by_what_it_answered_less_than_the_mean() {
        let told = faults(&Pace::from_iter([2, 0, 4]));
        let told = told.as_array().expect("a list");
        let slow: Vec<_> = told
            .iter()
            .map(|fault| fault.get("slow").and_then(Value::as_float))
            .collect();
        assert_eq!(slow, [Some(1.0), None, Some(0.5)]);
        assert_eq!(told[2]["at"].as_str(), Some("10000000ns"));
        assert_eq!(told[2]["length"].as_str(), Some("5000000ns"));
    }
}
