//! What was learnt of one promise.

use super::giving::Took;
use super::{Held, PromiseSeen, DEVICE, HANDLERS, STAGES};
use crate::cost::Nanos;
use crate::slo::{Latency, Tail};

/// How margins are learnt.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MarginOptions {
    /// What was seen counts a third as much after this long, in s.
    pub memory_s: f64,
    /// A margin is at most this part of the promise: beyond, groups become small and dear.
    pub part_max: f64,
    /// It is at least this part.
    pub part_min: f64,
    /// By stage: the margin before anything is learnt, as a part of the promise.
    pub first: [f64; STAGES],
    /// A margin falls towards what was measured by this part of the way, a second.
    pub fall_per_s: f64,
    /// Of the requests that may be late, those that the margin is made for at most.
    pub aim: f64,
    /// The same while the promise gives way: then the percentile is to lie at what is aimed at, or
    /// what is measured is given up less than others.
    pub aim_giving: f64,
}

impl Default for MarginOptions {
    fn default() -> Self {
        MarginOptions {
            memory_s: 10.0,
            part_max: 0.85,
            part_min: 0.05,
            first: [0.75, 0.5],
            fall_per_s: 0.1,
            aim: 0.25,
            aim_giving: 0.75,
        }
    }
}

/// Fewer requests than this say nothing against a margin.
const SAMPLE_MIN: f64 = 50.0;
/// What the newest interval counts in a rate that rises.
const NEWEST: f64 = 0.5;
/// That a window has more late requests than it may have is so many standard errors away. Requests
/// are late by twos and threes, so it takes more than chance would.
const ERRORS: f64 = 4.0;
/// What has faded to less than this part of a request says nothing of a margin: that is after three
/// quarters of a minute, where what was seen counts a third as much after ten seconds.
const FORGOTTEN: f64 = 0.01;
/// What is wanted of a rate beyond what was promised, so that measuring does not decide.
const RATE_AIM: f64 = 1.03;
/// Intervals in a row after which a missed rate is believed.
const SHORT_MIN: u32 = 3;

/// What was learnt of one promise.
#[derive(Clone, Debug)]
pub(super) struct Learnt {
    pub(super) held: Held,
    pub(super) margin_ns: Option<[Nanos; STAGES]>,
    pub(super) part: f64,
    memory_s: f64,
    after: [Tail; STAGES],
    /// Latencies of requests in contract since something else was aimed at; older ones fade.
    took: Tail,
    /// Requests in contract a second, of late, when there were any.
    per_s: f64,
    /// Requests in contract, and by stage how many of them were late by its doing; older ones fade.
    requests: f64,
    late: [f64; STAGES],
    /// Those that are not answered yet and late already.
    overdue: f64,
    /// Part of the device's time that a request a second takes.
    device_each: Option<f64>,
    /// Whether it wanted more than it had in the last interval.
    wants: bool,
    /// Intervals in a row in which it had less than its part of the promised rate, and wanted more.
    short: u32,
}

impl Learnt {
    pub(super) fn new(held: Held, options: &MarginOptions) -> Self {
        let first = |latency: Latency| {
            options
                .first
                .map(|part| (part * latency.at_most_ns as f64) as Nanos)
        };
        Learnt {
            margin_ns: held.objective.latency.map(first),
            held,
            part: 1.0,
            memory_s: options.memory_s,
            after: std::array::from_fn(|_| Tail::default()),
            took: Tail::default(),
            per_s: 0.0,
            requests: 0.0,
            late: [0.0; STAGES],
            overdue: 0.0,
            device_each: None,
            wants: false,
            short: 0,
        }
    }

    /// Takes in an interval.
    pub(super) fn see(&mut self, seen: &PromiseSeen, elapsed_s: f64) {
        if elapsed_s <= 0.0 {
            return;
        }
        let fade = (-elapsed_s / self.memory_s).exp();
        for (tail, new) in self.after.iter_mut().zip(&seen.after) {
            tail.fade(fade);
            tail.add(new);
        }
        self.took.fade(fade);
        self.took.add(&seen.latencies);
        if seen.counts.requests > 0 {
            // Of a few, fewer may be late: that must not wait.
            let per_s = seen.counts.requests as f64 / elapsed_s;
            self.per_s = per_s.min(self.per_s + (per_s - self.per_s) * NEWEST);
        }
        self.overdue = match self.aimed_ns() {
            Some(aimed_ns) if seen.waiting_ns as f64 > aimed_ns => seen.counts.overdue as f64,
            _ => 0.0,
        };
        self.requests = self.requests * fade + seen.counts.requests as f64 + self.overdue;
        let elsewhere = seen.held.saturating_add(seen.unhandled);
        let late = [seen.unhandled, seen.counts.late.saturating_sub(elsewhere)];
        let counted = self.late_by_aim(seen);
        for (all, new) in self.late.iter_mut().zip(late) {
            *all = *all * fade + new as f64 * counted;
        }
        // Where it waits is not known before it is answered.
        self.late[DEVICE] += self.overdue;
        let per_s = (seen.counts.requests + seen.counts.beyond) as f64 / elapsed_s;
        if per_s > 0.0 && seen.device > 0.0 {
            let each = seen.device / per_s;
            let old = self.device_each.unwrap_or(each);
            self.device_each = Some(old + 0.3 * (each - old));
        }
        let wanted = self
            .held
            .objective
            .throughput_per_s
            .map(|wanted| wanted * self.part);
        self.wants = seen.waiting_ns as f64 / 1e9 > 0.5 * elapsed_s
            || seen.occupied.iter().any(|part| *part > 0.5);
        self.short = match wanted {
            Some(wanted) if self.wants && per_s < 0.98 * wanted => self.short + 1,
            _ => 0,
        };
    }

