//! An experiment as its folder says it: `experiment.toml` (docs/reference/experiment.md).

mod check;
mod like;
pub mod merge;
mod query;
mod read;

use std::path::{Path, PathBuf};

use settings::table::Problems;
use toml::Table;

pub use query::{Measure, Query, Side};

use crate::error::ExperimentError;
use crate::measure::figure::Figure;
use crate::program;

/// The file in an experiment's folder.
pub const FILE: &str = "experiment.toml";

/// A published result, and how it is shown here.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// Its folder's name.
    pub name: String,
    /// Its folder.
    pub folder: PathBuf,
    /// The file, as it is written.
    pub text: String,
    /// One line.
    pub title: String,
    /// Paper, section, figure.
    pub source: String,
    /// What is shown.
    pub shows: String,
    /// What the paper printed.
    pub paper: String,
    /// What was learnt by running it, a paragraph each.
    pub learnt: Vec<String>,
    /// Runs of each variant at each point.
    pub repeats: usize,
    /// The short form.
    pub quick: Quick,
    /// Which processors run what.
    pub pin: Pin,
    /// The scenario that variants and points are laid over.
    pub base: Table,
    /// What is compared, in the order in which it is drawn.
    pub variants: Vec<Variant>,
    /// Where it is compared; one nameless point where the file has none.
    pub points: Vec<Point>,
    /// What changes during every run, in the order of time.
    pub changes: Vec<Change>,
    /// Figures of a first run that later runs are configured with.
    pub yardsticks: Vec<Yardstick>,
    /// What must be met.
    pub verdicts: Vec<Verdict>,
    /// What is drawn.
    pub plots: Vec<Plot>,
}

/// Other settings of the server from some time of a run on.
#[derive(Clone, Debug)]
pub struct Change {
    /// When, seconds from the end of the warm-up.
    pub at_s: f64,
    /// Laid over the run's scenario; of it, what a reload of the configuration changes counts.
    pub scenario: Table,
    /// In runs of these variants only; `None` all.
    pub variants: Option<Vec<String>>,
}

/// The short form: a few seconds.
#[derive(Clone, Debug, Default)]
pub struct Quick {
    /// Laid over every scenario last.
    pub scenario: Table,
    /// Points that are run; `None` all.
    pub points: Option<Vec<String>>,
}

/// Processors, numbered from 0; those that a machine does not have are left out.
#[derive(Clone, Debug, PartialEq)]
pub struct Pin {
    /// Of the server; one data path thread on each.
    pub server: Vec<usize>,
    /// Of the load; none means the last one.
    pub load: Vec<usize>,
}

/// One side of the comparison.
#[derive(Clone, Debug)]
pub struct Variant {
    /// Its name.
    pub name: String,
    /// What it is, in words.
    pub about: String,
    /// Laid over the point's scenario.
    pub scenario: Table,
    /// It is run at these points only; `None` all.
    pub points: Option<Vec<String>>,
    /// It is run in this many repeats at most; `None` all.
    pub repeats: Option<usize>,
}

impl Variant {
    /// Whether it is run at a point.
    pub fn runs_at(&self, point: &str) -> bool {
        let chosen = self.points.as_ref();
        chosen.is_none_or(|chosen| chosen.iter().any(|name| name == point))
    }
}

/// One place of a sweep.
#[derive(Clone, Debug)]
pub struct Point {
    /// Its name; empty for the only one.
    pub name: String,
    /// What it is, in words.
    pub about: String,
    /// Where it lies on a curve.
    pub x: Option<f64>,
    /// Laid over the base scenario.
    pub scenario: Table,
    /// Why it cannot be run yet.
    pub later: Option<String>,
}

/// What is measured before the repeats and told to the runs that come after.
#[derive(Clone, Debug)]
pub struct Yardstick {
    /// Key of the scenario that it sets, dotted.
    pub sets: String,
    /// Measured anew before every repeat: machines drift.
    pub each: bool,
    /// Each point is told its `x` times of it; those without one are not told.
    pub times_x: bool,
    /// The variant whose run is measured.
    pub variant: String,
    /// Its point.
    pub point: String,
    /// What of that run it reads.
    pub reading: Reading,
}

