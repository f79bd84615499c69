//! Which thread gets a processor first, where there are fewer processors than threads with work;
//! and what it had of one.
//!
//! A core answers a small request in microseconds, if it runs at once. Beside sixteen handlers that
//! walk over ten thousand keys each it would get a seventeenth of the processor, and wait for
//! milliseconds before. So what a thread does decides how much it gets while others want more (its
//! nice value) and how soon after it wakes (the length of its slice: the system lets who wants the
//! processor briefly interrupt who wants it for long). Nobody starves: shares are shares.
//!
//! A thread that panics ends the process ([`Whole`], [`say_and_end`]), unless nothing can have been
//! left half done ([`contained`]).
//!
//! The nice values count from the process's own. What handlers and committers use is charged to
//! tenants by the stages; this only orders them.

mod panics;
mod schedule;
pub mod turns;

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::process::{getpid, getpriority_process, Pid};
use rustix::time::{clock_gettime, ClockId};

pub use panics::{contained, say_and_end, Whole};

/// What a thread is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Duty {
    /// Short work, at once: a core's turns, a load generator's requests.
    Prompt,
    /// Makes writes durable: somebody waits for the reply, but a batch may be large.
    Commit,
    /// The same as the next for a tenant that has had less than its share: it goes before the work
    /// of others.
    HandleFirst,
    /// Blocking work of one request: mostly waits for the device, and may compute for long.
    Handle,
    /// What nobody waits for: flush, compaction, upkeep.
    Background,
}

/// A share of a processor by nice value: 0 is 1024, 5 is 335, 15 is 36 (the kernel's table of
/// weights). The sixteen handlers, a committer and RocksDB's threads together weigh about as much
/// as one core. A committer at 10 was not let in when a core stepped back for it.
const NICE_COMMIT: i32 = 5;
const NICE_HANDLE: i32 = 15;
const NICE_BACKGROUND: i32 = 15;
const NICE_MAX: i32 = 19;

/// A core's turns between two looks at its poll; the shortest that the kernel takes. Who steps back
/// gives up the rest of its slice, so a thread that does so often must have a short one: of the
/// kernel's own, 3 ms, a background thread would lose a tenth of a second each time beside a core
/// that is always busy.
const SLICE_SHORT_NS: u64 = 100_000;
const SLICE_NS: u64 = 500_000;

impl Duty {
    fn nice(self) -> i32 {
        match self {
            Duty::Prompt | Duty::HandleFirst => 0,
            Duty::Commit => NICE_COMMIT,
            Duty::Handle => NICE_HANDLE,
            Duty::Background => NICE_BACKGROUND,
        }
    }

    fn slice_ns(self) -> u64 {
        match self {
            Duty::Prompt | Duty::Commit | Duty::HandleFirst => SLICE_SHORT_NS,
            Duty::Handle | Duty::Background => SLICE_NS,
        }
    }

    /// The calling thread is for this from now on. Where the system forbids it, that is logged once
    /// and changes nothing.
    pub fn begin(self) {
        let wanted = (process_nice() + self.nice()).min(NICE_MAX);
        // Without a right to, a thread cannot go before the one that started it; its slice it may
        // still choose.
        let inherited = getpriority_process(None).unwrap_or(wanted);
        let slice_ns = self.slice_ns();
        let done = schedule::schedule(None, wanted, slice_ns)
            .or_else(|_| schedule::schedule(None, wanted.max(inherited), slice_ns));
        if let Err(error) = done {
            forbidden(&error);
        }
    }

    /// The same for threads of this process that were started by a library and named so.
    pub fn begin_for(self, prefix: &str) {
        let nice = (process_nice() + self.nice()).min(NICE_MAX);
        let Ok(threads) = std::fs::read_dir("/proc/self/task") else {
            return;
        };
        for thread in threads.flatten() {
            let name = std::fs::read_to_string(thread.path().join("comm")).unwrap_or_default();
            let id = thread.file_name().to_str().and_then(|id| id.parse().ok());
            let (true, Some(id)) = (name.starts_with(prefix), id.and_then(Pid::from_raw)) else {
                continue;
            };
            if let Err(error) = schedule::schedule(Some(id), nice, self.slice_ns()) {
                forbidden(&error);
            }
        }
    }
}