    /// The part of the requests that were late that are so by what is aimed at, 0 to 1: a promise
    /// that gives way is late later, and one that is given up is not.
    fn late_by_aim(&self, seen: &PromiseSeen) -> f64 {
        let Some(aimed_ns) = self.aimed_ns().filter(|_| self.part < 1.0) else {
            return 1.0;
        };
        let late = seen.latencies.longer_than(aimed_ns as Nanos);
        let all = seen.counts.late.saturating_sub(seen.held);
        (late / all.max(1) as f64).min(1.0)
    }

    /// The latency that is aimed at, ns.
    fn aimed_ns(&self) -> Option<f64> {
        let latency = self.held.objective.latency?;
        Some(latency.at_most_ns as f64 / self.part.max(f64::MIN_POSITIVE))
    }

    /// So much of the promise is aimed at from now on.
    pub(super) fn aim_at(&mut self, part: f64) {
        if part != self.part {
            (self.part, self.took) = (part, Tail::default());
        }
    }

    /// By stage: whether more requests were late by it than half of what may be. Of a promise that
    /// gives way the percentile is to lie at what is aimed at: whether it is beyond that since
    /// something else was aimed at last, by the stage that most were late by.
    pub(super) fn pressed(&self) -> [bool; STAGES] {
        let (Some(latency), Some(aimed_ns)) = (self.held.objective.latency, self.aimed_ns()) else {
            return [false; STAGES];
        };
        if self.part < 1.0 {
            let late = self.took.longer_than(aimed_ns as Nanos) + self.overdue;
            let all = self.took.count() + self.overdue;
            let enough = all >= latency.sample_least() as f64 || self.overdue > 0.0;
            let beyond = enough && late > latency.late_part() * all;
            let by_handlers = self.late[HANDLERS] > self.late[DEVICE];
            return [beyond && by_handlers, beyond && !by_handlers];
        }
        let allowed = latency.late_part() * self.requests;
        let many = (0.5 * allowed).max(0.5);
        self.late.map(|late| late > many)
    }

    /// Whether more requests were late than may be.
    pub(super) fn exceeded(&self) -> bool {
        self.late_beyond(1.0)
    }

    /// Whether so few were late that others may have more of what makes reads late.
    pub(super) fn relaxed(&self) -> bool {
        !self.late_beyond(0.25)
    }

    /// Whether more were late than so many times what may be.
    fn late_beyond(&self, times: f64) -> bool {
        let late: f64 = self.late.iter().sum();
        let latency = self.held.objective.latency;
        latency.is_some_and(|latency| late > times * latency.late_part() * self.requests)
    }

    /// Something was done about what was late by a stage so far: only what is late from now on asks
    /// for more.
    pub(super) fn answered_for(&mut self, stage: usize) {
        self.late[stage] = 0.0;
    }

    /// How long its requests took, unless the promise is given up.
    pub(super) fn took(&self) -> Option<Took> {
        let latency = self.held.objective.latency.filter(|_| self.part > 0.0)?;
        Some(Took {
            importance: f64::from(self.held.objective.importance.max(1)),
            requests: self.took.count(),
            promised_ns: latency.at_most_ns,
            ns: self.took.quantile(latency.percentile / 100.0)?,
        })
    }

    /// Whether less of its latency is aimed at than was promised, and it takes longer. Where a rate
    /// is short all aim at less, which says nothing of who is in time.
    pub(super) fn gives_way(&self) -> bool {
        let keeps = |took: Took| took.ns <= took.promised_ns;
        self.held.objective.latency.is_some()
            && self.part > 0.0
            && self.part < 1.0
            && !self.took().is_some_and(keeps)
    }

    /// What it lacked of the promised latency in an interval, weighted by importance; `None`: so
    /// few were answered that it cannot be told.
    pub(super) fn lacks_latency(&self, seen: &PromiseSeen) -> Option<f64> {
        let latency = self.held.objective.latency?;
        let enough = seen.counts.requests >= latency.sample_least();
        let ns = seen.latency_ns(&self.held.objective).filter(|_| enough)?;
        Some(self.weighted(latency.at_most_ns as f64 / ns as f64))
    }

    /// Whether a promised rate is missed for long though its part of the device is kept.
    pub(super) fn short(&self) -> bool {
        self.short >= SHORT_MIN
    }