/// What a yardstick reads off the run that it looks at.
#[derive(Clone, Debug)]
pub enum Reading {
    /// A figure, of all tenants together, with a unit appended to the number.
    Figure(Figure, String),
    /// How fast the server was from moment to moment, as the simulator's scenarios have it.
    Pace,
}

/// What must be met.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// The target in words.
    pub target: String,
    /// The variant that must meet it.
    pub variant: String,
    /// Where; one verdict for each.
    pub points: Vec<String>,
    /// How it is measured.
    pub query: Query,
    /// What must be reached; `None` is shown without being judged.
    pub bound: Option<Bound>,
    /// The variant in which what is claimed is switched off. There the bound must be missed, or
    /// meeting it shows nothing.
    pub off: Option<String>,
    /// Why there is no such variant; empty where there is one, or where nobody said.
    pub no_off: String,
    /// For what is guaranteed: every repeat must meet the bound, not the median.
    pub worst: bool,
    /// What the paper printed for it.
    pub paper: String,
    /// Whether a short run can tell.
    pub quick: bool,
}

/// What a measured value must reach.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bound {
    /// At least this much.
    AtLeast(f64),
    /// At most this much.
    AtMost(f64),
}

impl Bound {
    /// Reads `>= 0.99` or `<= 1.2`.
    pub fn parse(text: &str) -> Option<Self> {
        let number = |text: &str| text.trim().parse::<f64>().ok().filter(|n| n.is_finite());
        match text.split_at_checked(2)? {
            (">=", rest) => number(rest).map(Self::AtLeast),
            ("<=", rest) => number(rest).map(Self::AtMost),
            _ => None,
        }
    }

    /// The value that is farthest from meeting it.
    pub fn worst(self, values: &[f64]) -> Option<f64> {
        let worse = match self {
            Self::AtLeast(_) => f64::min,
            Self::AtMost(_) => f64::max,
        };
        values.iter().copied().reduce(worse)
    }

    /// Whether a value meets it. Not a number meets nothing.
    pub fn met_by(self, value: f64) -> bool {
        match self {
            Self::AtLeast(bound) => value >= bound,
            Self::AtMost(bound) => value <= bound,
        }
    }

    /// The number.
    pub fn value(self) -> f64 {
        let (Self::AtLeast(value) | Self::AtMost(value)) = self;
        value
    }
}

impl std::fmt::Display for Bound {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::AtLeast(bound) => write!(f, ">= {bound}"),
            Self::AtMost(bound) => write!(f, "<= {bound}"),
        }
    }
}

/// A picture.
#[derive(Clone, Debug)]
pub struct Plot {
    /// Its heading.
    pub title: String,
    /// What kind of picture.
    pub kind: PlotKind,
    /// Variants drawn.
    pub variants: Vec<String>,
    /// Points drawn, in order.
    pub points: Vec<String>,
    /// Name and unit of the horizontal axis.
    pub x: (String, String),
    /// Name and unit of the vertical axis.
    pub y: (String, String),
    /// Whether the vertical axis is logarithmic.
    pub y_log: bool,
    /// A line that shows what must be reached.
    pub target: Option<Bound>,
}

/// What kind of picture.
#[derive(Clone, Debug)]
pub enum PlotKind {
    /// A bar for each variant at each point: a measure.
    Bars(Box<Query>),
    /// A bar for each variant and tenant, at one point: a figure.
    Tenants(Figure),
    /// A line for each variant over the points' `x`, or over a measure of each point.
    Curve {
        /// Vertical.
        y: Box<Query>,
        /// Horizontal; `None`: the points' `x`.
        x: Option<Box<Query>>,
    },
    /// A picture for each variant: figures of tenants, second by second, at one point.
    Time(Vec<Figure>),
}

