//! The terminal: raw while it is ours, as it was before when it is not, whatever ends us.

use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

use rustix::event::{poll, PollFd, PollFlags};
use rustix::termios::{tcgetattr, tcgetwinsize, tcsetattr, OptionalActions, Termios};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGWINCH};
use signal_hook::low_level::pipe;

use super::key::{keys, Key};
use super::line::Line;

/// Other screen, cursor away, no wrapping of long lines.
const ENTER: &str = "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J";
/// All that undone.
const LEAVE: &str = "\x1b[?7h\x1b[?25h\x1b[?1049l";
/// Terminals that know it show a frame at once; others ignore it.
const BEGIN: &str = "\x1b[?2026h\x1b[H";
const END: &str = "\x1b[0m\x1b[J\x1b[?2026l";

/// What woke us.
pub enum Woken {
    /// Keys.
    Keys(Vec<Key>),
    /// Something else: news, or another size.
    Look,
    /// A signal to end, or the terminal is gone.
    Ended,
}

/// Our terminal. Dropped, it is as it was.
pub struct Screen {
    before: Termios,
    colours: bool,
    resized: UnixStream,
    ended: UnixStream,
}

impl Screen {
    /// Takes the terminal of standard input and output.
    ///
    /// # Errors
    /// Standard input is no terminal.
    pub fn take(colours: bool) -> io::Result<Self> {
        let before = tcgetattr(io::stdin())?;
        let mut raw = before.clone();
        raw.make_raw();
        let (resized, resize) = UnixStream::pair()?;
        let (ended, end) = UnixStream::pair()?;
        resized.set_nonblocking(true)?;
        pipe::register(SIGWINCH, resize)?;
        for signal in [SIGTERM, SIGHUP, SIGINT] {
            pipe::register(signal, end.try_clone()?)?;
        }
        tcsetattr(io::stdin(), OptionalActions::Flush, &raw)?;
        let screen = Self {
            before,
            colours,
            resized,
            ended,
        };
        let mut out = io::stdout().lock();
        out.write_all(ENTER.as_bytes())?;
        out.flush()?;
        Ok(screen)
    }

    /// Columns and rows now; 80 by 24 where nobody knows.
    pub fn size(&self) -> (usize, usize) {
        match tcgetwinsize(io::stdout()) {
            Ok(size) if size.ws_col > 0 && size.ws_row > 0 => {
                (size.ws_col.into(), size.ws_row.into())
            }
            _ => (80, 24),
        }
    }

    /// Shows the lines, those that fit.
    ///
    /// # Errors
    /// The terminal is gone.
    pub fn show(&self, lines: &[Line]) -> io::Result<()> {
        let (width, height) = self.size();
        let mut text = String::from(BEGIN);
        for (place, line) in lines.iter().take(height).enumerate() {
            if place > 0 {
                text += "\r\n";
            }
            text += &line.coded(width, self.colours);
            text += "\x1b[K";
        }
        text += END;
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes())?;
        out.flush()
    }

    /// Waits for keys, another size, news (bytes on `news`) or a signal.
    ///
    /// # Errors
    /// The system cannot wait.
    pub fn wait(&self, news: &UnixStream) -> io::Result<Woken> {
        let input = io::stdin();
        let ready = {
            let read = |fd| PollFd::from_borrowed_fd(fd, PollFlags::IN);
            let mut fds = [
                input.as_fd(),
                self.resized.as_fd(),
                news.as_fd(),
                self.ended.as_fd(),
            ]
            .map(read);
            match poll(&mut fds, None) {
                Ok(_) => fds.map(|fd| !fd.revents().is_empty()),
                Err(rustix::io::Errno::INTR) => return Ok(Woken::Look),
                Err(error) => return Err(error.into()),
            }
        };
        if ready[3] {
            return Ok(Woken::Ended);
        }
        if ready[0] {
            let mut bytes = [0; 256];
            return Ok(match rustix::io::read(input, &mut bytes)? {
                0 => Woken::Ended,
                count => Woken::Keys(keys(&bytes[..count])),
            });
        }
        for mut stream in [&self.resized, news] {
            // All that has come is one reason to look again.
            while matches!(stream.read(&mut [0; 64]), Ok(64)) {}
        }
        Ok(Woken::Look)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // The terminal may be gone; there is nobody left to tell.
        let _ = io::stdout().write_all(LEAVE.as_bytes());
        let _ = io::stdout().flush();
        let _ = tcsetattr(io::stdin(), OptionalActions::Flush, &self.before);
    }
}
