//! CPU time and memory of processes, from `/proc` (Linux; zero elsewhere), and what they may open.

use std::fs;

use rustix::process::{getrlimit, setrlimit, Resource, Rlimit};

/// CPU time used by the calling thread, seconds.
pub fn thread_cpu_s() -> f64 {
    threads::cpu_ns() as f64 / 1e9
}

/// CPU time used so far by all threads of a process, seconds (user and system, steps of 10 ms);
/// `None` if there is no such process.
pub fn cpu_s(pid: u32) -> Option<f64> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The second field is the name in parentheses and may hold spaces.
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks: u64 = fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?;
    // USER_HZ is 100 on every Linux that Rust supports.
    Some(ticks as f64 / 100.0)
}

/// Resident memory of a process, bytes; `None` if there is no such process.
pub fn resident_bytes(pid: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = text.lines().find(|line| line.starts_with("VmRSS:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib * 1024)
}

/// Allows as many open files as the system lets us: thousands of connections need them, and
/// servers inherit the limit.
pub fn raise_file_limit() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    // Whoever needs more than that hears it when connections fail.
    let _ = setrlimit(Resource::Nofile, raised);
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn reads_itself() {
        let pid = std::process::id();
        assert!(resident_bytes(pid).expect("VmRSS") > 1 << 20);
        assert!(cpu_s(pid).is_some());
        let before = thread_cpu_s();
        let spun = (0..3_000_000u64).fold(0, |sum, i| std::hint::black_box(sum ^ i));
        assert!(thread_cpu_s() >= before, "{spun}");
        assert_eq!(cpu_s(0), None);
    }
}
