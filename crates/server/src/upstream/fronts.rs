//! This front among the others that stand before the same cluster. It writes its entry at the
//! cluster, beside the catalogue of tenants, and reads those of the others. Rates and weights of
//! tenants are divided in the same round, and what partitions are asked for is told.

use std::net::{IpAddr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::atomic::Ordering;
use std::sync::Arc;

use front::{
    Both, Endpoint, Fronts, Homes, Peer, Topology, DEMAND, FRONTS, KEPT, PROMISES, RATES, SILENT_NS,
};
use policy::Nanos;
use ring::digest;
use ring::rand::{SecureRandom, SystemRandom};

use super::attained::Attained;
use super::catalogue::Book;
use super::demand::Asked;
use super::rates::{House, Rates};
use super::{Found, FrontsOptions, Upstream};

/// Where a front has an entry under its name, last what it has counted of promises.
const ENTRIES: [&[u8]; 4] = [FRONTS, RATES, DEMAND, PROMISES];

/// How well promises are kept is forgotten so many seconds after the last front is gone.
const KEPT_S: &[u8] = b"15";

/// What keeps the entry of this front.
pub struct Round<'u> {
    upstream: &'u Upstream,
    options: &'u FrontsOptions,
    me: Peer,
    beat: u64,
    fronts: Fronts,
    rates: Rates,
    asked: Asked,
    attained: Attained,
    book: Option<Book<'u>>,
    /// That by which the own node was last found.
    topology: Option<Arc<Topology>>,
    /// It could not be written the last time.
    failed: bool,
    /// When rates and weights were last divided.
    divided_at: Nanos,
}

impl<'u> Round<'u> {
    /// For a front that cluster-aware clients reach at `at`, unless it is to announce other
    /// places. None: they reach it nowhere.
    pub fn new(
        upstream: &'u Upstream,
        options: &'u FrontsOptions,
        at: &Both<Option<SocketAddr>>,
        now: Nanos,
    ) -> Option<Self> {
        let at = Both::each(|tls| {
            let bound = (*at.of(tls))?;
            let announced = options.announce.of(tls).clone();
            Some(announced.unwrap_or_else(|| bound.into()))
        });
        Some(Self {
            upstream,
            options,
            me: Peer {
                id: id(at.plain.as_ref().or(at.tls.as_ref())?),
                at,
                node: None,
            },
            beat: 0,
            fronts: Fronts::default(),
            rates: Rates::new(options.divide_weights),
            asked: Asked::default(),
            attained: Attained::new(era(), now),
            book: None,
            topology: None,
            failed: false,
            divided_at: 0,
        })
    }

    /// Writes and reads once. True: other fronts are the homes of things now.
    pub fn go(&mut self, found: &Found, house: &dyn House, now: impl Fn() -> Nanos) -> bool {
        if self.topology.as_ref() != Some(&found.topology) {
            self.me.node = own_node(self.options, found);
            self.topology = Some(Arc::clone(&found.topology));
        }
        let entries = self.exchange(found);
        if let Err(why) = &entries {
            self.book = None;
            if !self.failed {
                tracing::warn!(
                    "this front cannot be written down at the cluster among the others: {why}; it goes on, and sends no client on until it can"
                );
            }
        }
        self.failed = entries.is_err();
        let now = now();
        let Ok(entries) = entries else {
            self.by_itself(house, now);
            return false;
        };
        self.fronts.hear(&entries, now);
        let there = self.fronts.there();
        let count = there.len().max(1) as u32;
        self.upstream.fronts.store(count, Ordering::Relaxed);
        let divided = match self.rates.is_due(now) {
            true => self.divide(&there, house, now),
            false => Ok(()),
        };
        if let Err(why) = divided {
            // The last portions stay. What keeps the entries from being read is said above.
            tracing::debug!("rates of tenants are as they were: {why}");
            self.book = None;
            self.by_itself(house, now);
        }
        let homes = |tls| {
            let topology = Arc::clone(&found.topology);
            Homes::new(&there, topology, &self.me.id, tls, now)
        };
        let homes = Both::each(homes);
        let mut known = self.upstream.homes.write();
        let other = follow(&mut known.plain, homes.plain) | follow(&mut known.tls, homes.tls);
        self.upstream.fronts_read_at.store(now, Ordering::Relaxed);
        other
    }

    fn exchange(&mut self, found: &Found) -> Result<front::Value, String> {
        let book = match &mut self.book {
            Some(book) => book,
            None => self
                .book
                .insert(Book::open(&found.topology, &self.upstream.options)?),
        };
        self.beat += 1;
        let entry = self.me.entry(self.beat);
        book.ask(&[b"HSET", FRONTS, self.me.id.as_bytes(), entry.as_bytes()])?;
        for gone in self.fronts.gone() {
            for key in ENTRIES {
                book.ask(&[b"HDEL", key, gone.as_bytes()])?;
            }
        }
        book.ask(&[b"HGETALL", FRONTS])
    }

    /// Others take a front that has been silent for so long to be gone, as this one does others.
    fn by_itself(&mut self, house: &dyn House, now: Nanos) {
        if now.saturating_sub(self.divided_at) >= SILENT_NS {
            self.rates.alone(house);
        }
    }

