//! Which requests a promise holds for.

use crate::cost::Nanos;
use crate::rate::Tag;

/// An arrival process that keeps the rate on average still comes in bunches: so much of the rate
/// may come at once. The same as at a stage (`dispatch::rates`).
const BURST_NS: Nanos = 100_000_000;

/// The offered rate up to which a promise holds, and how far it is used up.
#[derive(Clone, Copy, Debug)]
pub struct Contract(Tag);

impl Contract {
    /// So many requests a second.
    #[must_use]
    pub fn new(now: Nanos, per_s: f64) -> Self {
        Contract(Tag::new(now, per_s, BURST_NS))
    }

    /// Another rate from now on.
    pub fn change(&mut self, now: Nanos, per_s: f64) {
        self.0.change(now, per_s, BURST_NS);
    }

    /// So many requests came at `came`; says how many of them are within the contract. Only these
    /// use it up, so that whoever offers more than the rate has the promise for the rate.
    ///
    /// It goes by when requests came: those that a slow server answers all at once were not offered
    /// all at once.
    pub fn offer(&mut self, came: Nanos, requests: u64) -> u64 {
        let within = match self.0.ahead(came) {
            true => 0,
            // The one that the tag passes now by is still within: a tag may be one ahead.
            false => self.0.allowance(came).saturating_add(1).min(requests),
        };
        self.0.take(came, within);
        within
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
    fn a_bunch_is_within_up_to_a_burst() {
        let mut contract = Contract::new(S, 1_000.0);
        assert_eq!(contract.offer(S, 500), 101);
        assert_eq!(contract.offer(S, 1), 0);
        assert_eq!(contract.offer(S + S / 10, 500), 100);
    }

    #[test]
    fn what_came_in_time_stays_within_however_late_it_is_answered() {
        let mut contract = Contract::new(S, 100.0);
        // A server that stood for ten seconds answers what came meanwhile.
        let each = |at: u64| contract.offer(S + at * S / 100, 1);
        assert_eq!((0..1_000).map(each).sum::<u64>(), 1_000);
    }
}
