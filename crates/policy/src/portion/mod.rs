//! Rates, throughputs and weights of a tenant that several fronts keep together, where each front
//! decides alone.
//!
//! A limit of 10,000 requests a second is one of all fronts, wherever clients connect, and so is a
//! weight. Each front keeps to a portion of it, and tells the others two things: what it used, and
//! what it claims. To be exact it takes no leader:
//!
//! * What a front is due follows from what all used, by a rule for rates, one for throughputs that
//!   are promised, and one for weights ([`Divided`]).
//! * Of a rate, a front keeps to the least of its claim, of what it is due, and of what the claims
//!   of the others leave ([`Portion::keep`]). It claims *before* it looks at the others' claims, so
//!   of two that take the same at once at least one sees it. All portions together are therefore
//!   never more than the whole, in whatever order fronts read and write.
//! * Of a throughput, it keeps to what it is due. Nobody is held to his part, so no harm comes of
//!   parts that are more than the whole for a round, where some have heard what others have not.
//! * Of a weight, it goes half of the way to what it is due, and all of the way up where a tenant
//!   comes. All parts together are the whole where all have heard the same, and for a round more or
//!   less than it where something changes. Claims would keep them below it all the time: what is
//!   served varies, and of each change the front that gives is the first. Tenants then lose more or
//!   less of their weights by chance.
//! * A little is left for where a tenant has used nothing, so that its next request is served, and
//!   is seen: of a rate, a part is divided evenly beforehand; a weight is even there, on top.
//!   Nobody is held to a throughput, so of that there is next to nothing.
//!
//! This is distributed rate limiting by max-min shares instead of by flows (Raghavan et al.,
//! SIGCOMM 2007, has gossip and both parts); Pisces leaves limits to each node. Of weights Pisces
//! has a controller that exchanges them ([`crate::placement`]).

mod divided;
#[cfg(test)]
mod tests;

pub use divided::Divided;

use crate::provision::Reservation;

/// What a tenant has when it comes to a front at which it was not, as a part of an even part. Of a
/// rate that is lost where it is not used; with a twentieth of weights, shares in all were 1 to 3 %
/// less even.
const SPARE: f64 = 0.01;
/// The same of a throughput: nobody is held to it, so his first request is served and seen. No part
/// is nothing, which nobody could be measured against.
const UNSERVED: f64 = 1e-4;
/// A front was held back if it used this much of its portion, and something of the tenant waited
/// for most of the time.
const NEARLY: f64 = 0.8;
const MOSTLY: f64 = 0.5;
/// Of a rate, who was held back asks for so many times what it used. That is about what the clients
/// of a front vary by.
const ONCE: f64 = 1.2;
/// In so many rounds, one after the other: others must give up first what a claim is for.
const ONCE_ROUNDS: u32 = 4;
/// Then for so many times.
const AGAIN: f64 = 1.5;
/// And after so many rounds for all that it can get. If each did so at once, a front that can use
/// nine tenths would have half of that beside three whose clients vary by a tenth.
const AGAIN_ROUNDS: u32 = 8;
/// What was used fades by this part in a round.
const FADES: f64 = 0.5;
/// Of a weight, by as many parts of this as requests of the tenant are served in a round, at all
/// fronts, in the mean of some seconds: less says nothing of where it will be served. Where three
/// requests a second are served at a front, two seconds without one are chance, and who lost his
/// weight there for it would wait for the next and weigh less and less.
const ENOUGH: f64 = 200.0;
/// But by so much at least. Who sends many requests at once and waits for all of them is served
/// elsewhere first, and nothing for a long time, if he waits long here.
const FADES_MIN: f64 = 0.02;
/// What the newest round counts in that mean.
const NEWEST: f64 = 0.05;
/// A front that serves no more than this part of what a tenant is served serves nothing of it. It
/// is forgotten there in ten rounds without a request where there are many.
const NOTHING: f64 = 0.001;

/// What a front says of something of a tenant's that is divided.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Told {
    /// What it used of late. Of a rate, as a part of the whole; of several rates the one used most.
    /// Of a throughput, what it served, as a part of the whole. Of a weight, what the tenant was
    /// served, in any unit that all fronts use, and what it was served before, less and less of it.
    pub used: f64,
    /// It was held back: it could use more.
    pub more: bool,
    /// What it claims of what is divided.
    pub claim: f64,
    /// Requests that it served in the last round.
    pub requests: f64,
    /// And in those before, less and less of them, as `used`.
    pub remembered: f64,
}

/// What a front keeps to of what a tenant has at all fronts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Portions {
    /// The part of its limits.
    pub limit: f64,
    /// The part of its contract.
    pub promised: f64,
    /// The parts of the reads and of the writes that are reserved for it.
    pub reserved: Reservation,
    /// What its weight is multiplied by: over the fronts that serve it, these add up to how many
    /// fronts there are.
    pub weight: f64,
}

impl Default for Portions {
    /// All of it: there is one front.
    fn default() -> Self {
        Portions {
            limit: 1.0,
            promised: 1.0,
            reserved: [1.0; 2],
            weight: 1.0,
        }
    }
}

/// One front's portion.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Portion {
    divided: Divided,
    told: Told,
    /// What it used, and before, less and less of it.
    used: f64,
    /// In so many requests.
    remembered: f64,
    /// Requests that others served in the last round.
    elsewhere: f64,
    /// Requests that all served in a round, in the mean.
    pace: f64,
    /// It served nothing of the tenant until this round.
    comes: bool,
    /// Rounds, one after the other, in which it was held back.
    held_back: u32,
    /// The part that it might use before the last change.
    had: f64,
    /// What it keeps to, of what is divided: of a rate, never more than it claims.
    kept: f64,
    fronts: usize,
}

