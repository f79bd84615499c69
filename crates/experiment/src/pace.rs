//! How fast a server was from moment to moment, as a simulator's scenario has it.

use toml::{Table, Value};
use workload::stats::{Pace, WINDOW_NS};

/// Faults of the first node that make it as much slower or faster than its mean as the server was in each window. They are
/// told twice, one after the other: the first begins with the warm-up, in which nothing was counted.
pub fn faults(pace: &Pace) -> Value {
    let windows = pace.windows();
    let mean = windows.iter().map(|count| f64::from(*count)).sum::<f64>() / windows.len() as f64;
    let twice = windows.iter().chain(windows).zip(0u64..);
    let faults = twice.map(|(count, place)| {
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
        let pace = Pace::from_iter([2, 0, 4]);
        let told = faults(&pace);
        let told = told.as_array().expect("a list");
        assert_eq!(told.len(), 6);
        let slow: Vec<_> = told
            .iter()
            .map(|fault| fault.get("slow").and_then(Value::as_float))
            .collect();
        assert_eq!(slow[..3], [Some(1.0), None, Some(0.5)]);
        assert_eq!(slow[3..], slow[..3]);
        assert_eq!(told[4]["at"].as_str(), Some("20000000ns"));
        assert_eq!(told[4]["length"].as_str(), Some("5000000ns"));
    }
}
