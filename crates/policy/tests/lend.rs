//! Permits that cores lend each other: never more than there are, back when they are wanted, and
//! nobody starves.

use policy::lend::{Lend, Need, KEPT_NS};
use policy::Nanos;
use proptest::prelude::*;
use std::collections::BTreeSet;

#[derive(Clone, Copy, Debug, Default)]
struct Core {
    part: u32,
    reserved: u32,
    waiting: u32,
    in_use: u32,
    /// What it was told last.
    may: u32,
    /// The same, or what it had in use if that was more, and what nobody could keep from it then.
    holds: u32,
    asked: u32,
    /// The most that it could ever use.
    most: u32,
}

impl Core {
    fn need(&self) -> Need {
        Need {
            part: self.part,
            in_use: self.in_use,
            useful: self.in_use + self.waiting,
            keeps: self.reserved + 1,
        }
    }

    /// What it is due whatever the others want.
    fn due(&self) -> u32 {
        let part = self.part;
        self.most.clamp((self.reserved + 1).min(part), part)
    }

    /// What nobody can keep from it.
    fn own(&self) -> u32 {
        (self.in_use + self.waiting).min(self.part)
    }
}

/// Cores that do as a server's.
struct Node {
    lend: Lend,
    cores: Vec<Core>,
    woken: BTreeSet<usize>,
    now: Nanos,
}

impl Node {
    fn new(parts: u32, cores: usize, reserved: &[u32]) -> Node {
        let core = |at: usize| Core {
            part: parts,
            reserved: reserved.get(at).copied().unwrap_or(0),
            ..Core::default()
        };
        let mut node = Node {
            lend: Lend::new(cores, parts),
            cores: (0..cores).map(core).collect(),
            woken: BTreeSet::new(),
            now: 0,
        };
        (0..cores).for_each(|core| node.ask(core));
        node
    }

    fn all(&self) -> u32 {
        self.cores.iter().map(|core| core.part).sum()
    }

    fn held(&self) -> u32 {
        self.cores.iter().map(|core| core.holds).sum()
    }

    /// A core asks, and begins what it may.
    fn ask(&mut self, at: usize) {
        let answer = self.lend.ask(self.now, at, self.cores[at].need());
        self.woken.remove(&at);
        self.woken.extend(answer.wake);
        let core = &mut self.cores[at];
        core.may = answer.permits;
        (core.holds, core.asked) = (core.may.max(core.in_use), core.own());
        core.most = core.most.max(core.in_use + core.waiting);
        let begins = core.waiting.min(core.may.saturating_sub(core.in_use));
        (core.waiting, core.in_use) = (core.waiting - begins, core.in_use + begins);
        self.check();
    }

    fn check(&self) {
        assert!(self.held() <= self.all(), "{:?}", self.cores);
        for (at, core) in self.cores.iter().enumerate() {
            assert!(core.in_use <= core.holds);
            let others = self
                .cores
                .iter()
                .enumerate()
                .filter(|(other, _)| *other != at);
            let theirs: u32 = others.map(|(_, core)| core.holds.max(core.due())).sum();
            // Nothing is forgotten as long as no time passes.
            let short = core.holds < core.asked && core.holds + theirs < self.all();
            let short = short && self.now == 0;
            assert!(
                !short || self.woken.contains(&at),
                "core {at} waits for what is free and is not told: {:?}",
                self.cores
            );
        }
    }

    fn come(&mut self, at: usize, count: u32) {
        self.cores[at].waiting += count;
        self.ask(at);
    }

    /// A handler is done with a piece of work, and begins the next if it may, without its core.
    fn go_on(&mut self, at: usize) {
        let core = &mut self.cores[at];
        core.in_use -= 1;
        if core.waiting > 0 && core.in_use < core.may {
            (core.waiting, core.in_use) = (core.waiting - 1, core.in_use + 1);
        }
        self.check();
    }

    /// One piece of work of a core ends, and who is told of it asks.
    fn end(&mut self, at: usize) {
        self.cores[at].in_use -= 1;
        self.ask(at);
        while let Some(woken) = self.woken.pop_first() {
            self.ask(woken);
        }
    }
}

#[test]
fn a_core_has_all_that_others_have_no_use_for() {
    let mut node = Node::new(8, 4, &[0, 0, 2, 0]);
    node.come(0, 100);
    // The others keep one each, and one of them two that are reserved.
    assert_eq!(node.cores[0].in_use, 32 - 1 - 3 - 1);
    node.come(1, 100);
    assert_eq!(node.cores[1].in_use, 1, "the rest is in use");
    for _ in 0..100 {
        node.end(0);
        node.cores[0].waiting += 1;
        node.ask(0);
    }
    let both = [0, 1].map(|core| node.cores[core].in_use);
    assert_eq!(both, [14, 14], "and then it is divided evenly");
}

