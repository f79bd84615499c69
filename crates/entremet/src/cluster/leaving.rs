//! Nodes that are being emptied, or were: nothing is moved to them, until they are added again.
//! That outlives whoever empties them, since one that is empty looks to others as if it had room.

use std::collections::BTreeSet;

use super::book::Book;
use super::nodes::{Node, Views};
use super::reach::Nodes;
use super::Failure;

/// Under which name it is written down, beside who places partitions.
const LEAVING: &str = "leaving";

/// Their names.
///
/// # Errors
/// They cannot be read.
pub fn leaving(book: &mut Book, nodes: &mut Nodes) -> Result<BTreeSet<String>, Failure> {
    Ok(names(&book.control(nodes, LEAVING)?))
}

/// Writes down that a node leaves, or that it stays. Of nodes that have left the cluster nothing is
/// kept.
///
/// # Errors
/// It cannot be written.
pub fn set(
    book: &mut Book,
    nodes: &mut Nodes,
    views: &Views,
    id: &str,
    leaves: bool,
) -> Result<(), Failure> {
    loop {
        let old = book.control(nodes, LEAVING)?;
        let mut all = names(&old);
        all.retain(|id| views.first.nodes.contains_key(id));
        match leaves {
            true => all.insert(id.to_owned()),
            false => all.remove(id),
        };
        let all: Vec<String> = all.into_iter().collect();
        let new = all.join(" ");
        if new == old || book.swap_control(nodes, LEAVING, &old, &new)? {
            return Ok(());
        }
    }
}

/// A node that is being emptied and has slots still.
///
/// # Errors
/// The cluster cannot be asked.
pub fn unfinished(book: &mut Book, nodes: &mut Nodes) -> Result<Option<Node>, Failure> {
    let leaving = leaving(book, nodes)?;
    if leaving.is_empty() {
        return Ok(None);
    }
    let views = nodes.views()?;
    let mut all = views.first.masters();
    let found = all.find(|node| leaving.contains(&node.id) && node.slots() > 0);
    Ok(found.cloned())
}

fn names(text: &str) -> BTreeSet<String> {
    text.split_ascii_whitespace().map(str::to_owned).collect()
}
