//! `entremet cluster add`: a node that has nothing joins, and may be given its part at once.

use std::io::{self, Write};
use std::net::{SocketAddr, ToSocketAddrs};
use std::thread;
use std::time::{Duration, Instant};

use front::{Space, SLOTS};

use super::book::Book;
use super::lead::Lead;
use super::leaving::{leaving, set};
use super::mover::Moved;
use super::moving::{told_to_stop, Allow, Order};
use super::nodes::{Node, View, Views};
use super::places::{place, taken, Piece, Place};
use super::reach::Nodes;
use super::say::Say;
use super::series::{asked, memory, used, Series, ROW};
use super::slots::{rows, Slots};
use super::survey::{room, sizes};
use super::{AddArgs, Failure};

/// A node is known to all within less than this.
const KNOWN: Duration = Duration::from_secs(30);
/// A node that is known says within this that the cluster is up: it waits as long as its node
/// timeout, and at most 5 s.
const USED: Duration = Duration::from_secs(15);
/// Between two looks whether it is.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Adds a node.
///
/// # Errors
/// Why it cannot be, or what of its part it did not get.
pub fn run(args: &AddArgs) -> Result<(), Failure> {
    let mut nodes = Nodes::new(&args.cluster.reach()?);
    let views = nodes.agreed(&[])?;
    let mut book = Book::find(&views)?;
    let at = address(&args.node)?;
    let own = own_view(&mut nodes, &at.to_string())?;
    let node = match views.first.nodes.get(&own.me) {
        Some(node) => known(args, &mut nodes, &mut book, &views, node)?,
        None => join(&mut nodes, &views, at, &own)?,
    };
    set(&mut book, &mut nodes, &views, &node.id, false)?;
    writeln!(
        io::stdout(),
        "{} is a master of the cluster{}",
        node.at,
        match args.fill {
            true => "",
            false => ": entremet cluster control moves to it what it should have, and so does --fill, at once",
        }
    )?;
    match args.fill {
        true => fill(args, nodes, &node.id),
        false => Ok(()),
    }
}

/// The node that is to join, where the others can reach it.
fn address(text: &str) -> Result<SocketAddr, Failure> {
    let mut all = text
        .to_socket_addrs()
        .map_err(|why| format!("{text} is no address of a node, which is HOST:PORT: {why}"))?;
    let at = all.next();
    Ok(at.ok_or_else(|| format!("{text} has no address"))?)
}

/// What the node says of the cluster that it is in.
fn own_view(nodes: &mut Nodes, at: &str) -> Result<View, Failure> {
    let info = nodes.text(at, &[b"INFO", b"cluster"])?;
    if !info.contains("cluster_enabled:1") {
        return Err(
            format!("{at} is not in cluster mode: start it with cluster-enabled yes").into(),
        );
    }
    nodes.view(at)
}

/// One that is in the cluster: it may have been emptied, and is used again, or its part be
/// missing.
fn known(
    args: &AddArgs,
    nodes: &mut Nodes,
    book: &mut Book,
    views: &Views,
    node: &Node,
) -> Result<Node, Failure> {
    if views.master(&node.id).is_none() {
        let what = if node.master {
            "is away"
        } else {
            "is a replica"
        };
        return Err(format!("{} is in the cluster already, and {what}", node.at).into());
    }
    match args.fill || leaving(book, nodes)?.contains(&node.id) {
        true => Ok(node.clone()),
        false => Err(format!("{} is in the cluster already", node.at).into()),
    }
}

