//! What a verdict or a plot asks of the runs of one repeat.

use crate::measure::figure::{self, Choice, Combine, Figure};
use crate::measure::window::{self, Stretch};
use crate::measure::{fair, finite, Measured};
use crate::observed::Observed;

/// A measure: from one run, or from some, to a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// A figure of the chosen tenants.
    Value,
    /// Their part of everybody's.
    Share,
    /// Least over greatest weight-normalised figure.
    Mmr,
    /// The same of the groups' means.
    MmrOfGroups,
    /// Greatest minus least.
    Spread,
    /// The least MMR of all windows.
    LeastMmr,
    /// The least rate of any tenant in any window.
    LeastRate,
    /// Standard deviation of one tenant's figure over windows.
    Deviation,
    /// Seconds until the MMR of windows stays above a level.
    Settle,
    /// Seconds until everybody's rate stays above a level.
    SettleRate,
    /// Seconds until one tenant's figure stays near what it comes to.
    SettleNear,
    /// The worse of MMR and sum of dominant shares.
    Drf,
}

impl Measure {
    /// Whether it is how long something takes to settle, which needs a level.
    pub fn settles(self) -> bool {
        matches!(self, Self::Settle | Self::SettleRate | Self::SettleNear)
    }

    /// Names in experiments.
    pub const WORDS: [(&'static str, Self); 12] = [
        ("value", Self::Value),
        ("share", Self::Share),
        ("mmr", Self::Mmr),
        ("mmr-of-groups", Self::MmrOfGroups),
        ("spread", Self::Spread),
        ("least-mmr", Self::LeastMmr),
        ("least-rate", Self::LeastRate),
        ("deviation", Self::Deviation),
        ("settle", Self::Settle),
        ("settle-rate", Self::SettleRate),
        ("settle-near", Self::SettleNear),
        ("drf", Self::Drf),
    ];
}

/// What a measured value is divided by, or lessened by; what is not given is as on the other side.
#[derive(Clone, Debug, Default)]
pub struct Side {
    /// Another variant.
    pub variant: Option<String>,
    /// Another point.
    pub point: Option<String>,
    /// Other tenants or another figure.
    pub choice: Option<Choice>,
    /// Instead of one variant and point.
    pub best_of: Option<BestOf>,
    /// Subtracts it instead.
    pub less: bool,
}

/// The best of a sweep: of some variants at some points.
#[derive(Clone, Debug)]
pub struct BestOf {
    /// These variants.
    pub variants: Vec<String>,
    /// At these points; at the one that is asked for, if there are none.
    pub points: Vec<String>,
    /// The better of two.
    pub better: Better,
    /// Only those that keep promises.
    pub keeping: Option<Keeping>,
}

/// Who must have its promise kept, and in what part of the windows.
#[derive(Clone, Debug)]
pub struct Keeping {
    /// These tenants.
    pub tenants: Vec<String>,
    /// 0 to 1.
    pub least: f64,
}

/// Chooses one of two figures.
pub type Better = fn(f64, f64) -> f64;

/// A measure and what it needs to know.
#[derive(Clone, Debug)]
pub struct Query {
    /// The measure.
    pub measure: Measure,
    /// Whose figures.
    pub choice: Choice,
    /// Divides by this figure of the same run, on both sides.
    pub per: Option<Choice>,
    /// Divides by the same measure of something else.
    pub against: Option<Side>,
    /// For measures over time.
    pub stretch: Stretch,
    /// For measures that settle.
    pub level: f64,
    /// For [`Measure::Drf`]: groups, and the points that they have to themselves.
    pub alone: Vec<(String, String)>,
}

impl Query {
    /// The points, besides the one it is asked at, that an answer needs.
    pub fn other_points(&self) -> impl Iterator<Item = &str> {
        let against = self.against.iter().flat_map(|side| {
            let listed = side.best_of.iter().flat_map(|best| &best.points);
            side.point
                .as_deref()
                .into_iter()
                .chain(listed.map(String::as_str))
        });
        against.chain(self.alone.iter().map(|(_, point)| point.as_str()))
    }

    /// Whether it asks how long something takes.
    pub fn is_a_time(&self) -> bool {
        self.measure.settles() || self.asks_for_latency()
    }

    fn asks_for_latency(&self) -> bool {
        let per = self.per.as_ref().is_some_and(|per| per.figure.is_latency());
        self.choice.figure.is_latency() || per
    }

    /// Whether an answer needs this figure.
    pub fn asks_for(&self, figure: Figure) -> bool {
        let below = self.against.iter().filter_map(|side| side.choice.as_ref());
        std::iter::once(&self.choice)
            .chain(&self.per)
            .chain(below)
            .any(|choice| choice.figure == figure)
    }

