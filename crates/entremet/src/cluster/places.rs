//! Who gets what when a node is emptied or filled. `policy::placement` places what is used, by what
//! it is asked for and by its bytes; slots that nobody uses are spread evenly.

use policy::placement::{plan, Moves, Node, Partition};

use super::asked::OF_NODE;
use super::slots::Slots;

/// A slot that is used counts as so many bytes at least: what has no keys today may have some
/// tomorrow.
pub const LEAST_BYTES: u64 = 1 << 20;

/// A node that may get something, with what stays there.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Place {
    /// What it is asked for, ns of its time in a second.
    pub asked: u64,
    /// What it keeps.
    pub bytes: u64,
    /// For so much it has room; none: as much as comes.
    pub room: Option<u64>,
    /// All its slots.
    pub slots: u32,
}

/// A slot that is used.
#[derive(Clone, Debug, PartialEq)]
pub struct Piece {
    /// Which.
    pub slot: u16,
    /// What it is asked for, ns of a node's time in a second; 0 where that is not known.
    pub asked: u64,
    /// What is in it.
    pub bytes: u64,
    /// The place where it is; none: at a node that gives all away.
    pub at: Option<usize>,
}

/// The place of each piece. Those that have none get one, largest first, where it is least full
/// with them; `evens`: those that have one move as long as that makes the fullest place less full.
pub fn place(places: &[Place], pieces: &[Piece], evens: bool) -> Vec<usize> {
    let bytes = |piece: &Piece| piece.bytes.max(LEAST_BYTES);
    let kept = places.iter().map(|place| place.bytes).sum::<u64>();
    let all = kept + pieces.iter().map(bytes).sum::<u64>();
    let node = |(domain, place): (usize, &Place)| {
        let room = place.room.map_or(all, |room| all.min(place.bytes + room));
        Node {
            capacity: [OF_NODE, room.max(1)],
            domain: domain as u32,
        }
    };
    let nodes: Vec<Node<2>> = places.iter().enumerate().map(node).collect();
    let pieces = pieces.iter().map(|piece| {
        let at = piece.at.map(|place| place as u32);
        Partition::new(
            [piece.asked, bytes(piece)],
            1,
            at.into_iter().collect::<Vec<_>>(),
        )
    });
    let kept = places.iter().enumerate();
    let kept =
        kept.map(|(at, place)| Partition::new([place.asked, place.bytes], 1, vec![at as u32]));
    let mut partitions: Vec<Partition<2>> = pieces.collect();
    let count = partitions.len();
    partitions.extend(kept);
    let stays: Vec<bool> = (0..partitions.len())
        .map(|number| number >= count)
        .collect();
    let moves = Moves {
        stays: &stays,
        ..Moves::free(if evens { usize::MAX } else { 0 })
    };
    plan(&nodes, &mut partitions, &moves);
    let placed = partitions.iter().take(count);
    // One of several nodes has always room for one.
    placed
        .map(|it| it.nodes.first().map_or(0, |node| *node as usize))
        .collect()
}

/// The place of each row of slots that nobody uses: the one that has the fewest slots by then, of
/// places that have so many.
pub fn spread(rows: &[Slots], slots: &mut [u32]) -> Vec<usize> {
    let mut places = Vec::with_capacity(rows.len());
    for row in rows {
        let least = (0..slots.len()).min_by_key(|place| slots[*place]);
        let place = least.unwrap_or_default();
        slots[place] += u32::from(row.count());
        places.push(place);
    }
    places
}

/// Slots that nobody uses for a node that is to have `wanted` of them: from those that have the
/// most slots by then, none of which is left with fewer than `least`. By place: the rows that
/// nobody uses there, and how many slots it has.
pub fn taken(mut places: Vec<(Vec<Slots>, u32)>, wanted: u32, least: u32) -> Vec<Slots> {
    let (mut taken, mut left) = (Vec::new(), wanted);
    while left > 0 {
        let gives = |place: &&mut (Vec<Slots>, u32)| !place.0.is_empty() && place.1 > least;
        let most = places.iter_mut().filter(gives).max_by_key(|place| place.1);
        let Some((rows, slots)) = most else { break };
        let Some(row) = rows.pop() else { break };
        let count = u32::from(row.count()).min(left).min(*slots - least);
        let last = row.first() + (count as u16 - 1);
        taken.extend(Slots::new(row.first(), last));
        left -= count;
        *slots -= count;
    }
    taken
}

