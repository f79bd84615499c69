//! Which experiments there are: every folder with an `experiment.toml` is one.

use std::path::{Path, PathBuf};

use crate::error::ExperimentError;
use crate::spec::{Experiment, FILE};

/// The names in a folder, sorted.
///
/// # Errors
/// [`ExperimentError::Unreadable`]; [`ExperimentError::Usage`] if there is none.
pub fn names(folder: &Path) -> Result<Vec<String>, ExperimentError> {
    let entries = std::fs::read_dir(folder).map_err(|source| {
        if source.kind() == std::io::ErrorKind::NotFound {
            ExperimentError::Usage(format!(
                "there is no folder {}; run it where the sources are, or say --experiments DIR",
                folder.display()
            ))
        } else {
            ExperimentError::Unreadable {
                path: folder.into(),
                source,
            }
        }
    })?;
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let mut names: Vec<String> = paths
        .filter(|path| path.join(FILE).is_file())
        .filter_map(|path| Some(path.file_name()?.to_str()?.to_string()))
        .collect();
    names.sort();
    if names.is_empty() {
        let folder = folder.display();
        let what = format!("{folder} holds no experiment, that is, no folder with {FILE}");
        return Err(ExperimentError::Usage(what));
    }
    Ok(names)
}

/// Reads the experiments that are asked for; `all` means every one.
///
/// # Errors
/// [`ExperimentError::Unknown`] for a name that is not there, and what [`Experiment::read`] says.
pub fn read(folder: &Path, asked: &[String]) -> Result<Vec<Experiment>, ExperimentError> {
    let known = names(folder)?;
    let asked = if asked == ["all"] { &known } else { asked };
    if let Some(stranger) = asked.iter().find(|name| !known.contains(name)) {
        return Err(ExperimentError::Unknown {
            name: stranger.clone(),
            folder: folder.into(),
            known: known.join(", "),
        });
    }
    let folders: Vec<PathBuf> = asked.iter().map(|name| folder.join(name)).collect();
    folders
        .iter()
        .map(|folder| Experiment::read(folder))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_with_a_file_is_an_experiment() {
        let folder = tempfile::tempdir().expect("folder");
        for name in ["b", "a"] {
            let inner = folder.path().join(name);
            std::fs::create_dir(&inner).expect("inner");
            std::fs::write(inner.join(FILE), "").expect("file");
        }
        std::fs::create_dir(folder.path().join("empty")).expect("empty");
        assert_eq!(names(folder.path()).expect("names"), ["a", "b"]);
        let unknown = read(folder.path(), &["c".into()]).expect_err("unknown");
        assert_eq!(unknown.exit_status(), 2);
        assert!(unknown.to_string().contains("there are: a, b"), "{unknown}");
        let none = names(&folder.path().join("empty")).expect_err("none");
        assert_eq!(none.exit_status(), 2);
        let nowhere = names(&folder.path().join("nowhere")).expect_err("nowhere");
        assert!(
            nowhere.to_string().contains("--experiments DIR"),
            "{nowhere}"
        );
    }
}
