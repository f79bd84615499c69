//! A move is played by nodes that know no more than they were told, and is ended after each step.

use std::collections::BTreeMap;

use super::super::nodes::View;
use super::*;

const IDS: [&str; 3] = ["aaaaa", "bbbbb", "ccccc"];
const SLOT: u16 = 7;

/// No node.
const NOBODY: usize = IDS.len();

/// Nodes, by what each says: who has the slot, and whether it is open. Their epochs are by place.
#[derive(Clone, Debug)]
struct Said {
    owners: [usize; 3],
    open: [Option<Open>; 3],
    keys: [bool; 3],
}

impl Said {
    fn new(owner: usize) -> Self {
        let mut keys = [false; 3];
        keys[owner] = true;
        Self {
            owners: [owner; 3],
            open: [None, None, None],
            keys,
        }
    }

    fn view(&self, me: usize) -> View {
        let nodes = IDS.iter().enumerate().map(|(place, id)| {
            let node = Node {
                id: (*id).into(),
                at: format!("host:{place}"),
                bus: 1,
                master: true,
                gone: false,
                replica_of: None,
                epoch: place as u64 + 1,
                ranges: match self.owners[me] == place {
                    true => vec![(SLOT, SLOT)],
                    false => Vec::new(),
                },
            };
            (node.id.clone(), node)
        });
        let open = self.open[me].clone().map(|open| (SLOT, open));
        View {
            me: IDS[me].into(),
            nodes: nodes.collect(),
            open: open.into_iter().collect(),
        }
    }

    fn views(&self) -> Views {
        let by_master: BTreeMap<_, _> = (0..3).map(|me| (IDS[me].into(), self.view(me))).collect();
        Views {
            first: self.view(2),
            by_master,
        }
    }

    /// Does what Redis does for it.
    fn act(&mut self, plan: &Plan, step: &Step) {
        let place = |id: &str| IDS.iter().position(|known| *known == id).expect("a node");
        let (from, to) = (place(&plan.from), place(&plan.to));
        match step {
            Step::Owner => self.owners[to] = from,
            Step::Import => {
                assert_ne!(self.owners[to], to, "I'm already the owner of hash slot");
                self.open[to] = Some(Open::In(plan.from.clone()));
            }
            Step::Migrate => {
                assert_eq!(self.owners[from], from, "I'm not the owner of hash slot");
                self.open[from] = Some(Open::Out(plan.to.clone()));
            }
            Step::Carry => {
                if self.keys[from] {
                    assert_ne!(self.owners[to], NOBODY, "Hash slot not served");
                    (self.keys[from], self.keys[to]) = (false, true);
                }
                let goes = self.open[to].take();
                self.open[to] = goes.filter(|open| matches!(open, Open::Out(_)));
                self.owners[to] = to;
            }
            Step::Tell(id) => {
                let told = place(id);
                assert!(!self.keys[told], "I still hold keys for this hash slot");
                // Redis 7.0 forgets where a slot went, and not from where it came.
                let came = self.open[told].take();
                self.open[told] = came.filter(|open| matches!(open, Open::In(_)));
                self.owners[told] = to;
            }
            Step::Clear(id) => self.open[place(id)] = None,
            Step::Done => {}
        }
    }
}

#[test]
fn a_move_that_is_ended_after_any_step_comes_to_the_same_end() {
    for steps_before in 0..8 {
        let mut said = Said::new(0);
        let mut begun = Vec::new();
        for steps_max in [steps_before, 8] {
            let made = match plan(SLOT.into(), IDS[1], &said.views(), &begun) {
                Ok(made) => made,
                Err(why) => {
                    assert!(why.contains("is at host:1 already"), "{why}");
                    break;
                }
            };
            assert_eq!((made.from.as_str(), made.way), (IDS[0], Way::On));
            let intent = format!("{} {} 1 - 0", made.from, made.to);
            begun = vec![Intent::read("7", &intent).expect("an intent")];
            for _ in 0..steps_max {
                let (step, _) = next(&made, &said.views());
                said.act(&made, &step);
                if step == Step::Done {
                    begun.clear();
                }
            }
        }
        assert_eq!(said.owners, [1; 3], "{steps_before}");
        assert_eq!(
            (said.open, said.keys),
            ([None, None, None], [false, true, false])
        );
    }
}

