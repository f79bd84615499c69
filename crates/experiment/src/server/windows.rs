//! In which windows promises were kept, by a server's count of them, sample by sample.

use std::collections::BTreeMap;

use super::told::Sample;
use crate::observed::kept;

/// Whether each window that ended between the first sample and the last kept the promise, in order,
/// by tenant: of the promise that was kept least. No run is longer than the hour that the server
/// counts over. Of windows that ended between two samples, those that were missed are taken for the
/// later ones.
pub(super) fn windows(samples: &[&Sample]) -> BTreeMap<String, Vec<bool>> {
    let mut least: BTreeMap<String, Vec<bool>> = BTreeMap::new();
    let [first, .., last] = samples else {
        return least;
    };
    for whose in last.told.windows.keys() {
        let counts = |sample: &Sample| sample.told.windows.get(whose).copied().unwrap_or_default();
        let (mut before, mut ended) = (counts(first), Vec::new());
        for sample in samples {
            let now = counts(sample);
            for (met, at) in [(true, 0), (false, 1)] {
                let new = (now[at] - before[at]).max(0.0) as usize;
                ended.extend(std::iter::repeat_n(met, new));
            }
            before = now;
        }
        let Some(part) = kept(&ended) else {
            continue;
        };
        let known = least.entry(whose[0].clone()).or_default();
        if kept(known).is_none_or(|known| part < known) {
            *known = ended;
        }
    }
    least
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::told::Told;
    use std::time::{Duration, Instant};

    #[test]
    fn windows_are_told_in_order_of_the_promise_that_is_kept_least() {
        let start = Instant::now();
        // Of two promises of one tenant, what was met and missed so far.
        let sample = |(at, [a, b]): (u64, [[u32; 2]; 2])| {
            let mut page = String::new();
            for (class, counts) in [("get", a), ("any", b)] {
                for (outcome, count) in ["met", "missed"].into_iter().zip(counts) {
                    page += &format!("entremet_promise_windows{{tenant=\"web\",workload=\"\",class=\"{class}\",over=\"1h\",outcome=\"{outcome}\"}} {count}\n");
                }
            }
            Sample {
                at: start + Duration::from_millis(500 * at),
                told: Told::read(&page),
            }
        };
        let counts = [
            [[3, 4], [0, 0]],
            [[3, 5], [1, 0]],
            [[4, 5], [1, 0]],
            // Two at once.
            [[5, 6], [2, 0]],
            [[6, 6], [3, 0]],
        ];
        let samples: Vec<Sample> = (0..).zip(counts).map(sample).collect();
        let told = windows(&samples.iter().collect::<Vec<_>>());
        let expected = vec![false, true, true, false, true];
        assert_eq!(told, BTreeMap::from([("web".to_string(), expected)]));
        assert!(windows(&[]).is_empty() && windows(&[&samples[0]]).is_empty());
    }
}
