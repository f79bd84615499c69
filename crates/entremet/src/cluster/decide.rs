//! Which slots move, from what tenants and nodes were seen to do: the policy is
//! `policy::placement`, and what it is given and what it says is put in words here.

use std::collections::{BTreeMap, BTreeSet};

use front::{Space, SLOTS};
use policy::placement::{Looked, Move, Node, Partition, Parts, Placer, PlacerOptions, Price};
use policy::Nanos;

use super::asked::{asked, partitions, Asked};
use super::figures::Told;
use super::nodes::Views;
use super::pace::BYTES_PER_S;
use super::what::slots_with;

/// A move takes both nodes for so much of the time while it lasts, where one is much too full.
pub const LOAD: f64 = 0.5;
/// And where both have room.
const LOAD_MIN: f64 = 0.05;
/// What fronts tell are means that are as sure as one of so long, s: the newest second counts a
/// fifth.
const TOLD_S: f64 = 9.0;
/// Steps that take a moment, whatever is in the slot, s (measured, nodes that are full: .1 to .5).
const LEAST_S: f64 = 0.3;

/// What a move costs where what it gains counts for so long, between nodes with this part of a
/// processor.
pub fn price(horizon_s: f64, processor: f64) -> Price {
    Price {
        bytes_per_s: BYTES_PER_S as f64 * LOAD * processor,
        load: LOAD,
        least_s: LEAST_S,
        horizon_s,
    }
}

/// What was seen.
pub struct Scene<'s> {
    /// By the clock on the wall, ns.
    pub now: Nanos,
    /// For how long before that it was seen, s.
    pub seen_s: f64,
    /// Where slots are; nodes agree.
    pub views: &'s Views,
    /// By the names of tenants.
    pub told: &'s BTreeMap<String, Told>,
    /// The part of its processor that each master used, by its name.
    pub uses: &'s BTreeMap<String, f64>,
    /// What a unit of weight is charged before each master, ns, by its name.
    pub prices: &'s BTreeMap<String, f64>,
    /// What is in slots, about.
    pub bytes: &'s BTreeMap<u16, u64>,
    /// Names of nodes that take part in a move.
    pub busy: &'s BTreeSet<String>,
    /// Names of nodes that were emptied: nothing goes there.
    pub leaving: &'s BTreeSet<String>,
}

/// A slot that is to move.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// The slot.
    pub slot: u16,
    /// The name of the node.
    pub to: String,
    /// What the fuller of both nodes wins.
    pub gain: f64,
    /// The part of the time of both that the move may take.
    pub part: f64,
    /// It changes places with the slot before it, and stays where that did.
    pub follows: bool,
    /// In words.
    pub why: String,
}

/// What decides.
pub struct Decider {
    /// Its memory.
    pub placer: Placer,
    /// How tenants' demands are divided, and when that was looked at last.
    parts: Parts<String>,
    looked: Option<Nanos>,
    evidence_s: f64,
    /// Tenants whose partitions stay.
    except: BTreeSet<String>,
}

impl Decider {
    /// One that has seen nothing.
    pub fn new(options: PlacerOptions, except: &[String]) -> Self {
        Self {
            placer: Placer::new(options),
            parts: Parts::default(),
            looked: None,
            evidence_s: options.evidence_s,
            except: except.iter().cloned().collect(),
        }
    }

