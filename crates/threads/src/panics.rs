//! What becomes of a process in which a thread panicked: it ends, whole, at once.
//!
//! A thread that panics was in the middle of something: it held a latch, a tenant's log, a permit,
//! a core's connections. Nobody else can tell what it left half done. A process that goes on
//! without the thread is half dead and looks alive; one that ends has lost nothing that it
//! acknowledged, and whoever watches over it starts it again.

use std::backtrace::Backtrace;
use std::io::{stderr, Write};
use std::panic::{set_hook, PanicHookInfo};
use std::process::abort;
use std::thread::{current, panicking, sleep, Builder};
use std::time::Duration;

/// How long the report may take: a terminal or a pipe that nobody reads must not keep what is half
/// dead alive.
const REPORT_MAX: Duration = Duration::from_secs(2);

/// A panic of any thread ends the process from now on, after `say` has told the reason: the thread,
/// and what happened where. It ends before anything is unwound, so that what the thread holds stays
/// locked and nobody acts on it.
pub fn say_and_end(say: fn(thread: &str, what: &str)) {
    set_hook(Box::new(move |panic| {
        let in_time = Builder::new().spawn(|| {
            sleep(REPORT_MAX);
            abort()
        });
        // Without that thread the report is worth the risk.
        drop(in_time);
        let thread = current();
        say(thread.name().unwrap_or("without a name"), &told(panic));
        // Whatever is asked of the log, and after the reason: to find the lines takes a while.
        let _ = writeln!(stderr(), "{}", Backtrace::force_capture());
        abort()
    }));
}

/// "message, at file:line:column".
fn told(panic: &PanicHookInfo) -> String {
    let payload = panic.payload();
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    let text = text.unwrap_or("no message");
    match panic.location() {
        Some(place) => format!("{text}, at {place}"),
        None => text.to_owned(),
    }
}

/// A thread's word that it does not end alone: dropped by a panic, it ends the process. For
/// programs that did not call [`say_and_end`], such as tests.
#[derive(Debug)]
pub struct Whole;

impl Drop for Whole {
    fn drop(&mut self) {
        if panicking() {
            abort();
        }
    }
}
