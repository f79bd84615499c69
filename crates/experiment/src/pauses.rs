//! How often and for how long a machine takes a processor away: a program that does nothing but read the clock sees it.

use std::collections::BTreeMap;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use toml::{Table, Value};

use crate::error::ExperimentError;
use crate::server::pin::{self, Places};

/// Shorter ones, a kernel's ticks among them, count as work of the program that they interrupt.
const SHORTEST_NS: u64 = 100_000;

/// Looks at the processors of server and load at the same time. Pauses come back as a simulator's scenario has them: one for
/// each doubling of length at nodes and senders.
///
/// # Errors
/// [`ExperimentError::System`] where a thread cannot be moved to its processor.
pub fn measure(places: &Places, length: Duration) -> Result<Value, ExperimentError> {
    let looks = [("nodes", &places.server), ("senders", &places.load)];
    let threads = looks.map(|(of, cores)| (of, watch(cores.clone(), length)));
    let mut all = Vec::new();
    for (of, thread) in threads {
        let gaps = match thread.join() {
            Ok(gaps) => gaps?,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        all.extend(pauses(of, &gaps, length));
    }
    Ok(Value::Array(all))
}

/// A thread on a processor that reads the clock, and tells the gaps between two readings, ns.
fn watch(cores: Vec<usize>, length: Duration) -> JoinHandle<Result<Vec<u64>, ExperimentError>> {
    std::thread::spawn(move || {
        pin::to(&cores)?;
        let begun = Instant::now();
        let (mut gaps, mut last) = (Vec::new(), Duration::ZERO);
        while last < length {
            let now = begun.elapsed();
            let gap_ns = (now - last).as_nanos() as u64;
            if gap_ns >= SHORTEST_NS {
                gaps.push(gap_ns);
            }
            last = now;
        }
        Ok(gaps)
    })
}

/// Gaps by doublings of length, each as often as it was and of its mean length.
fn pauses(of: &str, gaps: &[u64], looked: Duration) -> Vec<Value> {
    let mut doublings: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
    for gap_ns in gaps {
        let (count, sum_ns) = doublings.entry(gap_ns.ilog2()).or_default();
        (*count, *sum_ns) = (*count + 1, *sum_ns + gap_ns);
    }
    let one = |(count, sum_ns): &(u64, u64)| {
        let ns = |ns: u64| Value::String(format!("{ns}ns"));
        let every_ns = looked.as_nanos() as u64 / count;
        Value::Table(Table::from_iter([
            ("of".to_string(), Value::String(of.into())),
            ("every".to_string(), ns(every_ns)),
            ("length".to_string(), ns(sum_ns / count)),
        ]))
    };
    doublings.values().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_become_pauses_by_doublings() {
        let gaps = [100_000, 120_000, 4_000_000];
        let found = pauses("nodes", &gaps, Duration::from_secs(3));
        let text = |pause: &Value, key: &str| pause[key].as_str().map(str::to_string);
        let told: Vec<_> = found
            .iter()
            .map(|pause| (text(pause, "every"), text(pause, "length")))
            .collect();
        let wanted = |every: &str, length: &str| (Some(every.into()), Some(length.into()));
        assert_eq!(
            told,
            [
                wanted("1500000000ns", "110000ns"),
                wanted("3000000000ns", "4000000ns")
            ]
        );
    }
}
