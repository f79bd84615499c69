//! `entremet cluster status`.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::time::{SystemTime, UNIX_EPOCH};

use front::{bracketed, Peer, Space};

use super::book::Book;
use super::control::LAST;
use super::intent::Intent;
use super::lead::{is_led, LEAD};
use super::leaving::leaving;
use super::nodes::Views;
use super::reach::{field, Nodes};
use super::weights::{weights, Weighs};
use super::what::slots_with;
use super::{AtArgs, Failure};

/// Shows what is where.
///
/// # Errors
/// The cluster cannot be asked.
pub fn run(at: &AtArgs) -> Result<(), Failure> {
    let mut nodes = Nodes::new(&at.reach()?);
    let views = nodes.views()?;
    let mut book = Book::find(&views)?;
    let tenants = book.tenants(&mut nodes)?;
    let fronts = book.fronts(&mut nodes)?;
    let moves = book.moves(&mut nodes)?;
    let (demands, rates) = (book.demands(&mut nodes)?, book.rates(&mut nodes)?);
    let [lead, last] = [LEAD, LAST].map(|name| book.control(&mut nodes, name));
    let (lead, last) = (lead?, last?);
    let kept = book.kept(&mut nodes)?;
    let leaving = leaving(&mut book, &mut nodes)?;
    let mut out = io::stdout().lock();
    writeln!(out, "Nodes")?;
    masters(&mut out, &mut nodes, &views, &leaving)?;
    writeln!(out, "\nFronts")?;
    let fronts = fronts.iter().filter_map(|(id, text)| Peer::read(id, text));
    let fronts: Vec<Peer> = fronts.map(|(peer, _)| peer).collect();
    for peer in &fronts {
        let before = peer.node.as_ref();
        let node = before.map_or_else(String::new, |node| format!(", before {node}"));
        writeln!(out, "  {peer}{node}")?;
    }
    writeln!(out, "\nPartitions")?;
    for (name, space) in &tenants {
        let parts = space.parts();
        writeln!(out, "  {name}: {parts}")?;
        for (at, list) in by_node(space, &views) {
            writeln!(out, "    {at}  {}", list.join(" "))?;
        }
    }
    out.write_all(weighed(&weights(&views, &fronts, &demands, &rates)).as_bytes())?;
    promises(&mut out, &kept)?;
    if !lead.is_empty() {
        write!(out, "\nControl\n{}", controlled(&lead, &last))?;
    }
    if !moves.is_empty() {
        writeln!(out, "\nMoves that were begun")?;
        for begun in &moves {
            writeln!(out, "  {}", told(begun, &views, &tenants))?;
        }
    }
    Ok(())
}

/// The nodes that are there, with their replicas, and those that are away.
fn masters(
    out: &mut impl Write,
    nodes: &mut Nodes,
    views: &Views,
    leaving: &BTreeSet<String>,
) -> Result<(), Failure> {
    for node in views.first.masters() {
        let keys = nodes.number(&node.at, &[b"DBSIZE"])?;
        let info = nodes.text(&node.at, &[b"INFO", b"memory"])?;
        let replication = nodes.text(&node.at, &[b"INFO", b"replication"])?;
        writeln!(
            out,
            "  {}  {}  {} slots, {keys} keys, {:.1} MB used, epoch {}{}",
            node.at,
            &node.id[..8.min(node.id.len())],
            node.slots(),
            field(&info, "used_memory") as f64 / 1e6,
            node.epoch,
            match leaving.contains(&node.id) {
                true => ", is emptied",
                false => "",
            }
        )?;
        for replica in replicas(&replication) {
            writeln!(out, "    {replica}")?;
        }
    }
    for node in views.first.nodes.values().filter(|node| node.gone) {
        writeln!(
            out,
            "  {}  {}  away",
            node.at,
            &node.id[..8.min(node.id.len())]
        )?;
    }
    Ok(())
}

/// How well promises are kept at all fronts, as one of them says it.
fn promises(out: &mut impl Write, kept: &str) -> io::Result<()> {
    if !kept.is_empty() {
        writeln!(out, "\nPromises")?;
    }
    kept.lines().try_for_each(|line| writeln!(out, "  {line}"))
}

/// The replicas of a node in words, as it says itself in `INFO replication`.
fn replicas(info: &str) -> Vec<String> {
    let written = field(info, "master_repl_offset");
    let lines = info.lines().filter(|line| line.starts_with("slave"));
    let said = lines.filter_map(|line| {
        let of = |name: &str| {
            let mut fields = line.split_once(':')?.1.split(',');
            fields.find_map(|field| field.strip_prefix(name)?.strip_prefix('='))
        };
        let (host, port, state) = (of("ip")?, of("port")?, of("state")?);
        let behind = written.saturating_sub(of("offset")?.parse().ok()?);
        let lag_s = of("lag")?;
        Some(format!(
            "replica {}:{port}, {state}, {behind} bytes behind as it said {lag_s} s ago",
            bracketed(host)
        ))
    });
    said.collect()
}

/// Who places partitions, and what was decided last.
fn controlled(lead: &str, last: &str) -> String {
    let mut text = match is_led(lead) {
        true => "  a process places partitions, or did when it ended\n".to_owned(),
        false => "  nobody places partitions\n".to_owned(),
    };
    if let Some((at_s, what)) = last.split_once(' ') {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now_s = now.map_or(0, |now| now.as_secs());
        let ago_s = now_s.saturating_sub(at_s.parse().unwrap_or(now_s));
        text.push_str(&format!("  last, {ago_s} s ago: {what}\n"));
    }
    text
}

/// What tenants weigh; nothing, where no front tells of any.
fn weighed(weights: &BTreeMap<String, Weighs>) -> String {
    let mut text = String::new();
    for (name, weighs) in weights {
        text.push_str(&format!("  {name}: {}\n", weighs.says()));
        for line in weighs.lines() {
            text.push_str(&format!("    {line}\n"));
        }
    }
    match text.is_empty() {
        true => text,
        false => format!("\nWeights\n{text}"),
    }
}

/// Which partitions are at which node.
fn by_node(space: &Space, views: &Views) -> BTreeMap<String, Vec<String>> {
    let mut by_node: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for part in 0..space.parts() {
        let owner = views.owner(space.slot(part));
        let at = owner.map_or("nobody", |node| node.at.as_str());
        by_node
            .entry(at.to_owned())
            .or_default()
            .push(part.to_string());
    }
    by_node
}

/// A move that was begun, in words.
pub fn told(begun: &Intent, views: &Views, tenants: &[(String, Space)]) -> String {
    let by = match begun.mover {
        Some(_) => "a process is at it, or was when it ended",
        None => "nobody is at it",
    };
    format!(
        "{} from {} to {}; {by}",
        slots_with(begun.slots, tenants),
        views.at(&begun.from),
        views.at(&begun.to)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_master_says_how_far_its_replicas_are() {
        let info = "role:master\r\nconnected_slaves:2\r\n\
            slave0:ip=127.0.0.1,port=7003,state=online,offset=700,lag=1\r\n\
            slave1:ip=::1,port=7004,state=wait_bgsave,offset=0,lag=0\r\nmaster_repl_offset:812\r\n";
        assert_eq!(
            replicas(info),
            [
                "replica 127.0.0.1:7003, online, 112 bytes behind as it said 1 s ago",
                "replica [::1]:7004, wait_bgsave, 812 bytes behind as it said 0 s ago",
            ]
        );
    }
}
