//! Who holds a connection, of this whole server: newcomers, tenants, operators ([`policy::seats`]).
//!
//! Its lock is taken when a connection comes, first says something, logs in and goes, for a
//! microsecond each; not by requests.

use std::sync::Arc;

use parking_lot::Mutex;
use policy::seats::{Arrivals, Claim, Newcomer, Newcomers, Seat, Seats, SeatsOptions, Welcome};
use policy::{Nanos, PrincipalId};

use super::{Client, Peer};

/// Peers whose rate is known: 100 bytes each.
const PEERS_MAX: usize = 16_384;

/// After a pause a peer may connect so many seconds' worth of its rate at once: an application that
/// has lost all of its connections comes back with all.
const BURST_S: f64 = 10.0;

/// The seats, and who has them.
#[derive(Default)]
pub struct House {
    state: Mutex<State>,
}

struct State {
    newcomers_max: usize,
    newcomers: Newcomers<Peer, Arc<Client>>,
    seats: Seats,
    arrivals: Arrivals<Peer>,
}

impl Default for State {
    fn default() -> Self {
        Self {
            newcomers_max: 0,
            newcomers: Newcomers::default(),
            seats: Seats::default(),
            arrivals: Arrivals::new(PEERS_MAX),
        }
    }
}

impl House {
    /// So many seats there are.
    pub fn set(&self, newcomers_max: usize, seats: SeatsOptions) {
        let mut state = self.state.lock();
        state.newcomers_max = newcomers_max;
        state.seats.set(seats);
    }

    /// A tenant is there, with this claim.
    pub fn enter(&self, tenant: PrincipalId, claim: Claim) {
        self.state.lock().seats.enter(tenant, claim);
    }

    /// A tenant is there no more.
    pub fn remove(&self, tenant: PrincipalId) {
        self.state.lock().seats.remove(tenant);
    }

    /// Whether a peer that may connect `per_s` times a second may now.
    pub fn may_come(&self, now: Nanos, peer: Peer, per_s: f64) -> bool {
        self.state.lock().arrivals.come(now, peer, per_s, BURST_S)
    }

    /// A connection comes. With its hold it is given who has to go for it.
    pub fn come(
        self: &Arc<Self>,
        now: Nanos,
        client: &Arc<Client>,
    ) -> Option<(Hold, Option<Arc<Client>>)> {
        let (newcomer, gone) = self.seat(now, client)?;
        let hold = Hold {
            house: Arc::clone(self),
            held: Held::Newcomer(newcomer, Said::Nothing),
        };
        Some((hold, gone))
    }

    fn seat(&self, now: Nanos, client: &Arc<Client>) -> Option<(Newcomer, Option<Arc<Client>>)> {
        let mut state = self.state.lock();
        let (peer, seats) = (Peer::of(client.addr.ip()), state.newcomers_max);
        match state.newcomers.come(now, peer, seats, Arc::clone(client)) {
            Welcome::Seated(newcomer) => Some((newcomer, None)),
            Welcome::InPlaceOf(newcomer, gone) => Some((newcomer, Some(gone))),
            Welcome::Full => None,
        }
    }

    /// Those who came before `since` and speak for nobody yet: they have no seat any more.
    pub fn overdue(&self, since: Nanos) -> Vec<Arc<Client>> {
        self.state.lock().newcomers.overdue(since)
    }

    /// How many newcomers there are.
    pub fn newcomers(&self) -> usize {
        self.state.lock().newcomers.len()
    }

    /// How many newcomers there may be.
    pub fn newcomers_max(&self) -> usize {
        self.state.lock().newcomers_max
    }

    /// Connections that a tenant may have while the others have no more than is kept for them.
    pub fn connections_max(&self, tenant: PrincipalId) -> usize {
        self.state.lock().seats.connections_max(tenant)
    }
}

