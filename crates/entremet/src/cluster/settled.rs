//! Whether nodes are so that partitions may be placed: they agree, every slot is served, and what
//! has happened to them is long enough ago.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use super::intent::{slots_of, Intent};
use super::nodes::{Node, Views};

/// After a failover clients come back and replicas copy anew. What is asked for meanwhile says
/// little of what will be.
const AFTER_FAILOVER: Duration = Duration::from_secs(30);

/// What is known of nodes that are away. The cluster keeps one in its list until it is told to
/// forget it, also when another has taken its slots.
#[derive(Default)]
pub struct Away {
    known: BTreeSet<String>,
    /// When one of them was last missed; none: that is long ago, or none is away.
    missed: Option<Instant>,
}

impl Away {
    /// Looks whether all that is served by nodes that are there has been so for long enough.
    /// Returns what there is to say as it becomes so.
    ///
    /// # Errors
    /// It is not.
    pub fn look(&mut self, views: &Views, now: Instant) -> Result<Option<String>, String> {
        let gone = views.first.nodes.values().filter(|node| node.gone);
        let gone: Vec<&Node> = gone.collect();
        let lacks = gone.iter().find(|node| node.slots() > 0);
        let ids: BTreeSet<String> = gone.iter().map(|node| node.id.clone()).collect();
        if lacks.is_some() || !ids.is_subset(&self.known) {
            self.missed = Some(now);
        }
        self.known = ids;
        if let Some(node) = lacks {
            return Err(format!("{} is away, and nobody serves its slots", node.at));
        }
        let all = gone.iter().map(|node| node.at.as_str());
        let all = all.collect::<Vec<_>>().join(", ");
        let verb = if gone.len() > 1 { "are" } else { "is" };
        match self.missed {
            None => Ok(None),
            Some(missed) if now.saturating_duration_since(missed) < AFTER_FAILOVER => Err(format!(
                "{all} {verb} away; others serve all slots, and partitions move again {} s after that began",
                AFTER_FAILOVER.as_secs()
            )),
            Some(_) => {
                self.missed = None;
                Ok(Some(format!("{all} {verb} away still; others serve all slots, and partitions move again")))
            }
        }
    }
}

/// Nodes agree where slots are, and no slot is half at another node but those that were `begun`.
///
/// # Errors
/// It is not so.
pub fn settled(views: &Views, begun: &[Intent]) -> Result<(), String> {
    if let Some(what) = views.dispute(&slots_of(begun)) {
        return Err(format!("nodes do not agree: {what}"));
    }
    let mut open = views.open();
    let by_hand = open.find(|(slot, ..)| begun.iter().all(|begun| !begun.slots.has(*slot)));
    match by_hand {
        None => Ok(()),
        Some((slot, id, _)) => Err(format!(
            "slot {slot} is in the middle of a move at {} that another tool began: see `entremet cluster check`",
            views.at(id)
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::super::nodes::View;
    use super::*;

    /// Two nodes; `second` is what each says of the other, `open` what the first has open.
    fn views(second: &str, open: &str) -> Views {
        let [a, b] = ["a", "b"].map(|digit| digit.repeat(40));
        let view = |me: &str, open: &str| {
            let own = |id: &str| if id == me { "myself," } else { "" };
            let slots = match second {
                // Another has them.
                "master,fail,replaced" => "",
                _ => "8192-16383",
            };
            let text = format!(
                "{a} h:1@9 {}master - 0 0 1 connected 0-8191 {open}\n{b} h:2@9 {}{second} - 0 0 2 connected {slots}\n",
                own(&a),
                own(&b)
            );
            View::read(&text, "h").expect("nodes")
        };
        Views {
            first: view(&a, open),
            by_master: [(a.clone(), view(&a, open)), (b.clone(), view(&b, ""))].into(),
        }
    }

    #[test]
    fn nothing_is_decided_while_nodes_are_not_settled() {
        let b = "b".repeat(40);
        let open = format!("[7->-{b}]");
        let begun = Intent::read("7", &format!("{} {b} 1 - 0", "a".repeat(40)));
        let begun: Vec<Intent> = begun.into_iter().collect();
        assert_eq!(settled(&views("master", ""), &[]), Ok(()));
        assert_eq!(settled(&views("master", &open), &begun), Ok(()));
        let by_hand = settled(&views("master", &open), &[]).expect_err("open");
        assert!(by_hand.contains("that another tool began"), "{by_hand}");
    }

    #[test]
    fn half_a_minute_after_a_failover_partitions_move_again() {
        let (mut away, start) = (Away::default(), Instant::now());
        let mut look = |second: &str, after_s: u64| {
            away.look(&views(second, ""), start + Duration::from_secs(after_s))
        };
        assert_eq!(look("master", 0), Ok(None));
        let why = look("master,fail", 10).expect_err("nobody serves");
        assert_eq!(why, "h:2 is away, and nobody serves its slots");
        assert!(look("master,fail", 100).is_err());
        let why = look("master,fail,replaced", 101).expect_err("just now");
        assert!(why.starts_with("h:2 is away; others serve"), "{why}");
        assert!(look("master,fail,replaced", 129).is_err());
        let said = look("master,fail,replaced", 130).expect("settled");
        assert!(said.is_some_and(|said| said.starts_with("h:2 is away still;")));
        assert_eq!(look("master,fail,replaced", 131), Ok(None));
        assert_eq!(look("master", 132), Ok(None));
        // It is missed once more.
        assert!(look("master,fail,replaced", 200).is_err());
        assert!(look("master,fail,replaced", 230).is_ok());
    }
}
