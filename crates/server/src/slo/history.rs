//! How well a promise was kept: by the minute for the last hour, by the hour for 30 days.

use std::collections::BTreeMap;

use policy::slo::{Attainment, Counts, Outcome};

/// Minutes of the last hour.
pub const MINUTES_KEPT: u64 = 60;
/// Hours of 30 days.
pub const HOURS_KEPT: u64 = 30 * 24;

/// Windows that ended in a minute or an hour, and their requests within the contract.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bucket {
    /// Windows in which the promise was kept.
    pub met: u32,
    /// And in which it was not.
    pub missed: u32,
    /// And which said nothing.
    pub no_data: u32,
    /// Requests within the contract.
    pub requests: u64,
    /// Of these, late.
    pub late: u64,
}

impl Bucket {
    fn count(&mut self, outcome: Outcome, counts: &Counts) {
        let windows = match outcome {
            Outcome::Met => &mut self.met,
            Outcome::Missed => &mut self.missed,
            Outcome::NoData => &mut self.no_data,
        };
        *windows = windows.saturating_add(1);
        self.requests += counts.requests;
        self.late += counts.late;
    }

    /// Adds another time's.
    pub fn add(&mut self, other: &Self) {
        self.met = self.met.saturating_add(other.met);
        self.missed = self.missed.saturating_add(other.missed);
        self.no_data = self.no_data.saturating_add(other.no_data);
        self.requests += other.requests;
        self.late += other.late;
    }

    /// Its windows.
    pub fn attainment(&self) -> Attainment {
        Attainment {
            met: self.met.into(),
            missed: self.missed.into(),
            no_data: self.no_data.into(),
        }
    }

    /// Its requests.
    pub fn counts(&self) -> Counts {
        Counts {
            requests: self.requests,
            late: self.late,
            ..Counts::default()
        }
    }
}

/// The buckets of one promise, by minutes and hours since the Unix epoch. If the time of day steps,
/// windows count in the minute and hour that it says; none is lost and none counts twice.
#[derive(Clone, Debug, Default)]
pub struct History {
    minutes: BTreeMap<u64, Bucket>,
    hours: BTreeMap<u64, Bucket>,
}

impl History {
    /// Counts a window that ended at this time of day.
    pub fn count(&mut self, unix_s: u64, outcome: Outcome, counts: &Counts) {
        let (minute, hour) = (unix_s / 60, unix_s / 3_600);
        self.minutes
            .entry(minute)
            .or_default()
            .count(outcome, counts);
        self.hours.entry(hour).or_default().count(outcome, counts);
        keep(&mut self.minutes, minute, MINUTES_KEPT);
        keep(&mut self.hours, hour, HOURS_KEPT);
    }

    /// Counts what came of requests in a window that was cut short at this time of day: it is none.
    pub fn count_rest(&mut self, unix_s: u64, counts: &Counts) {
        let rest = Bucket {
            requests: counts.requests,
            late: counts.late,
            ..Bucket::default()
        };
        self.minutes.entry(unix_s / 60).or_default().add(&rest);
        self.hours.entry(unix_s / 3_600).or_default().add(&rest);
    }

    /// Windows of the last hour.
    pub fn last_hour(&self, unix_s: u64) -> Bucket {
        sum(&self.minutes, unix_s / 60, MINUTES_KEPT)
    }

    /// Windows of the last 30 days.
    pub fn last_30_days(&self, unix_s: u64) -> Bucket {
        sum(&self.hours, unix_s / 3_600, HOURS_KEPT)
    }

    /// By hour since the Unix epoch, rising.
    pub fn hours(&self) -> impl DoubleEndedIterator<Item = (u64, &Bucket)> {
        self.hours.iter().map(|(hour, bucket)| (*hour, bucket))
    }

    /// By minute since the Unix epoch, rising: those of the last hour.
    pub fn last_minutes(&self, unix_s: u64) -> impl Iterator<Item = (u64, &Bucket)> {
        let minutes = from(&self.minutes, unix_s / 60, MINUTES_KEPT);
        minutes.map(|(minute, bucket)| (*minute, bucket))
    }