/// One that is not: it is looked at, introduced, and waited for.
fn join(nodes: &mut Nodes, views: &Views, at: SocketAddr, own: &View) -> Result<Node, Failure> {
    let text = at.to_string();
    refuse(nodes, views, &text, own)?;
    let me = own
        .nodes
        .get(&own.me)
        .ok_or("a node that does not know itself")?;
    let first = views.at(&views.first.me).to_owned();
    let (ip, port, bus) = (
        at.ip().to_string(),
        at.port().to_string(),
        me.bus.to_string(),
    );
    let words: [&[u8]; 5] = [
        b"CLUSTER",
        b"MEET",
        ip.as_bytes(),
        port.as_bytes(),
        bus.as_bytes(),
    ];
    nodes.ask(&first, &words)?;
    let node = within(KNOWN, || met(nodes, views, &text, &own.me))?;
    let node = node.ok_or_else(|| {
        format!(
            "not all nodes of the cluster know {text} after {} s: each must reach it at {ip}, ports {port} and {bus}, and it must reach them",
            KNOWN.as_secs()
        )
    })?;
    // A master that has just heard of a cluster takes it to be down for a while, and would be
    // refused as the end of a move.
    within(USED, || Ok(nodes.up(&text).ok()))?;
    nodes.up(&text)?;
    Ok(node)
}

/// What is looked for until it is there, or for so long.
fn within<T>(
    limit: Duration,
    mut look: impl FnMut() -> Result<Option<T>, Failure>,
) -> Result<Option<T>, Failure> {
    let began = Instant::now();
    loop {
        let found = look()?;
        if found.is_some() || began.elapsed() > limit {
            return Ok(found);
        }
        thread::sleep(LOOK_EVERY);
    }
}

/// Why a node must not join.
fn refuse(nodes: &mut Nodes, views: &Views, at: &str, own: &View) -> Result<(), Failure> {
    nodes.up(views.at(&views.first.me))?;
    let others = own.nodes.len() - 1;
    if others > 0 {
        return Err(format!(
            "{at} knows {others} other nodes: it is one of another cluster, or was one of this. If nobody uses it: CLUSTER RESET HARD, at {at}"
        )
        .into());
    }
    let slots: u32 = own.nodes.values().map(Node::slots).sum();
    if slots > 0 {
        return Err(format!(
            "{at} has {slots} slots, and so is a cluster of its own. If nobody uses it: CLUSTER RESET HARD, at {at}"
        )
        .into());
    }
    let keys = nodes.number(at, &[b"DBSIZE"])?;
    if keys > 0 {
        return Err(format!(
            "{at} is not empty: it has {keys} keys; FLUSHALL, at {at}, deletes them"
        )
        .into());
    }
    let its = version(nodes, at)?;
    for node in views.first.masters() {
        let theirs = version(nodes, &node.at)?;
        if family(&theirs) != family(&its) {
            return Err(format!(
                "{at} is {its}, and {} is {theirs}: what one writes the other may not be able to read, and moves would fail",
                node.at
            )
            .into());
        }
    }
    match nodes.becomes_a_replica(at)? {
        false => Ok(()),
        true => Err(format!(
            "{at} becomes a replica when its last slot moves away: set cluster-allow-replica-migration no, in its configuration and with CONFIG SET"
        )
        .into()),
    }
}

/// What a node is, with its version.
fn version(nodes: &mut Nodes, at: &str) -> Result<String, Failure> {
    let info = nodes.text(at, &[b"INFO", b"server"])?;
    let field = |name: &str| {
        let mut lines = info.lines();
        lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
    };
    let name = field("server_name").unwrap_or("redis");
    let version = field(&format!("{name}_version")).or(field("redis_version"));
    Ok(format!("{name} {}", version.unwrap_or("of no version")))
}

/// The name and the first number of a version: nodes of one family read what others of it write.
fn family(version: &str) -> &str {
    version.split('.').next().unwrap_or(version)
}

/// The node, if all others know it, and it knows all.
fn met(nodes: &mut Nodes, views: &Views, at: &str, id: &str) -> Result<Option<Node>, Failure> {
    let own = nodes.view(at)?;
    let is_known = |view: &View, id: &str| view.nodes.get(id).is_some_and(|node| !node.gone);
    for node in views.first.nodes.values().filter(|node| !node.gone) {
        let view = nodes.view(&node.at)?;
        if !is_known(&view, id) || !is_known(&own, &node.id) {
            return Ok(None);
        }
    }
    // It has heard by then who has which slots.
    let now = nodes.agreed(&[])?;
    Ok(now.master(id).cloned())
}