#[test]
fn each_piece_of_work_that_ends_gives_one_back_that_is_wanted() {
    let mut node = Node::new(8, 2, &[]);
    node.come(0, 100);
    node.come(1, 6);
    assert_eq!([0, 1].map(|core| node.cores[core].in_use), [15, 1]);
    for ended in 1..=5 {
        node.end(0);
        assert_eq!(node.cores[1].in_use, 1 + ended);
    }
    node.end(0);
    assert_eq!([0, 1].map(|core| node.cores[core].in_use), [10, 6]);
}

#[test]
fn handlers_that_go_on_by_themselves_give_back_what_is_wanted() {
    let mut node = Node::new(8, 2, &[]);
    node.come(0, 100);
    node.come(1, 100);
    assert_eq!([0, 1].map(|core| node.cores[core].in_use), [15, 1]);
    // The core that has borrowed asks once, and then is busy with other things.
    node.ask(0);
    for _ in 0..40 {
        node.go_on(0);
    }
    assert_eq!(node.cores[0].in_use, 8, "they stop at what it is due");
    node.ask(0);
    node.ask(1);
    assert_eq!([0, 1].map(|core| node.cores[core].in_use), [8, 8]);
}

#[test]
fn what_a_core_could_use_a_moment_ago_is_its_own_for_a_while() {
    let mut node = Node::new(8, 2, &[]);
    node.come(1, 3);
    (0..3).for_each(|_| node.end(1));
    node.come(0, 100);
    assert_eq!(node.cores[0].in_use, 13);
    node.now += KEPT_NS;
    node.ask(0);
    assert_eq!(node.cores[0].in_use, 13);
    node.now += KEPT_NS;
    node.ask(0);
    assert_eq!(node.cores[0].in_use, 15);
}

#[test]
fn a_part_that_changes_is_what_can_be_lent() {
    let mut node = Node::new(8, 2, &[]);
    node.come(0, 100);
    for core in [0, 1] {
        node.cores[core].part = 2;
    }
    node.lend.ask(0, 1, node.cores[1].need());
    for _ in 0..12 {
        node.cores[0].in_use -= 1;
        let held = node.lend.ask(0, 0, node.cores[0].need());
        assert_eq!(held.permits, 3);
    }
}

proptest! {
    #[test]
    fn never_more_than_there_are_and_never_less_than_its_own(
        (part, cores) in (1u32..12, 1usize..6),
        reserved in prop::collection::vec(0u32..4, 0..6),
        steps in prop::collection::vec((any::<prop::sample::Index>(), 0u32..40, any::<bool>()), 0..200),
    ) {
        let mut node = Node::new(part, cores, &reserved);
        for (core, count, comes) in steps {
            let at = core.index(cores);
            let core = &mut node.cores[at];
            match comes {
                true => core.waiting += count,
                false => core.in_use -= count.min(core.in_use),
            }
            // Some are asked late, as a core that is at work elsewhere.
            match (count % 3, node.woken.first().copied()) {
                (0, Some(woken)) => node.ask(woken),
                _ => node.ask(at),
            }
        }
        // From now on each always has as much to do as it has now. When what was under way has
        // ended once, each has its own, and what is left is divided evenly.
        let useful: Vec<u32> = node.cores.iter().map(|core| core.in_use + core.waiting).collect();
        for at in (0..cores).cycle().take(cores * node.all() as usize * 2) {
            // What was long ago is forgotten.
            node.now += 2 * KEPT_NS;
            if node.cores[at].in_use > 0 {
                node.cores[at].waiting += 1;
                node.end(at);
            }
            node.ask(at);
        }
        let beyond = |at: usize| node.cores[at].in_use.saturating_sub(part);
        let wants = |at: &usize| node.cores[*at].in_use < useful[*at];
        for (core, useful) in node.cores.iter().zip(&useful) {
            prop_assert!(core.in_use >= (*useful).min(part), "{:?}", node.cores);
        }
        let short: Vec<u32> = (0..cores).filter(wants).map(beyond).collect();
        let most = (0..cores).map(beyond).max().unwrap_or(0);
        for beyond in short {
            prop_assert!(beyond + 1 >= most, "{:?}", node.cores);
        }
        let idle = node.cores.iter().map(|core| (core.reserved + 1).min(part).saturating_sub(core.in_use));
        let used: u32 = node.cores.iter().map(|core| core.in_use).sum();
        let wanted = useful.iter().sum::<u32>().min(node.all() - idle.sum::<u32>());
        prop_assert!(used >= wanted, "{used} {wanted} {:?}", node.cores);
    }
}