    /// Divides the rates and weights of tenants among the fronts that are there.
    fn divide(&mut self, there: &[Peer], house: &dyn House, now: Nanos) -> Result<(), String> {
        let me = self.me.id.as_str();
        let Some(book) = self.book.as_mut() else {
            return Ok(());
        };
        let seen = house.tenants();
        let mine = self.rates.tell(&seen, there.len(), now);
        // First what is claimed here: see `policy::portion`.
        book.ask(&[b"HSET", RATES, me.as_bytes(), mine.as_bytes()])?;
        let told = book.ask(&[b"HGETALL", RATES])?;
        let other = |id: &str| id != me && there.iter().any(|peer| peer.id == id);
        self.rates.hear(&told, other, house);
        self.divided_at = now;
        if self.asked.is_due(now) {
            let asked = self.asked.tell(&seen, self.upstream.took.take(), now);
            book.ask(&[b"HSET", DEMAND, me.as_bytes(), asked.as_bytes()])?;
            self.upstream.survey.go(book, now)?;
        }
        self.tell_promises(there, house, now)
    }

    /// Tells the others what became of promises here, and hears it of them. One of them writes down
    /// what came of it at all.
    fn tell_promises(
        &mut self,
        there: &[Peer],
        house: &dyn House,
        now: Nanos,
    ) -> Result<(), String> {
        let Some(book) = self.book.as_mut().filter(|_| self.attained.is_due(now)) else {
            return Ok(());
        };
        let me = self.me.id.as_str();
        let mine = self.attained.tell(house.promises(), now);
        book.ask(&[b"HSET", PROMISES, me.as_bytes(), mine.as_bytes()])?;
        let told = book.ask(&[b"HGETALL", PROMISES])?;
        let known = |id: &str| there.iter().any(|peer| peer.id == id);
        let elsewhere = self.attained.hear(&told, me, known);
        house.attained(self.attained.fronts(), elsewhere);
        for front in self.attained.left() {
            book.ask(&[b"HDEL", PROMISES, front.as_bytes()])?;
        }
        if there.first().is_some_and(|first| first.id == me) {
            let kept = house.kept();
            book.ask(&[b"SET", KEPT, kept.as_bytes(), b"EX", KEPT_S])?;
        }
        Ok(())
    }

    /// Takes its entries away: others need not wait until they miss it. What it has counted of
    /// promises it leaves there, for those who have not read it yet.
    pub fn leave(mut self, house: &dyn House, now: Nanos) {
        let Some(book) = &mut self.book else { return };
        let (me, [others @ .., promises]) = (self.me.id.as_bytes(), ENTRIES);
        let last = self.attained.tell(house.promises(), now);
        // They do without it soon, if something of this fails.
        let _ = book.ask(&[b"HSET", promises, me, last.as_bytes()]);
        for key in others {
            let _ = book.ask(&[b"HDEL", key, me]);
        }
    }
}

/// These are the homes from now on. True: they are others than before.
fn follow(known: &mut Option<Arc<Homes>>, homes: Option<Homes>) -> bool {
    let same = match (&*known, &homes) {
        (Some(known), Some(homes)) => known.same_as(homes),
        (None, None) => true,
        _ => false,
    };
    if !same {
        let homes = homes.map(|homes| match &*known {
            Some(before) => homes.after(before),
            None => homes,
        });
        *known = homes.map(Arc::new);
    }
    !same
}

/// Another number at each start.
fn era() -> u64 {
    let mut bytes = [0; 8];
    // Without randomness the server does not start.
    let _ = SystemRandom::new().fill(&mut bytes);
    u64::from_le_bytes(bytes)
}

/// The name of a front that is at this place, the one without TLS if there are two: it keeps it
/// over restarts, and when it is given one with TLS, too.
fn id(at: &Endpoint) -> String {
    let hash = digest::digest(&digest::SHA256, at.to_string().as_bytes());
    let bytes = hash.as_ref().iter().take(20);
    bytes.map(|byte| format!("{byte:02x}")).collect()
}

/// The node before which this front stands, as the cluster calls it: the one that it was told, or
/// the only master on its own host.
fn own_node(options: &FrontsOptions, found: &Found) -> Option<String> {
    use std::net::ToSocketAddrs;
    let named = || found.topology.nodes.iter().zip(found.nodes.iter());
    if let Some(node) = &options.node {
        let at = node.to_socket_addrs().ok().and_then(|mut all| all.next());
        let mut same = named().filter(|(name, place)| *name == node || Some(**place) == at);
        // A replica may become a master under this name.
        return Some(same.next().map_or(node, |(name, _)| name).clone());
    }
    let mut here = named().filter(|(_, at)| is_here(at.ip()));
    let only = here.next()?;
    here.next().is_none().then(|| only.0.clone())
}

/// Whether an address is one of this host: what it sends there comes from there. Nothing is sent.
fn is_here(ip: IpAddr) -> bool {
    let any = match ip {
        IpAddr::V4(_) => IpAddr::from([0, 0, 0, 0]),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let from = UdpSocket::bind((any, 0)).and_then(|socket| {
        socket.connect((ip, 9))?;
        socket.local_addr()
    });
    from.is_ok_and(|from| from.ip() == ip)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_front_keeps_its_name() {
        let id = |at: &str| id(&Endpoint::read(at).expect("an endpoint"));
        // As all versions call it: other fronts and what is written down go by that.
        assert_eq!(id("a:1"), "2b2c40a6706d9e5f320d553628313833e3668d8b");
        assert_ne!(id("a:1"), id("a:2"));
    }

    #[test]
    fn addresses_of_this_host_are_known() {
        assert!(is_here([127, 0, 0, 1].into()));
        // Of documentation (RFC 5737): nobody has it.
        assert!(!is_here([192, 0, 2, 1].into()));
    }
}
