//! `entremet calibrate`: measures a directory's disk, draws what it found, writes the profile.

use std::error::Error;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::Arc;

use device::{Profile, Way};
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::cli::{CalibrateArgs, VERSION};

/// One line that is overwritten on a terminal; elsewhere a line for each new thing.
struct Line {
    terminal: bool,
    last: String,
}

impl Line {
    fn new() -> Line {
        Line {
            terminal: io::stderr().is_terminal(),
            last: String::new(),
        }
    }

    fn show(&mut self, what: &str, part: f64) {
        if self.terminal {
            eprint!("\r\x1b[K{:>3.0} %  {what}", 100.0 * part);
        } else if self.last != what {
            eprintln!("{:>3.0} %  {what}", 100.0 * part);
            what.clone_into(&mut self.last);
        }
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        if self.terminal {
            eprint!("\r\x1b[K");
        }
    }
}

/// Measures and writes.
///
/// # Errors
/// What kept it from measuring, or from believing the result.
pub fn run(args: &CalibrateArgs) -> Result<(), Box<dyn Error>> {
    check_out(&args.out)?;
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        // A second one ends the process at once: the scratch file has no name and goes with it, its
        // folder stays until the next measurement there.
        signal_hook::flag::register_conditional_shutdown(signal, 1, Arc::clone(&stop))?;
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
    }
    let way = if args.quick {
        Way::quick()
    } else {
        Way::full()
    };
    let mut line = Line::new();
    let profile = device::measure(&args.directory, &way, VERSION, stop, &mut |what, part| {
        line.show(what, part);
    })?;
    drop(line);
    profile.save(&args.out)?;
    let mut out = io::stdout().lock();
    write!(out, "{}", device::plot(&profile.measured))?;
    writeln!(out, "\n{} was written", args.out.display())?;
    Ok(())
}

/// Only an older profile may be replaced, and what would fail at the end fails at once.
fn check_out(out: &Path) -> Result<(), String> {
    let folder = match out.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    if !folder.is_dir() {
        return Err(format!(
            "--out {}: {} is no directory; create it first",
            out.display(),
            folder.display()
        ));
    }
    if out.exists() && Profile::load(out).is_err() {
        return Err(format!(
            "--out {}: a file that is no profile is there; it would be overwritten, so name another one or remove it",
            out.display()
        ));
    }
    Ok(())
}
