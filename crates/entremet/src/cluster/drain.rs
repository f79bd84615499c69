//! `entremet cluster drain`: all that a node has goes to the others, so that it can be taken away.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::sync::atomic::AtomicBool;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use front::{Peer, Space};

use super::book::Book;
use super::lead::Lead;
use super::leaving::{leaving, set};
use super::mover::Moved;
use super::moving::{told_to_stop, Order};
use super::nodes::{Node, Views};
use super::places::{place, spread, Piece, Place, LEAST_BYTES};
use super::plan::{meant, named};
use super::reach::Nodes;
use super::say::Say;
use super::series::{asked, bytes_in, memory, orders, used, Series, ROW};
use super::slots::{rows, Slots};
use super::strays::{are_left_over, heir, strays};
use super::survey::{refuse_large, room, Survey};
use super::what::slots_with;
use super::{DrainArgs, Failure};

/// Fronts look once a second where slots are. A request on its way to a node that is taken away
/// sooner would be lost.
const FOLLOWED: Duration = Duration::from_secs(3);

/// Empties a node.
///
/// # Errors
/// What does not go, and why.
pub fn run(args: &DrainArgs) -> Result<(), Failure> {
    let mut nodes = Nodes::new(&args.cluster.reach()?);
    let views = nodes.views()?;
    let mut book = Book::find(&views)?;
    let node = meant(&views, &args.node)?.clone();
    let emptied = node.slots() == 0 && leaving(&mut book, &mut nodes)?.contains(&node.id);
    if emptied && book.moves(&mut nodes)?.is_empty() {
        return farewell(&mut nodes, &node);
    }
    let node = named(&views, &args.node)?.clone();
    let tenants = book.tenants(&mut nodes)?;
    let mut drain = Drain {
        args,
        nodes,
        tenants,
        node,
        asked: None,
    };
    let work = drain.look()?;
    drain.announce(&work)?;
    if args.dry_run {
        return Ok(());
    }
    drain.empty(work, &told_to_stop()?)
}

struct Drain<'a> {
    args: &'a DrainArgs,
    nodes: Nodes,
    tenants: Vec<(String, Space)>,
    /// The node that is to have nothing.
    node: Node,
    /// By slot, what is asked for, once that was seen.
    asked: Option<Vec<u64>>,
}

/// What there is to do.
struct Work {
    views: Views,
    /// Of slots that are used, and of rows that are not, where they go.
    orders: Vec<Order>,
    /// Partitions of tenants among them.
    partitions: usize,
    survey: Survey,
}