impl Experiment {
    /// Reads a folder's [`FILE`] and checks all of it.
    ///
    /// # Errors
    /// [`ExperimentError::Unreadable`], or [`ExperimentError::Spec`] with everything that is wrong.
    pub fn read(folder: &Path) -> Result<Self, ExperimentError> {
        let path = folder.join(FILE);
        let text =
            std::fs::read_to_string(&path).map_err(|source| ExperimentError::Unreadable {
                path: path.clone(),
                source,
            })?;
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        let problems = Problems::default();
        let read = read::experiment(&name, folder, &text, &problems);
        if let Some(experiment) = &read {
            check::check(experiment, &problems);
        }
        let problems = problems.list();
        match read {
            Some(experiment) if problems.is_empty() => Ok(experiment),
            _ => Err(ExperimentError::Spec { path, problems }),
        }
    }

    /// Whether a verdict or a picture shows this figure.
    pub fn asks_for(&self, figure: Figure) -> bool {
        let verdicts = self.verdicts.iter().map(|verdict| &verdict.query);
        let drawn = |plot: &Plot| match &plot.kind {
            PlotKind::Bars(query) => query.asks_for(figure),
            PlotKind::Tenants(shown) => *shown == figure,
            PlotKind::Curve { y, x } => {
                y.asks_for(figure) || x.as_ref().is_some_and(|x| x.asks_for(figure))
            }
            PlotKind::Time(shown) => shown.contains(&figure),
        };
        verdicts.into_iter().any(|query| query.asks_for(figure)) || self.plots.iter().any(drawn)
    }

    /// What changes during runs of a variant, in the order of time.
    pub fn changes_of<'a>(&'a self, variant: &'a str) -> impl Iterator<Item = &'a Change> {
        let of = move |change: &&Change| {
            let chosen = change.variants.as_ref();
            chosen.is_none_or(|chosen| chosen.iter().any(|name| name == variant))
        };
        self.changes.iter().filter(of)
    }

    /// A point by its name.
    pub fn point(&self, name: &str) -> Option<&Point> {
        self.points.iter().find(|point| point.name == name)
    }

    /// A variant by its name.
    pub fn variant(&self, name: &str) -> Option<&Variant> {
        self.variants.iter().find(|variant| variant.name == name)
    }

    /// The scenario of a variant at a point: the base, the point, the variant, and with `quick` the
    /// short form, each laid over what came before.
    pub fn scenario(&self, variant: &Variant, point: &Point, quick: bool) -> Table {
        let mut table = self.base.clone();
        merge::lay_over(&mut table, &point.scenario);
        merge::lay_over(&mut table, &variant.scenario);
        if quick {
            merge::lay_over(&mut table, &self.quick.scenario);
        }
        table
    }

    /// Has its runs use the disk that a profile describes, in the place of an emulated one. False
    /// if it emulates none.
    pub fn on_disk(&mut self, profile: &Path) -> bool {
        let profile = toml::Value::from(&*profile.to_string_lossy());
        if let Some(device) = self.emulated_device() {
            device.remove("model");
            device.insert("profile".into(), profile);
            return true;
        }
        let shares = program::shares_a_device(&self.base);
        if shares {
            self.base.insert("profile".into(), profile);
        }
        shares
    }

    fn emulated_device(&mut self) -> Option<&mut Table> {
        let server = self.base.get_mut("server")?.as_table_mut()?;
        let device = server.get_mut("device")?.as_table_mut()?;
        device.contains_key("model").then_some(device)
    }

    /// Repeats, and points that are run, in the full or the short form.
    pub fn extent(&self, quick: bool) -> (usize, Vec<&Point>) {
        let runs = |point: &&Point| {
            let chosen = self.quick.points.as_ref().filter(|_| quick);
            point.later.is_none() && chosen.is_none_or(|chosen| chosen.contains(&point.name))
        };
        let repeats = if quick { 1 } else { self.repeats };
        (repeats, self.points.iter().filter(runs).collect())
    }
}

#[cfg(test)]
mod tests;
#[cfg(test)]
pub(crate) use tests::made;
