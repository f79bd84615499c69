//! `entremet cluster move`.

use std::io::{self, Write};
use std::sync::atomic::AtomicBool;
use std::sync::Arc;
use std::time::{Duration, Instant};

use front::Space;
use signal_hook::consts::{SIGINT, SIGTERM};

use super::book::Book;
use super::mover::Mover;
use super::plan::{named, plan, Way};
use super::reach::Nodes;
use super::survey::{refuse, Survey};
use super::what::slot_with;
use super::{Failure, MoveArgs};

/// Moves what was named, one slot after the other.
///
/// # Errors
/// What cannot be moved, and why.
pub fn run(args: &MoveArgs) -> Result<(), Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
    }
    let mut nodes = Nodes::new(&args.cluster.at);
    let views = nodes.views()?;
    let mut book = Book::find(&views)?;
    let tenants = book.tenants(&mut nodes)?;
    let wanted = match &args.to {
        Some(to) => {
            let to = named(&views, to)?.id.clone();
            let slots = args
                .what
                .iter()
                .map(|what| Ok((what.slot(&tenants)?, to.clone())));
            slots.collect::<Result<Vec<_>, String>>()?
        }
        None => {
            let moves = book.moves(&mut nodes)?;
            moves
                .into_iter()
                .map(|begun| (begun.slot, begun.to))
                .collect()
        }
    };
    if wanted.is_empty() {
        writeln!(io::stdout(), "no move was begun and not brought to its end")?;
    }
    for (slot, to) in wanted {
        let order = Order {
            slot,
            to,
            stall: args.allow_stall.duration(),
            only_say: args.dry_run,
        };
        let line = order.carry_out(&mut nodes, &tenants, &stop)?;
        writeln!(io::stdout(), "{line}")?;
    }
    Ok(())
}

/// One slot that is to be elsewhere.
struct Order {
    slot: u16,
    /// The name of the node.
    to: String,
    stall: Duration,
    only_say: bool,
}

impl Order {
    /// What there is to say at its end.
    fn carry_out(
        &self,
        nodes: &mut Nodes,
        tenants: &[(String, Space)],
        stop: &AtomicBool,
    ) -> Result<String, Failure> {
        let slot = self.slot;
        let views = nodes.agreed(Some(slot))?;
        let moves = Book::find(&views)?.moves(nodes)?;
        if views.master(&self.to).is_none() {
            return Err(format!(
                "slot {slot} was on its way to {}, which is not there any more: name another node with --to",
                views.at(&self.to)
            )
            .into());
        }
        let plan = plan(slot, &self.to, &views, &moves)?;
        let source = views.master(&plan.from);
        let survey = match source {
            Some(source) => Survey::of(nodes, &source.at, slot)?,
            None => Survey::default(),
        };
        if source.is_some() {
            refuse(nodes, &views, &plan, &survey, self.stall)?;
        }
        let name = slot_with(slot, tenants);
        let (from, to) = (
            views.at(&plan.from).to_owned(),
            views.at(&plan.to).to_owned(),
        );
        let way = match plan.way {
            Way::On => format!("from {from} to {to}"),
            Way::Back => format!("from {from} back to {to}"),
        };
        if self.only_say {
            return Ok(format!(
                "{name} would go {way}: {} keys, {:.1} MB, the largest {:.1} kB, in about {:.1} s",
                survey.keys,
                survey.bytes as f64 / 1e6,
                survey.largest as f64 / 1e3,
                survey.takes().as_secs_f64()
            ));
        }
        if plan.way == Way::On && source.is_some_and(|source| source.slots() == 1) {
            eprintln!(
                "it is the last slot of {from}: with cluster-allow-replica-migration, which is the default, that node becomes a replica of {to}"
            );
        }
        let began = Instant::now();
        let moved = Mover::begin(nodes, &views, plan, self.stall, stop)?.run()?;
        Ok(format!(
            "{name} has gone {way}: {} keys, {:.1} MB in {:.1} s, the longest batch took {:.1} ms",
            moved.keys,
            moved.bytes as f64 / 1e6,
            began.elapsed().as_secs_f64(),
            moved.longest.as_secs_f64() * 1e3
        ))
    }
}
