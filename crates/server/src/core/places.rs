//! Where a core keeps its connections: numbered places that are used again, and a list of those
//! that wait for something, so that nobody looks through them all.

use crate::connection::Connection;
use crate::tenants::ConnectionKey;

/// What may wait for something.
pub trait Waits {
    /// Whether it does.
    fn waits(&self) -> bool;
}

/// The connections of one core.
pub struct Places<C = Connection> {
    places: Vec<Place<C>>,
    free: Vec<u32>,
    /// Who waited when it was put back, each once. Who waits no more goes at the next look.
    waiting: Vec<u32>,
    /// Of these, who is still to be looked at.
    unseen: Vec<u32>,
}

struct Place<C> {
    generation: u32,
    connection: Option<Box<C>>,
    taken: bool,
    /// It is in `waiting` or `unseen`.
    listed: bool,
}

impl<C> Default for Places<C> {
    fn default() -> Self {
        Self {
            places: Vec::new(),
            free: Vec::new(),
            waiting: Vec::new(),
            unseen: Vec::new(),
        }
    }
}

impl<C: Waits> Places<C> {
    /// Takes a place for a connection, which is then put there with [`Places::back`].
    pub fn reserve(&mut self) -> ConnectionKey {
        let index = self.free.pop().unwrap_or_else(|| {
            self.places.push(Place {
                generation: 0,
                connection: None,
                taken: false,
                listed: false,
            });
            u32::try_from(self.places.len() - 1).expect("more connections than descriptors")
        });
        let place = &mut self.places[index as usize];
        place.taken = true;
        ConnectionKey {
            index,
            generation: place.generation,
        }
    }

    /// Lifts a connection out to work on it; its place is kept until [`Places::back`] or
    /// [`Places::give_up`]. None if it is gone.
    pub fn lift(&mut self, key: ConnectionKey) -> Option<Box<C>> {
        let place = self.places.get_mut(key.index as usize)?;
        if place.generation == key.generation {
            place.connection.take()
        } else {
            None
        }
    }

    /// A connection in its place. None if it is gone, or lifted.
    pub fn get(&mut self, key: ConnectionKey) -> Option<&mut C> {
        let place = self.places.get_mut(key.index as usize)?;
        let connection = place.connection.as_deref_mut();
        connection.filter(|_| place.generation == key.generation)
    }

    /// Puts a lifted connection back.
    pub fn back(&mut self, key: ConnectionKey, connection: Box<C>) {
        let place = &mut self.places[key.index as usize];
        if !place.listed && connection.waits() {
            place.listed = true;
            self.waiting.push(key.index);
        }
        place.connection = Some(connection);
    }

    /// A look begins at who waits, if the last one is over.
    pub fn begin_look(&mut self) {
        if self.unseen.is_empty() {
            std::mem::swap(&mut self.waiting, &mut self.unseen);
        }
    }

    /// Goes on with it: `see` is shown who waits, of at most `most` that may. Returned is how many
    /// those were. None: no look is under way.
    pub fn look_on(&mut self, most: usize, mut see: impl FnMut(&C)) -> Option<usize> {
        let from = self.unseen.len().saturating_sub(most);
        let seen = self.unseen.drain(from..);
        let count = seen.len();
        for index in seen {
            let place = &mut self.places[index as usize];
            let connection = place.connection.as_deref();
            let waits = connection.filter(|connection| connection.waits());
            place.listed = waits.is_some();
            if let Some(connection) = waits {
                see(connection);
                self.waiting.push(index);
            }
        }
        (count > 0).then_some(count)
    }

    /// Whether somebody is still to be looked at.
    pub fn looks(&self) -> bool {
        !self.unseen.is_empty()
    }

    /// Frees the place of a lifted connection: late mail for it finds nobody.
    pub fn give_up(&mut self, key: ConnectionKey) {
        let place = &mut self.places[key.index as usize];
        if place.taken && place.generation == key.generation {
            place.taken = false;
            place.connection = None;
            place.generation = place.generation.wrapping_add(1);
            self.free.push(key.index);
        }
    }

    /// The key of whoever is at `index` now.
    pub fn key_at(&self, index: u32) -> Option<ConnectionKey> {
        let place = self.places.get(index as usize)?;
        place.taken.then_some(ConnectionKey {
            index,
            generation: place.generation,
        })
    }

    /// Every connection's key.
    pub fn keys(&self) -> Vec<ConnectionKey> {
        (0..self.places.len() as u32)
            .filter_map(|index| self.key_at(index))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Stub {
        waits: bool,
    }

    impl Waits for Stub {
        fn waits(&self) -> bool {
            self.waits
        }
    }

    fn put(places: &mut Places<Stub>, key: ConnectionKey, waits: bool) {
        places.back(key, Box::new(Stub { waits }));
    }

    /// How many were looked at, and shown, in pieces of 64.
    fn look(places: &mut Places<Stub>) -> (usize, usize) {
        let (mut looked_at, mut shown) = (0, 0);
        places.begin_look();
        while let Some(count) = places.look_on(64, |_| shown += 1) {
            assert!(count <= 64, "{count} at a time");
            looked_at += count;
        }
        assert!(!places.looks());
        (looked_at, shown)
    }

    #[test]
    fn a_look_at_who_waits_looks_at_nobody_else() {
        let mut places = Places::default();
        let keys: Vec<_> = (0..10_000).map(|_| places.reserve()).collect();
        keys.iter().for_each(|key| put(&mut places, *key, false));
        assert_eq!(look(&mut places), (0, 0), "10,000 idle ones");
        for key in &keys[..100] {
            drop(places.lift(*key));
            put(&mut places, *key, true);
            drop(places.lift(*key));
            put(&mut places, *key, true);
        }
        assert_eq!(look(&mut places), (100, 100), "each once");
        assert_eq!(look(&mut places), (100, 100), "they still wait");
        drop(places.lift(keys[0]));
        put(&mut places, keys[0], false);
        drop(places.lift(keys[1]));
        places.give_up(keys[1]);
        assert_eq!(look(&mut places), (100, 98));
        assert_eq!(
            look(&mut places),
            (98, 98),
            "who waits no more is forgotten"
        );
        let next = places.reserve();
        assert_eq!(next.index, keys[1].index);
        put(&mut places, next, true);
        assert_eq!(look(&mut places), (99, 99), "the place is another's");
    }

    #[test]
    fn who_begins_to_wait_during_a_look_is_seen_in_the_next() {
        let mut places = Places::default();
        let keys: Vec<_> = (0..3).map(|_| places.reserve()).collect();
        put(&mut places, keys[0], true);
        put(&mut places, keys[1], true);
        places.begin_look();
        assert_eq!(places.look_on(1, |_| ()), Some(1));
        put(&mut places, keys[2], true);
        places.begin_look();
        assert_eq!(places.look_on(9, |_| ()), Some(1), "one look at a time");
        assert_eq!(places.look_on(9, |_| ()), None);
        assert_eq!(look(&mut places), (3, 3));
    }
}