    /// What is to move.
    ///
    /// # Errors
    /// Why nothing is: in words.
    pub fn decide(
        &mut self,
        scene: &Scene<'_>,
        tenants: &[(String, Space)],
    ) -> Result<Vec<Decision>, String> {
        let ids: Vec<&str> = scene
            .views
            .first
            .masters()
            .map(|node| node.id.as_str())
            .collect();
        let mut asked = asked(scene.views, scene.told, scene.uses, scene.prices, &ids)?;
        self.divide(scene, &mut asked);
        let nodes = asked.nodes(&ids, scene.leaving);
        let mut partitions = partitions(&asked, &nodes);
        let mut bytes = vec![0; SLOTS.into()];
        for (slot, size) in scene.bytes {
            bytes[usize::from(*slot)] = *size;
        }
        let busy: Vec<bool> = ids.iter().map(|id| scene.busy.contains(*id)).collect();
        let even = evenness(&partitions, &nodes);
        let looked = Looked {
            now: scene.now,
            seen_s: scene.seen_s,
            nodes: &nodes,
            bytes: &bytes,
            stays: &self.stays(scene),
            busy: &busy,
        };
        let planned = self.placer.step(&looked, &mut partitions, true);
        let moved = planned.map(|planned| planned.moved);
        match moved {
            Some(moved) if !moved.is_empty() => {
                let decide = |one: &Move| decision(one, scene, &ids, tenants);
                Ok(moved.iter().map(decide).collect())
            }
            _ => Err(match self.placer.evidence_s() {
                seen if seen <= 0.0 => format!("{even}: that is even enough"),
                seen if seen < self.evidence_s => format!(
                    "{even}; that may pass: it adds up to {seen:.1} of {:.1} node seconds",
                    self.evidence_s
                ),
                _ => format!("{even}; no move would gain more than it costs"),
            }),
        }
    }

    /// Divides what each tenant is asked for over its slots as all looks have it. A look has what
    /// fronts told since the one before, as far as they go back.
    fn divide(&mut self, scene: &Scene<'_>, asked: &mut Asked) {
        let since = self.looked.replace(scene.now);
        let since_s = since.map(|since| scene.now.saturating_sub(since) as f64 / 1e9);
        let told_s = since_s.map_or(scene.seen_s, |since_s| since_s.min(TOLD_S));
        let told = asked.tenants.iter_mut();
        let told = told.map(|(name, asking)| (name.clone(), &mut asking.rates));
        self.parts.look(told_s, told);
    }

    /// By slot, whether it must stay.
    fn stays(&self, scene: &Scene<'_>) -> Vec<bool> {
        let mut stays = vec![false; SLOTS.into()];
        for (name, told) in scene.told {
            if self.except.contains(name) {
                for slot in told.slots.keys() {
                    stays[usize::from(*slot)] = true;
                }
            }
        }
        stays
    }
}

/// How full the fullest node is, and the mean, in words.
fn evenness(partitions: &[Partition<1>], nodes: &[Node<1>]) -> String {
    let mut used = vec![0.0; nodes.len()];
    for partition in partitions {
        if let Some(node) = partition.nodes.first() {
            used[*node as usize] += partition.demand[0] as f64;
        }
    }
    let can: Vec<f64> = nodes.iter().map(|node| node.capacity[0] as f64).collect();
    let able = used.iter().zip(&can).filter(|(_, can)| **can > 0.0);
    let most = able.map(|(used, can)| used / can).fold(0.0, f64::max);
    let mean = used.iter().sum::<f64>() / can.iter().sum::<f64>().max(1.0);
    format!(
        "nothing moves: the most used node is asked for {:.0} % of what it can serve, and the mean is {:.0} %",
        most * 100.0,
        mean * 100.0
    )
}

fn decision(one: &Move, scene: &Scene<'_>, ids: &[&str], tenants: &[(String, Space)]) -> Decision {
    let (from, to) = (ids[one.from as usize], ids[one.to as usize]);
    let slot = one.partition as u16;
    let percent = |part: f64| part * 100.0;
    let served = |used: f64| percent((1.0 / used.max(1e-9)).min(1.0));
    let why = format!(
        "{} from {} to {}: they are asked for {:.0} % and {:.0} % of what they can serve, then {:.0} % and {:.0} %; it gets {:.0} % of what it is due, then {:.0} %",
        slots_with(slot.into(), tenants),
        scene.views.at(from),
        scene.views.at(to),
        percent(one.before[0]),
        percent(one.before[1]),
        percent(one.after[0]),
        percent(one.after[1]),
        served(one.before[0]),
        served(one.after[1])
    );
    Decision {
        slot,
        to: to.to_owned(),
        gain: one.gain(),
        part: one.part(LOAD_MIN, LOAD),
        follows: one.follows,
        why,
    }
}

#[cfg(test)]
mod tests {
    use super::super::nodes::View;
    use super::*;

