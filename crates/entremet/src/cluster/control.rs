//! `entremet cluster control`: moves partitions to where what they are asked for can be served.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use front::Space;
use policy::placement::{PlacerOptions, Price};
use policy::Nanos;

use super::book::{Book, LOOK_EVERY};
use super::decide::{price, Decider, Decision, Scene, LOAD};
use super::figures::Figures;
use super::intent::Intent;
use super::lead::Lead;
use super::leaving::{leaving, unfinished};
use super::moving::{told_to_stop, Allow, Order};
use super::reach::Nodes;
use super::say::Say;
use super::settled::{settled, Away};
use super::slots::Slots;
use super::strays::heir;
use super::survey::sizes;
use super::{ControlArgs, Failure};

/// Under which name it is written down what was decided last: when, in seconds since 1970, and
/// what.
pub const LAST: &str = "last";
/// Under which name it is written down which slots have moved, and when.
const RESTS: &str = "rests";
/// Who empties a node looks twice a second whether it may begin.
const GIVE_WAY: Duration = Duration::from_secs(2);
/// After moves fronts send clients on to the homes of what has moved (`front::Homes`), and divide
/// weights anew. What is asked for meanwhile says little of what will be.
const SETTLED_AFTER: Duration = Duration::from_secs(6);
/// What moves have left uneven is mended so often: looks are added up.
const MENDS_MAX: u32 = 3;
/// Figures are read so often.
const READ_EVERY: Duration = Duration::from_secs(1);

/// Moves partitions until it is told to stop.
///
/// # Errors
/// It lost its place to another; or nothing can be decided, and it is not to wait.
pub fn run(args: &ControlArgs) -> Result<(), Failure> {
    let (stop, mut say) = (told_to_stop()?, Say::default());
    let nodes = Nodes::new(&args.cluster.reach()?);
    let lead = match args.dry_run {
        true => None,
        false => match Lead::take(&nodes.reach, args.once, &stop, &mut say)? {
            None => return Ok(()),
            lead => lead,
        },
    };
    let mut control = Control::new(args, nodes, lead, stop, say);
    while !control.stops() {
        match control.round() {
            Ok(()) if args.once => break,
            Ok(()) => {}
            Err(why) if args.once => return Err(why),
            Err(why) => {
                control.say.why(&format!("nothing moves: {why}"));
                control.decider.placer.forget();
                if why.is::<Drained>() {
                    control.give_way()?;
                }
                thread::sleep(LOOK_EVERY);
            }
        }
    }
    match control.lead.as_ref().is_some_and(Lead::is_lost) {
        true => Err("this process was silent for long, and another places partitions now".into()),
        false => Ok(()),
    }
}

/// A node is being emptied, by a process that is to place partitions meanwhile.
#[derive(Debug, thiserror::Error)]
#[error("{0} is being emptied: entremet cluster drain goes on with it, or entremet cluster add keeps it")]
struct Drained(String);

struct Control<'a> {
    args: &'a ControlArgs,
    nodes: Nodes,
    figures: Figures,
    decider: Decider,
    /// None: nothing is to be changed.
    lead: Option<Lead>,
    away: Away,
    /// What has moved lately was read.
    knows_rests: bool,
    /// When something last moved.
    moved_at: Option<Instant>,
    stop: Arc<AtomicBool>,
    say: Say,
}

impl<'a> Control<'a> {
    fn new(
        args: &'a ControlArgs,
        nodes: Nodes,
        lead: Option<Lead>,
        stop: Arc<AtomicBool>,
        say: Say,
    ) -> Self {
        let options = PlacerOptions::priced(priced(args));
        let options = PlacerOptions {
            excess_min: f64::from(args.uneven) / 100.0,
            evidence_s: if args.once { 0.0 } else { options.evidence_s },
            mends_max: MENDS_MAX,
            // Moves are made one after the other, and what they gain counts for long: for a tenth
            // of that what was seen is taken to hold.
            turn_s: args.horizon.duration().as_secs_f64() / 10.0,
            ..options
        };
        Self {
            args,
            nodes,
            figures: Figures::default(),
            decider: Decider::new(options, &args.except),
            lead,
            away: Away::default(),
            knows_rests: false,
            moved_at: None,
            stop,
            say,
        }
    }

    /// Others may lead for a moment, and go on with what they are at as long as they need.
    fn give_way(&mut self) -> Result<(), Failure> {
        if self.lead.take().is_some() {
            thread::sleep(GIVE_WAY);
            self.lead = Lead::take(&self.nodes.reach, false, &self.stop, &mut self.say)?;
            self.knows_rests = false;
        }
        Ok(())
    }