impl Divided {
    /// How many times an even part it is that a front has which keeps to `kept` of all, one of
    /// `fronts`.
    #[must_use]
    pub fn times_even(self, kept: f64, fronts: usize) -> f64 {
        let even = kept * fronts as f64;
        match self {
            // So written, an even part is 1 to the last digit.
            Divided::Rate => 1.0 + (1.0 - SPARE) * (even - 1.0),
            Divided::Throughput => 1.0 + (1.0 - UNSERVED) * (even - 1.0),
            // What is spare of a weight is given on top where there is less. Taken from all parts
            // it would favour small ones: beside a tenant that is at one front only, one with an
            // eighth of its weight there would have 2 % more.
            Divided::Weight => even.max(SPARE),
        }
    }
}

impl Portion {
    /// Of one among `fronts`, before it has heard of any.
    #[must_use]
    pub fn new(divided: Divided, fronts: usize) -> Self {
        let fronts = fronts.max(1);
        let even = 1.0 / fronts as f64;
        Portion {
            divided,
            told: Told {
                claim: even,
                ..Told::default()
            },
            used: 0.0,
            remembered: 0.0,
            elsewhere: 0.0,
            pace: 0.0,
            comes: false,
            held_back: 0,
            had: even,
            kept: even,
            fronts,
        }
    }

    /// The part that this front may use, above 0, at most 1.
    #[must_use]
    pub fn part(&self) -> f64 {
        self.times_even() / self.fronts as f64
    }

    /// How many times an even part that is.
    #[must_use]
    pub fn times_even(&self) -> f64 {
        self.divided.times_even(self.kept, self.fronts)
    }

    /// What it used of late, as it has told.
    #[must_use]
    pub fn used(&self) -> f64 {
        self.told.used
    }

    /// Takes in what the tenant did here since the last time: what it used, in how many requests,
    /// and the part of the time for which something of it waited for its turn. Returns what to tell
    /// the others *before* [`Portion::keep`] is given what they tell.
    pub fn tell(&mut self, used: f64, requests: f64, waited: f64) -> Told {
        let nearly = match self.divided {
            // Where its part has just grown, what it used is still of the old one. Of a small rate
            // the spare part is less than a request a round.
            Divided::Rate => used >= NEARLY * self.had.min(self.part()) || used == 0.0,
            Divided::Throughput | Divided::Weight => true,
        };
        let held_back = waited >= MOSTLY && nearly;
        self.comes = self.used < used * NOTHING;
        self.held_back = match held_back {
            false => 0,
            // Nothing is known of who comes but that he waits.
            true if self.comes || used == 0.0 => AGAIN_ROUNDS + 1,
            true => self.held_back.saturating_add(1),
        };
        let all = requests + self.elsewhere;
        self.pace += match self.pace > 0.0 {
            true => (all - self.pace) * NEWEST,
            false => all,
        };
        let fades = match self.divided {
            _ if self.comes => 1.0,
            Divided::Rate | Divided::Throughput => FADES,
            Divided::Weight => (self.pace / ENOUGH).clamp(FADES_MIN, FADES),
        };
        self.used *= 1.0 - fades;
        self.used += match self.divided {
            Divided::Rate | Divided::Throughput => used * fades,
            Divided::Weight => used,
        };
        self.remembered = self.remembered * (1.0 - fades) + requests;
        let (used, more) = match (self.divided, self.held_back) {
            (Divided::Weight, _) => (self.used, held_back),
            // What it takes from others nobody serves: there is no harm in asking at once.
            (Divided::Throughput, _) => (used.max(self.used), held_back),
            // Less is believed slowly, for it may be chance; more at once.
            (Divided::Rate, 0) => (used.max(self.used), false),
            (Divided::Rate, 1..=ONCE_ROUNDS) => (used.max(self.used) * ONCE, false),
            (Divided::Rate, ..=AGAIN_ROUNDS) => (used.max(self.used) * AGAIN, false),
            (Divided::Rate, _) => (used.max(self.used), true),
        };
        self.told = Told {
            used,
            more,
            requests,
            remembered: self.remembered,
            ..self.told
        };
        self.kept = self.kept.min(self.told.claim);
        self.told
    }

    /// Hears what the other fronts tell, after it has told them, where there are `fronts` with this
    /// one. From now on [`Portion::part`] is another, and so is its claim the next time.
    pub fn keep(&mut self, others: &[Told], fronts: usize) {
        self.had = self.part();
        self.fronts = fronts.max(others.len() + 1);
        self.elsewhere = others.iter().map(|other| other.requests).sum();
        let due = self.divided.due(&self.told, others, self.fronts);
        match self.divided {
            Divided::Throughput => {
                self.kept = due;
                self.told.claim = due;
            }
            Divided::Rate => {
                let claimed: f64 = others.iter().map(|other| other.claim).sum();
                let left = (1.0 - claimed).max(0.0);
                self.kept = self.told.claim.min(due).min(left);
                // What the others claim they must give up first: whoever claimed it at once would
                // have them give up more than he takes, in turns for ever.
                self.told.claim = due.min(left);
            }
            Divided::Weight => {
                let step = divided::towards(self.kept, due, self.fronts);
                // Who comes may have asked for the smallest part of a round yet.
                self.kept = if self.comes { step.max(due) } else { step };
                self.told.claim = self.kept;
            }
        }
    }
}