    /// Three nodes with a third of the slots each, from 0, 5462 and 10923 on.
    fn views() -> Views {
        let [a, b, c] = ["a", "b", "c"].map(|digit| digit.repeat(40));
        let view = |me: &str| {
            let own = |id: &str| if id == me { "myself,master" } else { "master" };
            let text = format!(
                "{a} h:1@9 {} - 0 0 1 connected 0-5461\n{b} h:2@9 {} - 0 0 2 connected 5462-10922\n{c} h:3@9 {} - 0 0 3 connected 10923-16383\n",
                own(&a),
                own(&b),
                own(&c)
            );
            View::read(&text, "h").expect("nodes")
        };
        Views {
            first: view(&a),
            by_master: [&a, &b, &c].map(|id| (id.clone(), view(id))).into(),
        }
    }

    fn told(weight: f64, waits: bool, slots: &[(u16, u64)]) -> Told {
        Told {
            weight,
            waits,
            slots: slots.iter().copied().collect(),
        }
    }

    fn decide(
        decider: &mut Decider,
        told: &BTreeMap<String, Told>,
        used: [f64; 3],
        bytes: &[(u16, u64)],
    ) -> Result<Vec<Decision>, String> {
        decide_at(0, &[], decider, told, (used, [0.0; 3]), bytes)
    }

    /// The same at some second, while these nodes were emptied, with what a unit of weight is
    /// charged before each.
    fn decide_at(
        second: u64,
        leaving: &[&str],
        decider: &mut Decider,
        told: &BTreeMap<String, Told>,
        (used, prices): ([f64; 3], [f64; 3]),
        bytes: &[(u16, u64)],
    ) -> Result<Vec<Decision>, String> {
        let of_each = |figures: [f64; 3]| {
            let names = ["a", "b", "c"].map(|digit| digit.repeat(40));
            names.into_iter().zip(figures).collect::<BTreeMap<_, _>>()
        };
        let scene = Scene {
            now: (1_000 + second) * 1_000_000_000,
            seen_s: 1.0,
            views: &views(),
            told,
            uses: &of_each(used),
            prices: &of_each(prices),
            bytes: &bytes.iter().copied().collect(),
            busy: &BTreeSet::new(),
            leaving: &leaving.iter().map(|digit| digit.repeat(40)).collect(),
        };
        decider.decide(&scene, &[])
    }

    fn at_once() -> PlacerOptions {
        PlacerOptions {
            evidence_s: 0.0,
            ..PlacerOptions::priced(price(300.0, 1.0))
        }
    }

    fn both_at_one(waits: bool) -> BTreeMap<String, Told> {
        let one = ("one".to_owned(), told(1.0, waits, &[(3, 600)]));
        let two = ("two".to_owned(), told(1.0, waits, &[(7, 300), (9, 100)]));
        [one, two].into()
    }

    #[test]
    fn one_of_two_that_wait_at_a_node_goes_and_it_is_said_why() {
        let mut decider = Decider::new(at_once(), &[]);
        let all = decide(&mut decider, &both_at_one(true), [0.9, 0.0, 0.0], &[]);
        let [one] = &all.expect("a move")[..] else {
            panic!("one move")
        };
        assert_eq!((one.slot, &*one.to), (3, &*"b".repeat(40)));
        assert!(
            one.why
                .starts_with("slot 3 from h:1 to h:2: they are asked for 250 % and 0 %"),
            "{}",
            one.why
        );
        assert!(
            one.why
                .ends_with("it gets 40 % of what it is due, then 100 %"),
            "{}",
            one.why
        );
        // It has gone, as far as is known: it stays for a while.
        let again =
            decide(&mut decider, &both_at_one(true), [0.9, 0.0, 0.0], &[]).expect("another");
        assert_eq!(again[0].slot, 7);
    }

