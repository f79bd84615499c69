//! Fairness and rates over time, from per-second series.

use super::fair::of_shares;
use workload::report::figures::SeriesFigures;

use super::figure::{Choice, Figure};
use super::{finite, Measured};
use crate::observed::{Observed, Tenant};

/// A stretch of a run and the length of the windows in it, seconds from the start of the load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stretch {
    /// Windows begin here at the earliest.
    pub from_s: f64,
    /// And end here at the latest.
    pub to_s: f64,
    /// Length of a window, at least one second.
    pub window_s: f64,
}

impl Default for Stretch {
    fn default() -> Self {
        Self {
            from_s: 0.0,
            to_s: f64::INFINITY,
            window_s: 5.0,
        }
    }
}

/// Takes a figure second by second from a series; `None` in seconds that have no such figure.
pub type Seconds = fn(&SeriesFigures) -> Vec<Option<f64>>;

/// A figure second by second, if a series has it.
pub fn series(figure: Figure) -> Option<Seconds> {
    fn counts(counts: &[u64]) -> Vec<Option<f64>> {
        counts.iter().map(|count| Some(*count as f64)).collect()
    }
    match figure {
        Figure::Rate => Some(|series| counts(&series.rate_per_s)),
        Figure::Offered => Some(|series| counts(&series.offered_per_s)),
        Figure::Failed => Some(|series| counts(&series.failed_per_s)),
        Figure::P50 => Some(|series| series.p50_ms.clone()),
        Figure::P95 => Some(|series| series.p95_ms.clone()),
        Figure::P99 => Some(|series| series.p99_ms.clone()),
        Figure::Outstanding => Some(|series| counts(&series.outstanding)),
        Figure::Permits => Some(|series| counts(&series.permits)),
        Figure::Share => Some(|series| series.share.iter().copied().map(Some).collect()),
        _ => None,
    }
}

/// What a window is worth, from each tenant's rate and weight in it.
type Worth = fn(&[(f64, f64)]) -> Measured;

fn mmr(tenants: &[(f64, f64)]) -> Measured {
    let shares: Vec<f64> = tenants.iter().map(|(rate, weight)| rate / weight).collect();
    of_shares(&shares)
}

fn least(tenants: &[(f64, f64)]) -> Measured {
    let rates = tenants.iter().map(|(rate, _)| *rate);
    Ok(rates.fold(f64::INFINITY, f64::min))
}

/// The least MMR of rates among all windows of the stretch, which move on by a second.
///
/// # Errors
/// Why there is none; a stretch shorter than a window is one reason.
pub fn least_mmr(run: &Observed, choice: &Choice, stretch: Stretch) -> Measured {
    lowest(run, choice, stretch, mmr, "the least MMR")
}

/// The least rate that any of the tenants had in any window of the stretch; windows move on by a
/// second.
///
/// # Errors
/// As of [`least_mmr`].
pub fn least_rate(run: &Observed, choice: &Choice, stretch: Stretch) -> Measured {
    lowest(run, choice, stretch, least, "the least rate")
}

/// How much a figure of the one tenant chosen varies over the windows of the stretch: its standard
/// deviation, in its own unit.
///
/// # Errors
/// As of [`least_mmr`].
pub fn deviation(run: &Observed, choice: &Choice, stretch: Stretch) -> Measured {
    let windows = windows_of_one(run, choice, stretch)?;
    let values: Vec<f64> = windows.into_iter().map(|(_, value)| value).collect();
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let squares = values.iter().map(|value| (value - mean).powi(2));
    finite(
        (squares.sum::<f64>() / values.len() as f64).sqrt(),
        "the deviation",
    )
}

/// Seconds from the start of the stretch until the beginning of the first window from which on a
/// figure of the one tenant chosen stays within `part` of its mean over the second half of the
/// stretch; infinite if it never does.
///
/// # Errors
/// As of [`least_mmr`].
pub fn settle_near_s(run: &Observed, choice: &Choice, stretch: Stretch, part: f64) -> Measured {
    let windows = windows_of_one(run, choice, stretch)?;
    let late = &windows[windows.len() / 2..];
    let mean = late.iter().map(|(_, value)| value).sum::<f64>() / late.len() as f64;
    let off = |value: f64| (value - mean).abs() > part * mean;
    let settled = match windows.iter().rposition(|(_, value)| off(*value)) {
        None => windows.first(),
        Some(last) => windows.get(last + 1),
    };
    Ok(settled.map_or(f64::INFINITY, |(from_s, _)| from_s - stretch.from_s))
}

