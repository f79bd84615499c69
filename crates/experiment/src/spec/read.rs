//! From the text of `experiment.toml` to an [`Experiment`], noting every problem on the way.

use std::path::Path;

use settings::table::{Fields, Problems};
use toml::Table;

use super::like;
use super::query::{BestOf, Better, Keeping, Measure, Query, Side};
use super::{
    Bound, Change, Experiment, Pin, Plot, PlotKind, Point, Quick, Reading, Variant, Verdict,
    Yardstick,
};
use crate::measure::figure::{Choice, Combine, Figure};
use crate::measure::window::Stretch;

/// Repeats where the file does not say: with fewer, medians and spread mean little.
const REPEATS: usize = 5;

/// Reads; `None` when the text is no TOML at all.
pub fn experiment(
    name: &str,
    folder: &Path,
    text: &str,
    problems: &Problems,
) -> Option<Experiment> {
    let table: Table = match text.parse() {
        Ok(table) => table,
        Err(error) => {
            problems.add("", error.to_string());
            return None;
        }
    };
    let root = Fields::new(&table, "", problems);
    let variants: Vec<Variant> = root.list("variant", "name").iter().map(variant).collect();
    let mut points: Vec<Point> = root.list("point", "name").iter().map(point).collect();
    if points.is_empty() {
        points.push(nameless());
    }
    let known = Known {
        variants: variants
            .iter()
            .map(|variant| variant.name.clone())
            .collect(),
        points: points.iter().map(|point| point.name.clone()).collect(),
    };
    let verdicts = root.list("verdict", "target");
    let plots = root.list("plot", "title");
    let yardsticks = root.list("yardstick", "sets");
    let mut changes: Vec<Change> = root.list("change", "at").iter().map(change).collect();
    changes.sort_by(|one, other| one.at_s.total_cmp(&other.at_s));
    let read = Experiment {
        name: name.into(),
        folder: folder.into(),
        text: text.into(),
        title: root.required_text("title"),
        source: root.required_text("source"),
        shows: root.required_text("shows"),
        paper: root.required_text("paper"),
        learnt: root.texts("learnt").unwrap_or_default(),
        repeats: root.count("repeats").unwrap_or(REPEATS),
        quick: quick(&root),
        pin: pin(&root),
        base: like::base(&root, folder),
        changes,
        yardsticks: yardsticks.iter().map(yardstick).collect(),
        verdicts: verdicts.iter().map(|one| verdict(one, &known)).collect(),
        plots: plots.iter().filter_map(|one| plot(one, &known)).collect(),
        variants,
        points,
    };
    if read.base.is_empty() {
        root.wrong("scenario", "is missing");
    }
    root.finish();
    Some(read)
}

/// Names that verdicts and plots may use.
struct Known {
    variants: Vec<String>,
    points: Vec<String>,
}

fn nameless() -> Point {
    Point {
        name: String::new(),
        about: String::new(),
        x: None,
        scenario: Table::new(),
        later: None,
    }
}

fn quick(root: &Fields) -> Quick {
    let Some(reader) = root.inner("quick") else {
        root.wrong("quick", "is missing: say how it is run in a few seconds");
        return Quick::default();
    };
    let quick = Quick {
        scenario: reader.table("scenario").cloned().unwrap_or_default(),
        points: reader.texts("points"),
    };
    reader.finish();
    quick
}

fn pin(root: &Fields) -> Pin {
    let usual = Pin {
        server: vec![0],
        load: Vec::new(),
    };
    let Some(reader) = root.inner("pin") else {
        return usual;
    };
    let pin = Pin {
        server: reader.indices("server").unwrap_or(usual.server),
        load: reader.indices("load").unwrap_or(usual.load),
    };
    if pin.server.is_empty() {
        reader.wrong("server", "names no processor");
    }
    reader.finish();
    pin
}

fn variant(reader: &Fields) -> Variant {
    let variant = Variant {
        name: reader.required_text("name"),
        about: reader.text("about").unwrap_or_default(),
        scenario: reader.table("scenario").cloned().unwrap_or_default(),
        points: reader.texts("points"),
        repeats: reader.count("repeats"),
    };
    reader.finish();
    variant
}

fn change(reader: &Fields) -> Change {
    let change = Change {
        at_s: reader.seconds("at").unwrap_or_default(),
        scenario: reader.table("scenario").cloned().unwrap_or_default(),
        variants: reader.texts("variants"),
    };
    reader.finish();
    change
}

fn point(reader: &Fields) -> Point {
    let point = Point {
        name: reader.required_text("name"),
        about: reader.text("about").unwrap_or_default(),
        x: reader.number("x"),
        scenario: reader.table("scenario").cloned().unwrap_or_default(),
        later: reader.text("later"),
    };
    reader.finish();
    point
}