/// A connection's seat, given back when it is dropped.
pub struct Hold {
    house: Arc<House>,
    held: Held,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Held {
    Newcomer(Newcomer, Said),
    Seat(Seat),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Said {
    Nothing,
    Something,
}

impl Hold {
    /// A newcomer has said something.
    pub fn heard(&mut self) {
        if let Held::Newcomer(newcomer, Said::Nothing) = self.held {
            self.held = Held::Newcomer(newcomer, Said::Something);
            self.house.state.lock().newcomers.heard(newcomer);
        }
    }

    /// A newcomer's password is being checked, or is no more.
    pub fn checked(&self, under_way: bool) {
        if let Held::Newcomer(newcomer, _) = self.held {
            self.house
                .state
                .lock()
                .newcomers
                .checked(newcomer, under_way);
        }
    }

    /// Takes a seat of this tenant in the place of the one it has; false: there is none, and it
    /// keeps what it has.
    pub fn take(&mut self, tenant: PrincipalId) -> bool {
        let mut state = self.house.state.lock();
        let Some(seat) = state.seats.take(tenant) else {
            return false;
        };
        state.give_back(self.held);
        self.held = Held::Seat(seat);
        true
    }

    /// Speaks for nobody again, and gives who has to go for it; none: there is no seat for one more
    /// newcomer, and it keeps the one it has.
    pub fn back(&mut self, now: Nanos, client: &Arc<Client>) -> Option<Option<Arc<Client>>> {
        let (newcomer, gone) = self.house.seat(now, client)?;
        self.house.state.lock().give_back(self.held);
        self.held = Held::Newcomer(newcomer, Said::Something);
        self.house.state.lock().newcomers.heard(newcomer);
        Some(gone)
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.house.state.lock().give_back(self.held);
    }
}

impl State {
    fn give_back(&mut self, held: Held) {
        match held {
            Held::Newcomer(newcomer, _) => drop(self.newcomers.leave(newcomer)),
            Held::Seat(seat) => self.seats.leave(seat),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tenants::tests::tenant;
    use crate::tenants::{self, Clients};

    fn house(tenants: usize) -> Arc<House> {
        let house = Arc::new(House::default());
        let seats = SeatsOptions {
            tenants,
            operators: 0,
        };
        house.set(2, seats);
        house.enter(PrincipalId(1), Claim::default());
        house
    }

    /// Clients from different addresses.
    fn clients(count: u8) -> Vec<Arc<Client>> {
        let (clients, nobody) = (Clients::default(), tenant("nobody"));
        let enter = |number| {
            let addr = ([10, 0, 0, number], 1).into();
            let who = tenants::Newcomer {
                addr,
                local_addr: addr,
                tls: false,
                aware: false,
            };
            clients.enter(who, 0, &nobody)
        };
        (0..count).map(enter).collect()
    }

    #[test]
    fn a_seat_is_given_back_however_its_connection_ends() {
        let house = house(1);
        let clients = clients(3);
        let (mut first, _) = house.come(0, &clients[0]).expect("room");
        let (mut second, _) = house.come(0, &clients[1]).expect("room");
        assert!(first.take(PrincipalId(1)));
        assert!(!second.take(PrincipalId(1)), "the only one is taken");
        assert_eq!((house.newcomers(), house.newcomers_max()), (1, 2));
        // The first speaks for nobody again.
        assert!(first
            .back(1, &clients[0])
            .is_some_and(|gone| gone.is_none()));
        assert!(second.take(PrincipalId(1)));
        drop((first, second));
        assert_eq!(house.newcomers(), 0);
        let (mut third, _) = house.come(0, &clients[2]).expect("room");
        assert!(third.take(PrincipalId(1)));
    }

    #[test]
    fn one_that_had_to_go_gives_nothing_back_twice() {
        let house = house(1);
        let clients = clients(3);
        let holds: Vec<_> = clients.iter().map(|client| house.come(0, client)).collect();
        let gone = holds[2]
            .as_ref()
            .and_then(|(_, gone)| gone.clone())
            .expect("it was full");
        assert_eq!(gone.id, clients[0].id);
        assert_eq!(house.newcomers(), 2);
        drop(holds);
        assert_eq!(house.newcomers(), 0);
    }
}