#[test]
fn what_others_left_is_brought_to_its_end() {
    let (goes, comes) = (
        Some(Open::Out(IDS[1].into())),
        Some(Open::In(IDS[0].into())),
    );
    let halves = [
        ([0, 0, 0], [None, comes.clone(), None]),
        ([0, 0, 0], [goes.clone(), None, None]),
        ([0, 0, 0], [goes.clone(), comes.clone(), None]),
        ([1, 1, 0], [None, None, None]),
        ([0, 1, 1], [goes.clone(), None, None]),
        ([1, 1, 1], [goes, comes, None]),
    ];
    for (owners, open) in halves {
        let mut said = Said::new(0);
        said.keys = [owners[1] == 0, owners[1] == 1, false];
        (said.owners, said.open) = (owners, open);
        let what = format!("{said:?}");
        let Ok(made) = plan(SLOT.into(), IDS[1], &said.views(), &[]) else {
            // News of it goes round by itself.
            assert_eq!(said.open, [None, None, None], "{what}");
            continue;
        };
        for _ in 0..8 {
            let (step, _) = next(&made, &said.views());
            said.act(&made, &step);
        }
        assert_eq!(
            (said.owners, said.open),
            ([1; 3], [None, None, None]),
            "{what}"
        );
    }
}

#[test]
fn a_source_that_gave_the_slot_away_first_is_no_reason_to_lose_keys() {
    // The target has all keys, and does not know that it has the slot.
    let mut said = Said::new(0);
    (said.owners, said.keys) = ([1, 0, 0], [false, true, false]);
    said.open[1] = Some(Open::In(IDS[0].into()));
    let made = plan(SLOT.into(), IDS[1], &said.views(), &[]).expect("a plan");
    for _ in 0..8 {
        let (step, _) = next(&made, &said.views());
        said.act(&made, &step);
    }
    assert_eq!((said.owners, said.keys), ([1; 3], [false, true, false]));
}

#[test]
fn a_target_that_knows_no_owner_is_told_who_has_the_slot() {
    // It was to come from 2, in whose place 0 is: the target heeds no news of that, and 2 has come
    // back as a replica.
    for owner_at_target in [NOBODY, 2] {
        let mut said = Said::new(0);
        said.owners[1] = owner_at_target;
        said.open[1] = Some(Open::In(IDS[2].into()));
        let begun = Intent::read("7", &format!("{} {} 1 - 0", IDS[2], IDS[1])).expect("an intent");
        let mut views = said.views();
        replaced(&mut views, 2);
        let made = plan(SLOT.into(), IDS[1], &views, &[begun]).expect("a plan");
        assert_eq!((made.from.as_str(), made.way), (IDS[0], Way::On));
        for _ in 0..8 {
            let mut views = said.views();
            replaced(&mut views, 2);
            let (step, _) = next(&made, &views);
            said.act(&made, &step);
        }
        assert_eq!(said.owners[..2], [1, 1]);
        assert_eq!(
            (said.open[1].clone(), said.keys),
            (None, [false, true, false])
        );
    }
}

/// A node is a master no more.
fn replaced(views: &mut Views, place: usize) {
    views.by_master.remove(IDS[place]);
    if let Some(node) = views.first.nodes.get_mut(IDS[place]) {
        (node.master, node.ranges) = (false, Vec::new());
    }
}

#[test]
fn a_source_that_is_away_or_replaced_gives_its_slot_to_nobody() {
    let made = plan(SLOT.into(), IDS[1], &Said::new(0).views(), &[]).expect("a plan");
    let refused = |views: &Views| refuse_replaced(&made, views);
    assert_eq!(refused(&Said::new(0).views()), Ok(()));
    assert_eq!(refused(&Said::new(1).views()), Ok(()));
    // Its replica may have its place soon, and has all keys that have not gone.
    let mut views = Said::new(0).views();
    views.by_master.remove(IDS[0]);
    if let Some(node) = views.first.nodes.get_mut(IDS[0]) {
        (node.gone, node.ranges) = (true, vec![(SLOT, SLOT)]);
    }
    let why = refused(&views).expect_err("away");
    assert_eq!(why, "host:0 has slot 7, and is away");
    let mut views = Said::new(2).views();
    replaced(&mut views, 0);
    let why = refused(&views).expect_err("replaced");
    assert_eq!(why, "host:2 has slot 7 now, which host:0 had");
}

#[test]
fn an_older_move_is_forgotten() {
    // It went from 0 to 1, where it is open still, and goes back now.
    let mut said = Said::new(1);
    said.open = [
        Some(Open::Out(IDS[1].into())),
        Some(Open::In(IDS[0].into())),
        None,
    ];
    let made = plan(SLOT.into(), IDS[0], &said.views(), &[]).expect("a plan");
    assert_eq!((made.from.as_str(), made.way), (IDS[1], Way::On));
    for _ in 0..12 {
        let (step, _) = next(&made, &said.views());
        said.act(&made, &step);
    }
    assert_eq!((said.owners, said.open), ([0; 3], [None, None, None]));
}

