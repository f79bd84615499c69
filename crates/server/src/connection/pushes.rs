//! What an engine behind this server sends a connection that has subscribed to channels.

use front::Subscribed;
use policy::Nanos;

use crate::upstream::WaitingPlace;

/// How a connection stands with what is published. The links by which it comes are its core's.
#[derive(Default)]
pub struct Pushes {
    links: Vec<PushLink>,
    /// When a request was made that the engine has not answered: until then the connection is
    /// parked.
    asked_at: Option<Nanos>,
    /// Where its channels and patterns are, those of shards apart.
    plain_at: Option<usize>,
    /// Channels and patterns that it has subscribed to, as the engine said last.
    plain: u64,
    /// How many of those are patterns.
    patterns: u64,
    /// A place for each pattern, and for those that it has asked for.
    pattern_places: Vec<WaitingPlace>,
    /// A place for each channel of a shard, likewise.
    shard_places: Vec<WaitingPlace>,
    /// The place of a link that what was asked may need.
    spare: Option<WaitingPlace>,
}

/// One of the links by which it is sent something: each goes to another node.
struct PushLink {
    /// The place of its node.
    node: usize,
    /// There may be something to read.
    readable: bool,
    /// Channels of shards that it has subscribed to there, as the engine said last.
    shards: u64,
    /// Bytes of what has come in part: of the whole, as far as that is known. So who has memory for
    /// the beginning has it for the rest.
    held_bytes: usize,
    _place: Option<WaitingPlace>,
}

/// What a request asks for.
#[derive(Default)]
pub struct Asks {
    /// Where channels and patterns are from now on; none: they stay where they are.
    pub plain_at: Option<usize>,
    /// The place of a link, if it may need one more.
    pub link: Option<WaitingPlace>,
    /// Those of patterns.
    pub patterns: Vec<WaitingPlace>,
    /// Those of channels of shards.
    pub shards: Vec<WaitingPlace>,
}

impl Pushes {
    /// A request goes out.
    pub fn ask(&mut self, asks: Asks, now: Nanos) {
        self.plain_at = asks.plain_at.or(self.plain_at);
        self.pattern_places.extend(asks.patterns);
        self.shard_places.extend(asks.shards);
        self.spare = asks.link.or(self.spare.take());
        self.asked_at = Some(now);
    }

    /// When a request was made that is not answered; none: all are.
    pub fn asked_at(&self) -> Option<Nanos> {
        self.asked_at
    }

    /// What was asked has been answered, by the engine or in its place.
    pub fn answered(&mut self) {
        (self.asked_at, self.spare) = (None, None);
        self.free_places();
    }

    fn free_places(&mut self) {
        if self.plain == 0 {
            self.plain_at = None;
        }
        self.pattern_places.truncate(self.patterns as usize);
        self.shard_places.truncate(self.shards() as usize);
    }

    /// There is a link to the node at this place.
    pub fn open(&mut self, node: usize) {
        if !self.has(node) {
            self.links.push(PushLink {
                node,
                readable: false,
                shards: 0,
                held_bytes: 0,
                _place: self.spare.take(),
            });
        }
    }

    /// The link there is gone.
    pub fn close(&mut self, node: usize) {
        self.links.retain(|link| link.node != node);
    }

    /// Whether there is a link to the node at this place.
    pub fn has(&self, node: usize) -> bool {
        self.links.iter().any(|link| link.node == node)
    }

    /// The places of all nodes to which there is one.
    pub fn nodes(&self) -> Vec<usize> {
        self.links.iter().map(|link| link.node).collect()
    }

    /// Where its channels and patterns are; none: it has none.
    pub fn plain_at(&self) -> Option<usize> {
        self.plain_at
    }

    /// A node where it has channels of shards; none: it has none.
    pub fn sharded_at(&self) -> Option<usize> {
        let link = self.links.iter().find(|link| link.shards > 0);
        link.map(|link| link.node)
    }

    /// Channels of shards that it has at the node at this place.
    pub fn shards_at(&self, node: usize) -> u64 {
        let link = self.links.iter().find(|link| link.node == node);
        link.map_or(0, |link| link.shards)
    }

    /// Whether something comes by the link to the node at this place, or may.
    pub fn uses(&self, node: usize) -> bool {
        self.shards_at(node) > 0 || self.plain > 0 && self.plain_at == Some(node)
    }

    /// The engine at `node` has said how many there are now. Returns how many there are in all: it
    /// counts those of shards that are there.
    pub fn count(&mut self, node: usize, to: Subscribed, count: u64) -> u64 {
        match to {
            Subscribed::Shard => {
                let link = self.links.iter_mut().find(|link| link.node == node);
                link.into_iter().for_each(|link| link.shards = count);
            }
            Subscribed::Pattern => {
                self.patterns = (self.patterns + count).saturating_sub(self.plain);
                self.plain = count;
            }
            Subscribed::Channel => self.plain = count,
        }
        if self.asked_at.is_none() {
            // A slot has moved away.
            self.free_places();
        }
        match to {
            Subscribed::Shard => self.shards(),
            _ => count,
        }
    }

