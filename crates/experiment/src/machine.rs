//! Whether the machine is quiet enough for figures to mean something.

/// What a run itself adds to the load average beyond one process for each processor.
const OWN: f64 = 0.5;

/// The load average of the last minute (Linux); `None` where the system does not say.
pub fn load_average() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/loadavg").ok()?;
    text.split_whitespace().next()?.parse().ok()
}

/// What to know when more wants to run than the machine has processors for.
pub fn note(load_average: f64, processors: usize) -> Option<String> {
    (load_average > processors as f64 + OWN).then(|| {
        format!(
            "the machine was busy with something else (load average {load_average:.1}, {processors} processors): \
             neither rates nor latencies mean much"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_machine_is_told() {
        assert_eq!(note(2.3, 2), None);
        assert!(note(2.6, 2)
            .expect("busy")
            .contains("load average 2.6, 2 processors"));
    }
}