    /// So many hours each, by the first of them since the Unix epoch, rising: those of the last 30
    /// days.
    pub fn last_hours(&self, unix_s: u64, each: u64) -> BTreeMap<u64, Bucket> {
        let mut steps: BTreeMap<u64, Bucket> = BTreeMap::new();
        for (hour, bucket) in from(&self.hours, unix_s / 3_600, HOURS_KEPT) {
            steps.entry(hour - hour % each).or_default().add(bucket);
        }
        steps
    }

    /// By minute since the Unix epoch, rising.
    pub fn minutes(&self) -> impl DoubleEndedIterator<Item = (u64, &Bucket)> {
        self.minutes
            .iter()
            .map(|(minute, bucket)| (*minute, bucket))
    }

    /// Takes over what was counted in an hour before the server started.
    pub fn remember(&mut self, hour: u64, bucket: Bucket) {
        self.hours.entry(hour).or_default().add(&bucket);
    }

    /// The same in a minute: its hour is remembered for itself.
    pub fn remember_minute(&mut self, minute: u64, bucket: Bucket) {
        self.minutes.entry(minute).or_default().add(&bucket);
    }
}

/// Forgets what is older than `kept` buckets. A clock that runs ahead must not make it forget more
/// than that when it is set right: the newest bucket counts, whatever time it is now.
fn keep(buckets: &mut BTreeMap<u64, Bucket>, now: u64, kept: u64) {
    let newest = buckets.last_key_value().map_or(now, |(newest, _)| *newest);
    let oldest = (newest + 1).saturating_sub(2 * kept);
    *buckets = buckets.split_off(&oldest);
}

fn sum(buckets: &BTreeMap<u64, Bucket>, now: u64, kept: u64) -> Bucket {
    let mut all = Bucket::default();
    from(buckets, now, kept).for_each(|(_, one)| all.add(one));
    all
}

/// The last ones.
fn from(
    buckets: &BTreeMap<u64, Bucket>,
    now: u64,
    kept: u64,
) -> impl Iterator<Item = (&u64, &Bucket)> {
    buckets.range((now + 1).saturating_sub(kept)..)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(requests: u64, late: u64) -> Counts {
        Counts {
            requests,
            late,
            ..Counts::default()
        }
    }

    #[test]
    fn an_hour_and_30_days_are_summed_up() {
        let mut history = History::default();
        for minute in 0..120 {
            let outcome = if minute < 60 {
                Outcome::Missed
            } else {
                Outcome::Met
            };
            history.count(minute * 60, outcome, &counts(10, 1));
        }
        let (hour, days) = (history.last_hour(119 * 60), history.last_30_days(119 * 60));
        assert_eq!((hour.met, hour.missed, hour.requests), (60, 0, 600));
        assert_eq!((days.met, days.missed, days.late), (60, 60, 120));
        let minutes: Vec<u64> = history.last_minutes(119 * 60).map(|(at, _)| at).collect();
        assert_eq!(minutes, (60..120).collect::<Vec<_>>());
        let hours = history.last_hours(119 * 60, 6);
        assert_eq!((hours.len(), hours[&0].requests), (1, 1_200));
        assert_eq!(history.last_hours(119 * 60, 1)[&1].met, 60);
        let later = 119 * 60 + HOURS_KEPT * 3_600;
        assert_eq!(history.last_30_days(later), Bucket::default());
        history.count(2 * later, Outcome::Met, &counts(1, 0));
        assert_eq!(history.hours().count(), 1, "the old ones are forgotten");
    }

    #[test]
    fn a_clock_that_steps_an_hour_and_back_loses_nothing() {
        let mut history = History::default();
        for unix_s in [7_200, 10_800, 7_260] {
            history.count(unix_s, Outcome::Met, &counts(1, 0));
        }
        assert_eq!(history.last_hour(7_260).met, 3);
        assert_eq!(history.last_30_days(7_260).met, 3);
    }
}