/// The windows of a stretch, and one tenant's figure in each.
fn windows_of_one(
    run: &Observed,
    choice: &Choice,
    stretch: Stretch,
) -> Result<Vec<(f64, f64)>, String> {
    let one = |tenants: &[(f64, f64)]| match tenants {
        [(value, _)] => Ok(*value),
        more => Err(format!("it is of one tenant, and here are {}", more.len())),
    };
    let windows = windows(run, choice, stretch, one)?;
    let values = windows
        .into_iter()
        .map(|(from_s, value)| Ok((from_s, value?)));
    values.collect()
}

fn lowest(run: &Observed, choice: &Choice, stretch: Stretch, of: Worth, what: &str) -> Measured {
    let mut lowest = f64::INFINITY;
    for (_, worth) in windows(run, choice, stretch, of)? {
        lowest = lowest.min(worth?);
    }
    finite(lowest, what)
}

/// Seconds from the start of the stretch until the beginning of the first window from which on the
/// MMR of every window stays at or above `level`; infinite if it never does.
///
/// # Errors
/// Why there is no answer.
pub fn settle_s(run: &Observed, choice: &Choice, stretch: Stretch, level: f64) -> Measured {
    settled(run, choice, stretch, level, mmr)
}

/// The same for the least rate of any of the tenants.
///
/// # Errors
/// Why there is no answer.
pub fn settle_rate_s(run: &Observed, choice: &Choice, stretch: Stretch, level: f64) -> Measured {
    settled(run, choice, stretch, level, least)
}

fn settled(run: &Observed, choice: &Choice, stretch: Stretch, level: f64, of: Worth) -> Measured {
    let mut settled = None;
    for (from_s, worth) in windows(run, choice, stretch, of)? {
        // A window in which nobody got anything is not settled either.
        if worth.unwrap_or(0.0) < level {
            settled = None;
        } else if settled.is_none() {
            settled = Some(from_s - stretch.from_s);
        }
    }
    Ok(settled.unwrap_or(f64::INFINITY))
}

/// The windows of a stretch: where each begins, and what it is worth.
fn windows(
    run: &Observed,
    choice: &Choice,
    stretch: Stretch,
    of: Worth,
) -> Result<Vec<(f64, Measured)>, String> {
    let tenants = run.select(&choice.tenants)?;
    let ends = tenants
        .iter()
        .filter_map(|tenant| tenant.load.series.t_s.last());
    let last_s = ends.min().map_or(0.0, |end_s| *end_s as f64);
    // Replies that came after the measured time may have a second of their own.
    let end_s = last_s.min(run.elapsed_s.round()).min(stretch.to_s);
    let mut found = Vec::new();
    let mut from_s = stretch.from_s;
    while from_s + stretch.window_s <= end_s {
        let to_s = from_s + stretch.window_s;
        let rates: Result<Vec<_>, String> = tenants
            .iter()
            .map(|tenant| {
                Ok((
                    mean(tenant, choice.figure, from_s, to_s)?,
                    tenant.load.weight,
                ))
            })
            .collect();
        found.push((from_s, of(&rates?)));
        from_s += 1.0;
    }
    if found.is_empty() {
        return Err(format!(
            "the run has no whole window of {} s from {} s on",
            stretch.window_s, stretch.from_s
        ));
    }
    Ok(found)
}

