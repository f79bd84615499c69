//! What the kernel says of this process.

use std::fs;

/// Memory and CPU time of this process.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ProcessUsage {
    /// Resident set, bytes.
    pub resident_bytes: u64,
    /// CPU time in user mode, seconds.
    pub user_s: f64,
    /// CPU time in the kernel, seconds.
    pub system_s: f64,
}

/// `USER_HZ`: fixed at 100 in Linux's user-space interface on every architecture Rust supports.
const TICKS_PER_S: f64 = 100.0;

impl ProcessUsage {
    /// Reads it from `/proc/self`; what cannot be read is 0.
    pub fn now() -> Self {
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
        let (user_s, system_s) = cpu_times(&stat).unwrap_or_default();
        Self {
            resident_bytes: resident(&status).unwrap_or(0),
            user_s,
            system_s,
        }
    }
}

fn resident(status: &str) -> Option<u64> {
    let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib * 1_024)
}

/// The program's name may hold spaces and brackets, so fields count from the last bracket: utime
/// and stime are the 14th and 15th of the file (proc(5)), the 12th and 13th after the name.
fn cpu_times(stat: &str) -> Option<(f64, f64)> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace().skip(11);
    let mut seconds = || Some(fields.next()?.parse::<u64>().ok()? as f64 / TICKS_PER_S);
    Some((seconds()?, seconds()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proc_files_are_understood() {
        assert_eq!(
            resident("VmHWM:\t 9 kB\nVmRSS:\t   1712 kB\n"),
            Some(1_753_088)
        );
        let stat = "7 (a (b) c) S 1 7 7 0 -1 4194304 100 0 0 0 250 75 0 0 20 0 1 0";
        assert_eq!(cpu_times(stat), Some((2.5, 0.75)));
        assert_eq!(cpu_times("7 (cut off"), None);
        assert!(ProcessUsage::now().resident_bytes > 0);
    }
}
