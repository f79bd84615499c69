//! What it would take for a promise that does not fit.

use super::{fit, least_ns, Asked, Capacity};
use crate::cost::Nanos;

/// One change with which it would fit, all else as it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Remedy {
    /// So many of its requests a second, and no more.
    Rate(f64),
    /// So long, ns, in place of the latency that was promised.
    AtMost(Nanos),
    /// So many drives of this kind in all, with as many handlers for each as there are now.
    Drives(u32),
    /// The promise in this place for so many requests a second, and no more; 0: not at all.
    Other {
        /// Of the promises that were given.
        place: usize,
        /// Requests a second.
        per_s: f64,
    },
}

/// More drives than this times those that there are is another machine.
const DRIVES_TIMES: u32 = 32;
/// Others that are asked to give up something, the least important first: each is reckoned anew.
const OTHERS_ASKED: usize = 8;
/// Others that are told of.
const OTHERS_TOLD: usize = 2;
/// Halvings of a rate: finer than the two digits that are said.
const HALVINGS: u32 = 12;

/// What it would take for the promise in place `own` to fit, and those in `also`, which it would
/// break. Each change that is named was reckoned with as it is named: two digits, rounded to the
/// safe side. Nobody is asked to give way to what is less important.
#[must_use]
pub fn takes(capacity: &Capacity, asked: &[Asked], own: usize, also: &[usize]) -> Vec<Remedy> {
    let fits = |capacity: &Capacity, asked: &[Asked]| {
        let (lacks, _) = fit(capacity, asked, |_| 1.0);
        let mut must = also.iter().chain([&own]);
        must.all(|place| lacks[*place].is_none())
    };
    let with_rate = |place: usize, per_s: f64| {
        let mut changed = asked.to_vec();
        changed[place].bound(per_s);
        fits(capacity, &changed)
    };
    // Up to which rate of the promise in a place all is well.
    let rate = |place: usize| {
        if !with_rate(place, 0.0) {
            return None;
        }
        let (mut low, mut high) = (0.0, asked[place].demand.per_s);
        for _ in 0..HALVINGS {
            let middle = 0.5 * (low + high);
            match with_rate(place, middle) {
                true => low = middle,
                false => high = middle,
            }
        }
        let per_s = two_digits(low, f64::floor);
        Some(per_s).filter(|per_s| with_rate(place, *per_s))
    };
    let mut remedies = Vec::new();
    remedies.extend(rate(own).filter(|per_s| *per_s > 0.0).map(Remedy::Rate));
    remedies.extend(longer_ns(capacity, asked, own, fits).map(Remedy::AtMost));
    remedies.extend(more_drives(capacity, |more| fits(more, asked)).map(Remedy::Drives));
    let may_give = |place: &usize| {
        let importance = asked[*place].objective.importance;
        *place != own && !also.contains(place) && importance <= asked[own].objective.importance
    };
    let mut others: Vec<usize> = (0..asked.len()).filter(may_give).collect();
    others.sort_by_key(|place| asked[*place].objective.importance);
    let others = others.into_iter().take(OTHERS_ASKED);
    let others = others.filter_map(|place| rate(place).map(|per_s| Remedy::Other { place, per_s }));
    remedies.extend(others.take(OTHERS_TOLD));
    remedies
}

/// A longer time with which it fits.
fn longer_ns(
    capacity: &Capacity,
    asked: &[Asked],
    own: usize,
    fits: impl Fn(&Capacity, &[Asked]) -> bool,
) -> Option<Nanos> {
    let fits = |asked: &[Asked]| fits(capacity, asked);
    let ns = two_digits(least_ns(asked, own, fits)? as f64, f64::ceil) as Nanos;
    let mut changed = asked.to_vec();
    let latency = changed[own].objective.latency.as_mut()?;
    let longer = ns > latency.at_most_ns;
    latency.at_most_ns = ns;
    (longer && fits(&changed)).then_some(ns)
}

/// The fewest drives with which it fits.
fn more_drives(capacity: &Capacity, fits: impl Fn(&Capacity) -> bool) -> Option<u32> {
    let with = |count: u32| {
        let mut more = *capacity;
        more.drives.count = count;
        let handlers = u64::from(capacity.handlers) * u64::from(count);
        let handlers = handlers / u64::from(capacity.drives.count.max(1));
        more.handlers = handlers.try_into().unwrap_or(u32::MAX);
        fits(&more)
    };
    let mut low = capacity.drives.count.max(1);
    let mut high = low.saturating_mul(DRIVES_TIMES);
    if !with(high) {
        return None;
    }
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        match with(middle) {
            true => high = middle,
            false => low = middle,
        }
    }
    Some(high)
}

impl Asked {
    /// It is promised for so many requests a second, and they come.
    fn bound(&mut self, per_s: f64) {
        let part = per_s / self.demand.per_s.max(f64::MIN_POSITIVE);
        self.demand.per_s = per_s;
        if let Some(promised) = &mut self.objective.throughput_per_s {
            *promised *= part.min(1.0);
        }
    }
}

/// A number as people say it, which is about as exact as the reckoning.
fn two_digits(number: f64, round: fn(f64) -> f64) -> f64 {
    if number <= 0.0 {
        return 0.0;
    }
    // Divided where that is below 1: a tenth has no exact number, ten has.
    let power = number.log10().floor() as i32 - 1;
    let unit = 10.0_f64.powi(power.abs());
    match power < 0 {
        true => round(number * unit) / unit,
        false => round(number / unit) * unit,
    }
}
