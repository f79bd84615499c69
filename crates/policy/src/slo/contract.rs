//! Which requests a promise holds for.

use crate::cost::Nanos;
use crate::rate::Tag;

/// An arrival process that keeps the rate on average still comes in bunches: so much of the rate
/// may come at once. The same as at a stage (`dispatch::rates`).
const BURST_NS: Nanos = 100_000_000;

/// The part of a contract of `per_s` that so many requests in `elapsed_s` ask for, 0 to 1.
///
/// All that is offered counts, also beyond the part that a server keeps to where several keep a
/// contract together: what it is asked for does not depend on what it has.
#[must_use]
pub fn asked(offered: u64, per_s: f64, elapsed_s: f64) -> f64 {
    match per_s > 0.0 && elapsed_s > 0.0 {
        true => (offered as f64 / elapsed_s / per_s).min(1.0),
        false => 0.0,
    }
}

/// The offered rate up to which a promise holds, how far it is used up, and what was offered.
#[derive(Clone, Copy, Debug)]
pub struct Contract {
    tag: Tag,
    offered: u64,
}

impl Contract {
    /// So many requests a second.
    #[must_use]
    pub fn new(now: Nanos, per_s: f64) -> Self {
        Contract {
            tag: Tag::new(now, per_s, BURST_NS),
            offered: 0,
        }
    }

    /// Another rate from now on.
    pub fn change(&mut self, now: Nanos, per_s: f64) {
        self.tag.change(now, per_s, BURST_NS);
    }

    /// Requests that were offered since the start, within it and beyond.
    #[must_use]
    pub fn offered(&self) -> u64 {
        self.offered
    }

    /// So many requests came at `came`; says how many of them are within the contract. Only these
    /// use it up, so that whoever offers more than the rate has the promise for the rate.
    ///
    /// It goes by when requests came: those that a slow server answers all at once were not offered
    /// all at once.
    pub fn offer(&mut self, came: Nanos, requests: u64) -> u64 {
        let within = match self.tag.ahead(came) {
            true => 0,
            // The one that the tag passes now by is still within: a tag may be one ahead.
            false => self.tag.allowance(came).saturating_add(1).min(requests),
        };
        self.tag.take(came, within);
        self.offered = self.offered.saturating_add(requests);
        within
    }

    /// Whether one that came at `came` and waits at `now`, without having been offered, is within
    /// it, if so many `others` that wait so are. Nothing is used up.
    #[must_use]
    pub fn has_room(&self, came: Nanos, others: u64, now: Nanos) -> bool {
        !self.tag.ahead(came) && others <= self.tag.units_between(came, now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: Nanos = 1_000_000_000;

    /// What is within of this many a second, offered evenly for ten seconds.
    fn within(contract_per_s: f64, offered_per_s: u64) -> u64 {
        let mut contract = Contract::new(S, contract_per_s);
        let each = |at: u64| contract.offer(S + at * S / offered_per_s, 1);
        (0..10 * offered_per_s).map(each).sum()
    }

    #[test]
    fn up_to_the_rate_all_are_within_and_beyond_it_the_rate() {
        assert_eq!(within(100.0, 100), 1_000);
        assert_eq!(within(100.0, 50), 500);
        let kept = within(100.0, 1_000);
        assert!((1_000..=1_012).contains(&kept), "{kept}");
    }

    #[test]
    fn what_is_asked_of_a_contract_is_what_was_offered() {
        let mut contract = Contract::new(S, 100.0);
        for at in 0..400 {
            contract.offer(S + at * S / 400, 1);
        }
        assert_eq!(contract.offered(), 400, "whatever was within");
        assert_eq!(asked(400, 1_000.0, 1.0), 0.4);
        assert_eq!(asked(400, 100.0, 1.0), 1.0, "nobody asks for more than all");
        assert_eq!((asked(0, 100.0, 1.0), asked(9, 100.0, 0.0)), (0.0, 0.0));
    }

    #[test]
    fn a_bunch_is_within_up_to_a_burst() {
        let mut contract = Contract::new(S, 1_000.0);
        assert_eq!(contract.offer(S, 500), 101);
        assert_eq!(contract.offer(S, 1), 0);
        assert_eq!(contract.offer(S + S / 10, 500), 100);
    }

    /// Ten times as many as the contract come and are not read. Of those that are asked about first
    /// a few too many take the room of those that come later.
    #[test]
    fn of_those_that_wait_as_many_are_within_as_will_be_when_they_are_offered() {
        let mut contract = Contract::new(S, 100.0);
        let before: u64 = (0..400).map(|at| contract.offer(S + at * S / 100, 1)).sum();
        assert_eq!(before, 400);
        let came = |at: u64| 5 * S + at * S / 1_000;
        for backwards in [false, true] {
            let mut within = 0;
            for at in 0..3_000 {
                let at = if backwards { 2_999 - at } else { at };
                within += u64::from(contract.has_room(came(at), within, 8 * S));
            }
            assert!((280..=312).contains(&within), "{within} {backwards}");
        }
        assert!(
            !contract.has_room(4 * S, 0, 8 * S),
            "others were offered then"
        );
        let within: u64 = (0..3_000).map(|at| contract.offer(came(at), 1)).sum();
        assert!((300..=312).contains(&within), "{within}");
    }

    #[test]
    fn what_came_in_time_stays_within_however_late_it_is_answered() {
        let mut contract = Contract::new(S, 100.0);
        // A server that stood for ten seconds answers what came meanwhile.
        let each = |at: u64| contract.offer(S + at * S / 100, 1);
        assert_eq!((0..1_000).map(each).sum::<u64>(), 1_000);
    }
}
