//! The result of a calibration and its file, `device.toml`.

mod date;
mod read;

use crate::calibrate::{Load, Measured, Mix, Rate};
use crate::{DeviceError, Machine};
use policy::cost::device::Calibration;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{ErrorKind, Write as _};
use std::path::Path;

/// The version of the file's format. A reader refuses others.
pub const FORMAT: u64 = 1;

/// The name of the profile that lies beside the data of a server: what it measured itself at its
/// first start, or what somebody put there.
pub const BESIDE_DATA: &str = "device.toml";

/// A calibrated device.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// When it was made: seconds since 1970, UTC.
    pub made_s: u64,
    /// By which version of the program.
    pub version: String,
    /// Whether by the quick plan.
    pub quick: bool,
    /// The directory that was measured.
    pub directory: String,
    /// On which machine and disk.
    pub machine: Machine,
    /// What was measured.
    pub measured: Measured,
}

impl Profile {
    /// The prices of this device.
    ///
    /// # Errors
    /// [`DeviceError::Implausible`] if the rates cannot be a device's.
    pub fn calibration(&self) -> Result<Calibration, DeviceError> {
        self.measured.calibration()
    }

    /// Reads a profile.
    ///
    /// # Errors
    /// The file cannot be read, or has problems: all of them are in the error.
    pub fn load(path: &Path) -> Result<Profile, DeviceError> {
        let text = std::fs::read_to_string(path).map_err(DeviceError::io("read", path))?;
        let problems = match read::profile(&text) {
            Ok(profile) => match profile.calibration() {
                Ok(_) => return Ok(profile),
                Err(error) => error.to_string(),
            },
            Err(problems) => problems.join("\n"),
        };
        Err(DeviceError::Profile {
            path: path.to_owned(),
            problems,
        })
    }

    /// The profile beside some data, if there is one.
    ///
    /// # Errors
    /// As [`Profile::load`].
    pub fn beside(data: &Path) -> Result<Option<Profile>, DeviceError> {
        match Profile::load(&data.join(BESIDE_DATA)) {
            Ok(profile) => Ok(Some(profile)),
            Err(DeviceError::Io { source, .. })
                if matches!(
                    source.kind(),
                    ErrorKind::NotFound | ErrorKind::NotADirectory
                ) =>
            {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Writes the profile: whole or not at all.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn save(&self, path: &Path) -> Result<(), DeviceError> {
        let mut beside = path.as_os_str().to_owned();
        beside.push(".new");
        let beside = Path::new(&beside);
        File::create(beside)
            .and_then(|mut file| file.write_all(self.text().as_bytes()).map(|()| file))
            .and_then(|file| file.sync_all())
            .map_err(DeviceError::io("write", beside))?;
        // A name lasts when its directory was synced.
        let above = path.parent().filter(|above| !above.as_os_str().is_empty());
        std::fs::rename(beside, path)
            .and_then(|()| File::open(above.unwrap_or(Path::new(".")))?.sync_all())
            .map_err(DeviceError::io("write", path))
    }

    /// The file's text, with a comment for each key.
    #[must_use]
    pub fn text(&self) -> String {
        let (machine, measured) = (&self.machine, &self.measured);
        let quoted = |text: &str| toml::Value::String(text.to_owned()).to_string();
        let mut text = format!(
            "# A device, measured by Entremet; docs/reference/device.md explains every key.\n\
             format = {FORMAT}\n\
             made = {}\n\
             version = {}\n\
             quick = {}\n\
             directory = {}\n\n\
             [machine]\n\
             host = {}\n\
             kernel = {}\n\
             processors = {}\n\
             disk = {}\n\
             model = {}\n\
             disk_bytes = {}\n\n",
            quoted(&date::text(self.made_s)),
            quoted(&self.version),
            self.quick,
            quoted(&self.directory),
            quoted(&machine.host),
            quoted(&machine.kernel),
            machine.processors,
            quoted(&machine.disk),
            quoted(&machine.model),
            machine.disk_bytes,
        );
        write_capacity(&mut text, measured);
        write_rates(&mut text, measured);
        text
    }
}

// Writing to a string cannot fail, so these pass its answer over.

fn write_capacity(text: &mut String, measured: &Measured) {
    let us = |ns: u64| ns as f64 / 1e3;
    let _ = write!(
        text,
        "[capacity]\n\
         floor_vop_per_s = {:.1}\n\
         depth = {}\n\
         chunk_bytes = {}\n\n\
         [latency]           # of 4 KiB alone, median and 99th percentile\n\
         read_us = [{:.1}, {:.1}]\n\
         write_us = [{:.1}, {:.1}]\n\n\
         [rates]             # a second\n\
         syncs = {:.1}\n\
         deletes = {:.1}\n",
        measured.floor_per_s,
        measured.depth,
        measured.chunk_bytes,
        us(measured.read_ns.0),
        us(measured.read_ns.1),
        us(measured.write_ns.0),
        us(measured.write_ns.1),
        measured.sync_per_s,
        measured.delete_per_s,
    );
}

fn write_rates(text: &mut String, measured: &Measured) {
    for (name, rates) in [("read", &measured.read), ("write", &measured.write)] {
        let _ = write!(text, "\n{name} = [\n");
        for Rate {
            bytes,
            per_s,
            spread,
        } in rates
        {
            let _ = writeln!(
                text,
                "  {{ bytes = {bytes}, per_s = {per_s:.1}, spread = {spread:.3} }},"
            );
        }
        text.push_str("]\n");
    }
    text.push_str("\ninterference = [\n");
    for seen in &measured.seen {
        let Load {
            workers,
            read_bytes,
            write_bytes,
            mix,
        } = seen.load;
        let mix = match mix {
            Mix::Halves => "\"halves\"".to_owned(),
            Mix::Reads(percent) => percent.to_string(),
        };
        let _ = writeln!(
            text,
            "  {{ reads = {mix}, read_bytes = {read_bytes}, write_bytes = {write_bytes}, workers = {workers}, vop_per_s = {:.1} }},",
            seen.vop_per_s
        );
    }
    text.push_str("]\n");
}