#[test]
fn it_goes_back_where_it_was() {
    let mut said = Said::new(0);
    said.open = [
        Some(Open::Out(IDS[1].into())),
        Some(Open::In(IDS[0].into())),
        None,
    ];
    let back = |said: &Said| {
        let made = plan(SLOT.into(), IDS[0], &said.views(), &[]).expect("a plan");
        (made.from, made.way)
    };
    assert_eq!(back(&said), (IDS[1].into(), Way::Back));
    said.open[0] = None;
    assert_eq!(back(&said), (IDS[1].into(), Way::Back));
}

#[test]
fn what_would_cross_another_move_is_refused() {
    let mut said = Said::new(0);
    let refused = |said: &Said, to: &str, begun: &[Intent]| {
        plan(SLOT.into(), to, &said.views(), begun).expect_err("refused")
    };
    assert!(refused(&said, IDS[0], &[]).contains("is at host:0 already"));
    let begun = Intent::read("7", &format!("{} {} 1 - 0", IDS[0], IDS[1])).expect("an intent");
    assert!(refused(&said, IDS[2], &[begun]).contains("on its way from host:0 to host:1"));
    said.open[0] = Some(Open::Out(IDS[1].into()));
    assert!(refused(&said, IDS[2], &[]).contains("on its way from host:0 to host:1"));
    let mut views = Said::new(0).views();
    let view = views.by_master.get_mut(IDS[1]).expect("a view");
    view.open.insert(9, Open::In(IDS[2].into()));
    let why = plan(SLOT.into(), IDS[1], &views, &[]).expect_err("refused");
    assert!(
        why.contains("slot 9 is in the middle of a move at host:1"),
        "{why}"
    );
}

#[test]
fn nodes_are_named_by_address_or_name() {
    let mut views = Said::new(0).views();
    assert_eq!(
        named(&views, "host:1").map(|node| node.id.as_str()),
        Ok(IDS[1])
    );
    assert_eq!(
        named(&views, "cccc").map(|node| node.id.as_str()),
        Ok(IDS[2])
    );
    for (text, why) in [("ccc", "no node"), ("host:9", "no node")] {
        assert!(named(&views, text).expect_err("nobody").contains(why));
    }
    let change = |views: &mut Views, gone: bool, master: bool| {
        let node = views.first.nodes.get_mut(IDS[1]).expect("a node");
        (node.gone, node.master) = (gone, master);
    };
    change(&mut views, true, true);
    assert!(named(&views, "host:1").expect_err("away").contains("away"));
    change(&mut views, false, false);
    let why = named(&views, "host:1").expect_err("a replica");
    assert!(why.contains("is a replica"), "{why}");
}

#[test]
fn of_slots_in_a_row_each_has_what_is_left_for_it() {
    let row = Slots::new(SLOT, SLOT + 1).expect("a row");
    let mut said = Said::new(0);
    let made = plan(row, IDS[1], &said.views(), &[]).expect("a plan");
    assert_eq!((made.from.as_str(), made.way), (IDS[0], Way::On));
    for _ in 0..8 {
        // Nobody has the other one of them, and so it does not move.
        let (step, slots) = next(&made, &said.views());
        assert!(step == Step::Done || slots == [SLOT], "{step:?} {slots:?}");
        said.act(&made, &step);
    }
    assert_eq!((said.owners, &said.open), ([1; 3], &[None, None, None]));
    let why = plan(row, IDS[1], &said.views(), &[]).expect_err("there");
    assert!(why.contains("slots 7-8 are at host:1 already"), "{why}");
    let begun = Intent::read("7-8", &format!("{} {} 1 - 0", IDS[0], IDS[1])).expect("an intent");
    assert!(plan(row, IDS[1], &said.views(), &[begun]).is_ok());
    said.open[1] = Some(Open::Out(IDS[2].into()));
    let why = plan(row, IDS[0], &said.views(), &[]).expect_err("on its way");
    assert!(why.contains("slot 7 is on its way to host:2"), "{why}");
}

#[test]
fn steps_of_several_slots_are_done_in_order() {
    let tell = |id: &str| Step::Tell(id.into());
    let order = [
        Step::Clear(IDS[0].into()),
        Step::Owner,
        Step::Import,
        Step::Migrate,
        Step::Carry,
        tell(IDS[0]),
        Step::Done,
    ];
    assert!(order.is_sorted());
}
