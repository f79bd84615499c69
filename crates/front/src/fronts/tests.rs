use proptest::prelude::*;

use super::*;
use crate::peer::Both;
use crate::slot::{part, SLOTS};

const SECOND: u64 = 1_000_000_000;

fn endpoint(from: u16, number: usize) -> Endpoint {
    Endpoint {
        host: "h".into(),
        port: from + number as u16,
    }
}

fn peer(number: usize, node: Option<usize>) -> Peer {
    Peer {
        id: format!("{number:040x}"),
        at: Both {
            plain: Some(endpoint(7_000, number)),
            tls: Some(endpoint(8_000, number)),
        },
        node: node.map(|node| format!("n:{node}")),
    }
}

/// A cluster whose nodes have equal ranges of the slots.
fn topology(nodes: usize) -> Arc<Topology> {
    let ranges = (0..nodes).map(|node| {
        let [from, to] = [node, node + 1].map(|node| (usize::from(SLOTS) * node / nodes) as i64);
        let master = vec![Value::Text(b"n".to_vec()), Value::Int(node as i64)];
        Value::List(vec![
            Value::Int(from),
            Value::Int(to - 1),
            Value::List(master),
        ])
    });
    let slots = Value::List(ranges.collect());
    Arc::new(Topology::read(&slots, "n").expect("slots"))
}

fn entries(list: &[(&Peer, u64)]) -> Value {
    let pairs = list
        .iter()
        .flat_map(|(peer, beat)| [peer.id.clone(), peer.entry(*beat)]);
    Value::List(pairs.map(|text| Value::Text(text.into_bytes())).collect())
}

#[test]
fn a_front_that_falls_silent_is_gone_and_one_that_speaks_again_is_back() {
    let (one, other) = (peer(1, Some(0)), peer(2, None));
    let mut fronts = Fronts::default();
    let at = |round: u64| round * SECOND / 4;
    for round in 0..10 {
        fronts.hear(&entries(&[(&one, round), (&other, 7)]), at(round));
        assert_eq!(fronts.there(), [one.clone(), other.clone()], "{round}");
    }
    fronts.hear(&entries(&[(&one, 10), (&other, 7)]), at(10));
    assert_eq!(fronts.there(), std::slice::from_ref(&one));
    fronts.hear(&entries(&[(&one, 11), (&other, 8)]), at(11));
    assert_eq!(fronts.there().len(), 2);
    fronts.hear(&entries(&[(&other, 9)]), at(12));
    assert_eq!(
        fronts.there(),
        [other],
        "who takes its entry away goes at once"
    );
}

#[test]
fn while_nothing_can_be_read_nobody_is_gone() {
    let (one, other) = (peer(1, None), peer(2, None));
    let mut fronts = Fronts::default();
    fronts.hear(&entries(&[(&one, 1), (&other, 1)]), 0);
    fronts.hear(&entries(&[(&one, 1), (&other, 1)]), 100 * SECOND);
    assert_eq!(fronts.there().len(), 2);
    // The others have as long as a master's failover takes to be found by all.
    fronts.hear(&entries(&[(&one, 2), (&other, 1)]), 102 * SECOND);
    assert_eq!(fronts.there().len(), 2);
    assert_eq!(fronts.gone(), Vec::<String>::new());
    for second in 103..250 {
        fronts.hear(&entries(&[(&one, second), (&other, 1)]), second * SECOND);
    }
    assert_eq!(fronts.gone(), [other.id]);
}

#[test]
fn a_tenant_with_one_partition_has_one_home_and_the_others_behind_it() {
    let fronts: Vec<Peer> = (0..3).map(|number| peer(number, Some(number))).collect();
    let homes = Homes::new(&fronts, topology(3), &peer(0, None).id, false, 0).expect("me");
    let shards = homes.shards(&Space::of("a"));
    assert_eq!(shards.len(), 1);
    assert_eq!(shards[0].ranges, [(0, SLOTS - 1)]);
    assert_eq!(shards[0].others.len(), 2);
    assert!(Homes::new(&fronts[1..], topology(3), &peer(0, None).id, false, 0).is_none());
}

#[test]
fn a_front_is_shown_with_both_its_ports_where_they_are_at_one_host() {
    let mut front = peer(1, None);
    let shown = |front: &Peer, tls| {
        let home = Home::of(front, tls)?;
        Some((home.at.port, home.other_port))
    };
    assert_eq!(shown(&front, false), Some((7_001, Some(8_001))));
    assert_eq!(shown(&front, true), Some((8_001, Some(7_001))));
    front.at.tls = Endpoint::read("other:8001");
    assert_eq!(shown(&front, false), Some((7_001, None)));
    front.at.tls = None;
    assert_eq!(shown(&front, false), Some((7_001, None)));
    assert_eq!(shown(&front, true), None);
}