    /// Channels and patterns, and channels of shards.
    pub fn subscriptions(&self) -> u64 {
        self.plain + self.shards()
    }

    /// Channels and patterns.
    pub fn plain(&self) -> u64 {
        self.plain
    }

    /// Channels of shards, wherever they are.
    pub fn shards(&self) -> u64 {
        self.links.iter().map(|link| link.shards).sum()
    }

    /// How many channels, patterns and channels of shards there are.
    pub fn counts(&self) -> [u64; 3] {
        let channels = self.plain.saturating_sub(self.patterns);
        [channels, self.patterns, self.shards()]
    }

    /// There may be something to read, or there is nothing.
    pub fn set_readable(&mut self, node: usize, readable: bool) {
        let link = self.links.iter_mut().find(|link| link.node == node);
        link.into_iter().for_each(|link| link.readable = readable);
    }

    /// Where there may be something to read.
    pub fn readable(&self) -> Option<usize> {
        let link = self.links.iter().find(|link| link.readable);
        link.map(|link| link.node)
    }

    /// The next turn begins with another link.
    pub fn take_turns(&mut self) {
        if self.links.len() > 1 {
            self.links.rotate_left(1);
        }
    }

    /// So much has come in part from a node.
    pub fn hold(&mut self, node: usize, bytes: usize) {
        let link = self.links.iter_mut().find(|link| link.node == node);
        link.into_iter().for_each(|link| link.held_bytes = bytes);
    }

    /// Bytes of what has come in part.
    pub fn held_bytes(&self) -> usize {
        self.links.iter().map(|link| link.held_bytes).sum()
    }

    /// Nothing is to come any more.
    pub fn are_over(&self) -> bool {
        self.asked_at.is_none() && self.links.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::upstream::Waits;

    fn places(waits: &Arc<Waits>, count: usize) -> Vec<WaitingPlace> {
        let place = || waits.enter(policy::PrincipalId(1)).expect("a place");
        std::iter::repeat_with(place).take(count).collect()
    }

    #[test]
    fn a_place_is_kept_for_each_pattern_that_there_is() {
        let waits = Waits::new(100);
        let mut pushes = Pushes::default();
        let asks = |link, patterns| Asks {
            plain_at: Some(4),
            link: places(&waits, link).pop(),
            patterns: places(&waits, patterns),
            ..Asks::default()
        };
        pushes.ask(asks(1, 0), 6);
        pushes.open(4);
        pushes.count(4, Subscribed::Channel, 2);
        // Three are asked for, two of them the same.
        pushes.ask(asks(0, 3), 7);
        for subscriptions in [3, 4, 4] {
            pushes.count(4, Subscribed::Pattern, subscriptions);
        }
        assert_eq!(pushes.asked_at(), Some(7));
        pushes.answered();
        assert_eq!((pushes.counts(), waits.count()), ([2, 2, 0], 1 + 2));
        pushes.count(4, Subscribed::Pattern, 3);
        pushes.count(4, Subscribed::Channel, 2);
        assert_eq!(waits.count(), 1 + 1);
        pushes.count(4, Subscribed::Channel, 1);
        assert!(pushes.uses(4));
        pushes.count(4, Subscribed::Pattern, 0);
        assert!(!pushes.uses(4) && pushes.plain_at().is_none());
        pushes.close(4);
        assert!(pushes.are_over());
        assert_eq!(waits.count(), 0);
    }

    #[test]
    fn channels_of_shards_are_counted_over_all_nodes() {
        let waits = Waits::new(100);
        let mut pushes = Pushes::default();
        for (node, channels) in [(0, 2), (7, 3)] {
            pushes.ask(
                Asks {
                    link: places(&waits, 1).pop(),
                    shards: places(&waits, channels),
                    ..Asks::default()
                },
                1,
            );
            pushes.open(node);
            for count in 1..=channels as u64 {
                let all = pushes.shards() + 1;
                assert_eq!(pushes.count(node, Subscribed::Shard, count), all);
            }
            pushes.answered();
        }
        assert_eq!((pushes.counts(), waits.count()), ([0, 0, 5], 2 + 5));
        assert_eq!(pushes.sharded_at(), Some(0));
        // A slot moves away, and nothing was asked.
        assert_eq!(pushes.count(0, Subscribed::Shard, 0), 3);
        assert!(!pushes.uses(0) && pushes.uses(7));
        pushes.close(0);
        assert_eq!((pushes.sharded_at(), waits.count()), (Some(7), 1 + 3));
        assert_eq!(pushes.count(7, Subscribed::Shard, 2), 2);
        assert_eq!(waits.count(), 1 + 2);
    }
}
