//! Where a profile was measured, so that it is not used elsewhere unnoticed.

use crate::DeviceError;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A directory's machine and disk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Machine {
    /// The machine's own name.
    pub host: String,
    /// Its kernel.
    pub kernel: String,
    /// Processors.
    pub processors: u64,
    /// The kernel's name of the disk (vda, nvme0n1, dm-0); empty if there is none to be found.
    pub disk: String,
    /// The maker's name of the disk, where it tells.
    pub model: String,
    /// Bytes of the disk; 0 if unknown.
    pub disk_bytes: u64,
}

impl Machine {
    /// This machine, and the disk that holds `directory`.
    ///
    /// # Errors
    /// The directory cannot be inspected.
    pub fn of(directory: &Path) -> Result<Machine, DeviceError> {
        let inspect = DeviceError::io("inspect", directory);
        let dev = fs::metadata(directory).map_err(inspect)?.dev();
        let system = rustix::system::uname();
        let text = |text: &std::ffi::CStr| text.to_string_lossy().into_owned();
        let (major, minor) = (rustix::fs::major(dev), rustix::fs::minor(dev));
        let block = disk_of(&PathBuf::from(format!("/sys/dev/block/{major}:{minor}")));
        let said = |name: &str| {
            let read = block
                .as_ref()
                .and_then(|block| fs::read_to_string(block.join(name)).ok());
            read.map(|text| text.trim().to_owned()).unwrap_or_default()
        };
        let name = block.as_ref().and_then(|block| block.file_name());
        let sectors: u64 = said("size").parse().unwrap_or(0);
        Ok(Machine {
            host: text(system.nodename()),
            kernel: format!("{} {}", text(system.sysname()), text(system.release())),
            processors: std::thread::available_parallelism().map_or(1, |count| count.get() as u64),
            disk: name
                .map(|name| name.to_string_lossy().into_owned())
                .unwrap_or_default(),
            model: said("device/model"),
            disk_bytes: sectors * 512,
        })
    }

    /// What is different here, in words; `None` if a profile made there holds here. A newer kernel
    /// changes a disk little, another disk everything.
    #[must_use]
    pub fn difference(&self, here: &Machine) -> Option<String> {
        if self.host != here.host {
            return Some(is_here("machine", &self.host, &here.host));
        }
        self.other_disk(here)
    }

    /// What is different of the disk alone, where both are known. A profile that lies beside the
    /// data has come with them: a container has another name at each start, and a volume may be
    /// another machine's tomorrow.
    #[must_use]
    pub fn other_disk(&self, here: &Machine) -> Option<String> {
        if self.disk.is_empty() || here.disk.is_empty() {
            return None;
        }
        let pairs = [
            ("disk", &self.disk, &here.disk),
            ("disk's model", &self.model, &here.model),
        ];
        let different = pairs.iter().find(|(_, made, found)| made != found);
        if let Some((what, made, found)) = different {
            return Some(is_here(what, made, found));
        }
        let sizes = (self.disk_bytes, here.disk_bytes);
        (sizes.0 != sizes.1)
            .then(|| format!("its disk has {} bytes, here it has {}", sizes.0, sizes.1))
    }
}

fn is_here(what: &str, made: &str, found: &str) -> String {
    format!("its {what} is \"{made}\", here it is \"{found}\"")
}

/// The disk behind a partition.
fn disk_of(entry: &Path) -> Option<PathBuf> {
    let block = fs::canonicalize(entry).ok()?;
    if block.join("partition").exists() {
        return block.parent().map(Path::to_owned);
    }
    Some(block)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_disk_is_noticed_and_a_newer_kernel_is_not() {
        let here = Machine::of(Path::new(".")).expect("this directory");
        assert!(!here.host.is_empty() && here.processors > 0);
        let newer = Machine {
            kernel: "Linux 99".into(),
            processors: 1000,
            ..here.clone()
        };
        assert_eq!(newer.difference(&here), None);
        let here = Machine {
            disk: "vda".into(),
            disk_bytes: 2,
            ..here
        };
        let unknown = Machine {
            disk: String::new(),
            disk_bytes: 0,
            ..here.clone()
        };
        assert_eq!(
            (unknown.difference(&here), here.difference(&unknown)),
            (None, None)
        );
        let resized = Machine {
            disk_bytes: 1,
            ..here.clone()
        };
        let why = resized.difference(&here).expect("another size");
        assert!(why.starts_with("its disk has 1 bytes, here"), "{why}");
        let moved = Machine {
            host: "elsewhere".into(),
            ..resized.clone()
        };
        assert_eq!(moved.other_disk(&here), resized.difference(&here));
        let renamed = Machine {
            host: "elsewhere".into(),
            ..here.clone()
        };
        assert_eq!(renamed.other_disk(&here), None);
        let why = moved.difference(&here).expect("another host");
        assert!(why.starts_with("its machine is \"elsewhere\""), "{why}");
    }
}
