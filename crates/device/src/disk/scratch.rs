//! Scratch files, and memory aligned for I/O around the page cache.

use crate::{DeviceError, Dice};
use policy::cost::device::Op;
use rustix::fs::{flock, statfs, statvfs, FlockOperation, OFlags};
use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Alignment that every disk accepts.
pub(super) const PAGE_BYTES: u64 = 4 << 10;
/// The scratch file takes at most this part of what is free.
const FREE_PART: u64 = 4;
/// Below this the disk's own cache would hold a good part of it.
const BYTES_MIN: u64 = 64 << 20;
/// One write while filling.
const FILL_BYTES: u64 = 1 << 20;
/// Filling ends after this time, once the least is there.
const FILL_TIME: Duration = Duration::from_secs(15);
/// File systems in memory (statfs's f_type): tmpfs, ramfs.
const IN_MEMORY: [u64; 2] = [0x0102_1994, 0x8584_58f6];

/// Runs `work` on memory that direct I/O accepts, full of what looks random.
pub fn with_buffer<T>(bytes: u64, work: impl FnOnce(&mut [u8]) -> T) -> T {
    let mut memory = vec![0u8; (bytes + PAGE_BYTES) as usize];
    let aligned = memory.as_ptr().align_offset(PAGE_BYTES as usize);
    let buffer = &mut memory[aligned..aligned + bytes as usize];
    let mut dice = Dice::new(bytes);
    for word in buffer.chunks_exact_mut(8) {
        word.copy_from_slice(&dice.word().to_le_bytes());
    }
    work(buffer)
}

/// What a measurement's directory is called, before the process's number.
const FOLDER: &str = ".entremet-calibrate-";

/// A directory of our own inside the one that is measured; gone when dropped. It is locked as long
/// as its process lives, so that another finds out which are left of processes that were killed.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    _lock: File,
}

impl Folder {
    pub(super) fn create(directory: &Path) -> Result<Folder, DeviceError> {
        let refused = |reason: String| DeviceError::Unfit {
            directory: directory.to_owned(),
            reason,
        };
        let inspect =
            |error: rustix::io::Errno| DeviceError::io("inspect", directory)(error.into());
        let kind = statfs(directory).map_err(inspect)?;
        if IN_MEMORY.contains(&(kind.f_type as u64)) {
            let reason = "it is in memory, not on a disk; name a directory on the disk that will hold the data";
            return Err(refused(reason.to_owned()));
        }
        clear_left(directory);
        let path = directory.join(format!("{FOLDER}{}", std::process::id()));
        // Fails if it exists, whatever it is: nothing that is there is touched.
        std::fs::create_dir(&path).map_err(DeviceError::io("create", &path))?;
        let lock = File::open(&path).map_err(DeviceError::io("open", &path))?;
        let locked = flock(&lock, FlockOperation::NonBlockingLockExclusive);
        locked.map_err(|error| DeviceError::io("lock", &path)(error.into()))?;
        Ok(Folder { path, _lock: lock })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    fn create_file(&self, name: &str, direct: bool) -> Result<(File, PathBuf), DeviceError> {
        let path = self.path.join(name);
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true);
        if direct {
            options.custom_flags(OFlags::DIRECT.bits() as i32);
        }
        match options.open(&path) {
            Ok(file) => Ok((file, path)),
            Err(error) if direct && error.raw_os_error() == Some(rustix::io::Errno::INVAL.raw_os_error()) => {
                Err(DeviceError::Unfit {
                    directory: self.path.parent().unwrap_or(&self.path).to_owned(),
                    reason: "its file system cannot bypass the page cache (O_DIRECT), so memory would be measured instead of the disk; use ext4, XFS or a block device's own file system".to_owned(),
                })
            }
            Err(error) => Err(DeviceError::io("create", path)(error)),
        }
    }

    /// An empty file without a name.
    pub(super) fn nameless(&self, direct: bool) -> Result<File, DeviceError> {
        let (file, path) = self.create_file("scratch", direct)?;
        std::fs::remove_file(&path).map_err(DeviceError::io("remove", &path))?;
        Ok(file)
    }