    /// Where nothing is to move because a node is being emptied, that is the reason.
    fn refuse_drained(&mut self, book: &mut Book) -> Result<(), Failure> {
        match unfinished(book, &mut self.nodes)? {
            Some(node) => Err(Drained(node.at).into()),
            None => Ok(()),
        }
    }

    fn stops(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Brings to its end what was begun, sees for a while what is asked for, decides, and does it.
    fn round(&mut self) -> Result<(), Failure> {
        let views = self.nodes.views()?;
        let mut book = Book::find(&views)?;
        let tenants = book.tenants(&mut self.nodes)?;
        let begun = self.finish(&mut book, &tenants)?;
        if !self.knows_rests {
            let rests = book.control(&mut self.nodes, RESTS)?;
            for (slot, at_s) in read_rests(&rests) {
                self.decider
                    .placer
                    .rest(slot, at_s.saturating_mul(1_000_000_000));
            }
            self.knows_rests = true;
        }
        let Some(seen) = self.watch(&mut book)? else {
            return Ok(());
        };
        let views = self.nodes.views()?;
        if let Some(news) = self.away.look(&views, Instant::now())? {
            writeln!(io::stdout(), "{news}")?;
        }
        settled(&views, &begun)?;
        let told = self.figures.told()?;
        let uses = self.figures.uses(&mut self.nodes, &views)?;
        let of_its_part = |(id, used)| (id, used / self.args.processor);
        let uses = uses.into_iter().map(of_its_part).collect();
        let prices = self.figures.prices(&views);
        let slots: BTreeSet<u16> = told
            .values()
            .flat_map(|told| told.slots.keys().copied())
            .collect();
        let bytes = sizes(&mut self.nodes, &views, &slots)?;
        let busy = begun
            .iter()
            .flat_map(|begun| [begun.from.clone(), begun.to.clone()]);
        let leaving = leaving(&mut book, &mut self.nodes)?;
        let scene = Scene {
            now: wall_ns(),
            seen_s: seen.as_secs_f64(),
            views: &views,
            told: &told,
            uses: &uses,
            prices: &prices,
            bytes: &bytes,
            busy: &busy.collect(),
            leaving: &leaving,
        };
        match self.decider.decide(&scene, &tenants) {
            Ok(decided) => self.carry_out(&mut book, &decided, &tenants),
            Err(why) => {
                self.say.why(&why);
                Ok(())
            }
        }
    }

    /// Goes on with moves that were begun and that nobody is at. Returns those that are not at
    /// their end.
    fn finish(
        &mut self,
        book: &mut Book,
        tenants: &[(String, Space)],
    ) -> Result<Vec<Intent>, Failure> {
        let begun = book.moves(&mut self.nodes)?;
        if begun.is_empty() || self.lead.is_none() {
            return Ok(begun);
        }
        for one in begun {
            if self.stops() {
                break;
            }
            let looked = self.nodes.views().and_then(|views| {
                let to = heir(&mut self.nodes, &views, &one)?;
                let to = to.unwrap_or_else(|| one.to.clone());
                let order = self.order(one.slots, to, LOAD);
                order.look(&mut self.nodes, tenants)
            });
            match looked.and_then(|looked| looked.carry_out(&mut self.nodes, &self.stop)) {
                Ok(done) => self.tell(book, &format!("{}; it was begun before", done.line))?,
                Err(why) => self.say.why(&format!(
                    "{} {} on the way: {why}",
                    one.slots,
                    one.slots.are()
                )),
            }
        }
        book.moves(&mut self.nodes)
    }

    /// Reads figures until it is time to decide. Returns for how long; none: it is to stop.
    fn watch(&mut self, book: &mut Book) -> Result<Option<Duration>, Failure> {
        let settles = |at: Instant| at.elapsed() < SETTLED_AFTER;
        while self.moved_at.is_some_and(settles) && !self.stops() {
            thread::sleep(LOOK_EVERY);
        }
        let views = self.nodes.views()?;
        // From now on; what nodes did for a move is not what they are asked for.
        let _ = self.figures.uses(&mut self.nodes, &views);
        let began = Instant::now();
        let mut read_at: Option<Instant> = None;
        while began.elapsed() < self.args.every.duration() || read_at.is_none() {
            if self.stops() {
                return Ok(None);
            }
            if read_at.is_none_or(|at| at.elapsed() >= READ_EVERY) {
                self.refuse_drained(book)?;
                self.figures.look(&mut self.nodes, book)?;
                read_at = Some(Instant::now());
            }
            thread::sleep(LOOK_EVERY.min(self.args.every.duration()));
        }
        self.figures.look(&mut self.nodes, book)?;
        Ok(Some(began.elapsed()))
    }

    fn order(&self, slots: Slots, to: String, part: f64) -> Order {
        Order {
            slots,
            to,
            allow: Allow {
                stall: self.args.allow_stall.duration(),
                part,
            },
            known: None,
        }
    }

    /// Does what was decided, one move after the other.
    fn carry_out(
        &mut self,
        book: &mut Book,
        decided: &[Decision],
        tenants: &[(String, Space)],
    ) -> Result<(), Failure> {
        let mut went = true;
        for one in decided {
            if self.stops() {
                break;
            }
            if self.lead.as_ref().is_some_and(|lead| !lead.is_sure()) {
                return Err("it cannot be written down that this process is at work".into());
            }
            self.refuse_drained(book)?;
            if one.follows && !went {
                self.tell(book, &format!("{} stays, as the other does", one.why))?;
                continue;
            }
            went = self.carry_out_one(book, one, tenants)?;
        }
        Ok(())
    }

    /// Returns whether it has moved, or would.
    fn carry_out_one(
        &mut self,
        book: &mut Book,
        one: &Decision,
        tenants: &[(String, Space)],
    ) -> Result<bool, Failure> {
        let price = priced(self.args);
        let looked = self
            .order(one.slot.into(), one.to.clone(), one.part)
            .look(&mut self.nodes, tenants);
        let looked = match looked {
            Ok(looked) => looked,
            Err(why) => {
                self.tell(book, &format!("{} stays: {why}", one.why))?;
                return Ok(false);
            }
        };
        let bytes = looked.survey.bytes;
        let what = format!(
            "{}; {:.1} MB, about {:.1} s",
            one.why,
            bytes as f64 / 1e6,
            price.takes_s(bytes)
        );
        if price.of(bytes) >= one.gain {
            self.tell(
                book,
                &format!("{what}: it stays, for that costs more than it gains"),
            )?;
            return Ok(false);
        }
        if self.lead.is_none() {
            writeln!(io::stdout(), "would move {what}")?;
            self.decider.placer.wake(u32::from(one.slot));
            return Ok(true);
        }
        self.tell(book, &format!("moves {what}"))?;
        let moved = looked.carry_out(&mut self.nodes, &self.stop);
        self.moved_at = Some(Instant::now());
        match &moved {
            Ok(done) => self.tell(book, &done.line)?,
            Err(why) => self.tell(book, &format!("slot {}: {why}", one.slot))?,
        }
        Ok(moved.is_ok())
    }

    /// Says what was decided, and writes it down; what has moved stays for a while, whoever places
    /// partitions then.
    fn tell(&mut self, book: &mut Book, line: &str) -> Result<(), Failure> {
        self.say.did();
        writeln!(io::stdout(), "{line}")?;
        if self.lead.is_some() {
            let last = format!("{} {line}", wall_ns() / 1_000_000_000);
            book.set_control(&mut self.nodes, LAST, &last)?;
            let rests = self.decider.placer.resting();
            let rests = rests.map(|(slot, at)| format!("{slot}:{}", at / 1_000_000_000));
            let rests: Vec<String> = rests.collect();
            book.set_control(&mut self.nodes, RESTS, &rests.join(" "))?;
        }
        Ok(())
    }
}

/// What a move costs.
fn priced(args: &ControlArgs) -> Price {
    price(args.horizon.duration().as_secs_f64(), args.processor)
}

/// Slots, and when they moved, in seconds.
fn read_rests(text: &str) -> Vec<(u32, u64)> {
    let pairs = text.split(' ').filter_map(|word| word.split_once(':'));
    let read = pairs.map(|(slot, at)| Some((slot.parse().ok()?, at.parse().ok()?)));
    read.flatten().collect()
}

/// By the clock on the wall, ns since 1970: processes that follow each other have no other.
fn wall_ns() -> Nanos {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_nanos() as Nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_moved_is_read() {
        assert_eq!(read_rests("3:100 16000:7"), [(3, 100), (16_000, 7)]);
        assert_eq!(read_rests(""), []);
        assert_eq!(read_rests("x:1 2 4:y 5:6"), [(5, 6)]);
    }
}
