//! Yardsticks: figures of first runs that later ones are told.

use serde_json::{json, Value};
use toml::Table;

use super::make::Asked;
use super::Runner;
use crate::error::ExperimentError;
use crate::machine::{Disturbance, Disturbances};
use crate::measure::figure::{self, Choice};
use crate::observed::Observed;
use crate::pace;
use crate::plan;
use crate::spec::merge::lay_over;
use crate::spec::{Reading, Yardstick};

/// What a yardstick has said.
pub(super) enum Said {
    /// The same to all that are told.
    All(toml::Value),
    /// To each point its `x` times of this, with a unit.
    TimesX(f64, String),
}

impl Said {
    /// To a point that lies there; none: it is not told.
    fn at(&self, x: Option<f64>) -> Option<toml::Value> {
        match self {
            Self::All(value) => Some(value.clone()),
            Self::TimesX(value, unit) => x.map(|x| with_unit(value * x, unit)),
        }
    }
}

fn with_unit(value: f64, unit: &str) -> toml::Value {
    toml::Value::String(format!("{value:.0}{unit}"))
}

impl Runner<'_> {
    /// What yardsticks said to a point that lies there, as a scenario has it.
    pub(super) fn told_at(&self, x: Option<f64>) -> Table {
        let mut all = Table::new();
        for (sets, said) in &self.told {
            let Some(mut inner) = said.at(x) else {
                continue;
            };
            for key in sets.rsplit('.') {
                inner = toml::Value::Table(Table::from_iter([(key.to_string(), inner)]));
            }
            if let toml::Value::Table(table) = inner {
                lay_over(&mut all, &table);
            }
        }
        all
    }

    /// Measures yardsticks, in order: all of them before the first repeat, then those that each
    /// repeat has of its own. A later one's run has what the earlier ones told.
    pub(super) fn yardsticks(
        &mut self,
        repeat: usize,
        disturbances: &mut Disturbances,
    ) -> Result<Vec<(String, Value)>, ExperimentError> {
        let (mut said, mut ran) = (Vec::new(), Vec::new());
        let experiment = self.experiment;
        let due = |yardstick: &&Yardstick| repeat == 0 || yardstick.each;
        for yardstick in experiment.yardsticks.iter().filter(due) {
            let told = self.yardstick(yardstick, repeat, &mut ran)?;
            said.push((yardstick.sets.clone(), json!(told.at(Some(1.0)))));
            self.told.insert(yardstick.sets.clone(), told);
        }
        // What is measured anew takes the place of what was disturbed.
        if experiment.yardsticks.iter().all(|yardstick| yardstick.each) {
            self.told_in = Disturbance::default();
        }
        for (_, observed) in &ran {
            let found = observed.disturbance();
            disturbances.add(observed.tried, found);
            self.told_in = self.told_in.worse(found);
        }
        Ok(said)
    }

    /// `ran` has the runs of this round: figures of one variant and point are of one run, so that
    /// they go together.
    fn yardstick(
        &self,
        yardstick: &Yardstick,
        repeat: usize,
        ran: &mut Vec<(String, Observed)>,
    ) -> Result<Said, ExperimentError> {
        let label = format!("the yardstick for {}", yardstick.sets);
        let missing = |why: String| ExperimentError::Verdict {
            target: label.clone(),
            why,
        };
        let variant = self.experiment.variant(&yardstick.variant);
        let point = self.experiment.point(&yardstick.point);
        let (Some(variant), Some(point)) = (variant, point) else {
            return Err(missing("its variant or point is missing".into()));
        };
        let place = plan::place(&variant.name, &point.name);
        let known = ran.iter().position(|(other, _)| *other == place);
        let at = match known {
            Some(at) => at,
            None => {
                let label = format!("{label}, repeat {}", repeat + 1);
                let asked = Asked {
                    variant,
                    point,
                    repeat: 0,
                    label: &label,
                };
                ran.push((place, self.one(&asked)?));
                ran.len() - 1
            }
        };
        let observed = &ran[at].1;
        match &yardstick.reading {
            Reading::Pace if observed.pace.windows().is_empty() => Err(missing(
                "its run has no pace: only one that a server answers has".into(),
            )),
            Reading::Pace => Ok(Said::All(pace::faults(&observed.pace))),
            Reading::Figure(figure, unit) => {
                let choice = Choice {
                    figure: *figure,
                    ..Choice::default()
                };
                let value = figure::value(observed, &choice).map_err(missing)?;
                Ok(match yardstick.times_x {
                    false => Said::All(with_unit(value, unit)),
                    true => Said::TimesX(value, unit.clone()),
                })
            }
        }
    }
}
