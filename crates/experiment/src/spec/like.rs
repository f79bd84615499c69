//! A scenario that is like that of another experiment.

use std::path::Path;

use settings::table::Fields;
use toml::{Table, Value};

use super::merge::lay_over;
use super::FILE;

/// Experiments that are each like the next one; more are taken for a ring.
const CHAIN_MAX: usize = 4;

/// The base scenario: what `[scenario]` says, laid over that of the experiment beside this one that
/// it is `like`, so that what both play is written once.
pub(super) fn base(root: &Fields, folder: &Path) -> Table {
    let own = root.table("scenario").cloned().unwrap_or_default();
    let Some(like) = root.text("like") else {
        return own;
    };
    match of(folder, &like, CHAIN_MAX) {
        Ok(mut base) => {
            lay_over(&mut base, &own);
            base
        }
        Err(why) => {
            root.wrong("like", format!("cannot be used: {why}"));
            own
        }
    }
}

/// The base scenario of the experiment of that name beside this one.
fn of(folder: &Path, name: &str, left: usize) -> Result<Table, String> {
    let folder = folder.with_file_name(name);
    let file = folder.join(FILE);
    let place = file.display();
    let text = std::fs::read_to_string(&file).map_err(|error| format!("{place}: {error}"))?;
    let table: Table = text.parse().map_err(|error| format!("{place}: {error}"))?;
    let Some(Value::Table(own)) = table.get("scenario") else {
        return Err(format!("{place} has no scenario"));
    };
    let Some(like) = table.get("like").and_then(Value::as_str) else {
        return Ok(own.clone());
    };
    if left == 0 {
        return Err(format!(
            "{place} is like one that is like another, and so on"
        ));
    }
    let mut base = of(&folder, like, left - 1)?;
    lay_over(&mut base, own);
    Ok(base)
}

#[cfg(test)]
mod tests {
    use crate::spec::Experiment;

    const REST: &str = "title = \"t\"\nsource = \"s\"\nshows = \"s\"\npaper = \"p\"\n\
        [quick]\n[[variant]]\nname = \"fair\"\n\
        [[verdict]]\ntarget = \"t\"\nvariant = \"fair\"\nmeasure = \"mmr\"\nbound = \">= 1\"\n";

    #[test]
    fn a_scenario_is_laid_over_that_of_the_experiment_it_is_like() {
        let folder = tempfile::tempdir().expect("folder");
        let write = |name: &str, text: &str| {
            let inner = folder.path().join(name);
            std::fs::create_dir(&inner).expect("inner");
            std::fs::write(inner.join(super::FILE), text).expect("file");
            inner
        };
        let load = "tenant = [{ name = \"web\", load = [{ rate = \"1/s\" }] }]";
        let first = format!("{REST}[scenario]\nduration = \"2s\"\n{load}\n");
        write("first", &first);
        let own = "[scenario]\nduration = \"3s\"\n";
        let like = write("like", &format!("like = \"first\"\n{REST}{own}"));
        let expected = format!("duration = \"3s\"\n{load}");
        let expected: toml::Table = expected.parse().expect("TOML");
        assert_eq!(Experiment::read(&like).expect("good").base, expected);
        let expected = Experiment::read(&like).expect("good").base;
        let second = write("second", &format!("like = \"like\"\n{REST}[scenario]\n"));
        assert_eq!(Experiment::read(&second).expect("good").base, expected);
        for (name, like, what) in [
            ("stranger", "nobody", "nobody"),
            ("ring", "ring", "and so on"),
        ] {
            let folder = write(name, &format!("like = \"{like}\"\n{REST}{own}"));
            let error = Experiment::read(&folder).expect_err("refused").to_string();
            assert!(error.contains(what), "{error}");
        }
    }
}
