//! What was measured, and what it answers, repeat by repeat.

use std::cell::Cell;
use std::collections::BTreeMap;

use crate::measure::figure::Figure;
use crate::observed::Observed;
use crate::spec::Query;

/// What was measured, by repeat, variant and point.
#[derive(Debug, Default)]
pub struct Runs(pub(super) BTreeMap<(usize, String, String), Observed>);

impl Runs {
    /// Keeps a run.
    pub fn add(&mut self, repeat: usize, variant: &str, point: &str, run: Observed) {
        self.0.insert((repeat, variant.into(), point.into()), run);
    }

    /// The runs of one variant at one point, by repeat.
    pub fn of<'a>(
        &'a self,
        variant: &'a str,
        point: &'a str,
    ) -> impl Iterator<Item = &'a Observed> {
        let is = move |key: &(usize, String, String)| key.1 == variant && key.2 == point;
        let found = self.0.iter().filter(move |(key, _)| is(key));
        found.map(|(_, run)| run)
    }

    /// All of them: repeat, variant, point, and what was observed.
    pub fn all(&self) -> impl Iterator<Item = (usize, &str, &str, &Observed)> {
        let runs = self.0.iter();
        runs.map(|((repeat, variant, point), run)| (*repeat, variant.as_str(), point.as_str(), run))
    }

    /// One answer for each repeat of a run.
    ///
    /// # Errors
    /// Why there is none for one of them; that there is no run at all is a reason too.
    pub fn samples(&self, query: &Query, variant: &str, point: &str) -> Result<Vec<f64>, String> {
        let answers = self.answers(query, variant, point, false)?;
        Ok(answers.into_iter().map(|answer| answer.value).collect())
    }

    /// `partial`: a repeat that lacks a run says nothing, in the place of failing all.
    pub(super) fn answers(
        &self,
        query: &Query,
        variant: &str,
        point: &str,
        partial: bool,
    ) -> Result<Vec<Answer>, String> {
        let repeats = self
            .0
            .keys()
            .filter(|key| key.1 == variant && key.2 == point);
        let answers = repeats
            .map(|(repeat, ..)| {
                let disturbed = Cell::new(false);
                let find = |variant: &str, point: &str| {
                    let key = (*repeat, variant.to_string(), point.to_string());
                    let run = self.0.get(&key);
                    disturbed.set(disturbed.get() || run.is_some_and(Observed::disturbed));
                    run
                };
                let value = query
                    .answer(&find, variant, point)
                    .map_err(|why| format!("repeat {}: {why}", repeat + 1))?;
                // A request that fails does so whatever a host does, and a zero is one.
                let disturbed = disturbed.get() && !query.asks_for(Figure::Failed);
                Ok(Answer { value, disturbed })
            })
            .filter(|answer| !partial || answer.is_ok())
            .collect::<Result<Vec<_>, String>>()?;
        if answers.is_empty() {
            let place = crate::plan::place(variant, point);
            return Err(format!("there is no run of {place}"));
        }
        Ok(answers)
    }
}

/// What one repeat says.
pub(super) struct Answer {
    pub value: f64,
    /// One of the runs that it rests on was disturbed.
    pub disturbed: bool,
}
