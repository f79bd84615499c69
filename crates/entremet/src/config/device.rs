//! The profile that a server would schedule I/O by, read as it does at its start.

use std::path::Path;

use device::{Machine, Profile, BESIDE_DATA};
use settings::Reader;

use super::Config;

/// Reports a profile that cannot be used, or was made elsewhere.
pub(super) fn check(config: &Config, reader: &Reader) {
    let (device, data) = (&config.device, &config.engine.path);
    if let Some(path) = &device.profile {
        named(path, data, reader);
    } else if device.model.is_none() && device.stage {
        beside(data, reader);
    }
}

fn named(path: &Path, data: &Path, reader: &Reader) {
    let (key, span) = ("device.profile", reader.place("device.profile"));
    let mut report = reader.report.borrow_mut();
    match Profile::load(path) {
        Err(why) => {
            let advice = "name what `entremet calibrate` wrote, or leave it out: then the server measures the disk itself";
            report.error(span, key, in_a_line(&why)).advice(advice);
        }
        Ok(profile) => {
            let here = here(data);
            if let Some(difference) = here.and_then(|here| profile.machine.difference(&here)) {
                let what = format!("{} was made elsewhere: {difference}", path.display());
                let advice = format!(
                    "run `entremet calibrate {}`: prices and floor may be wrong",
                    data.display()
                );
                report.warn(span, key, what).advice(advice);
            }
        }
    }
}

fn beside(data: &Path, reader: &Reader) {
    if let Err(why) = Profile::beside(data) {
        let span = reader.place("engine.path");
        let mut report = reader.report.borrow_mut();
        let advice = format!(
            "remove {}, and the server measures the disk again",
            data.join(BESIDE_DATA).display()
        );
        report
            .error(span, "engine.path", in_a_line(&why))
            .advice(advice);
    }
}

/// The machine and disk of the data, which need not be there yet.
fn here(data: &Path) -> Option<Machine> {
    let data = std::path::absolute(data).ok()?;
    data.ancestors().find_map(|above| Machine::of(above).ok())
}

/// A profile has one problem a line.
fn in_a_line(why: &impl ToString) -> String {
    why.to_string().replace(":\n", ": ").replace('\n', "; ")
}