#[cfg(test)]
mod tests {
    use super::super::slots::rows;
    use super::*;

    const MB: u64 = 1 << 20;

    fn piece(slot: u16, asked_ms: u64, mb: u64, at: Option<usize>) -> Piece {
        Piece {
            slot,
            asked: asked_ms * 1_000_000,
            bytes: mb * MB,
            at,
        }
    }

    fn empty(count: usize) -> Vec<Place> {
        vec![Place::default(); count]
    }

    #[test]
    fn what_a_node_had_is_spread_by_what_it_is_asked_for_and_by_its_bytes() {
        let asked = [(0, 600), (1, 300), (2, 300)];
        let pieces: Vec<Piece> = asked
            .iter()
            .map(|(slot, ms)| piece(*slot, *ms, 0, None))
            .collect();
        let at = place(&empty(2), &pieces, false);
        assert!(at[0] != at[1] && at[1] == at[2], "{at:?}");
        let sizes = [(0, 30), (1, 10), (2, 20)];
        let pieces: Vec<Piece> = sizes
            .iter()
            .map(|(slot, mb)| piece(*slot, 0, *mb, None))
            .collect();
        let at = place(&empty(2), &pieces, false);
        assert!(at[0] != at[1] && at[1] == at[2], "{at:?}");
        // Without either they are spread by their number.
        let pieces: Vec<Piece> = (0..10).map(|slot| piece(slot, 0, 0, None)).collect();
        let at = place(&empty(2), &pieces, false);
        assert_eq!(at.iter().filter(|at| **at == 0).count(), 5, "{at:?}");
        // Where there is little room little goes.
        let mut places = empty(2);
        places[1].room = Some(2 * MB);
        let at = place(&places, &pieces, false);
        assert!(at.iter().filter(|at| **at == 1).count() <= 2, "{at:?}");
        // And what nodes have already counts.
        let mut places = empty(2);
        (places[0].asked, places[1].bytes) = (900_000_000, MB);
        let pieces = [piece(0, 200, 5, None), piece(1, 0, 1, None)];
        assert_eq!(place(&places, &pieces, false), [1, 0]);
    }

    #[test]
    fn a_new_node_gets_what_evens_out() {
        let pieces: Vec<Piece> = (0..12)
            .map(|slot| piece(slot, 0, 4, Some(usize::from(slot % 3))))
            .collect();
        let at = place(&empty(4), &pieces, true);
        assert_eq!(at.iter().filter(|at| **at == 3).count(), 3, "{at:?}");
        let stay = at
            .iter()
            .zip(&pieces)
            .filter(|(at, piece)| Some(**at) == piece.at);
        assert_eq!(stay.count(), 9, "{at:?}");
    }

    #[test]
    fn slots_that_nobody_uses_are_spread_evenly() {
        let all = rows(0..1_000, 100);
        let mut slots = [500, 0, 300];
        let at = spread(&all, &mut slots);
        assert_eq!(at.len(), 10);
        assert_eq!(slots, [600, 600, 600]);
    }

    #[test]
    fn a_new_node_takes_slots_from_those_that_have_most() {
        let places = vec![
            (rows(0..6_000, 256), 6_000),
            (rows(6_000..10_000, 256), 4_000),
        ];
        let all = taken(places, 3_333, 3_333);
        let from_first = all.iter().filter(|row| row.first() < 6_000);
        let from_first: u32 = from_first.map(|row| u32::from(row.count())).sum();
        let count: u32 = all.iter().map(|row| u32::from(row.count())).sum();
        assert_eq!(count, 3_333);
        assert!((2_500..=2_667).contains(&from_first), "{from_first}");
        assert!(taken(vec![(rows(0..10, 256), 10)], 5, 10).is_empty());
        assert_eq!(taken(Vec::new(), 5, 0), []);
    }
}