    /// Two nodes with two slots each, of which each look shows another to be asked for more.
    #[test]
    fn what_looks_show_of_parts_is_added_up() {
        let mut decider = Decider::new(at_once(), &[]);
        let mut look = |second: u64, first: u64| {
            let second_node = 1_000 - first;
            let halves = [
                (3, first),
                (4, first),
                (6_000, second_node),
                (6_001, second_node),
            ];
            let told = BTreeMap::from([("one".to_owned(), told(1.0, true, &halves))]);
            let used = [first as f64 / 500.0, second_node as f64 / 500.0, 0.0];
            decide_at(second, &["c"], &mut decider, &told, (used, [0.0; 3]), &[])
        };
        let changed = look(1, 540).expect("two slots change places");
        let slots = changed.iter().map(|one| (one.slot, one.follows));
        assert_eq!(slots.collect::<Vec<_>>(), [(3, false), (6_000, true)]);
        let why = look(2, 460).expect_err("both together are even");
        assert!(why.contains("even enough"), "{why}");
        // What is so much more is another demand: of that the last look tells all there is.
        assert!(look(3, 700).is_ok());
    }

    /// Two nodes, each with a tenant that waits and nothing else. Fronts serve who competes alike
    /// by what requests weigh, and the node at which these take longer serves fewer of them.
    #[test]
    fn where_requests_take_longer_less_is_asked_for() {
        let slots = |first: u16| (first..first + 10).map(|slot| (slot, 100));
        let tenant = |first: u16| told(1.0, true, &slots(first).collect::<Vec<_>>());
        let told = BTreeMap::from([("one".into(), tenant(3)), ("two".into(), tenant(6_000))]);
        let moved = |prices: [f64; 3]| {
            let mut decider = Decider::new(at_once(), &[]);
            let used = [1.0, 1.0, 0.0];
            decide_at(0, &["c"], &mut decider, &told, (used, prices), &[])
        };
        assert!(moved([0.0; 3]).expect_err("even").contains("even enough"));
        let all = moved([27.0, 23.0, 0.0]).expect("a move");
        assert_eq!(all.len(), 1);
        assert!(all[0].slot < 13 && all[0].to == "b".repeat(40), "{all:?}");
    }

    #[test]
    fn nothing_goes_to_a_node_that_was_emptied() {
        for (leaving, to) in [(&["b"][..], Some("c")), (&["b", "c"], None)] {
            let mut decider = Decider::new(at_once(), &[]);
            let (told, figures) = (both_at_one(true), ([0.9, 0.0, 0.0], [0.0; 3]));
            let all = decide_at(0, leaving, &mut decider, &told, figures, &[]);
            match to {
                Some(to) => assert_eq!(all.expect("a move")[0].to, to.repeat(40)),
                None => assert!(all.expect_err("nowhere").contains("even enough")),
            }
        }
    }

    #[test]
    fn what_stays_and_what_costs_too_much_does_not_go() {
        let mut except = Decider::new(at_once(), &["one".into()]);
        let all = decide(&mut except, &both_at_one(true), [0.9, 0.0, 0.0], &[]).expect("a move");
        assert_eq!(all[0].slot, 7);
        // A terabyte each.
        let heavy = [(3, 1 << 40), (7, 1 << 40), (9, 1 << 40)];
        let mut decider = Decider::new(at_once(), &[]);
        let why = decide(&mut decider, &both_at_one(true), [0.9, 0.0, 0.0], &heavy);
        assert!(why
            .expect_err("too much")
            .contains("no move would gain more than it costs"));
    }

    #[test]
    fn nodes_that_have_little_to_do_are_even_enough() {
        let mut decider = Decider::new(at_once(), &[]);
        let why = decide(&mut decider, &both_at_one(false), [0.04, 0.0, 0.0], &[]);
        assert!(why.expect_err("nothing").contains("even enough"));
        // With as much to do as this it goes, although nobody waits.
        assert!(decide(&mut decider, &both_at_one(false), [0.6, 0.0, 0.0], &[]).is_ok());
    }

    #[test]
    fn what_may_pass_is_waited_for() {
        let mut decider = Decider::new(PlacerOptions::priced(price(300.0, 1.0)), &[]);
        // One and two thirds of a node too much, less what may be: a second is not enough.
        let why = decide(&mut decider, &both_at_one(true), [0.9, 0.0, 0.0], &[]);
        let why = why.expect_err("not yet");
        assert!(
            why.contains("it adds up to 1.6 of 3.0 node seconds"),
            "{why}"
        );
        assert!(decide(&mut decider, &both_at_one(true), [0.9, 0.0, 0.0], &[]).is_ok());
    }
}