impl Drain<'_> {
    /// Looks what the node has, and who gets it.
    fn look(&mut self) -> Result<Work, Failure> {
        let mut book = Book::find(&self.nodes.views()?)?;
        let (_, views) = book.agreed(&mut self.nodes, None)?;
        let mut leaving = leaving(&mut book, &mut self.nodes)?;
        leaving.insert(self.node.id.clone());
        let targets = self.targets(&views, &leaving)?;
        let node = named(&views, &self.node.id)?.clone();
        eprintln!("looks at all keys of {}", node.at);
        let surveys = Survey::of_all(&mut self.nodes, &node.at)?;
        if let Some(largest) = surveys.values().max_by_key(|survey| survey.largest) {
            let stall = self.args.allow.get().stall;
            refuse_large(&mut self.nodes, &node.at, largest, stall)?;
        }
        let mut pieces = used(&self.tenants);
        pieces.extend(surveys.keys());
        pieces.retain(|slot| node.has(*slot));
        if self.asked.is_none() && !pieces.is_empty() {
            let asked = asked(&mut self.nodes, &mut book, &views, &leaving)?;
            self.asked = Some(asked);
        }
        let wanted = self.divide(&node, &targets, &pieces, &surveys)?;
        let mut orders = orders(wanted, &surveys, self.args.allow.get());
        // What has keys elsewhere first comes to where they are.
        for stray in strays(&mut self.nodes, &views, Slots::all())? {
            let order = orders.iter_mut().find(|order| order.slots.has(stray.slot));
            if let Some(order) = order {
                if !are_left_over(&mut self.nodes, &views, &stray)? {
                    order.to = stray.at;
                }
            }
        }
        let mut survey = Survey::default();
        for one in surveys.values() {
            survey.keys += one.keys;
            survey.bytes += one.bytes;
        }
        let partitions = self.tenants.iter().flat_map(|(_, space)| {
            let slots = (0..space.parts()).map(|part| space.slot(part));
            slots.collect::<Vec<_>>()
        });
        Ok(Work {
            orders,
            partitions: partitions.filter(|slot| node.has(*slot)).count(),
            survey,
            views,
        })
    }

    /// Nodes that may get something.
    fn targets(&self, views: &Views, leaving: &BTreeSet<String>) -> Result<Vec<Node>, Failure> {
        if self.args.to.is_empty() {
            let others = views
                .first
                .masters()
                .filter(|node| !leaving.contains(&node.id));
            let others: Vec<Node> = others.cloned().collect();
            return match others.is_empty() {
                true => Err("no other master is there that could have it: add one, with entremet cluster add".into()),
                false => Ok(others),
            };
        }
        let mut targets: Vec<Node> = Vec::new();
        for text in &self.args.to {
            let node = named(views, text)?;
            if leaving.contains(&node.id) {
                return Err(format!(
                    "{} is being emptied itself: name another with --to, or keep it, with entremet cluster add {}",
                    node.at, node.at
                )
                .into());
            }
            if targets.iter().all(|other| other.id != node.id) {
                targets.push(node.clone());
            }
        }
        Ok(targets)
    }

    /// Who gets which slots. Those that nobody uses go first: so no new tenant's partition comes to
    /// the node meanwhile.
    fn divide(
        &mut self,
        node: &Node,
        targets: &[Node],
        used: &BTreeSet<u16>,
        surveys: &BTreeMap<u16, Survey>,
    ) -> Result<Vec<(Slots, String)>, Failure> {
        let asked = self.asked.clone().unwrap_or_default();
        let asked_of = |slot: u16| asked.get(usize::from(slot)).copied().unwrap_or(0);
        let known = self::used(&self.tenants);
        let mut places = Vec::new();
        for target in targets {
            let info = memory(&mut self.nodes, target)?;
            let its = (0..front::SLOTS).filter(|slot| target.has(*slot));
            let count = known.iter().filter(|slot| target.has(**slot)).count() as u64;
            places.push(Place {
                asked: its.map(asked_of).sum(),
                bytes: bytes_in(&info).max(count * LEAST_BYTES),
                room: room(&info),
                slots: target.slots(),
            });
        }
        let bytes_of = |slot: &u16| surveys.get(slot).map_or(0, |survey| survey.bytes);
        let pieces = used.iter().map(|slot| Piece {
            slot: *slot,
            asked: asked_of(*slot),
            bytes: bytes_of(slot),
            at: None,
        });
        let pieces: Vec<Piece> = pieces.collect();
        let at = place(&places, &pieces, false);
        let mut coming = vec![0; places.len()];
        for (piece, at) in pieces.iter().zip(&at) {
            coming[*at] += piece.bytes;
            places[*at].slots += 1;
        }
        for ((target, place), coming) in targets.iter().zip(&places).zip(coming) {
            if let Some(room) = place.room.filter(|room| *room < coming) {
                return Err(format!(
                    "{} has no room: {:.1} MB would come, and there is room for {:.1} MB (maxmemory); add a node, or name others with --to",
                    target.at,
                    coming as f64 / 1e6,
                    room as f64 / 1e6
                )
                .into());
            }
        }
        let rest = (0..front::SLOTS).filter(|slot| node.has(*slot) && !used.contains(slot));
        let rest = rows(rest, ROW);
        let mut slots: Vec<u32> = places.iter().map(|place| place.slots).collect();
        let rest_at = spread(&rest, &mut slots);
        let to = |at: usize| targets[at].id.clone();
        let rest = rest.into_iter().zip(rest_at.into_iter().map(to));
        let pieces = pieces.iter().map(|piece| Slots::from(piece.slot));
        let pieces = pieces.zip(at.into_iter().map(to));
        Ok(rest.chain(pieces).collect())
    }

    /// Says what will be done.
    fn announce(&self, work: &Work) -> Result<(), Failure> {
        let mut out = io::stdout().lock();
        let used = |order: &&Order| order.slots.is_one();
        if self.args.dry_run {
            for order in work.orders.iter().filter(used) {
                let known = order.known.clone().unwrap_or_default();
                writeln!(
                    out,
                    "{} would go to {}: {} keys, {:.1} MB",
                    slots_with(order.slots, &self.tenants),
                    work.views.at(&order.to),
                    known.keys,
                    known.bytes as f64 / 1e6
                )?;
            }
        }
        let targets: BTreeSet<&str> = work.orders.iter().map(|order| order.to.as_str()).collect();
        writeln!(
            out,
            "{} has {} slots with {} partitions: {} keys, {:.1} MB go to {} nodes in about {:.0} s",
            self.node.at,
            work.views.master(&self.node.id).map_or(0, Node::slots),
            work.partitions,
            work.survey.keys,
            work.survey.bytes as f64 / 1e6,
            targets.len(),
            work.survey.takes(self.args.allow.get().part).as_secs_f64()
                + 0.1 * work.orders.len() as f64
        )?;
        Ok(())
    }

    /// Does it, until nothing is left there.
    fn empty(&mut self, mut work: Work, stop: &Arc<AtomicBool>) -> Result<(), Failure> {
        let began = Instant::now();
        let mut book = Book::find(&work.views)?;
        // Before it leads: whoever does makes room for this one then.
        set(&mut book, &mut self.nodes, &work.views, &self.node.id, true)?;
        let lead = Lead::take(&self.nodes.reach, false, stop, &mut Say::default())?;
        let Some(lead) = lead else {
            return Err("stopped: the same command goes on".into());
        };
        let mut moved = Moved::default();
        loop {
            let finished = self.finish(&lead, stop, &mut moved)?;
            let Some(node) = self.left()? else { break };
            let known = work.views.first.nodes.get(&node.id);
            if finished || known.is_none_or(|known| known.ranges != node.ranges) {
                work = self.look()?;
            }
            let failed = self.series(&lead, stop, &mut moved, &work.orders)?;
            if failed.len() == work.orders.len() {
                return Err(format!(
                    "{} of {} moves could not be made; the same command goes on; the first: {}",
                    failed.len(),
                    work.orders.len(),
                    failed[0]
                )
                .into());
            }
        }
        drop(lead);
        eprintln!(
            "{} keys, {:.1} MB have gone in {:.1} s; the longest batch took {:.1} ms",
            moved.keys,
            moved.bytes as f64 / 1e6,
            began.elapsed().as_secs_f64(),
            moved.longest.as_secs_f64() * 1e3
        );
        farewell(&mut self.nodes, &self.node)
    }

    /// The node, as long as it has something. With its last slot it may have become a replica.
    fn left(&mut self) -> Result<Option<Node>, Failure> {
        let views = self.nodes.views()?;
        let node = views.first.nodes.get(&self.node.id);
        match node.filter(|node| node.slots() > 0) {
            Some(node) if node.gone => Err(format!("{} is away, and has slots", node.at).into()),
            node => Ok(node.cloned()),
        }
    }

    fn series(
        &mut self,
        lead: &Lead,
        stop: &AtomicBool,
        moved: &mut Moved,
        orders: &[Order],
    ) -> Result<Vec<String>, Failure> {
        let mut series = Series {
            nodes: &mut self.nodes,
            tenants: &self.tenants,
            lead,
            stop,
            moved: *moved,
        };
        let failed = series.carry_out(orders);
        *moved = series.moved;
        failed
    }

    /// Brings to their end moves that were begun and that nobody is at, wherever they are. Those
    /// whose target is gone come to whoever has the keys that went there; without such, to another.
    /// True: there were some.
    fn finish(
        &mut self,
        lead: &Lead,
        stop: &AtomicBool,
        moved: &mut Moved,
    ) -> Result<bool, Failure> {
        let views = self.nodes.views()?;
        let begun = Book::find(&views)?.moves(&mut self.nodes)?;
        if begun.is_empty() {
            return Ok(false);
        }
        let leaving = BTreeSet::from([self.node.id.clone()]);
        let targets = self.targets(&views, &leaving)?;
        let other = targets.iter().min_by_key(|node| node.slots());
        let mut wanted = Vec::with_capacity(begun.len());
        for one in begun {
            let to = heir(&mut self.nodes, &views, &one)?;
            let to = to.or(other.map(|node| node.id.clone())).unwrap_or(one.to);
            wanted.push((one.slots, to));
        }
        let mut orders = orders(wanted, &BTreeMap::new(), self.args.allow.get());
        for order in &mut orders {
            order.known = None;
        }
        self.series(lead, stop, moved, &orders)?;
        Ok(true)
    }
}