/// CPU time of the calling thread, ns; a system call, which costs about a µs.
#[must_use]
pub fn cpu_ns() -> u64 {
    time_ns(ClockId::ThreadCPUTime)
}

/// CPU time of all threads of the process, those that ended included, ns; a system call.
#[must_use]
pub fn process_cpu_ns() -> u64 {
    time_ns(ClockId::ProcessCPUTime)
}

fn time_ns(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// What a thread did since its start, but for sleeping, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// It had a processor. What it ran since it got that last may be missing.
    pub ran_ns: u64,
    /// It was ready to run and had none.
    pub waited_ns: u64,
}

/// Those of the calling thread; two system calls at first and one then, which costs about a µs. 0
/// where the kernel does not count them.
#[must_use]
pub fn times() -> Times {
    thread_local! {
        static COUNT: Option<File> = File::open("/proc/thread-self/schedstat").ok();
    }
    let mut text = [0; 64];
    COUNT
        .with(|count| count.as_ref()?.read_at(&mut text, 0).ok())
        .and_then(|length| parse_schedstat(&text[..length]))
        .unwrap_or_default()
}

/// The first numbers of a `schedstat` (proc(5) and the kernel's sched-stats.rst: time on a
/// processor and on a run queue).
fn parse_schedstat(text: &[u8]) -> Option<Times> {
    let words = std::str::from_utf8(text).ok()?;
    let mut numbers = words.split_ascii_whitespace().map(str::parse);
    Some(Times {
        ran_ns: numbers.next()?.ok()?,
        waited_ns: numbers.next()?.ok()?,
    })
}

/// That of the first thread, which has no duty: threads inherit the nice value of whoever starts
/// them.
fn process_nice() -> i32 {
    getpriority_process(Some(getpid())).unwrap_or(0)
}

fn forbidden(error: &std::io::Error) {
    static SAID: AtomicBool = AtomicBool::new(false);
    if !SAID.swap(true, Ordering::Relaxed) {
        tracing::warn!(
            %error,
            "the system lets no thread go before another (sched_setattr): beside one that \
             computes for long, requests may wait for milliseconds"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;
    use std::thread::{self, Builder};

    fn nice() -> i32 {
        getpriority_process(Some(rustix::thread::gettid())).expect("a thread's own nice value")
    }

    #[test]
    fn a_thread_takes_the_nice_value_of_its_duty_and_not_its_maker_s() {
        let base = process_nice();
        let nices = thread::spawn(move || {
            Duty::Handle.begin();
            let handler = nice();
            let child = thread::spawn(|| {
                Duty::Commit.begin();
                nice()
            });
            (handler, child.join().expect("a committer"))
        });
        let (handler, committer) = nices.join().expect("a handler");
        assert_eq!(handler, (base + NICE_HANDLE).min(NICE_MAX));
        let (up, same) = ((base + NICE_COMMIT).min(NICE_MAX), handler);
        assert!(
            committer == up || committer == same,
            "{committer}: going up needs a right that a test may lack"
        );
    }

    #[test]
    fn the_wait_for_a_processor_is_the_second_number() {
        let told = Times {
            ran_ns: 5_137,
            waited_ns: 95_832,
        };
        assert_eq!(parse_schedstat(b"5137 95832 12\n"), Some(told));
        assert_eq!(parse_schedstat(b"5137"), None);
        let first = times();
        assert!(times().waited_ns >= first.waited_ns, "it only grows");
    }

    #[test]
    fn threads_of_a_library_are_found_by_name() {
        let (stop, stopped) = channel::<()>();
        let (tell, told) = channel();
        let thread = Builder::new().name("library:7".into());
        let thread = thread.spawn(move || {
            tell.send(rustix::thread::gettid()).expect("a listener");
            let _ = stopped.recv();
        });
        let id = told.recv().expect("its id");
        Duty::Background.begin_for("library:");
        let nice = getpriority_process(Some(id)).expect("its nice value");
        drop(stop);
        thread.expect("a thread").join().expect("its end");
        assert_eq!(nice, (process_nice() + NICE_BACKGROUND).min(NICE_MAX));
    }
}