/// Gives a node what it should have.
fn fill(args: &AddArgs, mut nodes: Nodes, id: &str) -> Result<(), Failure> {
    let stop = told_to_stop()?;
    let lead = Lead::take(&nodes.reach, true, &stop, &mut Say::default());
    let lead = lead.map_err(|why| {
        format!("it is not filled: {why}; if that is entremet cluster control, it will use it")
    })?;
    let lead = lead.ok_or("stopped: the same command goes on")?;
    let views = nodes.agreed(&[])?;
    let mut book = Book::find(&views)?;
    let tenants = book.tenants(&mut nodes)?;
    let orders = coming(args, &mut nodes, &mut book, &views, &tenants, id)?;
    let mut series = Series {
        nodes: &mut nodes,
        tenants: &tenants,
        lead: &lead,
        stop: &stop,
        moved: Moved::default(),
    };
    let failed = series.carry_out(&orders)?;
    let moved = series.moved;
    let slots = nodes.views()?.master(id).map_or(0, Node::slots);
    writeln!(
        io::stdout(),
        "{} has {slots} slots; {} keys, {:.1} MB have gone to it",
        views.at(id),
        moved.keys,
        moved.bytes as f64 / 1e6
    )?;
    match failed.first() {
        None => Ok(()),
        Some(first) => Err(format!(
            "{} of {} moves could not be made; the same command goes on; the first: {first}",
            failed.len(),
            orders.len()
        )
        .into()),
    }
}

/// What goes to it, so that all masters have as much: what evens out what is used, and a part of
/// the slots that nobody uses.
fn coming(
    args: &AddArgs,
    nodes: &mut Nodes,
    book: &mut Book,
    views: &Views,
    tenants: &[(String, Space)],
    id: &str,
) -> Result<Vec<Order>, Failure> {
    let away = leaving(book, nodes)?;
    let masters = views
        .first
        .masters()
        .filter(|node| !away.contains(&node.id));
    let masters: Vec<&Node> = masters.collect();
    let place_of = |slot: u16| masters.iter().position(|node| node.has(slot));
    let me = masters.iter().position(|node| node.id == id);
    let me = me.ok_or_else(|| format!("{} is not there any more", views.at(id)))?;
    let used = used(tenants);
    let bytes = sizes(nodes, views, &used)?;
    let asked = asked(nodes, book, views, &away)?;
    let pieces = used.iter().filter_map(|slot| {
        Some(Piece {
            slot: *slot,
            asked: asked[usize::from(*slot)],
            bytes: bytes.get(slot).copied().unwrap_or(0),
            at: Some(place_of(*slot)?),
        })
    });
    let pieces: Vec<Piece> = pieces.collect();
    let mut places: Vec<Place> = Vec::new();
    for node in &masters {
        places.push(Place {
            slots: node.slots(),
            room: room(&memory(nodes, node)?),
            ..Place::default()
        });
    }
    let mut wanted: Vec<Slots> = Vec::new();
    for (piece, at) in pieces.iter().zip(place(&places, &pieces, true)) {
        if let Some(from) = piece.at.filter(|from| *from != me && at == me) {
            places[from].slots -= 1;
            places[me].slots += 1;
            wanted.push(piece.slot.into());
        }
    }
    let least = u32::from(SLOTS) / masters.len() as u32;
    let others = masters
        .iter()
        .zip(&places)
        .filter(|(node, _)| node.id != id);
    let free = others.map(|(node, place)| {
        let free = (0..SLOTS).filter(|slot| node.has(*slot) && !used.contains(slot));
        (rows(free, ROW), place.slots)
    });
    let free = taken(
        free.collect(),
        least.saturating_sub(places[me].slots),
        least,
    );
    let order = |slots: Slots| Order {
        slots,
        to: id.to_owned(),
        allow: Allow::of(args.allow_stall, args.allow_part),
        known: None,
    };
    Ok(free.into_iter().chain(wanted).map(order).collect())
}
