//! What becomes of a process in which a thread panicked: it ends, whole, at once.
//!
//! A thread that panics was in the middle of something: it held a latch, a tenant's log, a permit,
//! a core's connections. Nobody else can tell what it left half done. A process that goes on
//! without the thread is half dead and looks alive; one that ends has lost nothing that it
//! acknowledged, and whoever watches over it starts it again.
//!
//! Except where nothing can be left half done: [`contained`].

use std::any::Any;
use std::backtrace::Backtrace;
use std::cell::{Cell, RefCell};
use std::io::{stderr, Write};
use std::panic::{catch_unwind, set_hook, AssertUnwindSafe, PanicHookInfo};
use std::process::abort;
use std::thread::{current, panicking, sleep, Builder};
use std::time::Duration;

/// How long the report may take: a terminal or a pipe that nobody reads must not keep what is half
/// dead alive. To find the lines of a large program takes seconds where the processors are busy.
const REPORT_MAX: Duration = Duration::from_secs(10);

/// A panic of any thread ends the process from now on, after `say` has told the reason: the thread,
/// and what happened where. It ends before anything is unwound, so that what the thread holds stays
/// locked and nobody acts on it.
pub fn say_and_end(say: fn(thread: &str, what: &str)) {
    set_hook(Box::new(move |panic| {
        if CONTAINS.get() {
            return TOLD.set(Some(told(panic)));
        }
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
    let text = message(panic.payload());
    match panic.location() {
        Some(place) => format!("{text}, at {place}"),
        None => text.to_owned(),
    }
}

fn message(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("no message")
}

thread_local! {
    /// A panic of this thread ends no more than what is [`contained`].
    static CONTAINS: Cell<bool> = const { Cell::new(false) };
    /// What the hook said of it.
    static TOLD: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Runs what can leave nothing half done, because it holds no lock and changes only what is given
/// up if it fails: pure policy. Its panic ends nothing else, and comes back as "message, at
/// file:line:column".
///
/// # Errors
/// It panicked; whatever it had borrowed must be thrown away.
pub fn contained<T>(pure: impl FnOnce() -> T) -> Result<T, String> {
    let outer = CONTAINS.replace(true);
    let ended = catch_unwind(AssertUnwindSafe(pure));
    CONTAINS.set(outer);
    // Only the hook knows the place, and programs that did not set it have none.
    ended.map_err(|payload| (TOLD.take()).unwrap_or_else(|| message(&*payload).to_owned()))
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