/// What is left to be done by hand, once no front sends anything to the node.
fn farewell(nodes: &mut Nodes, node: &Node) -> Result<(), Failure> {
    thread::sleep(FOLLOWED);
    let views = nodes.views()?;
    let mut book = Book::find(&views)?;
    let fronts = book.fronts(nodes)?;
    let mut out = io::stdout().lock();
    writeln!(
        out,
        "{} has nothing any more, and gets nothing until it is added again. To take it away:",
        node.at
    )?;
    for peer in fronts.iter().filter_map(|(id, text)| Peer::read(id, text)) {
        let (peer, _) = peer;
        if peer.node.as_ref() == Some(&node.at) {
            writeln!(out, "  end the front before it, at {peer}")?;
        }
    }
    writeln!(
        out,
        "  take it out of the URLs of fronts and tools, if it is in them"
    )?;
    let others = views.first.masters().filter(|other| other.id != node.id);
    let at = others
        .map(|other| other.at.as_str())
        .next()
        .unwrap_or("HOST:PORT");
    let all = views.first.nodes.values();
    let replicas = all.filter(|other| other.replica_of.as_ref() == Some(&node.id));
    for id in replicas.map(|replica| &replica.id).chain([&node.id]) {
        writeln!(out, "  redis-cli --cluster del-node {at} {id}")?;
    }
    Ok(())
}
