//! What an engine behind this server sends a connection that has subscribed to channels.

use policy::Nanos;

use crate::upstream::WaitingPlace;

/// How a connection stands with what is published. The link by which it comes is its core's.
pub struct Pushes {
    /// There may be something to read.
    pub readable: bool,
    /// A request that the engine has not answered: until then the connection is parked. When it was
    /// made.
    pub asked_at: Option<Nanos>,
    /// Channels and patterns that it has subscribed to, as the engine said last.
    pub subscriptions: u64,
    /// How many of those are patterns.
    patterns: u64,
    /// A place for each pattern, and for those that it has asked for.
    places: Vec<WaitingPlace>,
    /// Bytes of what has come in part: of the whole, as far as that is known. So who has memory for
    /// the beginning has it for the rest.
    pub held_bytes: usize,
    _place: WaitingPlace,
}

impl Pushes {
    /// Of a connection that is to subscribe, and has such a place.
    pub fn new(place: WaitingPlace) -> Box<Self> {
        Box::new(Self {
            readable: false,
            asked_at: None,
            subscriptions: 0,
            patterns: 0,
            places: Vec::new(),
            held_bytes: 0,
            _place: place,
        })
    }

    /// It asks for patterns that have these places.
    pub fn ask(&mut self, places: Vec<WaitingPlace>, now: Nanos) {
        self.places.extend(places);
        self.asked_at = Some(now);
    }

    /// The engine has said how many channels and patterns there are now; the last change was one
    /// of patterns, or not.
    pub fn count(&mut self, subscriptions: u64, of_patterns: bool) {
        if of_patterns {
            self.patterns = (self.patterns + subscriptions).saturating_sub(self.subscriptions);
        }
        self.subscriptions = subscriptions;
    }

    /// How many channels and patterns there are now.
    pub fn counts(&self) -> [u64; 2] {
        [
            self.subscriptions.saturating_sub(self.patterns),
            self.patterns,
        ]
    }

    /// The engine has answered what was asked.
    pub fn answered(&mut self) {
        self.asked_at = None;
        self.places.truncate(self.patterns as usize);
    }

    /// Nothing is to come any more.
    pub fn are_over(&self) -> bool {
        self.asked_at.is_none() && self.subscriptions == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::upstream::Waits;

    #[test]
    fn a_place_is_kept_for_each_pattern_that_there_is() {
        let waits = Waits::new(100);
        let place = || waits.enter(policy::PrincipalId(1)).expect("a place");
        let mut pushes = Pushes::new(place());
        pushes.count(2, false);
        // Three are asked for, two of them the same.
        pushes.ask((0..3).map(|_| place()).collect(), 7);
        for subscriptions in [3, 4, 4] {
            pushes.count(subscriptions, true);
        }
        assert!(!pushes.are_over());
        pushes.answered();
        assert_eq!((pushes.subscriptions, waits.count()), (4, 1 + 2));
        pushes.count(3, true);
        pushes.count(2, false);
        pushes.answered();
        assert_eq!(waits.count(), 1 + 1);
        pushes.count(1, false);
        pushes.count(0, true);
        pushes.answered();
        assert!(pushes.are_over());
        drop(pushes);
        assert_eq!(waits.count(), 0);
    }
}