proptest! {
    #[test]
    fn each_slot_has_one_home_that_clients_reach_which_stands_before_its_node_if_any_does(
        before in proptest::collection::vec(
            (proptest::option::of(0..6usize), any::<bool>(), any::<bool>()),
            1..6,
        ),
        nodes in 1..6usize,
        parts in 1..=64u16,
        tls in any::<bool>(),
    ) {
        let peers = before.iter().enumerate().map(|(number, (node, plain, with_tls))| {
            let mut peer = peer(number, *node);
            peer.at.plain.take_if(|_| !plain);
            peer.at.tls.take_if(|_| !with_tls);
            peer
        });
        let peers: Vec<Peer> = peers.collect();
        let reached: Vec<&Peer> = peers.iter().filter(|peer| peer.at.of(tls).is_some()).collect();
        let topology = topology(nodes);
        let homes = Homes::new(&peers, Arc::clone(&topology), &peers[0].id, tls, 0);
        prop_assert_eq!(homes.is_some(), !reached.is_empty());
        let Some(homes) = homes else {
            return Ok(());
        };
        let fronts = homes.fronts();
        let ids = |front: &Home| (front.id.clone(), Some(front.at.clone()));
        let expected = reached.iter().map(|peer| (peer.id.clone(), peer.at.of(tls).clone()));
        prop_assert!(fronts.iter().map(ids).eq(expected));
        let space = Space::in_parts("t", parts);
        let shards = homes.shards(&space);
        let mut seen = vec![None; usize::from(SLOTS)];
        for shard in &shards {
            for (from, to) in &shard.ranges {
                for slot in *from..=*to {
                    prop_assert_eq!(seen[usize::from(slot)].replace(shard.front), None);
                }
            }
        }
        for slot in 0..SLOTS {
            let front = &fronts[seen[usize::from(slot)].expect("a home")];
            let real = space.slot(part(slot, parts));
            let node = topology.owner(real);
            let any = fronts.iter().any(|front| front.node.as_deref() == node);
            prop_assert!(!any || front.node.as_deref() == node);
            let mine = front.id == peers[0].id;
            prop_assert_eq!(homes.elsewhere(real), (!mine).then_some(front));
            prop_assert_eq!(homes.mine(node.expect("an owner")), mine);
        }
        let shown = shards.iter().map(|shard| 1 + shard.others.len()).sum::<usize>();
        prop_assert_eq!(shown, fronts.len());
        prop_assert!(shards.iter().all(|shard| !shard.others.contains(&shard.front)));
    }

    #[test]
    fn a_front_that_goes_takes_only_its_own_nodes_away(
        before in proptest::collection::vec(proptest::option::of(0..6usize), 2..6),
        gone in any::<proptest::sample::Index>(),
    ) {
        let peers = before.iter().enumerate().map(|(number, node)| peer(number, *node));
        let fronts: Vec<Home> = peers.filter_map(|peer| Home::of(&peer, false)).collect();
        let mut rest = fronts.clone();
        let gone = rest.remove(gone.index(fronts.len()));
        for node in 0..6 {
            let node = format!("n:{node}");
            let was = &fronts[home(&fronts, Some(&node))];
            if *was != gone {
                prop_assert_eq!(was, &rest[home(&rest, Some(&node))]);
            }
        }
    }

    /// Homes change as they like, and each front reads of it at times of its own: a client that
    /// follows where it is sent is served after one step at most. Changes of other slots are no
    /// reason not to send it on.
    #[test]
    fn no_two_fronts_send_a_client_to_each_other(
        changes in proptest::collection::vec((2_400..8_000u64, 0..2usize, 0..3usize), 0..12),
        gaps in proptest::collection::vec(proptest::collection::vec(100..2_400u64, 60), 3),
    ) {
        // No front reads so seldom that it misses one.
        let mut at = 0;
        let changes: Vec<(u64, usize, usize)> = changes.into_iter().map(|(after, node, home)| {
            at += after;
            (at, node, home)
        }).collect();
        let homes_at = |ms: u64| [0, 1].map(|node| {
            let of_node = changes.iter().rev().filter(|(_, of, _)| *of == node);
            of_node.map(|(at, _, home)| (*at, *home)).find(|(at, _)| *at <= ms).unwrap_or((0, node))
        });
        // What each front knows at each time: its homes, and when it last read. Slot 0 is the first
        // node's.
        let fronts: Vec<Peer> = (0..3).map(|number| peer(number, None)).collect();
        let topology = topology(2);
        let reads = |me: usize| {
            let (mut at, mut known): (u64, Option<[usize; 2]>) = (0, None);
            let mut reads: Vec<(u64, Arc<Homes>)> = Vec::new();
            for gap in &gaps[me] {
                at += gap;
                let now = homes_at(at).map(|(_, home)| home);
                let before = reads.last().map(|(_, homes)| Arc::clone(homes));
                let seen = before.clone().filter(|_| known == Some(now)).or_else(|| {
                    let mut list = fronts.clone();
                    for (node, home) in now.into_iter().enumerate() {
                        list[home].node = Some(format!("n:{node}"));
                    }
                    let (topology, me) = (Arc::clone(&topology), &fronts[me].id);
                    let homes = Homes::new(&list, topology, me, false, at * 1_000_000)?;
                    Some(Arc::new(match &before {
                        Some(before) => homes.after(before),
                        None => homes,
                    }))
                });
                known = Some(now);
                reads.extend(seen.map(|homes| (at, homes)));
            }
            reads
        };
        let reads = [0, 1, 2].map(reads);
        for ms in (0..30_000).step_by(250) {
            let sends = |me: usize| {
                let (read_at, homes) = reads[me].iter().rfind(|(at, _)| *at <= ms)?;
                let agreed = homes.agreed(0, read_at * 1_000_000, ms * 1_000_000);
                let to = homes.elsewhere(0).filter(|_| agreed)?;
                fronts.iter().position(|front| front.id == to.id)
            };
            for begin in 0..3 {
                if let Some(next) = sends(begin) {
                    prop_assert_eq!(sends(next), None, "at {} ms from {}", ms, begin);
                }
            }
        }
    }
}