fn mean(tenant: &Tenant, figure: Figure, from_s: f64, to_s: f64) -> Measured {
    let by_second = series(figure).ok_or("there is no such figure second by second")?;
    let all = &tenant.load.series;
    let seconds = all.t_s.iter().zip(by_second(all));
    let inside = seconds.filter(|(end_s, _)| **end_s as f64 > from_s && **end_s as f64 <= to_s);
    let values: Vec<f64> = inside.filter_map(|(_, value)| value).collect();
    if values.is_empty() {
        return Err(format!(
            "tenant {} has no figures from {from_s} to {to_s} s",
            tenant.load.name
        ));
    }
    Ok(values.iter().sum::<f64>() / values.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::super::made::series;
    use super::*;

    fn stretch(from_s: f64, to_s: f64, window_s: f64) -> Stretch {
        Stretch {
            from_s,
            to_s,
            window_s,
        }
    }

    #[test]
    fn the_worst_window_counts() {
        let run = series(&[("a", &[10, 10, 10, 10]), ("b", &[10, 5, 5, 10])]);
        let least = |from, to, window| {
            least_mmr(&run, &Choice::default(), stretch(from, to, window)).expect("measured")
        };
        assert_eq!(least(0.0, f64::INFINITY, 1.0), 0.5);
        assert_eq!(least(0.0, f64::INFINITY, 2.0), 0.5);
        assert_eq!(least(0.0, 2.0, 2.0), 0.75);
        assert_eq!(least(3.0, 4.0, 1.0), 1.0);
    }

    #[test]
    fn the_least_rate_is_anybodys_in_any_window() {
        let run = series(&[("a", &[10, 10, 10, 40]), ("b", &[10, 4, 6, 10])]);
        let all = Choice::default();
        let of = |window| least_rate(&run, &all, stretch(0.0, 9.0, window)).expect("measured");
        assert_eq!((of(1.0), of(2.0)), (4.0, 5.0));
        let settles = |level| settle_rate_s(&run, &all, stretch(0.0, 9.0, 1.0), level);
        assert_eq!((settles(6.0), settles(10.0)), (Ok(2.0), Ok(3.0)));
        assert_eq!(settles(11.0), Ok(f64::INFINITY));
    }

    #[test]
    fn what_varies_is_told_by_its_deviation() {
        let mut run = series(&[("a", &[1, 1, 9, 9, 1, 1]), ("b", &[1, 1, 1, 1, 1, 1])]);
        run.tenants[0].load.series.share = vec![60.0, 60.0, 80.0, 40.0, 90.0, 70.0];
        let of = |tenant: &str, figure, from, window| {
            let choice = Choice {
                tenants: vec![tenant.into()],
                figure,
                ..Choice::default()
            };
            deviation(&run, &choice, stretch(from, 9.0, window))
        };
        assert_eq!(
            of("a", Figure::Rate, 0.0, 1.0).map(|sd| (sd * 100.0).round()),
            Ok(377.0)
        );
        assert_eq!(of("b", Figure::Rate, 0.0, 2.0), Ok(0.0));
        // 80 and 40, 40 and 90, 90 and 70: 60, 65 and 80.
        let by_two = of("a", Figure::Share, 2.0, 2.0).expect("measured");
        assert!((by_two - 8.498).abs() < 1e-3, "{by_two}");
        assert!(of("b", Figure::Share, 0.0, 1.0).is_err());
        let both = Choice::default();
        assert!(deviation(&run, &both, stretch(0.0, 9.0, 1.0)).is_err());
    }

    #[test]
    fn a_figure_settles_where_it_stays() {
        let mut run = series(&[("a", &[1; 8])]);
        let choice = Choice {
            figure: Figure::Permits,
            ..Choice::default()
        };
        let mut of = |permits: [u64; 8], from, part| {
            run.tenants[0].load.series.permits = permits.to_vec();
            settle_near_s(&run, &choice, stretch(from, 9.0, 1.0), part).expect("measured")
        };
        // The second half has a mean of 10.
        assert_eq!(of([1, 14, 8, 12, 10, 9, 11, 10], 0.0, 0.25), 2.0);
        assert_eq!(of([1, 14, 8, 12, 10, 9, 11, 10], 0.0, 0.1), 4.0);
        assert_eq!(of([1, 14, 8, 12, 10, 9, 11, 10], 2.0, 0.25), 0.0);
        assert_eq!(of([10; 8], 0.0, 0.0), 0.0);
        assert_eq!(of([1, 1, 1, 1, 1, 1, 1, 9], 0.0, 0.25), f64::INFINITY);
    }

    #[test]
    fn replies_after_the_end_are_no_window() {
        let mut run = series(&[("a", &[10, 10, 3]), ("b", &[10, 10, 0])]);
        run.elapsed_s = 2.000_3;
        let one = stretch(0.0, f64::INFINITY, 1.0);
        assert_eq!(least_mmr(&run, &Choice::default(), one), Ok(1.0));
    }

    #[test]
    fn a_stretch_that_was_not_run_is_an_error() {
        let run = series(&[("a", &[1, 1]), ("b", &[1, 1])]);
        let all = Choice::default();
        assert!(least_mmr(&run, &all, stretch(0.0, 10.0, 5.0)).is_err());
        assert!(least_mmr(&run, &all, stretch(5.0, 10.0, 1.0)).is_err());
    }

    #[test]
    fn settling_means_for_good() {
        let run = series(&[
            ("a", &[100, 100, 100, 100, 100, 100]),
            ("b", &[20, 100, 20, 99, 100, 100]),
        ]);
        let all = Choice::default();
        let one = stretch(0.0, f64::INFINITY, 1.0);
        assert_eq!(settle_s(&run, &all, one, 0.97), Ok(3.0));
        assert_eq!(settle_s(&run, &all, stretch(2.0, 9.0, 1.0), 0.97), Ok(1.0));
        assert_eq!(
            settle_s(&run, &all, stretch(0.0, 3.0, 1.0), 0.97),
            Ok(f64::INFINITY)
        );
    }
}
