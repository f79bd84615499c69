//! Many moves, one after the other, by the one process that places partitions: what it takes to
//! empty a node or to fill one.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use front::{slot, Space, CATALOGUE, SLOTS};

use super::asked::{self, partitions};
use super::book::Book;
use super::figures::Figures;
use super::lead::Lead;
use super::mover::Moved;
use super::moving::{Allow, Order};
use super::nodes::{Node, Views};
use super::reach::{field, Nodes};
use super::slots::Slots;
use super::survey::Survey;
use super::what::slots_with;
use super::Failure;

/// What is asked for is seen during this time.
const SEE: Duration = Duration::from_secs(4);
/// Between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// Slots that nobody uses go together, so many at a time.
pub const ROW: u16 = 256;

/// Slots that are used: partitions of tenants, and what is written down of the cluster.
pub fn used(tenants: &[(String, Space)]) -> BTreeSet<u16> {
    let of = |space: &Space| {
        (0..space.parts())
            .map(|part| space.slot(part))
            .collect::<Vec<_>>()
    };
    let slots = tenants.iter().flat_map(|(_, space)| of(space));
    slots.chain([slot(CATALOGUE)]).collect()
}

/// What each slot is asked for, ns of a node's time in a second, as fronts and nodes tell while
/// this looks on; 0 of all where they do not.
///
/// # Errors
/// The cluster cannot be asked.
pub fn asked(
    nodes: &mut Nodes,
    book: &mut Book,
    views: &Views,
    leaving: &BTreeSet<String>,
) -> Result<Vec<u64>, Failure> {
    let mut figures = Figures::default();
    // From now on.
    let _ = figures.uses(nodes, views);
    let began = Instant::now();
    while began.elapsed() < SEE {
        figures.look(nodes, book)?;
        thread::sleep(LOOK_EVERY);
    }
    let uses = figures.uses(nodes, views)?;
    let ids: Vec<&str> = views.first.masters().map(|node| node.id.as_str()).collect();
    let (told, prices) = (figures.told(), figures.prices(views));
    match told.and_then(|told| asked::asked(views, &told, &uses, &prices, &ids)) {
        Ok(asked) => {
            let all = partitions(&asked, &asked.nodes(&ids, leaving));
            Ok(all.iter().map(|partition| partition.demand[0]).collect())
        }
        Err(why) => {
            eprintln!("partitions are spread by their bytes: {why}");
            Ok(vec![0; SLOTS.into()])
        }
    }
}

/// What a node says of its memory.
///
/// # Errors
/// It does not.
pub fn memory(nodes: &mut Nodes, node: &Node) -> Result<String, Failure> {
    nodes.text(&node.at, &[b"INFO", b"memory"])
}

/// What is in a node, as it says of its memory.
pub fn bytes_in(info: &str) -> u64 {
    field(info, "used_memory_dataset")
}

/// Moves that are made by this process alone.
pub struct Series<'s> {
    /// How nodes are reached.
    pub nodes: &'s mut Nodes,
    /// Whose partitions are where.
    pub tenants: &'s [(String, Space)],
    /// This process places partitions.
    pub lead: &'s Lead,
    /// It is to end.
    pub stop: &'s AtomicBool,
    /// What has gone over.
    pub moved: Moved,
}

impl Series<'_> {
    /// Carries orders out, one after the other. Returns why some were not.
    ///
    /// # Errors
    /// It was told to stop, or another may place partitions by now.
    pub fn carry_out(&mut self, orders: &[Order]) -> Result<Vec<String>, Failure> {
        let bytes_of = |order: &Order| order.known.as_ref().map_or(0, |known| known.bytes);
        let all: u64 = orders.iter().map(bytes_of).sum();
        let (began, mut failed) = (Instant::now(), Vec::new());
        for (number, order) in orders.iter().enumerate() {
            self.goes_on()?;
            let looked = order.look(self.nodes, self.tenants);
            match looked.and_then(|looked| looked.carry_out(self.nodes, self.stop)) {
                Ok(done) => {
                    self.moved.keys += done.moved.keys;
                    self.moved.bytes += done.moved.bytes;
                    self.moved.longest = self.moved.longest.max(done.moved.longest);
                    writeln!(io::stdout(), "{}", done.line)?;
                }
                Err(why) => {
                    let why = format!("{}: {why}", slots_with(order.slots, self.tenants));
                    eprintln!("{why}");
                    failed.push(why);
                }
            }
            let left: u64 = orders[number + 1..].iter().map(bytes_of).sum();
            let bytes = match all {
                0 => String::new(),
                all => format!(
                    ", {:.1} MB of {:.1} MB are left",
                    left as f64 / 1e6,
                    all as f64 / 1e6
                ),
            };
            eprintln!(
                "{} of {} moves in {:.0} s{bytes}",
                number + 1,
                orders.len(),
                began.elapsed().as_secs_f64()
            );
        }
        self.goes_on()?;
        Ok(failed)
    }

    fn goes_on(&self) -> Result<(), Failure> {
        if self.lead.is_lost() {
            return Err("this process was silent for long, and another places partitions now: the same command goes on".into());
        }
        if self.stop.load(Ordering::Relaxed) {
            return Err("stopped: the same command goes on".into());
        }
        match self.lead.is_sure() {
            true => Ok(()),
            false => Err(
                "it cannot be written down that this process is at work: the same command goes on"
                    .into(),
            ),
        }
    }
}

/// An order for each of these slots, and what is known to be in them.
pub fn orders(
    wanted: impl IntoIterator<Item = (Slots, String)>,
    known: &BTreeMap<u16, Survey>,
    allow: Allow,
) -> Vec<Order> {
    let order = |(slots, to): (Slots, String)| Order {
        slots,
        to,
        allow,
        known: Some(known.get(&slots.first()).cloned().unwrap_or_default()),
    };
    wanted.into_iter().map(order).collect()
}
