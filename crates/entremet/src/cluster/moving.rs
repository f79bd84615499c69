//! `entremet cluster move`.

use std::io::{self, Write};
use std::sync::atomic::AtomicBool;
use std::sync::Arc;
use std::time::{Duration, Instant};

use front::Space;
use settings::units::Time;
use signal_hook::consts::{SIGINT, SIGTERM};

use super::book::Book;
use super::mover::{Moved, Mover};
use super::nodes::{Node, Views};
use super::plan::{named, Plan, Way};
use super::reach::Nodes;
use super::slots::Slots;
use super::strays::{heir, planned};
use super::survey::{refuse, Survey};
use super::what::slots_with;
use super::{Failure, MoveArgs};

/// Moves what was named, one slot after the other.
///
/// # Errors
/// What cannot be moved, and why.
pub fn run(args: &MoveArgs) -> Result<(), Failure> {
    let stop = told_to_stop()?;
    let mut nodes = Nodes::new(&args.cluster.reach()?);
    let views = nodes.views()?;
    let mut book = Book::find(&views)?;
    let tenants = book.tenants(&mut nodes)?;
    let wanted = match &args.to {
        Some(to) => {
            let to = named(&views, to)?.id.clone();
            let slots = args
                .what
                .iter()
                .map(|what| Ok((what.slot(&tenants)?.into(), to.clone())));
            slots.collect::<Result<Vec<_>, String>>()?
        }
        None => {
            let moves = book.moves(&mut nodes)?;
            moves
                .into_iter()
                .map(|begun| {
                    Ok((
                        begun.slots,
                        heir(&mut nodes, &views, &begun)?.unwrap_or(begun.to),
                    ))
                })
                .collect::<Result<Vec<_>, Failure>>()?
        }
    };
    if wanted.is_empty() {
        writeln!(io::stdout(), "no move was begun and not brought to its end")?;
    }
    for (slots, to) in wanted {
        let order = Order {
            slots,
            to,
            allow: args.allow.get(),
            known: None,
        };
        let looked = order.look(&mut nodes, &tenants)?;
        let line = match args.dry_run {
            true => looked.would(),
            false => looked.carry_out(&mut nodes, &stop)?.line,
        };
        writeln!(io::stdout(), "{line}")?;
    }
    Ok(())
}

/// Becomes true when the process is told to end.
///
/// # Errors
/// Signals cannot be heard.
pub fn told_to_stop() -> Result<Arc<AtomicBool>, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
    }
    Ok(stop)
}

/// How moves may hold both nodes up.
#[derive(Clone, Copy, Debug)]
pub struct Allow {
    /// For so long by one key.
    pub stall: Duration,
    /// For this part of the time by all, while a move lasts.
    pub part: f64,
}

impl Allow {
    /// As the command line has it: a part in percent.
    pub fn of(stall: Time, percent: u8) -> Self {
        Self {
            stall: stall.duration(),
            part: f64::from(percent) / 100.0,
        }
    }
}

/// Slots that are to be elsewhere.
pub struct Order {
    /// Of the engine.
    pub slots: Slots,
    /// The name of the node.
    pub to: String,
    /// How both nodes may be held up.
    pub allow: Allow,
    /// What is in them, if that was looked at before.
    pub known: Option<Survey>,
}

/// What has come of an order.
pub struct Carried {
    /// In words.
    pub line: String,
    /// What has gone over.
    pub moved: Moved,
}

/// An order that may be carried out, as it was looked at.
pub struct Looked {
    views: Views,
    plan: Plan,
    /// What is in the slots.
    pub survey: Survey,
    /// The slots, with what lies in them.
    name: String,
    /// Where they go.
    way: String,
    allow: Allow,
}

impl Order {
    /// Looks whether it may be.
    ///
    /// # Errors
    /// Why it may not.
    pub fn look(&self, nodes: &mut Nodes, tenants: &[(String, Space)]) -> Result<Looked, Failure> {
        let slots = self.slots;
        let mut book = Book::find(&nodes.views()?)?;
        let (moves, views) = book.agreed(nodes, Some(slots))?;
        if views.master(&self.to).is_none() {
            return Err(format!(
                "{slots} {} on the way to {}, which is gone, and no other node has keys that went there; to go on without: entremet cluster move --to NODE",
                slots.are(),
                views.at(&self.to)
            )
            .into());
        }
        let plan = planned(nodes, (slots, &self.to), &views, &moves)?;
        let source = views.master(&plan.from);
        let survey = match (&self.known, source) {
            (Some(known), _) => known.clone(),
            (None, Some(source)) => Survey::of(nodes, &source.at, slots)?,
            (None, None) => Survey::default(),
        };
        if source.is_some() {
            refuse(nodes, &views, &plan, &survey, self.allow.stall)?;
        }
        let (from, to) = (views.at(&plan.from), views.at(&plan.to));
        let way = match plan.way {
            Way::On => format!("from {from} to {to}"),
            Way::Back => format!("from {from} back to {to}"),
        };
        Ok(Looked {
            plan,
            survey,
            name: slots_with(slots, tenants),
            way,
            allow: self.allow,
            views,
        })
    }
}

impl Looked {
    /// What would be done.
    fn would(&self) -> String {
        format!(
            "{} would go {}: {} keys, {:.1} MB, the largest {:.1} kB, in about {:.1} s",
            self.name,
            self.way,
            self.survey.keys,
            self.survey.bytes as f64 / 1e6,
            self.survey.largest as f64 / 1e3,
            self.survey.takes(self.allow.part).as_secs_f64()
        )
    }

    /// Does it. What there is to say at its end.
    ///
    /// # Errors
    /// What kept it from its end.
    pub fn carry_out(self, nodes: &mut Nodes, stop: &AtomicBool) -> Result<Carried, Failure> {
        let Self {
            views,
            plan,
            name,
            way,
            ..
        } = self;
        let source = views.master(&plan.from);
        let all = |source: &Node| source.slots() == u32::from(plan.slots.count());
        if plan.way == Way::On && source.is_some_and(all) {
            let (from, to) = (views.at(&plan.from), views.at(&plan.to));
            // It may not say: then it is as usual.
            if nodes.becomes_a_replica(from).unwrap_or(true) {
                eprintln!(
                    "{from} has no other slots: with cluster-allow-replica-migration, which is the default, that node becomes a replica of {to}"
                );
            }
        }
        let (began, slots) = (Instant::now(), plan.slots);
        let moved = Mover::begin(nodes, &views, plan, self.allow, stop)?.run()?;
        let line = format!(
            "{name} {} gone {way}: {} keys, {:.1} MB in {:.1} s, the longest batch took {:.1} ms",
            if slots.is_one() { "has" } else { "have" },
            moved.keys,
            moved.bytes as f64 / 1e6,
            began.elapsed().as_secs_f64(),
            moved.longest.as_secs_f64() * 1e3
        );
        Ok(Carried { line, moved })
    }
}
