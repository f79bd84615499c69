//! Asks the server, before anything runs, what it thinks of a configuration.

use std::path::Path;
use std::process::{Command, Stdio};

use toml::Table;

use super::config;
use crate::error::ExperimentError;

/// What the server says of a setting that it knows but cannot act on yet.
const IDLE: &str = "has no effect";

/// What `entremet check` had to say.
#[derive(Debug, PartialEq)]
pub enum Answer {
    /// It can be used; settings that have no effect in this version, if any.
    Good(Vec<String>),
    /// It cannot; the whole text.
    Bad(String),
}

/// Runs `entremet check` on a configuration.
///
/// # Errors
/// [`ExperimentError::System`], [`ExperimentError::Output`].
pub fn ask(binary: &Path, wanted: &Table) -> Result<Answer, ExperimentError> {
    let folder = super::folder()?;
    let path = folder.path().join("entremet.toml");
    let any = config::ANY_PORT;
    let placed = config::place(wanted, any, any, 1, folder.path());
    std::fs::write(&path, placed.to_string()).map_err(|source| ExperimentError::Output {
        path: path.clone(),
        source,
    })?;
    let output = Command::new(binary)
        .arg("check")
        .arg(&path)
        .stdin(Stdio::null())
        .output()
        .map_err(|source| ExperimentError::System {
            what: "asking the server to check its configuration",
            source,
        })?;
    let told = String::from_utf8_lossy(&output.stderr);
    // The path is a temporary folder's: whoever reads this never sees the file.
    let told = told.replace(&format!("{}:", path.display()), "entremet.toml:");
    if !output.status.success() {
        return Ok(Answer::Bad(told.trim_end().to_string()));
    }
    let idle = told.lines().filter(|line| line.contains(IDLE));
    Ok(Answer::Good(idle.map(String::from).collect()))
}
