//! Where a core keeps its connections: numbered places that are used again.

use crate::connection::Connection;
use crate::tenants::ConnectionKey;

/// The connections of one core.
#[derive(Default)]
pub struct Places {
    places: Vec<Place>,
    free: Vec<u32>,
}

#[derive(Default)]
struct Place {
    generation: u32,
    connection: Option<Box<Connection>>,
    taken: bool,
}

impl Places {
    /// Takes a place for a connection, which is then put there with [`Places::back`].
    pub fn reserve(&mut self) -> ConnectionKey {
        let index = self.free.pop().unwrap_or_else(|| {
            self.places.push(Place::default());
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
    pub fn lift(&mut self, key: ConnectionKey) -> Option<Box<Connection>> {
        let place = self.places.get_mut(key.index as usize)?;
        if place.generation == key.generation {
            place.connection.take()
        } else {
            None
        }
    }

    /// A connection in its place. None if it is gone, or lifted.
    pub fn get(&mut self, key: ConnectionKey) -> Option<&mut Connection> {
        let place = self.places.get_mut(key.index as usize)?;
        let connection = place.connection.as_deref_mut();
        connection.filter(|_| place.generation == key.generation)
    }

    /// Puts a lifted connection back.
    pub fn back(&mut self, key: ConnectionKey, connection: Box<Connection>) {
        self.places[key.index as usize].connection = Some(connection);
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