    /// What it lacks of the promised rate, weighted by importance, if it wants more.
    pub(super) fn lacks_rate(&self, seen: &PromiseSeen, elapsed_ns: Nanos) -> Option<f64> {
        let wanted = self.held.objective.throughput_per_s?;
        let is = seen.per_s(elapsed_ns).filter(|_| self.wants)?;
        Some(self.weighted(is / wanted))
    }

    /// Badness (Frosting 2.3).
    fn weighted(&self, performance: f64) -> f64 {
        f64::from(self.held.objective.importance) * (1.0 - performance).max(0.0)
    }

    /// The part of the device that its promised rate takes.
    pub(super) fn device(&self) -> f64 {
        let wanted = self.held.objective.throughput_per_s.unwrap_or(0.0);
        let each = self.device_each.unwrap_or(0.0);
        (wanted * self.part * RATE_AIM * each).min(1.0)
    }

    /// What it needs at the device, as a part of what it was promised.
    pub(super) fn needs(&self, options: &MarginOptions) -> Option<f64> {
        let latency = self.held.objective.latency?;
        let ns = self.wanted_ns(DEVICE, options)?;
        Some(ns as f64 * self.part / latency.at_most_ns as f64)
    }

    /// How long its requests take, as a part of what was promised.
    pub(super) fn takes(&self) -> Option<f64> {
        let took = self.took()?;
        Some(took.ns as f64 / took.promised_ns as f64)
    }

    /// What a margin at a stage has to allow for, if anything was seen.
    fn wanted_ns(&self, stage: usize, options: &MarginOptions) -> Option<Nanos> {
        let (latency, tail) = (self.held.objective.latency?, &self.after[stage]);
        let aimed = self.late_aimed(&latency, options);
        tail.quantile(1.0 - aimed.max(FORGOTTEN / tail.count()))
    }

    /// The part of the requests that margins leave late: so few that hardly a window has more by
    /// chance than it may have. Of 200 requests two may be late at a p99, or one of 199: with a
    /// quarter of a hundredth late in the mean, one such window of twenty has more.
    fn late_aimed(&self, latency: &Latency, options: &MarginOptions) -> f64 {
        let requests = self.per_s * self.held.objective.window_ns as f64 / 1e9;
        // Whole ones are late, so half a request less in the mean.
        let may = (latency.late_part() * requests - 0.5).max(0.0);
        let few = below(may) / requests.max(1.0);
        match self.part < 1.0 {
            true => latency.late_part() * options.aim_giving,
            false => few.min(latency.late_part() * options.aim),
        }
    }

    /// It may wait longer at the device from now on, for all that is known: its margin there falls
    /// again if that is not so.
    pub(super) fn allow(&mut self, longer_ns: f64, options: &MarginOptions) {
        let at_most_ns = self
            .held
            .objective
            .latency
            .map(|latency| latency.at_most_ns);
        if let Some((margins, at_most_ns)) = self.margin_ns.as_mut().zip(at_most_ns) {
            let most = options.part_max * at_most_ns as f64;
            let margin = &mut margins[DEVICE];
            *margin = (*margin as f64 + longer_ns).min(most.max(*margin as f64)) as Nanos;
        }
    }

    /// Moves the margins to where what was seen after "due" says; tells if that is far.
    pub(super) fn set_margins(
        &mut self,
        options: &MarginOptions,
        elapsed_s: f64,
        falls: [bool; STAGES],
    ) -> Option<String> {
        let wanted = std::array::from_fn::<_, STAGES, _>(|stage| self.wanted_ns(stage, options));
        let (latency, margins) = (self.held.objective.latency?, self.margin_ns.as_mut()?);
        let aimed_ns = latency.at_most_ns as f64 / self.part.max(f64::MIN_POSITIVE);
        let most = options.part_max * aimed_ns;
        let before = *margins;
        let stages = self.after.iter().zip(wanted).zip(falls);
        for (margin, ((tail, wanted), falls)) in margins.iter_mut().zip(stages) {
            let is = *margin as f64;
            let wanted = wanted.map_or(is, |ns| ns as f64);
            let next = match wanted >= is {
                true => wanted,
                // Alone it needs less than beside others, which says nothing of when they come.
                false if tail.count() < SAMPLE_MIN || !falls => is,
                false => is + (wanted - is) * (options.fall_per_s * elapsed_s).min(1.0),
            };
            *margin = next.clamp(options.part_min * aimed_ns, most) as Nanos;
        }
        let moved = before.iter().zip(&*margins);
        let far = moved
            .into_iter()
            .any(|(was, is)| was.abs_diff(*is) * 10 > *was);
        let [handlers, device] = margins.map(|ns| ns as f64 / 1e6);
        far.then(|| {
            format!(
                "Tenant {} needs {handlers:.1} ms from a handler's turn and {device:.1} ms from the device's turn to a reply.",
                self.held.principal.0,
            )
        })
    }
}

/// The mean of a count that hardly ever exceeds `most`, by Poisson's law: by the approximation of
/// its quantiles of Wilson and Hilferty (1931).
fn below(most: f64) -> f64 {
    let next = most + 1.0;
    let root = 1.0 - 1.0 / (9.0 * next) - ERRORS / (3.0 * next.sqrt());
    next * root.max(0.0).powi(3)
}