    /// A file on the disk, to be deleted by its name.
    pub(super) fn named(&self, number: usize, bytes: u64) -> Result<PathBuf, DeviceError> {
        let (file, path) = self.create_file(&format!("deleted-{number}"), true)?;
        with_buffer(bytes, |buffer| file.write_all_at(buffer, 0))
            .map_err(DeviceError::io("write", &path))?;
        file.sync_data().map_err(DeviceError::io("sync", &path))?;
        Ok(path)
    }
}

/// Removes what measurements left that were killed: a directory of theirs that nobody has locked.
/// What cannot be removed stays; it is small, because the scratch file has no name.
fn clear_left(directory: &Path) {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(FOLDER)) {
        let folder = OpenOptions::new()
            .read(true)
            .custom_flags((OFlags::DIRECTORY | OFlags::NOFOLLOW).bits() as i32)
            .open(entry.path());
        let left = folder
            .is_ok_and(|folder| flock(&folder, FlockOperation::NonBlockingLockExclusive).is_ok());
        if left {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Files to be deleted may still be in it if the measurement was interrupted. It is ours
        // alone.
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

/// The file that is read and written. It has no name.
#[derive(Debug)]
pub(super) struct Scratch {
    pub(super) file: File,
    pub(super) bytes: u64,
    pub(super) smallest_bytes: u64,
}

impl Scratch {
    /// Reads or writes the whole buffer somewhere, at a multiple of its own size up to a page.
    pub(super) fn io(&self, op: Op, buffer: &mut [u8], dice: &mut Dice) -> std::io::Result<()> {
        let size = buffer.len() as u64;
        let step = size.min(PAGE_BYTES);
        let offset = dice.below((self.bytes - size) / step + 1) * step;
        match op {
            Op::Read => self.file.read_exact_at(buffer, offset),
            Op::Write => {
                // No two writes alike: some disks store equal blocks once.
                buffer[..8].copy_from_slice(&dice.word().to_le_bytes());
                self.file.write_all_at(buffer, offset)
            }
            Op::Sync | Op::Delete => unreachable!("reads and writes only"),
        }
    }

    pub(super) fn fill(
        folder: &Folder,
        bytes: u64,
        stop: &AtomicBool,
        progress: &mut dyn FnMut(f64),
    ) -> Result<Scratch, DeviceError> {
        let inspect =
            |error: rustix::io::Errno| DeviceError::io("inspect", folder.path())(error.into());
        let room = statvfs(folder.path()).map_err(inspect)?;
        let free = room.f_bavail.saturating_mul(room.f_frsize);
        let wanted = bytes.min(free / FREE_PART) / FILL_BYTES * FILL_BYTES;
        if wanted < BYTES_MIN {
            return Err(DeviceError::Full {
                directory: folder.path().parent().unwrap_or(folder.path()).to_owned(),
                reason: format!(
                    "only {} MiB are free; {} MiB are needed, so that a quarter of them is enough to get past the disk's own cache",
                    free >> 20,
                    (BYTES_MIN * FREE_PART) >> 20
                ),
            });
        }
        let file = folder.nameless(true)?;
        let failed = || DeviceError::io("fill a scratch file in", folder.path());
        // Written, not just allocated: what was never written is read without the disk.
        let (mut filled, begin) = (0, Instant::now());
        while filled < wanted && (filled < BYTES_MIN || begin.elapsed() < FILL_TIME) {
            if stop.load(Ordering::Relaxed) {
                return Err(DeviceError::Stopped);
            }
            let batch = (16 * FILL_BYTES).min(wanted - filled);
            with_buffer(batch, |buffer| file.write_all_at(buffer, filled)).map_err(failed())?;
            filled += batch;
            progress(filled as f64 / wanted as f64);
        }
        file.sync_all().map_err(failed())?;
        let tries = |size: &u64| with_buffer(*size, |buffer| file.read_exact_at(buffer, 0)).is_ok();
        let smallest_bytes = [512, 1024, 2048]
            .into_iter()
            .find(tries)
            .unwrap_or(PAGE_BYTES);
        Ok(Scratch {
            file,
            bytes: filled,
            smallest_bytes,
        })
    }
}