    /// Answers from the runs of one repeat; `run` finds one by variant and point.
    ///
    /// # Errors
    /// Why there is no answer.
    pub fn answer<'a>(
        &self,
        run: &dyn Fn(&str, &str) -> Option<&'a Observed>,
        variant: &str,
        point: &str,
    ) -> Measured {
        let above = self.one_side(run, variant, point, &self.choice)?;
        let Some(side) = &self.against else {
            return Ok(above);
        };
        let choice = side.choice.as_ref().unwrap_or(&self.choice);
        let point = side.point.as_deref().unwrap_or(point);
        let below = match &side.best_of {
            None => {
                let variant = side.variant.as_deref().unwrap_or(variant);
                self.one_side(run, variant, point, choice)?
            }
            Some(best) => {
                let here = [point.to_owned()];
                let points = match &best.points[..] {
                    [] => &here[..],
                    some => some,
                };
                let all = (best.variants.iter())
                    .flat_map(|variant| points.iter().map(move |point| (variant, point)))
                    .map(|(variant, point)| {
                        let observed = found(run, variant, point)?;
                        let keeps = best
                            .keeping
                            .as_ref()
                            .map_or(Ok(true), |one| one.met_by(observed))?;
                        let value = self.one_side(run, variant, point, choice)?;
                        Ok(keeps.then_some(value))
                    });
                let all = all.collect::<Result<Vec<Option<f64>>, String>>()?;
                let best = all.into_iter().flatten().reduce(best.better);
                best.ok_or("it is compared with the best of none")?
            }
        };
        if side.less {
            return finite(above - below, "the difference");
        }
        if above.is_infinite() {
            return Ok(above); // It never happened, whatever it is compared with.
        }
        if below == 0.0 {
            return Err("what it is compared with is zero".into());
        }
        finite(above / below, "the ratio")
    }

    fn one_side<'a>(
        &self,
        run: &dyn Fn(&str, &str) -> Option<&'a Observed>,
        variant: &str,
        point: &str,
        choice: &Choice,
    ) -> Measured {
        let measured = self.measured(run, variant, point, choice)?;
        let Some(per) = &self.per else {
            return Ok(measured);
        };
        match figure::value(found(run, variant, point)?, per)? {
            0.0 => Err("what it is divided by is zero".into()),
            per => finite(measured / per, "the ratio"),
        }
    }

    fn measured<'a>(
        &self,
        run: &dyn Fn(&str, &str) -> Option<&'a Observed>,
        variant: &str,
        point: &str,
        choice: &Choice,
    ) -> Measured {
        let find = |point: &str| found(run, variant, point);
        let observed = find(point)?;
        match self.measure {
            Measure::Value => figure::value(observed, choice),
            Measure::Share => fair::share(observed, choice),
            Measure::Mmr => fair::mmr(observed, choice),
            Measure::MmrOfGroups => fair::mmr_of_groups(observed, choice),
            Measure::Spread => fair::spread(observed, choice),
            Measure::LeastMmr => window::least_mmr(observed, choice, self.stretch),
            Measure::LeastRate => window::least_rate(observed, choice, self.stretch),
            Measure::Deviation => window::deviation(observed, choice, self.stretch),
            Measure::Settle => window::settle_s(observed, choice, self.stretch, self.level),
            Measure::SettleRate => {
                window::settle_rate_s(observed, choice, self.stretch, self.level)
            }
            Measure::SettleNear => {
                window::settle_near_s(observed, choice, self.stretch, self.level)
            }
            Measure::Drf => {
                let alone: Result<Vec<_>, String> = self
                    .alone
                    .iter()
                    .map(|(group, point)| Ok((group.as_str(), find(point)?)))
                    .collect();
                fair::drf(observed, &alone?)
            }
        }
    }
}

/// A run by variant and point.
fn found<'a>(
    run: &dyn Fn(&str, &str) -> Option<&'a Observed>,
    variant: &str,
    point: &str,
) -> Result<&'a Observed, String> {
    run(variant, point).ok_or_else(|| format!("there is no run of {variant}/{point}"))
}

impl Keeping {
    fn met_by(&self, run: &Observed) -> Result<bool, String> {
        let choice = Choice {
            tenants: self.tenants.clone(),
            figure: Figure::Kept,
            combine: Some(Combine::Lowest),
            ..Choice::default()
        };
        Ok(figure::value(run, &choice)? >= self.least)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::made;

    fn choice(tenants: &str, figure: Figure) -> Choice {
        Choice {
            tenants: vec![tenants.into()],
            figure,
            ..Choice::default()
        }
    }

    #[test]
    fn a_figure_per_another_is_so_on_both_sides() {
        // `made` gives a tenant of rate r a p99 of r / 10 ms.
        let here = made::rates(&[("web", 1.0, 100.0), ("bulk", 1.0, 50.0)]);
        let there = made::rates(&[("web", 1.0, 400.0), ("bulk", 1.0, 100.0)]);
        let run = |variant: &str, _: &str| Some(if variant == "here" { &here } else { &there });
        let mut query = Query {
            measure: Measure::Value,
            choice: choice("bulk", Figure::Rate),
            per: Some(choice("web", Figure::P99)),
            against: None,
            stretch: Stretch::default(),
            level: 0.0,
            alone: Vec::new(),
        };
        assert_eq!(query.answer(&run, "here", ""), Ok(5.0));
        assert!(query.is_a_time() && query.asks_for(Figure::P99));
        query.against = Some(Side {
            variant: Some("there".into()),
            ..Side::default()
        });
        assert_eq!(query.answer(&run, "here", ""), Ok(2.0));
        query.per = Some(choice("web", Figure::Failed));
        assert!(query.answer(&run, "here", "").is_err(), "by zero");
    }
}
