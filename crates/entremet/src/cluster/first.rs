//! Where slots lie when a cluster is made.

use std::str::FromStr;

use front::{Space, PARTS_MAX, SLOTS};

/// The nodes of a tenant's partitions, as the command line has them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    tenant: String,
    /// From 1, one for each of its partitions.
    nodes: Vec<usize>,
}

impl FromStr for Place {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = || "expected TENANT=NODE,NODE,…: a node, from 1, for each partition";
        let (tenant, nodes) = text.split_once('=').ok_or_else(expected)?;
        let nodes: Option<Vec<usize>> = nodes.split(',').map(|node| node.parse().ok()).collect();
        let fits = |nodes: &Vec<usize>| nodes.len() <= usize::from(PARTS_MAX);
        match nodes.filter(fits) {
            Some(nodes) if settings::tenant::is_name(tenant) => Ok(Self {
                tenant: tenant.to_owned(),
                nodes,
            }),
            _ => Err(expected().into()),
        }
    }
}

/// For each of so many masters the slots that it has at first, as pairs of first and last: as many
/// in a row as each other, but for those of partitions that have a `place`. Where two partitions
/// have the same slot, it lies where the last of them does.
///
/// # Errors
/// A place names a node that there is not.
pub fn slots(masters: usize, places: &[Place]) -> Result<Vec<Vec<(u16, u16)>>, String> {
    let mut owners: Vec<usize> = (0..usize::from(SLOTS))
        .map(|slot| ((slot + 1) * masters).div_ceil(usize::from(SLOTS)) - 1)
        .collect();
    for place in places {
        let space = Space::in_parts(&place.tenant, place.nodes.len() as u16);
        for (part, node) in (0..).zip(&place.nodes) {
            if !(1..=masters).contains(node) {
                let tenant = &place.tenant;
                return Err(format!(
                    "{tenant} cannot lie at node {node}: there are {masters}"
                ));
            }
            owners[usize::from(space.slot(part))] = node - 1;
        }
    }
    let mut all = vec![Vec::new(); masters];
    let mut first = 0;
    for row in owners.chunk_by(|one, next| one == next) {
        let after = first + row.len();
        all[row[0]].push((first as u16, (after - 1) as u16));
        first = after;
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_places_each_node_has_its_part_in_a_row() {
        let all = slots(3, &[]).expect("slots");
        assert_eq!(
            all,
            [vec![(0, 5460)], vec![(5461, 10921)], vec![(10922, 16383)]]
        );
    }

    #[test]
    fn partitions_lie_where_they_are_placed_and_no_slot_is_lost() {
        let place: Place = "web=3,3,1".parse().expect("a place");
        let all = slots(3, &[place]).expect("slots");
        let space = Space::in_parts("web", 3);
        let has = |node: usize, slot: u16| {
            let mut rows = all[node - 1].iter();
            rows.any(|(first, last)| (*first..=*last).contains(&slot))
        };
        for (part, node) in (0..).zip([3, 3, 1]) {
            assert!(has(node, space.slot(part)), "{part}");
        }
        for slot in 0..SLOTS {
            assert_eq!((1..=3).filter(|node| has(*node, slot)).count(), 1, "{slot}");
        }
    }

    #[test]
    fn a_place_that_is_none_is_refused() {
        for wrong in ["web", "web=", "web=x", "we b=1", "web=1,,2"] {
            assert!(wrong.parse::<Place>().is_err(), "{wrong}");
        }
        let far: Place = "web=1,4".parse().expect("a place");
        assert!(slots(3, &[far]).expect_err("far").contains("there are 3"));
    }
}
