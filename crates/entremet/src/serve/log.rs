//! The log, on standard error: written by a thread of its own, so that a reader who is slow or gone
//! keeps nobody waiting but it.

use std::io::{self, IsTerminal, Write};
use std::sync::Arc;

use tracing::subscriber::with_default;
use tracing::Subscriber;
use tracing_appender::non_blocking::{ErrorCounter, NonBlocking, NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::EnvFilter;

/// Lines that wait for that thread; more are lost, and counted. A line is a few hundred bytes.
const LINES_MAX: usize = 10_000;

/// The log of this process; dropped, it has written what there was to say, if somebody reads it.
pub struct Log {
    lines: ErrorCounter,
    _writer: WorkerGuard,
}

impl Log {
    /// What is logged from now on goes there.
    pub fn start() -> Self {
        let (log, writer) = Self::into(io::stderr(), LINES_MAX);
        subscriber(writer).init();
        log
    }

    fn into(place: impl Write + Send + 'static, lines_max: usize) -> (Self, NonBlocking) {
        let (writer, guard) = NonBlockingBuilder::default()
            .buffered_lines_limit(lines_max)
            .lossy(true)
            .thread_name("log")
            .finish(place);
        let log = Self {
            lines: writer.error_counter(),
            _writer: guard,
        };
        (log, writer)
    }

    /// Says how many lines were lost since the start.
    pub fn lost(&self) -> Arc<dyn Fn() -> u64 + Send + Sync> {
        let lines = self.lines.clone();
        Arc::new(move || lines.dropped_lines() as u64)
    }
}

/// What `say` logs is written before this returns, by the calling thread: for who ends the process
/// next.
pub fn at_once(say: impl FnOnce()) {
    with_default(subscriber(io::stderr), say);
}

fn subscriber<W>(writer: W) -> impl Subscriber + Send + Sync
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    tracing_subscriber::fmt()
        .with_writer(writer)
        .with_ansi(io::stderr().is_terminal())
        .with_env_filter(EnvFilter::try_from_env("ENTREMET_LOG").unwrap_or_else(|_| "info".into()))
        .finish()
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{channel, Receiver};

    use super::*;

    /// Takes a line when it is told to, as a pipe does whose reader reads one now and then.
    struct Reader(Receiver<()>);

    impl Write for Reader {
        fn write(&mut self, line: &[u8]) -> io::Result<usize> {
            self.0.recv().map_err(io::Error::other)?;
            Ok(line.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn who_logs_does_not_wait_for_the_reader_and_what_has_no_room_is_counted() {
        let (read, reader) = channel();
        let (log, writer) = Log::into(Reader(reader), 4);
        with_default(subscriber(writer), || {
            (0..100).for_each(|line| tracing::error!(line));
        });
        // Four wait, and the fifth may be with the writer.
        let lost = log.lost()();
        assert!((95..=96).contains(&lost), "{lost}");
        drop(read);
    }
}
