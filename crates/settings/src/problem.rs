//! What is wrong with a configuration: everything, at once, each with its place.

use std::fmt;
use std::ops::Range;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// The configuration cannot be used.
    Error,
    /// It can, but something in it does not do what one might think.
    Warning,
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// How bad it is.
    pub severity: Severity,
    /// Line and column in the file, from 1; none for what was said on the command line or nowhere.
    pub place: Option<(usize, usize)>,
    /// The key, readable: `tenant "web", limit.requests`.
    pub key: String,
    /// What is wrong.
    pub what: String,
    /// What would be allowed.
    pub allowed: Option<String>,
    /// What to do.
    pub advice: Option<String>,
}

/// All problems of a configuration, and the text they are in.
#[derive(Debug)]
pub struct Report {
    file: String,
    /// Byte offset at which each line starts.
    lines: Vec<usize>,
    text: String,
    /// The text is one that nobody wrote, so that places in it mean nothing.
    placeless: bool,
    problems: Vec<Problem>,
}

impl Report {
    /// An empty report on a file's text; `file` is what the problems call it.
    pub fn new(file: &str, text: &str) -> Self {
        let starts = text
            .bytes()
            .enumerate()
            .filter(|(_, b)| *b == b'\n')
            .map(|(at, _)| at + 1);
        let lines = std::iter::once(0).chain(starts).collect();
        Self {
            file: file.to_string(),
            lines,
            text: text.to_string(),
            placeless: false,
            problems: Vec::new(),
        }
    }

    /// The same for a text that nobody wrote: problems are named by their keys alone.
    pub fn placeless(name: &str, text: &str) -> Self {
        Self {
            placeless: true,
            ..Self::new(name, text)
        }
    }

    /// Line and column (in characters) of a byte offset, from 1.
    pub fn place(&self, offset: usize) -> (usize, usize) {
        let line = self.lines.partition_point(|start| *start <= offset);
        let start = self.lines[line - 1];
        let column = self
            .text
            .get(start..offset)
            .map_or(0, |before| before.chars().count());
        (line, column + 1)
    }

    /// Adds an error; its allowed values and advice may follow on what is returned.
    pub fn error(
        &mut self,
        span: Option<Range<usize>>,
        key: &str,
        what: impl Into<String>,
    ) -> &mut Problem {
        self.add(Severity::Error, span, key, what.into())
    }

    /// Adds a warning.
    pub fn warn(
        &mut self,
        span: Option<Range<usize>>,
        key: &str,
        what: impl Into<String>,
    ) -> &mut Problem {
        self.add(Severity::Warning, span, key, what.into())
    }

    fn add(
        &mut self,
        severity: Severity,
        span: Option<Range<usize>>,
        key: &str,
        what: String,
    ) -> &mut Problem {
        let place = span.map(|span| self.place(span.start));
        // A value that several parts take over is wrong once.
        let last = |key: &str| key.rsplit(['.', ' ']).next().map(str::to_string);
        let alike = |other: &Problem| {
            place.is_some()
                && other.place == place
                && other.what == what
                && last(&other.key) == last(key)
        };
        if let Some(known) = self.problems.iter().position(alike) {
            return &mut self.problems[known];
        }
        let problem = Problem {
            severity,
            place,
            key: key.into(),
            what,
            allowed: None,
            advice: None,
        };
        self.problems.push(problem);
        let last = self.problems.len() - 1;
        &mut self.problems[last]
    }

    /// True when there is an error, so that the configuration cannot be used.
    pub fn failed(&self) -> bool {
        self.count(Severity::Error) > 0
    }

    /// How many problems of that severity there are.
    pub fn count(&self, severity: Severity) -> usize {
        self.problems
            .iter()
            .filter(|problem| problem.severity == severity)
            .count()
    }

    /// The problems in the order of the file.
    pub fn problems(&self) -> Vec<&Problem> {
        let mut sorted: Vec<&Problem> = self.problems.iter().collect();
        sorted.sort_by_key(|problem| problem.place.unwrap_or((usize::MAX, 0)));
        sorted
    }

    /// "2 errors, 1 warning".
    pub fn summary(&self) -> String {
        let counted = |count: usize, noun: &str| match count {
            0 => None,
            1 => Some(format!("1 {noun}")),
            n => Some(format!("{n} {noun}s")),
        };
        let errors = counted(self.count(Severity::Error), "error");
        let warnings = counted(self.count(Severity::Warning), "warning");
        let parts: Vec<String> = errors.into_iter().chain(warnings).collect();
        if parts.is_empty() {
            "no problems".into()
        } else {
            parts.join(", ")
        }
    }
}

impl Problem {
    /// Says what would be allowed.
    pub fn allowed(&mut self, allowed: impl Into<String>) -> &mut Self {
        self.allowed = Some(allowed.into());
        self
    }

    /// Says what to do.
    pub fn advice(&mut self, advice: impl Into<String>) -> &mut Self {
        self.advice = Some(advice.into());
        self
    }
}

/// One problem after another, without a summary.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for problem in self.problems() {
            match problem.place {
                Some((line, column)) if !self.placeless => {
                    write!(f, "{}:{line}:{column}: ", self.file)?
                }
                _ => write!(f, "{}: ", self.file)?,
            }
            f.write_str(match problem.severity {
                Severity::Error => "error: ",
                Severity::Warning => "warning: ",
            })?;
            if !problem.key.is_empty() {
                write!(f, "{}: ", problem.key)?;
            }
            writeln!(f, "{}", problem.what)?;
            if let Some(allowed) = &problem.allowed {
                writeln!(f, "    allowed: {allowed}")?;
            }
            if let Some(advice) = &problem.advice {
                writeln!(f, "    do: {advice}")?;
            }
        }
        Ok(())
    }
}

impl std::error::Error for Report {}