fn yardstick(reader: &Fields) -> Yardstick {
    let yardstick = Yardstick {
        sets: reader.required_text("sets"),
        each: reader.flag("each").unwrap_or(false),
        times_x: reader.flag("times_x").unwrap_or(false),
        variant: reader.required_text("variant"),
        point: reader.text("point").unwrap_or_default(),
        reading: match reader.flag("pace") {
            Some(true) => Reading::Pace,
            _ => Reading::Figure(
                figure(reader, "figure").unwrap_or_default(),
                reader.text("unit").unwrap_or_default(),
            ),
        },
    };
    reader.finish();
    yardstick
}

/// Looks a word up in a table of words.
fn word<T: Copy>(
    reader: &Fields,
    key: &'static str,
    words: impl Iterator<Item = (&'static str, T)> + Clone,
) -> Option<T> {
    let text = reader.text(key)?;
    let found = words.clone().find(|(word, _)| *word == text);
    if found.is_none() {
        let known: Vec<&str> = words.map(|(word, _)| word).collect();
        reader.wrong(key, format!("{text:?} is none of {}", known.join(", ")));
    }
    found.map(|(_, value)| value)
}

fn figure(reader: &Fields, key: &'static str) -> Option<Figure> {
    let words = Figure::WORDS.iter();
    word(reader, key, words.map(|(word, figure, _)| (*word, *figure)))
}

/// One figure or several; rates where nothing is said.
fn figures(reader: &Fields) -> Vec<Figure> {
    let key = "figure";
    let Some(names) = reader.texts(key) else {
        return vec![Figure::Rate];
    };
    let named = |name: &String| {
        let found = Figure::WORDS.iter().find(|(word, ..)| word == name);
        if found.is_none() {
            reader.wrong(key, format!("{name:?} is no figure"));
        }
        found.map(|(_, figure, _)| *figure)
    };
    names.iter().filter_map(named).collect()
}

/// Tenants, class, figure and combination; those of `usual` where not given.
fn choice(reader: &Fields, usual: &Choice) -> Choice {
    Choice {
        tenants: reader
            .texts("tenants")
            .unwrap_or_else(|| usual.tenants.clone()),
        class: reader.text("class").or_else(|| usual.class.clone()),
        figure: figure(reader, "figure").unwrap_or(usual.figure),
        combine: word(reader, "combine", Combine::WORDS.into_iter()).or(usual.combine),
    }
}

/// `lowest_of` or `highest_of`, with `points` and `keeping`.
fn best_of(reader: &Fields) -> Option<BestOf> {
    let points = reader.texts("points");
    let best = |key, better: Better| Some((key, reader.texts(key)?, better));
    let (lowest, highest) = (best("lowest_of", f64::min), best("highest_of", f64::max));
    if lowest.is_some() && highest.is_some() {
        reader.wrong("highest_of", "cannot stand beside `lowest_of`");
    }
    let keeping = reader.inner("keeping").map(|inner| {
        let keeping = Keeping {
            tenants: inner.texts("tenants").unwrap_or_default(),
            least: inner.number("least").unwrap_or(1.0),
        };
        inner.finish();
        keeping
    });
    let Some((key, variants, better)) = lowest.or(highest) else {
        for (key, given) in [("points", points.is_some()), ("keeping", keeping.is_some())] {
            if given {
                reader.wrong(key, "is for `lowest_of` or `highest_of`");
            }
        }
        return None;
    };
    if variants.is_empty() {
        reader.wrong(key, "names no variant");
    }
    Some(BestOf {
        variants,
        points: points.unwrap_or_default(),
        better,
        keeping,
    })
}

fn query(reader: &Fields) -> Query {
    let measure = word(reader, "measure", Measure::WORDS.into_iter());
    if !reader.has("measure") {
        reader.wrong("measure", "is missing");
    }
    let choice = choice(reader, &Choice::default());
    let per = reader.inner("per").map(|inner| {
        let per = self::choice(&inner, &Choice::default());
        inner.finish();
        per
    });
    let against = reader.inner("against").map(|inner| {
        let side = Side {
            variant: inner.text("variant"),
            point: inner.text("point"),
            choice: Some(self::choice(&inner, &choice)),
            best_of: best_of(&inner),
            less: inner.flag("less").unwrap_or(false),
        };
        inner.finish();
        side
    });
    let usual = Stretch::default();
    let stretch = Stretch {
        from_s: reader.seconds("from").unwrap_or(usual.from_s),
        to_s: reader.seconds("to").unwrap_or(usual.to_s),
        window_s: reader.seconds("window").unwrap_or(usual.window_s),
    };
    if stretch.window_s < 1.0 {
        reader.wrong("window", "is shorter than a second");
    }
    let level = reader.number("level");
    if measure.is_some_and(Measure::settles) && level.is_none() {
        reader.wrong(
            "level",
            "is missing: settled at what MMR, at what rate, or how near?",
        );
    }
    let alone = alone(reader);
    if measure == Some(Measure::Drf) && alone.is_empty() {
        let what = "is missing: which point has each group to itself?";
        reader.wrong("alone", what);
    }
    Query {
        measure: measure.unwrap_or(Measure::Value),
        choice,
        per,
        against,
        stretch,
        level: level.unwrap_or_default(),
        alone,
    }
}

fn alone(reader: &Fields) -> Vec<(String, String)> {
    let table = reader.table("alone").into_iter().flatten();
    table
        .filter_map(|(group, point)| {
            let Some(point) = point.as_str() else {
                reader.wrong("alone", format!("{group}: {point} is no point's name"));
                return None;
            };
            Some((group.clone(), point.to_string()))
        })
        .collect()
}

/// Points by name; `"*"` means every one, none the only one.
fn points(reader: &Fields, key: &'static str, known: &Known, usual: &[String]) -> Vec<String> {
    match reader.texts(key) {
        Some(names) if names == ["*"] => known.points.clone(),
        Some(names) => names,
        None => usual.to_vec(),
    }
}

fn verdict(reader: &Fields, known: &Known) -> Verdict {
    let points = points(reader, "point", known, &known.points[..1]);
    if !reader.has("point") && known.points.len() > 1 {
        reader.wrong(
            "point",
            "is missing: which of the points, or \"*\" for each?",
        );
    }
    let bound = reader.text("bound").and_then(|text| {
        let bound = Bound::parse(&text);
        if bound.is_none() {
            reader.wrong(
                "bound",
                format!("{text:?} is neither \">= 0.9\" nor \"<= 1.1\""),
            );
        }
        bound
    });
    let shown = reader.flag("shown").unwrap_or(false);
    if reader.has("bound") == shown {
        let what = "a verdict has either a bound, or shown = true and no bound";
        reader.wrong("bound", what);
    }
    let verdict = Verdict {
        target: reader.required_text("target"),
        variant: reader.required_text("variant"),
        points,
        query: query(reader),
        bound,
        off: reader.text("off"),
        no_off: reader.text("no_off").unwrap_or_default(),
        worst: reader.flag("worst").unwrap_or(false),
        paper: reader.text("paper").unwrap_or_default(),
        quick: reader.flag("quick").unwrap_or(true),
    };
    if verdict.off.is_some() && !verdict.no_off.is_empty() {
        reader.wrong("no_off", "cannot stand beside `off`");
    }
    if shown && (verdict.off.is_some() || verdict.worst) {
        reader.wrong("shown", "is not judged: it needs neither `off` nor `worst`");
    }
    reader.finish();
    verdict
}

/// The kinds of pictures, as their words.
const KINDS: [&str; 4] = ["bars", "tenants", "curve", "time"];

fn plot(reader: &Fields, known: &Known) -> Option<Plot> {
    let word = word(reader, "kind", KINDS.into_iter().map(|kind| (kind, kind)));
    let kind = match word {
        Some("bars") => PlotKind::Bars(Box::new(query(reader))),
        Some("tenants") => PlotKind::Tenants(figure(reader, "figure").unwrap_or_default()),
        Some("curve") => PlotKind::Curve {
            x: reader.inner("over").map(|over| {
                let x = Box::new(query(&over));
                over.finish();
                x
            }),
            y: Box::new(query(reader)),
        },
        Some(_) => PlotKind::Time(figures(reader)),
        None => {
            reader.wrong("kind", format!("must be one of {}", KINDS.join(", ")));
            return None;
        }
    };
    let axis = |name: &'static str, unit: &'static str| {
        (
            reader.text(name).unwrap_or_default(),
            reader.text(unit).unwrap_or_default(),
        )
    };
    let plot = Plot {
        title: reader.required_text("title"),
        kind,
        variants: reader
            .texts("variants")
            .unwrap_or_else(|| known.variants.clone()),
        points: points(reader, "points", known, &known.points),
        x: axis("x", "x_unit"),
        y: axis("y", "y_unit"),
        y_log: reader.flag("y_log").unwrap_or(false),
        target: reader.text("line").and_then(|text| {
            let bound = Bound::parse(&text);
            if bound.is_none() {
                reader.wrong("line", format!("{text:?} is no bound"));
            }
            bound
        }),
    };
    reader.finish();
    Some(plot)
}
